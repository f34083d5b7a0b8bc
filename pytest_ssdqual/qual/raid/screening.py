"""Predict, then confirm: which points of a sweep are measured, and what their agreement says about the others.

A point is one workload on one array; a sweep is all points of a level. The members' curves predict every point. The
points with the smallest predicted margins and a random sample are measured. If all of them agree with their predictions
within a tolerance, the sample bounds the number of other points that do not: it was drawn without replacement before
anything was measured, so the number of disagreeing points in it is hypergeometric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeVar

from pytest_ssdqual.qual.lots import sampling_plan
from pytest_ssdqual.qual.lots.sampling_plan import ByAttributes
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.estimate import Estimate, format_confidence
from pytest_ssdqual.qual.workload.workload import Workload

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Agreement:
    """The measured points of a sweep, all in agreement with their predictions, and the points accepted by that."""

    #: Level and state: ``raid5``, ``raid5-1failed``.
    sweep: str
    #: Points that the sample was drawn from.
    drawn_from: int
    sampled: int
    #: All measured points that have a prediction, those of the sample included.
    measured: int
    #: Points that were not measured.
    screened: int
    tolerance_percent: float
    #: Of the bound on the points that disagree, one-sided.
    confidence: float

    @property
    def most_outside(self) -> int:
        """Upper bound of the number of points outside the tolerance; they are among the screened ones."""
        return min(self.screened, most_outside(self.drawn_from, self.sampled, self.confidence))

    def __str__(self) -> str:
        """Sentence without a full stop, which follows that of a verdict."""
        return f"screened: predicted, not measured; {self.evidence}"

    @property
    def evidence(self) -> str:
        """What was measured, and what follows for the other points."""
        of = self.measured + self.screened
        return (
            f"{self.measured} of {of} points of {self.sweep} were measured and "
            f"agree with their predictions within {self.tolerance_percent:g} %, {self.sampled} of them drawn at random "
            f"from {self.drawn_from}, so at {format_confidence(self.confidence)} at most {self.most_outside} of the "
            f"other {self.screened} lie outside"
        )


def most_outside(points: int, sampled: int, confidence: float) -> int:
    """Upper confidence bound of the points outside the tolerance, of ``points``, if all of a sample are inside.

    The largest number D of which a sample would have none with more than 1 - ``confidence``; hypergeometric, one-sided.
    ValueError unless 1 <= sampled <= points.
    """
    plan = ByAttributes(sampled, 0, "screening", points)
    return round(points * plan.limiting_quality(1 - confidence)) - 1


def sample_size(points: int, outside_percent: float, confidence: float) -> int:
    """Smallest sample whose agreement shows that less than ``outside_percent`` of the points lie outside."""
    return sampling_plan.for_limiting_quality(outside_percent, points, risk=1 - confidence).sample if points else 0


def sample(points: Mapping[P, str], size: int, seed: str) -> tuple[P, ...]:
    """Draw ``size`` of the points without replacement; ``points`` has the name of each.

    Each point has a random rank by seed and name, and those with the first ranks are drawn. So the same seed draws
    nearly the same points if a resumed run selects a few tests more or fewer.
    """
    ranked = sorted(points, key=lambda each: sha256(f"{seed} {points[each]}".encode()).digest())
    return tuple(ranked[:size])


def smallest(margins: Mapping[P, float], count: int) -> tuple[P, ...]:
    """Return the points with the smallest margins, at most ``count``; equal ones in their order."""
    return tuple(sorted(margins, key=margins.__getitem__)[:count])


def extremes(predicted: Mapping[tuple[Geometry, Workload], float]) -> tuple[tuple[Geometry, Workload], ...]:
    """Return of each mix the point with the most IOPS and the one with the shortest latency, by predicted IOPS.

    What slows an array down and not its bare drives is a rate (of md, a CPU, a shared path) or a delay of each I/O. A
    rate binds first where IOPS are highest, a delay where latency is shortest. A random sample misses such a point
    most of the time.
    """
    groups: dict[Workload, list[tuple[Geometry, Workload]]] = {}
    for point in predicted:
        groups.setdefault(point[1].at(1), []).append(point)
    found: dict[tuple[Geometry, Workload], None] = {}
    for points in groups.values():
        found[max(points, key=predicted.__getitem__)] = None
        found[min(points, key=lambda each: each[1].outstanding(each[0].width) / predicted[each])] = None
    return tuple(found)


def agrees(measured: Estimate, predicted: Estimate, tolerance_percent: float) -> bool | None:
    """Return whether a measurement agrees with its prediction; None while its interval contains a tolerance limit.

    The whole interval of the measurement has to be within the tolerance around the predicted value.
    """
    part = tolerance_percent / 100
    least, most = predicted.value * (1 - part), predicted.value * (1 + part)
    if measured.high < least or measured.low > most:
        return False
    return True if least <= measured.low and measured.high <= most else None


def with_tolerance(predicted: Estimate, tolerance_percent: float) -> Estimate:
    """Return a predicted figure with the interval that a screened verdict is judged by.

    The ends carry the error of the members' curves, that of the simulation, and the tolerance of the agreement.
    """
    part = tolerance_percent / 100
    low, high = predicted.low * (1 - part), predicted.high * (1 + part)
    return replace(predicted, low=low, high=high, is_predicted=True)
