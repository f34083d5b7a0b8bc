"""Where the law of a level holds, against counts of the I/Os that md makes of transfers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel, expected_iops
from pytest_ssdqual.qual.raid.law import Striping, growth_objection, objection
from pytest_ssdqual.qual.units import format_size, parse_size
from pytest_ssdqual.qual.workload.workload import Workload

READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)


def why(array: str, workload: Workload, chunk: str = "64k", layout: str = "n2") -> str:
    return objection(Geometry.parse(array), workload, Striping(parse_size(chunk), layout))


@pytest.mark.parametrize(
    "array", ["drivex1", "raid0x4", "raid1x2", "raid5x4", "raid6x4", "raid10x4", "raid5x4-1failed"]
)
def test_small_random_io_has_a_law(array: str) -> None:
    for workload in (READ, WRITE, Workload("randrw", "4k", 1, 70)):
        assert not why(array, workload)


@pytest.mark.parametrize(
    ("array", "workload", "reason"),
    [
        ("raid5x4-1rebuilding", READ, "rebuilt"),
        ("raid5x4", Workload("read", "128k", 8), "sequential"),
        ("raid0x4", Workload("randread", "4k", 8, random_percent=75), "sequential"),
        ("raid5x4", Workload("randread", "128k", 8), "chunks of 128 KiB or more"),
        ("raid10x4", Workload("randwrite", "128k", 8), "split at chunks"),
        ("raid0x4", Workload("randread", "48k", 8), "split at chunks"),
        ("raid5x4", Workload("randwrite", "16k", 8), "page by page"),
        ("raid5x4", Workload("randwrite", "512", 8), "page by page"),
        ("raid6x6", Workload("randrw", "8k", 8, 70), "page by page"),
        ("raid5x4-1failed", Workload("randread", "8k", 8), "page by page"),
        ("raid0x4", Workload("randwrite", "4k", 8, offset="512"), "aligned"),
        ("raid0x4", Workload("randread", "4k/60:8k/40", 8, name="mixture"), "of one size"),
        ("raid0x4", Workload("randread", "4k", 8, zipf=120), "evenly random"),
        ("raid0x4", Workload("randread+randwrite", "4k", 8), "evenly random"),
    ],
)
def test_where_no_law_holds_the_reason_is_stated(array: str, workload: Workload, reason: str) -> None:
    assert reason in why(array, workload)


@pytest.mark.parametrize(
    ("array", "size", "chunk", "layout"),
    [
        ("raid1x4", "1m", "64k", "n2"),  # mirrors have no chunks
        ("raid10x2", "1m", "64k", "n2"),  # nor has a pair
        ("raid5x4", "128k", "128k", "n2"),
        ("raid5x4-1failed", "4k", "64k", "n2"),
        ("raid10x4", "64k", "64k", "f2"),
        ("drivex1", "1m", "64k", "n2"),
    ],
)
def test_reads_that_md_does_not_split_have_a_law(array: str, size: str, chunk: str, layout: str) -> None:
    assert not why(array, Workload("randread", size, 8), chunk, layout)


@pytest.mark.parametrize("layout", ["f2", "o2"])
def test_far_and_offset_copies_have_no_law_when_degraded(layout: str) -> None:
    assert not why("raid10x4", READ, layout=layout)
    assert "use n2" in why("raid10x4-1failed", READ, layout=layout)
    assert not why("raid10x4-1failed", READ)
    assert not why("raid5x4-1failed", READ, layout=layout)
    assert "split" in why("raid10x2", Workload("randread", "128k", 8), layout=layout)


@given(st.integers(1, 600), st.sampled_from(["4k", "64k", "256k"]))
def test_only_transfers_that_never_cross_a_chunk_have_a_law(blocks: int, chunk: str) -> None:
    """By counting: transfers are aligned on their own size."""
    size, chunk_bytes = 512 * blocks, parse_size(chunk)
    begins = range(0, chunk_bytes * size // 512 + 1, size) if size < chunk_bytes else (0,)
    crosses = any(begin // chunk_bytes != (begin + size - 1) // chunk_bytes for begin in begins)
    workload = Workload("randread", format_size(size), 8)
    assert ("split" in why("raid0x4", workload, chunk)) == crosses


def grows(arrays: str, workload: Workload, chunk: str = "64k", layout: str = "n2") -> bool:
    geometries = [Geometry.parse(each) for each in arrays.split()]
    return not growth_objection(geometries, workload, Striping(parse_size(chunk), layout))


@pytest.mark.parametrize(
    ("arrays", "size", "chunk", "has_law"),
    [
        ("raid10x2 raid10x4", "128k", "64k", False),
        ("raid10x2 raid10x4", "64k", "64k", True),
        ("raid10x2 raid10x4", "128k", "128k", True),
        ("raid10x4 raid10x6", "128k", "64k", True),
        ("raid10x2", "128k", "64k", True),
        ("raid0x2 raid0x4", "128k", "64k", True),
        ("raid0x2 raid0x4", "256k", "64k", False),
        ("raid1x2 raid1x4", "1m", "64k", True),
        ("raid5x3 raid5x4", "128k", "64k", False),
        ("raid5x3 raid5x8", "64k", "64k", False),
        ("raid5x3 raid5x4 raid5x5", "8k", "64k", False),
        ("raid5x3 raid5x5 raid5x8", "64k", "64k", True),
        ("raid5x3 raid5x8", "4k", "64k", True),
        ("raid5x8", "128k", "64k", False),
        ("raid5x8", "128k", "256k", True),
        ("drivex2 drivex4", "1m", "64k", True),
    ],
)
def test_growth_has_a_law_where_all_widths_split_alike(arrays: str, size: str, chunk: str, has_law: bool) -> None:
    assert grows(arrays, Workload("randwrite", size, 8), chunk) is has_law


@pytest.mark.parametrize(
    ("workload", "of_parity", "of_stripes"),
    [
        (Workload("randread", "128k", 8), True, True),
        (Workload("randread", "256k", 8), False, False),
        (Workload("write", "1m", 8), False, False),
        (Workload("write", "128k", 8), False, True),
        (Workload("randwrite", "512", 8), False, True),
        (Workload("randwrite", "4k", 8, offset="512"), False, True),
        (Workload("randrw", "4k/50:128k/50", 8, 70, name="mix"), False, True),
        (Workload("randrw", "4k/50:8k/50", 8, 70, name="mix"), True, True),
        (Workload("randread", "4k/97:512k/3", 8, name="mix"), False, False),
        (Workload("randread", "4k/99:512k/1", 8, name="mix"), True, True),
        (Workload("randwrite", "4k", 8, region_percent=10), False, True),
        (Workload("randwrite", "4k", 8, zipf=120), False, False),
        (Workload("randwrite", "4k", 8, zones="50/5:50/95"), False, False),
        (Workload("randwrite", "4k", 8, fsync=32), False, False),
    ],
)
def test_growth_of_other_workloads(workload: Workload, of_parity: bool, of_stripes: bool) -> None:
    assert grows("raid5x3 raid5x5 raid5x8", workload) is of_parity
    assert grows("raid0x3 raid0x8", workload) is of_stripes


def test_of_writes_wider_than_a_chunk_the_law_would_be_wrong() -> None:
    """Counted stripe by stripe for 128 KiB in chunks of 64 KiB, as md decides for each of them."""

    def drives_worth(width: int) -> float:
        data, ios = width - 1, []
        for first in range(0, 2 * data, 2):  # chunks at which such a write may begin
            of_row = [chunk // data for chunk in (first, first + 1)]
            written = [of_row.count(row) for row in dict.fromkeys(of_row)]
            ios.append(sum(min(2 * each + 2, data + 1) for each in written))
        return width * len(ios) / sum(ios)

    assert drives_worth(4) / drives_worth(3) == pytest.approx(0.75)
    assert drives_worth(8) / drives_worth(3) == pytest.approx(1.27, abs=0.01)
    law = [expected_iops(Geometry(RaidLevel.RAID5, width), 0.0, 1, 1) for width in (3, 4, 8)]
    assert [each / law[0] for each in law] == pytest.approx([1, 1, 2])
