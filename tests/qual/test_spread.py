from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import EMPTY, histogram, interval, run

from pytest_ssdqual.qual.estimate import Estimate, TooFew
from pytest_ssdqual.qual.histogram import LAST_BUCKET_NS, LatencyHistogram
from pytest_ssdqual.qual.spread import between, between_members, over_time, worst_second
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload import Workload


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


def seconds(*iops: int) -> Estimate:
    return worst_second([run(iops)])


def test_the_worst_second_of_the_910s_sequential_writes() -> None:
    # Seed E-05: 256 KiB writes, 600 MB in the worst second, 1,228 MB in the mean one.
    writes = Workload("write", "256k", 1)
    per_s = [600, *[1_241] * 48, 1_260]
    found = worst_second([run([mb * 10**6 // 2**18 for mb in per_s], workload=writes)])
    assert found.value == pytest.approx(600 / 1_228, abs=0.005)
    assert found.low < found.value < found.high
    # One I/O of 256 KiB more or less in that second.
    assert found.high - found.low == pytest.approx(2 * 2**18 / 1_228e6, rel=0.01)
    assert (found.n, found.is_reading) == (50, True)


@given(st.lists(st.integers(1, 10**5), min_size=5, max_size=60), st.integers(1, 5))
def test_the_worst_second_survives_condensing(iops: list[int], rounds: int) -> None:
    whole = run(iops, rounds=rounds)
    found, kept = worst_second([whole]), worst_second([whole.condensed()])
    assert found.value == pytest.approx(min(iops) / (sum(iops) / len(iops)))
    assert kept.value == pytest.approx(found.value)
    assert 0 <= found.low <= found.value <= 1 + 1e-9


def test_the_worst_second_of_all_repeats_counts() -> None:
    assert worst_second([run([1_000] * 5), run([1_000, 1_000, 250, 1_000, 1_000])]).value == pytest.approx(250 / 925)
    assert seconds(1_000, 1_000, 0, 1_000, 1_000).value == 0
    assert seconds(1_000, 1_000, 0, 1_000, 1_000).low == 0


def test_a_sliver_of_time_is_no_second() -> None:
    true = run([1_000] * 5)
    sliver = (*true.intervals, interval(5.0, seconds=0.05, reads=1))
    assert worst_second([replace(true, intervals=sliver, window_s=6)]).value == pytest.approx(1, abs=0.01)
    only = (interval(0.0, seconds=0.3, reads=10),)
    assert worst_second([replace(true, intervals=only, window_s=0.3)]).value == 1


def test_what_was_never_transferred_has_no_worst_second() -> None:
    with pytest.raises(TooFew, match="the worst second needs I/Os"):
        seconds(0, 0, 0, 0, 0)


def about(iops: float, percent: float = 1.0) -> Estimate:
    return Estimate(iops, iops * (1 - percent / 100), iops * (1 + percent / 100), 5, Unit.IOPS)


def test_the_slowest_drive_is_held_against_the_median_one() -> None:
    found = between_members([about(1_000), about(600), about(1_010), about(990), about(5_000)])
    assert found.value == pytest.approx(0.6)
    assert found.low == pytest.approx(0.6 * 0.99 / 1.01)
    assert found.high == pytest.approx(0.6 * 1.01 / 0.99)
    assert between_members([about(1_000), about(500)]).value == pytest.approx(500 / 750)


@given(st.permutations([1_000.0, 400.0, 900.0, 1_100.0]), st.floats(0.01, 100))
def test_neither_the_order_nor_the_speed_of_the_drives_matters(iops: list[float], factor: float) -> None:
    found = between_members([about(each * factor) for each in iops])
    assert found.value == pytest.approx(400 / 950)
    assert found.low <= found.value <= found.high <= 1


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=24), st.floats(0, 50), st.data())
def test_the_true_spread_of_the_drives_is_inside(iops: list[float], percent: float, data: st.DataObject) -> None:
    found = between_members([about(each, percent) for each in iops])
    true = [each * (1 + data.draw(st.floats(-1, 1)) * percent / 100) for each in iops]
    assert found.low * (1 - 1e-9) <= min(true) / statistics.median(true) <= found.high * (1 + 1e-9)
    assert found.high <= 1


def test_one_drive_has_no_spread_and_idle_ones_neither() -> None:
    with pytest.raises(ValueError, match="the slowest of several drives was asked for, there are 1"):
        between_members([about(1_000)])
    with pytest.raises(TooFew, match="the median drive did no I/O"):
        between_members([about(0), about(0), about(1_000)])
    # A dead drive among sound ones is the worst there can be.
    assert between_members([about(0), about(1_000), about(1_000)]).high == 0
