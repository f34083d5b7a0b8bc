"""Room for the charts of a page, which must fit into a mail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.drawing.plot import Chart

#: Markup of a table's cell.
CELL_BYTES = 10


@dataclass(slots=True)
class ChartRoom:
    """Bytes left for charts with their tables, and the charts that are already on the page."""

    left_bytes: int
    #: Where the numbers of missing charts are: ``the tables have``.
    numbers: str = "the tables have"
    keys: set[str] = field(default_factory=set)
    left_out: int = 0
    #: Why charts could not be drawn; empty if all could.
    complaint: str = ""

    def takes(self, chart: Chart) -> bool:
        """Draw the chart; return False, and count it as left out, if there is no room for it."""
        cells = [*chart.table.columns, *(cell for row in chart.table.rows for cell in row)]
        size = len(chart.svg.encode()) + sum(len(str(cell).encode()) + CELL_BYTES for cell in cells)
        if size > self.left_bytes:
            self.left_out += 1
            return False
        self.left_bytes -= size
        self.keys.add(chart.key)
        return True

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Note an error of a library that draws: the page is worth having without its charts."""
        try:
            yield
        except Exception as error:
            why = safe_text.line(f"{type(error).__name__}: {error}", 300)
            self.complaint = f"The charts could not be drawn ({why}); {self.numbers} their numbers."

    @property
    def note(self) -> str:
        """Why charts are missing; empty if none is."""
        if self.complaint or not self.left_out:
            return self.complaint
        charts = "chart is" if self.left_out == 1 else "charts are"
        return f"{self.left_out:,} more {charts} left out, to keep this page small; {self.numbers} their numbers."
