"""Conditioning: writes in steps, until the steady-state rule holds and the protocol's volume was written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import serial_of
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow, least_steady
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

#: Depth of conditioning writes: the deepest of the Intel S3500 RAID paper (seeds A-P5).
CONDITIONING_DEPTH = 8
#: Smallest conditioning write. Flash maps pages of 4 KiB, so smaller writes bring a drive into no other state; but one
#: capacity of 512-byte writes takes 21 hours on a drive of 7.68 TB at 200,000 IOPS, and exceeds limits on larger ones.
SMALLEST_CONDITIONING_BYTES = 4096


def until_steady(
    setup: Setup, array: Array, workload: Workload, *, again: bool = False, seen: Callable[[Run], None] | None = None
) -> Conditioned | None:
    """Write in steps until steady: random writes before random workloads, sequential ones before sequential workloads.

    ``again``: the protocol's volume was written before. ``seen`` gets the run of each step. None if the protocol has no
    such step. ``InvalidMeasurement`` if the array does not settle within the limit. Of drives side by side, those that
    do not are left out of this class of workloads.
    """
    protocol, rule = setup.protocol, setup.protocol.steady
    if not protocol.precondition_s:
        return None
    writes = conditioning(workload)
    least_bytes = 0 if again else int(protocol.precondition_capacities * array.size_bytes)
    subject = array.geometry, workload.is_random
    setup.failures.undecided.pop(subject, None)
    steps, state = _written(setup, array, writes, least_bytes, seen)
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


def _written(
    setup: Setup, array: Array, writes: Workload, least_bytes: int, seen: Callable[[Run], None] | None
) -> tuple[_Steps, SteadyState]:
    """Write until all targets are steady and ``least_bytes`` are written, or until the protocol's limit."""
    protocol, rule, step_s = setup.protocol, setup.protocol.steady, setup.protocol.precondition_s
    # Two hours of conditioning do not need a histogram of every second; a few points per round suffice.
    window = ProcessWindow(0.0, step_s, max(1, round(step_s / protocol.round_s)), max(1, int(protocol.round_s / 12)))
    steps = _Steps([[] for _ in array.targets])
    while True:
        setup.progress(f"{array.geometry}: precondition with {writes}", step_s)
        live_stats.expect(setup.live, _course(protocol, window, len(steps.rates[0])))
        run = fixed_time.prepared(setup, array, lambda: fixed_time.run(setup, array, writes, "precondition", window))
        steps.add(run, step_s)
        if seen:
            seen(run)
        if len(steps.rates[0]) < rule.window:
            continue  # steps shorter than the window: the rule needs one whole window, whatever the limit
        state = least_steady([rates[-rule.window :] for rates in steps.rates], rule)
        live_stats.send_state(setup.live, state)
        if (state.reached and steps.bytes_written >= least_bytes) or steps.seconds >= protocol.precondition_limit_s:
            return steps, state


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


def conditioning(workload: Workload) -> Workload:
    """The writes that bring an array into the state in which ``workload`` is to be measured.

    They have its class and its size, for a mix of sizes the most frequent one, but never less than 4 KiB.
    """
    most_frequent, _ = max(workload.sizes, key=lambda size_and_share: size_and_share[1])
    size = max(most_frequent, SMALLEST_CONDITIONING_BYTES)
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
