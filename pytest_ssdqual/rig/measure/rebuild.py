"""A rebuild under load: members are added again while a workload runs; then all data are verified."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.rebuild import Intact, Rebuild
from pytest_ssdqual.qual.measured.result_records import RebuildRecord
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.units import Unit, format_capacity, format_duration, format_value
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio import acceptance, jobs, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.output import FioResult
from pytest_ssdqual.rig.fio.process import FinishedProcess, RunningProcess
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md import mdadm, members, resync, survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure, environment

#: Seconds between two polls of md, or this share of the elapsed time if that is longer.
SHORTEST_PAUSE_S, PAUSE_SHARE = 0.5, 1 / 200
#: Seconds from adding a member to the first sign of its recovery; later, md without recovery has given it up.
START_S = 30.0
#: Number of fio's reports if md rebuilds at its maximum rate; a slower rebuild has more.
REPORTS = 300
#: Longest interval between two reports: a longer one would count as a stall of fio.
LONGEST_REPORT_S = 2
MOST_ROUNDS = 100


@frozen
class RebuildTiming:
    """Times of observations in seconds of the controller's clock, from the start of fio."""

    #: Immediately before the members were added.
    added_s: float
    #: The first and the last poll during the rebuild.
    first_s: float
    last_s: float
    #: The first poll after its end.
    over_s: float

    @property
    def seconds(self) -> float:
        return self.over_s - self.added_s

    @property
    def resolution_s(self) -> float:
        """Uncertainty of start plus end: the start may be early, or the end late, by this much."""
        return max(self.first_s - self.added_s, self.over_s - self.last_s)


def rebuild(setup: Setup, array: Array, workload: Workload) -> Rebuild:
    """Add the missing members of ``array`` again while ``workload`` runs; then check everything.

    The load runs from before the members are added until md is done; only I/Os wholly within the rebuild count.
    Afterwards md compares all members, and the pattern that was written before the members failed is read back; it is
    also read before the rebuild, from the degraded array. Lost data are not an error here: the result contains them.

    ``RigError`` or a child of it: ``InvalidMeasurement`` if the rebuild did not end within the protocol's limit, was
    too short to say anything about the load, or if the load is not valid.
    """
    rebuilding = replace(array, geometry=replace(array.geometry, rebuilding=True))
    mdadm.require_healthy(setup.machine, array)
    damage_before = _dated("while degraded", survival_pattern.read_damage(setup, array))
    size_bytes = resync.component_bytes(setup.machine, array.kname)
    with resync.speeds(setup.machine, array.kname, setup.protocol.rebuild) as limits:
        run, timing = _under_load(setup, rebuilding, workload, size_bytes, limits)
        whole = replace(array, geometry=array.geometry.healthy)
        mdadm.require_healthy(setup.machine, whole)
        fastest = resync.limit_bytes_per_s(limits["sync_speed_max"])
        setup.progress(f"{whole.geometry}: compare members", size_bytes / fastest)
        # md's usual limit is 205 MB/s, also of a check: 10 h for a member of 7.68 TB.
        mismatches = resync.compare(setup.machine, array.kname, size_bytes)
    damage = "; ".join(
        filter(None, (damage_before, _dated("after the rebuild", survival_pattern.read_damage(setup, whole))))
    )
    mdadm.require_healthy(setup.machine, whole)
    _require_believable(run, Intact(rebuilding.geometry, mismatches, damage))
    measured = Measured((run.condensed(),))
    result = Rebuild(rebuilding.geometry, timing.seconds, size_bytes, measured, mismatches, damage, timing.resolution_s)
    record = RebuildRecord(
        **result.summary(),
        asked=workload,
        protocol=setup.protocol.name,
        acceptance=setup.protocol.acceptance,
        members=tuple(drive.identity for drive in members.missing(array)),
        limits=dict(limits),
        raw=run.raw,
    )
    setup.logbook.note("rebuild", **shallow(record))
    return result


def _dated(when: str, damage: str) -> str:
    return f"{when} {damage}" if damage else ""


def _allowed_s(setup: Setup, array: Array, size_bytes: int, bytes_per_s: int) -> float:
    """Return the seconds that a rebuild may take; ``InvalidMeasurement`` if md's speed limit needs longer."""
    shortest_s = size_bytes / bytes_per_s
    allowed_s = setup.protocol.rebuild.allowed_s(shortest_s)
    if shortest_s > allowed_s:
        takes, rate = format_duration(shortest_s), format_value(bytes_per_s, Unit.BYTES_PER_SECOND)
        raise InvalidMeasurement(
            f"{array.geometry} cannot be rebuilt within {format_duration(allowed_s)}: {format_capacity(size_bytes)} of "
            f"a member take {takes} at {rate}, md's limit; raise rebuild.max_rate or rebuild.limit in the protocol"
        )
    return allowed_s


def _under_load(
    setup: Setup, array: Array, workload: Workload, size_bytes: int, limits: Mapping[str, str]
) -> tuple[Run, RebuildTiming]:
    """Run the rebuild under load; ``array`` has the rebuilding geometry."""
    added = members.missing(array)
    fastest = resync.limit_bytes_per_s(limits["sync_speed_max"])
    allowed_s = _allowed_s(setup, array, size_bytes, fastest)
    every_s = min(max(1, int(size_bytes / fastest / REPORTS)), LONGEST_REPORT_S)
    job = _load(setup, array, workload, every_s, allowed_s)
    setup.held.require(added)
    members.forget(setup.machine, array, added)
    setup.progress(f"{array.geometry}: rebuild under {workload}", size_bytes / fastest)
    timings: list[RebuildTiming] = []

    def work() -> FinishedProcess:
        with process.start(setup.machine, job) as running:
            started = time.monotonic()
            time.sleep(setup.protocol.measure.ramp_s)
            _require_running(running, job, array)
            setup.held.require(added)
            for drive in added:
                setup.note(
                    "member_given_back", array.geometry, uuid=array.uuid, member=drive.identity,
                    serial=drive.serial, path=drive.path,
                )  # fmt: skip
            timings.append(_watched(setup, array, running, job, started, allowed_s))
            return running.end()

    before = drive_failure.reading_before(setup, array)
    with drive_failure.attributed(setup, array, before, str(workload), "rebuild") as files:
        raw, finished, stripes = fixed_time.record_run(setup, array, workload, "rebuild", work)
        files.append(raw)
        after = drive_failure.reading_after(setup, array, before)
        done = finished.completed
        result = acceptance.accept_ended(finished.pieces(), done.status, done.errors, job.expectation)
    (timing,) = timings
    # fio ended at the latest when its process did, by the controller's clock; by its own, after its run time.
    window = _window(setup, array, timing, result.seconds - (done.elapsed_s - timing.last_s), every_s)
    run = _counted(setup, array, workload, result, window, raw)
    setup.require_caches(array)
    seen = environment.between(array, before, after, workload, result, stripes)
    run = replace(run, seen=seen, is_heat_promised=setup.promises_heat(array.geometry, workload))
    environment.note(setup.logbook, run, "rebuild")
    return run, timing


def _load(setup: Setup, array: Array, workload: Workload, every_s: int, allowed_s: float) -> Job:
    """Job that runs for longer than the rebuild may take; it is ended when the rebuild is over."""
    seconds = setup.protocol.measure.ramp_s + allowed_s + START_S + process.OVERHEAD_S
    try:
        width, load = array.geometry.width, setup.load.of(array)
        return jobs.measurement(workload, array.targets, width, seconds, every_s, load=load)
    except ValueError as error:
        raise InvalidMeasurement(f"{workload} cannot be run on {array.geometry}: {error}") from error


def _window(setup: Setup, array: Array, timing: RebuildTiming, end_s: float, every_s: int) -> fixed_time.ProcessWindow:
    """Part of the process that counts: whole reports within the rebuild, in rounds of the protocol's length.

    ``end_s`` is the last poll during the rebuild, in fio's time. fio's clock starts after the controller's, so a moment
    that is at least so late by fio's clock is also by the controller's.
    """
    protocol = setup.protocol
    begin_s = timing.first_s + every_s
    window_s = end_s - every_s - begin_s
    fewest = protocol.steady.window
    if window_s < fewest * every_s:
        raise InvalidMeasurement(
            f"the rebuild of {array.geometry.healthy} was over after {timing.seconds:.1f} s, too short to measure the "
            "load: use larger drives, or limit it with rebuild.max_rate"
        )
    rounds = min(max(fewest, int(window_s / protocol.round_s)), MOST_ROUNDS)
    return fixed_time.ProcessWindow(begin_s, window_s, rounds, every_s)


def _counted(
    setup: Setup, array: Array, workload: Workload, result: FioResult, window: fixed_time.ProcessWindow, raw: str
) -> Run:
    """Return the run of the window; with few I/Os in fewer rounds, so that each has enough of them."""
    run = Run(
        workload=workload,
        geometry=array.geometry,
        members=tuple(drive.name for drive in array.members),
        intervals=result.intervals,
        ramp_s=window.ramp_s,
        window_s=window.window_s,
        rounds=window.rounds,
        raw=raw,
    )
    rounds = min(run.rounds, run.ios // checks.FEWEST_IOS_A_ROUND)
    return replace(run, rounds=max(setup.protocol.steady.window, rounds))


def _require_believable(run: Run, intact: Intact) -> None:
    # The claim decides whether the I/Os during a rebuild suffice for a verdict.
    if objections := checks.objections(run, fewest=checks.FEWEST_IOS_A_ROUND):
        raise InvalidMeasurement(f"{run.workload} on {run.geometry} is not valid: {'; '.join(objections)} ({intact!r})")


def _watched(
    setup: Setup, array: Array, running: RunningProcess, job: Job, started: float, limit_s: float
) -> RebuildTiming:
    """Add the members and poll md until it is done, or raise ``InvalidMeasurement``."""
    machine = setup.machine
    clock = time.monotonic
    added = clock()
    members.give_back(machine, array, members.missing(array))
    first: float | None = None
    last = clock()
    while True:
        state = mdadm.state(machine, array.kname)
        now_s = clock()
        if state.sync_action == "recover":
            first, last = first or now_s, now_s
        elif not state.degraded and state.sync_action == "idle":
            return RebuildTiming(
                added - started, (first or now_s) - started, (last if first else now_s) - started, now_s - started
            )
        elif now_s - last > START_S:
            raise InvalidMeasurement(f"{array.geometry} is not rebuilt: {'; '.join(state.objections())}")
        _require_running(running, job, array)
        if now_s - added > limit_s:
            done = resync.done_percent(machine, array.kname)
            progress = "" if done is None else f": {done:.0f} % were done"
            raise InvalidMeasurement(
                f"the rebuild of {array.geometry.healthy} was not over after {now_s - added:.0f} s{progress}; see "
                "rebuild.limit"
            )
        time.sleep(min(max(SHORTEST_PAUSE_S, (now_s - added) * PAUSE_SHARE), limit_s))


def _require_running(running: RunningProcess, job: Job, array: Array) -> None:
    """Raise the error that ended the load, if it has ended."""
    if not running.tether.alive():
        running.wait(0).accepted(job.expectation)
        raise InvalidMeasurement(f"fio ended before the rebuild of {array.geometry.healthy} did")
