from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import run, side_by_side

from pytest_ssdqual.qual.measured.saturation import BATCHES, RESPONSE_TIMES_S, Saturation, _batches
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.workload.workload import Workload

WRITE = Workload("randwrite", "4k", 8)


def saturation(iops: Sequence[int], capacities: float = 2.0, **changes: object) -> Saturation:
    """One sample a second; the capacity is such that ``capacities`` of it are written in all."""
    made = run(iops, workload=WRITE, rounds=len(iops))
    return replace(Saturation(made, max(1, round(sum(iops) * 4096 / capacities))), **changes)  # type: ignore[arg-type]


#: Seed C-02: about 2,700 IOPS fresh, 170 when the free blocks are used up.
STEC = [2_700] * 20 + [170] * 60


def test_the_published_cliff() -> None:
    found = saturation(STEC)
    assert found.fresh.value == 2_700
    assert found.settle().iops.value == 170
    cliff = found.cliff
    assert cliff is not None
    assert cliff.seconds == 20
    # 20 × 2,700 of the 64,200 I/Os that are two capacities.
    assert cliff.capacities == pytest.approx(2 * 54_000 / 64_200)
    after = found.cliff_after()
    assert after.value == cliff.capacities
    assert after.low == pytest.approx(2 * 51_300 / 64_200)
    assert after.high == pytest.approx(2 * 54_170 / 64_200)
    assert after.is_reading


def test_settled_is_where_the_first_steady_window_begins() -> None:
    found = saturation([2_700] * 20 + [100, 400, 100, 300, *[170] * 60])
    settled = found.settled
    assert settled is not None
    # 22 s: [100, 300, 170, 170, 170] is not steady yet, nor is [300, 170, …].
    assert settled.seconds == 24
    assert settled.capacities == pytest.approx(found.points[23].bytes_written / found.capacity_bytes)
    assert settled.iops.value == 170


def test_the_curve_is_of_samples_with_their_time_and_volume() -> None:
    points = saturation([100, 200, 300]).points
    assert [(each.seconds, each.iops) for each in points] == [(1, 100), (2, 200), (3, 300)]
    assert [each.bytes_written for each in points] == [409_600, 3 * 409_600, 6 * 409_600]


@given(st.lists(st.integers(0, 10**5), min_size=1, max_size=60), st.integers(1, 60))
def test_no_byte_is_lost_on_the_curve_and_none_comes_back(iops: list[int], rounds: int) -> None:
    points = replace(saturation([*iops, 1]), run=run([*iops, 1], workload=WRITE, rounds=rounds)).points
    written = [each.bytes_written for each in points]
    assert written == sorted(written)
    assert written[-1] == pytest.approx((sum(iops) + 1) * 4096)
    assert points[-1].seconds == pytest.approx(len(iops) + 1)


def test_there_are_no_more_points_than_reports() -> None:
    # A process that ended at its volume has fewer reports than the samples that were planned; a piece of a report
    # repeated would look steady.
    short = run([2_700, 1_500, 800, 400, 200], workload=WRITE, rounds=500)
    assert len(Saturation(short, 10**7).points) == 5


def test_samples_that_nobody_saw_are_no_samples() -> None:
    ended = run([1_000] * 10, workload=WRITE, rounds=10, window_s=20)
    points = Saturation(ended, 10**7).points
    assert [each.iops for each in points] == [1_000] * 5
    assert points[-1].bytes_written == 10_000 * 4096
    assert Saturation(replace(ended, intervals=()), 10**7).points == ()


def test_what_was_written_before_the_window_wears_too() -> None:
    ramped = run([1_000] * 10, workload=WRITE, rounds=8, ramp_s=2)
    points = Saturation(ramped, 10**7).points
    assert points[0].bytes_written == 3_000 * 4096
    assert points[0].seconds == 3


def test_a_condensed_run_has_the_same_curve() -> None:
    whole = saturation(STEC)
    assert replace(whole, run=whole.run.condensed()).points == whole.points


def test_response_times_are_those_of_the_last_20_minutes() -> None:
    minutes = [*[2_700] * 20, *[170] * 60]
    made = run([rate for rate in minutes for _ in range(60)], workload=WRITE, rounds=80)
    (last,) = Saturation(made, 10**7).response_times().runs
    assert (last.seconds, last.rounds) == (RESPONSE_TIMES_S, 20)
    assert last.counted[-1] == made.intervals[-1]
    assert last.round_iops() == (170,) * 20


def test_response_times_are_of_the_steady_state_alone() -> None:
    (last,) = saturation(STEC).response_times().runs
    assert last.counted[0].start_s == 20
    assert (last.seconds, last.rounds) == (60, 60)


def test_each_drive_side_by_side_has_its_own_response_times() -> None:
    whole = Saturation(side_by_side([STEC, STEC], workload=WRITE, rounds=80), 10**7)
    assert [each.response_times().runs[0].drive for each in whole.members()] == ["S0", "S1"]
    assert whole.response_times().latency.total == 2 * 60 * 170


def test_a_drive_without_a_cliff() -> None:
    found = saturation([1_000] * 40)
    assert found.cliff is None
    after = found.cliff_after()
    assert after.value == pytest.approx(2)
    assert after.high == math.inf
    # In the last five samples it might not have been seen.
    assert after.low == pytest.approx(2 * 35 / 40)
    assert found.fresh.value == found.settle().iops.value == 1_000
    assert found.settle().seconds == 0


def test_a_window_on_the_fresh_plateau_is_not_the_settled_state() -> None:
    # The cliff came right before the end: too late to be seen as one, and what is left had no time to settle.
    for late in range(1, 5):
        assert saturation([2_700] * 40 + [170] * late).settled is None
    assert saturation([2_700] * 40 + [170] * 3).cliff is None


def test_steady_values_before_the_cliff_are_not_settled() -> None:
    found = saturation([1_000] * 5 + [700, 1_000, 1_300, 1_000] * 8 + [100, 200] * 5)
    assert found.cliff is not None
    assert found.settled is None


def test_one_stall_does_not_unsettle_a_drive() -> None:
    for stalled in (30, 57):
        iops = STEC.copy()
        iops[stalled] = 20
        assert saturation(iops).settle().iops.value == pytest.approx(170, rel=0.02)


def test_an_earlier_level_is_not_mixed_into_the_settled_one() -> None:
    # 600 for a while, steady by the rule, before the free blocks ran out for good.
    found = saturation([2_700] * 20 + [170] * 10 + [600] * 10 + [170] * 30)
    settled = found.settle()
    assert settled.iops.value == 170
    assert settled.seconds == 40


@pytest.mark.parametrize(
    ("figure", "judged", "words"),
    [
        (Saturation.settle, saturation([1_000] * 40, capacities=0.9), "in 40 samples; nothing counts"),
        (Saturation.settle, saturation([round(3_000 * 0.9**index) for index in range(40)]), r"steady at 61\.6"),
        (Saturation.settle, saturation([1_000] * 4), "in 4 samples; nothing counts"),
        (Saturation.settle, saturation([2_700] * 40 + [170] * 3), "did not settle"),
        (Saturation.response_times, saturation([2_700] * 40 + [170] * 3), "did not settle"),
        (Saturation.cliff_after, saturation([1_000] * 4), "a cliff takes 8"),
        (lambda short: short.fresh, saturation([1_000]), "at least 2 rounds"),
    ],
    ids=range(7),
)
def test_a_curve_without_a_figure_says_why(
    figure: Callable[[Saturation], object], judged: Saturation, words: str
) -> None:
    with pytest.raises(TooFew, match=words):
        figure(judged)


def test_a_lower_gate_settles_earlier() -> None:
    assert saturation([1_000] * 40, capacities=0.9, gate_capacities=0.5).settled is not None


def test_fall_in_scatter_is_no_cliff_nor_the_lack_of_one() -> None:
    source = random.Random(8)  # noqa: S311
    iops = [round(3_000 * math.exp(-index / 30 + source.gauss(0, 0.8))) for index in range(90)]
    found = saturation(iops)
    assert found.cliff is None
    with pytest.raises(TooFew, match="scatter too much"):
        found.cliff_after()


@pytest.mark.parametrize("noise", [0.0, 0.03])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_decline_without_a_fresh_level_has_no_cliff(power: float, noise: float) -> None:
    source = random.Random(9)  # noqa: S311
    declined = [3 * (index / 90) ** power for index in range(90)]
    found = saturation([round(3_000 * math.exp(source.gauss(0, noise) - each)) for each in declined])
    assert found.cliff is None
    with pytest.raises(TooFew, match=r"\d\.\d, but gradually,"):
        found.cliff_after()
    # That of the first points, as without any fall.
    assert found.fresh.value == fmean(each.iops for each in found.points[:5])


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_of_two_falls_the_first_ends_the_fresh_level(noise: float) -> None:
    source = random.Random(10)  # noqa: S311
    levels = [5_000] * 12 + [2_000] * 40 + [600] * 60
    found = saturation([round(each * source.uniform(1 - noise, 1 + noise)) for each in levels])
    cliff = found.cliff
    assert cliff is not None
    assert cliff.seconds == 12
    assert found.fresh.value == pytest.approx(5_000, rel=noise + 1e-9)
    assert found.settle().iops.value == pytest.approx(600, rel=0.01)
    assert found.settle().seconds == 52


@given(st.integers(3, 40), st.integers(10, 60), st.integers(2, 30), st.integers(1, 5))
def test_cliff_is_where_it_was_put_in_capacities(fresh: int, after: int, factor: int, scale: int) -> None:
    iops = [100 * factor] * fresh + [100] * after
    found, larger = saturation(iops, 2.0), saturation(iops, 2.0 / scale)
    cliff = found.cliff
    assert cliff is not None
    assert cliff.seconds == fresh
    assert cliff.low_capacities < cliff.capacities < cliff.high_capacities
    assert larger.cliff is not None
    assert larger.cliff.capacities == pytest.approx(cliff.capacities / scale, rel=1e-3)


@given(st.lists(st.floats(1, 1e6), max_size=500))
def test_batches_are_few_and_keep_the_mean(values: list[float]) -> None:
    found = _batches(values)
    assert len(found) == len(values) if len(values) <= BATCHES else BATCHES / 2 <= len(found) <= BATCHES
    size = -(-len(values) // BATCHES) or 1
    kept = values[len(values) % size :]
    assert sum(found) * size == pytest.approx(sum(kept))


def test_drives_side_by_side_have_each_their_curve() -> None:
    together = side_by_side([STEC, [1_000] * 80], workload=WRITE, rounds=80)
    found = Saturation(together, 2 * 10**8)
    slow, sound = found.members()
    assert slow.capacity_bytes == sound.capacity_bytes == 10**8
    assert slow.cliff is not None
    assert sound.cliff is None
    assert slow.settle().iops.value == 170
    array = saturation(STEC)
    assert array.members() == (array,)
