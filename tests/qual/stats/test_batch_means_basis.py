from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import run

from pytest_ssdqual.qual.measured.interleaved import Interleaved
from pytest_ssdqual.qual.measured.run import Look, Measured
from pytest_ssdqual.qual.stats import batch_means, throughput
from pytest_ssdqual.qual.stats.batch_means import Basis, bounds, of_repeats, own_drift
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, TooFew

LOOK = Look(3, 14, 0.99, 45.0)
#: Long enough that nothing is unseen.
LONG = Basis(look=LOOK, seconds=1e5)


def noisy(seed: int, count: int = 40, mean: float = 1_000, scatter: float = 0.02) -> list[float]:
    source = random.Random(seed)  # noqa: S311
    return [mean * source.gauss(1, scatter) for _ in range(count)]


def test_of_rounds_it_is_students_interval_by_hand() -> None:
    found = Basis().bounds([98, 99, 100, 101, 102], [1] * 5)
    half = 2.776 * math.sqrt(2.5) / math.sqrt(5)
    assert (found.value, found.low, found.high) == pytest.approx((100, 100 - half, 100 + half), abs=1e-3)


def test_a_round_counts_by_its_denominator() -> None:
    # 10 of 100 and 0 of 900 slow: 1 %, not 5 %.
    assert Basis().bounds([10, 0], [100, 900]).value == pytest.approx(0.01)


def test_of_a_look_it_is_the_blocks_interval_at_the_looks_level() -> None:
    values, ones = noisy(1), [1.0] * 40
    assert LONG.bounds(values, ones) == batch_means.bounds(values, ones, 1e5, LOOK)
    half = replace(LONG, confidence_level=ConfidenceLevel(0.95, 0.5))
    assert half.bounds(values, ones) == batch_means.bounds(values, ones, 1e5, LOOK, half.level)
    assert 0.995 < half.level < 0.996
    # What is stated does not change what a look needs.
    assert replace(LONG, confidence_level=ConfidenceLevel(0.5)).level == 0.99


def test_a_measurement_knows_which_it_is() -> None:
    fixed = Measured((run([1_000] * 40, rounds=40),))
    assert Basis.of(fixed, ConfidenceLevel(0.9)) == Basis(ConfidenceLevel(0.9), seconds=40.0)
    looked = Measured(tuple(replace(each, look=LOOK) for each in fixed.runs * 2))
    assert Basis.of(looked, ConfidenceLevel(0.9)) == Basis(ConfidenceLevel(0.9), LOOK, 80.0)


def test_extremes_have_their_own_level_and_no_warm_up() -> None:
    warm = replace(LOOK, left_out=3, head=2)
    fixed, sure = run([1_000] * 40, rounds=40), ConfidenceLevel(0.95)
    earlier, looked = (Measured((replace(fixed, look=replace(warm, extremes_level=each)),)) for each in (None, 0.98))
    assert (Basis.whole(looked, sure).level, Basis.of_extremes(looked, sure).level) == (0.99, 0.98)
    assert Basis.of_extremes(looked, sure).settled([1, 2, 3]) == [1, 2, 3]
    # A record of an earlier version has no level for extremes.
    assert Basis.of_extremes(earlier, sure) == Basis.whole(earlier, sure)
    assert Basis.of_extremes(Measured((fixed,)), sure) == Basis.of(Measured((fixed,)), sure)


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=60), st.floats(1e-3, 1e3))
def test_scaled_series_have_scaled_intervals(values: list[float], factor: float) -> None:
    basis = LONG if len(values) >= batch_means.FEWEST else Basis()
    ones = [1.0] * len(values)
    plain, scaled = basis.bounds(values, ones), basis.bounds([each * factor for each in values], ones)
    close = 1e-6 * max(values) * factor
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(
        (plain.value * factor, plain.low * factor, plain.high * factor), abs=close
    )


def test_how_long_one_takes_is_the_reciprocal_of_how_many_there_are() -> None:
    ios, busy_ns = noisy(2), [1e9] * 40
    for basis in (LONG, Basis(look=LOOK, seconds=600.0)):
        rate, time = basis.bounds(ios, busy_ns), basis.time_each(busy_ns, ios)
        assert (time.value, time.low, time.high) == pytest.approx((1 / rate.value, 1 / rate.high, 1 / rate.low))
    # Of independent rounds it is their ratio itself.
    assert Basis().time_each(busy_ns, ios) == Basis().bounds(busy_ns, ios)


def test_what_may_not_happen_at_all_takes_any_time() -> None:
    ios = [100.0] + [0.0] * 39
    assert LONG.time_each([1e9] * 40, ios).high == math.inf
    with pytest.raises(TooFew, match="no I/O was counted"):
        LONG.time_each([1e9] * 40, [0.0] * 40)
    with pytest.raises(TooFew, match="no I/O was counted"):
        Basis().bounds([0.0] * 5, [0.0] * 5)


def test_blocks_that_are_warm_up_still_do_not_count() -> None:
    assert Basis().settled([1, 2, 3]) == [1, 2, 3]
    headed = replace(LONG, look=replace(LOOK, head=2))
    assert headed.settled([1, 2, 3]) == [3]
    assert headed.bounds([9_000.0, 9_000.0, *noisy(4)], [1.0] * 42).value == pytest.approx(1_000, rel=0.02)


def test_too_little_is_refused() -> None:
    with pytest.raises(TooFew, match="at least 2 rounds, there are 1"):
        Basis().bounds([1.0], [1.0])
    with pytest.raises(TooFew, match="at least 16 blocks, there are 15"):
        LONG.bounds([1.0] * 15, [1.0] * 15)


def in_rounds(drift: float = 0.0) -> Basis:
    return Basis(interleaved=Interleaved(8, 120, 3, 0.95, 0.001, 14.0, drift, 6000.0))


@pytest.mark.parametrize("drift", [-0.05, 0.05])
def test_a_drift_of_rates_moves_times_the_other_way_and_shares_to_either_side(drift: float) -> None:
    """IOPS that fall are latencies that rise, however even the cells of this workload happen to be."""
    ones, even = [1.0] * 8, [100.0, 100.1] * 4
    rate, time = in_rounds(drift).bounds(even, ones, are_rates=True), in_rounds(drift).time_each(ones, even)
    share = in_rounds(drift).bounds(ones, even)
    led = 3 * abs(drift)
    below, above = (each / rate.value for each in (rate.value - rate.low, rate.high - rate.value))
    assert (below > led, above > led) == (drift < 0, drift > 0)
    below, above = (each / time.value for each in (time.value - time.low, time.high - time.value))
    assert (below > led / (1 + led) - 0.01, above > led) == (drift > 0, drift < 0)
    assert min(share.value - share.low, share.high - share.value) > led * share.value


def test_the_drift_of_the_own_rounds_counts_where_others_have_none() -> None:
    falling = [140.0, 131, 124, 118.5, 114, 111, 108, 106]
    found = in_rounds().bounds(falling, [1.0] * 8, are_rates=True)
    assert found.low < 100  # where it leads
    assert own_drift([0.0, 0.0, 0.0]) == own_drift([1.0, -1.0]) == 0
    assert own_drift([-1.5, -0.5, 0.6, 1.4]) == pytest.approx(1.47)
    rng = random.Random(6)  # noqa: S311
    likely = sum(own_drift([rng.gauss(0, 1) for _ in range(8)]) != 0 for _ in range(1000))
    assert 20 < likely < 80  # 5 %; beyond that once in 10,000 (binomial)


def test_a_transient_that_is_over_before_the_first_block_is_left_out() -> None:
    short = replace(LOOK, slowest_s=1.0)
    found = bounds([1000.0 + index % 2 for index in range(80)], [1.0] * 80, 1e6, short)
    assert found.low <= 1000.5 <= found.high


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_repeats_that_differ_are_no_more_certain_than_their_means(seed: int, repeats: int) -> None:
    values = [level + each for level in noisy(seed, repeats, scatter=0.2) for each in noisy(seed + 1, 5, 0, 1)]
    groups = [values[at : at + 5] for at in range(0, len(values), 5)]
    of_means = Basis().bounds([math.fsum(each) for each in groups], [5.0] * repeats)
    found = Basis(repeats=repeats).bounds(values, [1.0] * len(values))
    assert (found.low, found.high) == pytest.approx((of_means.low, of_means.high))


def test_repeats_that_do_not_differ_are_one_series_of_rounds() -> None:
    values, ones = [98.0, 99, 100, 101, 102] * 2, [1.0] * 10
    assert of_repeats(values, 2) is None
    assert Basis(repeats=2).bounds(values, ones) == Basis().bounds(values, ones)
    assert of_repeats(values[:9], 2) is None
    assert of_repeats([100.0] * 10, 2) is None
    found = of_repeats([100.0] * 5 + [101.0] * 5, 2)
    assert found is not None
    scatter, degrees = found
    assert scatter == pytest.approx(math.sqrt(5 * 0.5))
    assert degrees == 1


def test_repeats_of_a_measurement_are_its_runs() -> None:
    runs = tuple(run([rate] * 5) for rate in (1_000, 1_100))
    assert Basis.of(Measured(runs), ConfidenceLevel()).repeats == 2
    estimate = throughput.iops(Measured(runs), ConfidenceLevel())
    assert estimate.high - estimate.value == pytest.approx(12.706 * 50, rel=0.01)
