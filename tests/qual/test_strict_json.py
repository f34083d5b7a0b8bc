from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.strict_json import LARGEST, conforming, count, number, read_json, whole

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_is_read_as_it_was_written(value: object) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("text", ["[" * 5000, '{"a":' * 5000 + "1" + "}" * 5000, "[" * 5000 + "]" * 5000])
def test_nesting_is_an_error_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(text)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "[-Infinity]", '{"a": NaN}'])
def test_what_is_no_number_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match="is no number of JSON"):
        read_json(text)


@pytest.mark.parametrize("text", ["", "{", b"\xff", b"{}\0", "9" * 5000, "'a'", "[1,]", "\ufeff{}"])
def test_other_text_is_an_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


@pytest.mark.parametrize("value", [-1, LARGEST + 1, 1.0, "1", True, None, [1]])
def test_what_is_no_count(value: object) -> None:
    assert whole(value) is None
    with pytest.raises(ValueError, match="n is no count"):
        count({"n": value}, "n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "1", True, None])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="is no number"):
        number(value)


@dataclass(frozen=True)
class Inner:
    name: str
    share: float


@dataclass(frozen=True)
class Outer:
    n: int
    flag: bool
    inner: Inner
    more: tuple[Inner, ...] = ()
    maybe: float | None = None


GOOD = Outer(1, True, Inner("a", 1))


@pytest.mark.parametrize("good", [GOOD, Outer(1, False, Inner("", 0.5), (Inner("b", 2.0),), 3)])
def test_a_value_of_the_right_types_is_itself(good: Outer) -> None:
    assert conforming(good) is good


@pytest.mark.parametrize(
    "bad",
    [
        Outer("1", True, Inner("a", 1)),  # type: ignore[arg-type]
        Outer(True, True, Inner("a", 1)),
        Outer(1, 1, Inner("a", 1)),  # type: ignore[arg-type]
        Outer(1, True, {"name": "a", "share": 1}),  # type: ignore[arg-type]
        Outer(1, True, Inner(None, 1)),  # type: ignore[arg-type]
        Outer(1, True, Inner("a", float("nan"))),
        Outer(1, True, Inner("a", 10**400)),
        Outer(1, True, Inner("a", 1), [Inner("a", 1)]),  # type: ignore[arg-type]
        Outer(1, True, Inner("a", 1), ("a",)),  # type: ignore[arg-type]
        Outer(1, True, Inner("a", 1), (), "x"),  # type: ignore[arg-type]
    ],
)
def test_one_of_wrong_types_is_none(bad: Outer) -> None:
    with pytest.raises(ValueError, match="this is no Outer"):
        conforming(bad)
