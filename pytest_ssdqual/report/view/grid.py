"""A table of the page: a caption, named columns, and rows of text; a cell may be a verdict, which gets a mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.report.evidence.part import Finding

Cell = str | Finding
Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The first column names the row."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    #: What was left out, and where it is.
    note: str = ""


def bounded(caption: str, columns: tuple[str, ...], rows: Sequence[Row], most: int, where: str) -> Grid:
    """The first ``most`` rows; ``where`` says who has the others."""
    left = len(rows) - most
    note = f"{left:,} more {'row is' if left == 1 else 'rows are'} left out here: {where}." if left > 0 else ""
    return Grid(caption, columns, tuple(rows[:most]), note)
