"""Measurement for a fixed time: one fio process on an array or on drives side by side, between two health checks."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import TypeVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import MediaCount, StripeCache
from pytest_ssdqual.qual.measured.result_records import AloneRecord, MeasuredRecord
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.measured.sweep import DrivesAlone
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.validity.check import Check
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DrivesUndecided
from pytest_ssdqual.rig.fio import jobs, output, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.output import FioResult
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard.refusals import DrivesGone
from pytest_ssdqual.rig.health import media_count
from pytest_ssdqual.rig.machine.machine import CommandFailed, Disturbed, InvalidMeasurement
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure, environment, live_stats, open_files, stripe_cache
from pytest_ssdqual.rig.observe.environment import EnvironmentReading
from pytest_ssdqual.rig.observe.live_stats import Course

#: A window with too few I/Os is repeated with a longer one, since the next one of the same length has as few: longer by
#: this factor than the rate of the last one needs, and at most so many times as long as the protocol has it.
MARGIN_OF_GROWTH, MOST_GROWTH = 1.2, 10.0
#: Seconds in which a drive may appear again that was gone: SCSI error handling, or a reset of an HBA or controller.
REAPPEARS_S = 5.0
ONE = Geometry(RaidLevel.DRIVE, 1)
#: Kinds of processes that only condition: what disturbs a drive meanwhile does not stay.
PREPARATIONS = ("precondition", "refresh")
#: Repetitions of one step because something disturbed it.
MOST_DISTURBED = 5
T = TypeVar("T")


@frozen
class ProcessWindow:
    """Duration of one process and of the part that counts, which is that of the bursts if the workload has pauses."""

    ramp_s: float
    window_s: float
    rounds: int
    #: Seconds between fio's reports.
    every_s: int = 1
    #: The process ends early when this much was written.
    volume_bytes: int | None = None
    #: Where sequential I/O begins; see ``jobs.measurement``.
    begin: float = 0.0
    #: The iologs of a replay, on the machine; it ends by itself.
    shares: tuple[str, ...] = ()


def run(setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
    """Run one fio process; its raw output is stored as ``kind``.

    ``RigError`` or a child of it: ``DriveFailed`` if a drive failed under the load, ``InvalidMeasurement`` if the array
    was not healthy before or after, or if fio's output is incomplete.
    """
    require(setup, array, writes=workload.writes)
    with drive_failure.attributed(setup, array):
        mdadm.require_healthy(setup.machine, array)
    seconds = window.ramp_s + window.window_s
    if window.volume_bytes is None:  # a volume takes as long as it takes, usually much less than the limit
        setup.require_time(seconds, f"{workload} on {array.geometry}")
    job = _job(setup, array, workload, window)
    media = _media_counts(setup, array, workload, kind)
    before = drive_failure.reading_before(setup, array, is_measured=kind not in PREPARATIONS)
    with drive_failure.attributed(setup, array, before, str(workload), kind) as files:
        raw, finished, stripes = record_run(
            setup, array, workload, kind, lambda: process.run(setup.machine, job, seconds)
        )
        files.append(raw)
        after = drive_failure.reading_after(setup, array, before)
        mdadm.require_healthy(setup.machine, array)
        result = finished.accepted(job.expectation)
        result, window_s = _counted(workload, window, result, finished.completed.elapsed_s)
    setup.require_caches(array)
    seen = environment.between(array, before, after, workload, result, stripes)
    if media:
        seen = media_count.with_growth(setup.machine, array.members, media, seen)
    measured_run = Run(
        workload=workload,
        geometry=array.geometry,
        members=tuple(drive.name for drive in array.members),
        intervals=result.intervals,
        ramp_s=window.ramp_s,
        window_s=window_s,
        rounds=window.rounds,
        raw=raw,
        seen=seen,
        parts=output.of_drives(result, array.geometry),
        is_heat_promised=setup.promises_heat(array.geometry, workload),
    )
    environment.note(setup.logbook, measured_run, kind)
    return measured_run


def _media_counts(setup: Setup, array: Array, workload: Workload, kind: str) -> Mapping[str, MediaCount]:
    """Return the drives' counts of their writes to flash, by serial number; none if they are not needed."""
    if kind in PREPARATIONS or not (workload.writes and setup.counts_media(array.geometry, workload)):
        return {}
    return media_count.read(setup.machine, array.members)


def _counted(workload: Workload, window: ProcessWindow, result: FioResult, elapsed_s: float) -> tuple[FioResult, float]:
    """Return the result, and the length of the part that counts.

    With pauses that is the time of all bursts together. fio reports the run time of one of them, so that a process
    which lacks the last ones is found by the time that it took.
    """
    if window.volume_bytes is not None:
        return result, min(window.window_s, result.seconds)
    if window.shares:
        return result, result.seconds
    if not workload.burst_s:
        return result, window.window_s
    bursts = workload.bursts(window.ramp_s + window.window_s)
    least_s = bursts * (workload.burst_s + workload.idle_s) - workload.idle_s
    if elapsed_s < least_s:
        raise InvalidMeasurement(f"fio ended after {elapsed_s:.1f} s; {bursts} bursts take {least_s} s")
    busy_s = float(bursts * workload.burst_s)
    return output.of_bursts(result, busy_s), busy_s


def _job(setup: Setup, array: Array, workload: Workload, window: ProcessWindow) -> Job:
    try:
        if window.shares:
            return jobs.replay(workload, array.targets, window.shares, window.window_s)
        return jobs.measurement(
            workload, array.targets, array.drives_per_target, window.ramp_s + window.window_s, window.every_s,
            volume_bytes=window.volume_bytes, load=setup.load.of(array), begin=window.begin,
        )  # fmt: skip
    except ValueError as error:
        raise InvalidMeasurement(f"{workload} cannot be run on {array.geometry}: {error}") from error


def repeated(work: Callable[[], T]) -> T:
    """Return the result of a step, which is repeated if something disturbed it (``Disturbed``).

    Conditioning takes hours, and its state does not suffer from a step that is repeated.
    """
    for _ in range(MOST_DISTURBED):
        with suppress(Disturbed):
            return work()
    return work()


def prepared(setup: Setup, array: Array, work: Callable[[], T]) -> T:
    """``repeated`` for a process that fills or conditions, once more after any fault that is no failed drive.

    Everything that is measured on the array depends on it, so that one worker that the kernel killed would cost the
    run. ``drive_failure`` decides first whether a drive failed, and that is final.
    """
    try:
        return repeated(work)
    except (InvalidMeasurement, CommandFailed) as error:
        setup.note("preparation_repeated", array.geometry, fault=str(error))
        return repeated(work)


def require(setup: Setup, array: Array, *, writes: bool) -> None:
    """Raise unless fio may be started now: the lease is held, and bare drives to be written to are still unused.

    Between two measurements of bare drives no process holds them; md holds the members of an array. Drives that have
    dropped out since are checked again after a while, because a reset of an HBA removes them for a moment; then they
    are attributed as under a load. One that is alone is not: nothing beside it shows whether its path was lost. A check
    of the array that cron began is ended.
    """
    if not (writes and array.geometry.is_side_by_side):
        setup.held.require_lease()
        if mdadm.end_check(setup.machine, array):
            setup.note("check_ended", array.geometry, device=array.path)
        return
    try:
        setup.held.require(array.members)
    except DrivesGone:
        time.sleep(REAPPEARS_S)
        try:
            setup.held.require(array.members)
        except DrivesGone:
            if len(array.members) == 1:
                raise
            with drive_failure.attributed(setup, array):
                raise


@frozen
class Pass:
    """A fio process over all data of an array or of drives side by side, and its stored output."""

    finished: FinishedProcess
    raw: str
    #: The reading of the environment before it.
    before: EnvironmentReading


@contextmanager
def passing(setup: Setup, array: Array, kind: str, bs: str, job: Job, seconds: float) -> Iterator[Pass]:
    """Run a fio process that fills or compares; the block, in which its errors are attributed, accepts its output."""
    before = drive_failure.reading_before(setup, array, is_measured=False)
    with drive_failure.attributed(setup, array, before, kind=kind) as files:
        with live_stats.watched(setup.live, array, None, kind, parse_size(bs)):
            finished = process.run(setup.machine, job, seconds, is_watched=True)
        raw = setup.logbook.keep(f"{array.geometry}-{kind.replace(' ', '-')}.json.gz", finished.packed)
        files.append(raw)
        yield Pass(finished, raw, before)
    drive_failure.reading_after(setup, array, before)  # whatever the kernel repaired meanwhile


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
        open_files.watched(setup.machine, array) as setup.readings.users,
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
    runs = tuple(_settled_run(setup, array, workload, window_s) for _ in range(setup.protocol.measure.repeats))
    return record_measured(setup, Measured(runs), kind)


def measure_alone(setup: Setup, array: Array, workload: Workload) -> DrivesAlone:
    """Run the workload on one of the drives side by side after another, while the others are idle.

    Compared with all of them, this shows whether they share a path that limits them. Raises as ``run``. The workload
    has to read only: the drives stay as they are.
    """
    if workload.writes or not array.geometry.is_side_by_side:
        raise ValueError(f"{workload} on {array.geometry} does not leave the drives as they are")
    rule, measured = setup.protocol.measure, []
    window = ProcessWindow(rule.ramp_s, rule.window_s, setup.protocol.steady.window)
    for drive in array.members:
        setup.progress(f"{drive.serial} alone: {workload}", window.ramp_s + window.window_s)
        one = replace(array, geometry=ONE, path=drive.path, members=(drive,), size_bytes=drive.size_bytes)
        measured.append(Measured((run(setup, one, workload, "alone", window).condensed(),)))
    drives = tuple(alone.summary() for alone in measured)
    setup.logbook.note("alone", **shallow(AloneRecord(array.geometry, str(workload), workload, drives)))
    return DrivesAlone(tuple(measured))


def record_measured(setup: Setup, measured: Measured, kind: str = "measured") -> Measured:
    """Record ``measured`` and return it; under another ``kind`` tests do not share it."""
    summary, workload = measured.summary(), measured.workload
    record = MeasuredRecord(
        measured.geometry, str(workload), workload, setup.protocol.name, setup.protocol.acceptance, summary.iops,
        summary.runs, summary.visited,
    )  # fmt: skip
    setup.logbook.note(kind, **shallow(record))
    return measured


def _settled_run(setup: Setup, array: Array, workload: Workload, window_s: float) -> Run:
    """Return one valid run with a steady window, or raise the fault of the last attempt."""
    protocol, fault, of_drives = setup.protocol, "", dict[str, str]()
    window = ProcessWindow(protocol.measure.ramp_s, window_s, protocol.steady.window)
    for _ in range(protocol.measure.attempts):
        setup.progress(f"{array.geometry}: {workload}", protocol.measure.ramp_s + window.window_s)
        round_s = window.window_s / window.rounds
        live_stats.expect(setup.live, Course(0, window.rounds, round_s, protocol.measure.ramp_s, exact=True))
        try:
            measured_run = run(setup, array, workload, "run", window)
        except Disturbed as disturbed:
            fault, of_drives = f"is not valid: {disturbed}", {}
            why = (str(disturbed),)
            setup.note("steady", array.geometry, workload=str(workload), reached=False, objections=why)
            continue
        objections = checks.objections(measured_run)
        state = least_steady([member.round_iops() for member in measured_run.of_members()], protocol.steady)
        setup.note(
            "steady",
            array.geometry,
            workload=str(workload),
            raw=measured_run.raw,
            objections=objections,
            **asdict(state),
        )
        live_stats.send_state(setup.live, state)
        if state.reached and not objections:
            return measured_run.condensed()
        fault, of_drives = _fault(measured_run, state, objections, protocol.steady)
        window = replace(window, window_s=min(MOST_GROWTH * window_s, window.window_s * growth(measured_run)))
    times = f"{protocol.measure.attempts} attempts" if protocol.measure.attempts > 1 else "one attempt"
    raise of_some_drives(f"{workload} on {array.geometry} {fault} (after {times})", of_drives, array)


def _fault(run: Run, state: SteadyState, objections: Sequence[str], rule: SteadyRule) -> tuple[str, dict[str, str]]:
    """Return why a run does not count, as a predicate, and the reasons of single drives if it is about some only."""
    of_drives = faults_of_drives(run, rule)
    if of_drives:
        each = "; ".join(f"{serial}: {why}" for serial, why in of_drives.items())
        return f"is not {'valid' if objections else 'steady'}: {each}", of_drives
    if objections:
        return f"is not valid: {'; '.join(objections)}", {}
    return f"is {state.describe()}{steady_state.repeats(*steady_state.series(run))}", {}


def growth(run: Run) -> float:
    """Factor by which the next attempt's window is longer: 1, or as needed if this one had too few I/Os."""
    has = min(member.ios for member in run.of_members())
    needed = checks.FEWEST_IOS_A_ROUND * run.rounds
    return MARGIN_OF_GROWTH * needed / max(1, has) if has < needed else 1.0


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


def require_valid(found: Iterable[Check], about: str, array: Array) -> None:
    """Raise if a check objects to ``about``: ``DrivesUndecided`` if it is about some of several drives side by side.

    ``InvalidMeasurement`` otherwise: of an array no member can be left out.
    """
    failed = [check for check in found if check.objections]
    is_of_drives = array.geometry.is_side_by_side and all(check.drive for check in failed)
    faults = {check.drive: check.objections[0] for check in failed} if is_of_drives else {}
    if failed:
        raise of_some_drives(f"{about} is not valid: {'; '.join(checks.objections_in(failed))}", faults, array)


def note_left_out(setup: Setup, array: Array, workload: Workload, number: int, objections: Sequence[str]) -> None:
    """Record a cell that is repeated, or given up."""
    setup.note("cell_left_out", array.geometry, workload=str(workload), round=number, objections=list(objections))


def least_steady(series: Sequence[Sequence[float]], rule: SteadyRule) -> SteadyState:
    """State of the series that is furthest from steady: of drives side by side every one has to be steady."""
    return steady_state.least([steady_state.judge(values, rule) for values in series])
