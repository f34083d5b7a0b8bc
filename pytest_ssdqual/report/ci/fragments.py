"""What was judged in one test, as pieces for pages that others make: a piece of HTML, and pictures that stand alone.

The rule of the module: whatever is not our own markup is escaped, after it was made printable; a picture is to be shown
by ``<img>``, where no script of it would run.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.charts.base import LIGHT, PAPER_LIGHT, Chart
from pytest_ssdqual.report.ci.junit import rows
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader

#: Of one cell: a test of a whole rack names all its raw files.
CELL_CHARACTERS = 4_000
#: What a picture's text is drawn with; the page's own is unknown there.
INK, FONT = "#1b1f24", "system-ui, sans-serif"
_SIZE = re.compile(r'<svg viewBox="0 0 (?P<width>[\d.]+) (?P<height>[\d.]+)"')
#: Drawing takes a quarter of a second and 10 kB each; a suite has hundreds of promises that are kept.
EXPLAINED = (Finding.FAIL, Finding.INCONCLUSIVE)


def sentences(evidence: Iterable[Evidence]) -> str:
    """HTML: each sentence in a line of its own."""
    return "<br>".join(_shown(each.sentence) for each in evidence)


def tables(evidence: Iterable[Evidence]) -> str:
    """HTML: each sentence, and a small table of the figures that it was made of."""
    return "".join(
        f"<p><strong>{_shown(each.sentence)}</strong></p><table>"
        + "".join(f'<tr><th scope="row">{name}</th><td>{_shown(text)}</td></tr>' for name, text in rows(each) if text)
        + "</table>"
        for each in evidence
    )


def explained(folder: Path, test: str, evidence: Sequence[Evidence]) -> list[Chart]:
    """The chart of each promise that was broken or is undecided, if there is one: that of ``report.html``.

    Reads the run folder, with what was measured in it; raises whatever a library that draws may raise.
    """
    wanted = [each for each in evidence if each.outcome in EXPLAINED]
    if not wanted:
        return []
    from pytest_ssdqual.report.charts import chart_of

    story = RunReader.read(folder)
    found = (chart_of(story, Judged(test, "", each)) for each in wanted)
    return list({chart.key: chart for chart in found if chart}.values())


def picture(chart: Chart) -> str:
    """A file of its own, on white paper. ``ValueError`` for what is no drawing of ours."""
    size = _SIZE.match(chart.svg)
    if not size:
        raise ValueError(f"{chart.key} is no drawing")
    colours = "".join(f"--{name}:{value};" for name, value in LIGHT.items())
    style = f"color:{INK};background:{PAPER_LIGHT};font-family:{FONT};{colours}"
    place = f'width="{size["width"]}" height="{size["height"]}" style="{style}"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f"<svg {names} {place}{chart.svg.removeprefix('<svg')}"


def _shown(text: str) -> str:
    return html.escape(safe_text.line(text, CELL_CHARACTERS))
