"""What a run consists of: `Interval`s (counts and latency histograms between two status documents of fio, with their
real length) and `Spell`s (extremes of equal stretches of time).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram

# A run of a day is condensed: attrgetter and map need a third of the time of generators.
START_S, SECONDS, END_S = attrgetter("start_s"), attrgetter("seconds"), attrgetter("end_s")
READ_IOS, WRITE_IOS = attrgetter("read_ios"), attrgetter("write_ios")
READ_BYTES, WRITE_BYTES = attrgetter("read_bytes"), attrgetter("write_bytes")
READ_LATENCY, WRITE_LATENCY = attrgetter("read_latency"), attrgetter("write_latency")
MAX_NS, SLOWEST_LOW, SLOWEST_HIGH = attrgetter("max_ns"), attrgetter("slowest_low"), attrgetter("slowest_high")
FASTEST_LOW, FASTEST_HIGH = attrgetter("fastest_low"), attrgetter("fastest_high")

#: Status documents come a few milliseconds early or late.
JITTER_S = 0.1
#: Shorter intervals do not count as a second when the slowest second of a run is determined…
SHORTEST_RATE_S = 0.5
#: …and longer ones hide single seconds, which may have been without any I/O.
LONGEST_SECOND_S = 1.5


@frozen
class Interval:
    """Counts between two status documents of one fio process, all jobs together.

    ``start_s`` counts from the start of the process. ``seconds`` is the interval's real length, which is longer than
    configured after a stall (so: resample by time, never by index).
    """

    start_s: float
    seconds: float
    read_ios: int
    write_ios: int
    read_bytes: int
    write_bytes: int
    read_latency: LatencyHistogram
    write_latency: LatencyHistogram
    #: Bytes per second of the slowest and fastest interval that it was merged from; None if it was not merged.
    slowest: float | None = None
    fastest: float | None = None

    @property
    def bytes_per_s(self) -> float:
        return (self.read_bytes + self.write_bytes) / self.seconds

    @property
    def slowest_bytes_per_s(self) -> float:
        return self.bytes_per_s if self.slowest is None else self.slowest

    @property
    def fastest_bytes_per_s(self) -> float:
        return self.bytes_per_s if self.fastest is None else self.fastest

    @property
    def ios(self) -> int:
        return self.read_ios + self.write_ios

    @property
    def end_s(self) -> float:
        return self.start_s + self.seconds

    @property
    def latencies(self) -> tuple[LatencyHistogram, LatencyHistogram]:
        """Latencies of reads, and of writes."""
        return self.read_latency, self.write_latency

    @property
    def latency(self) -> LatencyHistogram:
        """Latencies of reads and writes together."""
        return self.read_latency + self.write_latency


@frozen
class Spell:
    """The extremes of one of fio's reporting intervals, or of several consecutive ones."""

    #: As of an ``Interval``.
    start_s: float
    seconds: float
    #: Slowest I/O; 0 if none completed.
    max_ns: int
    #: Bounds of the slowest second's rate, bytes per second.
    slowest_low: float
    slowest_high: float
    #: Bounds of the fastest second's rate.
    fastest_low: float
    fastest_high: float

    @classmethod
    def of(cls, start_s: float, seconds: float, transferred: int, max_ns: int) -> Spell:
        """Build from one report. In a report longer than a second, one second may have had none of the I/O, or all."""
        rate = transferred / seconds
        if seconds <= LONGEST_SECOND_S:
            return cls(start_s, seconds, max_ns, rate, rate, rate, rate)
        return cls(start_s, seconds, max_ns, 0.0, rate, rate, float(transferred))

    @classmethod
    def of_interval(cls, interval: Interval) -> Spell:
        """Build from an interval, if no finer reports exist."""
        reads, writes = interval.read_latency, interval.write_latency
        max_ns = max(reads.max_ns if reads else 0, writes.max_ns if writes else 0)
        if interval.slowest is None:
            return cls.of(interval.start_s, interval.seconds, interval.read_bytes + interval.write_bytes, max_ns)
        slowest, fastest = interval.slowest_bytes_per_s, interval.fastest_bytes_per_s
        return cls(interval.start_s, interval.seconds, max_ns, slowest, slowest, fastest, fastest)

    @classmethod
    def joined(cls, part: Sequence[Spell]) -> Spell:
        """Join consecutive spells, at least one."""
        if len(part) == 1:
            return part[0]
        # fio's first and last reports may cover a few milliseconds, whose rate is meaningless.
        whole = [each for each in part if each.seconds >= SHORTEST_RATE_S] or part
        return cls(
            start_s=part[0].start_s,
            seconds=sum(map(SECONDS, part)),
            max_ns=max(map(MAX_NS, part)),
            slowest_low=min(map(SLOWEST_LOW, whole)),
            slowest_high=min(map(SLOWEST_HIGH, whole)),
            fastest_low=max(map(FASTEST_LOW, whole)),
            fastest_high=max(map(FASTEST_HIGH, whole)),
        )

    @property
    def end_s(self) -> float:
        return self.start_s + self.seconds


def merged(part: Sequence[Interval]) -> Interval:
    """Merge consecutive intervals into one; of their rates only the lowest and the highest remain."""
    # fio's first and last reports may cover a few milliseconds, whose rate is meaningless.
    whole = [each for each in part if each.seconds >= SHORTEST_RATE_S] or part
    return Interval(
        start_s=part[0].start_s,
        seconds=sum(map(SECONDS, part)),
        read_ios=sum(map(READ_IOS, part)),
        write_ios=sum(map(WRITE_IOS, part)),
        read_bytes=sum(map(READ_BYTES, part)),
        write_bytes=sum(map(WRITE_BYTES, part)),
        read_latency=LatencyHistogram.merged(map(READ_LATENCY, part)),
        write_latency=LatencyHistogram.merged(map(WRITE_LATENCY, part)),
        slowest=min(each.slowest_bytes_per_s for each in whole),
        fastest=max(each.fastest_bytes_per_s for each in whole),
    )


Piece = TypeVar("Piece", Interval, Spell)


def inside(pieces: Sequence[Piece], ramp_s: float, window_s: float) -> tuple[Piece, ...]:
    """Pieces of the window; see ``Run.counted``. Pieces are in order of time."""
    first = bisect_right(pieces, ramp_s + JITTER_S, key=END_S)
    if first == len(pieces):
        return ()
    end = bisect_left(pieces, pieces[first].start_s + window_s - JITTER_S, first, key=START_S)
    return tuple(pieces[first:end])
