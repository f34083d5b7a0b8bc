"""Intervals between cumulative counters, whose clock may be late or may have been set. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval, merged
from pytest_ssdqual.rig.machine.machine import ClockSet

#: Scheduling noise between the request of a status and its time stamp.
CLOCK_SLACK_MS = 100


@frozen
class IoDirection:
    """Totals of the reads, or of the writes, of a whole process."""

    ios: int
    bytes: int
    latency: LatencyHistogram


@frozen
class Counters:
    """Cumulative counters of jobs since their start."""

    read: IoDirection
    write: IoDirection


@frozen
class Snapshot:
    """Cumulative counters of one document, and its two clocks (see ``_moments``)."""

    printed_ms: int
    asked_ms: int
    #: Counters of each drive side by side; otherwise of all jobs. Empty if dropped: the clocks are still needed.
    parts: tuple[Counters, ...]

    def without_counters(self) -> Snapshot:
        return replace(self, parts=())


def parts(snapshots: Sequence[Snapshot]) -> list[tuple[Interval, ...]]:
    """Return the intervals of each part, at the same times.

    The last snapshot of an ended process has the sizes of its transfers.
    ``ClockSet`` if the machine's clock was set meanwhile, ``ValueError`` if counters ran backwards.
    """
    documents = _documents(snapshots, _moments(snapshots))
    of_parts = zip(*(snapshot.parts for _, snapshot in documents), strict=True)
    moments = [moment_ms for moment_ms, _ in documents]
    return [tuple(_intervals(moments, part)) for part in of_parts]


def require_growth(before: Snapshot, after: Snapshot) -> None:
    """Raise ``ValueError`` if the later document has other parts, or counters that ran backwards."""
    for earlier, now in zip(before.parts, after.parts, strict=True):
        for was, has in ((earlier.read, now.read), (earlier.write, now.write)):
            if has.bytes < was.bytes or has.latency.total < was.latency.total:
                raise ValueError("counters ran backwards")


def together(parts: Sequence[Interval]) -> Interval:
    """Sum of several drives' I/O in the same time."""
    return replace(merged(parts), seconds=parts[0].seconds, slowest=None, fastest=None)


def summed(parts: Sequence[IoDirection]) -> IoDirection:
    """Sum of one direction of several drives or jobs."""
    return IoDirection(
        ios=sum(part.ios for part in parts),
        bytes=sum(part.bytes for part in parts),
        latency=LatencyHistogram.merged(part.latency for part in parts),
    )


def _moments(snapshots: Sequence[Snapshot]) -> list[int]:
    """Return when each document's counters were read, in ms since the start.

    ``runtime`` is the time of the *request* for a status: fio then waits for every worker, so that after a stall it is
    seconds too early for the counters beside it (1.9 s against 3.4 s in tests/data/fio/*/stalled). ``timestamp_ms``
    is stamped after the wait, but is only relative, and in the final document up to 250 ms after the last I/O. So the
    stamp is used for all but the last, which has its run time. ``elapsed`` is whole seconds, ``job_runtime`` a sum
    over jobs, ``job_start`` newer than 3.33.

    A status is printed before the next is requested. A stamp that breaks this rule means that the clock was set.
    Before the first I/O ``runtime`` is 0 and does not contain the time of the request.
    """
    *running, last = snapshots
    offsets = [snapshot.printed_ms - snapshot.asked_ms for snapshot in running if snapshot.asked_ms]
    started_ms = min(offsets, default=last.printed_ms - last.asked_ms)
    moments_ms = []
    for snapshot, following in pairwise(snapshots):
        moment_ms = snapshot.printed_ms - started_ms
        late_ms = moment_ms - following.asked_ms if following.asked_ms else 0
        if late_ms > CLOCK_SLACK_MS and following is not last:
            raise ClockSet(f"the machine's clock was set by {late_ms} ms or more during the measurement")
        moments_ms.append(max(snapshot.asked_ms, moment_ms - max(0, late_ms)))
    return [*moments_ms, last.asked_ms]


def _documents(snapshots: Sequence[Snapshot], moments_ms: Sequence[int]) -> list[tuple[int, Snapshot]]:
    """Return the documents at which time had advanced; counts of the others belong to the next interval.

    Documents are cumulative, so one can be left out without loss, except the last: it replaces those that claim to be
    as late as itself (repeated time stamps, fio#971).
    """
    last_ms = moments_ms[-1]
    documents: list[tuple[int, Snapshot]] = []
    for moment_ms, snapshot in zip(moments_ms[:-1], snapshots[:-1], strict=True):
        if snapshot.parts and (documents[-1][0] if documents else 0) < moment_ms < last_ms:
            documents.append((moment_ms, snapshot))
    if last_ms:
        documents.append((last_ms, snapshots[-1]))
    return documents


def _intervals(moments_ms: Sequence[int], counters: Sequence[Counters]) -> Iterator[Interval]:
    """Yield the differences between the counters of one part."""
    before_ms, before, last = 0, Counters(_NOTHING, _NOTHING), counters[-1]
    sizes = _size(last.read), _size(last.write)
    for moment_ms, after in zip(moments_ms, counters, strict=True):
        yield _between(before_ms, before, moment_ms, after, sizes)
        before_ms, before = moment_ms, after


def _between(
    start_ms: int, before: Counters, end_ms: int, after: Counters, sizes: tuple[int | None, int | None]
) -> Interval:
    read_latency = after.read.latency - before.read.latency
    write_latency = after.write.latency - before.write.latency
    read_ios, write_ios = read_latency.total, write_latency.total
    return Interval(
        start_s=start_ms / 1000,
        seconds=(end_ms - start_ms) / 1000,
        read_ios=read_ios,
        write_ios=write_ios,
        read_bytes=_bytes(before.read, after.read, sizes[0], read_ios),
        write_bytes=_bytes(before.write, after.write, sizes[1], write_ios),
        read_latency=read_latency,
        write_latency=write_latency,
    )


def _bytes(before: IoDirection, after: IoDirection, size: int | None, ios: int) -> int:
    """Bytes of ``ios`` completions.

    fio reads ``io_bytes`` before it waits for the workers (3.33: bytes of 90k I/Os beside 151k counted in the bins of
    one stalled document), so where all transfers have one size the count is taken from the bins.
    """
    return after.bytes - before.bytes if size is None else ios * size


def _size(last: IoDirection) -> int | None:
    """Size of all transfers, if completed I/O had only one; while I/O runs, bytes and I/Os are of different moments."""
    is_single = last.ios and last.bytes % last.ios == 0 and last.ios == last.latency.total
    return last.bytes // last.ios if is_single else None


_NOTHING = IoDirection(0, 0, LatencyHistogram())
