from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.documents import golden

from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.view.tables import State, Table, text_table

HEAD = ("", "IOPS", "published", "ours")
ROWS = (("randread_4k_qd8", "41.3k", "", "1.06 ×"), ("randwrite_4k_qd32", "812", "", ""))


def drawn(width: int, title: str = "raid0x4") -> list[str]:
    return [line.text for line in text_table(Table(HEAD, ROWS, title), width)]


def test_beside_their_names_and_without_empty_columns() -> None:
    golden.same("tables.txt", drawn(80))


def test_a_long_title_has_a_line_of_its_own() -> None:
    golden.same("tables.txt", drawn(80, "a title that is longer than the names"))


def test_below_their_names_where_there_is_no_room_beside_them() -> None:
    golden.same("tables.txt", drawn(24))


def test_a_name_that_is_too_long_by_itself_is_wrapped() -> None:
    name = "drivex4 randwrite_8k_off512_qd1…randwrite_8k_off512_qd32 (randwrite_8k_off512_qd1to32)"
    rows = ((name, *["1"] * (len(HEAD) - 1)),)
    lines = [line.text for line in text_table(Table(HEAD, rows, "QD gain"), 40)]
    assert max(map(len, lines)) <= 40
    assert "".join("".join(lines[2:-1]).split()) == name.replace(" ", "")


def test_in_bands_where_they_are_too_long_for_that_too() -> None:
    many = (("4k", *(f"{number}00 MB/s" for number in range(1, 8))),)
    lines = [line.text for line in text_table(Table(("", *"abcdefg"), many, "throughput"), 40)]
    golden.same("tables.txt", lines)


def test_colours_are_the_rows() -> None:
    failed, passed = ((name, State("1", look)) for name, look in (("a", Finding.FAIL), ("b", Finding.PASS)))
    lines = list(text_table(Table(("", "n"), (failed, passed), "t"), 80))
    assert [line.markup for line in lines] == [("bold",), ("red",), ()]


@given(
    st.integers(1, 9).flatmap(
        lambda count: st.lists(st.lists(st.text("ab ", max_size=9), min_size=count, max_size=count), min_size=1)
    ),
    st.integers(30, 100),
)
def test_no_line_is_too_long_and_no_text_is_lost(rows: list[list[str]], width: int) -> None:
    head = ("", *(f"h{number}" for number in range(1, len(rows[0]))))
    lines = [line.text for line in text_table(Table(head, tuple(map(tuple, rows)), "title"), width)]
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for row in rows:
        assert all(word in words for cell in row for word in cell.split())
