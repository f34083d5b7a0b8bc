from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import EMPTY, histogram

from pytest_ssdqual.qual.estimate import TooFew
from pytest_ssdqual.qual.histogram import LAST_BUCKET_NS, LatencyHistogram
from pytest_ssdqual.qual.spread import between, over_time


def rounds(*maxima_ns: int) -> list[LatencyHistogram]:
    return [histogram({100_000: 1_000, ns: 1}) for ns in maxima_ns]


maxima = st.lists(st.integers(10**6, 10**10), min_size=3, max_size=10)


def test_the_worst_round_against_the_median_one() -> None:
    found = over_time(rounds(1_000_000, 1_100_000, 900_000, 1_000_000, 4_000_000))
    assert found.value == pytest.approx(4, rel=0.02)
    assert found.low <= found.value <= found.high
    assert found.n == 5


@given(maxima)
def test_the_spread_over_time_is_at_least_one_and_knows_no_order(maxima_ns: list[int]) -> None:
    found = over_time(rounds(*maxima_ns))
    assert found == over_time(rounds(*sorted(maxima_ns)))
    assert 1 <= found.low <= found.value <= found.high


@given(maxima, maxima)
def test_between_arrays_nobody_is_first(one: list[int], other: list[int]) -> None:
    there, back = between(rounds(*one), rounds(*other)), between(rounds(*other), rounds(*one))
    assert (there.value, there.low, there.high) == pytest.approx((back.value, back.low, back.high))
    assert 1 <= there.low <= there.value <= there.high


def test_twice_as_slow_is_two() -> None:
    found = between(rounds(*[1_000_000] * 5), rounds(*[2_000_000] * 5))
    assert found.value == pytest.approx(2, rel=0.02)
    assert found.low == found.high == found.value


def test_the_interval_of_equal_arrays_reaches_down_to_one_nearly_always() -> None:
    source = random.Random(3)  # noqa: S311

    def array() -> list[LatencyHistogram]:
        return rounds(*(int(1e6 * math.exp(source.gauss(0, 0.4))) for _ in range(5)))

    assert sum(between(array(), array()).low > 1 for _ in range(500)) / 500 < 0.075


def test_too_little_is_refused() -> None:
    with pytest.raises(TooFew, match="at least 3 rounds, there are 2"):
        over_time(rounds(10**6, 10**6))
    with pytest.raises(TooFew, match="at least 2 rounds of each, there are 1"):
        between(rounds(10**6), rounds(10**6, 10**6))
    with pytest.raises(TooFew, match="1 of 4 rounds have no I/O"):
        over_time([*rounds(10**6, 10**6, 10**6), EMPTY])


def test_a_stall_that_fio_cannot_resolve_has_no_upper_bound() -> None:
    assert over_time(rounds(10**6, 10**6, LAST_BUCKET_NS)).high == math.inf
