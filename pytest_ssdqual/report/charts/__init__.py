"""Charts of a run folder, as SVG for a page: what a library drew, made to fit; see ``Chart``.

The rule of the room: only what the records and fio's own output of the folder hold is drawn, with its table; where
something is missing there is no chart. matplotlib is imported where it draws and nowhere else.
"""

from __future__ import annotations

from pytest_ssdqual.report.charts.base import Chart, ChartTable
from pytest_ssdqual.report.charts.selection import chart_of, charts

__all__ = ["Chart", "ChartTable", "chart_of", "charts"]
