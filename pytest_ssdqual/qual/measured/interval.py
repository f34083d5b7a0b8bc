"""What happened between two status documents of fio: counts, latencies, and how long it really was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram

#: Shorter intervals are no "second" when the slowest second of a run is looked for…
SHORTEST_RATE_S = 0.5
#: …and in longer ones a second is hidden: it may have been without any I/O.
LONGEST_SECOND_S = 1.5


@dataclass(frozen=True, slots=True)
class Interval:
    """What happened between two status documents of one fio process, all jobs together.

    ``start_s`` counts from the start of the process; ``seconds`` is the interval's real length, which
    after a stall is longer than asked (so: resample by time, never by index).
    """

    start_s: float
    seconds: float
    read_ios: int
    write_ios: int
    read_bytes: int
    write_bytes: int
    read_latency: LatencyHistogram
    write_latency: LatencyHistogram
    #: Bytes per second of the slowest and the fastest interval it was merged of; None: it was not merged.
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
        """Of reads and of writes."""
        return self.read_latency, self.write_latency

    @property
    def latency(self) -> LatencyHistogram:
        """Reads and writes together."""
        return self.read_latency + self.write_latency


@dataclass(frozen=True, slots=True)
class Spell:
    """The extremes of one of fio's reporting intervals, or of several that follow each other."""

    #: As of an ``Interval``.
    start_s: float
    seconds: float
    #: Slowest I/O; 0 if none ended in it.
    max_ns: int
    #: Bytes per second of the slowest second: between these two.
    slowest_low: float
    slowest_high: float

    @classmethod
    def of(cls, start_s: float, seconds: float, transferred: int, max_ns: int) -> Spell:
        """Of one report. In one that is longer than a second a second may have been without any I/O."""
        rate = transferred / seconds
        return cls(start_s, seconds, max_ns, rate if seconds <= LONGEST_SECOND_S else 0.0, rate)

    @classmethod
    def of_interval(cls, interval: Interval) -> Spell:
        """Where no finer reports are known."""
        slowest = interval.slowest_bytes_per_s
        is_hidden = interval.slowest is None and interval.seconds > LONGEST_SECOND_S
        max_ns = max((each.max_ns for each in interval.latencies if each), default=0)
        return cls(interval.start_s, interval.seconds, max_ns, 0.0 if is_hidden else slowest, slowest)

    @classmethod
    def joined(cls, part: Sequence[Spell]) -> Spell:
        """Of several that follow each other, at least one."""
        # fio's first and last reports may cover a few milliseconds, whose rate says nothing.
        whole = [each for each in part if each.seconds >= SHORTEST_RATE_S] or part
        return cls(
            start_s=part[0].start_s,
            seconds=sum(each.seconds for each in part),
            max_ns=max(each.max_ns for each in part),
            slowest_low=min(each.slowest_low for each in whole),
            slowest_high=min(each.slowest_high for each in whole),
        )

    @property
    def end_s(self) -> float:
        return self.start_s + self.seconds


def merged(part: Sequence[Interval]) -> Interval:
    """Intervals that follow each other as one; of their rates only the lowest and the highest are left."""
    # fio's first and last reports may cover a few milliseconds, whose rate says nothing.
    whole = [each for each in part if each.seconds >= SHORTEST_RATE_S] or part
    return Interval(
        start_s=part[0].start_s,
        seconds=sum(each.seconds for each in part),
        read_ios=sum(each.read_ios for each in part),
        write_ios=sum(each.write_ios for each in part),
        read_bytes=sum(each.read_bytes for each in part),
        write_bytes=sum(each.write_bytes for each in part),
        read_latency=LatencyHistogram.merged(each.read_latency for each in part),
        write_latency=LatencyHistogram.merged(each.write_latency for each in part),
        slowest=min(each.slowest_bytes_per_s for each in whole),
        fastest=max(each.fastest_bytes_per_s for each in whole),
    )
