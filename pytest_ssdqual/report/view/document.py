"""A small document: sections of sentences and tables, which a terminal shows as text and ``html.page.sheet`` as a page.

Sentences and tables are the same on both; only a page has drawings. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.report.view.tables import Table, TextLine, paragraph, text_table


@frozen
class Section:
    """A section of a small document."""

    title: str
    #: Sentences, each with its markup for a terminal.
    words: tuple[TextLine, ...] = ()
    table: Table = field(default=Table((), ()))
    #: An ``<svg>`` element.
    svg: str = ""


def sentences(*texts: str) -> tuple[TextLine, ...]:
    return tuple(map(TextLine, texts))


def text_lines(sections: Iterable[Section], width: int) -> Iterator[TextLine]:
    """Yield each section as text: its title, which is also that of its table, its sentences, and an empty line."""
    for section in sections:
        if section.table.rows:
            yield from text_table(replace(section.table, caption=section.title), width)
            yield from paragraph(section.table.note, width)
        else:
            yield TextLine(section.title, ("bold",))
        for sentence in section.words:
            yield from paragraph(sentence.text, width, sentence.markup)
        yield TextLine("")
