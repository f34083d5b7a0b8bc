"""Findings of a workload search: every probe, the suspects, and the conclusion.

A search takes many probes, so one of them looks broken by chance sooner or later. Therefore a probe only chooses a
suspect, and the verdict is that of a second, independent measurement. Its error rate is that of any other verdict,
whatever the number of probes; a few suspects may be tried, and share the error rate (Bonferroni over
``ExploreRule.confirmations``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.qual.explore.dimensions import Budget, Space
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, worst
from pytest_ssdqual.qual.workload.workload import Workload

#: What to do if probes are too short.
LONGER_PROBES = "raise explore.measurement of the protocol, or promise something else about these workloads"
#: Most workloads of a kind that a summary names.
MOST_TOLD = 3


class ProbedFigures(StrEnum):
    """Result of one probe."""

    KEPT = "kept"
    BROKEN = "broken"
    UNDECIDED = "undecided"
    #: Not broken, but a probe is too short to pass any of its promises: all are about rare events.
    TOO_SHORT = "too_short"
    #: Not steady, not valid, or refused: nothing is known.
    UNMEASURABLE = "unmeasurable"


@frozen
class Probed:
    """One workload of a search, with its probe."""

    workload: Workload
    #: Drive time.
    seconds: float
    #: Verdicts on every promise about it, of each drive side by side.
    verdicts: tuple[Verdict, ...] = ()
    #: Reasons: promises without a verdict (too few I/Os for a quantile), or why it could not be measured.
    trouble: tuple[str, ...] = ()
    #: Names of the promises about rare events that the probe was too short to pass; it did not break them.
    unseen: tuple[str, ...] = ()

    @property
    def look(self) -> ProbedFigures:
        outcomes = {each.outcome for each in self.verdicts}
        if Outcome.FAIL in outcomes:
            return ProbedFigures.BROKEN
        if not outcomes:
            return ProbedFigures.TOO_SHORT if self.unseen and not self.trouble else ProbedFigures.UNMEASURABLE
        return ProbedFigures.UNDECIDED if Outcome.INCONCLUSIVE in outcomes or self.trouble else ProbedFigures.KEPT

    @property
    def worst_verdict(self) -> Verdict | None:
        """The worst verdict."""
        return worst(self.verdicts) if self.verdicts else None


@frozen
class Suspect:
    """A workload whose probe looked broken, simplified as far as possible, and its second measurement."""

    workload: Workload
    #: The probe's failed verdict; of one drive if there are several side by side.
    seen: Verdict
    #: True if every adjacent simpler workload was measured and is not broken, in this run or in the one that found it.
    is_simplest: bool
    #: An earlier run found it.
    is_known: bool = False
    #: The second measurement, and its verdicts on the same promise: of all drives, and of the same drive.
    measured: Measured | None = None
    verdicts: tuple[Verdict, ...] = ()
    verdict: Verdict | None = None
    #: Reason why there is no verdict.
    trouble: str = ""

    @property
    def is_confirmed(self) -> bool:
        return self.verdict is not None and self.verdict.outcome is Outcome.FAIL

    @property
    def is_cleared(self) -> bool:
        return self.verdict is not None and self.verdict.outcome is Outcome.PASS


@dataclass(frozen=True, slots=True, repr=False)
class WorkloadSearch:
    """A finished search. True if it found nothing: then the workloads that it judged are good, which implies nothing
    more.
    """

    space: Space
    geometry: Geometry
    #: Name of the spec with the promises.
    spec: str
    budget: Budget
    #: Time spent on probes; second measurements are not part of the budget.
    seconds: float
    confirming_s: float
    probed: tuple[Probed, ...]
    suspects: tuple[Suspect, ...] = ()
    #: True if the budget ended the search.
    is_cut: bool = False

    def __bool__(self) -> bool:
        return bool(self.counts[ProbedFigures.KEPT]) and not self.counts[ProbedFigures.BROKEN] and not self.is_blind

    @property
    def is_blind(self) -> bool:
        """Return whether the probes were too short to pass any promise about most of the workloads."""
        return 2 * self.counts[ProbedFigures.TOO_SHORT] > len(self.probed)

    @property
    def unseen(self) -> str:
        """Names of the promises that probes were too short to pass; empty if there is none."""
        return ", ".join(dict.fromkeys(each for probed in self.probed for each in probed.unseen))

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
        """Number of workloads by the result of their probe; one that its second measurement cleared counts as good."""
        cleared = {each.workload for each in self.suspects if each.is_cleared}
        return Counter(ProbedFigures.KEPT if each.workload in cleared else each.look for each in self.probed)

    @property
    def confirmed(self) -> Suspect | None:
        return next((each for each in self.suspects if each.is_confirmed), None)

    @property
    def open(self) -> tuple[Suspect, ...]:
        """Suspects whose second measurement was inconclusive."""
        return tuple(each for each in self.suspects if not each.is_confirmed and not each.is_cleared)

    @property
    def untried(self) -> int:
        """Number of further broken probes, beyond the allowed second measurements."""
        tried = {each.workload for each in self.suspects}
        return sum(each.look is ProbedFigures.BROKEN and each.workload not in tried for each in self.probed)

    @property
    def narrowest(self) -> Verdict | None:
        """The passed verdict with the least margin."""
        found = [each for probed in self.probed for each in probed.verdicts if each.outcome is Outcome.PASS]
        return min(found, key=lambda each: each.margin_percent, default=None)

    def sentence(self) -> str:
        """Extent and result of the search, in one sentence."""
        counts, cut = self.counts, "used up" if self.is_cut else "not used up"
        workloads = f"{len(self.probed)} {self.kind} workload{'' if len(self.probed) == 1 else 's'}"
        spent, budget = (format_duration(each) for each in (self.seconds, self.budget.seconds))
        searched = f"searched {workloads} on {self.geometry} in {spent} (budget of {budget}, {cut})"
        more = [
            f"{counts[look]} {what}"
            for look, what in (
                (ProbedFigures.UNDECIDED, "undecided"),
                (ProbedFigures.TOO_SHORT, "not judged, as their probes could only break a promise"),
                (ProbedFigures.UNMEASURABLE, "could not be measured"),
            )
            if counts[look]
        ]
        if self.unseen:
            more.append(f"no probe was long enough to pass {self.unseen}")
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
        if self.is_blind:
            return f"{searched}: none broke a promise of {self.spec}, but most were not judged{rest}; {LONGER_PROBES}"
        return f"{searched}: none broke a promise of {self.spec}{rest}"

    def remarks(self) -> tuple[str, ...]:
        """Further facts about the search, a sentence each."""
        remarks = [_about(each, self.space) for each in self.suspects]
        remarks += [f"could not be measured: {each.trouble[0]}" for each in self._unmeasurable()[:MOST_TOLD]]
        if (more := len(self._unmeasurable()) - MOST_TOLD) > 0:
            remarks.append(f"{more} more could not be measured, see the record")
        return tuple(remarks)

    def _unmeasurable(self) -> Sequence[Probed]:
        return [each for each in self.probed if each.look is ProbedFigures.UNMEASURABLE and each.trouble]


def because(search: WorkloadSearch, suspect: Suspect, job_file: str) -> str:
    """Remark on how a broken promise was found, for its sentence."""
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
        return f"{found} and passed when measured anew: one probe among many, which proves nothing"
    why = suspect.trouble or ("it was not measured anew" if suspect.verdict is None else repr(suspect.verdict))
    return f"{found}, and its second measurement does not decide: {why}"


@frozen
class ProbeRecord:
    """One probe."""

    #: Id of the workload.
    workload: str
    look: ProbedFigures
    seconds: float
    #: The worst verdict as a sentence; empty if nothing was judged.
    verdict: str
    trouble: tuple[str, ...]
    #: Promises that a short probe cannot judge.
    unseen: tuple[str, ...]


@frozen
class SuspectRecord:
    """A workload whose probe looked broken, and its second measurement."""

    workload: str
    claim: str
    #: Serial number; empty for an array.
    drive: str
    is_simplest: bool
    confirmed: bool
    cleared: bool
    verdict: str
    #: Name in the run folder; empty without one.
    job_file: str


@frozen
class SearchRecord:
    """``searched``: a search that has ended."""

    geometry: Geometry
    #: Id of the workload that it began with.
    plain: str
    #: Names of the dimensions and their values.
    space: Mapping[str, tuple[object, ...]]
    seed: str
    #: Ids of earlier findings.
    began_with: tuple[str, ...]
    seconds: float
    budget_s: float
    confirming_s: float
    probed: tuple[ProbeRecord, ...]
    suspects: tuple[SuspectRecord, ...]
    sentence: str
