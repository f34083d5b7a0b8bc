from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.documents.ci_commands import COMMANDS, IGNORED, TEXTS, commands_in

from pytest_ssdqual.qual import safe_text

#: Text as it comes out of a decoder: also bytes that are not UTF-8, and halves of characters.
RAW = st.text(st.characters(codec=None), max_size=40) | st.binary(max_size=40).map(
    lambda data: data.decode("utf-8", "surrogateescape")
)


@given(RAW | TEXTS, RAW | TEXTS)
def test_names_are_printable_and_equal_only_if_they_were(one: str, other: str) -> None:
    first, second = safe_text.name(one), safe_text.name(other)
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
    assert safe_text.name(raw) == shown


def test_a_name_of_a_megabyte_is_short_and_still_its_own() -> None:
    first, second = safe_text.name("A" * 10**6), safe_text.name("A" * 10**6 + "B")
    assert first != second
    assert len(first) < safe_text.NAME_CHARACTERS
    assert safe_text.name(first) != first  # nobody can call himself so


@given(RAW | TEXTS, st.integers(1, 50))
def test_words_are_printable_and_bounded_and_stay_so(raw: str, most: int) -> None:
    shown = safe_text.line(raw, most)
    assert shown.isprintable()
    assert len(shown) <= most
    assert safe_text.line(shown, most) == shown


@given(st.text(st.characters(exclude_categories=("C", "Z")), max_size=40))
def test_words_that_can_be_printed_are_left_alone(raw: str) -> None:
    assume(not IGNORED.search(" ".join(unicodedata.name(each, "") for each in raw)))
    assume("##" not in raw and not re.match(r"::|([-+~^])\1\1$", raw))
    assert safe_text.line(raw) == safe_text.lines(raw) == raw
    assert not any(unicodedata.category(each).startswith("C") for each in raw)


@given(st.lists(RAW, max_size=5).map("\n".join))
def test_a_message_keeps_its_lines_and_no_others(raw: str) -> None:
    shown = safe_text.lines(raw)
    assert shown.count("\n") == raw.count("\n")
    assert shown.replace("\n", "").isprintable()
    assert len(safe_text.lines("x\n" * 10**5)) < 1000


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_finds_all_commands(command: str) -> None:
    assert commands_in(command)


@given(TEXTS, st.sampled_from(["", "  ", "ssdqual: ", "drive ", "(", "| ", "- "]))
def test_name_is_never_a_command(raw: str, before: str) -> None:
    shown = safe_text.name(raw)
    assert commands_in(f"{before}{shown} and more") == commands_in(f"{before}{shown}") == []
    assert [each for word in shown.split(" ") for each in commands_in(word)] == []


@given(TEXTS, st.integers(1, 50))
def test_line_is_never_a_command(raw: str, most: int) -> None:
    assert commands_in(safe_text.line(raw, most)) == commands_in(safe_text.lines(raw, most)) == []


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("##vso[task.complete result=Succeeded;]", r"\x23#vso[task.complete result=Succeeded;]"),
        ("::stop-commands::x", r"\x3a:stop-commands::x"),
        ("a ::b", r"a \x3a:b"),
        ("SN\ufe0f", r"SN\ufe0f"),
        ("SN#1", "SN#1"),
        ("fe80::1", "fe80::1"),
        ("-----", "-----"),
    ],
)
def test_name_escapes_only_the_first_character(raw: str, shown: str) -> None:
    assert safe_text.name(raw) == shown


def test_line_keeps_an_address() -> None:
    assert safe_text.line("2 drives on ::1") == "2 drives on ::1"


@given(st.dictionaries(RAW | TEXTS, RAW | TEXTS | st.lists(TEXTS, max_size=3), max_size=3))
def test_json_says_the_same_in_printable_characters(record: dict[str, object]) -> None:
    text = safe_text.json_text(json.dumps(record, ensure_ascii=False))
    indented = safe_text.json_text(json.dumps(record, ensure_ascii=False, indent=2))
    assert commands_in(text) == commands_in(indented) == []
    assert text.isprintable()
    assert text.splitlines() in ([text], [])
    assert json.loads(text) == record
    text.encode()
