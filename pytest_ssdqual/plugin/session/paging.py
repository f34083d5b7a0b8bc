"""The page of a run, made when it ends: a page that cannot be made is a sentence, never another verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.html import run_page


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
