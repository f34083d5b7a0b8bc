from __future__ import annotations

import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import histogram, histograms

from pytest_ssdqual.qual.basis import Basis
from pytest_ssdqual.qual.estimate import Sureness, TooFew
from pytest_ssdqual.qual.exceedance import Exceedance, clusters, slower_than
from pytest_ssdqual.qual.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.look import Look

LIMIT_NS = 50e6


def rounds(*slow: int) -> list[LatencyHistogram]:
    return [histogram({10**6: 1_000, 80 * 10**6: count} if count else {10**6: 1_000}) for count in slow]


def found(*slow: int, seconds: float = 600, basis: Basis = Basis()) -> Exceedance:  # noqa: B008
    return slower_than(LIMIT_NS, rounds(*slow), seconds, basis)


def test_none_in_ten_minutes_is_fewer_than_eighteen_an_hour() -> None:
    none = found(0, 0, 0, 0, 0)
    assert (none.ios, none.hit, none.low_per_hour) == (0, 0, 0)
    assert none.high_per_hour == pytest.approx(3 * 6, rel=0.002)  # the rule of three
    assert str(none) == "none slower in 10 min, so fewer than 18 times an hour (95 %)"


def test_of_many_rounds_and_few_clusters_it_is_garwoods_interval() -> None:
    # Garwood 1936, as in any table of Poisson limits: 1 → 0.0253…5.572, 3 → 0.6187…8.767, 10 → 4.795…18.39.
    for hit, low, high in ((1, 0.0253, 5.572), (3, 0.6187, 8.767), (10, 4.795, 18.39)):
        many = clusters(hit, 100_000, 0.95)
        assert (many.low, many.high) == pytest.approx((low, high), rel=2e-3)


def test_clusters_are_counted_and_not_ios() -> None:
    one, spread = found(900, 0, 0, 0, 0), found(1, 1, 1, 0, 0)
    assert (one.ios, one.hit, spread.ios, spread.hit) == (900, 1, 3, 3)
    assert one.high_per_hour < spread.high_per_hour
    assert str(spread) == "3 slower in 10 min, in 3 of 5 rounds: 4.76…88.3 times an hour (95 %)"


def test_where_every_round_has_some_nobody_knows_how_many() -> None:
    all_of_them = found(1, 5, 2, 1, 1)
    assert all_of_them.high_per_hour == math.inf
    assert str(all_of_them) == "10 slower in 10 min, in 5 of 5 rounds: more than 23.9 times an hour (95 %)"
    assert all_of_them.to_record()["high_per_hour"] is None
    assert json.loads(json.dumps(all_of_them.to_record(), allow_nan=False))["rounds_hit"] == 5


def test_a_limit_inside_of_a_bucket_is_maybe_broken() -> None:
    bucket = bucket_of(rounds(1)[0].max_ns)
    inside = slower_than(bucket.low_ns + 10, rounds(1, 0, 0, 0, 0), 600)
    assert (inside.ios, inside.possible_ios, inside.hit, inside.possible_hit) == (0, 1, 0, 1)
    assert str(inside).startswith("1 maybe slower in 10 min, in 1 of 5 rounds: 0…")
    # On its edges there is no doubt.
    assert slower_than(bucket.low_ns - 1, rounds(1, 0, 0, 0, 0), 600).ios == 1
    assert slower_than(bucket.high_ns, rounds(1, 0, 0, 0, 0), 600).possible_ios == 0


def test_a_look_is_as_sure_as_it_has_to_be() -> None:
    look = found(*[0] * 40, basis=Basis(Sureness(), Look(1, 10, 0.995, 0.0), 600.0))
    assert look.high_per_hour == pytest.approx(-math.log(0.005) * 6)
    assert look.confidence == 0.95
    among = found(0, 0, 0, 0, 0, basis=Basis(Sureness().among(5)))
    assert among.high_per_hour == pytest.approx(-math.log(0.01) * 6)


def test_warm_up_at_the_head_of_a_look_does_not_count() -> None:
    headed = found(*[5] * 4, *[0] * 36, basis=Basis(Sureness(), Look(1, 10, 0.95, 0.0, head=4), 600.0))
    assert (headed.ios, headed.rounds, headed.seconds) == (0, 36, 540)


@given(st.integers(1, 60), st.data(), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_more_hits_never_mean_fewer_clusters(count: int, data: st.DataObject, level: float) -> None:
    hit = data.draw(st.integers(0, count - 1))
    fewer, more = clusters(hit, count, level), clusters(hit + 1, count, level)
    assert fewer.low <= more.low
    assert fewer.high <= more.high
    assert fewer.low < fewer.high


@given(st.lists(histograms, min_size=1, max_size=8), st.floats(1, 1e10), st.floats(1, 1e10))
def test_a_higher_limit_is_exceeded_no_more_often(each: list[LatencyHistogram], one: float, other: float) -> None:
    low, high = (slower_than(limit, each, 60.0) for limit in sorted((one, other)))
    assert high.possible_ios <= low.possible_ios
    assert high.ios <= low.ios <= low.possible_ios
    assert low.hit <= low.possible_hit <= low.rounds
    assert high.high_per_hour <= low.high_per_hour


@pytest.mark.parametrize("per_run", [1.0, 4.0, 15.0])
@pytest.mark.parametrize("count", [5, 40])
def test_the_true_rate_is_inside_as_often_as_it_says(per_run: float, count: int) -> None:
    source = random.Random(13)  # noqa: S311
    # A round is hit unless no cluster begins in it.
    share = 1 - math.exp(-per_run / count)
    hits = 0
    for _ in range(2_000):
        each = clusters(sum(source.random() < share for _ in range(count)), count, 0.95)
        hits += each.low <= per_run <= each.high
    assert hits / 2_000 > 0.94


def test_without_time_there_is_no_rate() -> None:
    with pytest.raises(TooFew, match="needs time, there is none"):
        slower_than(LIMIT_NS, rounds(0), 0.0)
    with pytest.raises(TooFew, match="needs time"):
        slower_than(LIMIT_NS, [], 600.0)
    for hit, count in ((-1, 5), (6, 5), (0, 0)):
        with pytest.raises(ValueError, match="is no share"):
            clusters(hit, count, 0.95)
