from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders.strategies import EMPTY, about, interval, run, visited, watched

from pytest_ssdqual.qual.measured.histogram import LAST_BUCKET_NS
from pytest_ssdqual.qual.measured.interval import Interval, Spell
from pytest_ssdqual.qual.measured.run import Measured, Run, Visited
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel, Estimate, student_t
from pytest_ssdqual.qual.stats.intervals import Basis
from pytest_ssdqual.qual.stats.spread import (
    RareEvents,
    SpellMaxima,
    between,
    between_drives,
    between_members,
    studentized_range,
)
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload


def rounds(*maxima_ns: int, seconds: float = 120.0, at: Visited | None = None, confidence: float = 0.95) -> SpellMaxima:
    """The slowest I/Os of spells."""
    return SpellMaxima(maxima_ns, seconds, Basis(ConfidenceLevel(confidence), visited=at))


def drawn(source: random.Random, count: int, scatter: float = 0.4, factor: float = 1.0) -> list[int]:
    return [int(1e6 * factor * math.exp(source.gauss(0, scatter))) for _ in range(count)]


SURE = visited(level=0.99)
maxima = st.lists(st.integers(10**6, 10**10), min_size=3, max_size=10)


def spread(
    *maxima_ns: int, per_hour: float = 10, at: Visited | None = None, confidence_level: ConfidenceLevel = USUAL
) -> Estimate:
    return RareEvents(watched(maxima_ns, of_visits=at), confidence_level, per_hour).over_time()


def test_spread_is_of_ten_an_hour_over_the_median() -> None:
    even = [2_000_000] * 36
    calm, stalled = spread(*even), spread(*([20_000_000] + [2_000_000] * 3) * 8, *even[:4])
    assert calm.value == pytest.approx(1, abs=0.02)
    assert (calm.low, calm.n) == (1, 36)
    assert calm.high < 1.05
    # Eight of 36 minutes have a stall: 15 an hour are likely, and more than ten not certain.
    assert stalled.value == pytest.approx(10, rel=0.03)
    assert (stalled.low, stalled.is_reading) == (1, False)
    # Of three hours with the same share it is.
    assert spread(*([2_000_000] * 2 + [20_000_000]) * 60).low > 9.5
    assert "spells of 10" in str(calm)


def test_rare_stall_counts_only_for_a_stricter_rate() -> None:
    even = [2_000_000] * 60
    assert spread(*even[:-1], 900_000_000).high < 1.05
    # Promised less than once in two minutes: none at all can be allowed for.
    assert spread(*even[:-1], 900_000_000, per_hour=4).high > 400


@settings(max_examples=30)
@given(st.integers(3, 60), st.sampled_from([4.0, 10.0]))
def test_upper_end_is_open_only_after_too_short_a_time(count: int, per_hour: float) -> None:
    found = spread(*[2_000_000] * count, per_hour=per_hour)
    assert math.isinf(found.high) == bool(found.unbounded)


@settings(max_examples=30)
@given(st.lists(st.integers(2 * 10**6, 10**10), min_size=10, max_size=40))
def test_spread_over_time_is_at_least_one(maxima_ns: list[int]) -> None:
    found = spread(*maxima_ns, per_hour=30)
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
    assert found.basis == "spells of 2 min"


def test_equal_arrays_hardly_ever_differ() -> None:
    source = random.Random(3)  # noqa: S311
    equal = (between(rounds(*drawn(source, 5)), rounds(*drawn(source, 5))) for _ in range(500))
    assert sum(each.low > 1 for each in equal) / 500 < 0.075


def test_dependent_blocks_are_not_taken_for_independent() -> None:
    # Four blocks in a row share one condition: taken one by one, twice as many equal arrays seem to differ.
    source = random.Random(8)  # noqa: S311

    def array(at: Visited) -> SpellMaxima:
        return rounds(*(each for each in drawn(source, 10) for _ in range(4)), seconds=12.0, at=at)

    level = visited(level=0.95)
    wrong = sum(between(array(level), array(level)).low > 1 for _ in range(300)) / 300
    assert wrong < 0.08


def test_a_spread_is_as_sure_as_all_looks_together_need() -> None:
    source = random.Random(9)  # noqa: S311
    one, other = drawn(source, 40), drawn(source, 40)
    early, late = (between(rounds(*one, at=at), rounds(*other, at=at)) for at in (SURE, visited(level=0.95)))
    assert early.high > late.high
    assert early.confidence == late.confidence == 0.95  # of all looks together


def test_rounds_of_unequal_length_are_compared_both_ways() -> None:
    source = random.Random(10)  # noqa: S311
    short, long = drawn(source, 40), drawn(source, 40)
    found = between(rounds(*short, seconds=12, at=SURE), rounds(*long, seconds=18, at=SURE))
    single, double = (
        between(rounds(*ns, seconds=18, at=SURE), rounds(*long, seconds=18, at=SURE))
        for ns in (short, [max(short[at : at + 2]) for at in range(0, 40, 2)])
    )
    assert found.low == min(single.low, double.low)
    assert found.high == max(single.high, double.high)
    assert found.basis == "spells of 18 s"
    # Nearly twice as long is twice as long.
    twice = between(rounds(*short, seconds=12, at=SURE), rounds(*long, seconds=24.1, at=SURE))
    assert twice.high == double.high


MINUTES = [10**6] * 40


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda: spread(2 * 10**6, 2 * 10**6), "3 spells, there are 2"),
        (lambda: between(rounds(10**6), rounds(10**6, 10**6)), "there are 1 as long"),
        (lambda: between(rounds(*MINUTES, seconds=12), rounds(*MINUTES, seconds=360)), "2 rounds of each"),
        (lambda: SpellMaxima.of(watched([*MINUTES[:3], EMPTY], of_visits=visited()), USUAL), "1 of 4 spells"),
        (lambda: between_drives([rounds(10**6), rounds(10**6)]), "2 rounds, there are 1"),
        (lambda: between_drives([rounds(10**6, 10**6)]), "at least 2 drives"),
        (lambda: RareEvents(watched([EMPTY] * 10), USUAL, 10).max_latency(), "maximum latency needs"),
        (lambda: worst(run([0] * 5)), "worst second needs"),
        (lambda: between_members([about(1_000, 1)]), "slowest drive needs"),
        (lambda: between_members([about(0, 1), about(0, 1), about(1_000, 1)]), "did no I/O"),
    ],
)
def test_too_little_is_refused(refused: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        refused()


def test_a_stall_that_fio_cannot_resolve_has_no_upper_bound() -> None:
    assert spread(*[LAST_BUCKET_NS] * 40).high == math.inf


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
    assert (found.n, found.unit, found.basis) == (9, Unit.RATIO, "spells of 2 min")


def test_common_stalls_are_no_spread_of_drives() -> None:
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
    for _ in range(100):
        drives = [rounds(*drawn(source, 5)) for _ in range(7)]
        found = between_drives([*drives, rounds(*drawn(source, 5, 0.4 * noisy, factor))])
        hits += found.low <= factor <= found.high
    assert hits / 100 >= 0.9


def test_every_claim_about_extremes_uses_the_level_of_all_looks() -> None:
    """Half an hour without a stall: long enough to pass ten an hour at 90 %, not at 99.99 %."""
    strict, late = visited(level=0.9999), visited(level=0.9)
    for estimate in (RareEvents.max_latency, RareEvents.over_time):
        early, decided = (
            estimate(RareEvents(watched([50_000_000] * 30, of_visits=at), USUAL, 10)) for at in (strict, late)
        )
        assert (math.isinf(early.high), math.isfinite(decided.high)) == (True, True)
    for estimate in (RareEvents.worst_second, RareEvents.slowest_second, RareEvents.fastest_second):
        early, decided = (
            estimate(RareEvents(Measured((run([1_000] * 1_800),), at), USUAL, 10)) for at in (strict, late)
        )
        assert early != decided


def test_a_maximum_is_what_is_exceeded_ten_times_an_hour() -> None:
    found = RareEvents(watched([50_000_000] * 40), USUAL, 10).max_latency()
    assert found.low <= 50_000_000 < found.high
    assert found.high / found.low < 1 + 1 / 63
    assert (found.is_reading, found.n) == (False, 40)
    assert str(found).endswith(", exceeded 10 times an hour)")


def worst(*runs: Run, per_hour: float = 3_600) -> Estimate:
    return RareEvents(Measured(runs), USUAL, per_hour).worst_second()


def test_the_worst_second_of_the_910s_sequential_writes() -> None:
    # Seed E-05: 256 KiB writes, 600 MB in the worst second of each minute, 1,228 MB in the mean one.
    found = worst(*written([600, *[1_241] * 48, *[1_237] * 11]).runs, per_hour=10)
    assert found.value == pytest.approx(600 / 1_228, abs=0.005)
    assert found.low < found.value < found.high
    # One I/O of 256 KiB more or less in that second.
    assert found.high - found.low == pytest.approx(2 * 2**18 / 1_228e6, rel=0.02)
    assert (found.n, found.is_reading) == (240, False)


def written(mb_per_s: list[int]) -> Measured:
    """Forty minutes of sequential writes of 256 KiB, each of them like this."""
    iops = [mb * 10**6 // 2**18 for mb in mb_per_s * 40]
    return Measured((run(iops, workload=Workload("write", "256k", 1)),))


def test_the_fastest_and_slowest_second_of_the_910s_writes() -> None:
    # Seed E-05: 600 to 1,800 MB/s, "about three times".
    uneven = written([600, *[1_220] * 48, *[1_237] * 10, 1_800])
    events = RareEvents(uneven, USUAL, 10)
    fastest, slowest, apart = events.fastest_second(), events.slowest_second(), events.fastest_to_slowest()
    assert (fastest.value, slowest.value) == pytest.approx((1.8e9, 0.6e9), rel=0.005)
    assert apart.low < 3 < apart.high
    assert apart.value == pytest.approx(3, rel=0.01)
    assert (fastest.unit, apart.unit) == (Unit.BYTES_PER_SECOND, Unit.RATIO)


@given(
    st.sampled_from([RareEvents.worst_second, RareEvents.fastest_second]),
    st.lists(st.integers(0, 10**5), min_size=30, max_size=60).filter(any),
    st.integers(1, 5),
)
def test_seconds_survive_condensing(second: Callable[..., Estimate], iops: list[int], rounds: int) -> None:
    whole = run(iops, rounds=rounds)
    plain, condensed = (second(RareEvents(Measured((each,)), USUAL, 3_600)) for each in (whole, whole.condensed()))
    assert (condensed.value, condensed.low, condensed.high) == pytest.approx((plain.value, plain.low, plain.high))
    assert 0 <= plain.low <= plain.value <= plain.high


def test_a_report_of_five_seconds_hides_the_fastest_one() -> None:
    assert Spell.of(0.0, 5.0, 5_000, 1).fastest_high == 5_000
    assert Spell.of(0.0, 5.0, 5_000, 1).fastest_low == 1_000


def test_nothing_behind_the_ramp_is_left_out_of_the_worst_second() -> None:
    standing = replace(run([1_000] * 100 + [0] * 5 + [1_000] * 2_395), spell_length_s=10.0)
    assert worst(standing, per_hour=1).low == 0
    assert min(each.slowest_high for each in standing.spells) == 0
    assert max(SpellMaxima.of(Measured((standing,)), USUAL).maxima_ns) < 10**7


def test_a_second_is_a_second_however_often_fio_reports() -> None:
    """Three seconds without an I/O read 0.4 where fio reports every five: then nothing good is certain."""
    rates = [1_000] * 100 + [0] * 3 + [1_000] * 197
    every = run(rates)
    fives = tuple(
        Interval(each, 5.0, sum(rates[each : each + 5]), 0, 4096 * sum(rates[each : each + 5]), 0, EMPTY, EMPTY)
        for each in range(0, 300, 5)
    )
    seldom = replace(every, intervals=fives)
    assert worst(every, per_hour=12).low == 0
    assert worst(seldom, per_hour=12).low == 0
    assert worst(replace(seldom, intervals=fives[:20]), per_hour=200).low == 0
    assert worst(every, per_hour=1_200).low > 0.9


def test_the_worst_seconds_of_all_repeats_count() -> None:
    even, uneven = run([1_000] * 30), run([1_000] * 20 + [250] * 10)
    assert worst(even, even, per_hour=600).value == pytest.approx(1)
    assert worst(even, uneven, per_hour=600).value < 0.4
    assert worst(run([0] * 29 + [1_000]), per_hour=600).low == 0


def test_a_sliver_of_time_is_no_second() -> None:
    true = run([1_000] * 30)
    sliver = (*true.intervals, interval(30.0, seconds=0.05, reads=1))
    assert worst(replace(true, intervals=sliver, window_s=31), per_hour=600).value == pytest.approx(1, abs=0.01)


def test_the_slowest_drive_is_held_against_the_median_one() -> None:
    found = between_members([about(1_000, 1), about(600, 1), about(1_010, 1), about(990, 1), about(5_000, 1)])
    others = 1_005  # the median of 990, 1,000, 1,010 and 5,000
    assert found.value == pytest.approx(600 / others)
    assert found.low == pytest.approx(600 / others * 0.99 / 1.01)
    assert found.high == pytest.approx(600 / others * 1.01 / 0.99)


@pytest.mark.parametrize("iops", [(1_000, 680), (1_000, 680, 1_000), (1_000, 1_000, 680, 1_000)])
def test_slow_drive_is_compared_with_the_others_only(iops: tuple[float, ...]) -> None:
    assert between_members([about(each, 1) for each in iops]).value == pytest.approx(0.68)
    # A dead drive is the worst there can be.
    assert between_members([about(each * (each > 680)) for each in iops]).high == 0


def test_that_one_drive_is_too_slow_has_to_be_sure_among_all() -> None:
    alone, together = ([about(iops, percent) for iops in (1_000, 600, 1_010)] for percent in (1.0, 2.0))
    found, naive = between_members(alone, together), between_members(alone)
    assert found.low == naive.low
    assert found.high == pytest.approx(600 / 1_005 * 1.02 / 0.98)
    assert found.high > naive.high


@given(st.permutations([1_000.0, 400.0, 900.0, 1_100.0]), st.floats(0.01, 100))
def test_neither_the_order_nor_the_speed_of_the_drives_matters(iops: list[float], factor: float) -> None:
    found = between_members([about(each * factor, 1) for each in iops])
    assert found.value == pytest.approx(400 / 1_000)
    assert found.low <= found.value <= found.high <= 1


def _of_others(iops: list[float]) -> float:
    ordered = sorted(iops)
    return ordered[0] / statistics.median(ordered[1:])


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=24), st.floats(0, 50), st.data())
def test_the_true_spread_of_the_drives_is_inside(iops: list[float], percent: float, data: st.DataObject) -> None:
    found = between_members([about(each, percent) for each in iops])
    true = [each * (1 + data.draw(st.floats(-1, 1)) * percent / 100) for each in iops]
    assert found.low * (1 - 1e-9) <= _of_others(true) <= found.high * (1 + 1e-9)
    assert found.high <= 1
