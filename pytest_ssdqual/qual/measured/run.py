"""Measurements of one workload on one array: `Run` (one fio process) and `Measured` (its repeats, or
its cells).

A run consists of `interval.Interval`s and `interval.Spell`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import ProcessEnvironment
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval, Spell, inside, merged
from pytest_ssdqual.qual.measured.judgeable import Judgeable, Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.units import Unit, format_latency, format_value
from pytest_ssdqual.qual.workload.workload import Workload


@frozen
class Exposure:
    """The slowest I/Os of all spells of a run's drives under one load: rare stalls belong to drives.

    A stall of one drive is one of each array that it is a member of, so a target of n drives has n
    times the rate of one (superposition). A stall of md or the host is one of each array, whatever
    its width, so an array is credited with no more time than arrays were observed.
    """

    #: Time under load of all drives together, seconds; an array of n counts n times.
    drive_s: float
    #: Time under load of all arrays together, seconds.
    array_s: float
    #: Number of spells.
    spells: int
    #: The largest maxima of spells, as multiples of the median of their own point, falling.
    times_median: tuple[float, ...] = ()
    #: The largest maxima of spells in nanoseconds, falling.
    slowest_ns: tuple[int, ...] = ()


@frozen
class Visited:
    """What the confidence intervals of a point need besides its cells.

    Scatters are standard deviations as shares of the point's mean.
    """

    #: Cells of this point in each visit that counts, in the order of its runs.
    cells: tuple[int, ...]
    #: Cells at the last look that is planned.
    of: int
    #: Two-sided confidence of intervals now, so that all planned looks hold together.
    level: float
    #: Scatter of the mean of a visit, pooled over the points of the mix, and its degrees of freedom.
    between: float
    between_degrees: float
    #: Scatter of a cell within its visit, pooled likewise.
    within: float
    within_degrees: float
    #: How far the long-run mean may be below and above for reasons that scatter does not show: a
    #: drift that the points of a mix share, cells that depend on what was written before them, and
    #: first seconds that differ; shares of the mean, both at least 0.
    below: float = 0.0
    above: float = 0.0
    #: Slowest I/Os of the drives in all points of the same queue depth; None if there are none.
    exposure: Exposure | None = None
    #: Why a first visit is left out; empty if none is.
    left_out: str = ""

    @property
    def visits(self) -> int:
        return len(self.cells)

    @property
    def is_last(self) -> bool:
        """Return whether no further look is planned."""
        return sum(self.cells) >= self.of


#: Length of a spell and the fewest spells of a window; shorter windows have shorter spells, down to fio's shortest
#: reporting interval. Long enough for the I/Os of one stall to be in one spell, short enough for most spells to be
#: without a stall.
SPELL_S, FEWEST_SPELLS, SHORTEST_SPELL_S = 10.0, 30, 1.0

#: One histogram per round.
RoundHistograms = tuple[LatencyHistogram, ...]


@frozen
class RunRecord:
    """Journal record of a run, in base units; its other data is in fio's output."""

    workload: str
    geometry: Geometry
    members: tuple[str, ...]
    ramp_s: float
    window_s: float
    counted_s: float
    ios: int
    iops: float
    read_iops: float
    write_iops: float
    bytes_per_s: float
    mean_latency_ns: float | None
    max_latency_ns: float | None
    round_iops: tuple[float, ...]
    #: None for a round without I/O.
    round_max_latency_ns: tuple[float | None, ...]
    cpu_busy: float | None
    seen: ProcessEnvironment | None
    #: Name of fio's output in the run folder.
    raw: str
    spell_length_s: float | None


@frozen
class RunsRecord:
    """Journal record of runs that are judged together."""

    iops: float
    runs: tuple[RunRecord, ...]
    #: If the runs are the cells of visits.
    visited: Visited | None


def until_last_io(intervals: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """Return a replay without the time after its end, in which slower drives side by side still have I/O."""
    busy = [index for index, each in enumerate(intervals) if each.ios]
    return intervals[: busy[-1] + 1] if busy else intervals


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """One fio process: one workload on one array, from its start, ramp included.

    Rates and latencies are those of ``counted``, the intervals inside the window. Raw numbers only; `validity` decides
    whether they may be judged.
    """

    workload: Workload
    geometry: Geometry
    #: Serial numbers.
    members: tuple[str, ...]
    #: In order of time; an interval may be longer than the others, and there may be gaps.
    intervals: tuple[Interval, ...]
    ramp_s: float
    window_s: float
    #: Number of rounds of equal length in the window.
    rounds: int
    #: Name of the raw output in the run folder.
    raw: str
    #: Environment before and after the process; None if it was not recorded.
    seen: ProcessEnvironment | None = None
    #: For drives side by side, every member's own intervals, in the order of ``members``; empty for an array.
    parts: tuple[tuple[Interval, ...], ...] = ()
    #: Extremes of fio's reports, which may be finer than the intervals, and for drives side by side those of every
    #: member. Empty if they are those of the intervals.
    reports: tuple[Spell, ...] = ()
    part_reports: tuple[tuple[Spell, ...], ...] = ()
    #: The spec promises something about heat: it is the product's, and no objection to the measurement.
    is_heat_promised: bool = False
    #: Length of a spell, seconds; None: as the window's length has it.
    spell_length_s: float | None = None

    def __repr__(self) -> str:
        if not self.latency:
            return f"<Run {self.geometry} {self.workload}: no I/O>"
        mean = format_latency(self.mean_latency_ns)
        return f"<Run {self.geometry} {self.workload}: {format_value(self.iops, Unit.IOPS)}, mean {mean}, {self.raw}>"

    @property
    def counted(self) -> tuple[Interval, ...]:
        """The intervals of the window.

        The window begins with the interval in which the ramp ends: fio's first status document may come at any moment
        of its first second, and the window must not be shorter for that.
        """
        return inside(self.intervals, self.ramp_s, self.window_s)

    @property
    def drive(self) -> str:
        """Serial number, if it is of one drive that is not a member of an array; else ""."""
        return self.members[0] if self.geometry.is_side_by_side and len(self.members) == 1 else ""

    @property
    def asked_iops(self) -> float:
        """I/Os per second that all targets together were asked for; 0 without a rate."""
        return self.geometry.targets * self.workload.asked_iops(self.geometry.target.width)

    @property
    def cpu_busy(self) -> float | None:
        """Share of the machine's CPU time in use during the process, 0…1; None if unknown."""
        return self.seen.cpu.busy if self.seen and self.seen.cpu else None

    @property
    def seconds(self) -> float:
        """Length of the counted intervals, seconds."""
        return sum(interval.seconds for interval in self.counted)

    @property
    def ios(self) -> int:
        return sum(interval.ios for interval in self.counted)

    @property
    def read_iops(self) -> float:
        return self._per_second(sum(interval.read_ios for interval in self.counted))

    @property
    def write_iops(self) -> float:
        return self._per_second(sum(interval.write_ios for interval in self.counted))

    @property
    def iops(self) -> float:
        """Reads and writes; 0 when nothing was counted."""
        return self._per_second(self.ios)

    @property
    def bytes_per_s(self) -> float:
        return self._per_second(sum(interval.read_bytes + interval.write_bytes for interval in self.counted))

    @property
    def bytes_written(self) -> int:
        """Bytes written by the whole process, ramp included: what wears the drives."""
        return sum(interval.write_bytes for interval in self.intervals)

    @property
    def latency(self) -> LatencyHistogram:
        """Reads and writes of the window together."""
        return LatencyHistogram.merged(chain.from_iterable(interval.latencies for interval in self.counted))

    @property
    def read_latency(self) -> LatencyHistogram:
        return LatencyHistogram.merged(interval.read_latency for interval in self.counted)

    @property
    def write_latency(self) -> LatencyHistogram:
        return LatencyHistogram.merged(interval.write_latency for interval in self.counted)

    @property
    def mean_latency_ns(self) -> float:
        """Mean of all I/Os of the window, from bucket middles; ValueError when there were none."""
        return self.latency.mean_ns

    def round_iops(self) -> tuple[float, ...]:
        """IOPS of each round of the window, resampled by time; see ``round_rates``."""
        return self.round_rates(lambda interval: interval.ios)

    def round_rates(self, count: Callable[[Interval], int]) -> tuple[float, ...]:
        """Rate of ``count`` in each round of the window, per second; resampled by time.

        An interval that crosses rounds is divided as if its I/Os were evenly spread over it. A round's rate is its I/Os
        over the time that intervals cover of it; 0 if none does.
        """
        counted, rounds, length = self.counted, self.rounds, self.window_s / self.rounds
        totals, covered_s = [0.0] * rounds, [0.0] * rounds
        begin_s = counted[0].start_s if counted else 0.0
        for each in counted:
            start_s, end_s, amount = each.start_s - begin_s, each.end_s - begin_s, count(each)
            for index in range(int(start_s / length), min(rounds, int(end_s / length) + 1)):
                # Not ``min`` and ``max``: a plan of a suite comes here a million times.
                low, high = index * length, (index + 1) * length
                part = (end_s if end_s < high else high) - (start_s if start_s > low else low)
                if part > 0:
                    totals[index] += amount * part / each.seconds
                    covered_s[index] += part
        return tuple(amount / seconds if seconds else 0.0 for amount, seconds in zip(totals, covered_s, strict=True))

    def round_latency(self, of: Callable[[Interval], Iterable[LatencyHistogram]] | None = None) -> RoundHistograms:
        """Latencies of each round, of all I/Os or of those that ``of`` selects.

        An interval that crosses rounds belongs to the round of its middle.
        """
        return tuple(
            LatencyHistogram.merged(chain.from_iterable(of(each) if of else each.latencies for each in part))
            for part in self._shared_out(self.rounds)
        )

    @property
    def spell_s(self) -> float:
        """Length of a spell, seconds."""
        return self.spell_length_s or min(SPELL_S, max(SHORTEST_SPELL_S, self.window_s / FEWEST_SPELLS))

    @property
    def spells(self) -> tuple[Spell, ...]:
        """Extremes of the window, spell by spell, without those that have no report of fio.

        A report that crosses spells belongs to the spell of its middle.
        """
        if self.reports:
            counted = inside(self.reports, self.ramp_s, self.window_s)
        else:
            counted = tuple(map(Spell.of_interval, self.counted))
        spell_s, begin_s = self.spell_s, counted[0].start_s if counted else 0.0
        indexes = [int((each.start_s + each.seconds / 2 - begin_s) / spell_s) for each in counted]
        if len(set(indexes)) == len(indexes):  # one report for each spell, as in a condensed run
            return tuple(counted)
        parts: dict[int, list[Spell]] = {}
        for index, each in zip(indexes, counted, strict=True):
            parts.setdefault(index, []).append(each)
        return tuple(Spell.joined(parts[index]) for index in sorted(parts))

    def condensed(self) -> Run:
        """Return the run with one interval per round, for storage: a day of seconds is gigabytes of histograms.

        Totals and spells are preserved; rounds are exact to one of the original intervals.
        """
        if not self.counted:
            return self
        alone = [member.condensed() for member in self.of_members()] if self.parts else []
        return replace(
            self, intervals=self.in_rounds(), reports=self.spells,
            parts=tuple(each.intervals for each in alone), part_reports=tuple(each.reports for each in alone),
        )  # fmt: skip

    def in_rounds(self) -> tuple[Interval, ...]:
        """Return the intervals of ``condensed``: one for what was before the window, and one for each round."""
        counted = self.counted
        if not counted:
            return self.intervals
        head = [interval for interval in self.intervals if interval.end_s <= counted[0].start_s]
        return tuple(merged(part) for part in (head, *self._shared_out(self.rounds)) if part)

    def of_members(self) -> tuple[Run, ...]:
        """One run for each drive side by side; for an array only the run itself."""
        if not self.parts:
            return (self,)
        alone = Geometry(self.geometry.level, 1)
        parts = tuple(map(until_last_io, self.parts)) if self.workload.replay else self.parts
        return tuple(
            replace(
                self, geometry=alone, members=(member,), intervals=part, parts=(),
                window_s=sum(each.seconds for each in part) if self.workload.replay else self.window_s,
                seen=self.seen and self.seen.of_drive(index),
                reports=self.part_reports[index] if self.part_reports else (), part_reports=(),
            )
            for index, (member, part) in enumerate(zip(self.members, parts, strict=True))
        )  # fmt: skip

    def record(self) -> RunRecord:
        """Return the journal record of the window."""
        latency = self.latency
        return RunRecord(
            workload=str(self.workload),
            geometry=self.geometry,
            members=self.members,
            ramp_s=self.ramp_s,
            window_s=self.window_s,
            counted_s=self.seconds,
            ios=self.ios,
            iops=self.iops,
            read_iops=self.read_iops,
            write_iops=self.write_iops,
            bytes_per_s=self.bytes_per_s,
            mean_latency_ns=latency.mean_ns if latency else None,
            max_latency_ns=latency.max_ns if latency else None,
            round_iops=tuple(self.round_iops()),
            round_max_latency_ns=tuple(each.max_ns if each else None for each in self.round_latency()),
            cpu_busy=self.cpu_busy,
            seen=self.seen,
            raw=self.raw,
            spell_length_s=self.spell_length_s,
        )

    def _shared_out(self, count: int) -> list[list[Interval]]:
        """The counted intervals in ``count`` parts of equal length; each interval is in the part of its middle."""
        counted, window_s, last = self.counted, self.window_s, count - 1
        parts: list[list[Interval]] = [[] for _ in range(count)]
        begin_s = counted[0].start_s if counted else 0.0
        for interval in counted:
            # Not below 0: intervals are in order of time.
            part = int((interval.start_s + interval.seconds / 2 - begin_s) / window_s * count)
            parts[part if part < last else last].append(interval)
        return parts

    def _per_second(self, count: int) -> float:
        return count / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Measured(Judgeable):
    """One or more runs of the same workload on the same array, judged together: their rounds are pooled."""

    runs: tuple[Run, ...]
    #: If the runs are the cells of visits.
    visited: Visited | None = None

    kind: ClassVar[Scope] = Scope.RUN

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("nothing was measured")
        if len({(run.workload, run.geometry) for run in self.runs}) > 1:
            raise ValueError(f"these are not repeats of one measurement: {', '.join(map(repr, self.runs))}")

    def __repr__(self) -> str:
        rate = format_value(self.iops, Unit.IOPS)
        return f"<Measured {self.geometry} {self.workload}: {rate}, {len(self.runs)} × {self.runs[0].rounds} rounds>"

    @property
    def workload(self) -> Workload:
        return self.runs[0].workload

    @property
    def geometry(self) -> Geometry:
        return self.runs[0].geometry

    @property
    def subject(self) -> Subject:
        return Subject((self.geometry,), (self.workload,))

    @property
    def drive(self) -> str:
        return self.runs[0].drive

    @property
    def has_stopping_rule(self) -> bool:
        """Return whether looks after its visits ended it; False for one of fixed length."""
        return self.visited is not None

    @property
    def seconds(self) -> float:
        """Measured time of all repeats together."""
        return sum(run.seconds for run in self.runs)

    @property
    def iops(self) -> float:
        """All counted I/Os over all counted time."""
        return sum(run.ios for run in self.runs) / self.seconds if self.seconds else 0.0

    @property
    def latency(self) -> LatencyHistogram:
        return LatencyHistogram.merged(run.latency for run in self.runs)

    def members(self) -> tuple[Measured, ...]:
        """One measurement for each drive side by side; for an array only the measurement itself."""
        if not self.runs[0].parts:
            return (self,)
        members = zip(*(run.of_members() for run in self.runs), strict=True)
        return tuple(Measured(runs, self.visited) for runs in members)

    def raw_files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.raw for run in self.runs))

    def round_iops(self) -> tuple[float, ...]:
        return self.round_rates(lambda interval: interval.ios)

    def round_rates(self, count: Callable[[Interval], int]) -> tuple[float, ...]:
        return tuple(chain.from_iterable(run.round_rates(count) for run in self.runs))

    def round_latency(self, of: Callable[[Interval], Iterable[LatencyHistogram]] | None = None) -> RoundHistograms:
        return tuple(chain.from_iterable(run.round_latency(of) for run in self.runs))

    @property
    def spells(self) -> tuple[Spell, ...]:
        """Spells of all repeats; see ``Run.spells``."""
        return tuple(chain.from_iterable(run.spells for run in self.runs))

    @property
    def spell_s(self) -> float:
        return self.runs[0].spell_s

    def summary(self) -> RunsRecord:
        """Return the journal record."""
        return RunsRecord(self.iops, tuple(run.record() for run in self.runs), self.visited)
