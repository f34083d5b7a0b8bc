from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID, depths, mixes, random, unaligned

READ = Workload("randread", "4k", 1)


def test_every_mix_of_the_paper_at_every_depth_once() -> None:
    expected = {(reads, depth) for reads, depth in product((0.0, 0.7, 0.9, 1.0), (1, 2, 4, 8))}
    assert {(each.read_fraction, each.qd_per_drive) for each in INTEL_RAID} == expected
    assert len(INTEL_RAID) == len(expected) == len({str(each) for each in INTEL_RAID})


def test_all_of_it_is_random_and_of_4_kib() -> None:
    assert all(each.is_random and each.block_bytes == 4096 for each in INTEL_RAID)


@given(st.integers(0, 100), st.sampled_from(["512", "8k", "1m"]), st.integers(1, 64), st.none() | st.integers(1, 8))
def test_any_share_of_reads_is_random_io(reads: int, bs: str, depth: int, threads: int | None) -> None:
    found = random(reads, bs, depth, threads=threads)
    assert found.is_random
    assert (found.read_fraction, found.bs, found.qd_per_drive, found.threads) == (reads / 100, bs, depth, threads)


@given(strategies.workloads | strategies.unusual_workloads)
def test_depth_series_differs_in_depth_alone(workload: Workload) -> None:
    series = depths(workload, (1, 4, 16))
    assert [each.qd_per_drive for each in series.workloads] == [1, 4, 16]
    assert {replace(each, qd_per_drive=7) for each in series.workloads} == {replace(workload, qd_per_drive=7)}
    assert str(series) == f"{workload.at(1)}to16"


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        (random(0, "8k", 8), "mixes_8k_qd8"),
        (random(70, "4k", 32, threads=2), "mixes_4k_t2xqd32"),
        (random(100, "8k", 1, offset="512"), "mixes_8k_off512_qd1"),
    ],
    ids=str,
)
def test_mixes_are_named_after_what_they_share(workload: Workload, name: str) -> None:
    series = mixes(workload, (100, 50, 0))
    assert str(series) == name
    assert [each.read_fraction for each in series.workloads] == [1.0, 0.5, 0.0]
    shared = {(each.bs, each.qd_per_drive, each.offset, each.threads) for each in series.workloads}
    assert shared == {(workload.bs, workload.qd_per_drive, workload.offset, workload.threads)}


def test_unaligned_pair_differs_in_the_offset_alone() -> None:
    series = unaligned(READ, "512")
    aligned, shifted = series.workloads
    assert str(series) == "randread_4k_qd1_vs_off512"
    assert aligned == READ
    assert (shifted.offset_bytes, replace(shifted, offset="0")) == (512, READ)
