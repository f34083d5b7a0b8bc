from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import stopping_rules
from support.builders import strategies
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine
from support.simulator import simulated_fio, simulated_surroundings
from support.simulator.simulated_fio import UnderWay

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import batch_means
from pytest_ssdqual.qual.stats import group_sequential as looks
from pytest_ssdqual.qual.stats.group_sequential import Decision, Question
from pytest_ssdqual.qual.stats.shared_evidence import SharedEvidence
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import ALONE
from pytest_ssdqual.qual.verdict.verdict import judge_all
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.output import MOST_DOCUMENTS, StatusReader
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import ClockSet, InvalidMeasurement, MachineLost, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, sequential_verdict
from pytest_ssdqual.rig.measure.sequential_verdict import Enough
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import environment

READS = Workload("randread", "4k", 8)
RULE = SequentialRule(first_s=480, growth=1.5, limit_s=1800, report_s=5)
TIMES = (480, 720, 1080, 1620, 1800)
RAMP_S = 10.0
PROTOCOL = Protocol(
    name="test", acceptance=True, fill_passes=1, fill_bs="128k", precondition_s=5, precondition_limit_s=15,
    ramp_s=RAMP_S, window_s=480, repeats=1, attempts=2, verdict=VerdictRule(0.95), sequential=RULE,
)  # fmt: skip


def array(level: RaidLevel, width: int) -> Array:
    return Array(Geometry(level, width), "/dev/md100", tuple(map(drive, range(width))), "1:2", 512 << 20, "zeroed")


RAID0X2 = array(RaidLevel.RAID0, 2)


@dataclass
class SequentialRig:
    """Everything around one process, and what was asked of it."""

    noise: float = 0.01
    slow: dict[str, float] = field(default_factory=dict)
    #: Of each process in turn, when it dies; the last one's is that of all that follow.
    dies_s: list[float] = field(default_factory=lambda: [float("inf")])
    last_words: str = "fio: pid=77, got signal=9"
    #: fio is silent from the first of these times to the second.
    silent_s: list[tuple[float, float]] = field(default_factory=list)
    #: Period and share of the mean of what comes round.
    swing: tuple[float, float] | None = None
    jobs: list[Job] = field(default_factory=list)
    running: list[UnderWay] = field(default_factory=list)
    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)
    lines: list[tuple[str, float]] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    steps: list[tuple[str, float]] = field(default_factory=list)
    sick_at_s: float = float("inf")
    lease_until_s: float = float("inf")
    #: Called whenever somebody waits for the process.
    meanwhile: Callable[[], None] = lambda: None

    @property
    def now_s(self) -> float:
        return self.running[-1].now_s if self.running else 0.0

    def start(self, setup: Setup, array: Array, workload: Workload, job: Job) -> UnderWay:
        self.jobs.append(job)
        fio = simulated_fio.Fio(self.slow, self.noise)
        running = UnderWay.of(fio, array, workload, RAMP_S + RULE.limit_s, RULE.report_s, self.swing)
        if self.silent_s:
            start_s, end_s = self.silent_s.pop(0)
            kept = [not start_s < (index + 1) * 5 < end_s for index in range(len(running.documents))]
            running.documents = [each if keep else b"" for each, keep in zip(running.documents, kept, strict=True)]
        running.dies_s = self.dies_s.pop(0) if len(self.dies_s) > 1 else self.dies_s[0]
        running.wait_on, running.last_words = self.meanwhile, self.last_words
        self.running.append(running)
        return running

    def require_healthy(self, machine: object, array: Array) -> None:
        if self.now_s >= self.sick_at_s:
            raise InvalidMeasurement(f"{array.geometry} cannot be measured: degraded by 1 member")

    def require_lease(self) -> None:
        if self.now_s >= self.lease_until_s:
            raise LeaseLost("the lease was lost")

    def note(self, kind: str, **facts: object) -> None:
        self.notes.append((kind, facts))

    def keep(self, name: str, data: bytes) -> str:
        self.kept.append(data)
        return f"fio/{name}"

    def noted(self, kind: str) -> list[dict[str, Any]]:
        return [facts for name, facts in self.notes if name == kind]


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> SequentialRig:
    rig = SequentialRig()
    monkeypatch.setattr(sequential_verdict, "start", rig.start)
    monkeypatch.setattr(mdadm, "require_healthy", rig.require_healthy)
    monkeypatch.setattr(mdadm, "end_check", lambda machine, array: False)
    simulated_surroundings.unattributed(monkeypatch)
    monkeypatch.setattr(environment, "take_reading", lambda machine, array, when, *_: rig.events.append(f"look {when}"))
    monkeypatch.setattr(environment, "between", lambda *_: None)
    monkeypatch.setattr(environment, "note", lambda setup, run, kind: rig.events.append(f"note {kind}"))
    return rig


def measure(
    rig: SequentialRig, enough: Callable[[Measured], Decision], on: Array = RAID0X2, workload: Workload = READS
) -> Measured:
    setup = Setup(
        ScriptedMachine(), rig, PROTOCOL, rig, "m1", lambda *step: rig.steps.append(step),  # type: ignore[arg-type]
        lambda *line: rig.lines.append(line),
    )  # fmt: skip
    return sequential_verdict.measure(setup, on, workload, RULE, enough)


def at(number: int) -> Enough:
    """Enough at that look."""
    return lambda measured: Decision(bool(measured.look and measured.look.number >= number), "a word")


def never(measured: Measured) -> Decision:
    return Decision(done=False, sentence="open")


def test_a_process_is_ended_at_the_look_that_decides(rig: SequentialRig) -> None:
    measured = measure(rig, at(2))
    (run,) = measured.runs
    assert run.look
    assert (run.look.number, run.look.of) == (2, len(TIMES))
    assert 0.95 < run.look.level == looks.level(RULE, 0.95)
    assert run.ramp_s + run.window_s == pytest.approx(RAMP_S + TIMES[1])
    assert measured.iops == pytest.approx(600, rel=0.01)
    (running,) = rig.running
    assert running.ended
    assert TIMES[1] + RAMP_S <= running.now_s < TIMES[1] + RAMP_S + 10
    assert [facts["decided"] for facts in rig.noted("looked")] == [False, True]
    assert len(rig.noted("measured")) == len(rig.noted("steady")) == 1
    assert rig.events == ["look before", "look after", "note run"]


@pytest.mark.parametrize("swing", [None, (700.0, 0.08)], ids=["steady", "swinging"])
@pytest.mark.parametrize("of_limit", [0.85, 0.93, 0.97, 0.995, 1.0, 1.005, 1.03, 1.07, 1.15])
def test_product_and_bench_decide_alike(rig: SequentialRig, of_limit: float, swing: tuple[float, float] | None) -> None:
    """The error rates that benches measure are those of what judges: one series, the same look, the same outcome."""
    rig.swing = swing
    limit = Limit(Direction.AT_LEAST, 600 / of_limit, Unit.IOPS, "a spec")
    question = Question({Claim.STEADY_IOPS: limit})
    measured = measure(rig, lambda run: looks.decide(run, question, RULE, PROTOCOL.verdict))
    (verdict,) = judge_all(Claim.STEADY_IOPS, measured, limit, 0.95, PROTOCOL.verdict.indifference_percent, ALONE)
    (look,) = [run.look for run in measured.runs]
    assert look
    (series,) = rig.running[-1].intervals
    counted = [replace(each, start_s=each.start_s - RAMP_S) for each in series if each.start_s >= RAMP_S]
    ending = stopping_rules.judged(counted, question, RULE, PROTOCOL.verdict)
    assert (ending.seconds, ending.outcome) == (TIMES[look.number - 1], verdict.outcome)


def test_the_process_could_have_gone_on_to_the_limit(rig: SequentialRig) -> None:
    measure(rig, at(1))
    assert [job.expectation.seconds for job in rig.jobs] == [RAMP_S + RULE.limit_s]
    assert "--status-interval=5" in rig.jobs[0].options


def test_what_is_never_enough_ends_at_the_limit(rig: SequentialRig) -> None:
    measured = measure(rig, never)
    assert measured.look
    assert measured.look.number == measured.look.of == len(TIMES)
    (run,) = measured.runs
    assert run.ramp_s + run.window_s == pytest.approx(RAMP_S + RULE.limit_s)
    assert [facts["at_s"] for facts in rig.noted("looked")] == list(TIMES)
    assert not any(facts["decided"] for facts in rig.noted("looked"))


def test_what_keeps_it_from_settling_is_told_at_the_limit(rig: SequentialRig) -> None:
    rig.swing = (120.0, 0.3)
    measure(rig, never)
    *before, last = rig.noted("looked")
    assert all(facts["sentence"] == "open" for facts in before)
    assert last["sentence"].startswith("open; it repeats every 2 min (±")
    (steady,) = rig.noted("steady")
    (settling,) = steady["settling"]
    assert settling["rhythm"]["period_s"] == pytest.approx(120, rel=0.02)


def test_every_look_is_told_in_a_line_with_what_is_to_come(rig: SequentialRig) -> None:
    measure(rig, at(2))
    measure(rig, never)
    texts, more_s = zip(*rig.lines, strict=True)
    assert texts[:2] == (
        "raid0x2 randread_4k_qd8: look 1 of 5 at 8 min: a word: goes on",
        "raid0x2 randread_4k_qd8: look 2 of 5 at 12 min: a word: decided",
    )
    assert texts[-1] == "raid0x2 randread_4k_qd8: look 5 of 5 at 30 min: open: its time is over"
    assert rig.steps == [("raid0x2: randread_4k_qd8", RAMP_S + 480)] * 2
    assert more_s == (240, 0, 240, 360, 540, 180, 0)


def test_what_is_kept_is_fios_whole_output_and_few_intervals(rig: SequentialRig) -> None:
    measured = measure(rig, at(3))
    (packed,) = rig.kept
    (run,) = measured.runs
    found = StatusReader(MOST_DOCUMENTS)
    found.feed(gzip.decompress(packed))
    whole = replace(run, intervals=found.whole().intervals, ramp_s=RAMP_S, window_s=RULE.limit_s, look=None)
    assert looks.at_look(whole, 3, RULE, 0.95).condensed() == run
    assert len(run.intervals) <= run.rounds + 1


def test_it_is_read_often_so_that_it_does_not_pile_up(rig: SequentialRig) -> None:
    measure(rig, never)
    (running,) = rig.running
    assert len(running.parts) >= RULE.limit_s / (sequential_verdict.READ_EVERY_REPORTS * RULE.report_s)


def test_drives_side_by_side_are_cut_at_the_same_time(rig: SequentialRig) -> None:
    rig.slow = {"S1": 0.5}
    measured = measure(rig, at(1), array(RaidLevel.DRIVE, 3))
    rates = [each.iops for each in measured.members()]
    assert rates == pytest.approx([300, 150, 300], rel=0.01)
    assert len({(each.runs[0].ramp_s, each.runs[0].window_s) for each in measured.members()}) == 1
    (steady,) = rig.noted("steady")
    assert len(steady["settling"]) == 3


def test_the_rule_of_the_test_specification_stands_beside_our_own_figures(rig: SequentialRig) -> None:
    measure(rig, at(1))
    (steady,) = rig.noted("steady")
    assert steady["reached"]
    assert len(steady["values"]) == PROTOCOL.steady.window
    assert steady["look"]["number"] == 1
    (settling,) = steady["settling"]
    assert abs(settling["drift_percent"]) < 1
    assert abs(settling["correlation"]) < 0.5


# -- what goes wrong


def test_a_look_whose_run_has_objections_does_not_decide(rig: SequentialRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too few I/Os go away with time."""
    monkeypatch.setattr("pytest_ssdqual.qual.validity.checks.FEWEST_IOS_A_ROUND", 600 * 800 // batch_means.COUNT)
    measured = measure(rig, at(1))
    assert measured.look
    assert measured.look.number == 3
    first, second, third = rig.noted("looked")
    assert not first["decided"]
    assert "I/Os in the window" in first["sentence"]
    assert second["objections"]
    assert third["decided"]


def test_what_does_not_go_away_ends_it_and_it_is_tried_once_more(rig: SequentialRig) -> None:
    rig.silent_s = [(200, 290)]
    measured = measure(rig, at(1))
    assert measured.look
    assert measured.look.number == 1
    first, _ = rig.running
    assert first.ended
    assert first.now_s < 1000
    assert [bool(facts["objections"]) for facts in rig.noted("steady")] == [True, False]
    assert [text.rpartition(": ")[2] for text, _ in rig.lines] == ["goes on", "given up", "decided"]


def test_what_was_given_up_is_not_taken_for_a_result(rig: SequentialRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the whole output has nothing against it."""
    said = iter([("dubious",)] * 4 + [()] * 100)
    monkeypatch.setattr("pytest_ssdqual.qual.validity.checks.objections", lambda run, fewest=None: next(said))
    measured = measure(rig, at(1))
    assert len(rig.running) == 2
    assert measured.look
    assert measured.look.number == 1


def test_what_goes_wrong_twice_is_no_measurement(rig: SequentialRig) -> None:
    rig.silent_s = [(200, 290), (300, 400)]
    with pytest.raises(
        InvalidMeasurement, match=r"^randread_4k_qd8 on raid0x2 is not valid: fio was silent .*\(after 2 attempts\)$"
    ):
        measure(rig, at(1))
    assert len(rig.running) == 2
    assert not rig.noted("measured")


def test_of_thousands_of_objections_some_are_told() -> None:
    assert sequential_verdict._joined(["a"] * 5) == "a; a; a; a; a"
    assert sequential_verdict._joined(["a"] * 1005) == "a; a; a; a; a; and 1,000 more"


@pytest.mark.parametrize("dies_s", [100, 495, 700])
def test_a_fio_that_dies_is_no_measurement_and_its_output_is_kept(rig: SequentialRig, dies_s: float) -> None:
    rig.dies_s = [dies_s]
    with pytest.raises(InvalidMeasurement, match="killed by signal 9"):
        measure(rig, never)
    assert len(rig.kept) == len(rig.running) == 1
    assert not rig.noted("measured")


@pytest.mark.parametrize("dies_s", [600, 1795])
def test_a_fio_that_ends_too_early_without_a_word_is_none_either(rig: SequentialRig, dies_s: float) -> None:
    rig.dies_s, rig.last_words = [dies_s], ""
    with pytest.raises(InvalidMeasurement, match=r"^fio ran for \d+\.0 s instead of 1810\.0 s$"):
        measure(rig, never)


def test_an_array_that_falls_ill_is_not_measured_to_the_limit(rig: SequentialRig) -> None:
    rig.sick_at_s = 600
    with pytest.raises(InvalidMeasurement, match="degraded"):
        measure(rig, never)
    (running,) = rig.running
    assert running.ended
    assert running.now_s < 800


def test_without_the_lease_nothing_goes_on(rig: SequentialRig) -> None:
    rig.lease_until_s = 600
    with pytest.raises(LeaseLost):
        measure(rig, never)
    assert rig.running[0].ended
    rig.lease_until_s = 0
    with pytest.raises(LeaseLost):
        measure(rig, never)
    assert len(rig.running) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MachineLost("m1 is lost")])
def test_an_interrupt_or_a_lost_machine_ends_fio(rig: SequentialRig, error: BaseException) -> None:
    def wait() -> None:
        if rig.now_s > 300:
            raise error

    rig.meanwhile = wait
    with pytest.raises(type(error)):
        measure(rig, never)
    assert rig.running[0].ended


def test_a_workload_that_cannot_be_run_is_told_without_a_process(rig: SequentialRig) -> None:
    with pytest.raises(InvalidMeasurement, match="cannot be run on raid0x2"):
        measure(rig, never, workload=Workload("write", "1g", 8))
    assert rig.running == []


def test_a_fio_that_tells_nothing_is_not_waited_for_for_ever(
    rig: SequentialRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10**9, 60))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    rig.meanwhile = lambda: setattr(rig.running[0], "now_s", 0.0)
    with pytest.raises(RigError, match=r"^fio reported only 300 s after \d+ s$"):
        measure(rig, never)
    assert rig.running[0].ended


def test_an_attempt_after_an_invalid_one_inherits_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one may be invalid because the load stopped, and a cache refills meanwhile."""
    loads: list[float] = []
    voids: list[str] = []
    valid = strategies.run([1000] * 5)

    def attempt(*given: object) -> tuple[Run, tuple[str, ...]]:
        shared = given[-1]
        assert isinstance(shared, SharedEvidence)
        if not voids:
            voids.append("")
            raise ClockSet("the clock was set")
        loads.append(shared.loaded_s)
        return valid, ("fio was silent for 300.0 s at 20.0 s",) if len(loads) == 1 else ()

    monkeypatch.setattr(sequential_verdict, "_attempt", attempt)
    monkeypatch.setattr(sequential_verdict, "_note_steady", lambda *given: None)
    monkeypatch.setattr(fixed_time, "record_measured", lambda setup, measured, kind: measured)
    monkeypatch.setattr(fixed_time, "faults_of_drives", lambda run: {})
    monkeypatch.setattr(fixed_time, "note_void", lambda setup, array, workload, why: voids.append(why))
    setup: Any = SimpleNamespace(protocol=SimpleNamespace(attempts=3))
    array: Any = None
    known = SharedEvidence(loaded_s=2400.0)
    assert sequential_verdict.measure(setup, array, READS, RULE, shared=known).runs == (valid.condensed(),)
    assert loads == [2400.0, 0.0]
    assert voids == ["", "the clock was set"]
