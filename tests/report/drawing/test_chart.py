from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.drawing.chart import MOST_ROWS, condensed, condensing, printable, sentence, slug


@given(st.lists(st.text(), min_size=1))
def test_keys_are_ids_that_need_no_quoting(parts: list[str]) -> None:
    assert re.fullmatch(r"[a-z0-9]*(-[a-z0-9]+)*", slug(*parts), re.ASCII)


def test_a_key_tells_what_it_is_of() -> None:
    assert slug("widths", "raid5", "random 70 % reads 4k") == "widths-raid5-random-70-reads-4k"


@given(st.text())
def test_labels_are_printable_short_and_no_instruction(text: str) -> None:
    found = printable(text)
    assert found.isprintable()
    assert len(found) <= 61
    # matplotlib 3.9 leaves such a label out of a legend.
    assert not found.startswith("_")


@pytest.mark.parametrize(("text", "expected"), [("p99 of x: FAIL", "P99 of x: FAIL."), ("IOPS.", "IOPS."), ("", "")])
def test_sentences(text: str, expected: str) -> None:
    assert sentence(text) == expected


def test_a_table_is_short_and_says_so() -> None:
    points = [(float(x), float(x == 777)) for x in range(1000)]
    assert (777.0, 1.0) in condensed(points)
    assert len(condensed(points)) <= MOST_ROWS
    assert sum(len(condensed(points, 8)) for _ in range(8)) <= MOST_ROWS
    assert condensing(MOST_ROWS) == ""
    assert "1,000 points" in condensing(1000)
