from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pytest_ssdqual.qual.measured.run import Look
from pytest_ssdqual.qual.stats import batch_means
from pytest_ssdqual.qual.stats.batch_means import Bounds
from pytest_ssdqual.qual.stats.estimate import TooFew, student_t

#: Nothing is unseen and no transient is too slow: plain noise is all there is.
SIMPLE = Look(1, 1, 0.95, 0.0, slowest_s=1.0, pause_s=0.0)
DRIVE = replace(SIMPLE, slowest_s=1800.0, pause_s=60.0)


def bounds(values: Sequence[float] | NDArray[np.float64], seconds: float = 4_000.0, look: Look = SIMPLE) -> Bounds:
    return batch_means.bounds(list(values), [1.0] * len(values), seconds, look)


def correlated(seed: int, count: int, phi: float, scatter: float = 0.02) -> NDArray[np.float64]:
    """AR(1) around 1, stationary."""
    rng = np.random.default_rng(seed)
    values = [rng.standard_normal()]
    for step in rng.standard_normal(count - 1) * math.sqrt(1 - phi * phi):
        values.append(phi * values[-1] + step)
    return 1 + scatter * np.array(values)


# Nearly as often where blocks depend on each other for almost as long as the means are that the scatter is taken from.
@pytest.mark.parametrize(("phi", "stated"), [(0.0, 0.95), (0.3, 0.95), (0.5, 0.92)])
def test_the_interval_covers_the_mean_as_often_as_stated(phi: float, stated: float) -> None:
    found = [bounds(correlated(seed, batch_means.COUNT, phi)) for seed in range(600)]
    covered = sum(each.low <= 1 <= each.high for each in found) / len(found)
    # Four binomial standard errors below; above, because trends are extrapolated.
    assert stated - 4 * math.sqrt(stated * (1 - stated) / 600) <= covered <= 0.999


def test_independent_blocks_would_promise_too_much() -> None:
    """What the means of several blocks are for: Student's interval of the same blocks misses far more often."""
    series = [correlated(seed, batch_means.COUNT, 0.5) for seed in range(300)]
    half = [student_t(0.95, batch_means.COUNT - 1) * each.std(ddof=1) / math.sqrt(batch_means.COUNT) for each in series]
    naive = sum(abs(each.mean() - 1) <= one for each, one in zip(series, half, strict=True)) / 300
    ours = sum(each.low <= 1 <= each.high for each in map(bounds, series)) / 300
    assert naive < 0.85 < 0.9 < ours


@given(st.lists(st.floats(1, 1e6), min_size=batch_means.FEWEST, max_size=90), st.floats(1e-3, 1e3), st.integers(0, 5))
def test_scaled_series_have_scaled_bounds(values: list[float], factor: float, head: int) -> None:
    look = replace(DRIVE, head=min(head, len(values) - batch_means.FEWEST, len(values) // 3))
    plain, scaled = bounds(values, look=look), bounds([factor * each for each in values], look=look)
    tolerance = 1e-6 * factor * max(values)
    for field in ("value", "low", "high", "error", "drift"):
        assert getattr(scaled, field) == pytest.approx(factor * getattr(plain, field), rel=1e-6, abs=tolerance)


@given(st.lists(st.floats(0, 1e6), min_size=batch_means.FEWEST, max_size=90), st.integers(0, 40), st.floats(10, 1e5))
def test_the_value_lies_within_its_bounds(values: list[float], head: int, seconds: float) -> None:
    look = replace(DRIVE, head=min(head, len(values) - batch_means.FEWEST, len(values) // 3))
    found = bounds(values, seconds, look)
    assert found.low <= found.value <= found.high


def test_a_block_counts_by_its_denominator() -> None:
    # 10 of 100 slow in one block, none of 900 in the others: not the mean of shares.
    found = batch_means.bounds([10] + [0] * 19, [100] + [900] * 19, 1_000.0, SIMPLE)
    assert found.value == pytest.approx(10 / 17_200)


def test_more_data_narrow_it() -> None:
    """Beyond noise: on average over many series, a stretch four times as long is half as wide."""

    def width(count: int) -> float:
        found = [bounds(correlated(seed, count, 0.3), 50.0 * count) for seed in range(200)]
        return sum(each.high - each.low for each in found) / len(found)

    assert width(80) / width(20) == pytest.approx(0.5, abs=0.12)


def test_what_falls_is_not_believed_to_stay() -> None:
    """A transient that begins 5 % above its end, with a time constant of half the stretch, goes on behind it."""
    at = np.arange(batch_means.COUNT) / batch_means.COUNT
    noise = correlated(1, batch_means.COUNT, 0.0, 0.002)
    falling = bounds(noise + 0.05 * np.exp(-2 * at), 1_800.0, DRIVE)
    assert falling.value > 1.015
    assert falling.low <= 1.0 < falling.high
    rising = bounds(noise - 0.05 * np.exp(-2 * at), 1_800.0, DRIVE)
    assert rising.low < 1.0 <= rising.high
    assert falling.drift < 0 < rising.drift


def test_the_head_shows_a_trend_that_the_rest_hides() -> None:
    at = np.arange(batch_means.COUNT) / batch_means.COUNT
    series = correlated(3, batch_means.COUNT, 0.0, 0.01) + 0.3 * np.exp(-5 * at)
    rest = series[26:]
    alone = bounds(rest, 1_800.0 * 54 / 80, DRIVE)
    whole = bounds(series, 1_800.0, replace(DRIVE, head=26))
    assert whole.value == alone.value
    assert whole.low < alone.low


def test_a_short_stretch_allows_for_a_pause_that_it_has_not_shown() -> None:
    steady = [1_000.0] * batch_means.COUNT
    for seconds, lost in ((600.0, 0.1 - 60 / 2_880), (1_800.0, 60 / 1_800 - 60 / 2_880), (2_880.0, 0.0), (1e5, 0.0)):
        found = bounds(steady, seconds, DRIVE)
        assert (1_000 - found.low, found.high - 1_000) == pytest.approx((1_000 * lost, 1_000 * lost), abs=1e-6)


def test_rare_dips_make_the_lower_side_wider() -> None:
    values = [1_000.0] * batch_means.COUNT
    values[11] = values[50] = 600.0
    found = bounds(values)
    assert found.value - found.low > 1.2 * (found.high - found.value)


def test_what_is_left_out_is_as_if_it_had_not_been() -> None:
    series = correlated(4, batch_means.COUNT, 0.3)
    series[:10] += 5
    without = bounds(series, 1_800.0, replace(DRIVE, left_out=10, head=4))
    assert without == bounds(series[10:], 1_800.0 * 70 / 80, replace(DRIVE, head=4))


def test_a_warm_up_of_more_than_a_third_decides_nothing() -> None:
    series = [1.0] * batch_means.COUNT
    assert bounds(series, look=replace(SIMPLE, left_out=18, head=8)).value == 1
    with pytest.raises(TooFew, match="not settled on one level"):
        bounds(series, look=replace(SIMPLE, left_out=19, head=8))


@pytest.mark.parametrize(("count", "head"), [(batch_means.FEWEST - 1, 0), (22, 7), (0, 0)])
def test_too_few_blocks_are_refused(count: int, head: int) -> None:
    with pytest.raises(TooFew, match="at least 16 blocks"):
        bounds([1.0] * count, look=replace(SIMPLE, head=head))


def test_nothing_counted_is_refused() -> None:
    with pytest.raises(TooFew, match="no I/O was counted"):
        batch_means.bounds([0.0] * 20, [0.0] * 20, 100.0, SIMPLE)
