"""What a steady window of an assembled or re-adopted array is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.builders.drives import drive

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings, SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import confirmation
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

WRITE, STREAM, WIDE = Workload("randwrite", "4k", 8), Workload("write", "128k", 8), Workload("randwrite", "128k", 8)
#: Per cent.
RANGE = 20.0


def at(iops: float) -> SteadyState:
    return steady_state.judge([iops] * 5, SteadyRule())


def array(geometry: str) -> Array:
    shape = Geometry.parse(geometry)
    return Array(shape, "/dev/md100", tuple(map(drive, range(shape.width))), "u", 1 << 29, "assumed")


def settled(writes: Workload, *iops: float) -> Conditioned:
    return Conditioned(writes, at(min(iops)), {f"S{number}": each for number, each in enumerate(iops)})


def objection(geometry: str, conditioned: Conditioned, iops: float) -> str:
    return confirmation.as_members_allow(array(geometry), conditioned, ArraySettings(), RANGE)([at(iops)])


@pytest.mark.parametrize(
    ("geometry", "writes", "most"),
    [
        ("raid0x4", WRITE, 4000),
        ("raid1x4", WRITE, 1000),
        ("raid10x4", WRITE, 2000),
        # A block and its parity are written.
        ("raid5x4", WRITE, 2000),
        ("raid6x4", WRITE, 4000 / 3),
        # Whole stripes need one write of parity each.
        ("raid5x4", STREAM, 3000),
        ("raid5x4", WIDE, 3000),
        ("raid6x4", STREAM, 2000),
    ],
)
def test_no_array_is_faster_than_its_members_allow(geometry: str, writes: Workload, most: float) -> None:
    conditioned = settled(writes, 1000, 900, 1100, 1000)
    assert objection(geometry, conditioned, 0.1 * most) == ""
    assert objection(geometry, conditioned, 1.19 * most) == ""
    assert objection(geometry, conditioned, 1.21 * most)


def test_a_member_whose_rate_is_not_known_is_an_objection() -> None:
    assert objection("raid0x4", settled(WRITE, 1000, 1000, 1000), 10)


@pytest.mark.parametrize(
    ("now", "is_kept"), [([1000, 500], True), ([1190, 410], True), ([1210, 500], False), ([1000, 390], False)]
)
def test_drives_are_each_as_they_settled(now: Sequence[float], is_kept: bool) -> None:
    asked = confirmation.as_settled(array("drivex2"), settled(WRITE, 1000, 500), RANGE)
    assert (asked([at(each) for each in now]) == "") is is_kept


def test_drives_of_which_no_rate_was_recorded_are_not_confirmed() -> None:
    assert confirmation.as_settled(array("drivex2"), Conditioned(WRITE, at(1000)), RANGE)([at(1000), at(1000)])
