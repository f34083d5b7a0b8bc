"""The page of a run: composed from the run folder, drawn, and rendered as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.evidence.integrity import CLAIM
from pytest_ssdqual.report.html import page as pages
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.run_summary import write_caches
from pytest_ssdqual.report.run_summary.causes import groups
from pytest_ssdqual.report.run_summary.overview import error_rates, overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.view import commands, drive_history, promises, subject, witnesses
from pytest_ssdqual.report.view.failures import Failure, failures, observed_with
from pytest_ssdqual.report.view.sections import CONCLUDED

if TYPE_CHECKING:
    from pytest_ssdqual.report.drawing.plot import Chart


#: Maximum size of all charts with their tables, and of those of failures: a page must fit into a mail (3 MB).
ALL_BYTES, FAILURE_BYTES = 2_000_000, 900_000
#: Maximum number of errors with their commands, and of commands of each.
MOST_TROUBLES, MOST_COMMANDS = 20, 6
#: Maximum number of further failed promises as sentences.
MOST_SENTENCES = 500


@frozen
class Drawn:
    """Charts of a page."""

    #: Charts by the level of their arrays.
    levels: tuple[tuple[str, tuple[Chart, ...]], ...]
    #: Charts by the key of the failure.
    of_failures: Mapping[str, Chart]
    #: Failures that share the chart of another one: key → id of the chart.
    shown_by: Mapping[str, str]
    #: Why charts are missing; empty if none is.
    note: str
    #: The members of the array whose promise is missed most, with the cause marked.
    proof: Chart | None


def draw(story: RunReader, failures: Sequence[Failure]) -> Drawn:
    """Return the charts, those of failures first. An error in a chart does not cost the page."""
    from pytest_ssdqual.report.charts import chart_of, charts
    from pytest_ssdqual.report.charts.drives import under_load
    from pytest_ssdqual.report.drawing.plot import ChartRoom

    room = ChartRoom(FAILURE_BYTES, "records.jsonl has")
    of_failures, shown_by = {}, {}
    levels: dict[str, list[Chart]] = {}
    proof = None
    with room.guard():
        for group in groups(story.judged)[:1]:
            run = observed_with(story, group.broken[0], group.drives)
            chart = under_load(run.seen, group.drives, f"{run.geometry} {run.workload}") if run and run.seen else None
            proof = chart if chart and room.takes(chart) else None
        for failure in failures:
            chart = chart_of(story, failure.judged)
            if chart is None:
                continue
            if chart.key in room.keys:
                shown_by[failure.key] = chart.key
            elif room.takes(chart):
                of_failures[failure.key] = chart
        room.left_bytes += ALL_BYTES - FAILURE_BYTES
        for chart in charts(story):
            if chart.key not in room.keys and room.takes(chart):
                levels.setdefault(_heading(chart.level), []).append(chart)
    by_level = tuple((level, tuple(of_level)) for level, of_level in levels.items())
    return Drawn(by_level, of_failures, shown_by, room.note, proof)


def _heading(level: str) -> str:
    """Return ``RAID 5``, ``Single drives``."""
    if level == "drive":
        return "Single drives"
    return level.replace("raid", "RAID ", 1) if level else "All arrays and drives"


def text(story: RunReader) -> str:
    """Return the page of a run; ``OSError`` if the folder cannot be read."""
    run = RunView.of(story)
    ran = commands.read(story.folder) if run.sentences(Finding.FAIL) or run.errors else ()
    failed = tuple(failures(story, run.judged, ran))
    inspected = promises.inspected_drives(run.judged)
    return pages.render(
        "page.html",
        "page.css",
        script="page.js",
        title=f"{story.folder.name}: {subject.kinds(run.manifest)}",
        run=run,
        overview=overview(run),
        inspected=promises.inspection_matrix(inspected, only_deviating=True),
        every_reading=promises.inspection_matrix(inspected),
        most_sentences=MOST_SENTENCES,
        # Remarks of the guard and of resumed sessions.
        remarks=story.manifest.remarks,
        failures=failed,
        errors=[
            (f"error-{number}", each, commands.before(ran, each.time, each.writer)[-MOST_COMMANDS:])
            for number, each in enumerate(run.errors[:MOST_TROUBLES], 1)
        ],
        left_errors=max(0, len(run.errors) - MOST_TROUBLES),
        drives=subject.drives(run.manifest, run.verdict.coverage.untested_as),
        load=subject.load_of_fio(story),
        caches=list(write_caches.rows(story)),
        not_expected=subject.NOT_EXPECTED,
        drawn=draw(story, failed),
        promised=promises.matrix(run.judged),
        observed=promises.observed(run.judged),
        # The most frequent reasons first.
        skipped=sorted(run.skipped.items(), key=lambda each: -len(each[1])),
        named=named,
        family=error_rates(run),
        health=subject.health(story),
        # Verdicts on lots, searches and integrity.
        verdicts=[each for each in run.judged if each.about in CONCLUDED or each.claim == CLAIM],
        arrays=subject.arrays(story),
        history=drive_history.table(story),
        links=witnesses.shared_links(story),
        environment=subject.environment_checks(story),
        kernel=subject.kernel_messages(story),
        files=subject.files(_files(story.folder)),
    )


def _files(folder: Path) -> list[tuple[str, int]]:
    return [
        (path.relative_to(folder).as_posix(), path.stat().st_size)
        for path in safe_files.files_below(folder)
        if not path.name.startswith(".")
    ]


def write(folder: Path) -> Path:
    """Write ``report.html`` of a run folder with mode 0600, replacing an older one, and return its path.

    The page states which charts could not be drawn. ``OSError`` without records or without space; an older page then
    remains.
    """
    path = folder / REPORT
    safe_files.write_whole(path, text(RunReader.read(folder)).encode("utf-8", "backslashreplace"))
    return path
