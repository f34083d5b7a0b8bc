from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import EMPTY, histogram, interval, run

from pytest_ssdqual.qual.basis import Basis
from pytest_ssdqual.qual.estimate import Estimate, Sureness, TooFew, student_t
from pytest_ssdqual.qual.histogram import LAST_BUCKET_NS
from pytest_ssdqual.qual.look import Look
from pytest_ssdqual.qual.measurement import Measured
from pytest_ssdqual.qual.spread import (
    Slowest,
    between,
    between_drives,
    between_members,
    over_time,
    round_maxima_ns,
    studentized_range,
    worst_second,
)
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload import Workload


def rounds(*maxima_ns: int, seconds: float = 120.0, look: Look | None = None, confidence: float = 0.95) -> Slowest:
    """The slowest I/Os of rounds, or of a look's blocks."""
    return Slowest(maxima_ns, seconds, Basis(Sureness(confidence), look))


def drawn(source: random.Random, count: int, scatter: float = 0.4, factor: float = 1.0) -> list[int]:
    return [int(1e6 * factor * math.exp(source.gauss(0, scatter))) for _ in range(count)]


LOOK = Look(2, 14, 0.99, 60.0)
maxima = st.lists(st.integers(10**6, 10**10), min_size=3, max_size=10)


def test_the_worst_round_against_the_median_one() -> None:
    found = over_time(rounds(1_000_000, 1_100_000, 900_000, 1_000_000, 4_000_000))
    assert found.value == pytest.approx(4, rel=0.02)
    assert found.low <= found.value <= found.high
    assert found.n == 5
    assert str(found) == "4.00 × (3.97…4.03 × as read, rounds of 2 min)"


@given(maxima)
def test_the_spread_over_time_is_at_least_one_and_knows_no_order(maxima_ns: list[int]) -> None:
    found = over_time(rounds(*maxima_ns))
    assert found == over_time(rounds(*sorted(maxima_ns)))
    assert 1 <= found.low <= found.value <= found.high


def test_blocks_of_a_look_are_pooled_into_ten_rounds() -> None:
    # One stall of a block in four is what every round of four blocks has.
    blocks = [4_000_000, 1_000_000, 1_000_000, 1_000_000] * 10
    found = over_time(rounds(*blocks, seconds=12.0, look=LOOK))
    assert (found.value, found.n, found.basis) == (1.0, 10, "rounds of 48 s")
    assert over_time(rounds(*blocks, seconds=12.0)).value == pytest.approx(4, rel=0.02)


@given(maxima, maxima)
def test_between_arrays_nobody_is_first(one: list[int], other: list[int]) -> None:
    there, back = between(rounds(*one), rounds(*other)), between(rounds(*other), rounds(*one))
    assert (there.value, there.low, there.high) == pytest.approx((back.value, back.low, back.high))
    assert 1 <= there.low <= there.value <= there.high


def test_twice_as_slow_is_two() -> None:
    found = between(rounds(*[1_000_000] * 5), rounds(*[2_000_000] * 5))
    assert found.value == pytest.approx(2, rel=0.02)
    assert found.low == found.high == found.value
    assert found.basis == "rounds of 2 min"


def test_the_interval_of_equal_arrays_reaches_down_to_one_nearly_always() -> None:
    source = random.Random(3)  # noqa: S311
    equal = (between(rounds(*drawn(source, 5)), rounds(*drawn(source, 5))) for _ in range(500))
    assert sum(each.low > 1 for each in equal) / 500 < 0.075


def test_blocks_that_hang_together_are_not_taken_for_independent_ones() -> None:
    # Four blocks in a row share one condition: taken one by one, twice as many equal arrays seem to differ.
    source = random.Random(8)  # noqa: S311

    def array(look: Look | None) -> Slowest:
        return rounds(*(each for each in drawn(source, 10) for _ in range(4)), seconds=12.0, look=look)

    level = Look(1, 1, 0.95, 0.0)
    wrong = {look: sum(between(array(look), array(look)).low > 1 for _ in range(300)) / 300 for look in (level, None)}
    assert wrong[level] < 0.08
    assert wrong[None] > 0.2


def test_a_look_is_as_sure_as_it_has_to_be() -> None:
    source = random.Random(9)  # noqa: S311
    one, other = drawn(source, 40), drawn(source, 40)
    early, late = (between(rounds(*one, look=look), rounds(*other, look=look)) for look in (LOOK, Look(1, 1, 0.95, 0)))
    assert early.high > late.high
    assert early.confidence == late.confidence == 0.95  # of all looks together


def test_rounds_of_unequal_length_are_compared_both_ways() -> None:
    source = random.Random(10)  # noqa: S311
    short, long = drawn(source, 40), drawn(source, 40)
    found = between(rounds(*short, seconds=12, look=LOOK), rounds(*long, seconds=18, look=LOOK))
    single, double = (
        between(rounds(*ns, seconds=18, look=LOOK), rounds(*long, seconds=18, look=LOOK))
        for ns in (short, [max(short[at : at + 2]) for at in range(0, 40, 2)])
    )
    assert found.low == min(single.low, double.low)
    assert found.high == max(single.high, double.high)
    assert found.basis == "rounds of 18 s"
    # Nearly twice as long is twice as long.
    twice = between(rounds(*short, seconds=12, look=LOOK), rounds(*long, seconds=24.1, look=LOOK))
    assert twice.high == double.high


def test_too_little_is_refused() -> None:
    with pytest.raises(TooFew, match="at least 3 rounds, there are 2"):
        over_time(rounds(10**6, 10**6))
    with pytest.raises(TooFew, match="at least 2 rounds of each, there are 1 as long as those of the other"):
        between(rounds(10**6), rounds(10**6, 10**6))
    with pytest.raises(TooFew, match="at least 2 rounds of each, there are 1"):
        between(rounds(*[10**6] * 40, seconds=12), rounds(*[10**6] * 40, seconds=360))
    with pytest.raises(TooFew, match="1 of 4 rounds have no I/O"):
        round_maxima_ns([histogram({10**6: 1}), histogram({10**6: 1}), histogram({10**6: 1}), EMPTY])
    with pytest.raises(TooFew, match="spread between drives needs at least 2 rounds, there are 1"):
        between_drives([rounds(10**6), rounds(10**6)])
    with pytest.raises(ValueError, match="between several drives was asked for, there are 1"):
        between_drives([rounds(10**6, 10**6)])


def test_a_stall_that_fio_cannot_resolve_has_no_upper_bound() -> None:
    assert over_time(rounds(10**6, 10**6, LAST_BUCKET_NS)).high == math.inf


# Between drives


def test_the_studentised_range_as_tabulated() -> None:
    assert studentized_range(0.95, 3, 12) == pytest.approx(3.77, abs=0.005)
    assert studentized_range(0.99, 8, 60) == pytest.approx(5.25, abs=0.005)
    # Of two groups it is Student's t times the root of 2.
    assert studentized_range(0.95, 2, 8) == pytest.approx(student_t(0.95, 8) * math.sqrt(2), rel=1e-4)


def test_the_spread_between_drives_by_hand() -> None:
    # Logarithms with means 0, 0 and 3, of rounds 1, 1, 1: what neither explains is ±1 in two rounds of the first two.
    logs = [(1, -1, 0), (-1, 1, 0), (3, 3, 3)]
    drives = [rounds(*(round(1e9 * math.exp(each)) for each in of_drive)) for of_drive in logs]
    found = between_drives(drives)
    # Squares of 4, (3 - 1)(3 - 1) degrees of freedom, and q of 3 groups and 4 degrees of freedom is 5.04.
    assert math.log(found.value) == pytest.approx(3, abs=1e-6)
    assert math.log(found.high) == pytest.approx(3 + 5.04 * math.sqrt(4 / 4 / 3), abs=2e-3)
    assert math.log(found.low) == pytest.approx(3 - 5.04 * math.sqrt(4 / 4 / 3), abs=2e-3)
    assert (found.n, found.unit, found.basis) == (9, Unit.RATIO, "rounds of 2 min")


def test_what_stalls_all_drives_at_once_says_nothing_of_their_spread() -> None:
    source = random.Random(14)  # noqa: S311
    logs = [drawn(source, 5, 0.05) for _ in range(4)]
    stalled = [[each * (100 if index == 2 else 1) for index, each in enumerate(of_drive)] for of_drive in logs]
    calm, found = (between_drives([rounds(*each) for each in drives]) for drives in (logs, stalled))
    assert (found.value, found.low, found.high) == pytest.approx((calm.value, calm.low, calm.high), rel=1e-3)


@given(st.permutations([1.0, 1.3, 2.0, 0.9]), st.floats(0.1, 100))
def test_neither_the_order_nor_the_latency_of_the_drives_matters(factors: list[float], by: float) -> None:
    even = [10**6, 2 * 10**6, 3 * 10**6]
    found = between_drives([rounds(*(round(each * factor * by) for each in even)) for factor in factors])
    assert found.value == pytest.approx(2.0 / 0.9, rel=1e-4)
    assert 1 <= found.low <= found.value <= found.high


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("noisy", [1.0, 2.0])
def test_the_true_spread_of_drives_is_inside_as_often_as_it_says(factor: float, noisy: float) -> None:
    # Seven equal drives, and one that is slower and scatters more.
    source = random.Random(11)  # noqa: S311
    hits = 0
    for _ in range(200):
        drives = [rounds(*drawn(source, 5)) for _ in range(7)]
        found = between_drives([*drives, rounds(*drawn(source, 5, 0.4 * noisy, factor))])
        hits += found.low <= factor <= found.high
    assert hits / 200 >= 0.9


def test_a_bad_drive_is_found_by_a_longer_measurement() -> None:
    source = random.Random(12)  # noqa: S311
    drives = [drawn(source, 20, factor=factor) for factor in (1, 1, 1, 1, 1, 1, 1, 2.5)]
    assert between_drives([rounds(*each) for each in drives]).low > 1.5
    assert between_drives([rounds(*each) for each in drives[:-1]]).low == 1


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


def test_warm_up_at_the_head_of_a_look_does_not_count() -> None:
    headed = Basis(look=Look(1, 14, 0.99, 0.0, head=1), seconds=20)
    whole = run([100] * 4 + [1_000] * 16)
    assert worst_second([whole], headed).value == 1
    assert worst_second([whole.condensed()], headed).value == 1
    assert worst_second([whole]).value < 0.2
    # At a depth of 8, 100 IOPS are 80 ms.
    assert max(Slowest.of(Measured((whole,)), headed).maxima_ns) == pytest.approx(8e6, rel=0.01)
    assert len(Slowest.of(Measured((whole,)), headed).maxima_ns) == 4


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


def test_that_one_drive_is_too_slow_has_to_be_sure_among_all() -> None:
    alone, together = ([about(iops, percent) for iops in (1_000, 600, 1_010)] for percent in (1.0, 2.0))
    found, naive = between_members(alone, together), between_members(alone)
    assert found.low == naive.low
    assert found.high == pytest.approx(0.6 * 1.02 / 0.98)
    assert found.high > naive.high


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
