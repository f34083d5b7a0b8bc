"""The page over many run folders: its content, and the HTML without a script."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.archive.runs import read
from pytest_ssdqual.report.charts import archive as charts_of
from pytest_ssdqual.report.charts.archive import Margin
from pytest_ssdqual.report.drawing.plot import Chart, ChartRoom
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.find import folders_below
from pytest_ssdqual.report.run_summary.fitness import NUMBERS, WORDS, Fitness
from pytest_ssdqual.report.run_summary.run_view import RunView, shown
from pytest_ssdqual.report.view.tables import SEVERITY, Cell, PageLink, Table, bounded, label, margin
from pytest_ssdqual.rig.drives.topology import Drive

#: Maximum numbers of products and claims, of charts of margins, and of skipped folders.
MOST_CLAIMS, MOST_CHARTS, MOST_SKIPPED = 200, 8, 100
#: Maximum size of all charts.
MOST_BYTES = 1_800_000
#: Model and firmware, as runs have tested them.
Product = tuple[str, str]
LEFT_OUT = "ssdqual export has all figures"


def compose(folder: Path, place: Path) -> dict[str, Any]:
    """Return the content for the template; ``place`` is the folder of the page, from which it links to runs."""
    runs, skipped = read(folders_below(folder))
    products, drives = products_of(runs), drives_of(runs)
    verdicts, margins, note = _charts(products, margins_of(runs))
    words = Counter(run.verdict.word for run in runs)
    return {
        "title": safe_text.line(folder.resolve().name or "runs"),
        "lead": _lead(runs, products, drives),
        "counters": (*((f"runs: {word[0].lower()}{word[1:]}", words[word]) for word in WORDS), ("drives", len(drives))),
        "verdicts": verdicts,
        "products": _products(products),
        # Those with fails first.
        "claims": sorted(
            outcomes_of(runs).items(), key=lambda each: (-each[1][Finding.FAIL], -each[1][Finding.INCONCLUSIVE])
        ),
        "causes": tuple((name, counted(count, "broken promise")) for name, count in causes_of(runs)),
        "margins": margins,
        "charts_note": note,
        # The newest first.
        "runs": runs[::-1],
        "numbers": NUMBERS,
        "drives": drives,
        "link_of": partial(_link, place),
        "counted": counted,
        "label": label,
        "findings": Finding,
        "severity": SEVERITY,
        "capacity": format_capacity,
        "skipped": tuple(skipped[:MOST_SKIPPED]),
        "more_skipped": max(0, len(skipped) - MOST_SKIPPED),
    }


def _lead(runs: Sequence[RunView], products: Collection[Product], drives: Sequence[DriveHistory]) -> str:
    if not runs:
        return "No readable run was found in this folder."
    models = len({model for model, _ in products})
    first, last = (f"{run.started:%Y-%m-%d}" for run in (runs[0], runs[-1]))
    when = f"on {first}" if first == last else f"from {first} to {last}"
    return (
        f"{counted(len(runs), 'run')} {when}: {counted(len(drives), 'drive')} of {counted(models, 'model')}, with "
        f"{counted(len(products), 'combination')} of model and firmware."
    )


def _charts(
    products: Mapping[Product, Sequence[RunView]], margins: Mapping[str, Sequence[Margin]]
) -> tuple[Chart | None, tuple[Chart, ...], str]:
    """Return the charts, and a sentence if any are missing. An error in a chart does not cost the page."""
    room = ChartRoom(MOST_BYTES, "ssdqual export has")
    verdicts = room.taken(map(charts_of.verdicts, [products] if products else ()))
    drawn = room.taken(charts_of.margin(claim, found) for claim, found in list(margins.items())[:MOST_CHARTS])
    room.left_out = len(margins) - len(drawn)
    return next(iter(verdicts), None), drawn, room.note


def _products(products: Mapping[Product, Sequence[RunView]]) -> Table:
    columns = ("Model", "Firmware", "Runs", "Drives", *WORDS, "Last run", "Last with a verdict", "on")
    rows = [(*product, *_product(runs)) for product, runs in products.items()]
    return bounded(columns, rows, f"Models and firmware: {len(products):,}", MOST_CLAIMS, LEFT_OUT)


def _product(runs: Sequence[RunView]) -> Iterator[Cell]:
    words = Counter(run.verdict.word for run in runs)
    yield f"{len(runs):,}"
    yield f"{len({name_of(drive) for run in runs for drive in run.manifest.drives}):,}"
    yield from (f"{words[word]:,}" for word in WORDS)
    yield f"{runs[-1].started:%Y-%m-%d}"
    last = next((run for run in reversed(runs) if run.verdict.fitness is not Fitness.NO_VERDICT), runs[-1])
    yield last.verdict.state
    yield f"{last.started:%Y-%m-%d}"


def _link(place: Path, run: RunView) -> PageLink:
    """Return a link to the run's own page, relative to this one; without a target if there is none."""
    target = run.folder / REPORT
    if not target.is_file():
        return PageLink(run.name, "")
    return PageLink(run.name, quote(os.path.relpath(target.resolve(), place.resolve()), errors="surrogateescape"))


def write(folder: Path, path: Path) -> Path:
    """Write the page with mode 0600, as it has serial numbers; return its path. ``OSError`` without space."""
    html = pages.render("dashboard.html", "page.css", "fleet.css", "dashboard.css", **compose(folder, path.parent))
    safe_files.write_whole(path, html.encode("utf-8", "backslashreplace"))
    return path


def products_of(runs: Iterable[RunView]) -> dict[Product, list[RunView]]:
    """Return the runs of each product, in the order of the products' names."""
    runs_of: dict[Product, list[RunView]] = {}
    for run in runs:
        runs_of.setdefault((run.models, run.firmware), []).append(run)
    return dict(sorted(runs_of.items()))


@frozen
class DriveHistory:
    """All runs of one drive, by their start; at least one."""

    runs: tuple[RunView, ...]
    last: Drive
    #: Broken promises that it is the attributed cause of.
    blamed: int

    @property
    def name(self) -> tuple[str, str]:
        return name_of(self.last)

    @property
    def firmware(self) -> str:
        """Revisions in the order of time: ``A1, B2``."""
        revisions = (
            shown(drive.firmware) for run in self.runs for drive in run.manifest.drives if name_of(drive) == self.name
        )
        return " → ".join(dict.fromkeys(revisions))

    def health(self, name: str) -> float | None:
        """Return a figure of its last health reading that has one."""
        readings = (getattr(run.health.get(self.last.identity), name, None) for run in reversed(self.runs))
        return next((value for value in readings if value is not None), None)


def name_of(drive: Drive) -> tuple[str, str]:
    """Return what tells a drive from those of other runs."""
    return shown(drive.name), shown(drive.model)


def drives_of(runs: Iterable[RunView]) -> list[DriveHistory]:
    """Return the drives: those that are blamed most first, then the most tested.

    Two makers may use the same serial number, so the model is a part of a drive's name.
    """
    of_drive: dict[tuple[str, str], list[RunView]] = {}
    last: dict[tuple[str, str], Drive] = {}
    blamed: Counter[tuple[str, str]] = Counter()
    for run in runs:
        causes = [each.cause for each in _broken(run) if each.cause and each.cause.culprit.is_drive]
        guilty = Counter(shown(serial) for cause in causes for serial in cause.drives)
        for drive in run.manifest.drives:
            of_drive.setdefault(name_of(drive), []).append(run)
            last[name_of(drive)] = drive
            blamed[name_of(drive)] += guilty[shown(drive.name)]
    histories = [DriveHistory(tuple(tested), last[name], blamed[name]) for name, tested in of_drive.items()]
    return sorted(histories, key=lambda drive: (-drive.blamed, -len(drive.runs), drive.last.name))


def margins_of(runs: Iterable[RunView]) -> dict[str, list[Margin]]:
    """Return the worst margin of each claim in each run; claims with the least margin first.

    What must not occur at all, or is inspected, has no distance from a limit.
    """
    of_claim: dict[str, list[Margin]] = {}
    for run in runs:
        promised = [each for each in run.promised if each.limit and not each.is_inspection]
        for claim, worst in {each.claim: each for each in sorted(promised, key=margin, reverse=True)}.items():
            of_claim.setdefault(claim, []).append((run, worst))
    return dict(sorted(of_claim.items(), key=lambda each: (min(margin(worst) for _, worst in each[1]), each[0])))


def outcomes_of(runs: Iterable[RunView]) -> Mapping[tuple[str, Product], Counter[str]]:
    """Return the outcomes of each claim of each product, by product and in the order of the claims."""
    known = [claim.value for claim in Claim]
    counts: dict[tuple[str, Product], Counter[str]] = {}
    for run in runs:
        for each in run.promised:
            claim = "inspection" if each.is_inspection else each.claim
            counts.setdefault((claim, (run.models, run.firmware)), Counter())[each.outcome] += 1
    ranks = {claim: known.index(claim) if claim in known else len(known) for claim, _ in counts}
    return dict(sorted(counts.items(), key=lambda each: (each[0][1], ranks[each[0][0]])))


def causes_of(runs: Iterable[RunView]) -> list[tuple[str, int]]:
    """Return the most frequent attributed causes with their numbers of broken promises."""
    subjects = (each.cause.subject for run in runs for each in _broken(run) if each.cause)
    return Counter(subjects).most_common(MOST_CHARTS)


def _broken(run: RunView) -> Iterator[Evidence]:
    return (each for each in run.judged if each.is_broken)
