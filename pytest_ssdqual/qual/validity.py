"""Is a measurement believable? Objections to a run, each with its figure; a rig's fault, never the product's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from pytest_ssdqual.qual.histogram import LAST_BUCKET_NS
from pytest_ssdqual.qual.measurement import Run
from pytest_ssdqual.qual.units import format_duration

#: IOPS × latency over the queue depth asked for, of jobs that keep their queue full. Submission time is not
#: in fio's latencies, so the low side is wider; a published table that was wrong showed 1.068.
LITTLE = (0.90, 1.05)

#: fio reports once a second; silence beyond this is a stall of fio or of a job, and averages would hide it.
SILENCE_S = 3.0

#: Below this, rounds are a handful of I/Os each.
FEWEST_IOS = 500

#: Part of the window that may be missing at its end.
SHORT = 0.05

#: Points of read share the mix may be off.
MIX_POINTS = 2.0

#: Above this the host, not the drives, sets the pace.
CPU_BUSY = 0.95


def objections(run: Run) -> tuple[str, ...]:
    """Every reason not to judge a product by this run; empty when there is none."""
    if not run.ios:
        return (f"no I/O in {format_duration(run.window_s)}",)
    return tuple([*_amount(run), *_silences(run), *_directions(run), *_arithmetic(run), *_host(run)])


def _amount(run: Run) -> Iterator[str]:
    if run.ios < FEWEST_IOS:
        yield f"only {run.ios:,} I/Os in the window, at least {FEWEST_IOS} are needed"
    if run.seconds < run.window_s * (1 - SHORT):
        yield f"only {run.seconds:.1f} s of the window of {run.window_s:g} s were recorded"


def _silences(run: Run) -> Iterator[str]:
    counted = run.counted
    for interval in counted:
        if interval.seconds > SILENCE_S:
            yield f"fio was silent for {interval.seconds:.1f} s at {interval.start_s:.1f} s"
    for before, after in pairwise(counted):
        gap_s = after.start_s - before.end_s
        if gap_s > SILENCE_S:
            yield f"{gap_s:.1f} s without a record at {before.end_s:.1f} s"


def _directions(run: Run) -> Iterator[str]:
    asked = run.workload.read_fraction
    for name, wanted, iops in (("read", asked > 0, run.read_iops), ("write", asked < 1, run.write_iops)):
        if wanted and not iops:
            yield f"no {name}s in a workload that has them"
        if iops and not wanted:
            yield f"{iops:,.0f} {name}s per second in a workload without {name}s"
    share = run.read_iops / run.iops
    # Four standard deviations of a fair draw: a short run may miss its mix by chance.
    chance = 400 * math.sqrt(asked * (1 - asked) / run.ios)
    if 0 < asked < 1 and abs(share - asked) * 100 > max(MIX_POINTS, chance):
        yield f"{share:.1%} of the I/Os were reads, {asked:.0%} were asked for"


def _arithmetic(run: Run) -> Iterator[str]:
    """Identities that hold for every drive: Little's law, bytes = I/Os × size, a latency for every I/O."""
    block = run.bytes_per_s / run.iops
    if abs(block / run.workload.block_bytes - 1) > 1e-6:
        yield f"{block:,.0f} bytes per I/O, {run.workload.block_bytes:,} were asked for"
    latency = run.latency
    # The counters and the bins of one status document are not read in one instant.
    asked = run.geometry.width * run.workload.qd_per_drive
    if abs(latency.total - run.ios) > max(asked, 0.01 * run.ios):
        yield f"{latency.total:,} latencies for {run.ios:,} I/Os"
    if not latency:
        return
    outstanding = run.iops * latency.mean_ns / 1e9
    if not LITTLE[0] <= outstanding / asked <= LITTLE[1]:
        yield (
            f"{outstanding:.1f} I/Os were outstanding (IOPS × mean latency), {asked} were asked for: "
            f"{outstanding / asked:.0%}, believable are {LITTLE[0]:.0%} to {LITTLE[1]:.0%}"
        )
    if latency.max_ns >= LAST_BUCKET_NS:
        yield "latencies of 17 s and more, which fio does not resolve"


def _host(run: Run) -> Iterator[str]:
    if run.cpu_busy is not None and run.cpu_busy > CPU_BUSY:
        yield f"the host's CPU was {run.cpu_busy:.0%} busy, so it may have set the pace"
