from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.raid.geometry import read_for_read, read_for_write

#: A stripe of RAID 6 with six members: data on 0 to 3, P on 4, Q on 5.
PARITY, WIDTH = frozenset({4, 5}), 6
ALL = frozenset(range(WIDTH))


@pytest.mark.parametrize(
    ("missing", "read"),
    [
        (set(), {1, 2, 3}),  # three either way: a tie
        ({0}, {1, 2, 3}),  # its old data cannot be read
        ({4}, {1, 2, 3}),  # nor the old P
        ({4, 5}, {1, 2, 3}),  # read although no parity is left to be written
        ({0, 5}, {1, 2, 3}),
        ({1}, {0, 4, 5}),  # other data cannot be read
        ({1, 2}, {0, 4, 5}),
        ({0, 1}, ALL - {0, 1}),  # neither way is open
        ({1, 4}, ALL - {1, 4}),
    ],
)
def test_what_is_read_before_a_write_to_the_first_member(missing: set[int], read: set[int]) -> None:
    assert read_for_write(0, WIDTH, PARITY, missing) == read


def test_fewer_reads_win_with_all_members() -> None:
    assert read_for_write(0, 8, frozenset({7}), frozenset()) == {0, 7}
    assert read_for_write(0, 3, frozenset({2}), frozenset()) == {1}


def test_a_missing_block_is_computed_of_all_others() -> None:
    assert read_for_read(1, WIDTH, frozenset({1})) == ALL - {1}
    assert read_for_read(1, WIDTH, frozenset({0})) == {1}


@given(st.data(), st.integers(1, 2), st.integers(4, 12))
def test_what_is_read_is_enough_and_is_there(data: st.DataObject, parity_blocks: int, width: int) -> None:
    members = range(width)
    parity = frozenset(members[-parity_blocks:])
    target = data.draw(st.sampled_from(members[:-parity_blocks]))
    missing = data.draw(st.sets(st.sampled_from(members), max_size=parity_blocks))
    read = read_for_write(target, width, parity, missing)
    assert not read & missing
    reconstructed = read >= set(members) - parity - {target}
    modified = read >= parity | {target}
    computed = len(read) >= width - parity_blocks  # a code that survives the loss of as many blocks as it has parity
    assert reconstructed or modified or computed
