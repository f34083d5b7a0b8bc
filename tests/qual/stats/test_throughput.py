from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.builders.strategies import run

from pytest_ssdqual.qual.measured.run import Look, Measured
from pytest_ssdqual.qual.stats import batch_means
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, TooFew
from pytest_ssdqual.qual.stats.throughput import iops, read_iops, throughput, write_iops
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

LOOK = Look(1, 14, 0.99, 0.0)


def looked(rates: list[int], look: Look | None = LOOK, workload: Workload | None = None) -> Measured:
    return Measured((replace(run(rates, rounds=40, workload=workload), look=look),))


def noisy(seed: int, count: int, correlation: float = 0.0, mean: int = 5_000) -> list[int]:
    """One value a second, as an autoregressive process of the first order: 4 % of scatter."""
    source, state, found = random.Random(seed), 0.0, []  # noqa: S311
    for _ in range(count):
        state = correlation * state + (1 - correlation**2) ** 0.5 * source.gauss(0, 0.04)
        found.append(round(mean * (1 + state)))
    return found


def test_iops_of_a_look_are_ios_over_seconds_of_its_blocks() -> None:
    rates = noisy(1, 400)
    found = iops(looked(rates))
    expected = batch_means.bounds([sum(rates[at : at + 10]) for at in range(0, 400, 10)], [10.0] * 40, 400.0, LOOK)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))
    assert (found.n, found.unit, found.confidence) == (40, Unit.IOPS, 0.95)


def test_a_look_and_rounds_find_the_same_value_and_another_interval() -> None:
    rates = noisy(2, 400)
    look, fixed = iops(looked(rates)), iops(looked(rates, None))
    assert look.value == pytest.approx(fixed.value)
    assert look.high - look.low > fixed.high - fixed.low


def test_seconds_that_hang_together_widen_the_interval_of_a_look() -> None:
    def width(correlation: float) -> float:
        each = [iops(looked(noisy(seed, 4_000, correlation))) for seed in range(12)]
        return sum(one.high - one.low for one in each)

    assert width(0.99) > 3 * width(0.0)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_the_interval_of_a_look_holds_the_truth_at_least_as_often_as_it_says(correlation: float) -> None:
    found = [iops(looked(noisy(seed, 400, correlation), replace(LOOK, level=0.95))) for seed in range(200)]
    # Of 200 fair draws at 95 %, fewer than 182 hits come once in a hundred times.
    assert sum(each.low <= 5_000 <= each.high for each in found) >= 182


def test_more_time_never_widens_the_interval_of_a_look_beyond_noise() -> None:
    def width(seconds: int) -> float:
        each = [iops(looked(noisy(seed, seconds, 0.5))) for seed in range(20)]
        return sum((one.high - one.low) / one.value for one in each) / 20

    widths = [width(seconds) for seconds in (400, 800, 1_600, 3_200)]
    assert widths == sorted(widths, reverse=True)


def test_directions_and_bytes_are_of_the_look_too() -> None:
    mixed = looked(noisy(3, 400), workload=Workload("randrw", "4k", 8, 70))
    reads, writes, both = read_iops(mixed), write_iops(mixed), iops(mixed)
    assert reads.value + writes.value == pytest.approx(both.value)
    assert reads.value == pytest.approx(0.7 * both.value, rel=0.01)
    assert throughput(mixed).value == pytest.approx(4096 * both.value)
    assert throughput(mixed).unit is Unit.BYTES_PER_SECOND
    assert {each.n for each in (reads, writes, throughput(mixed))} == {40}
    with pytest.raises(ValueError, match="has no writes"):
        write_iops(looked(noisy(3, 400)))


def test_warm_up_at_the_head_does_not_count() -> None:
    rates = noisy(4, 400)
    headed = iops(looked([20_000] * 40 + rates[40:], replace(LOOK, head=4)))
    assert headed.value == pytest.approx(sum(rates[40:]) / 360)
    assert headed.n == 36


def test_a_stretch_without_io_has_zero_iops() -> None:
    found = iops(looked([0] * 400))
    assert (found.low, found.value, found.high) == (0, 0, 0)


def test_the_confidence_is_carried() -> None:
    assert iops(looked([1_000] * 400, None), ConfidenceLevel(0.9)).confidence == 0.9
    assert iops(looked([1_000] * 400), ConfidenceLevel(0.9)).confidence == 0.9
    with pytest.raises(TooFew, match="at least 16 blocks"):
        iops(Measured((replace(run([1_000] * 5), look=LOOK),)))
