"""Fragments for pages of other tools: HTML of the evidence of a test, and charts as separate pictures.

Every text is made printable and escaped. A picture must be shown by ``<img>``, where no script would run.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.ci.junit import rows
from pytest_ssdqual.report.drawing.plot import Chart
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader

#: Maximum length of a cell; a test of a whole rack names all its raw files.
CELL_CHARACTERS = 4_000
#: Outcomes with a chart. A chart costs a quarter of a second and 10 kB, and a suite has hundreds of passes.
EXPLAINED = (Finding.FAIL, Finding.INCONCLUSIVE, Finding.BOUNDED)


def sentences(evidence: Iterable[Evidence]) -> str:
    """Return HTML with a line for each sentence."""
    return "<br>".join(_shown(each.sentence) for each in evidence)


def tables(evidence: Iterable[Evidence]) -> str:
    """Return HTML with each sentence and a table of its figures."""
    return "".join(
        f"<p><strong>{_shown(each.sentence)}</strong></p><table>"
        + "".join(f'<tr><th scope="row">{name}</th><td>{_shown(text)}</td></tr>' for name, text in rows(each) if text)
        + "</table>"
        for each in evidence
    )


def explained(folder: Path, test: str, evidence: Sequence[Evidence]) -> list[Chart]:
    """Return the chart of each promise that failed or is inconclusive, as on ``report.html``.

    Reads the run folder; raises whatever a library that draws may raise.
    """
    wanted = [each for each in evidence if each.outcome in EXPLAINED]
    if not wanted:
        return []
    from pytest_ssdqual.report.charts import chart_of

    story = RunReader.read(folder)
    found = (chart_of(story, Judged.of(test, each)) for each in wanted)
    # Each is drawn here, where an error of a library that draws costs the charts and nothing else.
    return list({chart.key: chart for chart in found if chart and chart.svg}.values())


def _shown(text: str) -> str:
    return html.escape(safe_text.line(text, CELL_CHARACTERS))
