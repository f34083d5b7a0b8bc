from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.integrity import reference_model
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings

SETTINGS = ArraySettings(chunk="64k")


@pytest.mark.parametrize(
    ("shape", "stripe"), [("raid0x4", 262144), ("raid1x3", 65536), ("raid5x4", 196608), ("raid10x4", 131072)]
)
def test_a_region_is_a_stripe_and_one_unit(shape: str, stripe: int) -> None:
    geometry = Geometry.parse(shape)
    assert reference_model.stripe_bytes(geometry, SETTINGS) == stripe
    assert reference_model.region_bytes(geometry, SETTINGS) == stripe + UNIT_BYTES


def test_of_a_wide_array_with_large_chunks_a_region_is_limited() -> None:
    wide = reference_model.region_bytes(Geometry.parse("raid5x24"), ArraySettings(chunk="1m"))
    assert wide == reference_model.MOST_BYTES + UNIT_BYTES


@given(st.integers(1, 64).map(lambda n: n * UNIT_BYTES), st.integers(2, 64), st.integers(0, 10**7))
def test_regions_cover_the_array_and_do_not_overlap(each: int, count: int, more: int) -> None:
    size = 2 * each + more
    found = reference_model.spread(size, each, count)
    assert found[0].offset_bytes == 0
    assert size - UNIT_BYTES < found[-1].end_bytes <= size or len(found) == 2
    assert [region.number for region in found] == list(range(len(found)))
    assert len(found) <= count
    for one, other in itertools.pairwise(found):
        assert one.end_bytes <= other.offset_bytes
        assert one.number % 2 or one.end_bytes == other.offset_bytes
    assert all(region.offset_bytes % UNIT_BYTES == 0 for region in found)


def test_regions_begin_behind_what_is_spared() -> None:
    each = 192 * 1024
    found = reference_model.spread(64 << 20, each, 8, 3 << 20)
    assert found[0].offset_bytes == 3 << 20
    assert found[-1].end_bytes <= 64 << 20
    assert found[-1].end_bytes > (64 << 20) - 2 * each
    with pytest.raises(ValueError, match="for two regions"):
        reference_model.spread(4 << 20, 1 << 20, 8, 3 << 20)


def test_no_room_is_an_error() -> None:
    with pytest.raises(ValueError, match="for two regions"):
        reference_model.spread(8191, 4096, 4)


def test_whole_transfers_leave_the_rest_alone() -> None:
    (region, _) = reference_model.spread(1 << 20, 135168, 2)
    assert region.written(65536) == 131072
    assert region.written(4096) == 135168


def test_what_has_grown_has_two_more_at_its_end() -> None:
    known = reference_model.spread(1 << 20, 4096, 4)
    more = reference_model.behind(known, 2 << 20)
    assert [each.number for each in more] == [4, 5]
    assert more[-1].end_bytes == 2 << 20
    with pytest.raises(ValueError, match="1048576 bytes only"):
        reference_model.behind(known, 1 << 20)
