"""Ratio of two measurements of the same thing at different times, and whether it shows a change.

The interval combines both intervals by the method of variance estimates recovery (Zou & Donner 2008, Statistics in
Medicine 27, 1693-1702) on a logarithmic scale: with r the logarithm of the ratio, and each end of an interval as its
distance from its own figure,

    low  = r - √((new - new's low)² + (old's high - old)²)
    high = r + √((new's high - new)² + (old - old's low)²)

It needs only the two figures and their intervals, which the record of an earlier run has; it accepts asymmetric
intervals and requires independent errors. The resolution of fio's latency buckets is not such an error: it is the same
in every round and run that falls into the bucket. So it is subtracted from each distance first, and both are added to
the root.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from statistics import NormalDist, fmean, stdev

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel, Estimate, TooFew, student_t
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import multiplicity
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl, p_value

#: Resolution of fio's latencies, of logarithms: half a bucket, 1/128 (``qual.measured.histogram``).
BUCKET = -math.log1p(-1 / 128)


class ChangeKind(StrEnum):
    """Result of a comparison."""

    BETTER = "better"
    WORSE = "worse"
    #: Significant alone, but not among this many comparisons (one in twenty is without any difference).
    BETTER_ALONE = "better, alone"
    WORSE_ALONE = "worse, alone"
    #: Single readings of these two runs (such as a longest I/O) differ; that implies nothing about other runs.
    BETTER_READ = "better, as read"
    WORSE_READ = "worse, as read"
    #: No difference shown; the interval bounds how different they may be.
    OPEN = "no difference shown"


@frozen
class Change:
    """One figure compared with an earlier one."""

    #: New over old.
    ratio: Estimate
    shown: ChangeKind
    #: Least 1 - confidence at which the interval would still exclude 1; None for a reading and for ``OPEN``.
    p_value: float | None = None


def ratio(new: Estimate, old: Estimate, unit: Unit = Unit.RATIO) -> Estimate:
    """New over old, as a multiple or with ``Unit.PERCENT`` in per cent; see the module for its interval.

    For a share of the error rate, pass both estimates at that share. Ends of a reading are bounds, not errors that may
    cancel, so with a reading the ends are combined directly. An end that is not above zero leaves the ratio's end open.
    ValueError if the units differ; ``TooFew`` if a figure is not above zero and finite.
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
        high=factor * value * multiplicity.exp(up),
        n=min(new.n, old.n),
        unit=unit,
        is_reading=is_reading,
        confidence=min(new.confidence, old.confidence),
    )


def resolution(unit: Unit) -> float:
    """Possible error of reading a figure in this unit, of logarithms: half a bucket of fio's for latencies, else 0."""
    return BUCKET if unit is Unit.NANOSECONDS else 0.0


def typical(values: Iterable[float], unit: Unit, confidence_level: ConfidenceLevel = USUAL) -> Estimate:
    """Geometric mean of several drives' figures, with Student's interval of their logarithms: the drive is the unit.

    ``TooFew`` below two, or if one is not above zero.
    """
    figures = list(values)
    if len(figures) < 2 or not all(0 < each < math.inf for each in figures):
        raise TooFew(f"a typical drive needs at least 2 figures, all above zero; {len(figures)} were given")
    return _of_logarithms([math.log(each) for each in figures], unit, confidence_level)


def paired(
    new: Mapping[str, float],
    old: Mapping[str, float],
    confidence_level: ConfidenceLevel = USUAL,
    least: Estimate | None = None,
) -> Estimate:
    """New over old for the same drives, by serial number: the geometric mean of each drive's own ratio.

    Differences between drives are not in the interval. It is never narrower than ``least``, the ratio of one drive with
    the interval of its rounds: a few drives may agree by chance or be rounded alike, and a stall of the machine hits
    all drives of a round, so many drives are not as many times the evidence. If ``least`` is a reading, so is the
    result, with its ends. ``TooFew`` below two drives that are in both.
    """
    both = [name for name in new if name in old and new[name] > 0 and old[name] > 0]
    if len(both) < 2:
        raise TooFew(f"a paired comparison needs at least 2 drives, there are {len(both)}")
    found = _of_logarithms([math.log(new[name] / old[name]) for name in both], Unit.RATIO, confidence_level)
    if least is None:
        return found
    if least.is_reading:
        return multiplicity.with_distances(replace(found, is_reading=True), *multiplicity.distances(least))
    return multiplicity.with_distances(found, *map(max, multiplicity.distances(found), multiplicity.distances(least)))


def blurred(estimate: Estimate, by: float) -> Estimate:
    """Widen an interval on both sides by ``by``, of logarithms, for an error that is not random."""
    down, up = multiplicity.distances(estimate)
    return multiplicity.with_distances(estimate, down + by, up + by)


def widened(estimate: Estimate, percent: float, share: float = 1.0) -> Estimate:
    """Widen an interval by the variation from run to run (one standard deviation, per cent), which a single run cannot
    show.

    Added as variances, at the estimate's own confidence and its share of the error rate. A reading is returned
    unchanged.
    """
    if estimate.is_reading or not percent:
        return estimate
    level = ConfidenceLevel(estimate.confidence, share).level()
    more = NormalDist().inv_cdf((1 + level) / 2) * math.log1p(percent / 100)
    return multiplicity.with_distances(estimate, *(math.hypot(each, more) for each in multiplicity.distances(estimate)))


def changes(
    ratios: Sequence[Callable[[float], Estimate]], directions: Sequence[Direction], control: str
) -> tuple[Change, ...]:
    """Classify each comparison; a difference counts only if it survives the correction for their number.

    Each function computes the ratio for a share of the error rate. ``control`` is that of
    ``qual.verdict.multiplicity``: with ``bonferroni`` any false difference at all is as unlikely as in a single
    comparison. Readings are not counted: they have no statistical error.
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
    """1 if the whole interval is above 1, -1 if it is below, 0 if it includes 1."""
    return (found.low > 1) - (found.high < 1)


def _combined(distances: tuple[float, float], read: float, *, is_reading: bool) -> float:
    """Combine two distances: random errors by the root of squares, bounds by their sum."""
    if is_reading:
        return math.fsum(distances)
    return math.hypot(*(max(0.0, each - read) for each in distances)) + 2 * read


def _of_logarithms(values: Sequence[float], unit: Unit, confidence_level: ConfidenceLevel) -> Estimate:
    count, middle = len(values), fmean(values)
    half = student_t(confidence_level.level(), count - 1) * stdev(values) / math.sqrt(count)
    value = math.exp(middle)
    # Rounding of exp and log must not put the figure outside its own interval.
    low, high = min(value, math.exp(middle - half)), max(value, multiplicity.exp(middle + half))
    return Estimate(value, low, high, count, unit, confidence=confidence_level.confidence)
