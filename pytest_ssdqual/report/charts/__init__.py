"""Charts of a run folder, as SVG for a page: what a library drew, made to fit; see ``Chart``.

The rule of the room: only what the records and fio's own output of the folder hold is drawn, with its table; where
something is missing there is no chart. matplotlib is imported where it draws and nowhere else.
"""

from __future__ import annotations

from pytest_ssdqual.report.charts.chart import Chart, Table
from pytest_ssdqual.report.charts.explain import chart_of
from pytest_ssdqual.report.charts.selection import charts

__all__ = ["Chart", "Table", "chart_of", "charts"]
