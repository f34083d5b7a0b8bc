"""What others are told of a run when it ends, beside its page: the page of a CI's job, Prometheus.

The rule of the module: what cannot be told is a sentence, never another verdict.

The page of a run, made when it ends: a page that cannot be made is a sentence, never another verdict.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.ci import markdown, openmetrics
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.run_folder import safe_files

#: Names the file whose Markdown GitHub shows on the page of the job.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
#: With more than that in it, GitHub shows nothing of it.
STEP_BYTES = 1 << 20


def tell(folder: Path, settings: Settings, *, alone: bool = True) -> tuple[str, ...]:
    """``summary.md`` into the run folder and, of a run of one bay, to GitHub, metrics to where they are asked for.

    Never raises: a sentence for each of them that could not be.
    """
    failed = _complaint(markdown.NAME, partial(_summarise, folder))
    if alone and not failed:
        failed = to_job(folder)
    unmetered = ""
    if path := settings.openmetrics:
        unmetered = _complaint(f"--ssd-openmetrics={path}", partial(openmetrics.write, folder, path))
    return tuple(filter(None, [failed, unmetered]))


def tell_of_fleet(folder: Path, *, summarised: bool) -> str:
    """To GitHub, of a run of several bays; ``summarised`` along with its page. As ``to_job``."""
    failed = "" if summarised else _complaint(markdown.NAME, partial(_summarise_fleet, folder))
    return failed or to_job(folder)


def to_job(folder: Path) -> str:
    """The summary that is in this folder onto the page of the job. Empty, or why it could not be; never raises."""
    step = os.environ.get(STEP_SUMMARY)
    if not step or not (folder / markdown.NAME).is_file():
        return ""
    return _complaint(f"the job summary ({STEP_SUMMARY})", partial(_append, folder, Path(step)))


def _complaint(what: str, make: Callable[[], None]) -> str:
    """Empty if it could be made. Whoever interrupts it wants the run to end: what is left is only to seal it."""
    try:
        make()
    except KeyboardInterrupt:
        return f"{what} was interrupted while it was written"
    except Exception as error:
        why = f"{error.strerror or error}" if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return safe_text.line(f"{what} could not be written ({why})")
    return ""


def _summarise(folder: Path) -> None:
    markdown.write(folder)


def _summarise_fleet(folder: Path) -> None:
    from pytest_ssdqual.report.ci.markdown import fleet_text
    from pytest_ssdqual.report.fleet.view import FleetView
    from pytest_ssdqual.report.html.fleet_page import compose

    told = fleet_text(compose(FleetView.read(folder)))
    safe_files.write_whole(folder / markdown.NAME, told.encode("utf-8", "backslashreplace"))


def _append(folder: Path, path: Path) -> None:
    data = b"\n" + (folder / markdown.NAME).read_bytes()
    descriptor = safe_files.open_regular(path, os.O_WRONLY | os.O_APPEND) if path.exists() else safe_files.create(path)
    with os.fdopen(descriptor, "ab") as file:
        there = os.fstat(descriptor).st_size
        if there + len(data) > STEP_BYTES:
            raise OSError(f"there are {there:,} bytes in it already, and GitHub takes {STEP_BYTES:,}")
        file.write(data)


@dataclass(frozen=True, slots=True)
class Paged:
    """What came of it."""

    path: Path
    #: Why there is none; empty if there is one.
    failed: str = ""

    def __str__(self) -> str:
        """For the summary."""
        return f"there is no {run_page.NAME}: {self.failed}" if self.failed else f"report: {self.path}"


def make(folder: Path) -> Paged:
    """The page of a run folder, also of a run that judged nothing. Never raises."""
    return _made(folder, lambda: run_page.write(folder))


def make_of_fleet(folder: Path) -> Paged:
    """The page of the folder of a fleet, and its summary. Never raises."""
    from pytest_ssdqual.report.html import fleet_page_file

    return _made(folder, lambda: fleet_page_file.write(folder))


def side_by_side(folder: Path, width: int) -> list[str]:
    """The bays of a fleet for the summary, or why they cannot be told. Never raises."""
    from pytest_ssdqual.report.html import fleet_page_file

    try:
        return fleet_page_file.side_by_side(folder, width)
    except Exception as error:
        return [safe_text.line(f"the bays cannot be told side by side ({type(error).__name__}: {error})", 300)]


def _made(folder: Path, write: Callable[[], Path]) -> Paged:
    """Whoever interrupts the drawing wants the run to end: what is left is only to seal it."""
    try:
        return Paged(write())
    except KeyboardInterrupt:
        return Paged(folder / run_page.NAME, "it was interrupted while it was written")
    except Exception as error:
        why = f"{error.strerror or error}" if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        return Paged(folder / run_page.NAME, safe_text.line(f"it could not be written ({why})", 300))
