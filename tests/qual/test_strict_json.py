from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.strict_json import LARGEST, LARGEST_FIGURE, count, number, read_json, whole

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**100), 10**100)
    | st.floats(-LARGEST_FIGURE, LARGEST_FIGURE)
    | st.text(),
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
    with pytest.raises(ValueError, match="number of JSON"):
        read_json(text)


@pytest.mark.parametrize("text", ["1" + "0" * 400, "9" * 5000, "-1e308", "1e999", "1" * 101 + ".5", "2E+100"])
def test_a_number_beyond_all_figures_is_unknown(text: str) -> None:
    assert read_json(f'{{"a": {text}, "b": [1, 1e-300]}}') == {"a": None, "b": [1, 1e-300]}


@pytest.mark.parametrize("text", ["", "{", b"\xff", b"{}\0", "'a'", "[1,]", "\ufeff{}"])
def test_other_text_is_an_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


@pytest.mark.parametrize("value", [-1, LARGEST + 1, 1.0, "1", True, None, [1]])
def test_what_is_no_count(value: object) -> None:
    assert whole(value) is None
    with pytest.raises(ValueError, match="n is no"):
        count({"n": value}, "n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "1", True, None])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(ValueError, match="is no number"):
        number(value)
