"""The page over many run folders: its content, and the HTML without a script."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.archive import dashboard
from pytest_ssdqual.report.archive.dashboard import DriveHistory, ProductHistory
from pytest_ssdqual.report.archive.runs import ArchivedRun, read
from pytest_ssdqual.report.charts import archive as charts_of
from pytest_ssdqual.report.drawing.plot import Chart
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.find import folders_below
from pytest_ssdqual.report.run_summary.fitness import LOOKS, WORDS
from pytest_ssdqual.report.view.tables import Cell, PageLink, State, Table, bounded, label

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
    verdicts, margins, note = _charts(runs, products)
    words = Counter(run.view.verdict.word for run in runs)
    return DashboardPage(
        title=safe_text.line(folder.resolve().name or "runs"),
        lead=_lead(runs, products, drives),
        counters=(*((f"runs: {word[0].lower()}{word[1:]}", words[word]) for word in WORDS), ("drives", len(drives))),
        verdicts=verdicts,
        products=_products(products),
        claims=_claims(products),
        causes=tuple(dashboard.causes(runs).most_common(MOST_CHARTS)),
        margins=margins,
        charts_note=note,
        runs=_runs(runs, place),
        drive_table=_drives(drives, place),
        skipped=tuple(skipped[:MOST_SKIPPED]),
        more_skipped=max(0, len(skipped) - MOST_SKIPPED),
    )


def _lead(runs: Sequence[ArchivedRun], products: Sequence[ProductHistory], drives: Sequence[DriveHistory]) -> str:
    between = dashboard.period(runs)
    if between is None:
        return "No readable run was found in this folder."
    models = len({each.product.model for each in products})
    first, last = (f"{each:%Y-%m-%d}" for each in between)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    return (
        f"{_counted(len(runs), 'run')} {when}: {_counted(len(drives), 'drive')} of {_counted(models, 'model')}, with "
        f"{_counted(len(products), 'combination')} of model and firmware."
    )


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _charts(
    runs: Sequence[ArchivedRun], products: Sequence[ProductHistory]
) -> tuple[Chart | None, tuple[Chart, ...], str]:
    """Return the charts, and a sentence if any are missing. An error in a chart does not cost the page."""
    found: list[Chart] = []
    margins = dashboard.margins(runs)
    try:
        verdicts = charts_of.verdicts(products) if products else None
        room = MOST_BYTES - (len(verdicts.svg) if verdicts else 0)
        for claim, points in list(margins.items())[:MOST_CHARTS]:
            chart = charts_of.margin(claim, points)
            room -= len(chart.svg)
            if room >= 0:
                found.append(chart)
    except Exception as error:  # a library draws; the page is worth having without it
        why = safe_text.line(f"{type(error).__name__}: {error}", 300)
        return None, tuple(found), f"The charts could not be drawn ({why}); the tables have their numbers."
    left = len(margins) - len(found)
    return verdicts, tuple(found), f"{_counted(left, 'claim')} with larger margins have no chart here." if left else ""


def _products(products: Sequence[ProductHistory]) -> Table:
    columns = ("Model", "Firmware", "Runs", "Drives", *WORDS, "Last run", "Last verdict")
    rows = [tuple(_product(each)) for each in products]
    return bounded(columns, rows, f"Models and firmware: {len(products):,}", MOST_CLAIMS, LEFT_OUT)


def _product(history: ProductHistory) -> Iterator[Cell]:
    yield history.product.model
    yield history.product.firmware
    yield f"{len(history.runs):,}"
    yield f"{history.drives:,}"
    yield from (f"{history.count(word):,}" for word in WORDS)
    yield f"{history.runs[-1].started:%Y-%m-%d}"
    yield _state(history.runs[-1])


def _state(run: ArchivedRun) -> State:
    verdict = run.view.verdict
    return State(verdict.word, LOOKS[verdict.fitness])


def _claims(products: Sequence[ProductHistory]) -> Table:
    """Return the promised claims of each product, those with fails first."""
    found = [
        (history.product, claim, counts)
        for history in products
        for claim, counts in dashboard.outcomes(history).items()
    ]
    found.sort(key=lambda each: (-each[2][Finding.FAIL], -each[2][Finding.INCONCLUSIVE]))
    rows = [
        (
            label(claim), product.model, product.firmware, f"{counts[Finding.PASS]:,}",
            f"{counts[Finding.FAIL]:,}", f"{counts[Finding.INCONCLUSIVE]:,}",
            next(each for each in (Finding.FAIL, Finding.INCONCLUSIVE, Finding.BOUNDED, Finding.PASS) if counts[each]),
        )
        for product, claim, counts in found
    ]  # fmt: skip
    columns = ("Claim", "Model", "Firmware", "Pass", "Fail", "Inconclusive", "Worst")
    return bounded(columns, rows, f"Promises: {len(rows):,}", MOST_CLAIMS, LEFT_OUT)


def _runs(runs: Sequence[ArchivedRun], place: Path) -> Table:
    """Return the runs, the newest first."""
    columns = (
        "Run", "Verdict", "Judged", "Started", "Model", "Firmware", "Pass", "Fail", "Inconclusive", "Error", "Protocol",
        "Machine",
    )  # fmt: skip
    rows = [tuple(_run(run, place)) for run in reversed(runs)]
    return bounded(columns, rows, f"Runs: {len(runs):,}", MOST_RUNS, "the folder has them")


def _run(run: ArchivedRun, place: Path) -> Iterator[Cell]:
    counts = run.view.verdict.counts
    yield _link(run, place)
    yield _state(run)
    yield str(run.view.verdict.coverage)
    yield f"{run.started:%Y-%m-%d %H:%M}"
    yield run.models
    yield run.firmware
    yield from (f"{each:,}" for each in (counts.passed, counts.failed, counts.inconclusive, counts.errors))
    yield run.view.document("protocol")
    yield run.machine


def _link(run: ArchivedRun, place: Path) -> PageLink:
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
    yield drive.serial
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
