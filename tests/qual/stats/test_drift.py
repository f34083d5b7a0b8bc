"""Simulated drives settle, or do not; capacities of 20 minutes to an hour, in reports of ten seconds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.stats import drift
from pytest_ssdqual.qual.stats.drift import DriftTest, WrittenSeries, judge

NOTHING = LatencyHistogram.merged(())
REPORT_S = 10.0
#: Of a drive whose rate is 1 in the settled state.
RATE = 1_000_000
DRIFT_PERCENT = 1.0
#: The rate after so many capacities.
Course = Callable[[float], float]


def report(rate: float, start_s: float, seconds: float = REPORT_S) -> Interval:
    return Interval(start_s, seconds, 0, 1, 0, max(1, round(rate * RATE * seconds)), NOTHING, NOTHING)


def reports(
    course: Course, capacity_s: float, noise: float, seed: int, rhythm: tuple[float, float] = (0.0, 600.0)
) -> Iterator[Interval]:
    """Yield reports without an end; ``rhythm`` is an amplitude and a period in seconds."""
    chance, capacities, start_s = random.Random(seed), 0.0, 0.0  # noqa: S311 (no secret)
    amplitude, period_s = rhythm
    phase = chance.uniform(0, 2 * math.pi)
    while True:
        wave = amplitude * math.sin(2 * math.pi * start_s / period_s + phase)
        rate = max(0.01, course(capacities) * (1 + chance.gauss(0, noise) + wave))
        yield report(rate, start_s)
        start_s += REPORT_S
        capacities += rate * REPORT_S / capacity_s


def settled_after(found: Iterator[Interval], capacity_s: float, limit: float = 6.0) -> float | None:
    """Return the capacities that were written when the drive passed, tested each eighth of a capacity from one on."""
    series, due = WrittenSeries(round(capacity_s * RATE)), 1.0
    while series.capacities < limit:
        series.add([next(found)])
        if series.capacities >= due:
            due = series.capacities + 1 / 8
            result = series.drift(DRIFT_PERCENT)
            assert result
            if result.settled:
                return series.capacities
    return None


def steady(capacities: float) -> float:
    return 1.0


SEEDS = st.integers(0, 1 << 32)
CAPACITIES_S = st.sampled_from((1200.0, 1800.0, 3600.0))


@given(st.floats(0.005, 0.02), CAPACITIES_S, SEEDS)
@settings(max_examples=40)
def test_settled_drive_takes_little_more_than_one_capacity(noise: float, capacity_s: float, seed: int) -> None:
    passed = settled_after(reports(steady, capacity_s, noise, seed), capacity_s)
    assert passed
    assert passed < 2.1


@given(st.floats(0.005, 0.1), st.tuples(st.floats(0.0, 0.03), st.floats(60, 1500)), CAPACITIES_S, SEEDS)
@settings(max_examples=60)
def test_noise_and_rhythms_do_not_keep_a_drive_from_settling(
    noise: float, rhythm: tuple[float, float], capacity_s: float, seed: int
) -> None:
    assert settled_after(reports(steady, capacity_s, noise, seed, rhythm), capacity_s, limit=9.0)


@dataclass(frozen=True)
class Transient:
    """A course and its scatter, where it is over at the earliest, and where a drive has passed at the latest."""

    course: Course
    noise: float
    over: float = 0.0
    limit: float = 9.0


def approach(constant: float, begin: float, noise: float) -> Transient:
    return Transient(lambda capacities: 1 + begin * math.exp(-capacities / constant), noise)


def cliff(at: float, plateau: float, noise: float) -> Transient:
    """The older half may reach into the plateau by a twentieth of a capacity, at most."""
    return Transient(lambda capacities: plateau if capacities < at else 1.0, noise, over=at + 0.5)


def undershoot(at: float, low: float, noise: float) -> Transient:
    """As of real drives: a plateau of three times the rate, a cliff, and a ramp over half a capacity."""

    def course(capacities: float) -> float:
        return 3.0 if capacities < at else min(1.0, low + (1 - low) * (capacities - at) / 0.5)

    return Transient(course, noise, limit=6.0)


@pytest.mark.parametrize(
    "transients",
    [
        st.builds(approach, st.floats(0.05, 0.5), st.floats(0.5, 4.0), st.floats(0.005, 0.02)),
        st.builds(cliff, st.floats(0.1, 0.8), st.floats(1.2, 4.0), st.floats(0.005, 0.1)),
        st.builds(undershoot, st.floats(0.2, 0.5), st.floats(0.6, 0.85), st.floats(0.005, 0.02)),
    ],
    ids=["approach", "cliff", "undershoot"],
)
@given(st.data(), CAPACITIES_S, SEEDS)
@settings(max_examples=40)
def test_a_transient_is_over_before_a_drive_passes(
    transients: st.SearchStrategy[Transient], data: st.DataObject, capacity_s: float, seed: int
) -> None:
    transient = data.draw(transients)
    written = reports(transient.course, capacity_s, transient.noise, seed)
    passed = settled_after(written, capacity_s, transient.limit)
    assert passed
    assert passed > transient.over
    assert abs(transient.course(passed) - 1) < 0.02


@given(st.floats(0.1, 0.9), st.floats(0.005, 0.02), CAPACITIES_S, SEEDS)
@settings(max_examples=40)
def test_a_ramp_does_not_pass(fall: float, noise: float, capacity_s: float, seed: int) -> None:
    """It falls by a tenth in each capacity, or more."""
    found = reports(lambda capacities: math.exp(-fall * capacities), capacity_s, noise, seed)
    assert settled_after(found, capacity_s, limit=4.0) is None


def test_a_late_fall_is_not_diluted_by_a_longer_volume() -> None:
    series = WrittenSeries(1000 * RATE)
    series.add(report(1.0 if second < 7500 else 0.95, second) for second in range(0, 8000, 10))
    found = series.drift(DRIFT_PERCENT)
    assert found
    assert not found.settled


def judged(*parts: tuple[int, float], was_settled: bool = False) -> DriftTest:
    seconds = [value for count, value in parts for _ in range(count)]
    return judge(seconds, DRIFT_PERCENT, was_settled=was_settled)


def test_the_change_is_that_of_the_rate() -> None:
    half_as_fast = judged((10, 1.0), (10, 2.0))
    assert half_as_fast.change_percent == pytest.approx(-50)
    assert half_as_fast.recent_percent == 0
    assert not half_as_fast.settled


@pytest.mark.parametrize(("change", "is_settled"), [(0.99, True), (-0.99, True), (1.01, False), (-1.01, False)])
def test_without_scatter_the_protocol_says_what_is_small(change: float, is_settled: bool) -> None:
    assert judged((10, 1 + change / 100), (10, 1.0)).settled is is_settled


def test_the_last_quarter_counts_as_well() -> None:
    """Its halves are equally fast, as it is on its way from a plateau through an undershoot."""
    crossing = judged((10, 1.0), (5, 1.1), (5, 0.9))
    assert crossing.change_percent == pytest.approx(0)
    assert crossing.recent_percent == pytest.approx(100 * (1.1 / 0.9 - 1))
    assert not crossing.settled


def test_scatter_explains_a_change_up_to_a_bound() -> None:
    rough = [1.03, 0.97] * 5
    for change, is_settled in ((0.015, True), (0.03, False)):
        found = judge([(1 + change) * each for each in rough] + rough, DRIFT_PERCENT)
        assert found.change_explained_percent > 1.5
        assert found.settled is is_settled


@given(st.floats(0.2, 5.0), st.integers(3, 17))
def test_no_step_within_a_capacity_explains_itself(times: float, place: int) -> None:
    if abs(times - 1) > 0.2:
        assert not judged((place, 1.0), (drift.STRETCHES - place, times)).settled


@pytest.mark.parametrize(("change", "is_settled"), [(1.9, True), (2.1, False)])
def test_settled_drive_is_unsettled_only_beyond_scatter(change: float, is_settled: bool) -> None:
    parts = (10, 1 + change / 100), (10, 1.0)
    assert not judged(*parts).settled
    assert judged(*parts, was_settled=True).settled is is_settled


def test_alike_neighbours_make_a_mean_less_certain() -> None:
    alternating, alike = [1.01, 0.99] * 5, [1.01, 1.01, 0.99, 0.99, 1.01, 1.01, 0.99, 0.99, 1.01, 1.01]
    explained = [judge([1.0] * 10 + each, DRIFT_PERCENT).change_explained_percent for each in (alternating, alike)]
    assert explained[1] > explained[0]


def test_a_sentence_names_the_larger_change() -> None:
    assert "quarter" in judged((10, 1.0), (5, 1.1), (5, 0.9)).describe()
    assert "-50.0 % over" in judged((10, 1.0), (10, 2.0)).describe()


def test_stretches_are_of_equal_volume() -> None:
    series = WrittenSeries(4 * RATE)
    assert series.drift(DRIFT_PERCENT) is None
    series.add([report(1.0, 0.0, 2.0), report(0.5, 2.0, 4.0), report(2.0, 6.0, 1.0)])
    assert series.capacities == pytest.approx(1.5)
    assert series.stretches(1.5, 6) == pytest.approx((1.0, 1.0, 2.0, 2.0, 0.5, 0.5))
    assert series.stretches(1.0, 2) == pytest.approx((4.0, 1.0))
    assert series.rates(1.0, 2) == pytest.approx((0.5 * RATE, 2 * RATE))
    assert series.stretches(2.0, 4) == ()


def test_the_time_of_a_stall_counts() -> None:
    series = WrittenSeries(2 * RATE)
    series.add([report(1.0, 0.0, 1.0), Interval(1.0, 7.0, 0, 0, 0, 0, NOTHING, NOTHING), report(1.0, 8.0, 1.0)])
    assert sum(series.stretches(1.0, 2)) == pytest.approx(9.0)


@given(st.lists(st.tuples(st.floats(0.01, 5.0), st.floats(0.1, 30.0)), min_size=1, max_size=50), st.integers(1, 40))
def test_stretches_take_all_the_time(found: list[tuple[float, float]], count: int) -> None:
    series = WrittenSeries(RATE)
    series.add([report(rate, 0.0, seconds) for rate, seconds in found])
    assert sum(series.stretches(series.capacities, count)) == pytest.approx(sum(seconds for _, seconds in found))


def test_rhythm_of_a_capacity_passes_in_a_longer_volume() -> None:
    found = reports(steady, 1200.0, 0.001, 1, rhythm=(0.03, 1200.0))
    passed = settled_after(found, 1200.0)
    assert passed
    assert passed >= 2
