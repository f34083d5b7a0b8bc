"""Group-sequential measurement: one fio process, with interim analyses, ended as soon as every claim is decided.

fio is started once, for the longest time the protocol allows, and never interrupted: a gap would be a change of load.
An interim analysis only decides whether to continue. The result is computed from fio's final output, cut at the last
analysis, so that it can be recomputed from that file and a few values of the record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import batch_means, group_sequential, steady_state
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.stats.shared_evidence import NOTHING_KNOWN, SharedEvidence
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio import acceptance, jobs, output, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.output import FioResult, StatusReader
from pytest_ssdqual.rig.fio.process import FinishedProcess, RunningProcess
from pytest_ssdqual.rig.machine.machine import Disturbed, InvalidMeasurement
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure, environment, live_stats
from pytest_ssdqual.rig.observe.live_stats import Course

#: fio's output is read at least once in so many reports, so that it does not fill the memory of the machine under
#: test.
READ_EVERY_REPORTS = 60
#: Seconds after the end of its interval until a document is written.
WRITTEN_S = 0.5
#: Consecutive looks with objections that do not go away by waiting, after which the run is given up.
OBJECTED = 2
#: Limit of objections in a sentence.
MOST_QUOTED = 5


#: Decides at each look.
Enough = Callable[[Measured], Decision]


def at_once(measured: Measured) -> Decision:
    """Stopping rule without a claim: the first look suffices."""
    return Decision(done=True)


def measure(
    setup: Setup,
    array: Array,
    workload: Workload,
    rule: SequentialRule,
    enough: Enough = at_once,
    kind: str = "measured",
    shared: SharedEvidence = NOTHING_KNOWN,
) -> Measured:
    """Measure until ``enough`` decides at a look of ``rule``, or its time is over; recorded as ``kind``.

    ``shared`` is what is known of the drives when it begins.

    An invalid run is repeated up to the protocol's attempts; ``InvalidMeasurement`` after that.
    """
    attempts, faults, of_drives = setup.protocol.attempts, "", dict[str, str]()
    for _ in range(attempts):
        try:
            run, given_up = _attempt(setup, array, workload, rule, enough, shared)
        except Disturbed as disturbed:
            faults, of_drives = str(disturbed), {}
            fixed_time.note_void(setup, array, workload, faults)
            continue
        objections = checks.objections(run) or given_up
        _note_steady(setup, run, objections)
        if not objections:
            return fixed_time.record_measured(setup, Measured((run.condensed(),)), kind)
        faults, of_drives = _joined(objections), fixed_time.faults_of_drives(run)
        shared = replace(shared, loaded_s=0.0)  # it may be invalid because the load stopped
    sentence = f"{workload} on {array.geometry} is not valid: {faults} (after {attempts} attempts)"
    raise fixed_time.of_some_drives(sentence, of_drives, array)


def start(setup: Setup, array: Array, workload: Workload, job: Job) -> RunningProcess:
    """Start the process of ``workload`` on ``array``."""
    return process.start(setup.machine, job)


def _attempt(
    setup: Setup, array: Array, workload: Workload, rule: SequentialRule, enough: Enough, shared: SharedEvidence
) -> tuple[Run, Sequence[str]]:
    """Run one process; return the run at its last look, and the objections for which it was given up."""
    fixed_time.require(setup, array, writes=workload.writes)
    with drive_failure.attributed(setup, array):
        mdadm.require_healthy(setup.machine, array)
    least_s = setup.protocol.ramp_s + group_sequential.earliest_end_s(rule)
    setup.require_time(least_s, f"{workload} on {array.geometry}")
    seconds = setup.protocol.ramp_s + rule.limit_s
    try:
        job = jobs.measurement(
            workload, array.targets, array.drives_per_target, seconds, rule.report_s, load=setup.load.of(array)
        )
    except ValueError as error:
        raise InvalidMeasurement(f"{workload} cannot be run on {array.geometry}: {error}") from error
    process_watch = _Watch(setup, array, workload, rule, enough, job.expectation.block_bytes, shared)

    def work() -> FinishedProcess:
        with start(setup, array, workload, job) as running:
            ended_early = process_watch.follow(running)
            finished = running.end() if ended_early else running.wait(0)
        for piece in finished.rest():
            process_watch.reader.feed(piece)
        return finished

    before = drive_failure.reading_before(setup, array)
    with drive_failure.attributed(setup, array, before, str(workload), "run") as files:
        raw, finished, stripes = fixed_time.record_run(setup, array, workload, "run", work)
        files.append(raw)
        after = drive_failure.reading_after(setup, array, before)
        mdadm.require_healthy(setup.machine, array)
        done = finished.completed
        accept = acceptance.accept_read_ended if process_watch.ended_early else acceptance.accept_read
        result = accept(process_watch.reader, done.status, done.errors, job.expectation)
    setup.require_caches(array)
    seen = environment.between(array, before, after, workload, result, stripes)
    is_promised = setup.promises_heat(array.geometry, workload)
    run = replace(process_watch.last(result, raw), seen=seen, is_heat_promised=is_promised)
    environment.note(setup, run, "run")
    return run, process_watch.given_up


@dataclass(slots=True)
class _Watch:
    """A running process, from its first look to its last."""

    setup: Setup
    array: Array
    workload: Workload
    rule: SequentialRule
    enough: Enough
    #: The one size of all transfers; None for a mix.
    block_bytes: int | None
    shared: SharedEvidence
    reader: StatusReader = field(default_factory=lambda: StatusReader(output.MOST_DOCUMENTS))
    #: Number of the last look, counted from 1.
    number: int = 0
    ended_early: bool = False
    given_up: Sequence[str] = ()
    _objected: int = 0

    @property
    def times_s(self) -> Sequence[float]:
        return group_sequential.look_times(self.rule)

    def follow(self, running: RunningProcess) -> bool:
        """Look until the decision, or until fio has ended; return True if the decision came while fio was running."""
        began, ramp_s = time.monotonic(), self.setup.protocol.ramp_s
        live_stats.turned(self.setup.live, Course(0, len(self.times_s)))
        self.setup.progress(f"{self.array.geometry}: {self.workload}", ramp_s + self.times_s[0])
        for number, at_s in enumerate(self.times_s[:-1], 1):
            if not self._await(running, ramp_s + at_s, began):
                return False
            self.setup.held.require_lease()
            mdadm.require_healthy(self.setup.machine, self.array)
            if self._look(number):
                self.ended_early = True
                return True
            live_stats.turned(self.setup.live, Course(number, len(self.times_s)))
        # The last look is when fio ends by itself.
        self._await(running, ramp_s + self.times_s[-1] + self.rule.report_s, began)
        return False

    def last(self, result: FioResult, raw: str) -> Run:
        """Return the run at its last look, computed from fio's whole output."""
        if not self.ended_early:
            self.number = len(self.times_s)
        run = self._run(result, raw)
        if not self.ended_early:
            self._decide(run)
        return run

    def _look(self, number: int) -> bool:
        """Return True if the process is to end: the claims are decided, or the run is no longer valid."""
        self.number = number
        return self._decide(self._run(self.reader.so_far(self.block_bytes), ""))

    def _decide(self, run: Run) -> bool:
        objections = checks.objections(run)
        lasting = bool(objections) and bool(checks.objections(run, fewest=0))
        self._objected = self._objected + 1 if lasting else 0
        if objections:
            decision = Decision(done=False, sentence=_joined(objections))
        else:
            decision = self.enough(Measured((run.condensed(),)))
        if not decision and self.number == len(self.times_s):
            # More time does not help; removing a periodic disturbance may.
            decision = replace(
                decision, sentence=f"{decision.sentence}{steady_state.repeats(*steady_state.series(run))}"
            )
        if self._objected >= OBJECTED or (objections and self._is_next_late()):
            self.given_up = objections
        self._note(run, objections, decision)
        live_stats.send_steadiness(
            self.setup.live, decision.done, decision.sentence, "decided" if decision.done else "not decided yet"
        )
        return decision.done or bool(self.given_up)

    def _is_next_late(self) -> bool:
        """Return whether the time budget of the run ends before the next look."""
        next_s = self.times_s[min(self.number, len(self.times_s) - 1)]
        return next_s - self.times_s[self.number - 1] > self.setup.left_s()

    def _run(self, result: FioResult, raw: str) -> Run:
        protocol, array = self.setup.protocol, self.array
        parts, part_reports = output.of_drives(result, array.geometry)
        whole = Run(
            workload=self.workload,
            geometry=array.geometry,
            members=tuple(drive.serial or drive.identity for drive in array.members),
            intervals=result.intervals,
            ramp_s=protocol.ramp_s,
            window_s=self.rule.limit_s,
            rounds=batch_means.COUNT,
            raw=raw,
            parts=parts,
            reports=result.of_target,
            part_reports=part_reports,
        )
        return group_sequential.at_look(whole, self.number, self.rule, protocol.verdict.confidence, self.shared)

    def _await(self, running: RunningProcess, until_s: float, began: float) -> bool:
        """Wait until fio has reported so much of its time; False if it ended earlier."""
        while True:
            alive = running.is_alive()
            for piece in running.read_new():
                self.reader.feed(piece)
            left_s = until_s - self.reader.seconds
            if left_s <= 0:
                return True
            if not alive:
                return False
            elapsed_s = time.monotonic() - began
            if elapsed_s > until_s * 1.25 + process.OVERHEAD_S:
                raise InvalidMeasurement(f"fio reported only {self.reader.seconds:.0f} s after {elapsed_s:.0f} s")
            running.rest(min(left_s + WRITTEN_S, READ_EVERY_REPORTS * self.rule.report_s))

    def _note(self, run: Run, objections: Sequence[str], decision: Decision) -> None:
        at_s, is_last = self.times_s[self.number - 1], self.number == len(self.times_s)
        self.setup.logbook.note(
            "looked",
            geometry=str(self.array.geometry),
            workload=str(self.workload),
            look=self.number,
            of=len(self.times_s),
            at_s=at_s,
            iops=run.iops,
            warmup_s=run.look.warmup_s if run.look else None,
            objections=list(objections),
            decided=decision.done,
            sentence=decision.sentence,
        )
        if self.setup.looked:
            ends = decision.done or bool(self.given_up) or is_last
            reason = "decided" if decision else "given up" if self.given_up else "its time is over"
            position = f"look {self.number} of {len(self.times_s)} at {format_duration(at_s)}"
            description = (
                f"{position}: {decision.sentence or format_value(run.iops, Unit.IOPS)}: {reason if ends else 'goes on'}"
            )
            extra_s = 0.0 if ends else self.times_s[self.number] - at_s
            self.setup.looked(f"{self.array.geometry} {self.workload}: {description}", extra_s)


def _note_steady(setup: Setup, run: Run, objections: Sequence[str]) -> None:
    """Record the SNIA steady-state rule for the counted part, beside this program's own stopping rule."""
    rule = setup.protocol.steady
    members = run.of_members()
    state = fixed_time.least_steady([replace(member, rounds=rule.window).round_iops() for member in members], rule)
    setup.logbook.note(
        "steady",
        geometry=str(run.geometry),
        workload=str(run.workload),
        raw=run.raw,
        objections=objections,
        **asdict(state),
        look=asdict(run.look) if run.look else None,
        settling=[asdict(steady_state.of(member)) for member in members],
    )


def _joined(objections: Sequence[str]) -> str:
    """Join objections, at most ``MOST_QUOTED``: a fio that is silent repeatedly has thousands."""
    more = len(objections) - MOST_QUOTED
    return "; ".join(objections[:MOST_QUOTED]) + (f"; and {more:,} more" if more > 0 else "")
