"""The choice of points, and the bound on those outside the tolerance, against enumeration of all samples."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.raid import screening
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.raid.screening import Agreement
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload


def iops(low: float, value: float, high: float) -> Estimate:
    return Estimate(value, low, high, 5, Unit.IOPS)


def share_without(points: int, outside: int, size: int) -> float:
    """Share of all samples of ``size`` that have none of the points outside."""
    drawn = list(combinations(range(points), size))
    return sum(all(each >= outside for each in one) for one in drawn) / len(drawn)


@given(st.integers(1, 11), st.data(), st.sampled_from([0.8, 0.9, 0.95]))
def test_most_outside_is_the_largest_number_that_a_sample_may_miss(
    points: int, data: st.DataObject, confidence: float
) -> None:
    size = data.draw(st.integers(1, points))
    possible = [each for each in range(points + 1) if share_without(points, each, size) > 1 - confidence]
    assert screening.most_outside(points, size, confidence) == max(possible)


@given(st.integers(1, 10), st.floats(5, 60), st.sampled_from([0.8, 0.9, 0.95]))
def test_sample_size_shows_that_fewer_lie_outside_and_none_smaller_does(
    points: int, percent: float, confidence: float
) -> None:
    size = screening.sample_size(points, percent, confidence)
    assert 100 * screening.most_outside(points, size, confidence) < percent * points
    if size > 1:
        assert 100 * screening.most_outside(points, size - 1, confidence) >= percent * points * (1 - 1e-6)


def test_the_shipped_rule_draws_17_of_96_points() -> None:
    assert screening.sample_size(96, 15, 0.95) == 17
    assert screening.most_outside(96, 17, 0.95) == 14
    assert screening.sample_size(0, 15, 0.95) == 0


def test_a_small_sweep_is_drawn_as_a_whole() -> None:
    assert screening.sample_size(6, 15, 0.95) == 6
    assert screening.most_outside(6, 6, 0.95) == 0


def test_samples_are_drawn_without_preference() -> None:
    names = {number: f"point {number}" for number in range(8)}
    drawn = [each for seed in range(4000) for each in screening.sample(names, 2, str(seed))]
    assert {len(set(screening.sample(names, 2, str(seed)))) for seed in range(50)} == {2}
    assert all(850 < drawn.count(number) < 1150 for number in names)  # 1,000 ± 27


@given(st.integers(0, 30), st.text(max_size=5))
def test_the_same_seed_draws_the_same_and_keeps_ranks_without_a_point(size: int, seed: str) -> None:
    names = {number: f"point {number}" for number in range(20)}
    drawn = screening.sample(names, size, seed)
    assert drawn == screening.sample(dict(reversed(names.items())), size, seed)
    fewer = {number: name for number, name in names.items() if number != 7}
    assert screening.sample(fewer, 20, seed) == tuple(each for each in screening.sample(names, 20, seed) if each != 7)


def test_extremes_of_each_mix_have_the_most_iops_and_the_shortest_latency() -> None:
    narrow, wide = Geometry(RaidLevel.RAID5, 3), Geometry(RaidLevel.RAID5, 8)
    reads, writes = Workload("randread", "4k", 1), Workload("randwrite", "4k", 1)
    predicted = {
        (narrow, reads): 30.0,  # 10 IOPS for each I/O outstanding
        (narrow, reads.at(8)): 100.0,
        (wide, reads): 72.0,
        (wide, reads.at(8)): 300.0,
        (wide, writes): 20.0,
    }
    assert screening.extremes(predicted) == ((wide, reads.at(8)), (narrow, reads), (wide, writes))
    assert screening.extremes({}) == ()


def test_smallest_margins_come_first() -> None:
    assert screening.smallest({"a": 5.0, "b": -2.0, "c": 5.0, "d": 9.0}, 3) == ("b", "a", "c")
    assert screening.smallest({"a": 5.0}, 3) == ("a",)


@pytest.mark.parametrize(
    ("low", "value", "high", "expected"),
    [
        (950, 1000, 1050, True),
        (900, 1000, 1100, True),
        (890, 1000, 1050, None),
        (1050, 1080, 1110, None),
        (800, 850, 899, False),
        (1101, 1150, 1200, False),
    ],
)
def test_agreement_needs_the_whole_interval(low: float, value: float, high: float, *, expected: bool | None) -> None:
    assert screening.agrees(iops(low, value, high), iops(700, 1000, 1300), 10) is expected


def test_a_screened_figure_carries_all_errors_and_no_confidence() -> None:
    wide = screening.with_tolerance(iops(970, 1000, 1030), 10)
    assert (wide.low, wide.value, wide.high) == pytest.approx((873, 1000, 1133))
    assert "CI" not in str(wide)
    assert str(wide) == "1,000 IOPS (predicted 873…1,133 IOPS)"


def test_an_agreement_bounds_the_points_that_were_not_measured() -> None:
    found = Agreement(
        "raid5", drawn_from=96, sampled=17, measured=20, screened=76, tolerance_percent=10, confidence=0.95
    )
    assert str(found) == (
        "screened: predicted, not measured; 20 of 96 points of raid5 were measured and agree with their predictions "
        "within 10 %, 17 of them drawn at random from 96, so at 95 % at most 14 of the other 76 lie outside"
    )
    few = Agreement("raid5", drawn_from=96, sampled=17, measured=94, screened=2, tolerance_percent=10, confidence=0.95)
    assert few.most_outside == 2
