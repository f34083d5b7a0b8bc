"""What a chart is when it is done: a picture that fits into a page, what it says, and its numbers as a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.report.charts.decimate import extremes

#: Rows beyond this are condensed: a table is read by people, the numbers of every second are in the run folder.
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers behind a chart, as text with units."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture of a page."""

    #: Unique in a page, an HTML id.
    key: str
    #: What is to be seen.
    title: str
    #: One or two sentences: what, unit, limit, published, how to read.
    caption: str
    #: ``<svg …>`` fit for inlining: ids begin with ``key``, colours are ``currentColor`` and the palette's variables.
    svg: str
    #: Every number that is drawn; long series are condensed, and the caption says so.
    table: Table
    #: Ids of the tests whose promises it shows.
    tests: tuple[str, ...] = ()
    #: For grouping: ``raid5``, ``drive``, …
    geometry: str = ""


def slug(*parts: str) -> str:
    """An HTML id of these: ``widths-raid5-randread-4k``."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")


def said(text: object, most: int = 60) -> str:
    """Text from outside, for a label: printable, short, and nothing that matplotlib takes for an instruction.

    A label that begins with an underscore is left out of legends (``matplotlib.legend``).
    """
    shown = safe_text.line(str(text), most)
    return f" {shown}" if shown.startswith("_") else shown


def sentence(text: str) -> str:
    """With a capital and a full stop; nothing of nothing. ``capitalize`` would write ``iops``."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def condensed(rows: Sequence[tuple[float, float]], among: int = 1) -> list[tuple[float, float]]:
    """Not more than ``MOST_ROWS`` of a series, or of so many series together, their peaks and dips among them."""
    kept = extremes([each[0] for each in rows], [each[1] for each in rows], max(4, MOST_ROWS // among))
    return list(zip(*kept, strict=True))


def condensing(count: int) -> str:
    """What a caption says of a table that has fewer rows than points were drawn; nothing if it has all."""
    return f" The table has the peaks and dips of {count:,} points." if count > MOST_ROWS else ""
