"""Replays of a trace on an array or on drives side by side: fio replays shares of it that are copied to the machine.

Each replay lasts as long as the trace, divided by its scale, or longer if the drives fall behind: fio never skips an
I/O, and begins the next one late. So latencies are those of the I/Os as they were begun, and the pace has to be judged,
too.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload import trace as traces
from pytest_ssdqual.qual.workload.trace import REPLAYS, Trace
from pytest_ssdqual.qual.workload.workload import Replay, Workload
from pytest_ssdqual.rig.fio import jobs, process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.machine import run_files
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, Machine, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup

#: fio ends a replay that takes longer than so many times its duration; then it has fallen behind for certain.
LONGEST = 2.0
#: Pace from which fio replays the trace once more without a drive: the delay may be the machine's.
BEHIND = 1.02
UNPACK = 'gzip -d > "$1"'


def measure(setup: Setup, array: Array, workload: Workload) -> Measured:
    """Replay the trace of ``workload`` several times, and record the result.

    ``RigError`` without this trace; ``InvalidMeasurement`` if fio left out I/Os, or cannot keep the pace by itself.
    """
    replay, trace = workload.replay, setup.trace
    if replay is None or trace is None or trace.sha256 != replay.sha256:
        raise RigError(f"{workload} needs its trace: give the file again with --ssd-trace")
    with copied(setup, array, workload, trace) as shares:
        runs = tuple(_run(setup, array, workload, replay, shares) for _ in range(REPLAYS))
    return fixed_time.record_measured(setup, Measured(runs))


@contextmanager
def copied(setup: Setup, array: Array, workload: Workload, trace: Trace) -> Iterator[tuple[str, ...]]:
    """Copy the trace to the machine, in shares with offsets inside the targets, and remove them at the end.

    The evidence has the trace itself, and how many of its I/Os were moved.
    """
    begin, size = array.begin_bytes, min(target.size_bytes for target in array.targets)
    try:
        placed = traces.placed(trace.ios, size, begin)
    except ValueError as error:
        raise InvalidMeasurement(f"{workload} cannot be replayed on {array.geometry}: {error}") from error
    moved = sum(io.offset + io.size > size // 4096 * 4096 for io in trace.ios)
    count = workload.jobs(1)
    raw = setup.logbook.keep(f"{trace.name}.iolog.gz", gzip.compress("".join(trace.lines()).encode(), mtime=0))
    setup.note(
        "trace", array.geometry, workload=str(workload), raw=raw, sha256=trace.sha256, ios=len(placed), moved=moved,
        begin_bytes=begin, size_bytes=size, jobs=count, left_out=sum(count for _, count in trace.refused.values()),
    )  # fmt: skip
    shares = tuple(run_files.path(setup.machine, "trace") for _ in range(count))
    try:
        for number, path in enumerate(shares):
            text = "".join(traces.iolog(placed[number::count])).encode()
            setup.machine.run(
                ["sh", "-c", UNPACK, "trace", path],
                stdin=gzip.compress(text),
                deadline_s=process.FETCH_S,
                repeatable=True,
            )
        yield shares
    finally:
        setup.machine.run(["rm", "-f", *shares], check=False)


def _run(setup: Setup, array: Array, workload: Workload, replay: Replay, shares: tuple[str, ...]) -> Run:
    """Return one whole replay, or as much of it as fitted into ``LONGEST`` times its duration."""
    window = ProcessWindow(0.0, LONGEST * replay.due_s, 1, shares=shares)
    setup.progress(f"{array.geometry}: {workload}", replay.due_s)
    run = fixed_time.repeated(lambda: fixed_time.run(setup, array, workload, "run", window))
    fixed_time.require_valid(checks.checks(run), f"{workload} on {array.geometry}", array)
    members = run.of_members()
    if run.seconds < window.window_s - 1 and any(member.ios != replay.ios for member in members):
        raise InvalidMeasurement(f"fio did not replay all {replay.ios:,} I/Os of {workload}, and ended")
    pace = max(replay.pace(member.seconds, member.ios) for member in members)
    if pace > BEHIND:
        without_drives = jobs.replay(workload, array.targets, shares, window.window_s, "null")
        alone_s = fio_alone(setup.machine, without_drives, window.window_s)
        setup.note("replayed_without_drives", array.geometry, workload=str(workload), pace=pace, seconds=alone_s)
        if alone_s / replay.due_s - 1 > (pace - 1) / 2:
            raise InvalidMeasurement(
                f"{workload} on {array.geometry} takes {pace:.3f} times as long as its trace, and "
                f"{alone_s / replay.due_s:.3f} times without drives: the machine under test is too slow or too busy"
            )
    return run.condensed()


def fio_alone(machine: Machine, job: Job, seconds: float) -> float:
    """Return the seconds that a job takes whose I/Os end at once."""
    return process.run(machine, job, seconds).accepted(job.expectation).seconds
