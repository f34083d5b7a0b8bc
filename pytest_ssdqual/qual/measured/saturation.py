"""Saturation: writes from the purged state until the drive is steady; fresh IOPS, write cliff, settled IOPS."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import field, replace
from statistics import fmean, median
from typing import ClassVar

from pytest_ssdqual.qual.detect.change_point import SHORTEST_AFTER, SHORTEST_BEFORE, Fall, first_fall
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.interval import JITTER_S, Interval
from pytest_ssdqual.qual.measured.judgeable import Judgeable, Subject
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel, Estimate, TooFew, mean_of_rounds
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

#: Length of the response times at the end of a saturation, seconds (SNIA PTS 2.0.2, write saturation).
RESPONSE_TIMES_S = 20 * 60.0

#: Most batches into which the points of a level are pooled for its interval, because neighbours are correlated.
BATCHES = 20


@frozen
class SaturationPoint:
    """One sample of the curve: its IOPS, and time and volume since the first I/O at its end."""

    seconds: float
    bytes_written: float
    iops: float


@frozen
class Cliff:
    """The end of fresh speed, in time and in user capacities written, known to one sample either way."""

    seconds: float
    capacities: float
    low_capacities: float
    high_capacities: float


@frozen
class Settled:
    """The begin of the steady state, and its IOPS."""

    #: Time at the beginning of the first steady window.
    seconds: float
    capacities: float
    iops: Estimate


@frozen
class Saturation(Judgeable):
    """One workload on a purged drive or array, from its first I/O; ``run.rounds`` is the number of its points."""

    run: Run
    #: User capacity of the target, the unit of the volume axis; for drives side by side that of all together.
    capacity_bytes: int
    rule: SteadyRule = field(default_factory=SteadyRule)
    #: User capacities below which nothing counts as settled: a purged drive still has unused flash.
    gate_capacities: float = 1.0

    kind: ClassVar[Scope] = Scope.SATURATION

    @property
    def subject(self) -> Subject:
        return Subject((self.geometry,), (self.workload,))

    @property
    def drive(self) -> str:
        return self.run.drive

    @property
    def geometry(self) -> Geometry:
        return self.run.geometry

    @property
    def workload(self) -> Workload:
        return self.run.workload

    @property
    def sample_s(self) -> float:
        """Length of a sample of the curve and of a report of fio, seconds."""
        return self.run.window_s / self.run.rounds

    @property
    def points(self) -> tuple[SaturationPoint, ...]:
        """The curve; never more points than fio reported, as nothing is known between two reports."""
        counted = self.run.counted
        if not counted:
            return ()
        rounds = max(1, min(self.run.rounds, len(counted)))
        rates, length = replace(self.run, rounds=rounds).round_iops(), self.run.window_s / rounds
        begin, end, first = counted[0].start_s, counted[-1].end_s, self.run.intervals[0].start_s
        # A process that ended early leaves rounds without a report; those are not rounds without I/O.
        times = [begin + (index + 1) * length for index in range(rounds) if begin + index * length < end - JITTER_S]
        written = _written_at(self.run.intervals, times)
        return tuple(
            SaturationPoint(min(at, end) - first, volume, rate)
            for at, volume, rate in zip(times, written, rates, strict=False)
        )

    @property
    def capacities(self) -> float:
        """User capacities written in total."""
        points = self.points
        return points[-1].bytes_written / self.capacity_bytes if points else 0.0

    @property
    def cliff(self) -> Cliff | None:
        """The end of fresh speed; None if no cliff was detected.

        The first fall by more than the steady-state rule allows within a level (``qual/detect/change_point.py``). Lower
        levels or a slow decline may follow: for four capacities on a drive with 7 % of over-provisioning.
        """
        points = self.points
        cut = _cut(points, self.rule)
        if cut is None:
            return None
        earlier, last, first = points[cut - 2 : cut + 1]
        return Cliff(
            seconds=last.seconds,
            capacities=last.bytes_written / self.capacity_bytes,
            low_capacities=earlier.bytes_written / self.capacity_bytes,
            high_capacities=first.bytes_written / self.capacity_bytes,
        )

    def cliff_after(self) -> Estimate:
        """User capacities written before the cliff, to one sample either way.

        Without a cliff: everything written, without an upper end; the low end is the last place where one could have
        been detected. ``TooFew`` for a curve that is too short, scatters too much to place the fall, or falls only
        gradually.
        """
        points, found = self.points, self.cliff
        about = f"{self.workload} on {self.geometry}"
        if found:
            low, high = found.low_capacities, found.high_capacities
            return Estimate(found.capacities, low, high, len(points), Unit.RATIO, is_reading=True)
        if len(points) < SHORTEST_BEFORE + SHORTEST_AFTER:
            raise TooFew(
                f"{about} wrote {self.capacities:.2f} user capacities in {len(points)} samples, a cliff "
                f"takes {SHORTEST_BEFORE + SHORTEST_AFTER}: saturate for longer, or sample more often"
            )
        if fall := _fall(points, self.rule):
            why = (
                "its IOPS scatter too much to say where: take longer samples"
                if fall.is_in_scatter and not fall.is_clear
                else "gradually, not at the end of a fresh level: sample more often, and check that a purge empties it"
            )
            raise TooFew(f"{about} fell by a factor of {fall.factor:.2g}, but {why}")
        low = points[-1 - SHORTEST_AFTER].bytes_written / self.capacity_bytes
        return Estimate(self.capacities, low, math.inf, len(points), Unit.RATIO, is_reading=True)

    @property
    def fresh(self) -> Estimate:
        """``fresh_iops`` at the default confidence."""
        return self.fresh_iops()

    def fresh_iops(self, confidence_level: ConfidenceLevel = USUAL) -> Estimate:
        """IOPS before the cliff; without one, of the first window of the steady-state rule. ``TooFew`` below two
        points.
        """
        points = self.points
        fresh = points[: _cut(points, self.rule) or self.rule.window]
        return mean_of_rounds(_batches([each.iops for each in fresh]), Unit.IOPS, confidence_level)

    @property
    def settled(self) -> Settled | None:
        """The steady state; None if there is none. ``settle`` raises with the reason."""
        with contextlib.suppress(TooFew):
            return self.settle()
        return None

    def settle(self, confidence_level: ConfidenceLevel = USUAL) -> Settled:
        """Find the steady state after the cliff; ``TooFew`` with the reason if there is none.

        The steady-state rule is applied to every window after the cliff (a fresh drive passes it, too). The last window
        that passes must represent the end of the curve: the median of what follows may not leave its range. The steady
        state is the curve from the first passing window to that last one, as far back as all passing windows are on its
        level; dips between them are included.
        """
        points = self.points
        about = f"{self.workload} on {self.geometry}"
        if len(points) < self.rule.window or self.capacities < self.gate_capacities:
            raise TooFew(
                f"{about} wrote {self.capacities:.2f} user capacities in {len(points)} samples; nothing counts as "
                f"settled below {self.gate_capacities:g} and {self.rule.window}: saturate for longer"
            )
        iops, window = [each.iops for each in points], self.rule.window
        start = _cut(points, self.rule) or 0
        found = {
            end: steady_state.judge(iops[end - window : end], self.rule) for end in range(start + window, len(iops) + 1)
        }
        passing = [end for end, state in found.items() if state.reached]
        state = found[passing[-1]] if passing else None
        if state is None or _moved(iops[passing[-1] :], state):
            now = steady_state.judge(iops, self.rule)
            raise TooFew(
                f"{about} did not settle in {self.capacities:.2f} user capacities: its end is {now.describe()}; "
                "saturate for longer"
            )
        other = [end for end in passing if _moved([found[end].average], state)]
        first = next(end for end in passing if not other or end > other[-1]) - window
        settled = mean_of_rounds(_batches(iops[first : passing[-1]]), Unit.IOPS, confidence_level)
        before = points[first - 1] if first else SaturationPoint(0.0, 0.0, 0.0)
        return Settled(before.seconds, before.bytes_written / self.capacity_bytes, settled)

    def response_times(self) -> Measured:
        """The last ``RESPONSE_TIMES_S`` of the steady state, with a round for each sample of the curve.

        The specification continues the writes for that time after the steady state; here they are the last ones of the
        same process, and the time is shorter if the steady state is. ``TooFew`` without a steady state.
        """
        settled, run = self.settle(), self.run
        begin_s, end_s = run.intervals[0].start_s, run.counted[-1].end_s
        length_s = min(RESPONSE_TIMES_S, end_s - begin_s - settled.seconds)
        last = replace(
            run, ramp_s=end_s - length_s, window_s=length_s, rounds=max(1, int((length_s + JITTER_S) / self.sample_s))
        )
        return Measured((last,))

    def members(self) -> tuple[Saturation, ...]:
        """One saturation for each drive side by side; for an array only the saturation itself."""
        runs = self.run.of_members()
        return tuple(replace(self, run=run, capacity_bytes=self.capacity_bytes // len(runs)) for run in runs)

    def raw_files(self) -> tuple[str, ...]:
        return (self.run.raw,)


def _moved(values: Sequence[float], state: steady_state.SteadyState) -> bool:
    """Return whether values have left a steady state: their median is off by more than half the range that the rule
    allows.
    """
    return bool(values) and abs(median(values) - state.average) > state.range_allowed / 2


def _batches(values: Sequence[float]) -> list[float]:
    """Means of at most ``BATCHES`` equal batches; an incomplete batch at the beginning is left out."""
    size = math.ceil(len(values) / BATCHES) or 1
    return [fmean(values[at : at + size]) for at in range(len(values) % size, len(values), size)]


def _written_at(intervals: Sequence[Interval], times: Sequence[float]) -> list[float]:
    """Bytes written until each of ``times`` (rising), as if evenly spread over an interval."""
    written, index, whole = [], 0, 0
    for at in times:
        while index < len(intervals) and intervals[index].end_s <= at:
            whole += intervals[index].write_bytes
            index += 1
        part = 0.0
        if index < len(intervals) and intervals[index].start_s < at:
            part = intervals[index].write_bytes * (at - intervals[index].start_s) / intervals[index].seconds
        written.append(whole + part)
    return written


def _fall(points: Sequence[SaturationPoint], rule: SteadyRule) -> Fall | None:
    """End of the curve's first level; a factor that the rule allows inside a level is not a fall."""
    half = rule.range_percent / 200
    return first_fall([each.iops for each in points], (1 + half) / (1 - half)) if half < 1 else None


def _cut(points: Sequence[SaturationPoint], rule: SteadyRule) -> int | None:
    """Index of the first point beyond the cliff."""
    fall = _fall(points, rule)
    return fall.index if fall and fall.is_clear and fall.is_from_level else None
