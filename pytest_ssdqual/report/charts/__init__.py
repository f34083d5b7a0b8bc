"""Charts of a run folder as SVG for a page, each with its numbers as a table.

A chart draws only what records and fio's output of the folder contain; if something is missing there is no chart.
Main type: `report.drawing.plot.Chart`; `charts` selects those of a page.
"""

from __future__ import annotations

from pytest_ssdqual.report.charts.selection import chart_of, charts
from pytest_ssdqual.report.drawing.plot import Chart

__all__ = ["Chart", "chart_of", "charts"]
