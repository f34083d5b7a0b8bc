from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.measured.environment import DrivePlacement, format_list, parse_list


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_is_read_back(numbers: set[int]) -> None:
    assert parse_list(format_list(numbers)) == sorted(numbers)


def test_the_kernel_s_format() -> None:
    assert format_list([16, 0, 1, 2, 7]) == "0-2,7,16"
    assert parse_list("0-2,7\n") == [0, 1, 2, 7]
    assert parse_list("") == []
    with pytest.raises(ValueError, match="x"):
        parse_list("0-x")


def test_cpus_of_a_drive() -> None:
    assert DrivePlacement("none", 64, 0, "0-1,8").cpus == {0, 1, 8}
    assert DrivePlacement("none", 64, None, "").cpus == frozenset()
