"""Keeps a run to its time budget, ``--ssd-budget``, and picks the measurements that fit into it, by their worth.

What counts is their least cost: two visits of each point. What two visits leave undecided is visited again while time
is left, and ends undecided then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from pytest_ssdqual.plugin.plan.forecast import PricedPlan
from pytest_ssdqual.plugin.plan.step_prices import Prices
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.campaign.campaign_plan import OF_MEMBERS, CampaignPlan, CampaignStep, Preparation, StepKind
from pytest_ssdqual.rig.measure.session import BudgetSpent
from pytest_ssdqual.rig.measure.visits import Enough

#: Kind of the records of steps that were not begun, and of measurements that ended undecided.
SPENT = "budget_spent"
#: Depths that suites judge on arrays: of most widths, and of few.
DEEP, SHALLOW = 8, 1


class Worth(Enum):
    """Groups of measurements, the worthiest first."""

    #: The published figures, on which all other promises rest.
    ANCHORS = "bare drives side by side"
    #: References of the arrays.
    MEMBERS = "members of arrays"
    OUTERMOST = f"QD {DEEP} of the narrowest and the widest array"
    BETWEEN = f"QD {DEEP} of the widths between"
    SHALLOW = f"QD {SHALLOW}"
    OTHERS = "others"


@frozen
class Fitted:
    """What a budget buys."""

    seconds: float
    left_out: tuple[CampaignStep, ...] = ()
    measured: int = 0
    #: Least time of what is measured.
    least_s: float = 0.0
    #: Sentence about the groups of what is left out; empty if nothing is.
    groups: str = ""

    def leaves_out(self, step: CampaignStep) -> bool:
        """Return whether the step is left out; a search is, with all workloads that it probes."""
        if step.kind is not StepKind.SEARCH:
            return step in self.left_out
        searches = (each for each in self.left_out if each.kind is StepKind.SEARCH)
        return any((each.geometry, each.pattern) == (step.geometry, step.pattern) for each in searches)

    def to_record(self) -> dict[str, object]:
        """Return the facts for the journal."""
        return {
            "seconds": self.seconds,
            "least_s": self.least_s,
            "measurements": self.measured,
            "left_out": [str(each) for each in self.left_out],
        }

    @property
    def called(self) -> str:
        """``the budget of 8 h``."""
        return f"the budget of {format_duration(self.seconds)}"

    def lines(self) -> Iterator[str]:
        """Yield what the budget buys, a sentence each."""
        within = f", in {format_duration(round(self.least_s))} at least" if self.measured else ""
        of = self.measured + sum(map(_is_measurement, self.left_out))
        yield f"{self.called}: {self.measured} of {of} measurements{within}"
        if self.groups:
            yield f"left out: {self.groups}; their tests are errors"
        yield "what is undecided when the budget is over ends as inconclusive"


def fit(seconds: float, steps: Sequence[CampaignStep], prices: Prices) -> Fitted:
    """Pick what fits into ``seconds``, group by group; of the others the shortest first.

    An array whose limit rests on its members is left out unless all of them are measured.
    """
    groups = _by_worth(steps)
    kept: list[CampaignStep] = []
    for worth, group in groups.items():
        has_members = set(kept).issuperset(groups[Worth.MEMBERS])
        wanted = [step for step in group if has_members or not _rests_on_members(step, prices.spec)]
        if worth is Worth.OTHERS:
            wanted.sort(key=lambda step: prices.of(step).least.seconds)
        numbers = range(len(wanted) + 1)
        too_many = bisect_left(numbers, True, key=lambda n: _least_s(steps, [*kept, *wanted[:n]], prices) > seconds)
        kept += wanted[: max(0, too_many - 1)]
    picked = set(kept)
    left_out = tuple(step for step in steps if step not in picked)
    return Fitted(
        seconds,
        left_out,
        measured=sum(map(_is_measurement, kept)),
        least_s=_least_s(steps, kept, prices),
        groups=_sentence(groups, set(left_out)),
    )


def _is_measurement(step: CampaignStep) -> bool:
    """Return whether tests judge the step: no array alone, and no reference of arrays."""
    return step.kind not in (StepKind.ARRAY, *OF_MEMBERS)


def _rests_on_members(step: CampaignStep, spec: Spec) -> bool:
    measured = step.measured
    return measured is not None and spec.chained(Claim.STEADY_IOPS, step.geometry, measured) is not None


def least_of(steps: Sequence[CampaignStep], prices: Prices) -> float:
    """Return the seconds of the smallest budget by which a measurement can be made; an array needs its references."""
    members = [step for step in steps if step.kind in OF_MEMBERS]
    measured = [step for step in steps if _is_measurement(step)] or steps
    return min(
        _least_s(steps, [step] if step.geometry.is_side_by_side else [*members, step], prices) for step in measured
    )


def _least_s(steps: Sequence[CampaignStep], kept: Iterable[CampaignStep], prices: Prices) -> float:
    """Return the least time of the ``kept`` ones of the plan's steps."""
    wanted = set(kept)
    plan = CampaignPlan.of([step for step in steps if step in wanted], prices.protocol)
    return PricedPlan.of(plan, prices).seconds


def _sentence(groups: Mapping[Worth, Sequence[CampaignStep]], left_out: Container[CampaignStep]) -> str:
    """Return ``8 of QD 1, 2 of others``."""
    counts = {worth: sum(step in left_out for step in group) for worth, group in groups.items()}
    return ", ".join(f"{count} of {worth.value}" for worth, count in counts.items() if count)


def _by_worth(steps: Sequence[CampaignStep]) -> dict[Worth, list[CampaignStep]]:
    """Return the steps by their groups, the worthiest group first."""
    widths: dict[RaidLevel, list[int]] = {}
    for step in steps:
        if _array_depth(step):
            widths.setdefault(step.geometry.level, []).append(step.geometry.width)
    groups: dict[Worth, list[CampaignStep]] = {worth: [] for worth in Worth}
    for step in steps:
        groups[_worth(step, widths.get(step.geometry.level, ()))].append(step)
    return groups


def _worth(step: CampaignStep, widths: Sequence[int]) -> Worth:
    """Return the group of a step; ``widths`` are those of the whole arrays of its level."""
    if step.kind in OF_MEMBERS:
        return Worth.MEMBERS
    if step.measured and step.geometry.is_side_by_side:
        return Worth.ANCHORS
    depth = _array_depth(step)
    if depth == DEEP:
        is_outermost = step.geometry.width in (min(widths), max(widths))
        return Worth.OUTERMOST if is_outermost else Worth.BETWEEN
    return Worth.SHALLOW if depth == SHALLOW else Worth.OTHERS


def _array_depth(step: CampaignStep) -> int:
    """Return the queue depth per drive of random I/O on a whole array; 0 for other steps."""
    geometry, measured = step.geometry, step.measured
    is_on_array = measured is not None and measured.is_random and not geometry.is_side_by_side
    return measured.qd_per_drive if measured and is_on_array and not geometry.missing else 0


def note_nothing(kind: str, **facts: object) -> None:
    """Record nothing."""


@dataclass(slots=True)
class KeptBudget:
    """A run that keeps to its budget; the time of earlier sessions counts."""

    fitted: Fitted
    prices: Prices
    clock: Callable[[], float]
    #: Time by ``clock`` at which the budget is over.
    over_s: float
    #: Names of the measurements that ended before they were decided, also in earlier sessions.
    ended: set[str] = field(default_factory=set)
    #: Writes a record to the journal.
    note: Callable[..., None] = note_nothing

    def left_s(self) -> float:
        """Return the seconds until the budget is over."""
        return self.over_s - self.clock()

    def require(self, step: CampaignStep, preparations: Sequence[Preparation]) -> None:
        """Raise ``BudgetSpent`` if the step is left out, or would end late if it began now."""
        if self.fitted.leaves_out(step):
            what = step.measured or step.kind
            raise BudgetSpent(f"{what} on {step.geometry} was not measured: {self.fitted.called} leaves it out")
        if step.kind is StepKind.SEARCH and not preparations:
            return  # it has begun, and asks again for each of its probes
        is_visited = self.prices.protocol.visits is not None and step.measured is not None
        # An experiment asks itself, before each visit.
        todo = preparations if is_visited else (*preparations, step)
        needed_s = sum(self.prices.of(each).least.seconds for each in todo)
        if needed_s > self.left_s():
            needed, left = (format_duration(max(0, round(each))) for each in (needed_s, self.left_s()))
            sentence = f"{step} was not begun: it takes {needed}, and {left} remain of {self.fitted.called}"
            self.note(SPENT, step=str(step), sentence=sentence, begun=False)
            raise BudgetSpent(sentence)

    def until_spent(self, enough: Enough) -> Enough:
        """Return the stopping rule; what has its last look early because of the budget is noted."""

        def decide(measured: Measured, others: Sequence[Measured]) -> Decision:
            decision = enough(measured, others)
            if decision or not self._ends(measured):
                return decision
            sentence = f"{self.fitted.called} ended it"
            step = f"{measured.geometry} {measured.workload}"
            self.ended.add(step)
            self.note(SPENT, step=step, sentence=sentence, begun=True)
            return Decision(done=False, sentence=f"{decision.sentence}: {sentence}")

        return decide

    def _ends(self, measured: Measured) -> bool:
        """Return whether this is the last look although the protocol has more visits."""
        rule, visited = self.prices.protocol.visits, measured.visited
        if rule is None or visited is None or not visited.is_last:
            return False
        return visited.visits + bool(visited.left_out) < len(rule.cells)

    def why(self, judged: Judgeable) -> str:
        """Return why what is judged may be undecided; empty if all its measurements ended by themselves."""
        subject = judged.subject
        names = (f"{geometry} {workload}" for geometry in subject.geometries for workload in subject.workloads)
        ended = [name for name in names if name in self.ended]
        return f"{self.fitted.called} ended the measurement of {', '.join(ended)}" if ended else ""
