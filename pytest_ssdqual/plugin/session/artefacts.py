"""Writes the artefacts of a run when it ends: report.html, summary.md, the summary of a CI job, and metrics.

An artefact that cannot be written is a sentence in the terminal summary and never changes a verdict.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.report.ci import markdown, openmetrics
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.html.page import REPORT
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.terminal import summary

#: Environment variable with the file whose Markdown GitHub shows on the page of the job.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
#: GitHub shows nothing of a larger file.
STEP_BYTES = 1 << 20


@frozen
class Artefact:
    """A sentence of the terminal summary about a file: where it is, or why it could not be written."""

    sentence: str
    is_failed: bool = False


def write_all(folder: Path, settings: Settings, *, alone: bool) -> list[Artefact]:
    """Write the page, ``summary.md`` (in a run of one bay also to GitHub) and the metrics of ``--ssd-openmetrics``.

    Never raises.
    """
    page = [make_page(folder, run_page.write)] if settings.page else []
    failed = [_complaint(markdown.NAME, partial(markdown.write, folder))]
    if alone and not failed[0]:
        failed.append(to_job(folder))
    if path := settings.openmetrics:
        failed.append(_complaint(f"--ssd-openmetrics={path}", partial(openmetrics.write, folder, path)))
    return [*page, *_failed(failed)]


def write_of_fleet(folder: Path, *, page: bool) -> list[Artefact]:
    """Write the page of several bays, which writes ``summary.md`` too, and the summary to GitHub. Never raises."""
    from pytest_ssdqual.report.html import fleet_page

    pages = [make_page(folder, fleet_page.write)] if page else []
    is_summarised = any(not each.is_failed for each in pages)
    failed = "" if is_summarised else _complaint(markdown.NAME, partial(_summarise_fleet, folder))
    return [*pages, *_failed([failed or to_job(folder)])]


def tell(reporter: pytest.TerminalReporter, artefacts: Iterable[Artefact]) -> None:
    """Print the sentences about artefacts."""
    for each in artefacts:
        summary.write_line(reporter, each.sentence, yellow=each.is_failed)


def _failed(sentences: Iterable[str]) -> list[Artefact]:
    return [Artefact(sentence, is_failed=True) for sentence in sentences if sentence]


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


def make_page(folder: Path, write: Callable[[Path], Path]) -> Artefact:
    """Write the page of a folder, also of a run without a verdict. Never raises."""
    if why := _complaint("it", partial(write, folder)):
        return Artefact(f"there is no {REPORT}: {why}", is_failed=True)
    return Artefact(f"report: {folder / REPORT}")


def side_by_side(folder: Path, width: int) -> list[str]:
    """Return the fleet summary for the terminal, or the reason of a failure. Never raises."""
    from pytest_ssdqual.report.fleet import text
    from pytest_ssdqual.report.fleet.view import FleetView

    try:
        return text.summary_lines(FleetView.read(folder), width)
    except Exception as error:
        return [safe_text.line(f"the fleet summary could not be made ({type(error).__name__}: {error})", 300)]
