from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import geometries

from pytest_ssdqual.qual.geometry import (
    FACTS,
    Geometry,
    Level,
    SmallWrite,
    costs,
    depth_share,
    effective_drives,
    expected_iops,
    physical_ios,
)


@pytest.mark.parametrize("text", ["drivex2", "raid0x1", "raid1x1", "raid5x2", "raid6x3", "raid10x2", "raid10x5"])
def test_impossible_widths_are_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"needs .* drive"):
        Geometry.parse(text)


def test_the_refusal_says_what_is_possible() -> None:
    with pytest.raises(ValueError, match="raid10 needs an even number of drives, at least 4, not 5"):
        Geometry(Level.RAID10, 5)
    assert FACTS[Level.RAID5].describe_widths() == "3 or more drives"
    assert FACTS[Level.DRIVE].describe_widths() == "exactly 1 drive"


@pytest.mark.parametrize("text", ["raid5", "x4", "raid7x4", "raid5x", "raid5x-4", "raid5x४", "raid5x4 "])
def test_other_texts_are_no_arrays(text: str) -> None:
    with pytest.raises(ValueError, match="is not an array"):
        Geometry.parse(text)


@given(geometries)
def test_the_id_is_read_back(geometry: Geometry) -> None:
    assert Geometry.parse(str(geometry)) == geometry


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("drivex1", 0, 1),
        ("raid0x8", 0, 1),
        ("raid1x2", 0, 2),
        ("raid1x3", 0, 3),
        ("raid10x4", 0, 2),
        ("raid10x8", 0, 2),
        ("raid5x3", 1, 2),
        ("raid5x4", 2, 2),
        ("raid5x5", 2, 2),
        ("raid5x8", 2, 2),
        ("raid6x4", 1, 3),
        ("raid6x5", 2, 3),
        ("raid6x6", 3, 3),
        ("raid6x7", 3, 3),
        ("raid6x8", 3, 3),
    ],
)
def test_what_a_small_write_costs(text: str, reads: int, writes: int) -> None:
    assert costs(Geometry.parse(text)) == SmallWrite(reads, writes)


@pytest.mark.parametrize(
    ("text", "drives"),
    [("drivex1", 1), ("raid0x4", 4), ("raid1x2", 1), ("raid1x4", 1), ("raid10x8", 4), ("raid5x4", 3), ("raid6x8", 6)],
)
def test_capacity(text: str, drives: int) -> None:
    geometry = Geometry.parse(text)
    assert geometry.data_drives == drives
    assert geometry.usable_fraction == drives / geometry.width


def test_raid5_writes_grow_as_published_and_not_as_the_number_of_drives() -> None:
    three, six, eight = (effective_drives(Geometry(Level.RAID5, width), 0.0) for width in (3, 6, 8))
    assert (six / three, eight / three) == (1.5, 2.0)


def test_special_cases_of_the_law() -> None:
    read, write = 75_000.0, 11_500.0
    assert expected_iops(Geometry.parse("raid0x4"), 1.0, read, write) == pytest.approx(4 * read)
    assert expected_iops(Geometry.parse("raid0x4"), 0.0, read, write) == pytest.approx(4 * write)
    assert expected_iops(Geometry.parse("raid10x8"), 0.0, read, write) == pytest.approx(46_000)
    assert expected_iops(Geometry.parse("raid1x2"), 0.0, read, write) == pytest.approx(write)
    assert expected_iops(Geometry.parse("raid5x8"), 0.0, read, write) == pytest.approx(8 / (2 / read + 2 / write))
    assert expected_iops(Geometry.parse("raid5x3"), 0.0, read, write) == pytest.approx(3 / (1 / read + 2 / write))


@given(geometries, st.floats(0, 1), st.floats(1, 1e7))
def test_with_equal_reads_and_writes_the_law_is_effective_drives(
    geometry: Geometry, read_fraction: float, iops: float
) -> None:
    assert expected_iops(geometry, read_fraction, iops, iops) == pytest.approx(
        effective_drives(geometry, read_fraction) * iops
    )


@given(geometries, st.floats(0, 1))
def test_reads_are_never_dearer_than_writes(geometry: Geometry, read_fraction: float) -> None:
    assert 1 <= physical_ios(geometry, read_fraction) <= physical_ios(geometry, 0.0)
    assert physical_ios(geometry, 1.0) == 1


@given(geometries, st.integers(1, 256))
def test_the_share_reached_rises_with_depth(geometry: Geometry, depth: int) -> None:
    assert 0.5 < depth_share(geometry, depth) <= 1
    assert depth_share(geometry, depth) <= depth_share(geometry, depth + 1)


def test_a_queue_of_one_per_drive_leaves_nearly_half_of_eight_drives_idle() -> None:
    assert depth_share(Geometry.parse("raid0x8"), 1) == 8 / 15
    assert depth_share(Geometry.parse("drivex1"), 1) == 1
