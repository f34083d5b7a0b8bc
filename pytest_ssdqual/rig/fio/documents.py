"""fio's output file as it grows → its status documents, and the lines of text before, between and after them. Pure."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from pytest_ssdqual.rig.machine import InvalidMeasurement

#: Documents begin and end alone at the left margin; everything between them is fio's talk.
DOCUMENT = re.compile(r"^\{", re.MULTILINE)
#: Lines of text never begin so.
OF_JSON = ("", " ", "{", "}")

Piece = dict[str, Any] | str


class Splitter:
    """Bytes in, whole documents and lines out; what is not whole yet waits for the rest of it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._json = json.JSONDecoder()
        self._text = ""
        self._position = 0
        self._count = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that these bytes complete, in their order; to be used up before the next bytes come."""
        text = self._text + self._decoder.decode(data)
        position = 0
        while found := DOCUMENT.search(text, position):
            yield from _lines(text[position : found.start()])
            position = found.start()
            try:
                document, position = self._json.raw_decode(text, position)
            except json.JSONDecodeError:
                break  # not all of it is here, or it is damaged: ``end`` tells
            self._count += 1
            yield document
        else:
            complete = max(position, text.rfind("\n") + 1)
            yield from _lines(text[position:complete])
            position = complete
        self._position += position
        self._text = text[position:]

    @property
    def rest(self) -> tuple[str, ...]:
        """Lines of text in what is not whole yet, or never will be."""
        return tuple(line for line in self._text.splitlines() if line[:1] not in OF_JSON)

    def require_end(self) -> None:
        """``InvalidMeasurement`` if a document is damaged or cut off."""
        if found := DOCUMENT.search(self._text):
            try:
                self._json.raw_decode(self._text, found.start())
            except json.JSONDecodeError as error:
                where = f"after {self._count} whole documents, at byte {self._position + error.pos}"
                raise InvalidMeasurement(
                    f"fio's output is damaged or cut off {where} of {self._position + len(self._text)}; is its file "
                    "system full?"
                ) from error


def pieces(data: bytes) -> Iterator[Piece]:
    """All of a file that fio has ended; ``InvalidMeasurement`` where a document is damaged or cut off."""
    splitter = Splitter()
    yield from splitter.feed(data)
    splitter.require_end()
    yield from splitter.rest


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]
