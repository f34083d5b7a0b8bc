"""Comparison of runs with the first of them: circumstances, then each figure that both have, judged among all figures.

A comparison reports that figures differ, by how much, and with which confidence. It does not report the cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import ratio as comparison
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, benjamini_yekutieli
from pytest_ssdqual.qual.verdict.ratio import Change
from pytest_ssdqual.report.compare.circumstances import Circumstance, Weight, facts
from pytest_ssdqual.report.compare.compared_run import ComparedFigure, ComparedRun, FigureKey
from pytest_ssdqual.report.evidence.evidence import Finding

#: Variance of a change of the same drives, in units of the variance of one run.
OF_BOTH = 2**0.5


class NotComparable(ValueError):
    """The runs did not measure the same thing; each line of the message is one reason."""


@frozen
class Pair:
    """A figure of the first run and of another run."""

    key: FigureKey
    old: ComparedFigure
    new: ComparedFigure
    change: Change
    #: Serial number, if it is the figure of one of several drives side by side.
    drive: str = ""

    @property
    def paired(self) -> int:
        """Number of drives compared with themselves: all, or none if the figures are compared as they are."""
        return _paired(self.old, self.new)

    @property
    def name(self) -> str:
        """The figure without its claim."""
        return f"{self.key.place}{self.drive and f', {self.drive}'}"


@frozen
class Against:
    """Comparison of a run with the first one."""

    run: ComparedRun
    pairs: tuple[Pair, ...]
    #: Number of figures of both runs that are not compared, by reason.
    left_out: Mapping[str, int]
    #: Number of figures of only one run.
    only_old: int
    only_new: int
    #: Figures of the first run of which nothing is decided: missing, without a ratio, or of a drive that is missing.
    undecided: int
    #: Number of single differences that the procedure of Benjamini and Yekutieli upholds.
    upheld: int
    #: Number of counts (drives of a lot or an inspection, errors) with a verdict in both runs, and of those among them
    #: that passed in the first run and failed in this one. What a verdict decides about a count needs no interval.
    decided: int
    rejected: int

    def count(self, *shown: comparison.ChangeKind) -> int:
        return sum(pair.change.shown in shown for pair in self.pairs)


@frozen
class Comparison:
    """Comparison of several runs with the first one."""

    first: ComparedRun
    others: tuple[Against, ...]
    facts: tuple[Circumstance, ...]
    #: Number of comparisons judged together, without readings.
    judged: int
    #: Standard deviation from run to run in per cent, which the intervals include.
    run_to_run_percent: float

    @property
    def differences(self) -> tuple[Circumstance, ...]:
        return tuple(each for each in self.facts if each.differs)

    @property
    def alike(self) -> tuple[Circumstance, ...]:
        return tuple(each for each in self.facts if not each.differs)


def compare(runs: Sequence[ComparedRun], *, anyway: bool = False, run_to_run_percent: float = 0.0) -> Comparison:
    """Compare each run with the first.

    ``anyway`` compares what ``NotComparable`` would refuse. ValueError with fewer than two runs.
    """
    if len(runs) < 2:
        raise ValueError("a comparison needs at least two runs")
    found = facts(runs)
    forbidden = [_forbids(each, runs) for each in found if each.differs and each.weight is Weight.FORBIDS]
    if forbidden and not anyway:
        raise NotComparable("\n".join(forbidden))
    first, *others = runs
    drafts = [_common(first, other, run_to_run_percent) for other in others]
    figures = [each for compared, _ in drafts for each in compared]
    changes = comparison.changes(
        [partial(_ratio, each.old, each.new, run_to_run_percent) for each in figures],
        [each.old.direction for each in figures],
        BONFERRONI,
    )
    remaining = iter(changes)
    against = tuple(
        _against(
            first,
            other,
            tuple(Pair(each.key, each.old, each.new, next(remaining), each.drive) for each in compared),
            left_out,
        )
        for other, (compared, left_out) in zip(others, drafts, strict=True)
    )
    judged = sum(not each.ratio.is_reading for each in changes)
    return Comparison(first, against, found, judged, run_to_run_percent)


def _forbids(fact: Circumstance, runs: Sequence[ComparedRun]) -> str:
    values = ", ".join(f"{value} in {run.name}" for value, run in zip(fact.values, runs, strict=True))
    return f"the {fact.name} differs: {values}; {fact.meaning}"


@frozen
class _Figures:
    """A figure of both runs, before it is judged."""

    key: FigureKey
    old: ComparedFigure
    new: ComparedFigure
    drive: str = ""

    def each_drive(self) -> Iterator[_Figures]:
        """Yield the figures of the drives that are in both: among many, one that is worse hides in their mean."""
        for serial in sorted(self.old.alone.keys() & self.new.alone.keys()):
            yield _Figures(self.key, self.old.of_drive(serial), self.new.of_drive(serial), serial)


def _common(
    first: ComparedRun, run: ComparedRun, run_to_run_percent: float
) -> tuple[list[_Figures], Mapping[str, int]]:
    """Return the figures of both runs that have a ratio, and the number of the others by reason."""
    wholes = [
        _Figures(key, first.figures[key], run.figures[key]) for key in sorted(first.figures.keys() & run.figures.keys())
    ]
    compared, left_out = [], Counter[str]()
    for figures in (one for whole in wholes for one in (whole, *whole.each_drive())):
        why = _why_not(figures, first, run)
        try:
            _ratio(figures.old, figures.new, run_to_run_percent, 1.0)
        except TooFew:  # a figure of zero has no ratio
            why = why or "one of the figures is not positive"
        except ValueError as error:
            why = why or str(error)
        if why:
            left_out[why] += 1
        else:
            compared.append(figures)
    return compared, left_out


def _against(first: ComparedRun, run: ComparedRun, pairs: tuple[Pair, ...], left_out: Mapping[str, int]) -> Against:
    changes = [pair.change for pair in pairs]
    p_values = [each.p_value for each in changes if each.p_value is not None]
    level = 1 - min((each.ratio.confidence for each in changes), default=1.0)
    judged = sum(not each.ratio.is_reading for each in changes)
    compared = {pair.key for pair in pairs if not pair.drive}
    counted = [(old, new) for key, old in first.figures.items() if (new := run.figures.get(key))]
    decided = [(old.outcome, new.outcome) for old, new in counted if _is_decided(old, new)]
    return Against(
        run=run,
        pairs=pairs,
        left_out=left_out,
        only_old=len(first.figures.keys() - run.figures.keys()),
        only_new=len(run.figures.keys() - first.figures.keys()),
        undecided=sum(_is_undecided(old, run.figures.get(key), key in compared) for key, old in first.figures.items()),
        upheld=sum(benjamini_yekutieli(p_values, level, judged)) if p_values else 0,
        decided=len(decided),
        rejected=decided.count((Finding.PASS, Finding.FAIL)),
    )


def _paired(old: ComparedFigure, new: ComparedFigure) -> int:
    return len(old.drives) if old.drives.keys() == new.drives.keys() else 0


def _is_decided(old: ComparedFigure, new: ComparedFigure) -> bool:
    """Return whether both figures are counts with a verdict."""
    return old.is_counted and new.is_counted and {old.outcome, new.outcome} <= {Finding.PASS, Finding.FAIL}


def _is_undecided(old: ComparedFigure, new: ComparedFigure | None, is_compared: bool) -> bool:
    """Return whether a figure may be worse without being reported as such.

    Two figures of zero are equal, although they have no ratio. A lot of other drives lacks none. Of a count, the
    verdict is compared.
    """
    if new is None:
        return True
    if old.is_counted and old.outcome in (Finding.PASS, Finding.FAIL):
        return not _is_decided(old, new)
    if not is_compared:
        return not old.estimate.value == new.estimate.value <= 0
    return bool(old.drives.keys() & new.drives.keys()) and bool(old.drives.keys() - new.drives.keys())


def _ratio(old: ComparedFigure, new: ComparedFigure, run_to_run_percent: float, share: float) -> Estimate:
    """Return new over old, for a share of the error rate.

    With the same drives in both runs, the spread between drives is no uncertainty of their change.
    """
    if _paired(old, new):
        sure = ConfidenceLevel(min(old.estimate.confidence, new.estimate.confidence), share)
        one = comparison.ratio(new.of_one(share), old.of_one(share))
        found = comparison.paired(new.drives, old.drives, sure, one)
        if not found.is_reading:
            found = comparison.blurred(found, 2 * comparison.resolution(new.estimate.unit))
        return comparison.widened(found, OF_BOTH * run_to_run_percent, share)
    own, other = (comparison.widened(whole(each, share), run_to_run_percent, share) for each in (new, old))
    return comparison.ratio(own, other)


def whole(figure: ComparedFigure, share: float = 1.0) -> Estimate:
    """Return the estimate, of a claim in per cent as a whole; a relative figure is one already."""
    found = figure.at(share)
    return found if figure.percent_of else _shortfall_as_whole(found, figure.direction)


def _shortfall_as_whole(estimate: Estimate, direction: Direction) -> Estimate:
    """Return 100 % plus a percentage that should be near zero, such as a deviation; any other estimate as it is.

    A ratio of two percentages near zero says nothing: 0.006 % and 40 % differ 6,600-fold, 140 % and 100 % by 1.4.
    """
    if estimate.unit is not Unit.PERCENT or direction is not Direction.AT_MOST:
        return estimate
    return replace(estimate, value=100 + estimate.value, low=max(0.0, 100 + estimate.low), high=100 + estimate.high)


def _why_not(figures: _Figures, first: ComparedRun, run: ComparedRun) -> str:
    """Return the reason why a figure of both runs is not compared; else an empty text."""
    old, new = figures.old, figures.new
    if any(
        first.asked.get(each) != run.asked.get(each) for each in figures.key.workloads if _both_asked(each, first, run)
    ):
        return "the workload of this name is defined differently"
    if old.estimate.unit is not new.estimate.unit or old.direction is not new.direction:
        return "the units differ: the limit is relative in one run and absolute in another"
    if old.percent_of != new.percent_of:
        return "the percentages are of different baselines or workloads"
    if old.estimate.basis != new.estimate.basis:
        one, other = (each.estimate.basis or "all that was measured" for each in (old, new))
        return f"the figures have different conditions: {one}, and {other}"
    if bool(old.drives) is not bool(new.drives):
        return "one run measured several drives, another run one"
    return ""


def _both_asked(workload: str, first: ComparedRun, run: ComparedRun) -> bool:
    """Compare definitions of workloads; those of saturations and rebuilds are not recorded, so their ids decide."""
    return workload in first.asked and workload in run.asked
