"""Is a measurement believable? Objections to a run, each with its figure; a rig's fault, never the product's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from pytest_ssdqual.qual.histogram import LAST_BUCKET_NS, LatencyHistogram
from pytest_ssdqual.qual.measurement import Run
from pytest_ssdqual.qual.units import format_duration

#: IOPS × latency over the queue depth asked for, of jobs that keep their queue full. Submission time is not
#: in fio's latencies, so the low side is wider; a published table that was wrong showed 1.068.
LITTLE = (0.90, 1.05)

#: fio reports once a second; silence beyond this is a stall of fio or of a job, and averages would hide it.
SILENCE_S = 3.0

#: Below this, rounds are a handful of I/Os each.
FEWEST_IOS_A_ROUND = 100

#: Part of the window that may be missing at its end.
SHORT = 0.05

#: Points of read share the mix may be off.
MIX_POINTS = 2.0

#: Standard errors that a drawn share or size may be off: once in 16,000 fair draws it is more.
CHANCE = 4.0

#: Above this the host, not the drives, sets the pace.
CPU_BUSY = 0.95


def objections(run: Run, fewest: int | None = None) -> tuple[str, ...]:
    """Every reason not to judge a product by this run; empty when there is none.

    Of drives side by side every drive is looked at by itself, and named by its serial number. ``fewest`` I/Os are
    needed in the window, of each drive; left out, ``FEWEST_IOS_A_ROUND`` for each of its rounds.
    """
    least = FEWEST_IOS_A_ROUND * run.rounds if fewest is None else fewest
    alone = run.of_members()
    if len(alone) == 1:
        said = _of_one(alone[0], least)
    else:
        said = [f"{each.members[0]}: {objection}" for each in alone for objection in _of_one(each, least)]
    return tuple([*said, *_host(run)])


def _of_one(run: Run, fewest: int) -> list[str]:
    """Of one target: an array, or a single drive."""
    if not run.ios:
        return [f"no I/O in {format_duration(run.window_s)}"]
    return [*_amount(run, fewest), *_silences(run), *_directions(run), *_arithmetic(run)]


def _amount(run: Run, fewest: int) -> Iterator[str]:
    if run.ios < fewest:
        yield f"only {run.ios:,} I/Os in the window, at least {fewest:,} are needed"
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
    workload = run.workload
    for name, wanted, iops in (("read", workload.reads, run.read_iops), ("write", workload.writes, run.write_iops)):
        if wanted and not iops:
            yield f"no {name}s in a workload that has them"
        if iops and not wanted:
            yield f"{iops:,.0f} {name}s per second in a workload without {name}s"
    if workload.has_streams:
        return  # whose mix is a result
    asked, share = workload.read_fraction, run.read_iops / run.iops
    # A short run may miss its mix by chance.
    chance = 100 * CHANCE * math.sqrt(asked * (1 - asked) / run.ios)
    if 0 < asked < 1 and abs(share - asked) * 100 > max(MIX_POINTS, chance):
        yield f"{share:.1%} of the I/Os were reads, {asked:.0%} were asked for"


def _arithmetic(run: Run) -> Iterator[str]:
    """Identities that hold for every drive: Little's law, bytes = I/Os × size, a latency for every I/O."""
    workload = run.workload
    block, asked_bytes = run.bytes_per_s / run.iops, workload.block_bytes
    # Sizes that are drawn have a mean that scatters; of a single size it is exact.
    variance = sum(share / 100 * (size - asked_bytes) ** 2 for size, share in workload.sizes)
    if abs(block - asked_bytes) > 1e-6 * asked_bytes + CHANCE * math.sqrt(variance / run.ios):
        yield f"{block:,.0f} bytes per I/O, {asked_bytes:,.0f} were asked for"
    latency = run.latency
    # The counters and the bins of one status document are not read in one instant.
    asked = _outstanding(run)
    if abs(latency.total - run.ios) > max(asked, 0.01 * run.ios):
        yield f"{latency.total:,} latencies for {run.ios:,} I/Os"
    if workload.has_streams:
        # Each direction has a queue of its own, and a sum could hide one that is not full.
        yield from _little(run.read_iops, run.read_latency, asked // 2, run.seconds, " of the reads")
        yield from _little(run.write_iops, run.write_latency, asked // 2, run.seconds, " of the writes")
    else:
        yield from _little(run.iops, latency, asked, run.seconds)
    if latency and latency.max_ns >= LAST_BUCKET_NS:
        yield "latencies of 17 s and more, which fio does not resolve"


def _outstanding(run: Run) -> int:
    """I/Os that were to be outstanding; drives side by side have each the whole load of one."""
    width = run.geometry.width
    return width * run.workload.outstanding(1) if run.geometry.is_side_by_side else run.workload.outstanding(width)


def _little(iops: float, latency: LatencyHistogram, asked: int, seconds: float, what: str = "") -> Iterator[str]:
    """IOPS × mean latency is the number outstanding.

    Of the I/Os under way at either end of the window, ``asked`` of them, half the time lies outside: the product may
    be off by half of ``asked`` over all I/Os at each end. So few and slow I/Os are believed in a wider range.
    """
    if not latency or not iops:
        return
    edge = asked / (iops * seconds)
    low, high = max(0.0, LITTLE[0] - edge), LITTLE[1] + edge
    outstanding = iops * latency.mean_ns / 1e9
    if not low <= outstanding / asked <= high:
        yield (
            f"{outstanding:.1f} I/Os{what} were outstanding (IOPS × mean latency), {asked} were asked for: "
            f"{outstanding / asked:.0%}, believable are {low:.0%} to {high:.0%}"
        )


def _host(run: Run) -> Iterator[str]:
    if run.cpu_busy is not None and run.cpu_busy > CPU_BUSY:
        yield f"the host's CPU was {run.cpu_busy:.0%} busy, so it may have set the pace"
