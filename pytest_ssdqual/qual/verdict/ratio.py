"""Two measurements of the same thing at different times: how many times one is the other, and what that shows.

The ratio's interval is made of both intervals by the method of variance estimates recovery (Zou & Donner 2008,
Statistics in Medicine 27, 1693-1702) on a logarithmic scale: with r the logarithm of the ratio, and every end of an
interval as its distance from its own figure,

    low  = r - √((new - new's low)² + (old's high - old)²)
    high = r + √((new's high - new)² + (old - old's low)²)

It needs nothing but the two figures and their intervals, which is all that a record of an earlier run has, takes
intervals that are not symmetric, and holds for independent errors only. What fio's buckets leave open of a latency is
no such error: it is the same in every round and in every run that is read from the same bucket, so it is taken off each
distance first, and both are added to the root.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, stdev

from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import CONFIDENCE, USUAL, ConfidenceLevel, Estimate, TooFew, student_t
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import multiplicity
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl, p_value

#: Within 1/128 of what fio prints lies what it has measured: half a bucket (``qual.measured.histogram``), of
#: logarithms.
BUCKET = -math.log1p(-1 / 128)


class ChangeKind(StrEnum):
    """What a comparison shows."""

    BETTER = "better"
    WORSE = "worse"
    #: It would alone, but among so many comparisons one in twenty does without any difference.
    BETTER_ALONE = "better, alone"
    WORSE_ALONE = "worse, alone"
    #: Of what was read of these very runs, a longest I/O say: true of them, and nothing is known of others.
    BETTER_READ = "better, as read"
    WORSE_READ = "worse, as read"
    #: Which does not say that they are equal: the interval says how different they may be.
    OPEN = "no difference shown"


@dataclass(frozen=True, slots=True)
class Change:
    """One figure held against an earlier one."""

    #: New over old.
    ratio: Estimate
    shown: ChangeKind
    #: The least one-minus-confidence at which the interval would still leave out 1; None of a reading and of ``OPEN``.
    p_value: float | None = None

    @property
    def percent(self) -> float:
        """By how much the new figure is larger; negative if it is smaller."""
        return 100 * (self.ratio.value - 1)


def ratio(new: Estimate, old: Estimate, unit: Unit = Unit.RATIO) -> Estimate:
    """New over old, as its multiple or with ``Unit.PERCENT`` in per cent; see the module.

    For a share of the error rate both have to be given as they are for that share. Ends of a reading are bounds, not
    errors that may cancel: with one the two are combined by their ends. An end that is not above zero leaves the
    ratio's open. ValueError if they differ in unit; ``TooFew`` if one of the figures is not above zero.
    """
    if new.unit is not old.unit or unit not in (Unit.PERCENT, Unit.RATIO):
        raise ValueError(f"no ratio in {unit} of an estimate in {new.unit} to one in {old.unit}")
    if not (new.value > 0 and old.value > 0 and math.isfinite(new.value) and math.isfinite(old.value)):
        raise TooFew(f"{new} and {old} have no ratio")
    is_reading = new.is_reading or old.is_reading
    read = 0.0 if is_reading else resolution(new.unit)
    of_new, of_old = (multiplicity.distances(each) for each in (new, old))
    down, up = (
        _combined(each, read, is_reading=is_reading) for each in ((of_new[0], of_old[1]), (of_new[1], of_old[0]))
    )
    value, factor = new.value / old.value, 100 if unit is Unit.PERCENT else 1
    return Estimate(
        value=factor * value,
        low=factor * value * math.exp(-down),
        high=factor * value * _exp(up),
        n=min(new.n, old.n),
        unit=unit,
        is_reading=is_reading,
        confidence=min(new.confidence, old.confidence),
    )


def resolution(unit: Unit) -> float:
    """How far a figure in this unit may be read wrongly, of logarithms: latencies by half a bucket of fio's."""
    return BUCKET if unit is Unit.NANOSECONDS else 0.0


def typical(values: Iterable[float], unit: Unit, confidence_level: ConfidenceLevel = USUAL) -> Estimate:
    """Geometric mean of several drives' figures, with Student's interval of their logarithms: the drive is the unit.

    ``TooFew`` below two, or if one is not above zero.
    """
    figures = list(values)
    if len(figures) < 2 or not all(0 < each < math.inf for each in figures):
        raise TooFew(f"a typical drive is that of at least 2 with figures above zero, of {len(figures)} given")
    return _of_logarithms([math.log(each) for each in figures], unit, confidence_level)


def paired(
    new: Mapping[str, float],
    old: Mapping[str, float],
    confidence_level: ConfidenceLevel = USUAL,
    least: Estimate | None = None,
) -> Estimate:
    """New over old of the same drives, by serial number: the geometric mean of each drive's own ratio.

    What the drives differ by among each other is not in the interval. It is never narrower than ``least``, the ratio of
    one drive with the interval of its rounds: a few drives may agree by chance or be rounded alike, and what stalls the
    machine in a round stalls all of them, so many drives are not as many times the evidence. If that is a reading, so
    is the ratio, with the ends of ``least``. ``TooFew`` below two drives that are in both.
    """
    both = [name for name in new if name in old and new[name] > 0 and old[name] > 0]
    if len(both) < 2:
        raise TooFew(f"drives are compared in pairs from 2 on, there are {len(both)}")
    found = _of_logarithms([math.log(new[name] / old[name]) for name in both], Unit.RATIO, confidence_level)
    if least is None:
        return found
    if least.is_reading:
        return _with(replace(found, is_reading=True), *multiplicity.distances(least))
    return _with(found, *map(max, multiplicity.distances(found), multiplicity.distances(least)))


def blurred(estimate: Estimate, by: float) -> Estimate:
    """With so much more to either side, of logarithms, that is no matter of chance."""
    down, up = multiplicity.distances(estimate)
    return _with(estimate, down + by, up + by)


def widened(estimate: Estimate, percent: float, share: float = 1.0) -> Estimate:
    """With what figures vary from run to run, in per cent, one standard deviation: no run knows that of itself.

    Added to either side as variances are, at the estimate's own confidence and for the share of the error rate that its
    interval is for; nothing is added to a reading.
    """
    if estimate.is_reading or not percent:
        return estimate
    more = _normal(ConfidenceLevel(estimate.confidence, share).level()) * math.log1p(percent / 100)
    return _with(estimate, *(math.hypot(each, more) for each in multiplicity.distances(estimate)))


def changes(
    ratios: Sequence[Callable[[float], Estimate]], directions: Sequence[Direction], control: str
) -> tuple[Change, ...]:
    """What each comparison shows among all of them: a difference is told as one if it stands up to their number.

    Each gives the ratio for a share of the error rate. ``control`` is that of ``qual.verdict.multiplicity``: with
    ``bonferroni`` any false difference at all is as unlikely as of a single comparison. Readings are not counted: they
    make no statistical error.
    """
    alone = [ratio(1.0) for ratio in ratios]
    family = ErrorControl(max(1, sum(not each.is_reading for each in alone)), control)
    return tuple(
        _change(found, again, direction, family)
        for found, again, direction in zip(alone, ratios, directions, strict=True)
    )


def _change(found: Estimate, again: Callable[[float], Estimate], direction: Direction, family: ErrorControl) -> Change:
    up = _leaves_out(found)
    if not up:
        return Change(found, ChangeKind.OPEN)
    better = (up > 0) is (direction is Direction.AT_LEAST)
    if found.is_reading:
        return Change(found, ChangeKind.BETTER_READ if better else ChangeKind.WORSE_READ)
    p = p_value(lambda share: bool(_leaves_out(again(share))), found.confidence)
    if _leaves_out(again(family.share)):
        return Change(found, ChangeKind.BETTER if better else ChangeKind.WORSE, p)
    return Change(found, ChangeKind.BETTER_ALONE if better else ChangeKind.WORSE_ALONE, p)


def _leaves_out(found: Estimate) -> int:
    """1 if the whole interval is above 1, -1 if it is below, 0 if 1 may be the truth."""
    return 1 if found.low > 1 else -1 if found.high < 1 else 0


def _combined(distances: tuple[float, float], read: float, *, is_reading: bool) -> float:
    """Two errors as one: of chance by the root of squares, bounds by their sum."""
    if is_reading:
        return math.fsum(distances)
    return math.hypot(*(max(0.0, each - read) for each in distances)) + 2 * read


def _with(estimate: Estimate, down: float, up: float) -> Estimate:
    return replace(estimate, low=estimate.value * math.exp(-down), high=estimate.value * _exp(up))


def _of_logarithms(values: Sequence[float], unit: Unit, confidence_level: ConfidenceLevel) -> Estimate:
    count, middle = len(values), fmean(values)
    half = student_t(confidence_level.level(), count - 1) * stdev(values) / math.sqrt(count)
    value = math.exp(middle)
    # Rounding of exp and log must not put the figure outside of its own interval.
    low, high = min(value, math.exp(middle - half)), max(value, _exp(middle + half))
    return Estimate(value, low, high, count, unit, confidence=confidence_level.confidence)


def _normal(confidence: float = CONFIDENCE) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + confidence) / 2)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
