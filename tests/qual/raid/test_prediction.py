from __future__ import annotations

import random
from statistics import fmean

import pytest

from pytest_ssdqual.qual.raid import prediction
from pytest_ssdqual.qual.raid.geometry import Geometry, expected_iops, loads
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit

SHAPE = (0.5, 1.0, 1.5, 1.0)
LEVELS = ("raid0x4", "raid1x3", "raid5x3", "raid5x8", "raid6x5", "raid10x6", "raid5x4-1failed", "raid10x4-1failed")


def point(depth: float, iops: float, error: float = 0.0) -> CurvePoint:
    return CurvePoint(depth, Estimate(iops, iops * (1 - error), iops * (1 + error), 5, Unit.IOPS), SHAPE, SHAPE)


def curve(drive: str = "D", factor: float = 1.0, error: float = 0.0, reads: float = 1.0) -> MemberCurve:
    """A drive of 100 µs that does 80,000 IOPS at most."""
    rates = ((1, 10_000), (2, 19_000), (4, 34_000), (8, 55_000), (16, 72_000), (32, 79_000), (64, 80_000))
    return MemberCurve(drive, reads, tuple(point(depth, factor * iops, error) for depth, iops in rates))


def members(geometry: Geometry, factors: dict[int, float] | None = None) -> list[MemberCurve]:
    present = geometry.width - geometry.missing
    return [curve(f"D{index}", (factors or {}).get(index, 1.0)) for index in range(present)]


def predicted(text: str, read_fraction: float, outstanding: int, factors: dict[int, float] | None = None) -> float:
    geometry = Geometry.parse(text)
    return prediction.predict(geometry, read_fraction, outstanding, members(geometry, factors)).iops.value


@pytest.mark.parametrize("text", LEVELS)
@pytest.mark.parametrize("read_fraction", [0.0, 1.0])
def test_always_busy_members_reach_the_saturated_law(text: str, read_fraction: float) -> None:
    law = expected_iops(Geometry.parse(text), read_fraction, 80_000, 80_000)
    assert predicted(text, read_fraction, 400) == pytest.approx(law, rel=0.05)


@pytest.mark.parametrize(("text", "phases"), [("raid0x8", 1), ("raid1x4", 1), ("raid5x8", 2), ("raid10x8", 1)])
def test_one_io_waits_for_nothing_but_its_slowest_parts(text: str, phases: int) -> None:
    # Each phase takes 100 µs on average, and up to 150 µs where several members have to complete.
    writes = predicted(text, 0.0, 1)
    assert 10_000 / phases / 1.5 <= writes <= 10_000 / phases * 1.02
    assert predicted(text, 1.0, 1) == pytest.approx(10_000, rel=0.02)


@pytest.mark.parametrize("text", LEVELS)
def test_members_have_the_load_of_the_cost_model(text: str) -> None:
    geometry = Geometry.parse(text)
    found = prediction.predict(geometry, 0.5, 32, members(geometry))
    for member, load in zip(found.members, loads(geometry), strict=True):
        ios = 0.5 * float(load.reads_for_read) + 0.5 * float(load.reads_for_write + load.writes_for_write)
        assert member.iops == pytest.approx(ios * found.iops.value, rel=0.15)
    outstanding = found.iops.value * fmean((*found.read_latencies_ns, *found.write_latencies_ns)) / 1e9
    assert outstanding == pytest.approx(32, rel=0.05)


@pytest.mark.parametrize("text", ["raid0x4", "raid5x4", "raid10x4"])
def test_slow_member_slows_the_array_until_replaced(text: str) -> None:
    geometry = Geometry.parse(text)
    slow = members(geometry, {1: 0.6})
    found = prediction.predict(geometry, 1.0, 128, slow)
    whole = predicted(text, 1.0, 128)
    assert found.iops.value < 0.9 * whole
    healed = prediction.with_median(slow, ["D1"], 32)
    assert prediction.predict(geometry, 1.0, 128, healed).iops.value == pytest.approx(whole, rel=1e-6)
    assert prediction.speeds(slow, 32) == pytest.approx({"D0": 1, "D1": 0.6, "D2": 1, "D3": 1})
    assert max(found.members, key=lambda each: each.depth).drive == "D1"


def test_the_interval_carries_the_error_of_the_curves() -> None:
    geometry = Geometry.parse("raid0x2")
    exact = prediction.predict(geometry, 1.0, 8, [curve("A"), curve("B")]).iops
    vague = prediction.predict(geometry, 1.0, 8, [curve("A", error=0.1), curve("B")]).iops
    assert exact.value == vague.value
    assert vague.high - vague.low > 0.2 * vague.value > exact.high - exact.low


def test_a_rate_limited_member_catches_up_after_idle_time() -> None:
    """As the lab's throttle does: 300 IOPS at any depth, and arrays of it lose little at depth 1 (lab: 3.5 %)."""
    throttled = tuple(point(depth, 300) for depth in (1, 2, 4, 8, 16))
    single = tuple(point(depth, 300 * (1 if depth > 1 else 0.85)) for depth in (1, 2, 4, 8, 16))
    drives = [MemberCurve(f"D{index}", 1.0, throttled) for index in range(4)]
    assert all(each.is_rate_limited for each in drives)
    geometry = Geometry.parse("raid0x4")
    assert prediction.predict(geometry, 1.0, 4, drives).iops.value > 0.93 * 1_200
    others = [MemberCurve(f"D{index}", 1.0, single) for index in range(4)]
    assert prediction.predict(geometry, 1.0, 4, others).iops.value < 0.8 * 1_200


def test_the_same_arguments_give_the_same_prediction() -> None:
    geometry = Geometry.parse("raid5x4")
    assert prediction.predict(geometry, 0.3, 16, members(geometry)) == prediction.predict(
        geometry, 0.3, 16, members(geometry)
    )


@pytest.mark.parametrize("text", LEVELS)
@pytest.mark.parametrize("is_read", [True, False])
def test_phases_have_the_member_ios_of_the_cost_model(text: str, is_read: bool) -> None:
    geometry, draw = Geometry.parse(text), random.Random(5)  # noqa: S311
    counted = [0] * geometry.width
    for _ in range(4000):
        for phase in prediction.phases(geometry, is_read, draw, [0] * geometry.width):
            assert len({member for member, _ in phase}) == len(phase)
            for member, _ in phase:
                counted[member] += 1
    assert counted[geometry.width - geometry.missing :] == [0] * geometry.missing
    for number, load in zip(counted, loads(geometry), strict=False):
        ios = load.reads_for_read if is_read else load.reads_for_write + load.writes_for_write
        assert number / 4000 == pytest.approx(float(ios), abs=0.06)
