from __future__ import annotations

from itertools import product

from pytest_ssdqual.qual.matrix import INTEL_RAID


def test_every_mix_of_the_paper_at_every_depth_once() -> None:
    expected = {(reads, depth) for reads, depth in product((0.0, 0.7, 0.9, 1.0), (1, 2, 4, 8))}
    assert {(each.read_fraction, each.qd_per_drive) for each in INTEL_RAID} == expected
    assert len(INTEL_RAID) == len(expected) == len({str(each) for each in INTEL_RAID})


def test_all_of_it_is_random_and_of_4_kib() -> None:
    assert all(each.is_random and each.block_bytes == 4096 for each in INTEL_RAID)
