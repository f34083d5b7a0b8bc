from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import side_by_side

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid import member_curve
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.law import Striping
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)


def curve(*pairs: tuple[float, float], reads: float = 1.0, drive: str = "A") -> MemberCurve:
    points = (CurvePoint(depth, Estimate(rate, rate, rate, 5, Unit.IOPS)) for depth, rate in pairs)
    return MemberCurve(drive, reads, tuple(points))


@given(st.floats(0.1, 200), st.floats(0.1, 200))
def test_iops_rise_with_the_depth_and_pass_through_the_points(one: float, other: float) -> None:
    found = curve((4, 30_000), (1, 10_000), (16, 60_000))
    assert found.iops(4) == pytest.approx(30_000)
    assert found.iops(0.5) == pytest.approx(5_000)
    assert found.iops(1_000) == 60_000
    low, high = sorted((one, other))
    assert found.iops(low) <= found.iops(high) * (1 + 1e-9)


def test_latency_is_linear_between_two_depths() -> None:
    # 100 µs at depth 1 and 600 µs at depth 6: 350 µs between them, at 3.5.
    assert curve((1, 10_000), (6, 10_000)).iops(3.5) == pytest.approx(10_000)
    assert curve((1, 10_000), (11, 55_000)).iops(6) == pytest.approx(6 / 150e-6)


def test_point_has_the_rate_and_the_shape_of_latencies() -> None:
    measured = Measured((side_by_side([[1_000] * 5, [600] * 5]),)).members()[1]
    point = CurvePoint.of(measured, iops(measured, ConfidenceLevel()))
    assert point.iops.value == pytest.approx(600)
    shape = point.reads or point.writes
    assert sum(shape) / len(shape) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(
    ("array", "workload", "mix", "depths"),
    [
        ("raid0x8", READ, "randread_4k", (1, 2, 4, 8, 16)),
        ("raid5x8", WRITE, "randrw50_4k", (1, 4, 8, 16, 32)),
        ("raid6x4", WRITE.at(1), "randrw25_4k", (1, 2, 4, 8)),
        ("raid10x4", WRITE.at(1), "randwrite_4k", (1, 2, 4, 8)),
    ],
)
def test_members_are_measured_at_their_own_mix_and_depth(
    array: str, workload: Workload, mix: str, depths: tuple[int, ...]
) -> None:
    found = member_curve.member_workloads(Geometry.parse(array), workload)
    assert [str(each) for each in found] == [f"{mix}_qd{depth}" for depth in depths]
    limited = member_curve.member_workloads(Geometry.parse(array), workload, 5)
    assert max(each.qd_per_drive for each in limited) <= 5


def test_arrays_are_predicted_where_the_law_holds() -> None:
    array = Geometry.parse("raid5x4")
    assert not member_curve.objection(array, READ, Striping())
    assert "split at chunks" in member_curve.objection(array, Workload("randread", "128k", 8), Striping())
    assert "bare drives" in member_curve.objection(Geometry.parse("drivex4"), READ, Striping())
