from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual import printable

#: Text as it comes out of a decoder: also bytes that are not UTF-8, and halves of characters.
RAW = st.text(st.characters(codec=None), max_size=40) | st.binary(max_size=40).map(
    lambda data: data.decode("utf-8", "surrogateescape")
)


@given(RAW, RAW)
def test_names_are_printable_and_equal_only_if_they_were(one: str, other: str) -> None:
    first, second = printable.name(one), printable.name(other)
    assert first.isprintable()
    assert (first == second) == (one == other)
    first.encode()


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("INTEL SSDSC2BB480G4", "INTEL SSDSC2BB480G4"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\nb\0", r"a\x0ab\x00"),
        ("\x9b2J", r"\u009b2J"),
        (b"\xff\x9b".decode("utf-8", "surrogateescape"), r"\xff\x9b"),
        ("\ud800", r"\ud800"),
        ("\u2028\u202egpj.exe\ufeff\u200d", r"\u2028\u202egpj.exe\ufeff\u200d"),
        ("\U000e0041", r"\U000e0041"),
        ("\\x1b", r"\x5cx1b"),
        ("<b>&amp;'\"</b>", "<b>&amp;'\"</b>"),
        ("é\u00a0日本", r"é\u00a0日本"),
    ],
)
def test_what_is_shown_of_a_name(raw: str, shown: str) -> None:
    assert printable.name(raw) == shown


def test_a_name_of_a_megabyte_is_short_and_still_its_own() -> None:
    first, second = printable.name("A" * 10**6), printable.name("A" * 10**6 + "B")
    assert first != second
    assert len(first) < printable.NAME_CHARACTERS
    assert printable.name(first) != first  # nobody can call himself so


@given(RAW, st.integers(1, 50))
def test_words_are_printable_and_bounded_and_stay_so(raw: str, most: int) -> None:
    shown = printable.line(raw, most)
    assert shown.isprintable()
    assert len(shown) <= most
    assert printable.line(shown, most) == shown


@given(st.text(st.characters(exclude_categories=("C", "Z")), max_size=40))
def test_words_that_can_be_printed_are_left_alone(raw: str) -> None:
    assert printable.line(raw) == printable.lines(raw) == raw
    assert not any(unicodedata.category(each).startswith("C") for each in raw)


@given(st.lists(RAW, max_size=5).map("\n".join))
def test_a_message_keeps_its_lines_and_no_others(raw: str) -> None:
    shown = printable.lines(raw)
    assert shown.count("\n") == raw.count("\n")
    assert shown.replace("\n", "").isprintable()
    assert len(printable.lines("x\n" * 10**5)) < 1000


@given(st.dictionaries(RAW, RAW | st.lists(RAW, max_size=3), max_size=3))
def test_json_says_the_same_in_printable_characters(record: dict[str, object]) -> None:
    text = printable.json_text(json.dumps(record, ensure_ascii=False))
    assert text.isprintable()
    assert text.splitlines() in ([text], [])
    assert json.loads(text) == record
    text.encode()
