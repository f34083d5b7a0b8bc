from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import workloads

from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.workload.workload import Workload


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


@pytest.mark.parametrize(
    ("rw", "beside"),
    [
        ("randwrite", "write_128k_qd16"),
        ("randread+randwrite", "write_128k_qd16"),
        ("randread", "read_128k_qd16"),
        ("randread", "rw50_128k_qd16"),
        ("randread", "randread_4k_qd1_beside_write_4k_qd1"),
        ("randread", "write_128k_s2_qd16"),
        ("randread", "write_128k_t2xqd16"),
        ("randread", "write"),
    ],
)
def test_only_reads_run_beside_only_writes(rw: str, beside: str) -> None:
    with pytest.raises(ValueError, match=r"write e\.g\. "):
        Workload(rw, "4k", 1, beside=beside)


def test_both_neighbours_count() -> None:
    both = Workload("randread", "4k", 1, beside="write_128k_qd16")
    assert (both.reads, both.writes, both.has_streams, both.is_usual) == (True, True, True, False)
    assert (both.outstanding(1), both.outstanding(4), both.largest_bytes) == (17, 68, 128 << 10)


#: One of everything that a search varies, beside what there was before.
EVERYTHING = Workload(
    "randrw", "64k", 16, 30, offset="4k", zipf=120, region_percent=10, sync=True, fsync=8, compressible_percent=50,
    dedupe_percent=25,
)  # fmt: skip


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        (EVERYTHING, "randrw30_64k_zipf120_off4k_reg10_sync_fsync8_comp50_dedup25_qd16"),
        (Workload("read", "128k", 4, gap="64KiB"), "read_128k_gap64k_qd4"),
        (Workload("randwrite", "4k", 8, zones="50/5:30/15:20/80"), "randwrite_4k_zoned50x5_30x15_20x80_qd8"),
        (
            Workload("randrw", "8k", 1, 70, zones="90/10:10/90", offset="4k", threads=4),
            "randrw70_8k_zoned90x10_10x90_off4k_t4xqd1",
        ),
        (Workload("write", "4k", 1, sync=True, streams_per_drive=2), "write_4k_sync_s2_qd1"),
        (Workload("randread", "4k", 8, region_percent=1, threads=4), "randread_4k_reg1_t4xqd8"),
        (Workload("randwrite", "4k", 8, fsync=1), "randwrite_4k_fsync1_qd8"),
        (Workload("randwrite", "4k", 128, threads=1, burst_s=5, idle_s=25), "randwrite_4k_on5s_idle25s_t1xqd128"),
        (Workload("randread", "4k", 1, beside="write_131072_qd16"), "randread_4k_qd1_beside_write_128k_qd16"),
        # As ever.
        (Workload("randrw", "4k", 8, 70, 50, "512"), "randrw70_4k_rnd50_off512_qd8"),
        (Workload("randread+randwrite", "4k", 8, streams_per_drive=2), "randread+randwrite_4k_s2_qd8"),
    ],
)
def test_every_dimension_is_in_the_id_and_read_back_from_it(workload: Workload, name: str) -> None:
    assert str(workload) == name
    assert Workload.parse(name) == workload
    assert from_plain(Workload, plain(workload)) == workload


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("region_percent", 50.5),
        ("region_percent", True),
        ("fsync", "1\nexec_prerun=reboot"),
        ("sync", 1),
        ("gap", 4096),
        ("zipf", "120"),
        ("qd_per_drive", "8 --exec_prerun=reboot"),
        ("bs", ["4k"]),
        ("read_percent", 30.0),
    ],
)
def test_a_record_with_another_type_in_it_is_none(name: str, value: object) -> None:
    with pytest.raises(ValueError, match="is no Workload"):
        from_plain(Workload, {**plain(EVERYTHING), name: value})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"rw": "read", "zipf": 120}, "zipf goes with a pattern all of whose addresses are random"),
        ({"rw": "randread", "zipf": 120, "random_percent": 50}, "zipf goes with a pattern all of whose"),
        ({"rw": "randread", "zipf": 100}, "but not 100"),
        ({"rw": "randread", "zipf": -1}, "zipf is 1 to 500"),
        ({"rw": "read", "zones": "50/5:50/95"}, "zones go with a pattern all of whose"),
        ({"rw": "randread", "zones": "50/5:50/95", "zipf": 120}, "without zipf"),
        ({"rw": "randread", "zones": "50/5:50/95", "random_percent": 50}, "zones go with a pattern all of whose"),
        ({"rw": "randread", "zones": "50/5:50/90"}, "add up to 100 %"),
        ({"rw": "randread", "zones": "60/5:50/95"}, "add up to 100 %"),
        ({"rw": "randread", "zones": "100/100"}, "add up to 100 %"),
        ({"rw": "randread", "zones": "0/5:100/95"}, "add up to 100 %"),
        ({"rw": "randread", "zones": "50/5:50/95\nexec_prerun=x"}, "add up to 100 %"),
        ({"rw": "randread", "gap": "4k"}, "a gap goes with sequential transfers"),
        ({"rw": "read", "gap": "4k\nexec_prerun=x"}, "is not a size"),
        ({"rw": "randread", "region_percent": 0}, "region_percent is 1 to 100"),
        ({"rw": "randread", "region_percent": 101}, "region_percent is 1 to 100"),
        ({"rw": "randread", "sync": True}, "go with writes"),
        ({"rw": "read", "fsync": 1}, "go with writes"),
        ({"rw": "randread", "dedupe_percent": 50}, "go with writes"),
        ({"rw": "write", "compressible_percent": 101}, "compressible_percent is 0 to 100"),
        ({"rw": "write", "fsync": -1}, "fsync is 0 to"),
        ({"rw": "write", "burst_s": 5}, "burst_s and idle_s are above 0, or both 0"),
        ({"rw": "write", "burst_s": -5, "idle_s": 5}, "burst_s and idle_s are above 0, or both 0"),
    ],
)
def test_dimensions_that_make_no_sense_are_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Workload(**{"bs": "4k", "qd_per_drive": 8, **more})


@pytest.mark.parametrize(
    "more",
    [{"zipf": 120}, {"zones": "50/5:50/95"}, {"region_percent": 99}, {"sync": True}, {"burst_s": 5, "idle_s": 5}],
)
def test_only_what_figures_are_published_of_is_usual(more: dict[str, Any]) -> None:
    assert not Workload("randwrite", "4k", 8, **more).is_usual
    assert Workload("randwrite", "4k", 8, offset="512").is_usual


def test_a_mix_of_sizes_may_be_aligned_on_sectors() -> None:
    mix = Workload("randrw", "512/50:4k/50", 8, read_percent=80, name="web", align="512")
    assert (str(mix), mix.align_bytes, mix.is_usual) == ("web_align512_qd8", 512, False)
    wrong_ones: tuple[dict[str, Any], ...] = ({"align": "1k"}, {"align": "512", "bs": "4k"})
    for wrong in wrong_ones:
        with pytest.raises(ValueError, match="divides the smallest"):
            replace(mix, **wrong)


@pytest.mark.parametrize(
    ("workload", "pattern"),
    [
        ("randwrite_4k_qd8", "random"),
        ("randrw70_8k_rnd50_off512_qd1", "random"),
        ("randread+randwrite_4k_qd8", "random"),
        ("randread_4k_qd1_beside_write_128k_qd16", "sequential"),
        ("rw70_128k_gap128k_qd8", "sequential"),
        ("randwrite_4k_zipf120_qd8", "random_zipf120"),
        ("randrw70_4k_zipf80_reg50_qd8", "random_zipf80_reg50"),
        ("randread+randwrite_4k_reg5_qd8", "random_reg5"),
        ("randrw40_4k_zoned50x5_50x95_qd8", "random_zoned50x5_50x95"),
        ("write_128k_reg10_qd8", "sequential_reg10"),
    ],
)
def test_pattern_is_what_a_drive_is_conditioned_for(workload: str, pattern: str) -> None:
    found = Workload.parse(workload)
    assert found.pattern == pattern
    assert found.is_skewed == ("_" in pattern)


@pytest.mark.parametrize("rest", ["_zipf120_qd8", "_zoned50x5_50x95_qd8", "_reg10_qd8", "_zipf120_reg10_qd1"])
def test_skewed_reads_have_the_pattern_of_uniform_ones(rest: str) -> None:
    reads = Workload.parse(f"randread_4k{rest}")
    assert reads.pattern == "random"
    assert not reads.is_skewed


@given(workloads, st.integers(1, 64))
def test_workloads_of_all_depths_share_a_pattern(workload: Workload, depth: int) -> None:
    assert workload.at(depth).pattern == workload.pattern
