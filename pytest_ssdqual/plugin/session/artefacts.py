"""Writes the artefacts of a run when it ends: report.html, summary.md, the summary of a CI job, and metrics.

An artefact that cannot be written is a sentence in the terminal summary and never changes a verdict.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.report.ci import markdown, openmetrics
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files

#: Environment variable with the file whose Markdown GitHub shows on the page of the job.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
#: GitHub shows nothing of a larger file.
STEP_BYTES = 1 << 20


def write_all(folder: Path, settings: Settings, *, alone: bool = True) -> tuple[str, ...]:
    """Write ``summary.md`` (in a run of one bay also to GitHub) and the metrics of ``--ssd-openmetrics``.

    Never raises: returns a sentence for each file that could not be written.
    """
    failed = _complaint(markdown.NAME, partial(markdown.write, folder))
    if alone and not failed:
        failed = to_job(folder)
    unmetered = ""
    if path := settings.openmetrics:
        unmetered = _complaint(f"--ssd-openmetrics={path}", partial(openmetrics.write, folder, path))
    return tuple(filter(None, [failed, unmetered]))


def write_fleet_summary(folder: Path, *, summarised: bool) -> str:
    """Write the summary of several bays to GitHub; ``summarised``: summary.md exists already. As ``to_job``."""
    failed = "" if summarised else _complaint(markdown.NAME, partial(_summarise_fleet, folder))
    return failed or to_job(folder)


def to_job(folder: Path) -> str:
    """Append the folder's summary to the page of the job. Returns the reason of a failure, or nothing; never raises."""
    step = os.environ.get(STEP_SUMMARY)
    if not step or not (folder / markdown.NAME).is_file():
        return ""
    return _complaint(f"the job summary ({STEP_SUMMARY})", partial(_append, folder, Path(step)))


def _complaint(what: str, make: Callable[[], object]) -> str:
    """Call ``make`` and return the reason of a failure, or nothing. Ctrl-C ends only ``make``: the folder is still
    sealed.
    """
    try:
        make()
    except KeyboardInterrupt:
        return f"{what} was interrupted while it was written"
    except Exception as error:
        why = f"{error.strerror or error}" if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return safe_text.line(f"{what} could not be written ({why})")
    return ""


def _summarise_fleet(folder: Path) -> None:
    from pytest_ssdqual.report.ci.markdown import fleet_text
    from pytest_ssdqual.report.fleet.page_content import compose
    from pytest_ssdqual.report.fleet.view import FleetView

    text = fleet_text(compose(FleetView.read(folder)))
    safe_files.write_whole(folder / markdown.NAME, text.encode("utf-8", "backslashreplace"))


def _append(folder: Path, path: Path) -> None:
    data = b"\n" + (folder / markdown.NAME).read_bytes()
    descriptor = safe_files.open_regular(path, os.O_WRONLY | os.O_APPEND) if path.exists() else safe_files.create(path)
    with os.fdopen(descriptor, "ab") as file:
        there = os.fstat(descriptor).st_size
        if there + len(data) > STEP_BYTES:
            raise OSError(f"the file has {there:,} bytes already; GitHub takes at most {STEP_BYTES:,}")
        file.write(data)


@frozen
class PageResult:
    """The written page, or the reason why it could not be written."""

    path: Path
    #: Reason of a failure; empty if the page exists.
    failed: str = ""

    def __str__(self) -> str:
        """Return a line for the terminal summary."""
        return f"there is no {REPORT}: {self.failed}" if self.failed else f"report: {self.path}"


def make(folder: Path) -> PageResult:
    """Write the page of a run folder, also of a run without a verdict. Never raises."""
    return _made(folder, run_page.write)


def make_of_fleet(folder: Path) -> PageResult:
    """Write the page of a fleet's folder, and its summary. Never raises."""
    from pytest_ssdqual.report.fleet import page_content

    return _made(folder, page_content.write)


def side_by_side(folder: Path, width: int) -> list[str]:
    """Return the fleet summary for the terminal, or the reason of a failure. Never raises."""
    from pytest_ssdqual.report.fleet import page_content
    from pytest_ssdqual.report.fleet.view import FleetView

    try:
        return page_content.summary_lines(FleetView.read(folder), width)
    except Exception as error:
        return [safe_text.line(f"the fleet summary could not be made ({type(error).__name__}: {error})", 300)]


def _made(folder: Path, write: Callable[[Path], Path]) -> PageResult:
    return PageResult(folder / REPORT, _complaint("it", partial(write, folder)))
