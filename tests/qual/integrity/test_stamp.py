from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.qual.integrity.stamp import CELL_BYTES, GENERATIONS, HISTORIES, Stamp

stamps = st.builds(Stamp, st.integers(0, HISTORIES - 1), st.integers(0, GENERATIONS - 1), st.integers(0, (1 << 64) - 1))


@given(stamps)
def test_a_cell_is_read_back(written: Stamp) -> None:
    assert len(written.cell) == CELL_BYTES
    assert Stamp.of_cell(written.cell) == written


@given(stamps, stamps)
def test_two_writes_have_no_cell_in_common(one: Stamp, other: Stamp) -> None:
    assert (one == other) == (one.cell == other.cell)


@pytest.mark.parametrize("cell", [b"", bytes(16), b"SQ", b"XQ" + bytes(14), b"SQ" + bytes(15)])
def test_what_is_not_ours_says_nothing(cell: bytes) -> None:
    assert Stamp.of_cell(cell) is None


def test_fio_is_told_all_but_the_offset() -> None:
    assert stamp.fio_pattern(1, 2) == "0x5351000100000002%o"


@pytest.mark.parametrize(("history", "generation"), [(HISTORIES, 1), (1, GENERATIONS), (-1, 1), (1, -1)])
def test_numbers_without_room_are_refused(history: int, generation: int) -> None:
    with pytest.raises(ValueError, match=f"history {history}, generation {generation}"):
        stamp.fio_pattern(history, generation)


@given(stamps, st.integers(0, 4095))
def test_any_changed_byte_of_a_block_is_seen(written: Stamp, at: int) -> None:
    block = bytearray(stamp.filled(written, 4096))
    assert stamp.cells(bytes(block)) == {written.cell}
    block[at] ^= 1
    assert len(stamp.cells(bytes(block))) == 2
