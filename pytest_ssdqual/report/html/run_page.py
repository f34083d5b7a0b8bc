"""The page of a run: composed from the run folder, drawn, and rendered as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.evidence.integrity import CLAIM
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.run_summary import errors as trouble
from pytest_ssdqual.report.run_summary import write_caches
from pytest_ssdqual.report.run_summary.causes import CauseGroup, blamed
from pytest_ssdqual.report.run_summary.errors import ErrorGroup
from pytest_ssdqual.report.run_summary.fitness import PageVerdict, lost
from pytest_ssdqual.report.run_summary.overview import Overview, error_rates, overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import commands, drive_history, promises, subject
from pytest_ssdqual.report.view.commands import ShownCommand
from pytest_ssdqual.report.view.failures import MOST, Context, Failure, failures
from pytest_ssdqual.report.view.promise_matrix import PromiseMatrix, matrix
from pytest_ssdqual.report.view.sections import CONCLUDED
from pytest_ssdqual.report.view.tables import Table

if TYPE_CHECKING:
    from pytest_ssdqual.report.drawing.plot import Chart


#: Maximum size of all charts with their tables, and of those of failures: a page must fit into a mail (3 MB).
ALL_BYTES, FAILURE_BYTES = 2_000_000, 900_000
#: Markup of a table's cell.
CELL_BYTES = 10
#: Maximum number of errors with their commands, and of commands of each.
MOST_TROUBLES, MOST_COMMANDS = 20, 6
#: Maximum number of further failed promises as sentences.
MOST_SENTENCES = 500
#: Maximum number of models in the title, and length of each.
MOST_MODELS, MODEL_CHARACTERS = 4, 60


@dataclass(frozen=True, slots=True)
class Drawn:
    """Charts of a page."""

    #: Charts by the level of their arrays.
    levels: tuple[tuple[str, tuple[Chart, ...]], ...] = ()
    #: Charts by the key of the failure.
    of_failures: Mapping[str, Chart] = field(default_factory=dict)
    #: Failures that share the chart of another one: key → id of the chart.
    shown_by: Mapping[str, str] = field(default_factory=dict)
    left_out: int = 0
    #: Why charts are missing; empty if none is.
    complaint: str = ""


@dataclass(slots=True)
class _Room:
    """Bytes left for charts, and the charts that are already on the page."""

    left_bytes: int
    keys: set[str] = field(default_factory=set)

    def takes(self, chart: Chart) -> bool:
        size = _bytes(chart)
        if size > self.left_bytes:
            return False
        self.left_bytes -= size
        self.keys.add(chart.key)
        return True


def draw(story: RunReader, failures: Sequence[Failure]) -> Drawn:
    """Return the charts, those of failures first. An error in a chart does not cost the page."""
    try:
        return _draw(story, failures)
    except Exception as error:  # a library draws; the page is worth having without it
        why = safe_text.line(f"{type(error).__name__}: {error}", 300)
        return Drawn(complaint=f"The charts could not be drawn ({why}); all their numbers are in the run folder.")


def _draw(story: RunReader, failures: Sequence[Failure]) -> Drawn:
    from pytest_ssdqual.report.charts import chart_of, charts

    room = _Room(FAILURE_BYTES)
    of_failures, shown_by, left_out = {}, {}, 0
    for failure in failures:
        chart = chart_of(story, failure.judged)
        if chart is None:
            continue
        if chart.key in room.keys:
            shown_by[failure.key] = chart.key
        elif room.takes(chart):
            of_failures[failure.key] = chart
        else:
            left_out += 1
    room.left_bytes += ALL_BYTES - FAILURE_BYTES
    found = list(_fitting(charts(story), room))
    levels: dict[str, list[Chart]] = {}
    for each in found:
        if each is None:
            left_out += 1
        else:
            levels.setdefault(each.level, []).append(each)
    return Drawn(
        levels=tuple((_heading(level), tuple(each)) for level, each in levels.items()),
        of_failures=of_failures,
        shown_by=shown_by,
        left_out=left_out,
    )


def _heading(level: str) -> str:
    """Return ``RAID 5``, ``Single drives``."""
    if level == "drive":
        return "Single drives"
    return level.replace("raid", "RAID ", 1) if level else "All arrays and drives"


def _fitting(found: Iterator[Chart], room: _Room) -> Iterator[Chart | None]:
    """Yield each chart that no failure shows, or None if there is no room for it."""
    for chart in found:
        if chart.key not in room.keys:
            yield chart if room.takes(chart) else None


def _bytes(chart: Chart) -> int:
    cells = [*chart.table.columns, *(cell for row in chart.table.rows for cell in row)]
    return len(chart.svg.encode()) + sum(len(str(cell).encode()) + CELL_BYTES for cell in cells)


@dataclass(frozen=True, slots=True)
class Error:
    """An error and the last commands before it."""

    #: An HTML id.
    key: str
    trouble: ErrorGroup
    commands: tuple[ShownCommand, ...]


@dataclass(frozen=True, slots=True)
class RunPage:
    """Content of the page of a run, before rendering."""

    title: str
    standing: PageVerdict
    protocol: str
    overview: Overview
    #: What limits the verdict, without what the causes say.
    limits: tuple[str, ...]
    #: Drives, margin, protocol and times: name and text.
    about: tuple[tuple[str, str], ...]
    #: Remarks of the guard and of resumed sessions.
    remarks: tuple[str, ...]
    causes: tuple[CauseGroup, ...]
    failures: tuple[Failure, ...]
    #: Further failed promises, and the number of those left out.
    more_failures: tuple[str, ...]
    left_failures: int
    inconclusive: tuple[str, ...]
    left_inconclusive: int
    bounded: tuple[str, ...]
    errors: tuple[Error, ...]
    left_errors: int
    drives: Table
    means: Table
    drawn: Drawn
    promised: PromiseMatrix
    observed: Table
    skipped: Table
    family: tuple[str, ...]
    health: Table
    worsened: tuple[str, ...]
    #: Verdicts on lots, searches and integrity.
    verdicts: tuple[Judged, ...]
    arrays: Table
    history: Table
    environment: Table
    kernel: Table
    documents: tuple[tuple[str, str], ...]
    files: Table


def compose(story: RunReader) -> RunPage:
    """Return the content of a run's page; ``OSError`` if the folder cannot be read."""
    run = RunView.of(story)
    judged, errors = run.judged, run.errors
    broken, inconclusive = run.sentences(Finding.FAIL), run.sentences(Finding.INCONCLUSIVE)
    found = commands.read(story.folder) if broken or errors else ()
    failed = tuple(failures(Context.of(story, judged, found)))
    return RunPage(
        title=f"{story.folder.name}: {_of_what(run)}",
        standing=run.verdict,
        protocol=run.document("protocol") or "unknown",
        overview=(first := overview(run)),
        limits=tuple(each for each in run.verdict.lines if each != lost(run.verdict.counts)),
        about=(*_about(run), *first.facts),
        remarks=story.manifest.remarks,
        causes=run.causes,
        failures=failed,
        more_failures=broken[MOST : MOST + MOST_SENTENCES],
        left_failures=max(0, len(broken) - MOST - MOST_SENTENCES),
        inconclusive=inconclusive[:MOST_SENTENCES],
        left_inconclusive=max(0, len(inconclusive) - MOST_SENTENCES),
        bounded=run.sentences(Finding.BOUNDED)[:MOST_SENTENCES],
        errors=tuple(_errors(errors[:MOST_TROUBLES], found)),
        left_errors=max(0, len(errors) - MOST_TROUBLES),
        drives=subject.drives(run.manifest, blamed(run.causes), run.verdict.coverage.untested_as),
        means=subject.means(run.manifest, subject.load_of_fio(story), write_caches.rows(story)),
        drawn=draw(story, failed),
        promised=matrix(judged),
        observed=promises.observed(judged),
        skipped=trouble.table(run.skipped),
        family=error_rates(run),
        health=subject.health(story),
        worsened=run.worsened,
        verdicts=tuple(each for each in judged if _is_special(each)),
        arrays=subject.arrays(story),
        history=drive_history.table(story),
        environment=subject.environment_checks(story),
        kernel=subject.kernel_messages(story),
        documents=subject.documents(run.manifest),
        files=subject.files(_files(story.folder)),
    )


def _errors(groups: Sequence[ErrorGroup], found: Sequence[ShownCommand]) -> list[Error]:
    return [
        Error(f"error-{number}", each, commands.before(found, each.time, each.writer, MOST_COMMANDS))
        for number, each in enumerate(groups, 1)
    ]


def _of_what(run: RunView) -> str:
    """Return ``8 × INTEL SSDSC2BB480G4``."""
    models = [drive.model or "unknown model" for drive in run.manifest.drives]
    kinds = list(dict.fromkeys(models))
    shown = [f"{models.count(kind)} × {safe_text.line(kind, MODEL_CHARACTERS)}" for kind in kinds[:MOST_MODELS]]
    more = sum(models.count(kind) for kind in kinds[MOST_MODELS:])
    return " + ".join([*shown, *([f"{more} of other models"] if more else [])]) or "unknown drives"


def _about(run: RunView) -> Iterator[tuple[str, str]]:
    """Yield the drives of the run with their machines."""
    at = f" on {', '.join(filter(None, run.machines))}" if any(run.machines) else ""
    expected = run.manifest.expected
    yield "Drives", f"{_of_what(run)}{at}{f', {expected}' if expected else ''}"


def _is_special(each: Judged) -> bool:
    return each.evidence.about in CONCLUDED or each.evidence.claim == CLAIM


def _files(folder: Path) -> list[tuple[str, int]]:
    return [
        (path.relative_to(folder).as_posix(), path.stat().st_size)
        for path in safe_files.files_below(folder)
        if not path.name.startswith(".")
    ]


def render(page: RunPage) -> str:
    """Return the HTML file."""
    return pages.render("page.html", "page.css", script="page.js", page=page)


def write(folder: Path) -> Path:
    """Write ``report.html`` of a run folder with mode 0600, replacing an older one, and return its path.

    The page states which charts could not be drawn. ``OSError`` without records or without space; an older page then
    remains.
    """
    text = render(compose(RunReader.read(folder)))
    path = folder / REPORT
    safe_files.write_whole(path, text.encode("utf-8", "backslashreplace"))
    return path
