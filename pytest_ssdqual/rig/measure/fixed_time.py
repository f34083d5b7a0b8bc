"""Measurement for a fixed time: one fio process on an array or on drives side by side, between two health checks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean

from pytest_ssdqual.qual.measured.environment import StripeCache
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.spec.protocol import Protocol, SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DrivesUndecided, serial_of
from pytest_ssdqual.rig.fio import acceptance, jobs, output, process
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine.machine import ClockSet, InvalidMeasurement
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure, environment, live_stats, stripe_cache
from pytest_ssdqual.rig.observe.environment import When
from pytest_ssdqual.rig.observe.live_stats import Course
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

#: Depth of conditioning writes: the deepest of the Intel S3500 RAID paper (seeds A-P5).
CONDITIONING_DEPTH = 8


@dataclass(frozen=True, slots=True)
class ProcessWindow:
    """Duration of one process and of the part that counts."""

    ramp_s: float
    window_s: float
    rounds: int
    #: Seconds between fio's reports.
    every_s: int = 1
    #: The process ends early when this much was written.
    volume_bytes: int | None = None


def run(setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
    """Run one fio process; its raw output is stored as ``kind``.

    ``RigError`` or a child of it: ``DriveFailed`` if a drive failed under the load, ``InvalidMeasurement`` if the array
    was not healthy before or after, or if fio's output is incomplete.
    """
    require(setup, array, writes=workload.writes)
    with drive_failure.attributed(setup, array):
        mdadm.require_healthy(setup.machine, array)
    seconds = window.ramp_s + window.window_s
    targets = array.targets
    try:
        job = jobs.measurement(
            workload, targets, array.drives_per_target, seconds, window.every_s,
            volume_bytes=window.volume_bytes, load=setup.load.of(array),
        )  # fmt: skip
    except ValueError as error:
        raise InvalidMeasurement(f"{workload} cannot be run on {array.geometry}: {error}") from error
    before = environment.take_reading(setup.machine, array, When.BEFORE)
    with drive_failure.attributed(setup, array, before, str(workload), kind) as files:
        raw, finished, stripes = record_run(
            setup, array, workload, kind, lambda: process.run(setup.machine, job, seconds)
        )
        files.append(raw)
        after = environment.take_reading(setup.machine, array, When.AFTER, before)
        mdadm.require_healthy(setup.machine, array)
        done = finished.completed
        result = acceptance.accept(finished.pieces(), done.status, done.errors, job.expectation)
    parts, part_reports = output.of_drives(result, array.geometry)
    measured_run = Run(
        workload=workload,
        geometry=array.geometry,
        members=tuple(drive.serial or drive.identity for drive in array.members),
        intervals=result.intervals,
        ramp_s=window.ramp_s,
        window_s=window.window_s if window.volume_bytes is None else min(window.window_s, result.seconds),
        rounds=window.rounds,
        raw=raw,
        seen=environment.between(array, before, after, result, stripes),
        parts=parts,
        reports=result.of_target,
        is_heat_promised=setup.promises_heat(array.geometry, workload),
        part_reports=part_reports,
    )
    environment.note(setup, measured_run, kind)
    return measured_run


def require(setup: Setup, array: Array, *, writes: bool) -> None:
    """Raise unless fio may be started now: the lease is held, and bare drives to be written to are still unused.

    Between two measurements of bare drives no process holds them; md holds the members of an array.
    """
    if writes and array.geometry.is_side_by_side:
        setup.held.require(array.members)
    else:
        setup.held.require_lease()


def record_run(
    setup: Setup, array: Array, workload: Workload, kind: str, work: Callable[[], FinishedProcess]
) -> tuple[str, FinishedProcess, StripeCache | None]:
    """Run ``work`` and return the name of its stored output, and the stripe cache; its start is recorded first.

    If this process dies meanwhile, the record shows whether something was being written.
    """
    about = {"geometry": str(array.geometry), "workload": str(workload), "fio": kind}
    setup.logbook.note("measuring", **about, asked=workload, writes=workload.writes)
    with (
        stripe_cache.sampled(setup.machine, array) as samples,
        live_stats.watched(setup.live, array, workload, kind, workload.block_bytes),
    ):
        finished = work()
    raw = setup.logbook.keep(f"{array.geometry}-{workload}-{kind}.json.gz", finished.packed)
    setup.logbook.note("ran", **about, raw=raw, sha256=hashlib.sha256(finished.packed).hexdigest())
    return raw, finished, samples.result


def measure(setup: Setup, array: Array, workload: Workload, kind: str = "measured", *, tail: bool = False) -> Measured:
    """Run all repeats of one workload, each with a steady window; ``InvalidMeasurement`` if one has none.

    ``tail``: a percentile of the tail is requested, which needs a longer window. For ``kind`` see ``record_measured``.
    """
    window_s = setup.protocol.window_of(tail=tail)
    runs = tuple(_settled_run(setup, array, workload, window_s) for _ in range(setup.protocol.repeats))
    return record_measured(setup, Measured(runs), kind)


def record_measured(setup: Setup, measured: Measured, kind: str = "measured") -> Measured:
    """Record ``measured`` and return it; under another ``kind`` tests do not share it."""
    setup.logbook.note(
        kind,
        geometry=str(measured.geometry),
        workload=str(measured.workload),
        asked=measured.workload,
        protocol=setup.protocol.name,
        acceptance=setup.protocol.acceptance,
        **measured.summary(),
    )
    return measured


def _settled_run(setup: Setup, array: Array, workload: Workload, window_s: float) -> Run:
    """Return one valid run with a steady window, or raise the fault of the last attempt."""
    protocol, fault, of_drives = setup.protocol, "", dict[str, str]()
    window = ProcessWindow(protocol.ramp_s, window_s, protocol.steady.window)
    for _ in range(protocol.attempts):
        setup.progress(f"{array.geometry}: {workload}", protocol.ramp_s + window_s)
        round_s = window_s / window.rounds
        live_stats.expect(setup.live, Course(0, window.rounds, round_s, protocol.ramp_s, exact=True))
        try:
            measured_run = run(setup, array, workload, "run", window)
        except ClockSet as clock_set:
            fault, of_drives = f"is not valid: {clock_set}", {}
            _note_void(setup, array, workload, str(clock_set))
            continue
        objections = checks.objections(measured_run)
        state = least_steady([member.round_iops() for member in measured_run.of_members()], protocol.steady)
        setup.logbook.note(
            "steady",
            geometry=str(array.geometry),
            workload=str(workload),
            raw=measured_run.raw,
            objections=objections,
            **asdict(state),
        )
        live_stats.send_state(setup.live, state)
        if state.reached and not objections:
            return measured_run.condensed()
        of_drives = faults_of_drives(measured_run, protocol.steady)
        if of_drives:
            each = "; ".join(f"{serial}: {why}" for serial, why in of_drives.items())
            fault = f"is not {'valid' if objections else 'steady'}: {each}"
        elif objections:
            fault = f"is not valid: {'; '.join(objections)}"
        else:
            fault = f"is {state.describe()}{steady_state.repeats(*steady_state.series(measured_run))}"
    times = f"{protocol.attempts} attempts" if protocol.attempts > 1 else "one attempt"
    raise of_some_drives(f"{workload} on {array.geometry} {fault} (after {times})", of_drives, array)


def faults_of_drives(run: Run, rule: SteadyRule | None = None) -> dict[str, str]:
    """Return why drives side by side have no valid figure, by serial number; empty if that is about all of them.

    With ``rule``, each has to be steady.
    """
    found = checks.objections_by_drive(run)
    if "" in found or not run.parts:
        return {}
    faults = {
        serial: "; ".join(each.removeprefix(f"{serial}: ") for each in objections)
        for serial, objections in found.items()
    }
    if rule is None:
        return faults
    states = {each.drive: (steady_state.judge(each.round_iops(), rule), each) for each in run.of_members()}
    unsteady = {serial: each for serial, each in states.items() if not each[0].reached}
    described = {
        serial: f"{state.describe()}{steady_state.repeats(*steady_state.series(each))}"
        for serial, (state, each) in unsteady.items()
    }
    return described | faults


def of_some_drives(sentence: str, faults: Mapping[str, str], array: Array) -> InvalidMeasurement:
    """Return the error of a measurement; ``DrivesUndecided`` if only some of several drives side by side caused it."""
    return DrivesUndecided(sentence, faults) if 0 < len(faults) < len(array.members) else InvalidMeasurement(sentence)


def _note_void(setup: Setup, array: Array, workload: Workload, objection: str) -> None:
    """Record an attempt without a result."""
    about = {"geometry": str(array.geometry), "workload": str(workload)}
    setup.logbook.note("steady", **about, reached=False, objections=(objection,))


def precondition(
    setup: Setup, array: Array, workload: Workload, *, again: bool = False, seen: Callable[[Run], None] | None = None
) -> Conditioned | None:
    """Write in steps until steady: random writes before random workloads, sequential ones before sequential workloads.

    ``again``: the protocol's volume was written before. ``seen`` gets the run of each step. None if the protocol has no
    such step. ``InvalidMeasurement`` if the array does not settle within the limit. Of drives side by side, those that
    do not are left out of this class of workloads.
    """
    protocol = setup.protocol
    rule, step_s = protocol.steady, protocol.precondition_s
    if not step_s:
        return None
    writes = conditioning(workload)
    least_bytes = 0 if again else int(protocol.precondition_capacities * array.size_bytes)
    # Two hours of conditioning do not need a histogram of every second; a few points per round suffice.
    window = ProcessWindow(0.0, step_s, max(1, round(step_s / protocol.round_s)), max(1, int(protocol.round_s / 12)))
    steps = _Steps([[] for _ in array.targets])
    subject = array.geometry, workload.is_random
    setup.failures.undecided.pop(subject, None)
    while True:
        setup.progress(f"{array.geometry}: precondition with {writes}", step_s)
        live_stats.expect(setup.live, _course(protocol, window, len(steps.rates[0])))
        found = run(setup, array, writes, "precondition", window)
        steps.add(found, step_s)
        if seen:
            seen(found)
        if len(steps.rates[0]) < rule.window:
            continue  # steps shorter than the window: the rule needs one whole window, whatever the limit
        state = least_steady([rates[-rule.window :] for rates in steps.rates], rule)
        live_stats.send_state(setup.live, state)
        if (state.reached and steps.bytes_written >= least_bytes) or steps.seconds >= protocol.precondition_limit_s:
            break
    rates = _settled_rates(array, steps, rule)
    setup.logbook.note(
        "conditioned",
        geometry=str(array.geometry),
        workload=str(writes),
        random=workload.is_random,
        seconds=steps.seconds,
        bytes_written=steps.bytes_written,
        least_bytes=least_bytes,
        round_iops=steps.rates[0] if len(steps.rates) == 1 else steps.rates,
        steady=asdict(state),
        rates=rates,
        raw=steps.raws,
    )
    unsettled = _unsettled(array, steps, rule)
    if 0 < len(unsettled) < len(array.targets):
        about = f"did not settle within {steps.seconds:g} s of {writes}"
        reasons = {serial: f"{about}: {why}" for serial, why in unsettled.items()}
        setup.failures.leave_out(array.geometry, subject, reasons, setup.logbook)
        of_each = zip(array.members, steps.rates, strict=True)
        settled = [rates[-rule.window :] for drive, rates in of_each if serial_of(drive) not in unsettled]
        state = least_steady(settled, rule)
    _require_conditioned(array, writes, state, steps, least_bytes, unsettled)
    return Conditioned(writes, state, rates)


def _settled_rates(array: Array, steps: _Steps, rule: SteadyRule) -> dict[str, float]:
    """Return the IOPS of each drive side by side in the last window, by serial number; empty for an array."""
    if not array.geometry.is_side_by_side:
        return {}
    each = zip(array.members, steps.rates, strict=True)
    return {serial_of(drive): fmean(rates[-rule.window :]) for drive, rates in each}


def _unsettled(array: Array, steps: _Steps, rule: SteadyRule) -> dict[str, str]:
    """Return how far drives side by side are from steady, by serial number; empty for an array."""
    if not array.geometry.is_side_by_side:
        return {}
    states = [steady_state.judge(rates[-rule.window :], rule) for rates in steps.rates]
    found = zip(array.members, states, strict=True)
    return {serial_of(drive): state.describe() for drive, state in found if not state.reached}


def _course(protocol: Protocol, window: ProcessWindow, before: int) -> Course:
    """Position of a preconditioning step: rounds until the limit; a step that exceeds the limit extends it."""
    steps = max(1, math.ceil(protocol.precondition_limit_s / window.window_s))
    most = max(steps * window.rounds, before + window.rounds)
    return Course(before, most, window.window_s / window.rounds)


@dataclass(slots=True)
class _Steps:
    """Results of the steps of one preconditioning so far."""

    #: IOPS of each round, for each target.
    rates: list[list[float]]
    #: IOPS of all targets together, one value a report.
    series: list[float] = field(default_factory=list)
    report_s: float = 1.0
    raws: list[str] = field(default_factory=list)
    seconds: float = 0.0
    bytes_written: int = 0

    def add(self, run: Run, seconds: float) -> None:
        for rates, member in zip(self.rates, run.of_members(), strict=True):
            rates += member.round_iops()
        values, self.report_s = steady_state.series(run)
        self.series += values
        self.raws.append(run.raw)
        self.seconds += seconds
        self.bytes_written += run.bytes_written


def least_steady(series: Sequence[Sequence[float]], rule: SteadyRule) -> SteadyState:
    """State of the series that is furthest from steady: of drives side by side every one has to be steady."""
    states = [steady_state.judge(values, rule) for values in series]
    return max(states, key=lambda state: (not state.reached, state.unsteadiness))


def conditioning(workload: Workload) -> Workload:
    """The writes that bring an array into the state in which ``workload`` is to be measured.

    They have its class and its size; for a mix of sizes the most frequent one.
    """
    size, _ = max(workload.sizes, key=lambda size_and_share: size_and_share[1])
    return Workload("randwrite" if workload.is_random else "write", str(size), CONDITIONING_DEPTH)


def _require_conditioned(
    array: Array, writes: Workload, state: SteadyState, steps: _Steps, least_bytes: int, unsettled: Mapping[str, str]
) -> None:
    if not state.reached:
        each = "; ".join(f"{serial}: {why}" for serial, why in unsettled.items()) or state.describe()
        raise InvalidMeasurement(
            f"{array.geometry} did not settle within {steps.seconds:g} s of {writes}: {each}"
            f"{steady_state.repeats(steps.series, steps.report_s)}"
        )
    if steps.bytes_written < least_bytes:
        raise InvalidMeasurement(
            f"only {steps.bytes_written / array.size_bytes:.2f} capacities of {array.geometry} were written in "
            f"{steps.seconds:g} s of {writes}, the protocol requires {least_bytes / array.size_bytes:g}: raise "
            "precondition.limit"
        )
