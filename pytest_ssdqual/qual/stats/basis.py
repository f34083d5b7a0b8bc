"""What an interval is made of: rounds that are independent, or consecutive blocks of one settled stretch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TypeVar

from pytest_ssdqual.qual.measured.look import Look
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats import batch_means
from pytest_ssdqual.qual.stats.batch_means import Bounds
from pytest_ssdqual.qual.stats.estimate import USUAL, Sureness, TooFew, student_t

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Basis:
    """How rounds become an interval."""

    sure: Sureness = USUAL
    #: Of a sequential measurement; None: the rounds are independent of each other.
    look: Look | None = None
    #: Length of the stretch that was cut into blocks; only of a sequential measurement.
    seconds: float = 0.0

    @classmethod
    def of(cls, measured: Measured, sure: Sureness) -> Basis:
        """For means of a measurement: its warm-up is left out. Blocks of repeats follow each other as one stretch."""
        return cls(sure, measured.look, sum(run.window_s for run in measured.runs) if measured.look else 0.0)

    @classmethod
    def whole(cls, measured: Measured, sure: Sureness) -> Basis:
        """For extremes and quantiles: nothing behind the protocol's ramp is left out, or a stall would be cut away."""
        return cls.of(measured, sure).uncut

    @property
    def uncut(self) -> Basis:
        """The same without a warm-up."""
        return replace(self, look=replace(self.look, left_out=0, head=0)) if self.look else self

    @property
    def level(self) -> float:
        """Two-sided confidence of the interval itself; ``sure.confidence`` is what is stated."""
        return self.sure.level(self.look.level if self.look else None)

    def settled(self, rounds: Sequence[T]) -> Sequence[T]:
        """Without the blocks at the head of a look that are warm-up."""
        return rounds[self.look.left_out + self.look.head :] if self.look else rounds

    def bounds(self, numerators: Sequence[float], denominators: Sequence[float]) -> Bounds:
        """Σ numerators / Σ denominators, one of each for every round, with its interval.

        A ratio estimator: a round counts by its denominator. Of independent rounds the standard error is that of the
        residuals k_j - r·n_j, with Student's factor (Cochran 1977, section 6.4). ``TooFew`` below two rounds, or as
        ``blocks.bounds``.
        """
        if self.look:
            return batch_means.bounds(numerators, denominators, self.seconds, self.look, self.level)
        count = len(numerators)
        require_rounds(count)
        if not sum(denominators) > 0:
            raise TooFew("nothing was counted")
        value = math.fsum(numerators) / math.fsum(denominators)
        residuals = [k - value * n for k, n in zip(numerators, denominators, strict=True)]
        error = stdev(residuals) / fmean(denominators) / math.sqrt(count)
        half = student_t(self.level, count - 1) * error
        return Bounds(value, value - half, value + half, error, 0.0)

    def time_each(self, times: Sequence[float], counts: Sequence[float]) -> Bounds:
        """Σ times / Σ counts: how long one of what is counted takes, with its interval.

        Of a look it is the reciprocal of counts per time: what blocks allow for as not yet seen is work lost, which
        makes everything take longer.
        """
        if not self.look:
            return self.bounds(times, counts)
        rate = self.bounds(counts, times)
        if rate.value <= 0:
            raise TooFew("nothing was counted")
        return Bounds(
            value=1 / rate.value,
            low=1 / rate.high,
            high=1 / rate.low if rate.low > 0 else math.inf,
            error=rate.error / rate.value**2,
            drift=-rate.drift / rate.value**2,
        )


#: Of independent rounds, at the usual confidence.
ROUNDS = Basis()


def require_rounds(count: int) -> None:
    """``TooFew`` if so many rounds have no interval."""
    if count < 2:
        raise TooFew(f"an interval needs at least 2 rounds, there are {count}")
