"""The page over many run folders: its content, and the HTML without a script."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.archive import dashboard, figure_table
from pytest_ssdqual.report.archive.dashboard import DriveHistory, Product
from pytest_ssdqual.report.archive.figure_table import FigureRow
from pytest_ssdqual.report.archive.runs import read
from pytest_ssdqual.report.charts import archive as charts_of
from pytest_ssdqual.report.drawing.plot import Chart
from pytest_ssdqual.report.drawing.room import ChartRoom
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.find import folders_below
from pytest_ssdqual.report.run_summary.fitness import LOOKS, WORDS
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view.tables import SEVERITY, Cell, PageLink, State, Table, bounded, label

#: Maximum numbers of rows, of charts of margins, and of skipped folders.
MOST_RUNS, MOST_DRIVES, MOST_CLAIMS, MOST_CHARTS, MOST_SKIPPED = 500, 500, 200, 8, 100
#: Maximum size of all charts.
MOST_BYTES = 1_800_000
LEFT_OUT = "ssdqual export has all figures"


@dataclass(frozen=True, slots=True)
class DashboardPage:
    """Content of the page, before rendering."""

    title: str
    lead: str
    #: Numbers of runs by what they decided about their products.
    counters: tuple[tuple[str, int], ...]
    verdicts: Chart | None
    products: Table
    claims: Table
    causes: tuple[tuple[str, int], ...]
    margins: tuple[Chart, ...]
    #: Why charts are missing; empty if none is.
    charts_note: str
    runs: Table
    drive_table: Table
    skipped: tuple[str, ...]
    #: Number of further folders that were skipped.
    more_skipped: int


def compose(folder: Path, place: Path) -> DashboardPage:
    """Return the content; ``place`` is the folder of the page, from which it links to runs."""
    runs, skipped = read(folders_below(folder))
    products, drives = dashboard.products(runs), dashboard.drives(runs)
    promises = list(figure_table.promises(runs))
    verdicts, margins, note = _charts(products, dashboard.margins(promises))
    words = Counter(run.verdict.word for run in runs)
    return DashboardPage(
        title=safe_text.line(folder.resolve().name or "runs"),
        lead=_lead(runs, products, drives),
        counters=(*((f"runs: {word[0].lower()}{word[1:]}", words[word]) for word in WORDS), ("drives", len(drives))),
        verdicts=verdicts,
        products=_products(products),
        claims=_claims(promises),
        causes=tuple(dashboard.causes(runs).most_common(MOST_CHARTS)),
        margins=margins,
        charts_note=note,
        runs=_runs(runs, place),
        drive_table=_drives(drives, place),
        skipped=tuple(skipped[:MOST_SKIPPED]),
        more_skipped=max(0, len(skipped) - MOST_SKIPPED),
    )


def _lead(runs: Sequence[RunView], products: Collection[Product], drives: Sequence[DriveHistory]) -> str:
    if not runs:
        return "No readable run was found in this folder."
    models = len({model for model, _ in products})
    first, last = (f"{run.started:%Y-%m-%d}" for run in (runs[0], runs[-1]))
    when = f"on {first}" if first == last else f"from {first} to {last}"
    return (
        f"{_counted(len(runs), 'run')} {when}: {_counted(len(drives), 'drive')} of {_counted(models, 'model')}, with "
        f"{_counted(len(products), 'combination')} of model and firmware."
    )


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _charts(
    products: Mapping[Product, Sequence[RunView]], margins: Mapping[str, Sequence[FigureRow]]
) -> tuple[Chart | None, tuple[Chart, ...], str]:
    """Return the charts, and a sentence if any are missing. An error in a chart does not cost the page."""
    drawn: list[Chart] = []
    verdicts, room = None, ChartRoom(MOST_BYTES)
    with room.guard():
        verdicts = charts_of.verdicts(products) if products else None
        if verdicts:
            room.takes(verdicts)
        for claim, rows in list(margins.items())[:MOST_CHARTS]:
            chart = charts_of.margin(claim, rows)
            if room.takes(chart):
                drawn.append(chart)
        room.left_out = len(margins) - len(drawn)
    return verdicts, tuple(drawn), room.note


def _products(products: Mapping[Product, Sequence[RunView]]) -> Table:
    columns = ("Model", "Firmware", "Runs", "Drives", *WORDS, "Last run", "Last verdict")
    rows = [(*product, *_product(runs)) for product, runs in products.items()]
    return bounded(columns, rows, f"Models and firmware: {len(products):,}", MOST_CLAIMS, LEFT_OUT)


def _product(runs: Sequence[RunView]) -> Iterator[Cell]:
    words = Counter(run.verdict.word for run in runs)
    yield f"{len(runs):,}"
    yield f"{len({drive.name for run in runs for drive in run.drives}):,}"
    yield from (f"{words[word]:,}" for word in WORDS)
    yield f"{runs[-1].started:%Y-%m-%d}"
    yield _state(runs[-1])


def _state(run: RunView) -> State:
    return State(run.verdict.word, LOOKS[run.verdict.fitness])


def _claims(promises: Sequence[FigureRow]) -> Table:
    """Return the promised claims of each product, those with fails first."""
    counted = dashboard.outcomes(promises).items()
    ordered = sorted(counted, key=lambda each: (-each[1][Finding.FAIL], -each[1][Finding.INCONCLUSIVE]))
    rows = [
        (
            label(claim), *product,
            *(f"{counts[outcome]:,}" for outcome in (Finding.PASS, Finding.FAIL, Finding.INCONCLUSIVE)),
            next(outcome for outcome in SEVERITY if counts[outcome]),
        )
        for (claim, product), counts in ordered
    ]  # fmt: skip
    columns = ("Claim", "Model", "Firmware", "Pass", "Fail", "Inconclusive", "Worst")
    return bounded(columns, rows, f"Promises: {len(rows):,}", MOST_CLAIMS, LEFT_OUT)


def _runs(runs: Sequence[RunView], place: Path) -> Table:
    """Return the runs, the newest first."""
    columns = (
        "Run", "Verdict", "Judged", "Started", "Model", "Firmware", "Pass", "Fail", "Inconclusive", "Error", "Protocol",
        "Machine",
    )  # fmt: skip
    rows = [tuple(_run(run, place)) for run in reversed(runs)]
    return bounded(columns, rows, f"Runs: {len(runs):,}", MOST_RUNS, "the folder has them")


def _run(run: RunView, place: Path) -> Iterator[Cell]:
    counts = run.verdict.counts
    yield _link(run, place)
    yield _state(run)
    yield str(run.verdict.coverage)
    yield f"{run.started:%Y-%m-%d %H:%M}"
    yield run.models
    yield run.firmware
    yield from (f"{each:,}" for each in (counts.passed, counts.failed, counts.inconclusive, counts.errors))
    yield run.document("protocol")
    yield run.machine


def _link(run: RunView, place: Path) -> PageLink:
    """Return a link to the run's own page, relative to this one; without a target if there is none."""
    target = run.folder / REPORT
    if not target.is_file():
        return PageLink(run.name, "")
    return PageLink(run.name, quote(os.path.relpath(target.resolve(), place.resolve()), errors="surrogateescape"))


def _drives(drives: Sequence[DriveHistory], place: Path) -> Table:
    columns = (
        "Serial number", "Model", "Firmware", "Runs", "Last run", "Verdict of that run", "Cause of",
        "Endurance used", "Written", "Power-on hours",
    )  # fmt: skip
    rows = [tuple(_drive(drive, place)) for drive in drives]
    return bounded(columns, rows, f"Drives: {len(drives):,}", MOST_DRIVES, LEFT_OUT)


def _drive(drive: DriveHistory, place: Path) -> Iterator[Cell]:
    used, written, hours = (drive.health(name) for name in ("percentage_used", "data_written_bytes", "power_on_hours"))
    yield drive.last.serial
    yield drive.last.model
    yield drive.firmware
    yield f"{len(drive.runs):,}"
    yield _link(drive.runs[-1], place)
    yield _state(drive.runs[-1])
    yield f"{_counted(drive.blamed, 'broken promise')}" if drive.blamed else ""
    yield "" if used is None else f"{used:g} %"
    yield "" if written is None else format_capacity(int(written))
    yield "" if hours is None else f"{hours:,.0f}"


def write(folder: Path, path: Path) -> Path:
    """Write the page with mode 0600, as it has serial numbers; return its path. ``OSError`` without space."""
    html = pages.render("dashboard.html", "page.css", "fleet.css", "dashboard.css", page=compose(folder, path.parent))
    safe_files.write_whole(path, html.encode("utf-8", "backslashreplace"))
    return path
