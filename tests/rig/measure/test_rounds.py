from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from support.builders import strategies
from support.builders.measuring import PROTOCOL, READ, WRITE, setup_of
from support.fakes.logbook import Logbook

from pytest_ssdqual.qual.measured.environment import DriveTemperature
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import LoopRule
from pytest_ssdqual.qual.workload.rounds import Rounds, Stimulus, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DrivesUndecided
from pytest_ssdqual.rig.machine.machine import ClockSet, InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure import rounds as looping
from pytest_ssdqual.rig.measure.session import Setup

LOOP = Rounds("test-loop", (READ, WRITE), (Tracked(WRITE, "steady_iops"),), fill_bs="128k")
ARRAY = Array(Geometry.parse("raid5x4"), "/dev/md127", (), "u-u-i-d", 1 << 30, "zeroed")
STREAM = Workload("write", "1m", 8, threads=1, name="stream")
IN_ROUNDS = replace(PROTOCOL, acceptance=True, loop=LoopRule(cell_s=3.0, max_rounds=9))
PAUSED = Workload("randwrite", "4k", 8, threads=1, burst_s=1, idle_s=2)


@dataclass
class RoundsBench(Logbook):
    """Everything below a loop: what each round's writes do, and what was asked for and written down."""

    #: IOPS of the writes by round; the last ones go on.
    writes: list[int]
    #: I/Os per second of every read.
    reads: int = 1000
    did: list[tuple[str, str, fixed_time.ProcessWindow]] = field(default_factory=list)
    told: list[tuple[str, float]] = field(default_factory=list)

    def run(self, setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        done = sum(1 for asked, _, _ in self.did if asked == str(workload))
        self.did.append((str(workload), kind, window))
        iops = self.reads if workload == READ else self.writes[min(done, len(self.writes) - 1)]
        found = strategies.run([iops] * 3, geometry=str(array.geometry), workload=workload, rounds=window.rounds)
        return replace(found, raw=f"{workload}-{kind}.json.gz")

    def setup(self, protocol: Protocol = IN_ROUNDS) -> Setup:
        return setup_of(self, protocol, progress=lambda *told: self.told.append(told))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> RoundsBench:
    bench = RoundsBench([4000, 2000, 1000])
    monkeypatch.setattr(fixed_time, "run", bench.run)
    return bench


def test_rounds_go_on_until_what_is_tracked_is_steady(bench: RoundsBench) -> None:
    found = looping.run(bench.setup(), ARRAY, LOOP)
    assert found
    assert len(found.rounds) == 7
    assert found.window == (2, 3, 4, 5, 6)
    assert found.measured(WRITE).iops == pytest.approx(1000)
    assert [workload for workload, _, _ in bench.did] == [str(READ), str(WRITE)] * 7
    assert [kind for _, kind, _ in bench.did][:4] == ["test-loop-01", "test-loop-01", "test-loop-02", "test-loop-02"]
    assert {window for _, _, window in bench.did} == {fixed_time.ProcessWindow(0.0, 3.0, 1)}
    assert bench.told == [("raid5x4: test-loop", 6.0)] * 7
    rounds = bench.all_of("loop_round")
    assert [each["round"] for each in rounds] == [1, 2, 3, 4, 5, 6, 7]
    assert [len(each["states"]) for each in rounds] == [0, 0, 0, 0, 1, 1, 1]
    assert [state["reached"] for each in rounds for state in each["states"]] == [False, False, True]


def test_pre_writes_come_before_each_round_and_are_no_part_of_it(bench: RoundsBench) -> None:
    bench.writes = [1000]
    before = Workload("randwrite", "4k", 32, threads=32)
    found = looping.run(bench.setup(), ARRAY, replace(LOOP, pre_write=before, pre_write_cells=5))
    assert [workload for workload, _, _ in bench.did] == [str(before), str(READ), str(WRITE)] * 5
    assert [window.window_s for _, _, window in bench.did] == [15.0, 3.0, 3.0] * 5
    assert [[run.workload for run in runs] for runs in found.rounds] == [[READ, WRITE]] * 5
    assert bench.told[0] == ("raid5x4: test-loop", 21.0)


@pytest.mark.parametrize(
    ("loop", "named"),
    [
        (replace(LOOP, pre_write=WRITE, pre_write_cells=5), "randwrite_4k_qd8 on raid5x4 in round 1 of test-loop"),
        (LOOP, "randread_4k_qd8 on raid5x4 in round 1 of test-loop"),
        (Rounds("s", (), (), "128k", after=(Stimulus(STREAM, 1, 1),)), "stream_t1xqd8 on raid5x4 in s"),
    ],
    ids=["pre-write", "cell", "stimulus"],
)
def test_part_that_is_not_valid_ends_the_loop_by_its_name(bench: RoundsBench, loop: Rounds, named: str) -> None:
    bench.reads, bench.writes = 1, [1]
    with pytest.raises(InvalidMeasurement, match=f"^{named} is not"):
        looping.run(bench.setup(), ARRAY, loop)
    assert len(bench.did) == 1
    assert not bench.all_of("loop")


def test_what_never_settles_ends_at_the_protocols_limit(bench: RoundsBench) -> None:
    """Without the stimuli that would follow a steady state."""
    bench.writes = [1000, 2000] * 10
    found = looping.run(bench.setup(), ARRAY, replace(LOOP, after=(Stimulus(STREAM, 10, 10),)))
    assert not found
    assert not found.after
    assert (len(found.rounds), len(bench.did)) == (9, 18)
    record = bench.noted("loop")
    assert record["reached"] is False
    assert "in 9 rounds" in repr(found)


def test_limit_shorter_than_a_window_still_runs_one(bench: RoundsBench) -> None:
    bench.writes = [1000]
    found = looping.run(bench.setup(replace(PROTOCOL, loop=LoopRule(1.0, 3))), ARRAY, LOOP)
    assert found
    assert len(found.rounds) == 5


@dataclass
class Disturbed:
    """Answers of a bench whose host is busy, whose drive throttles or whose clock is set in some of the processes."""

    bench: RoundsBench
    busy: range = range(0)
    hot: range = range(0)
    clock_set: range = range(0)

    def run(self, setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        number = len(self.bench.did)
        found = self.bench.run(setup, array, workload, kind, window)
        if number in self.clock_set:
            raise ClockSet("the clock was set")
        drive = strategies.seen_drive("S0", None, None)
        if number in self.hot:
            drive = replace(drive, heat=DriveTemperature(75.0, 70.0, too_warm=True, too_warm_s=9, events=1))
        return replace(found, seen=strategies.seen([drive], cpu_busy=0.99 if number in self.busy else 0.3))


@pytest.mark.parametrize("what", ["busy", "clock_set"])
def test_a_cell_that_the_rig_disturbed_is_repeated(
    monkeypatch: pytest.MonkeyPatch, bench: RoundsBench, what: str
) -> None:
    """A loop takes hours."""
    bench.writes = [1000]
    disturbed = Disturbed(bench, **{what: range(3, 6)})
    monkeypatch.setattr(fixed_time, "run", disturbed.run)
    found = looping.run(bench.setup(), ARRAY, LOOP)
    assert found
    assert [workload for workload, _, _ in bench.did] == [
        *[str(READ), str(WRITE)] * 2, *[str(WRITE)] * 3, *[str(READ), str(WRITE)] * 3
    ]  # fmt: skip
    assert [len(runs) for runs in found.rounds] == [2] * 5
    left_out = bench.all_of("cell_left_out")
    assert [(each["workload"], each["round"]) for each in left_out] == [(str(WRITE), 2)] * 3


@pytest.mark.parametrize(
    ("disturbed", "processes"),
    [({"busy": range(3, 9)}, 7), ({"clock_set": range(3, 9)}, 7), ({"hot": range(3, 4), "busy": range(3, 4)}, 4)],
)
def test_cell_is_not_repeated_for_ever_or_if_a_drive_throttled(
    monkeypatch: pytest.MonkeyPatch, bench: RoundsBench, disturbed: dict[str, range], processes: int
) -> None:
    bench.writes = [1000]
    monkeypatch.setattr(fixed_time, "run", Disturbed(bench, **disturbed).run)
    with pytest.raises(InvalidMeasurement):
        looping.run(bench.setup(), ARRAY, LOOP)
    assert len(bench.did) == processes
    assert not bench.all_of("loop")


def test_the_record_has_all_that_the_result_is_made_of(bench: RoundsBench) -> None:
    found = looping.run(bench.setup(), ARRAY, LOOP)
    record = bench.noted("loop")
    assert from_plain(Rounds, json.loads(json.dumps(record["asked"]))) == LOOP
    assert record["geometry"] == "raid5x4"
    assert (record["protocol"], record["acceptance"], record["reached"]) == ("test", True, True)
    raws = [[each["raw"] for each in runs] for runs in record["rounds"]]
    assert raws == [[run.raw for run in runs] for runs in found.rounds]
    assert raws[0] == ["randread_4k_qd8-test-loop-01.json.gz", "randwrite_4k_qd8-test-loop-01.json.gz"]
    assert {len(each["round_iops"]) for runs in record["rounds"] for each in runs} == {1}
    # A day of seconds would be gigabytes of histograms.
    assert {len(run.intervals) for runs in found.rounds for run in runs} == {1}


@pytest.mark.parametrize(("second", "is_alone"), [([1000], True), ([1000, 2000] * 10, False)])
def test_one_drive_that_never_settles_is_undecided_alone(
    monkeypatch: pytest.MonkeyPatch, bench: RoundsBench, second: list[int], is_alone: bool
) -> None:
    """If none of them settles, the result says so of all."""
    restless = [1000, 2000] * 10

    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        number = int(kind.rpartition("-")[2]) - 1
        rates = [[restless[number]] * 3, [second[min(number, len(second) - 1)]] * 3]
        return strategies.side_by_side(rates, workload=workload, rounds=window.rounds)

    monkeypatch.setattr(fixed_time, "run", run)
    drives = replace(ARRAY, geometry=Geometry.parse("drivex2"), members=(cast("Any", "a"), cast("Any", "b")))
    if is_alone:
        with pytest.raises(DrivesUndecided) as caught:
            looping.run(bench.setup(), drives, LOOP)
        assert list(caught.value.drives) == ["S0"]
        assert bench.all_of("loop") == []
    else:
        assert not looping.run(bench.setup(), drives, LOOP)


def test_stimuli_follow_the_steady_rounds_once_each(bench: RoundsBench) -> None:
    bench.writes = [1000]
    loop = replace(LOOP, after=(Stimulus(PAUSED, 6, 2), Stimulus(STREAM, 10, 10)))
    found = looping.run(bench.setup(), ARRAY, loop)
    assert [workload for workload, _, _ in bench.did[10:]] == [str(PAUSED), str(PAUSED), str(STREAM)]
    first, second, stream = (window for _, _, window in bench.did[10:])
    # Of a process with pauses only the last report is right.
    assert first == second
    assert (first.window_s, first.rounds, first.every_s > first.window_s) == (9.0, 1, True)
    assert stream == fixed_time.ProcessWindow(0.0, 30.0, 10, 3)
    assert [len(runs) for runs in found.after] == [2, 1]
    record = bench.noted("loop")
    assert [len(runs) for runs in record["after"]] == [2, 1]


@pytest.mark.parametrize("number", [0, 1])
def test_a_part_with_pauses_is_repeated_after_the_clock_was_set(
    bench: RoundsBench, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(fixed_time, "run", Disturbed(bench, clock_set=range(number, number + 1)).run)
    bench.writes = [1000]
    found = looping.run(bench.setup(), ARRAY, Rounds("s", (), (), "128k", after=(Stimulus(PAUSED, 6, 2),)))
    assert (len(bench.did), [len(runs) for runs in found.after]) == (3, [2])
