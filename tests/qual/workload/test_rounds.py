from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import run, side_by_side

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.workload.rounds import Round, Rounds, RoundsResult, Stimulus, Tracked, settled, states
from pytest_ssdqual.qual.workload.workload import Workload

RULE = SteadyRule()
WRITE, MIX, READ = Workload("randwrite", "4k", 8), Workload("randrw", "64k", 8, 65), Workload("read", "1m", 8)
LOOP = Rounds("iops", (READ, MIX, WRITE), (Tracked(WRITE, "steady_iops"), Tracked(READ, "throughput")), fill_bs="128k")


def one_round(reads: int, mixed: int, writes: int) -> Round:
    return tuple(
        run([rate] * 3, workload=each, rounds=1) for each, rate in ((READ, reads), (MIX, mixed), (WRITE, writes))
    )


def rounds_of(writes: Sequence[int], reads: Sequence[int] | None = None) -> tuple[Round, ...]:
    return tuple(one_round(r, 500, w) for r, w in zip(reads or [300] * len(writes), writes, strict=True))


def result(writes: Sequence[int], reads: Sequence[int] | None = None) -> RoundsResult:
    return RoundsResult(Geometry.parse("drivex1"), LOOP, rounds_of(writes, reads), RULE)


def test_settled_when_the_last_five_rounds_are_steady() -> None:
    writes = [4_000, 2_500, 1_500, 1_000, 1_020, 980, 1_010, 990]
    rounds = rounds_of(writes)
    assert [settled(LOOP, rounds[:end], RULE) is not None for end in range(9)] == [False] * 8 + [True]
    found = settled(LOOP, rounds, RULE)
    assert found is not None
    assert [each.values for each in found] == [(1_000, 1_020, 980, 1_010, 990), (300 * 2**20,) * 5]


def test_all_that_is_tracked_has_to_be_steady_in_the_same_window() -> None:
    # Writes are steady in rounds 1 to 5 and not after, reads in rounds 4 to 8 and not before.
    writes, reads = [1_000] * 5 + [1_500, 1_000, 1_500], [300, 600, 300, 400, 400, 400, 400, 400]
    found = result(writes, reads)
    assert not found.reached
    assert [each.reached for each in states(LOOP, rounds_of(writes, reads)[:5], RULE)] == [True, False]
    assert [each.reached for each in found.steady] == [False, True]


def test_the_window_is_the_first_steady_one_or_else_the_last() -> None:
    writes = [4_000, *[1_000] * 7]
    assert result(writes).window == (1, 2, 3, 4, 5)
    assert result(writes).reached
    never = result([1_000, 2_000] * 6)
    assert never.window == (7, 8, 9, 10, 11)
    assert not never.reached


def test_too_few_rounds_have_no_window() -> None:
    assert states(LOOP, rounds_of([1_000] * 4), RULE) == ()
    short = result([1_000] * 4)
    assert not short.reached
    with pytest.raises(TooFew, match="needs 5 rounds,"):
        _ = short.window


@given(st.lists(st.integers(500, 2_000), min_size=5, max_size=12))
def test_reached_agrees_with_what_was_decided_after_each_round(writes: list[int]) -> None:
    found = result(writes)
    ends = [end for end in range(len(writes) + 1) if settled(LOOP, found.rounds[:end], RULE)]
    assert found.reached is bool(ends)
    assert found.window[-1] + 1 == (ends[0] if ends else len(writes))
    assert all(each.reached for each in found.steady) is found.reached


def test_what_is_judged_are_the_rounds_of_the_window() -> None:
    found = result([4_000, 1_000, 1_020, 980, 1_010, 990])
    measured = found.measured(WRITE)
    assert measured.round_iops() == (1_000, 1_020, 980, 1_010, 990)
    assert measured.workload == WRITE
    assert found.measured(MIX).iops == 500
    with pytest.raises(ValueError, match="randwrite_4k_qd1 is not"):
        found.measured(WRITE.at(1))


def test_the_determination_by_hand() -> None:
    # Rounds 3 to 7: 980, 1,000, 1,020, 990, 1,010: average 1,000, slope Σ(x·y)/10 = 5 a round.
    found = result([4_000, 2_000, 980, 1_000, 1_020, 990, 1_010])
    row, other = found.determination()
    assert (row["workload"], row["claim"], row["unit"], row["member"]) == (str(WRITE), "steady_iops", "IOPS", "S0")
    assert row["rounds"] == [3, 4, 5, 6, 7]
    assert row["values"] == [980, 1_000, 1_020, 990, 1_010]
    assert (row["average"], row["range_allowed"], row["range_measured"]) == (1_000, 200, 40)
    assert (row["slope_excursion_allowed"], row["slope_excursion_measured"]) == (100, pytest.approx(20))
    assert row["slope"] == pytest.approx(5)
    # 1,000 in round 5, the middle of the line.
    assert row["intercept"] == pytest.approx(1_000 - 5 * 5)
    assert row["correlation"] == pytest.approx(0.5)
    assert row["reached"] is True
    assert (other["workload"], other["unit"]) == (str(READ), "B/s")


def test_of_drives_side_by_side_each_has_to_be_steady() -> None:
    loop = Rounds("writes", (WRITE,), (Tracked(WRITE, "steady_iops"),), fill_bs="128k")

    def rounds(*second: int) -> tuple[Round, ...]:
        return tuple((side_by_side([[5_000] * 3, [rate] * 3], workload=WRITE, rounds=1),) for rate in second)

    even = RoundsResult(Geometry.parse("drivex2"), loop, rounds(100, 100, 100, 100, 100))
    assert even.reached
    assert [each["member"] for each in even.determination()] == ["S0", "S1"]
    # 5,000 + 100…200 is steady as a sum.
    uneven = RoundsResult(Geometry.parse("drivex2"), loop, rounds(100, 200, 100, 200, 100))
    assert not uneven.reached
    assert [each["reached"] for each in uneven.determination()] == [True, False]
    assert [each.iops for each in uneven.measured(WRITE).members()] == [5_000, 140]


def test_latency_is_tracked_and_no_io_is_not_steady() -> None:
    loop = replace(LOOP, tracked=(Tracked(WRITE, "mean_latency"),))
    (found,) = states(loop, rounds_of([1_000] * 5), RULE)
    assert found.average == pytest.approx(8e6, rel=0.01)
    assert settled(loop, rounds_of([0] * 5), RULE) is None


def test_a_round_runs_its_pre_write_first_and_for_longer() -> None:
    assert LOOP.processes == ((READ, 1), (MIX, 1), (WRITE, 1))
    found = replace(LOOP, pre_write=WRITE, pre_write_cells=5)
    assert found.processes == ((WRITE, 5), *LOOP.processes)
    assert (LOOP.cells, found.cells) == (3, 8)


def test_rounds_of_another_loop_are_refused() -> None:
    rounds = rounds_of([1_000] * 5)
    with pytest.raises(ValueError, match="other workloads than"):
        RoundsResult(Geometry.parse("drivex1"), LOOP, (*rounds, rounds[0][::-1]))


STREAM = Workload("write", "1m", 8, threads=1)
BEFORE, AFTER = replace(STREAM, name="before"), replace(STREAM, name="after")
CROSS = Rounds("cross", (), (), "128k", 0, after=(Stimulus(BEFORE, 6, 6), Stimulus(WRITE, 6, 6), Stimulus(AFTER, 6, 6)))


def crossed(after: Sequence[int]) -> RoundsResult:
    """Six parts of a second of each stimulus; the first has 100 I/Os a second."""
    rates = ((BEFORE, [100] * 6), (WRITE, [900] * 6), (AFTER, after))
    runs = tuple((run(each, workload=workload, rounds=6),) for workload, each in rates)
    return RoundsResult(Geometry.parse("drivex1"), CROSS, (), RULE, runs)


def test_stimuli_alone_need_no_steady_state() -> None:
    found = crossed([50] * 6)
    assert found
    assert (found.window, found.steady, found.determination()) == ((), (), ())
    assert found.measured(WRITE).iops == 900
    assert len(found.measured(AFTER).round_iops()) == 6


@pytest.mark.parametrize(
    ("after", "seconds"),
    [([50, 70, 91, 99, 100, 100], 3), ([180, 150, 109, 101, 100, 100], 3), ([100] * 6, 1), ([50] * 6, None)],
)
def test_stimulus_recovers_near_the_level_of_the_earlier_one(after: Sequence[int], seconds: float | None) -> None:
    (found,) = crossed(after).recoveries()
    assert (found.workload, found.earlier, found.level) == (AFTER, BEFORE, 100 * 2**20)
    assert found.seconds == seconds
    assert ("never" in str(found)) is (seconds is None)


def test_a_stimulus_may_recover_to_the_level_of_the_rounds() -> None:
    again = replace(WRITE, name="again")
    loop = replace(LOOP, after=(Stimulus(again, 3, 3),))
    rounds = rounds_of([4000, *[1000] * 5])
    found = RoundsResult(
        Geometry.parse("drivex1"), loop, rounds, RULE, ((run([2000, 1500, 1050], workload=again, rounds=3),),)
    )
    (recovery,) = found.recoveries()
    assert (recovery.earlier, recovery.level, recovery.seconds) == (WRITE, 1000 * 4096, 3)
    assert not replace(found, after=()).recoveries()


def test_a_stimulus_that_did_not_run_has_no_figure() -> None:
    loop = replace(LOOP, after=(Stimulus(STREAM, 3, 3),))
    found = RoundsResult(Geometry.parse("drivex1"), loop, rounds_of([1000, 2000] * 6), RULE)
    with pytest.raises(TooFew, match="in 12 rounds"):
        found.measured(STREAM)


def test_parts_are_pooled_in_batches_of_equal_length() -> None:
    loop = replace(CROSS, after=(Stimulus(WRITE, 60, 60),))
    found = RoundsResult(Geometry.parse("drivex1"), loop, (), RULE, ((run([900] * 60, workload=WRITE, rounds=60),),))
    assert len(found.measured(WRITE).round_iops()) == 20


def test_a_process_with_pauses_has_room_for_a_burst() -> None:
    paused = Stimulus(replace(WRITE, burst_s=5, idle_s=10), 60, 15)
    assert [paused.processes(cell_s) for cell_s in (60, 3, 1, 0.25, 0.2)] == [15, 12, 4, 1, 1]
    assert Stimulus(WRITE, 60, 15).processes(60) == 1


def test_other_stimuli_than_those_of_the_loop_are_no_result() -> None:
    with pytest.raises(ValueError, match="other stimuli"):
        replace(crossed([100] * 6), after=((run([900], workload=WRITE, rounds=1),),))


@pytest.mark.parametrize("loop", [LOOP, replace(LOOP, pre_write=WRITE, pre_write_cells=5), CROSS], ids=range(3))
def test_a_loop_is_read_back_from_its_record(loop: Rounds) -> None:
    assert from_plain(Rounds, json.loads(json.dumps(plain(loop)))) == loop


@pytest.mark.parametrize(
    ("loop", "change", "why"),
    [
        (LOOP, {"workloads": (READ, WRITE, WRITE)}, "needs workloads, each of them once"),
        (LOOP, {"workloads": ()}, "needs workloads, each of them once"),
        (LOOP, {"workloads": (READ, MIX)}, "to be tracked, of workloads of its own"),
        (LOOP, {"tracked": ()}, "needs something to be tracked"),
        (LOOP, {"pre_write": WRITE, "pre_write_cells": 0}, "iops .*writ"),
        (LOOP, {"pre_write": None, "pre_write_cells": 5}, "iops .*writ"),
        (LOOP, {"pre_write": READ, "pre_write_cells": 5}, "iops .*writ"),
        (LOOP, {"pre_write": WRITE, "pre_write_cells": -1}, "iops .*writ"),
        (CROSS, {"after": ()}, "needs workloads"),
        (CROSS, {"after": (Stimulus(WRITE, 1, 1), Stimulus(WRITE, 2, 2))}, "each of them once"),
        (CROSS, {"tracked": (Tracked(WRITE, "steady_iops"),)}, "needs something to be tracked"),
    ],
    ids=range(11),
)
def test_a_loop_that_makes_no_sense_is_refused(loop: Rounds, change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        replace(loop, **change)


def test_a_percentile_cannot_be_tracked() -> None:
    with pytest.raises(ValueError, match="p99_latency"):
        Tracked(WRITE, "p99_latency")
