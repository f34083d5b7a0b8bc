from __future__ import annotations

import pytest
from hypothesis import given
from strategies import workloads

from pytest_ssdqual.qual.workload import Workload


def test_one_spelling_of_the_size() -> None:
    assert Workload("randread", "4096", 8) == Workload("randread", "4KiB", 8)
    assert str(Workload("randrw", "4k", 8, 70)) == "randrw70_4k_qd8"


@given(workloads)
def test_the_id_is_a_plain_word(workload: Workload) -> None:
    assert all(char.isalnum() or char == "_" for char in str(workload))
    assert 0 <= workload.read_fraction <= 1
    assert workload.at(workload.qd_per_drive) == workload


@pytest.mark.parametrize(
    ("rw", "bs", "depth", "mix"),
    [
        ("randtrim", "4k", 8, None),
        ("randread", "4k\nexec_prerun=x", 8, None),
        ("randread", "4k", 0, None),
        ("randrw", "4k", 8, None),
        ("randrw", "4k", 8, 100),
        ("randread", "4k", 8, 70),
    ],
)
def test_what_makes_no_sense_is_refused(rw: str, bs: str, depth: int, mix: int | None) -> None:
    with pytest.raises(ValueError, match=r"."):
        Workload(rw, bs, depth, mix)
