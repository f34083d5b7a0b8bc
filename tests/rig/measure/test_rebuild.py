from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import measuring, strategies
from support.builders.drives import drive
from support.fakes.logbook import Logbook
from support.fakes.scripted import completed
from support.simulator import simulated_surroundings

from pytest_ssdqual.qual.measured.environment import ProcessEnvironment
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import MeasureRule, RebuildRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio import acceptance, engine_limits, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine.machine import DriveRefused, InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import mdadm, members, resync, survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array, ArrayState
from pytest_ssdqual.rig.measure import rebuild as rebuilding
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import environment

LOAD = Workload("randrw", "4k", 1, read_percent=70)
MIB = 1 << 20
PROTOCOL = replace(
    measuring.PROTOCOL, acceptance=True, measure=MeasureRule(2, 5, 3, 2), rebuild=RebuildRule(limit_s=100.0)
)


DRIVES = tuple(drive(number) for number in range(4))
ARRAY = Array(Geometry.parse("raid6x4-2failed"), "/dev/md100", DRIVES, "1:2:3:4", 512 * MIB, "zeroed", 6 * MIB)


REAL_START = process.start


@dataclass
class RebuildBench(Logbook):
    """A clock that only moves when somebody waits or asks, and an array that is rebuilt on it."""

    rebuild_s: float = 30.0
    iops: int = 600
    #: fio's own clock starts so much later than ours.
    lag_s: float = 1.0
    #: What reading the pattern back finds, by the array's state.
    damage: dict[str, str] = field(default_factory=dict)
    mismatches: int = 0
    #: The load dies so long after its start.
    dies_s: float = 1e9
    refused: bool = False
    #: The machine does not report the array's state.
    lost: bool = False
    gives_up: bool = False
    clock: float = 1000.0
    started: float = 0.0
    added: float | None = None
    ended: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    #: What goes on around it.
    seen: ProcessEnvironment | None = None

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def state(self, machine: object, kname: str) -> ArrayState:
        if self.lost:
            raise RigError("md100 is lost")
        self.clock += 0.05
        if self.added is None or self.gives_up:
            return ArrayState("clean", "idle", 2)
        over = self.clock >= self.added + self.rebuild_s
        return ArrayState("clean", "idle", 0) if over else ArrayState("active", "recover", 2)

    def require_healthy(self, machine: object, array: Array) -> None:
        self.events.append(f"healthy {array.geometry}")

    def look(self, setup: Setup, array: Array) -> str:
        self.events.append(f"look {array.geometry}")
        return self.damage.get(array.geometry.state, "")

    def forget(self, machine: object, array: Array, drives: Sequence[Drive]) -> None:
        self.events.append(f"forget {' '.join(each.kname for each in drives)}")

    def give_back(self, machine: object, array: Array, drives: Sequence[Drive]) -> None:
        self.events.append(f"give back {','.join(each.kname for each in drives)}")
        self.added = self.clock
        self.clock += 0.2

    def require(self, drives: Sequence[Drive]) -> None:
        self.events.append(f"require {' '.join(each.kname for each in drives)}")
        if self.refused:
            raise DriveRefused("/dev/nvme3n1 is mounted at /srv")

    @contextmanager
    def speeds(self, machine: object, kname: str, rule: RebuildRule) -> Iterator[dict[str, str]]:
        self.events.append("limit")
        yield {"sync_speed_min": "1000 (system)", "sync_speed_max": "200000 (system)"}
        self.events.append("unlimit")

    def compare(self, machine: object, kname: str, size_bytes: int) -> int:
        self.events.append("check")
        return self.mismatches

    @contextmanager
    def start(self, machine: object, job: Job) -> Iterator[process.RunningProcess]:
        self.jobs.append(job)
        with REAL_START(cast("Any", self), job) as running:
            yield running

    # -- what the running process asks of its tether and its machine

    token = "aa"  # noqa: S105 (of a connection)

    def tether(self, argv: Sequence[str]) -> RebuildBench:
        self.events.append("fio")
        self.started = self.clock
        return self

    def alive(self) -> bool:
        return self.clock < self.started + self.dies_s

    def cut(self, deadline_s: float = 30.0) -> object:
        self.events.append("end fio")
        self.clock += 0.3
        return replace(completed(["fio"], status=128), elapsed_s=self.clock - self.started)

    def wait(self, deadline_s: float) -> object:
        return replace(completed(["fio"], status=1, stderr="fio: no space left"), elapsed_s=1.0)

    def run(self, argv: Sequence[str], **more: object) -> object:
        if argv[-1] == engine_limits.SCRIPT:
            return completed(argv)
        self.events.append(argv[0])
        return completed(argv, gzip.compress(b"").decode("latin1"))

    # --

    def accept_ended(self, output: bytes, status: int, stderr: str, expectation: object) -> object:
        seconds = self.ended_s - self.lag_s
        run = strategies.run([self.iops] * int(seconds), workload=LOAD, geometry="raid6x4")
        return SimpleNamespace(intervals=run.intervals, seconds=seconds)

    @property
    def ended_s(self) -> float:
        return self.clock - self.started

    def rebuild(self, protocol: Protocol = PROTOCOL, array: Array = ARRAY) -> Rebuild:
        return rebuilding.rebuild(measuring.setup_of(self, protocol, machine=self, held=self), array, LOAD)


@contextmanager
def patched(bench: RebuildBench) -> Iterator[RebuildBench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: bench.clock)
        patch.setattr(time, "sleep", bench.sleep)
        patch.setattr(mdadm, "state", bench.state)
        patch.setattr(mdadm, "require_healthy", bench.require_healthy)
        patch.setattr(survival_pattern, "read_damage", bench.look)
        for name in ("forget", "give_back"):
            patch.setattr(members, name, getattr(bench, name))
        for name in ("speeds", "compare"):
            patch.setattr(resync, name, getattr(bench, name))
        patch.setattr(resync, "component_bytes", lambda machine, kname: 255 * MIB)
        patch.setattr(resync, "done_percent", lambda machine, kname: 42.0)
        patch.setattr(process, "start", bench.start)
        patch.setattr(FinishedProcess, "pieces", lambda finished: iter(()))
        patch.setattr(acceptance, "accept_ended", bench.accept_ended)
        simulated_surroundings.unattributed(patch)
        patch.setattr(
            environment,
            "take_reading",
            lambda machine, array, *earlier: bench.events.append(f"surroundings {'after' if earlier else 'before'}"),
        )
        patch.setattr(environment, "between", lambda *_: bench.seen)
        yield bench


@pytest.fixture
def bench() -> Iterator[RebuildBench]:
    with patched(RebuildBench()) as bench:
        yield bench


def test_everything_in_its_order(bench: RebuildBench) -> None:
    bench.rebuild()
    assert bench.events == [
        "healthy raid6x4-2failed",
        "look raid6x4-2failed",
        "limit",
        "require nvme2n1 nvme3n1",
        "forget nvme2n1 nvme3n1",
        "surroundings before",
        "fio",
        "require nvme2n1 nvme3n1",
        "give back nvme2n1,nvme3n1",
        "end fio",
        "sh",
        "rm",
        "surroundings after",
        "healthy raid6x4",
        "check",
        "unlimit",
        "look raid6x4",
        "healthy raid6x4",
    ]


def test_rebuild_is_as_long_as_md_took(bench: RebuildBench) -> None:
    found = bench.rebuild()
    assert found.geometry == Geometry.parse("raid6x4-2rebuilding")
    assert found.seconds - found.resolution_s <= bench.rebuild_s <= found.seconds
    assert found.resolution_s < 1.0
    assert found.bytes_per_member == 255 * MIB
    assert found.intact
    (run,) = found.foreground.runs
    assert run.rounds == int(run.window_s / PROTOCOL.round_s) > PROTOCOL.steady.window
    with patched(RebuildBench(iops=50)) as slow:  # too few I/Os for rounds of that length
        (run,) = slow.rebuild().foreground.runs
    assert run.rounds == run.ios // 100 > PROTOCOL.steady.window


@given(st.floats(12, 90), st.floats(0, 3), st.floats(0, 5))
def test_only_io_within_the_rebuild_counts(rebuild_s: float, lag_s: float, ramp_s: float) -> None:
    with patched(RebuildBench(rebuild_s, lag_s=lag_s)) as bench:
        found = bench.rebuild(replace(PROTOCOL, measure=replace(PROTOCOL.measure, ramp_s=ramp_s)))
    (run,) = found.foreground.runs
    begin_s = bench.started + lag_s + run.counted[0].start_s
    end_s = bench.started + lag_s + run.counted[-1].end_s
    assert bench.added is not None
    assert bench.added <= begin_s
    assert end_s <= bench.added + rebuild_s
    # Little of it is left out.
    assert end_s - begin_s > rebuild_s - lag_s - 5
    assert run.geometry == found.geometry
    assert run.members == ("S0", "S1", "S2", "S3")


def test_load_spares_the_pattern_and_outlasts_any_rebuild(bench: RebuildBench) -> None:
    bench.rebuild()
    (job,) = bench.jobs
    assert f"--size={505 * MIB}" in job.options
    assert job.expectation.seconds is not None
    assert job.expectation.seconds > PROTOCOL.measure.ramp_s + PROTOCOL.rebuild.allowed_s()


@pytest.mark.parametrize(
    ("bench", "cause", "last"),
    [
        (RebuildBench(rebuild_s=5.0), r"after 5\.\d s, too short", "surroundings after"),
        (RebuildBench(rebuild_s=1e6), r"42 % were done; see rebuild\.limit$", "rm"),
        (RebuildBench(gives_up=True), "degraded by 2 members", "rm"),
        (RebuildBench(dies_s=1.0), "fio: no space left", "rm"),
        (RebuildBench(dies_s=9.0), "fio: no space left", "rm"),
        (RebuildBench(refused=True), "mounted at /srv", "require nvme2n1 nvme3n1"),
        (RebuildBench(iops=2, mismatches=8), r"is not valid: .*check found 8 mis", "healthy raid6x4"),
        (RebuildBench(lost=True), "md100 is lost", "rm"),
    ],
    ids=["too short", "too long", "md gives up", "load ends early", "load ends", "in use", "not valid", "rig"],
)
def test_rebuild_that_fails_is_ended_with_its_cause(bench: RebuildBench, cause: str, last: str) -> None:
    with patched(bench), pytest.raises(RigError, match=cause) as raised:
        bench.rebuild()
    assert bench.events[-1] == last
    assert ("end fio" in bench.events) is ("fio" in bench.events)
    if bench.refused:
        assert isinstance(raised.value, DriveRefused)
        assert not [event for event in bench.events if event.startswith(("forget", "give", "fio"))]
    assert (bench.added is None) == (bench.refused or bench.dies_s < PROTOCOL.measure.ramp_s)


def test_lost_data_are_a_result_and_no_error() -> None:
    damage = {"degraded": "the block at byte 7 is bad", "healthy": "the block at byte 9 is bad"}
    with patched(RebuildBench(mismatches=8, damage=damage)) as bench:
        found = bench.rebuild()
    assert not found.intact
    assert found.mismatches == 8
    assert all(each in found.damage for each in damage.values())


def test_the_record_has_all_that_the_value_is_made_of(bench: RebuildBench) -> None:
    found = bench.rebuild()
    facts = bench.noted("rebuild")
    assert json.loads(json.dumps(facts)) == facts
    assert facts.items() >= plain(found.summary()).items()
    assert from_plain(Workload, facts["asked"]) == LOAD
    assert (facts["protocol"], facts["acceptance"]) == ("test", True)
    assert facts["limits"]["sync_speed_max"] == "200000 (system)"
    assert facts["members"] == ["S2", "S3"]
    assert facts["raw"] == "fio/raid6x4-2rebuilding-randrw70_4k_qd1-rebuild.json.gz"
    assert [(each["serial"], each["path"]) for each in bench.all_of("member_given_back")] == [
        ("S2", "/dev/nvme2n1"),
        ("S3", "/dev/nvme3n1"),
    ]
    ran = bench.noted("ran")
    assert (ran["geometry"], ran["raw"]) == ("raid6x4-2rebuilding", facts["raw"])


def test_environment_of_a_rebuild_is_kept_and_objects(bench: RebuildBench) -> None:
    bench.seen = strategies.seen()
    (run,) = bench.rebuild().foreground.runs
    assert run.seen == bench.seen
    assert [list(facts["objections"]) for kind, facts in bench.notes if kind == "environment"] == [[]]
    bench.seen = replace(bench.seen, clock_jump_s=-3600.0)
    with pytest.raises(InvalidMeasurement, match="by 60 min"):
        bench.rebuild()


def test_drive_that_takes_long_has_fewer_reports_or_is_refused(
    bench: RebuildBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resync, "component_bytes", lambda machine, kname: 480_000_000_000)
    with pytest.raises(InvalidMeasurement, match=r"raise rebuild\.max_rate"):
        bench.rebuild()
    assert not bench.jobs
    bench.rebuild(replace(PROTOCOL, rebuild=RebuildRule(limit_s=3600.0)))
    assert "--status-interval=2" in bench.jobs[0].options
