"""Chooses fio's engine and jobs for the drives of a run, so that fio is not the bottleneck: seconds of random reads.

One drive of each model is read at a depth at which fast drives are saturated, by one job, then two, and so on, until a
job needs no more than ``EASE`` of a CPU. Nothing is written. The result holds for all measurements of the run, and a
resumed run uses it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain

from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.protocol_rules import AUTO, LoadRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.fio import jobs, process
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.load import IO_URING, LIBAIO, DriveLoad, Load, LoadRecord, LoadTrial
from pytest_ssdqual.rig.guard.label import HEAD_BYTES
from pytest_ssdqual.rig.machine.machine import Machine, RigError
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import placement

READS = Workload("randread", "4k", 128)
JOBS = (1, 2, 4, 8, 16)
RAMP_S, WINDOW_S = 1.0, 2.0
#: Share of a CPU up to which a job is not the bottleneck: a margin for the mixes and writes that are measured later.
EASE = 0.7
#: Drives of a model that are tried until one can be read.
MOST_TRIED = 3
#: Least gain of IOPS that is worth twice as many jobs; two windows of two seconds differ by as much.
GAIN = 1.03
#: Reads one drive for some seconds with a load; raises as ``try_load``.
TryLoad = Callable[[Load], LoadTrial]


def require(setup: Setup) -> None:
    """Choose the load of this run and record it, unless it is chosen already; the lease is held.

    Drives are not judged by this: one that cannot be read is left to the measurement. Raises an error that ends the
    run, such as ``MachineLost``.
    """
    if setup.load.chosen is not None:
        return
    setup.load.chosen = found = _chosen(setup)
    setup.logbook.note("load", **shallow(LoadRecord(found, found.describe())))


def _chosen(setup: Setup) -> DriveLoad:
    protocol, rule = setup.protocol, setup.protocol.load
    drives = [each for each in setup.held.drives if each.name not in setup.failures.failed]
    # md hands I/O that would have to wait to a thread of io_uring's, where libaio waits in the job itself.
    array_engine = LIBAIO if rule.engine == AUTO else rule.engine
    cpus = placement.cpus_of_nodes(setup.machine, drives) if rule.numa else {}
    if AUTO in (rule.engine, rule.jobs) and protocol.acceptance:
        models = [[partial(_try_drive, setup, each) for each in model] for model in _models(drives).values()]
        best, why, tried = calibrated(rule, models)
        return DriveLoad(best.engine, array_engine, best.jobs, cpus, why, tried)
    count = 1 if rule.jobs == AUTO else int(rule.jobs)
    why = "the protocol's table load" if protocol.acceptance else "not calibrated: the protocol is not for acceptance"
    return DriveLoad(array_engine, array_engine, count, cpus, why)


def _models(drives: Sequence[Drive]) -> Mapping[str, list[Drive]]:
    found: dict[str, list[Drive]] = {}
    for drive in drives:
        found.setdefault(drive.model or "", []).append(drive)
    return found


def _try_drive(setup: Setup, drive: Drive, load: Load) -> LoadTrial:
    setup.held.require_lease()
    setup.progress(f"{drive.serial or drive.path}: load of {load.jobs} jobs", RAMP_S + WINDOW_S)
    target = JobTarget(drive.path, drive.size_bytes - HEAD_BYTES, HEAD_BYTES, checked=Checked.of(drive))
    return try_load(setup.machine, target, load)


def try_load(machine: Machine, target: JobTarget, load: Load) -> LoadTrial:
    """Read ``target`` for some seconds; raises as ``acceptance.accept``."""
    seconds = RAMP_S + WINDOW_S
    job = jobs.measurement(READS, [target], 1, seconds, load=load)
    result = process.run(machine, job, seconds).accepted(job.expectation)
    counted = [each for each in result.intervals if each.end_s > RAMP_S + 0.5] or result.intervals
    iops = sum(each.ios for each in counted) / sum(each.seconds for each in counted)
    return LoadTrial(load.engine, load.parts(READS), iops, result.jobs_busy)


def calibrated(
    rule: LoadRule, models: Sequence[Sequence[TryLoad]]
) -> tuple[LoadTrial | Load, str, tuple[LoadTrial, ...]]:
    """Return the trial that the drives of all ``models`` need; the reason, and all trials.

    Without a drive that can be read the load is the usual one: the measurement will name the drives.
    """
    counts = JOBS if rule.jobs == AUTO else (int(rule.jobs),)
    engines = (IO_URING, LIBAIO) if rule.engine == AUTO else (rule.engine,)
    refused = ""
    for engine in engines:
        loads = [Load(engine, count) for count in counts]
        try:
            found = [_of_model(drives, loads) for drives in models]
        except RigError as error:
            if error.ends_run:
                raise
            refused = f"{refused}; {engine} did not work: {error}"
            continue
        best = max(map(least, found), key=lambda trial: trial.jobs)
        ease = f"a job used {best.jobs_busy:.0%} of a CPU at {best.iops:,.0f} IOPS"
        why = f"calibrated by reads at depth {READS.qd_per_drive}: {ease}{refused}"
        return best, why, tuple(chain.from_iterable(found))
    return Load(engines[-1], counts[0]), f"not calibrated{refused}", ()


def _of_model(drives: Sequence[TryLoad], loads: Sequence[Load]) -> list[LoadTrial]:
    """Return the trials on the first of ``drives`` that can be read, until more jobs are of no use."""
    failure = RigError("there is no drive to try")
    for drive in drives[:MOST_TRIED]:
        found: list[LoadTrial] = []
        try:
            for load in loads:
                found.append(drive(load))
                eased = found[-1].jobs_busy <= EASE
                if eased or (len(found) > 1 and found[-1].iops < found[-2].iops * GAIN):
                    break
        except RigError as error:
            if error.ends_run:
                raise
            failure = error
        else:
            return found
    raise failure


def least(tried: Sequence[LoadTrial]) -> LoadTrial:
    """Return the trial with the fewest jobs that is as fast as any, if possible at ease.

    Jobs also seem at ease if they are more than the CPUs: then they wait for each other, and all are slower.
    """
    most = max(each.iops for each in tried)
    fast = [each for each in tried if each.iops * GAIN > most]
    return next((each for each in fast if each.jobs_busy <= EASE), fast[0])
