from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import HighEnd, LowEnd, from_plain, plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule

ARRAY = Geometry.parse("raid5x4")


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inside:
    name: str
    share: float


@dataclass(frozen=True)
class Outside:
    number: int
    flag: bool
    inside: Inside
    more: tuple[Inside, ...] = ()
    maybe: float | None = None
    colour: Colour = Colour.RED
    geometry: Geometry = ARRAY
    low: LowEnd = -math.inf
    high: HighEnd = math.inf
    path: Path = Path("/x")
    facts: Mapping[str, int | float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.number == 13:
            raise ValueError("13 is unlucky")


PLAIN = {
    "number": 1,
    "flag": True,
    "inside": {"name": "a", "share": 0.5},
    "more": [{"name": "b", "share": 2}],
    "maybe": None,
    "colour": "red",
    "geometry": "raid6x6-1failed",
    "low": None,
    "high": 7.5,
    "path": "/dev/null",
    "facts": {"x": 1, "y": 0.5, "z": None},
}

numbers = st.floats(-(2.0**64), 2.0**64)
insides = st.builds(Inside, st.text(), numbers)
outsides = st.builds(
    Outside,
    st.integers(20, 2**64),
    st.booleans(),
    insides,
    st.lists(insides, max_size=3).map(tuple),
    st.none() | numbers,
    st.just(Colour.RED),
    st.sampled_from([Geometry.parse(name) for name in ("raid0x3", "raid6x6-2rebuilding", "drivex4")]),
    st.just(-math.inf) | numbers,
    st.just(math.inf) | numbers,
    st.just(Path("/dev/sdb")),
    st.dictionaries(st.text(), st.none() | st.integers(-(2**64), 2**64) | numbers, max_size=3),
)


@given(outsides)
def test_a_record_is_read_back_as_it_was(record: Outside) -> None:
    assert from_plain(Outside, json.loads(json.dumps(plain(record), allow_nan=False))) == record


def test_the_record_of_a_document_is_that_document() -> None:
    record = from_plain(Outside, PLAIN)
    assert (record.low, record.high, record.colour, record.path) == (-math.inf, 7.5, Colour.RED, Path("/dev/null"))
    assert isinstance(record.facts["x"], int)
    assert plain(record) == {**PLAIN, "more": [{"name": "b", "share": 2.0}]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"number": "1"}, "number: should be a valid integer, not '1'"),
        ({"number": True}, "number: should be a valid integer, not True"),
        ({"number": 10**400}, "number: should be less than or equal to 18446744073709551616"),
        ({"number": 13}, "13 is unlucky"),
        ({"flag": 1}, "flag: should be a valid boolean, not 1"),
        ({"inside": None}, "inside: should be an object"),
        ({"inside": {"name": "a"}}, "inside.share: is missing"),
        ({"inside": {"name": "a", "share": 1, "size": 2}}, "inside.size: unknown key"),
        ({"more": [{"name": "b", "share": 2}, "c"]}, "more[1]: should be an object, not 'c'"),
        ({"colour": "blue"}, "colour: should be 'red', not 'blue'"),
        ({"geometry": "raid7x3"}, "geometry: 'raid7x3' is not"),
        ({"maybe": 1e300}, "maybe: should be less than or equal to 1"),
        ({"high": "1"}, "high: should be a valid number, not '1'"),
        ({"facts": {"x": "1"}}, "facts.x"),
        ({"shape": 1}, "shape: unknown key"),
    ],
)
def test_a_damaged_record_is_refused_with_its_field(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^this is no Outside: ") as refused:
        from_plain(Outside, {**PLAIN, **change})
    assert str(refused.value).startswith(f"this is no Outside: {sentence}")


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_every_field_must_be_there_even_with_a_default(name: str) -> None:
    with pytest.raises(ValueError, match=rf"this is no Outside: {name}: is missing"):
        from_plain(Outside, {key: value for key, value in PLAIN.items() if key != name})


@pytest.mark.parametrize("other", [None, [], 7, "x", {"a": "\ud800"}])
def test_anything_else_is_refused(other: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_plain(Outside, other)


def test_writing_loads_no_pydantic() -> None:
    code = (
        "import sys; from pytest_ssdqual.qual.records import plain;"
        "from pytest_ssdqual.qual.measured.environment import Traffic;"
        "plain(Traffic(1, 2, 3, 4)); print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(("name", "value"), [("window", 2), ("window", -5), ("window", 1_001)])
def test_a_fields_own_limits_hold_in_records(name: str, value: int) -> None:
    record = plain(SteadyRule())
    assert from_plain(SteadyRule, record) == SteadyRule()
    with pytest.raises(ValueError, match=name):
        from_plain(SteadyRule, {**record, name: value})
