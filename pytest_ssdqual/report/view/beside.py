"""Our figures beside those that are published of the same array and workload; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_ssdqual.qual.spec.datasheet import Published
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.view.columns import columns
from pytest_ssdqual.report.view.labels import label, span
from pytest_ssdqual.report.view.tables import COLOUR, MARK, Line, figure

#: More sources than this are named in the run folder only.
SOURCES = 3


def beside(evidence: Sequence[Evidence], width: int) -> Iterator[Line]:
    """A block for each claim; nothing if nothing is published of what was measured."""
    found = [each for each in evidence if each.published]
    for claim in dict.fromkeys(each.claim for each in found):
        group = [each for each in found if each.claim == claim]
        rows = [(name(each), each.measured, str(each.published), times(each.value, each.published)) for each in group]
        colours = [(COLOUR[each.outcome],) if each.outcome in MARK else () for each in group]
        yield from columns(label(claim), ("", "measured", "published", "ours/published"), rows, width, colours)
        sources = dict.fromkeys(each.published.source for each in group if each.published)
        if len(sources) <= SOURCES:
            yield from (Line(f"  published in {source}"[:width]) for source in sources)
        yield Line("")


def name(evidence: Evidence) -> str:
    """The array and the workload; of drives side by side which of them it is."""
    drive = f" {evidence.worst}" if evidence.worst else ""
    return f"{span(evidence.geometries)}{drive} {span(evidence.workloads)}"


def times(value: float | None, published: Published | None) -> str:
    """``1.06 ×``; nothing if one of the two is not there."""
    if value is None or not published or not published.value:
        return ""
    found = value / published.value
    return f"{found:,.0f} ×" if found >= 99.95 else f"{found:.2f} ×"


def stated(published: Published | None) -> str:
    """In a narrow column: ``75.0k``, ``~110k``."""
    if published is None:
        return ""
    return f"{'~' if published.approximate else ''}{figure(published.value, published.unit)}"
