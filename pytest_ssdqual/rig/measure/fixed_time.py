"""Measurement for a fixed time: one fio process on an array or on drives side by side, between two health checks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.spec.protocol import Protocol, SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio import acceptance, jobs, process
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine.machine import ClockSet, InvalidMeasurement
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import environment, live_stats
from pytest_ssdqual.rig.observe.environment import When
from pytest_ssdqual.rig.observe.live_stats import Course

#: Depth of the writes that condition an array; the deepest of the Intel S3500 RAID paper (seeds A-P5).
CONDITIONING_DEPTH = 8


@dataclass(frozen=True, slots=True)
class ProcessWindow:
    """How long one process runs and what of it counts."""

    ramp_s: float
    window_s: float
    rounds: int
    #: How often fio reports.
    every_s: int = 1
    #: End when this much was written, if that comes first.
    volume_bytes: int | None = None


def run(setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
    """One fio process; its raw output is kept as ``kind``.

    Raises ``RigError`` or a child of it: ``InvalidMeasurement`` if the array was not healthy before or after, or if
    fio's account is not whole.
    """
    require(setup, array, writes=workload.writes)
    mdadm.require_healthy(setup.machine, array)
    seconds = window.ramp_s + window.window_s
    targets = array.targets
    try:
        job = jobs.measurement(
            workload, targets, array.geometry.width, seconds, window.every_s, volume_bytes=window.volume_bytes
        )
    except ValueError as error:
        raise InvalidMeasurement(f"{workload} cannot be run on {array.geometry}: {error}") from error
    before = environment.look(setup.machine, array, When.BEFORE)
    raw, finished = noted(setup, array, workload, kind, lambda: process.run(setup.machine, job, seconds))
    after = environment.look(setup.machine, array, When.AFTER, before)
    mdadm.require_healthy(setup.machine, array)
    done = finished.completed
    result = acceptance.accept(finished.pieces(), done.status, done.errors, job.expectation)
    found = Run(
        workload=workload,
        geometry=array.geometry,
        members=tuple(drive.serial or drive.identity for drive in array.members),
        intervals=result.intervals,
        ramp_s=window.ramp_s,
        window_s=window.window_s if window.volume_bytes is None else min(window.window_s, result.seconds),
        rounds=window.rounds,
        raw=raw,
        seen=environment.seen(array, before, after, result),
        parts=result.parts if array.geometry.is_side_by_side else (),
        reports=result.of_target,
        part_reports=result.reports if array.geometry.is_side_by_side and result.parts else (),
    )
    environment.note(setup, found, kind)
    return found


def require(setup: Setup, array: Array, *, writes: bool) -> None:
    """Raise unless fio may be started on this now: the lease is held, and bare drives to be written to are still free.

    Between two measurements of bare drives nothing holds them; members of an array are held by md.
    """
    if writes and array.geometry.is_side_by_side:
        setup.held.require(array.members)
    else:
        setup.held.require_lease()


def noted(
    setup: Setup, array: Array, workload: Workload, kind: str, work: Callable[[], FinishedProcess]
) -> tuple[str, FinishedProcess]:
    """``work``, and where its output is kept. That it begins is on record before it does.

    If we die meanwhile, the record says whether something was being written.
    """
    about = {"geometry": str(array.geometry), "workload": str(workload), "fio": kind}
    setup.logbook.note("measuring", **about, asked=workload.to_record(), writes=workload.writes)
    with live_stats.watched(setup.live, array, workload, kind, workload.block_bytes):
        finished = work()
    raw = setup.logbook.keep(f"{array.geometry}-{workload}-{kind}.json.gz", finished.packed)
    setup.logbook.note("ran", **about, raw=raw, sha256=hashlib.sha256(finished.packed).hexdigest())
    return raw, finished


def measure(setup: Setup, array: Array, workload: Workload, kind: str = "measured", *, tail: bool = False) -> Measured:
    """All repeats of one workload; each with a steady window, or ``InvalidMeasurement``. For ``kind`` see below.

    ``tail``: whether a percentile of its tail is asked for, which takes a window of its own.
    """
    window_s = setup.protocol.window_of(tail=tail)
    runs = tuple(_settled_run(setup, array, workload, window_s) for _ in range(setup.protocol.repeats))
    return noted_measured(setup, Measured(runs), kind)


def noted_measured(setup: Setup, measured: Measured, kind: str = "measured") -> Measured:
    """``measured``, when it is on record; as another ``kind`` it is none of what tests share."""
    setup.logbook.note(
        kind,
        geometry=str(measured.geometry),
        workload=str(measured.workload),
        asked=measured.workload.to_record(),
        protocol=setup.protocol.name,
        acceptance=setup.protocol.acceptance,
        **measured.summary(),
    )
    return measured


def _settled_run(setup: Setup, array: Array, workload: Workload, window_s: float) -> Run:
    """One valid run with a steady window; what was wrong with the last attempt otherwise."""
    protocol, trouble = setup.protocol, ""
    window = ProcessWindow(protocol.ramp_s, window_s, protocol.steady.window)
    for _ in range(protocol.attempts):
        setup.progress(f"{array.geometry}: {workload}", protocol.ramp_s + window_s)
        round_s = window_s / window.rounds
        live_stats.expect(setup.live, Course(0, window.rounds, round_s, protocol.ramp_s, exact=True))
        try:
            found = run(setup, array, workload, "run", window)
        except ClockSet as clock_set:
            trouble = f"is not valid: {clock_set}"
            _note_void(setup, array, workload, str(clock_set))
            continue
        objections = checks.objections(found)
        now = least_steady([each.round_iops() for each in found.of_members()], protocol.steady)
        setup.logbook.note(
            "steady",
            geometry=str(array.geometry),
            workload=str(workload),
            raw=found.raw,
            objections=objections,
            **asdict(now),
        )
        live_stats.found(setup.live, now)
        if now.reached and not objections:
            return found.condensed()
        if objections:
            trouble = f"is not valid: {'; '.join(objections)}"
        else:  # drives side by side: what they do together
            trouble = f"is {now.describe()}{steady_state.repeats(*steady_state.series(found))}"
    times = f"{protocol.attempts} attempts" if protocol.attempts > 1 else "one attempt"
    raise InvalidMeasurement(f"{workload} on {array.geometry} {trouble} (after {times})")


def _note_void(setup: Setup, array: Array, workload: Workload, objection: str) -> None:
    """Of an attempt that gave no figures."""
    about = {"geometry": str(array.geometry), "workload": str(workload)}
    setup.logbook.note("steady", **about, reached=False, objections=(objection,))


def precondition(setup: Setup, array: Array, workload: Workload) -> SteadyState | None:
    """Write in steps until steady: random writes before random workloads, sequential ones before sequential.

    None if the protocol has no such step. ``InvalidMeasurement`` if it does not settle within the protocol's limit.
    """
    protocol = setup.protocol
    rule, step_s = protocol.steady, protocol.precondition_s
    if not step_s:
        return None
    writes = conditioning(workload)
    least = int(protocol.precondition_capacities * array.size_bytes)
    # Two hours of conditioning need no histogram of every second; some points a round do.
    window = ProcessWindow(0.0, step_s, max(1, round(step_s / protocol.round_s)), max(1, int(protocol.round_s / 12)))
    steps = _Steps([[] for _ in array.targets])
    while True:
        setup.progress(f"{array.geometry}: precondition with {writes}", step_s)
        live_stats.expect(setup.live, _course(protocol, window, len(steps.rates[0])))
        steps.add(run(setup, array, writes, "precondition", window), step_s)
        if len(steps.rates[0]) < rule.window:
            continue  # steps shorter than the window: the rule needs one whole window, whatever the limit
        reached = least_steady([each[-rule.window :] for each in steps.rates], rule)
        live_stats.found(setup.live, reached)
        if (reached.reached and steps.bytes_written >= least) or steps.seconds >= protocol.precondition_limit_s:
            break
    setup.logbook.note(
        "conditioned",
        geometry=str(array.geometry),
        workload=str(writes),
        random=workload.is_random,
        seconds=steps.seconds,
        bytes_written=steps.bytes_written,
        least_bytes=least,
        round_iops=steps.rates[0] if len(steps.rates) == 1 else steps.rates,
        steady=asdict(reached),
        raw=steps.raws,
    )
    _require_conditioned(array, writes, reached, steps, least)
    return reached


def _course(protocol: Protocol, window: ProcessWindow, before: int) -> Course:
    """Of a step of preconditioning: rounds until the limit, but for the step that goes beyond it."""
    steps = max(1, math.ceil(protocol.precondition_limit_s / window.window_s))
    most = max(steps * window.rounds, before + window.rounds)
    return Course(before, most, window.window_s / window.rounds)


@dataclass(slots=True)
class _Steps:
    """What the steps of one preconditioning have shown so far."""

    #: IOPS of each round, of each target.
    rates: list[list[float]]
    #: IOPS of all targets together, one value a report.
    series: list[float] = field(default_factory=list)
    report_s: float = 1.0
    raws: list[str] = field(default_factory=list)
    seconds: float = 0.0
    bytes_written: int = 0

    def add(self, found: Run, seconds: float) -> None:
        for rates, each in zip(self.rates, found.of_members(), strict=True):
            rates += each.round_iops()
        values, self.report_s = steady_state.series(found)
        self.series += values
        self.raws.append(found.raw)
        self.seconds += seconds
        self.bytes_written += found.bytes_written


def least_steady(series: Sequence[Sequence[float]], rule: SteadyRule) -> SteadyState:
    """The state of the one that is furthest from steady: of drives side by side every one has to be."""
    states = [steady_state.judge(each, rule) for each in series]
    return max(states, key=lambda state: (not state.reached, state.unsteadiness))


def conditioning(workload: Workload) -> Workload:
    """The writes that bring an array into the state in which ``workload`` is to be measured.

    Of its class and of its size; of a mix of sizes the most frequent one.
    """
    size, _ = max(workload.sizes, key=lambda each: each[1])
    return Workload("randwrite" if workload.is_random else "write", str(size), CONDITIONING_DEPTH)


def _require_conditioned(array: Array, writes: Workload, reached: SteadyState, steps: _Steps, least: int) -> None:
    if not reached.reached:
        raise InvalidMeasurement(
            f"{array.geometry} did not settle within {steps.seconds:g} s of {writes}: {reached.describe()}"
            f"{steady_state.repeats(steps.series, steps.report_s)}"
        )
    if steps.bytes_written < least:
        raise InvalidMeasurement(
            f"only {steps.bytes_written / array.size_bytes:.2f} capacities of {array.geometry} were written in "
            f"{steps.seconds:g} s of {writes}, the protocol wants {least / array.size_bytes:g}: raise "
            "precondition.limit"
        )
