"""Strict JSON reader for untrusted data: text → dicts, lists, strings and numbers, or ``ValueError``; nothing else.

Python's own reader raises ``RecursionError`` for deep nesting and accepts ``NaN`` and ``Infinity``, which are not JSON
and break every later ``int()`` and comparison. It also reads numbers of 400 digits, which are no float.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import NoReturn

#: Largest accepted count: above every 64-bit counter.
LARGEST = 2**64
#: Larger numbers are read as null, that is as unknown: the squares of larger figures may overflow.
LARGEST_FIGURE = 1e100
#: What a text with such a number contains; other texts may, too.
_PERHAPS_LARGE = re.compile(r"[0-9]{100}|[eE]\+?[0-9]{3}")


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


#: Decoder for a stream of documents (``raw_decode``); may raise ``RecursionError``.
DECODER = json.JSONDecoder(parse_constant=_no_number)


def _bounded_float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) and abs(number) <= LARGEST_FIGURE else None


def _bounded_int(text: str) -> int | None:
    return None if _bounded_float(text) is None else int(text)


_BOUNDED = json.JSONDecoder(parse_constant=_no_number, parse_int=_bounded_int, parse_float=_bounded_float)


def read_json(text: str | bytes) -> object:
    """Parse JSON; ``ValueError`` if it is not JSON, not UTF-8, or nested too deeply.

    A number beyond ``LARGEST_FIGURE`` is read as null.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    decoder = _BOUNDED if _PERHAPS_LARGE.search(text) else DECODER  # three times as fast
    try:
        return decoder.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def whole(value: object, at_most: int = LARGEST) -> int | None:
    """A count, or None for anything else: a negative or enormous number, a fraction, text, true."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= at_most else None


def count(record: Mapping[str, object], name: str) -> int:
    """The count of this name; ``ValueError`` if there is none."""
    found = whole(record.get(name))
    if found is None:
        raise ValueError(f"{name} is no count: {_short(record.get(name))}")
    return found


def number(value: object) -> float:
    """A finite number; ``ValueError`` for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    raise ValueError(f"{_short(value)} is no number")


def table(value: object) -> Mapping[str, object]:
    """``ValueError`` unless it is a JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{_short(value)} is no object")  # noqa: TRY004 (bad data, not a bad call)
    return value


def array(value: object) -> list[object]:
    """``ValueError`` unless it is a JSON array."""
    if not isinstance(value, list):
        raise ValueError(f"{_short(value)} is no array")  # noqa: TRY004 (as above)
    return value


def _short(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    if isinstance(value, int) and abs(value) > LARGEST:  # Python does not print more than 4,300 digits
        return "a number out of range"
    return "nothing" if value is None else ascii(value)[:40]
