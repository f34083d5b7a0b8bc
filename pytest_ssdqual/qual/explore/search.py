"""What a search for a workload that breaks a promise has found: every workload it measured, and its conclusion. Pure.

A search looks many times, so something looks broken by chance sooner or later. Therefore the looks accuse nobody: they
only choose a suspect, and the verdict is that of a second measurement, which no look has seen. Its error rate is that
of any other verdict, however many looks there were; a few suspects may be tried, and share it out among them
(Bonferroni over ``ExploreRule.confirmations``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.qual.explore.dimensions import Budget, Space
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, worst
from pytest_ssdqual.qual.workload.workload import Workload


class ProbedFigures(StrEnum):
    """What one short measurement looks like."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "undecided"
    #: It did not become steady, is not valid, or was refused: nothing is known.
    UNMEASURABLE = "unmeasurable"


@dataclass(frozen=True, slots=True)
class Probed:
    """One workload of a search."""

    workload: Workload
    #: Of the drives' time.
    seconds: float
    #: On every promise about it, of each drive side by side.
    verdicts: tuple[Verdict, ...] = ()
    #: Promises of which it says nothing (too few I/Os for a quantile), or why it could not be measured.
    trouble: tuple[str, ...] = ()

    @property
    def look(self) -> ProbedFigures:
        outcomes = {each.outcome for each in self.verdicts}
        if Outcome.FAIL in outcomes:
            return ProbedFigures.BROKEN
        if not outcomes:
            return ProbedFigures.UNMEASURABLE
        return ProbedFigures.UNDECIDED if Outcome.INCONCLUSIVE in outcomes or self.trouble else ProbedFigures.KEPT

    @property
    def told(self) -> Verdict | None:
        """The worst verdict."""
        return worst(self.verdicts) if self.verdicts else None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A workload that looked broken, made as simple as it gets, and what its second measurement said."""

    workload: Workload
    #: What looked broken: of one drive, where there are several side by side.
    seen: Verdict
    #: Whether every simpler workload next to it was measured and is not broken, in this run or in that which found it.
    is_simplest: bool
    #: An earlier run has found it.
    is_known: bool = False
    #: Of the second measurement, and on the same promise: all drives', and that of the same drive.
    measured: Measured | None = None
    verdicts: tuple[Verdict, ...] = ()
    verdict: Verdict | None = None
    #: Why there is none.
    trouble: str = ""

    @property
    def is_confirmed(self) -> bool:
        return self.verdict is not None and self.verdict.outcome is Outcome.FAIL

    @property
    def is_cleared(self) -> bool:
        return self.verdict is not None and self.verdict.outcome is Outcome.PASS


@dataclass(frozen=True, slots=True, repr=False)
class WorkloadSearch:
    """A search that has ended. True when it found nothing: then all that it looked at is kept, and nothing more."""

    space: Space
    geometry: Geometry
    #: Whose promises they are.
    spec: str
    budget: Budget
    #: Spent on looks; second measurements are beyond the budget.
    seconds: float
    confirming_s: float
    probed: tuple[Probed, ...]
    suspects: tuple[Suspect, ...] = ()
    #: Whether it ended because nothing more was allowed.
    is_cut: bool = False

    def __bool__(self) -> bool:
        return bool(self.counts[ProbedFigures.KEPT]) and not self.counts[ProbedFigures.BROKEN]

    def __repr__(self) -> str:
        return self.sentence()

    @property
    def outcome(self) -> Outcome:
        if self.confirmed:
            return Outcome.FAIL
        return Outcome.PASS if self else Outcome.INCONCLUSIVE

    @property
    def kind(self) -> str:
        return "random" if self.space.plain.is_random else "sequential"

    @property
    def counts(self) -> Counter[ProbedFigures]:
        """By look; what was cleared by its second measurement is kept."""
        cleared = {each.workload for each in self.suspects if each.is_cleared}
        return Counter(ProbedFigures.KEPT if each.workload in cleared else each.look for each in self.probed)

    @property
    def confirmed(self) -> Suspect | None:
        return next((each for each in self.suspects if each.is_confirmed), None)

    @property
    def open(self) -> tuple[Suspect, ...]:
        """Suspects whose second measurement says neither."""
        return tuple(each for each in self.suspects if not each.is_confirmed and not each.is_cleared)

    @property
    def untried(self) -> int:
        """How many more look broken, after as many second measurements as are allowed."""
        tried = {each.workload for each in self.suspects}
        return sum(each.look is ProbedFigures.BROKEN and each.workload not in tried for each in self.probed)

    @property
    def narrowest(self) -> Verdict | None:
        """Of what is kept, the verdict with the least margin."""
        found = [each for probed in self.probed for each in probed.verdicts if each.outcome is Outcome.PASS]
        return min(found, key=lambda each: each.margin_percent, default=None)

    def sentence(self) -> str:
        """How much was searched, and what came of it."""
        counts, cut = self.counts, "used up" if self.is_cut else "not used up"
        workloads = f"{len(self.probed)} {self.kind} workload{'' if len(self.probed) == 1 else 's'}"
        spent, budget = (format_duration(each) for each in (self.seconds, self.budget.seconds))
        searched = f"searched {workloads} on {self.geometry} in {spent} (budget of {budget}, {cut})"
        more = [
            f"{counts[look]} {what}"
            for look, what in (
                (ProbedFigures.UNDECIDED, "undecided"),
                (ProbedFigures.UNMEASURABLE, "could not be measured"),
            )
            if counts[look]
        ]
        rest = f"; {', '.join(more)}" if more else ""
        if self.confirmed:
            return f"{searched}: {self.confirmed.workload} breaks a promise of {self.spec}{rest}"
        if self.open:
            return f"{searched}: {self.open[0].workload} may break a promise of {self.spec}{rest}"
        if self.untried:
            tried = len(self.suspects)
            did = "that looked so did not when it was" if tried == 1 else "that looked so did not when they were"
            may = f"{self.untried} may break a promise of {self.spec}"
            return f"{searched}: {may}, but {tried} {did} measured anew, and no more are tried{rest}"
        return f"{searched}: none broke a promise of {self.spec}{rest}"

    def remarks(self) -> tuple[str, ...]:
        """What else there is to know, a sentence each."""
        said = [_about(each, self.space) for each in self.suspects]
        said += [f"could not be measured: {each.trouble[0]}" for each in self._unmeasurable()[:MOST_TOLD]]
        if (more := len(self._unmeasurable()) - MOST_TOLD) > 0:
            said.append(f"{more} more could not be measured, see the record")
        return tuple(said)

    def _unmeasurable(self) -> Sequence[Probed]:
        return [each for each in self.probed if each.look is ProbedFigures.UNMEASURABLE and each.trouble]


#: Workloads named in a summary, of each kind.
MOST_TOLD = 3


def because(search: WorkloadSearch, suspect: Suspect, job_file: str) -> str:
    """How a broken promise was found, for its sentence."""
    simplest = "the simplest" if suspect.is_simplest else "the simplest so far"
    broken = search.counts[ProbedFigures.BROKEN]
    found = f"{simplest} of {broken} broken among {len(search.probed)} {search.kind} workloads searched"
    where = "known from an earlier run" if suspect.is_known else found
    return f"{where}, and broken again when measured anew; by hand: fio {job_file}"


def _about(suspect: Suspect, space: Space) -> str:
    departures = ", ".join(space.departures(suspect.workload)) or "none, it is the plainest of all"
    found = f"{suspect.workload} looked broken ({suspect.seen!r})"
    if suspect.is_confirmed:
        proven = (
            "each of them is needed, and so is its amount: whatever is simpler by one was measured and is not broken"
            if suspect.is_simplest
            else "the budget ended before it was known whether each of them is needed"
        )
        return f"{suspect.workload} departs from {space.plain} by {departures}; {proven}"
    if suspect.is_cleared:
        return f"{found} and was kept when measured anew: one look among many, which accuses nobody"
    why = suspect.trouble or ("it was not measured anew" if suspect.verdict is None else repr(suspect.verdict))
    return f"{found}, and its second measurement does not tell: {why}"
