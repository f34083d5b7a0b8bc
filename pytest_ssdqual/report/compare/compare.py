"""Comparison of runs with the first of them: circumstances, then each figure that both have, judged among all figures.

A comparison reports that figures differ, by how much, and with which confidence. It does not report the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import ratio as comparison
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, benjamini_yekutieli
from pytest_ssdqual.qual.verdict.ratio import Change
from pytest_ssdqual.report.compare.circumstances import Circumstance, Weight, facts
from pytest_ssdqual.report.compare.compared_run import ComparedFigure, ComparedRun, FigureKey
from pytest_ssdqual.report.evidence.evidence import Finding

__all__ = [
    "Circumstance",
    "ComparedFigure",
    "ComparedRun",
    "Comparison",
    "FigureKey",
    "NotComparable",
    "Pair",
    "Weight",
    "compare",
    "facts",
    "whole",
]

#: Variance of a change of the same drives, in units of the variance of one run.
OF_BOTH = 2**0.5


class NotComparable(ValueError):
    """The runs did not measure the same thing; each line of the message is one reason."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of the first run and of another run."""

    key: FigureKey
    direction: Direction
    old: ComparedFigure
    new: ComparedFigure
    change: Change
    #: Number of drives compared with themselves; 0 if the figures are compared as they are.
    paired: int = 0
    #: Serial number, if it is the figure of one of several drives side by side.
    drive: str = ""


@dataclass(frozen=True, slots=True)
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
    decided: int = 0
    rejected: int = 0

    def count(self, *shown: comparison.ChangeKind) -> int:
        return sum(pair.change.shown in shown for pair in self.pairs)


@dataclass(frozen=True, slots=True)
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


def compare(
    runs: Sequence[ComparedRun], *, anyway: bool = False, run_to_run_percent: float = 0.0, control: str = BONFERRONI
) -> Comparison:
    """Compare each run with the first.

    ``anyway`` compares what ``NotComparable`` would refuse. ``control`` is that of ``qual.verdict.multiplicity``, over
    all comparisons together. ValueError with fewer than two runs.
    """
    if len(runs) < 2:
        raise ValueError("a comparison needs at least two runs")
    found = facts(runs)
    forbidden = [_forbids(each, runs) for each in found if each.differs and each.weight is Weight.FORBIDS]
    if forbidden and not anyway:
        raise NotComparable("\n".join(forbidden))
    first, *others = runs
    drafts = [_Draft.of(first, other, run_to_run_percent) for other in others]
    changes = comparison.changes(
        [ratio for draft in drafts for ratio in draft.ratios],
        [figures.old.direction for draft in drafts for figures in draft.compared],
        control,
    )
    judged_figures, at = [], 0
    for draft in drafts:
        judged_figures.append(draft.judged(first, changes[at : at + len(draft.compared)]))
        at += len(draft.compared)
    judged = sum(not each.ratio.is_reading for each in changes)
    return Comparison(first, tuple(judged_figures), found, judged, run_to_run_percent)


def _forbids(fact: Circumstance, runs: Sequence[ComparedRun]) -> str:
    values = ", ".join(f"{value} in {run.name}" for value, run in zip(fact.values, runs, strict=True))
    return f"the {fact.name} differs: {values}; {fact.meaning}"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class _Draft:
    """Ratios of one run to the first, before error control over all of them."""

    run: ComparedRun
    compared: tuple[_Figures, ...]
    ratios: tuple[Callable[[float], Estimate], ...]
    left_out: Mapping[str, int]

    @classmethod
    def of(cls, first: ComparedRun, run: ComparedRun, run_to_run_percent: float) -> _Draft:
        wholes = [
            _Figures(key, first.figures[key], run.figures[key])
            for key in sorted(first.figures.keys() & run.figures.keys())
        ]
        compared, ratios, left_out = [], [], dict[str, int]()
        for figures in (one for whole in wholes for one in (whole, *whole.each_drive())):
            why = _why_not(figures, first, run)
            again = partial(_ratio, figures.old, figures.new, run_to_run_percent)
            try:
                again(1.0)
            except ValueError as error:
                # A figure of zero has no ratio.
                why = why or ("one of the figures is not positive" if isinstance(error, TooFew) else str(error))
            if why:
                left_out[why] = left_out.get(why, 0) + 1
                continue
            compared.append(figures)
            ratios.append(again)
        return cls(run, tuple(compared), tuple(ratios), left_out)

    def judged(self, first: ComparedRun, changes: Sequence[Change]) -> Against:
        pairs = tuple(
            Pair(each.key, each.old.direction, each.old, each.new, change, _pairs(each.old, each.new), each.drive)
            for each, change in zip(self.compared, changes, strict=True)
        )
        p_values = [each.p_value for each in changes if each.p_value is not None]
        level = 1 - min((each.ratio.confidence for each in changes), default=1.0)
        judged = sum(not each.ratio.is_reading for each in changes)
        compared = {each.key for each in self.compared if not each.drive}
        counted = [(old, new) for key, old in first.figures.items() if (new := self.run.figures.get(key))]
        decided = [(old.outcome, new.outcome) for old, new in counted if _is_decided(old, new)]
        return Against(
            run=self.run,
            pairs=pairs,
            left_out=self.left_out,
            only_old=len(first.figures.keys() - self.run.figures.keys()),
            only_new=len(self.run.figures.keys() - first.figures.keys()),
            undecided=sum(
                _is_undecided(old, self.run.figures.get(key), key in compared) for key, old in first.figures.items()
            ),
            upheld=sum(benjamini_yekutieli(p_values, level, judged)) if p_values else 0,
            decided=len(decided),
            rejected=decided.count((Finding.PASS, Finding.FAIL)),
        )


def _pairs(old: ComparedFigure, new: ComparedFigure) -> int:
    """Return the number of drives that are compared with themselves: all, or none."""
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
    if _pairs(old, new):
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
