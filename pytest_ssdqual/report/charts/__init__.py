"""Charts of a run folder as SVG for a page, each with its numbers as a table.

A chart draws only what records and fio's output of the folder contain; if something is missing there is no chart.
matplotlib is imported where it draws and nowhere else. Main type: `chart.Chart`; `charts` selects those of a page.
"""

from __future__ import annotations

from pytest_ssdqual.report.charts.chart import Chart
from pytest_ssdqual.report.charts.selection import chart_of, charts

__all__ = ["Chart", "chart_of", "charts"]
