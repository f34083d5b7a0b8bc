"""Drift test: a drive has settled when the last half capacity that it wrote was as fast as the half before.

The clock of an SSD is capacities written, not minutes: uniform random writes settled within 0.4 to
1.3 capacities on every real drive of the recorded series, within 5 to 117 minutes.

A drive passes if two changes are small: that of the rate from one half capacity to the next, and
that from the last quarter but one to the last. The second one is for a drive that falls off its
plateau, undershoots and recovers: somewhere on that way its halves have the same mean. Small is at
most ``drift_percent``, or what the drive's own scatter explains: two standard errors of the change,
but never more than ``MOST_EXCUSED`` times ``drift_percent``. Without that bound a cliff explains
itself; with it a very noisy drive passes a bit later.

The scatter is that of the last half capacity, in stretches of a twentieth of a capacity, about their
trend, with the correlation of neighbours. The half before may contain the end of the approach.

Where that fails, longer volumes are tried: the last 2, 3… capacities in the same two halves. A rhythm
as long as a capacity never passes otherwise. The last half capacity has to be on the level of the
longer volume, or a fall at its end would be diluted.

A plateau that is as long as what was written cannot be told from a settled drive: only volume helps,
so a protocol demands a capacity of uniform writes, and ``SKEWED_CAPACITIES`` of skewed ones.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, linear_regression

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.interval import Interval

#: Stretches of equal volume in the last capacity.
STRETCHES = 20
#: What scatter may explain, and what a drive that has settled may change by later, as multiples of
#: the protocol's ``drift_percent``.
MOST_EXCUSED = 2.0
#: Standard errors of a change that scatter explains.
STANDARD_ERRORS = 2.0
#: Largest correlation of neighbours that is believed: in ten stretches a higher one is a trend.
MOST_CORRELATED = 0.8
#: Capacities before skewed writes may be found settled. Recorded drives under zipf 0.6 to 1.0 were off
#: by more than 5 % in 1 of 20 cases after one or two capacities and a drift test, in none after three
#: (data of SSD-iq, PVLDB 18). Drives with hot spots stay on a plateau for five and more.
SKEWED_CAPACITIES = 3.0
#: Longest step of writes, in capacities: so much may be written in vain after a drive has settled.
#: Sequential writes begin at the first address with each process, so one writes a whole capacity.
RANDOM_STEP, SEQUENTIAL_STEP = 1 / 8, 1.0
#: A step that is to reach a volume is longer by this factor than the last rate needs…
MARGIN = 1.02
#: …and so many steps are one, as a short one behind a long one would cost as much.
LAST_STEPS = 1.5
#: Relative tolerance: "at most 1 %" must not fail in the last bit of a float.
_ROUNDING = 1e-9


@frozen
class DriftTest:
    """Change of one drive's rate during the last volume that it wrote, per cent of the earlier rate."""

    #: From the half before to the last half.
    change_percent: float
    #: From the third quarter to the last one.
    recent_percent: float
    #: What scatter explains of the two, per cent: two standard errors.
    change_explained_percent: float
    recent_explained_percent: float
    settled: bool

    def describe(self) -> str:
        """Return a clause: ``its rate changed by -3.4 % over half a capacity (0.8 % by scatter)``."""
        change, explained, over = self.change_percent, self.change_explained_percent, "half a capacity"
        if abs(change) < abs(self.recent_percent):
            change, explained, over = self.recent_percent, self.recent_explained_percent, "a quarter of a capacity"
        return f"its rate changed by {change:+.1f} % over {over} ({explained:.1f} % by scatter)"


def judge(seconds: Sequence[float], drift_percent: float, *, was_settled: bool = False) -> DriftTest:
    """Judge the last capacity: seconds for each of its ``STRETCHES``, which are of equal volume.

    ``was_settled``: the drive passed before. Noisy drives side by side would hardly ever all pass at
    once, so only a change beyond what scatter may ever explain revokes that.
    """
    if len(seconds) != STRETCHES:
        raise ValueError(f"the drift test needs {STRETCHES} stretches of a capacity, there are {len(seconds)}")
    half, quarter = STRETCHES // 2, STRETCHES // 4
    scatter = _scatter(seconds[half:])
    change = _change(seconds[:half], seconds[half:])
    recent = _change(seconds[half : half + quarter], seconds[half + quarter :])
    explained = STANDARD_ERRORS * scatter * math.sqrt(2 / half)
    recent_explained = STANDARD_ERRORS * scatter * math.sqrt(2 / quarter)
    least, most = drift_percent / 100, MOST_EXCUSED * drift_percent / 100
    pairs = (change, explained), (recent, recent_explained)
    allowed = [most if was_settled else max(least, min(most, each)) for _, each in pairs]
    settled = all(abs(each) <= limit + _ROUNDING for (each, _), limit in zip(pairs, allowed, strict=True))
    return DriftTest(100 * change, 100 * recent, 100 * explained, 100 * recent_explained, settled)


def _change(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the relative change of the rate; stretches are of equal volume, so rates are as 1 / time."""
    return fmean(before) / fmean(after) - 1


def _scatter(seconds: Sequence[float]) -> float:
    """Return the standard deviation of a stretch as a share of the mean, as if stretches were independent.

    A trend is no scatter. Neighbours that are alike make a mean less certain: by the lag-one
    correlation of an autoregressive series, (1 + r) / (1 - r) of the variance.
    """
    count = len(seconds)
    line = linear_regression(range(count), seconds)
    residuals = [each - line.intercept - line.slope * index for index, each in enumerate(seconds)]
    squares = sum(each * each for each in residuals)
    if squares == 0:
        return 0.0
    products = sum(each * following for each, following in pairwise(residuals))
    correlation = max(0.0, min(MOST_CORRELATED, products / squares))
    variance = squares / (count - 2) * (1 + correlation) / (1 - correlation)
    return math.sqrt(variance) / fmean(seconds)


@dataclass(slots=True)
class WrittenSeries:
    """What one drive has written since its conditioning began, in fio's reports."""

    capacity_bytes: int
    #: Sums after each report, from zero on.
    _bytes: list[float] = field(default_factory=lambda: [0.0])
    _seconds: list[float] = field(default_factory=lambda: [0.0])

    def add(self, intervals: Iterable[Interval]) -> None:
        for each in intervals:
            self._bytes.append(self._bytes[-1] + each.write_bytes)
            self._seconds.append(self._seconds[-1] + each.seconds)

    @property
    def written_bytes(self) -> float:
        return self._bytes[-1]

    @property
    def capacities(self) -> float:
        return self.written_bytes / self.capacity_bytes

    def stretches(self, capacities: float = 1.0, count: int = STRETCHES) -> tuple[float, ...]:
        """Return the seconds for each of ``count`` equal parts of the last volume; none before that was written."""
        length = capacities * self.capacity_bytes / count
        first = self.written_bytes - count * length
        if first < -_ROUNDING * self.capacity_bytes:
            return ()
        moments = [self._second_of(first + number * length) for number in range(count)]
        return tuple(end - start for start, end in pairwise([*moments, self._seconds[-1]]))

    def rates(self, capacities: float, count: int) -> tuple[float, ...]:
        """Return the bytes per second of the same parts; 0 for one that took no time, as without reports."""
        length = capacities * self.capacity_bytes / count
        return tuple(length / each if each > 0 else 0.0 for each in self.stretches(capacities, count))

    def drift(self, drift_percent: float, *, was_settled: bool = False) -> DriftTest | None:
        """Return the drift of the shortest volume in which it has settled, or else of the last capacity.

        None before one was written.
        """
        if self.capacities < 1 - _ROUNDING:
            return None
        last = judge(self.stretches(1), drift_percent, was_settled=was_settled)
        if last.settled:
            return last
        for volume in range(2, int(self.capacities + _ROUNDING) + 1):
            drift = judge(self.stretches(volume), drift_percent, was_settled=was_settled)
            if drift.settled and self._ends_on_level(volume, drift_percent):
                return drift
        return last

    def _ends_on_level(self, capacities: float, drift_percent: float) -> bool:
        """Return whether the last half capacity is as fast as a longer volume: else a late fall is diluted by it."""
        (now,), (usual,) = self.rates(0.5, 1), self.rates(capacities, 1)
        return abs(now / usual - 1) <= MOST_EXCUSED * drift_percent / 100 + _ROUNDING

    def _second_of(self, at_byte: float) -> float:
        """Return when a byte was written, as if reports were evenly filled."""
        index = bisect_left(self._bytes, at_byte)
        if index == 0:
            return 0.0
        if index == len(self._bytes):
            return self._seconds[-1]
        before, after = self._bytes[index - 1], self._bytes[index]
        share = (at_byte - before) / (after - before)
        return self._seconds[index - 1] + share * (self._seconds[index] - self._seconds[index - 1])


@dataclass(slots=True)
class Settling:
    """Conditioning of one drive by volume."""

    series: WrittenSeries
    #: Capacities before it may be found settled, and after which it is given up.
    least: float
    most: float
    drift_percent: float
    #: Longest step, in capacities.
    step: float = RANDOM_STEP
    #: None before ``least`` was written.
    drift: DriftTest | None = None
    #: Bytes per second in the latest process.
    pace: float = 0.0

    @property
    def is_settled(self) -> bool:
        return self.drift is not None and self.drift.settled

    @property
    def is_over(self) -> bool:
        """Return whether it has settled or is given up."""
        return self.is_settled or self.series.capacities >= self.most

    def add(self, intervals: Sequence[Interval]) -> None:
        """Add what one process wrote."""
        before_bytes = self.series.written_bytes
        self.series.add(intervals)
        seconds = sum(each.seconds for each in intervals)
        self.pace = (self.series.written_bytes - before_bytes) / seconds if seconds else 0.0
        if self.series.capacities >= self.least:
            self.drift = self.series.drift(self.drift_percent, was_settled=self.is_settled)

    def needed_s(self) -> float:
        """Return the length of the next process for this drive, at its latest rate; 0 if it has settled."""
        if self.is_settled:
            return 0.0
        missing = (self.least if self.drift is None else self.most) - self.series.capacities
        is_short = self.drift is None and missing < LAST_STEPS * self.step
        step = MARGIN * missing if is_short else min(self.step, MARGIN * missing)
        return step * self.series.capacity_bytes / self.pace if self.pace else math.inf

    def rates(self, count: int) -> tuple[float, ...]:
        """Return the bytes per second of ``count`` parts of its last half capacity, or of less if that is all."""
        return self.series.rates(min(0.5, self.series.capacities), count)

    def describe(self) -> str:
        """Return a clause: ``1.2 of 3 capacities written``."""
        written = self.series.capacities
        if self.drift is None:
            return f"{written:.1f} of {self.least:g} capacities written"
        after = f"after {written:.1f} capacities"
        return f"{after} it is steady" if self.is_settled else f"{after} {self.drift.describe()}"
