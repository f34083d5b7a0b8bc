"""One fio process on an array or on drives side by side, between two looks at its health; and one to be judged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from pytest_ssdqual.qual import steady, validity
from pytest_ssdqual.qual.measurement import Measured, Run
from pytest_ssdqual.qual.protocol import SteadyRule
from pytest_ssdqual.qual.steady import SteadyState
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.rig import md
from pytest_ssdqual.rig.fio import jobfile, process, verify
from pytest_ssdqual.rig.fio.process import Finished
from pytest_ssdqual.rig.machine import InvalidMeasurement
from pytest_ssdqual.rig.md import Array
from pytest_ssdqual.rig.setup import Setup

#: Depth of the writes that condition an array; the deepest of the Intel S3500 RAID paper (seeds A-P5).
CONDITIONING_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Window:
    """How long one process runs and what of it counts."""

    ramp_s: float
    window_s: float
    rounds: int
    #: How often fio reports.
    every_s: int = 1
    #: End when this much was written, if that comes first.
    volume_bytes: int | None = None


def run(setup: Setup, array: Array, workload: Workload, kind: str, window: Window) -> Run:
    """One fio process; its raw output is kept as ``kind``.

    Raises ``RigError`` or a child of it: ``InvalidMeasurement`` if the array was not healthy before or after, or if
    fio's account is not whole.
    """
    setup.held.require_lease()
    md.require_healthy(setup.machine, array)
    seconds = window.ramp_s + window.window_s
    targets = array.targets
    try:
        job = jobfile.measurement(
            workload, targets, array.geometry.width, seconds, window.every_s, volume_bytes=window.volume_bytes
        )
    except ValueError as error:
        raise InvalidMeasurement(f"{workload} cannot be run on {array.geometry}: {error}") from error
    raw, finished = noted(setup, array, workload, kind, lambda: process.run(setup.machine, job, seconds))
    md.require_healthy(setup.machine, array)
    result = verify.accept(finished.output, finished.completed.status, finished.completed.errors, job.expectation)
    return Run(
        workload=workload,
        geometry=array.geometry,
        members=tuple(drive.serial or drive.identity for drive in array.members),
        intervals=result.intervals,
        ramp_s=window.ramp_s,
        window_s=window.window_s if window.volume_bytes is None else min(window.window_s, result.seconds),
        rounds=window.rounds,
        raw=raw,
        parts=result.parts if array.geometry.is_side_by_side else (),
    )


def noted(
    setup: Setup, array: Array, workload: Workload, kind: str, work: Callable[[], Finished]
) -> tuple[str, Finished]:
    """``work``, and where its output is kept. That it begins is on record before it does.

    If we die meanwhile, the record says whether something was being written.
    """
    about = {"geometry": str(array.geometry), "workload": str(workload), "fio": kind}
    setup.logbook.note("measuring", **about, asked=workload.to_record(), writes=workload.writes)
    finished = work()
    raw = setup.logbook.keep(f"{array.geometry}-{workload}-{kind}.json.gz", finished.packed)
    setup.logbook.note("ran", **about, raw=raw, sha256=hashlib.sha256(finished.packed).hexdigest())
    return raw, finished


def measure(setup: Setup, array: Array, workload: Workload) -> Measured:
    """All repeats of one workload; each with a steady window, or ``InvalidMeasurement``."""
    measured = Measured(tuple(_settled_run(setup, array, workload) for _ in range(setup.protocol.repeats)))
    setup.logbook.note(
        "measured",
        geometry=str(array.geometry),
        workload=str(workload),
        asked=workload.to_record(),
        protocol=setup.protocol.name,
        acceptance=setup.protocol.acceptance,
        **measured.summary(),
    )
    return measured


def _settled_run(setup: Setup, array: Array, workload: Workload) -> Run:
    """One valid run with a steady window; what was wrong with the last attempt otherwise."""
    protocol, trouble = setup.protocol, ""
    window = Window(protocol.ramp_s, protocol.window_s, protocol.steady.window)
    for _ in range(protocol.attempts):
        setup.progress(f"{array.geometry}: {workload}", protocol.ramp_s + protocol.window_s)
        found = run(setup, array, workload, "run", window)
        objections = validity.objections(found)
        now = least_steady([each.round_iops() for each in found.of_members()], protocol.steady)
        setup.logbook.note(
            "steady",
            geometry=str(array.geometry),
            workload=str(workload),
            raw=found.raw,
            objections=objections,
            **asdict(now),
        )
        if now.reached and not objections:
            return found.condensed()
        trouble = f"is not valid: {'; '.join(objections)}" if objections else f"is {now.describe()}"
    times = f"{protocol.attempts} attempts" if protocol.attempts > 1 else "one attempt"
    raise InvalidMeasurement(f"{workload} on {array.geometry} {trouble} (after {times})")


def precondition(setup: Setup, array: Array, workload: Workload) -> SteadyState | None:
    """Write in steps until steady: random writes before random workloads, sequential ones before sequential.

    None if the protocol has no such step. ``InvalidMeasurement`` if it does not settle within the protocol's limit.
    """
    protocol = setup.protocol
    rule, step_s, spent_s, written = protocol.steady, protocol.precondition_s, 0.0, 0
    if not step_s:
        return None
    writes = conditioning(workload)
    least = int(protocol.precondition_capacities * array.size_bytes)
    # Two hours of conditioning need no histogram of every second; some points a round do.
    window = Window(0.0, step_s, max(1, round(step_s / protocol.round_s)), max(1, int(protocol.round_s / 12)))
    rates: list[list[float]] = [[] for _ in range(len(array.targets))]
    raws: list[str] = []
    while True:
        setup.progress(f"{array.geometry}: precondition with {writes}", step_s)
        found = run(setup, array, writes, "precondition", window)
        for series, each in zip(rates, found.of_members(), strict=True):
            series += each.round_iops()
        raws.append(found.raw)
        spent_s += step_s
        written += found.bytes_written
        if len(rates[0]) < rule.window:
            continue  # steps shorter than the window: the rule needs one whole window, whatever the limit
        reached = least_steady([series[-rule.window :] for series in rates], rule)
        if (reached.reached and written >= least) or spent_s >= protocol.precondition_limit_s:
            break
    setup.logbook.note(
        "conditioned",
        geometry=str(array.geometry),
        workload=str(writes),
        random=workload.is_random,
        seconds=spent_s,
        bytes_written=written,
        least_bytes=least,
        round_iops=rates[0] if len(rates) == 1 else rates,
        steady=asdict(reached),
        raw=raws,
    )
    _require_conditioned(array, writes, reached, spent_s, written, least)
    return reached


def least_steady(series: Sequence[Sequence[float]], rule: SteadyRule) -> SteadyState:
    """The state of the one that is furthest from steady: of drives side by side every one has to be."""
    states = [steady.judge(each, rule) for each in series]
    return max(states, key=lambda state: (not state.reached, state.range_measured / (state.average or 1)))


def conditioning(workload: Workload) -> Workload:
    """The writes that bring an array into the state in which ``workload`` is to be measured.

    Of its class and of its size; of a mix of sizes the most frequent one.
    """
    size, _ = max(workload.sizes, key=lambda each: each[1])
    return Workload("randwrite" if workload.is_random else "write", str(size), CONDITIONING_DEPTH)


def _require_conditioned(
    array: Array, writes: Workload, reached: SteadyState, spent_s: float, written: int, least: int
) -> None:
    if not reached.reached:
        raise InvalidMeasurement(
            f"{array.geometry} did not settle within {spent_s:g} s of {writes}: {reached.describe()}"
        )
    if written < least:
        raise InvalidMeasurement(
            f"only {written / array.size_bytes:.2f} capacities of {array.geometry} were written in {spent_s:g} s of "
            f"{writes}, the protocol wants {least / array.size_bytes:g}: raise precondition.limit"
        )
