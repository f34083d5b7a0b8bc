"""fio's output file as it grows → its status documents, and the lines of text before, between and after them. Pure."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.strict_json import DECODER
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

#: Documents begin and end alone at the left margin; everything between them is fio's talk.
#: A pattern for the end took as long as reading the document itself (0.9 ms of 190 kB, CPython 3.11).
DOCUMENT = re.compile(r"^\{", re.MULTILINE)
END = "\n}"
#: A document of a drive with 500 bins takes 60 kB, of 24 side by side 3 MB. What goes on for longer is none, and
#: neither is a line of text: nothing more is read.
LONGEST = 32 << 20
#: Lines of text never begin so.
OF_JSON = ("", " ", "{", "}")

Piece = dict[str, Any] | str


class Splitter:
    """Bytes in, whole documents and lines out; what is not whole yet waits for the rest of it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._text = ""
        self._position = 0
        self._count = 0
        #: Why nothing more is read; what is said of it.
        self._damage = ""

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that these bytes complete, in their order; to be used up before the next bytes come.

        Never more than ``LONGEST`` and these bytes are held; behind what is longer than that, nothing is read.
        """
        if self._damage:
            return
        text = self._text + self._decoder.decode(data)
        position = 0
        while found := DOCUMENT.search(text, position):
            yield from _lines(text[position : found.start()])
            position = found.start()
            end = _end(text, position)
            if end is None:
                break  # not all of it is here
            try:
                document, position = _decoded(text, position, end)
            except (ValueError, RecursionError):
                break  # not all of it is here, or it is damaged: ``require_end`` tells
            self._count += 1
            yield document
        else:
            complete = max(position, text.rfind("\n") + 1)
            yield from _lines(text[position:complete])
            position = complete
        self._position += position
        self._text = text[position:]
        if len(self._text) > LONGEST:
            self._damage, self._text = f"it goes on for more than {LONGEST >> 20} MiB without an end", ""

    @property
    def rest(self) -> tuple[str, ...]:
        """Lines of text in what is not whole yet, or never will be."""
        return tuple(line for line in _lines(self._text) if line[:1] not in OF_JSON)

    def require_end(self) -> None:
        """``InvalidMeasurement`` if a document is damaged, cut off or endless."""
        whole = f"after {self._count} whole documents"
        if self._damage:
            raise InvalidMeasurement(f"fio's output is damaged {whole}: {self._damage}")
        if found := DOCUMENT.search(self._text):
            try:
                DECODER.raw_decode(self._text, found.start())
            except (ValueError, RecursionError) as error:
                where = f"{whole}, at byte {self._position + getattr(error, 'pos', found.start())}"
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


def _end(text: str, position: int) -> int | None:
    """Where the document that begins here may be over: with its first line, or with the next brace at the margin."""
    line_end = text.find("\n", position)
    if line_end < 0:
        line_end = len(text)
    if text.find("}", position, line_end) >= 0:
        return line_end
    found = text.find(END, line_end)
    return found + len(END) if found >= 0 else None


def _decoded(text: str, position: int, end: int) -> tuple[dict[str, Any], int]:
    """The document that begins here, and where it is over, which should be ``end``; raises as ``DECODER``.

    pydantic's reader of JSON takes half the time of Python's (0.53 and 1.01 ms of 190 kB), but must be told where to
    end, and does not know of all that Python's takes; what it refuses is for Python's to judge.
    """
    from pydantic_core import from_json

    try:
        return from_json(text[position:end], allow_inf_nan=False), end
    except ValueError:  # more than one document, or less
        return DECODER.raw_decode(text, position)


def _lines(text: str) -> list[str]:
    return [safe_text.line(line) for line in text.splitlines() if line.strip()]
