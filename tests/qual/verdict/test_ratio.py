from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import assume, given
from support.builders import strategies

from pytest_ssdqual.qual.measured.histogram import bucket_of
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew, mean_of_rounds, student_t
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import multiplicity
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, NONE, Widening
from pytest_ssdqual.qual.verdict.ratio import ChangeKind, blurred, changes, paired, ratio, typical, widened

RUNS = 600


def iops(value: float, half: float, n: int = 10, **more: object) -> Estimate:
    return replace(Estimate(value, value - half, value + half, n, Unit.IOPS), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "scatter", "others", "other_scatter", "truth"),
    [(5, 0.02, 5, 0.02, 1.0), (10, 0.02, 5, 0.05, 0.9), (5, 0.002, 5, 0.05, 1.0), (20, 0.1, 20, 0.1, 2.0)],
)
def test_the_interval_covers_the_true_ratio_in_95_of_100_runs(
    n: int, scatter: float, others: int, other_scatter: float, truth: float
) -> None:
    """Simulated; below 93 % would be further from 95 % than 600 pairs of runs are by chance."""
    draw = random.Random(11)  # noqa: S311

    def run(mean: float, share: float, rounds: int) -> Estimate:
        return mean_of_rounds([draw.gauss(mean, mean * share) for _ in range(rounds)], Unit.IOPS)

    covered = 0
    for _ in range(RUNS):
        found = ratio(run(1000 * truth, scatter, n), run(1000, other_scatter, others))
        covered += found.low <= truth <= found.high
    assert 0.93 <= covered / RUNS <= 0.995


@given(strategies.estimates(), strategies.estimates())
def test_the_other_way_round_is_the_reciprocal(new: Estimate, old: Estimate) -> None:
    there, back = ratio(new, old), ratio(old, new)
    assert there.value * back.value == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)
    assert there.high * back.low == pytest.approx(1)


@given(strategies.estimates(), strategies.estimates())
def test_it_is_never_wider_than_by_the_ends(new: Estimate, old: Estimate) -> None:
    assume(new.low < new.value < new.high)
    alone = ratio(new, old)
    assert alone.low <= alone.value <= alone.high
    assert new.low / old.high <= alone.low * (1 + 1e-9)
    assert alone.high * (1 - 1e-9) <= new.high / old.low


def latency(value: float, low: float, high: float) -> Estimate:
    return Estimate(value, low, high, 10**6, Unit.NANOSECONDS)


def test_neighbouring_buckets_show_no_difference() -> None:
    """A latency at their edge is read half a bucket too low in one run and half a bucket too high in another."""
    below, above = (bucket_of(value) for value in (1_044_480, 1_056_768))
    assert below.high_ns == above.low_ns
    old, new = (latency(each.value_ns, each.low_ns, each.high_ns) for each in (below, above))
    found = ratio(new, old)
    assert found.low < 1 < found.high
    # The root of squares, as of chance, would have left out 1.
    assert math.exp(math.log(found.value) - math.hypot(*(math.log(each.value / each.low) for each in (old, new)))) > 1
    assert found.high / found.value == pytest.approx((1 - 1 / 128) ** -2)


def test_chance_is_combined_beside_what_buckets_leave_open() -> None:
    found = ratio(latency(1e6, 0.9e6, 1.1e6), latency(1e6, 0.9e6, 1.1e6))
    read = -math.log(1 - 1 / 128)
    wide = math.hypot(math.log(1.1) - read, -math.log(0.9) - read) + 2 * read
    assert math.log(found.high) == pytest.approx(wide)
    assert math.log(found.high) > math.hypot(math.log(1.1), math.log(0.9))


def test_equal_widths_combine_by_the_root_of_two() -> None:
    found = ratio(Estimate(100, 100 / 1.1, 110, 9, Unit.IOPS), Estimate(50, 50 / 1.1, 55, 9, Unit.IOPS))
    assert found.value == 2
    assert math.log(found.high / 2) == pytest.approx(math.sqrt(2) * math.log(1.1))
    assert math.log(2 / found.low) == pytest.approx(math.sqrt(2) * math.log(1.1))


def test_ends_of_a_reading_do_not_cancel() -> None:
    reading = iops(100, 10, is_reading=True)
    found = ratio(reading, iops(100, 10))
    assert found.is_reading
    assert found.low == pytest.approx(90 / 110)
    assert found.high == pytest.approx(110 / 90)


def test_an_open_end_leaves_the_ratio_open() -> None:
    assert ratio(iops(100, 100), iops(100, 1)).low == 0
    assert ratio(iops(100, 1), iops(100, 100)).high == math.inf
    assert ratio(replace(iops(100, 1), high=math.inf), iops(100, 1)).high == math.inf


def test_what_has_no_ratio_says_so() -> None:
    with pytest.raises(TooFew, match="have no ratio"):
        ratio(iops(0, 0), iops(1, 0))
    with pytest.raises(ValueError, match="estimate in IOPS"):
        ratio(iops(1, 0), replace(iops(1, 0), unit=Unit.NANOSECONDS))
    assert ratio(iops(99, 1), iops(100, 1), unit=Unit.PERCENT).value == pytest.approx(99)


def test_of_the_same_drives_only_their_change_counts() -> None:
    old = {"a": 100.0, "b": 200.0, "c": 400.0}
    new = {"a": 90.0, "b": 181.0, "c": 359.0}
    found = paired(new, old)
    assert found.n == 3
    assert found.low < 0.9 < found.high
    assert found.high / found.low < 1.03
    apart = ratio(typical(new.values(), Unit.IOPS), typical(old.values(), Unit.IOPS))
    assert apart.value == pytest.approx(found.value)
    assert apart.high / apart.low > 10
    with pytest.raises(TooFew, match="least 2 drives,"):
        paired({"a": 1.0, "x": 1.0}, old)
    with pytest.raises(TooFew, match="1 were given"):
        typical([5.0], Unit.IOPS)


def test_agreement_by_rounding_is_no_surer_than_the_rounds() -> None:
    old = {"a": 300.0, "b": 300.0, "c": 300.0, "d": 300.0}
    new = dict.fromkeys(old, 300.2)
    assert paired(new, old).low > 1
    one = Estimate(1, 1 / 1.01, 1.01, 5, Unit.RATIO)
    found = paired(new, old, least=one)
    assert found.low < 1 < found.high
    assert found.high / found.value == pytest.approx(1.01)


def test_what_was_read_of_the_same_drives_is_read() -> None:
    """Three drives whose slowest I/O was half as slow again each prove nothing of the next run."""
    read = Estimate(1.5, 1.4, 1.6, 5, Unit.RATIO, is_reading=True)
    found = paired({"a": 150.0, "b": 151.0, "c": 149.0}, {"a": 100.0, "b": 100.0, "c": 100.0}, least=read)
    assert found.is_reading
    assert found.low / found.value == pytest.approx(1.4 / 1.5)


def test_what_is_read_is_added_as_it_is() -> None:
    found = blurred(Estimate(1, 0.9, 1.1, 5, Unit.RATIO), math.log(1.02))
    assert (found.low, found.high) == pytest.approx((0.9 / 1.02, 1.1 * 1.02))


def test_scatter_from_run_to_run_is_added_as_a_variance() -> None:
    found = widened(iops(1000, 0.0001), 2)
    assert found.high == pytest.approx(1000 * 1.02**1.959964)
    assert widened(iops(1000, 30), 2).high == pytest.approx(
        1000 * math.exp(math.hypot(math.log(1.03), 1.959964 * math.log(1.02)))
    )
    assert widened(iops(1000, 30), 0) == iops(1000, 30)
    assert widened(iops(1000, 0.0001), 2, share=0.01).high == pytest.approx(1000 * 1.02**3.480756)
    assert widened(iops(1000, 30, is_reading=True), 2) == iops(1000, 30, is_reading=True)


def ratios(*values: float, half: float = 0.01, **more: object) -> list[Callable[[float], Estimate]]:
    """Of twenty rounds each."""
    return [
        partial(multiplicity.at, Estimate(each, each - half, each + half, 20, Unit.RATIO, **more), rungs(each, half))  # type: ignore[arg-type]
        for each in values
    ]


def rungs(value: float, half: float) -> tuple[Widening, ...]:
    wide = [(share, half * student_t(1 - 0.05 * share, 19) / student_t(0.95, 19)) for share in multiplicity.SHARES]
    return tuple(Widening(share, value - each, value + each) for share, each in wide)


def test_which_side_is_better_is_the_claims_to_say() -> None:
    up = [Direction.AT_LEAST] * 3
    assert [each.shown for each in changes(ratios(1.1, 1.0, 0.9), up, NONE)] == [
        ChangeKind.BETTER, ChangeKind.OPEN, ChangeKind.WORSE,
    ]  # fmt: skip
    down = [Direction.AT_MOST] * 3
    assert [each.shown for each in changes(ratios(1.1, 1.0, 0.9), down, NONE)] == [
        ChangeKind.WORSE, ChangeKind.OPEN, ChangeKind.BETTER,
    ]  # fmt: skip


def test_difference_stands_up_to_the_number_of_comparisons() -> None:
    one = changes(ratios(0.988), [Direction.AT_LEAST], BONFERRONI)[0]
    assert one.shown is ChangeKind.WORSE
    assert one.p_value is not None
    assert 0.01 < one.p_value < 0.05
    among = changes(ratios(0.988, *[1.0] * 99), [Direction.AT_LEAST] * 100, BONFERRONI)
    assert among[0].shown is ChangeKind.WORSE_ALONE
    assert among[0].p_value == one.p_value
    assert changes(ratios(0.9, *[1.0] * 99), [Direction.AT_LEAST] * 100, BONFERRONI)[0].shown is ChangeKind.WORSE


def test_readings_are_told_apart_and_not_counted() -> None:
    read = ratios(0.9, is_reading=True)
    found = changes([*read * 99, *ratios(0.988)], [Direction.AT_LEAST] * 100, BONFERRONI)
    assert {each.shown for each in found[:99]} == {ChangeKind.WORSE_READ}
    assert found[-1].shown is ChangeKind.WORSE
    assert found[0].p_value is None
