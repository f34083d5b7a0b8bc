"""Two measurements of the same thing at different times: how many times one is the other, and what that shows.

The ratio's interval is made of both intervals by the method of variance estimates recovery (Zou & Donner 2008,
Statistics in Medicine 27, 1693-1702) on a logarithmic scale: with r the logarithm of the ratio, and every end of an
interval as its distance from its own figure,

    low  = r - √((new - new's low)² + (old's high - old)²)
    high = r + √((new's high - new)² + (old - old's low)²)

It needs nothing but the two figures and their intervals, which is all that a record of an earlier run has, takes
intervals that are not symmetric, and holds for independent errors only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from statistics import fmean, stdev

from pytest_ssdqual.qual.claim import Direction
from pytest_ssdqual.qual.estimate import CONFIDENCE, USUAL, Estimate, Sureness, TooFew, student_t
from pytest_ssdqual.qual.family import Family, p_value
from pytest_ssdqual.qual.units import Unit


class Shown(StrEnum):
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
    shown: Shown
    #: The least one-minus-confidence at which the interval would still leave out 1; None of a reading and of ``OPEN``.
    p_value: float | None = None

    @property
    def percent(self) -> float:
        """By how much the new figure is larger; negative if it is smaller."""
        return 100 * (self.ratio.value - 1)


def ratio(new: Estimate, old: Estimate, share: float = 1.0, unit: Unit = Unit.RATIO) -> Estimate:
    """New over old, as its multiple or with ``Unit.PERCENT`` in per cent; see the module.

    Only ``share`` of the error rate may be spent on it: then both intervals are widened as Student's t does for one
    degree of freedom less than they have observations. Ends of a reading are bounds, not errors that may cancel: with
    one the two are combined by their ends. An end that is not above zero leaves the ratio's open. ValueError if they
    differ in unit; ``TooFew`` if one of the figures is not above zero.
    """
    if new.unit is not old.unit or unit not in (Unit.PERCENT, Unit.RATIO):
        raise ValueError(f"no ratio in {unit} of an estimate in {new.unit} to one in {old.unit}")
    if not (new.value > 0 and old.value > 0 and math.isfinite(new.value) and math.isfinite(old.value)):
        raise TooFew(f"{new} and {old} have no ratio")
    is_reading = new.is_reading or old.is_reading
    of_new, of_old = (_distances(each, share) for each in (new, old))
    add = math.fsum if is_reading else _root_of_squares
    down, up = add((of_new[0], of_old[1])), add((of_new[1], of_old[0]))
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


def typical(values: Iterable[float], unit: Unit, sure: Sureness = USUAL) -> Estimate:
    """Geometric mean of several drives' figures, with Student's interval of their logarithms: the drive is the unit.

    ``TooFew`` below two, or if one is not above zero.
    """
    figures = list(values)
    if len(figures) < 2 or not all(0 < each < math.inf for each in figures):
        raise TooFew(f"a typical drive is that of at least 2 with figures above zero, of {len(figures)} given")
    return _of_logarithms([math.log(each) for each in figures], unit, sure)


def paired(new: Mapping[str, float], old: Mapping[str, float], sure: Sureness = USUAL) -> Estimate:
    """New over old of the same drives, by serial number: the geometric mean of each drive's own ratio.

    What the drives differ by among each other is not in the interval. ``TooFew`` below two drives that are in both.
    """
    both = [name for name in new if name in old and new[name] > 0 and old[name] > 0]
    if len(both) < 2:
        raise TooFew(f"drives are compared in pairs from 2 on, there are {len(both)}")
    return _of_logarithms([math.log(new[name] / old[name]) for name in both], Unit.RATIO, sure)


def widened(estimate: Estimate, percent: float) -> Estimate:
    """With what figures vary from run to run, in per cent, one standard deviation: no run knows that of itself.

    Added to either side as variances are, at the estimate's own confidence; nothing is added to a reading.
    """
    if estimate.is_reading or not percent:
        return estimate
    more = _normal(estimate.confidence) * math.log1p(percent / 100)
    down, up = (_root_of_squares((each, more)) for each in _distances(estimate))
    return replace(estimate, low=estimate.value * math.exp(-down), high=estimate.value * _exp(up))


def changes(ratios: Sequence[Estimate], directions: Sequence[Direction], control: str) -> tuple[Change, ...]:
    """What each comparison shows among all of them: a difference is told as one if it stands up to their number.

    ``control`` is that of ``qual.family``: with ``bonferroni`` any false difference at all is as unlikely as of a
    single comparison. Readings are not counted: they make no statistical error.
    """
    count = sum(not each.is_reading for each in ratios)
    family = Family(max(1, count), control)
    return tuple(_change(*each, family) for each in zip(ratios, directions, strict=True))


def _change(found: Estimate, direction: Direction, family: Family) -> Change:
    up = _leaves_out(found, 1.0)
    if not up:
        return Change(found, Shown.OPEN)
    better = (up > 0) is (direction is Direction.AT_LEAST)
    if found.is_reading:
        return Change(found, Shown.BETTER_READ if better else Shown.WORSE_READ)
    is_left_out = partial(_leaves_out, found)
    p = p_value(lambda share: bool(is_left_out(share)), found.confidence)
    if is_left_out(family.share):
        return Change(found, Shown.BETTER if better else Shown.WORSE, p)
    return Change(found, Shown.BETTER_ALONE if better else Shown.WORSE_ALONE, p)


def _leaves_out(found: Estimate, share: float) -> int:
    """1 if the whole interval is above 1, -1 if it is below, 0 if 1 may be the truth."""
    down, up = _distances(found, share)
    middle = math.log(found.value)
    return 1 if middle - down > 0 else -1 if middle + up < 0 else 0


def _distances(estimate: Estimate, share: float = 1.0) -> tuple[float, float]:
    """From the figure to its ends, of logarithms; infinite if an end is not above zero, or unbounded."""
    factor = 1.0 if estimate.is_reading else _stretch(estimate.confidence, estimate.n, share)
    down = math.log(estimate.value / estimate.low) if estimate.low > 0 else math.inf
    up = math.log(estimate.high / estimate.value) if math.isfinite(estimate.high) else math.inf
    return factor * down, factor * up


def _stretch(confidence: float, n: int, share: float) -> float:
    """How many times wider Student's interval is if only a share of its error rate may be spent."""
    if share == 1:
        return 1.0
    degrees = max(1, n - 1)
    wide = student_t(Sureness(confidence, share).level(), degrees)
    return wide / student_t(confidence, degrees)


def _of_logarithms(values: Sequence[float], unit: Unit, sure: Sureness) -> Estimate:
    count, middle = len(values), fmean(values)
    half = student_t(sure.level(), count - 1) * stdev(values) / math.sqrt(count)
    value = math.exp(middle)
    # Rounding of exp and log must not put the figure outside of its own interval.
    low, high = min(value, math.exp(middle - half)), max(value, _exp(middle + half))
    return Estimate(value, low, high, count, unit, confidence=sure.confidence)


def _normal(confidence: float = CONFIDENCE) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + confidence) / 2)


def _root_of_squares(values: Iterable[float]) -> float:
    return math.hypot(*values)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
