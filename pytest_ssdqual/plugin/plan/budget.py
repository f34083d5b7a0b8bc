"""Keeps a run to its time budget, ``--ssd-budget``.

What two visits leave undecided is visited again while time is left, and ends undecided then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.plugin.plan.picking import Fitted
from pytest_ssdqual.plugin.plan.step_prices import Prices
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignStep, Preparation, StepKind
from pytest_ssdqual.rig.measure.session import BudgetSpent
from pytest_ssdqual.rig.measure.visits import Enough

#: Kind of the records of steps that were not begun, and of measurements that ended undecided.
SPENT = "budget_spent"


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
            what = step.what if step.kind is StepKind.MEASURED else step.kind
            raise BudgetSpent(f"{what} on {step.geometry} was not measured: {self.fitted.called} leaves it out")
        if step.kind is StepKind.SEARCH and not preparations:
            return  # it has begun, and asks again for each of its probes
        is_visited = self.prices.protocol.visits is not None and step.kind is StepKind.MEASURED
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
