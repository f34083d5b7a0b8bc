"""Real answers, damaged: what a broken tool, a dying machine or somebody malicious would send instead.

``SSDQUAL_FUZZ=20000`` in the environment makes that many examples of each, instead of a few.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("SSDQUAL_FUZZ", "0"))


def fuzzed(few: int = 25) -> settings:
    """Settings of a fuzz test: ``few`` examples, always the same ones, or as many new ones as the environment says."""
    return settings(
        max_examples=EXAMPLES or few,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


#: Bytes that mean something to somebody.
SPLINTERS = (
    *(
        b"\0",
        b"\n",
        b"\r",
        b"\x1b[2J",
        b"\x7f",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\xe2\x80\xae",
    ),
    *(b"{", b"}", b"[", b"]", b'"', b"\\", b"'", b":", b",", b" ", b"=", b"-", b"==end\n", b"\0end\0"),
    *(
        b"9" * 30,
        b"-1",
        b"1e999",
        b"NaN",
        b"Infinity",
        b"null",
        b"true",
        b"0x",
        b"\xd9\xa3",
        b"[" * 3000,
        b'{"a":' * 3000,
    ),
)

#: Values of every wrong type and size.
ODD: tuple[object, ...] = (
    *(None, True, False, 0, -1, 2**63, 2**64, 10**400, -(10**400), 0.5, -0.0, 1e308, float("inf"), float("nan")),
    *("", "-1", "9" * 30, "9" * 5000, "nan", "\0", "\x1b[31m\n", "\u2028\u202e\ufeff", "\ud800", "../../etc/shadow"),
    *([], {}, [[]], [{}], {"": {}}, ["x"], {"jobs": []}),
)


@st.composite
def bytes_like(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """A sample with a few of its bytes flipped, cut out, doubled or replaced, or cut short."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 4))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        end = min(end, start + draw(st.sampled_from((0, 1, 8, 200, 10**9))))
        match draw(st.sampled_from(("flip", "delete", "double", "insert", "cut"))):
            case "flip" if start < len(data):
                data = data[:start] + bytes([data[start] ^ (1 << draw(st.integers(0, 7)))]) + data[start + 1 :]
            case "delete":
                data = data[:start] + data[end:]
            case "double":
                data = data[:end] + data[start:]
            case "insert":
                data = data[:start] + draw(st.sampled_from(SPLINTERS)) + data[end:]
            case _:
                data = data[:start]
    return data


def text_like(samples: Sequence[str]) -> st.SearchStrategy[str]:
    """The same, as the rig decodes it."""
    raw = bytes_like([each.encode() for each in samples])
    return raw.map(lambda data: data.decode("utf-8", "backslashreplace"))


@st.composite
def plain_like(draw: st.DrawFn, samples: Sequence[object]) -> object:
    """Plain data with a few values replaced by odd ones, left out, or put in each other's places."""
    found = json.loads(json.dumps(draw(st.sampled_from(samples))))
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(_places(found) or [([found], 0)]))
        match draw(st.sampled_from(("replace", "delete", "swap", "nest"))):
            case "delete":
                del holder[key]
            case "swap":
                other, there = draw(st.sampled_from(_places(found) or [(holder, key)]))
                holder[key] = json.loads(json.dumps(other[there]))
            case "nest":
                holder[key] = [holder[key]] if draw(st.booleans()) else {"": holder[key]}
            case _:
                holder[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return found


def json_like(samples: Sequence[object]) -> st.SearchStrategy[str]:
    """Such data as JSON text, and text that is hardly JSON any more."""
    spoiled = plain_like(samples).map(_dumped)
    return spoiled | text_like([json.dumps(each) for each in samples])


def _dumped(value: object) -> str:
    try:
        return json.dumps(value)
    except ValueError:  # an integer of more than 4,300 digits
        return "0"


def _places(value: object) -> list[tuple[Any, Any]]:
    """Of everything inside of ``value``, where it is."""
    items: Iterable[tuple[Any, object]] = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    found = []
    for key, each in items:
        found.append((value, key))
        found += _places(each)
    return found


def survives(parse: Callable[[], object], *documented: type[Exception]) -> object:
    """What a parser makes of it, or None if it says in a sentence why not; any other error leaves."""
    try:
        return parse()
    except documented as error:
        if not str(error).strip():
            raise AssertionError(f"{type(error).__name__} without a word") from error
        return None
