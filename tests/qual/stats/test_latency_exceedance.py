from __future__ import annotations

import math
import random
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from support.builders.strategies import EMPTY, histogram, histograms, visited, watched

from pytest_ssdqual.qual.measured.histogram import LAST_BUCKET_NS, LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.run import Measured, Visited
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel, TooFew
from pytest_ssdqual.qual.stats.latency import (
    Exceedance,
    clusters,
    dispersion_of,
    return_level,
    shortest_s,
    slower_than,
)
from pytest_ssdqual.qual.stats.spread import RareEvents

LIMIT_NS = 50e6


def spells(*slow: int) -> list[LatencyHistogram]:
    return [histogram({10**6: 1_000, 80 * 10**6: count} if count else {10**6: 1_000}) for count in slow]


def found(*slow: int, of_visits: Visited | None = None, confidence_level: ConfidenceLevel = USUAL) -> Exceedance:
    return slower_than(LIMIT_NS, watched(spells(*slow), of_visits=of_visits), confidence_level)


def test_none_in_ten_minutes_is_fewer_than_eighteen_an_hour() -> None:
    none = found(*[0] * 10)
    assert (none.ios, none.hit, none.low_per_hour, none.spells) == (0, 0, 0, 10)
    assert none.high_per_hour == pytest.approx(3 * 6, rel=0.002)  # the rule of three
    assert "fewer than 18" in str(none)


def test_of_many_rounds_and_few_clusters_it_is_garwoods_interval() -> None:
    # Garwood 1936, as in any table of Poisson limits: 1 → 0.0253…5.572, 3 → 0.6187…8.767, 10 → 4.795…18.39.
    for hit, low, high in ((1, 0.0253, 5.572), (3, 0.6187, 8.767), (10, 4.795, 18.39)):
        assert clusters(hit, 100_000, 0.95) == pytest.approx((low, high), rel=2e-3)


def test_clusters_are_counted_and_not_ios() -> None:
    one, spread = found(900, *[0] * 9), found(1, 0, 0, 1, 0, 0, 0, 0, 1, 0)
    assert (one.ios, one.hit, spread.ios, spread.hit) == (900, 1, 3, 3)
    assert one.high_per_hour < spread.high_per_hour
    assert "10 spells: 4.14…63.4" in str(spread)


def test_where_every_spell_has_some_nobody_knows_how_many() -> None:
    all_of_them = found(*[1, 5, 2, 1, 1] * 2)
    assert all_of_them.high_per_hour == math.inf
    assert "10 of 10" in str(all_of_them)
    assert all_of_them.hit == 10


def test_a_limit_inside_of_a_bucket_is_maybe_broken() -> None:
    measured = watched(spells(1, *[0] * 9))
    bucket = bucket_of(measured.latency.max_ns)
    inside = slower_than(bucket.low_ns + 10, measured, USUAL)
    assert (inside.ios, inside.possible_ios, inside.hit, inside.possible_hit) == (0, 1, 0, 1)
    assert str(inside).startswith("1 maybe slower")
    # On its edges there is no doubt.
    assert slower_than(bucket.low_ns - 1, measured, USUAL).ios == 1
    assert slower_than(bucket.high_ns, measured, USUAL).possible_ios == 0


def test_a_look_is_as_sure_as_it_has_to_be() -> None:
    look = found(*[0] * 10, of_visits=visited(level=0.995))
    assert look.high_per_hour == pytest.approx(-math.log(0.005) * 6)
    assert look.confidence == 0.95
    among = found(*[0] * 10, confidence_level=ConfidenceLevel().among(5))
    assert among.high_per_hour == pytest.approx(-math.log(0.01) * 6)


@settings(max_examples=25)
@given(st.lists(histograms.filter(bool), min_size=10, max_size=14), st.floats(1, 1e10), st.floats(1, 1e10))
def test_a_higher_limit_is_exceeded_no_more_often(each: list[LatencyHistogram], one: float, other: float) -> None:
    with patch.object(latency, "dispersion_of", return_value=1.0):
        low, high = (slower_than(limit, watched(each), USUAL) for limit in sorted((one, other)))
    assert high.possible_ios <= low.possible_ios
    assert high.ios <= low.ios <= low.possible_ios
    assert low.hit <= low.possible_hit <= low.spells
    assert high.high_per_hour <= low.high_per_hour


@pytest.mark.parametrize("per_run", [1.0, 4.0, 15.0])
@pytest.mark.parametrize("count", [5, 40])
def test_the_true_rate_is_inside_as_often_as_it_says(per_run: float, count: int) -> None:
    source = random.Random(13)  # noqa: S311
    # A round is hit unless no cluster begins in it.
    share = 1 - math.exp(-per_run / count)
    hits = 0
    for _ in range(2_000):
        fewest, most = clusters(sum(source.random() < share for _ in range(count)), count, 0.95)
        hits += fewest <= per_run <= most
    assert hits / 2_000 > 0.94


def test_without_time_there_is_no_rate() -> None:
    nothing = replace(watched([10**6]).runs[0], intervals=())
    with pytest.raises(TooFew, match="of observation, there"):
        slower_than(LIMIT_NS, Measured((nothing,)), USUAL)
    with pytest.raises(TooFew, match="there is none"):
        return_level([], [], 0.0, 10, 0.95)
    for hit, count in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(ValueError, match="is no share"):
            clusters(hit, count, 0.95)


# -- what is exceeded so many times an hour


def test_a_level_by_hand() -> None:
    """60 minutes, 10 an hour allowed: 4 exceedances have Garwood's upper end 10.24, 3 have 8.77; 18 the lower 10.67."""
    maxima = [float(7 * each % 60 + 1) for each in range(60)]
    level = return_level(maxima, maxima, 3_600, 10, 0.95)
    assert (level.low, level.high) == (60 - 15, 60 - 3)
    # One in six minutes is exceeded with a probability of 1 - exp(-1/6), which is 9.2 of 60.
    assert level.value == 60 - 9


def test_the_same_maxima_say_the_same_in_another_order_and_scale() -> None:
    maxima = [float(7 * each % 60 + 1) for each in range(60)]
    other = [float(13 * each % 60 + 1) for each in range(60)]
    plain = return_level(maxima, maxima, 3_600, 10, 0.95)
    assert plain == return_level(other, other, 3_600, 10, 0.95)
    scaled = return_level([7 * each for each in maxima], [7 * each for each in maxima], 3_600, 10, 0.95)
    assert scaled.low == pytest.approx(7 * plain.low)
    assert scaled.high == pytest.approx(7 * plain.high)


def test_burst_is_less_certain_than_random_stalls() -> None:
    """Fifteen bad minutes of an hour: in a row they may be one event in two hours."""
    scattered = [80.0 if each % 4 == 0 else 1.0 for each in range(60)]
    together = sorted(scattered)
    assert dispersion_of([each > 1 for each in scattered]) == 1
    assert dispersion_of([each > 1 for each in together]) > 4
    apart, burst = (return_level(each, each, 3_600, 5, 0.95) for each in (scattered, together))
    assert (apart.low, burst.low) == (80, 1)


def test_short_time_may_prove_only_what_is_bad() -> None:
    # Ten minutes without an event allow 18 times an hour; ten of ten minutes with one are more than 81 times.
    short = return_level([1.0] * 10, [2.0] * 10, 600, 10, 0.95)
    assert short.high == math.inf
    assert short.low == 1.0
    assert return_level([1.0] * 10, [2.0] * 10, 600, 20, 0.95).high == 2.0
    assert return_level([1.0] * 10, [2.0] * 10, 600, 90, 0.95).low == -math.inf
    assert shortest_s(10, 0.95) == pytest.approx(18 * 60, rel=0.002)


@settings(max_examples=25)
@given(
    st.lists(st.floats(1, 1e9), min_size=20, max_size=60),
    st.floats(1, 60),
    st.floats(1, 60),
    st.sampled_from([0.9, 0.95, 0.999]),
)
def test_what_may_happen_more_often_is_no_slower(maxima: list[float], one: float, other: float, level: float) -> None:
    # How far events come in bursts is seen at the level itself, and may differ from level to level.
    with patch.object(latency, "dispersion_of", return_value=1.0):
        rare, frequent = (
            return_level(maxima, maxima, 60.0 * len(maxima), per_hour, level) for per_hour in sorted((one, other))
        )
    assert frequent.low <= rare.low <= rare.high
    assert frequent.high <= rare.high
    assert rare.low <= rare.value <= rare.high


@pytest.mark.parametrize("minutes", [35, 60, 180])
@pytest.mark.parametrize("shape", [2.5, 4.0])
def test_level_covers_as_stated_however_long_was_watched(minutes: int, shape: float) -> None:
    """Stalls that come at random and have heavy tails: the answer is a property of the drive, not of the time."""
    source = random.Random(minutes)  # noqa: S311
    per_minute, inside = 6.0, 0
    truth = (per_minute * 60 / 10) ** (1 / shape)
    for _ in range(400):
        # Of the largest of a Poisson number of Pareto-distributed stalls.
        maxima = [(per_minute / -math.log(source.random())) ** (1 / shape) for _ in range(minutes)]
        level = return_level(maxima, maxima, 60.0 * minutes, 10, 0.95)
        inside += level.low <= truth <= level.high
    assert inside / 400 > 0.93


def test_a_maximum_that_fio_does_not_resolve_has_no_upper_end() -> None:
    assert RareEvents(watched([LAST_BUCKET_NS] * 40), USUAL, 10).max_latency().high == math.inf
    assert RareEvents(watched([EMPTY] * 39 + [histogram({10**6: 1})]), USUAL, 10).max_latency().high < 2e6


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.05, 0.025]))
def test_it_is_the_exact_interval(seen: tuple[int, int], tail: float) -> None:
    exact = binomtest(*seen).proportion_ci(1 - 2 * tail, "exact")
    assert latency.interval(*seen, tail) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize(("count", "of"), [(0, 0), (-1, 3), (4, 3)])
def test_what_is_no_share(count: int, of: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        latency.interval(count, of, 0.025)
