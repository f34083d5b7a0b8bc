"""Latencies of an open loop: counted from the time at which an I/O should have begun, not from that at which it did.

A job of fio has one I/O outstanding. While that one is late, the next ones of the job should have begun, and fio begins
them afterwards, with a latency that lacks the wait (coordinated omission). fio 3.33 has no latency that includes it:
``io_submit_mode=offload`` does, but hangs at its start before fio 3.42 (fio 736c2015), and reports no latency before
its end. The jobs begin at their times whatever other jobs wait for, so only what one job omits has to be added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of


def from_intended_starts(latencies: Iterable[LatencyHistogram], gap_ns: float) -> Iterator[LatencyHistogram]:
    """Yield the histogram of as many I/Os for each of consecutive intervals.

    ``gap_ns``: nanoseconds between two I/Os of a job, on average. An I/O of n gaps stands for others that should have
    begun one, two, … gaps after it, and were not done before it (the correction of HdrHistogram for an expected
    interval). fio began these later: they are among the next I/Os that took less than a gap, so as many of these are
    left out, evenly. An I/O of less than two gaps is taken to delay none: of jobs that are always busy this is not so,
    and their figures have no upper end.
    """
    late = Counter[int]()
    for latency in latencies:
        counts, short = Counter[int](), Counter[int]()
        for value_ns, count in latency.bins:
            (counts if value_ns >= gap_ns else short)[value_ns] = count
            for gaps in range(1, int(value_ns / gap_ns)):
                late[bucket_of(round(value_ns - gaps * gap_ns)).low_ns] += count
        begun_late = _thinned(late, min(late.total(), short.total()))
        late -= begun_late
        counts += begun_late + _thinned(short, short.total() - begun_late.total())
        yield LatencyHistogram.from_bins(counts)


def _thinned(bins: Counter[int], total: int) -> Counter[int]:
    """Return ``total`` of the I/Os, as evenly as whole numbers allow."""
    thinned, before, whole = Counter[int](), 0, bins.total()
    for value_ns, count in sorted(bins.items()):
        after = before + count
        thinned[value_ns] = after * total // whole - before * total // whole
        before = after
    return thinned
