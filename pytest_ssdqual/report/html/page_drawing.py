"""The charts of a page: which of them there is room for, and what becomes of those that cannot be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.run_folder.story import Story
from pytest_ssdqual.report.view.failures import Failure

if TYPE_CHECKING:
    from pytest_ssdqual.report.charts.chart import Chart

#: Of all charts with their tables, and of those of failures: a page must fit into a mail and a phone (3 MB).
ALL_BYTES, FAILURE_BYTES = 2_000_000, 900_000
#: What a cell of a table costs besides its text.
CELL_BYTES = 10


@dataclass(frozen=True, slots=True)
class Drawn:
    """What there is to be shown."""

    #: By the level of the arrays that they are about, in the order in which they came.
    levels: tuple[tuple[str, tuple[Chart, ...]], ...] = ()
    #: By the key of the failure.
    of_failures: Mapping[str, Chart] = field(default_factory=dict)
    #: Failures that another one's chart shows as well: key → id of the chart.
    shown_by: Mapping[str, str] = field(default_factory=dict)
    left_out: int = 0
    #: Why some are missing; empty if none is.
    complaint: str = ""


@dataclass(slots=True)
class _Room:
    """What is left, and what is in use already."""

    left_bytes: int
    keys: set[str] = field(default_factory=set)

    def takes(self, chart: Chart) -> bool:
        size = _bytes(chart)
        if size > self.left_bytes:
            return False
        self.left_bytes -= size
        self.keys.add(chart.key)
        return True


def draw(story: Story, failures: Sequence[Failure]) -> Drawn:
    """Failures come first. Nothing that a chart does wrong can cost the page."""
    try:
        return _draw(story, failures)
    except Exception as error:  # a library draws; the page is worth having without it
        why = safe_text.line(f"{type(error).__name__}: {error}", 300)
        return Drawn(complaint=f"The charts could not be drawn ({why}); all their numbers are in the run folder.")


def _draw(story: Story, failures: Sequence[Failure]) -> Drawn:
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
            levels.setdefault(each.geometry, []).append(each)
    return Drawn(
        levels=tuple((_heading(level), tuple(each)) for level, each in levels.items()),
        of_failures=of_failures,
        shown_by=shown_by,
        left_out=left_out,
    )


def _heading(level: str) -> str:
    """``RAID 5``, ``Single drives``."""
    if level == "drive":
        return "Single drives, each by itself"
    return level.replace("raid", "RAID ", 1) if level else "All arrays and drives"


def _fitting(found: Iterator[Chart], room: _Room) -> Iterator[Chart | None]:
    """None for each that there is no room for; those that a failure shows already are not shown again."""
    for chart in found:
        if chart.key not in room.keys:
            yield chart if room.takes(chart) else None


def _bytes(chart: Chart) -> int:
    cells = [*chart.table.columns, *(cell for row in chart.table.rows for cell in row)]
    return len(chart.svg.encode()) + sum(len(cell.encode()) + CELL_BYTES for cell in cells)
