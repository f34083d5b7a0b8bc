"""The stopping question of each measurement, from the marks of the selected tests and the limits of the spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from pytest_ssdqual.plugin.plan import marks, needs
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import OF_COUNTERS, OF_EXTREMES, OF_TAIL, Claim, Limit, Scope
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import DEFAULT, Spec, shipped
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.estimate import NotApplicable, TooFew
from pytest_ssdqual.qual.stats.group_sequential import Decision, Question
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import judge_all
from pytest_ssdqual.qual.workload.workload import Workload

#: Scopes of claims that a single measurement can decide.
OF_ONE = (Scope.RUN, Scope.MEMBERS)

#: Half width of the interval of IOPS, in per cent, where no limit says how precise they have to be.
#: The same drives differ by 2 to 3 % from fill to fill, so a finer figure says nothing more.
PRECISION_PERCENT = 2.0

#: The claims that tests declare for each measurement.
ClaimsByMeasurement = Mapping[tuple[Geometry, Workload], frozenset[Claim]]


def asked(
    items: Iterable[pytest.Item], wanted: Callable[[pytest.Item], frozenset[Claim]] = marks.promised
) -> ClaimsByMeasurement:
    """Return the claims that the tests declare for each measurement; ``wanted`` are those of one test that count."""
    found: dict[tuple[Geometry, Workload], frozenset[Claim]] = {}
    for item in items:
        for step in needs.of(item) if not item.get_closest_marker("skip") else ():
            if step.measured:
                place = step.geometry, step.measured
                found[place] = found.get(place, frozenset()) | wanted(item)
    return found


#: Promises of which a plan says that they decide nothing.
MOST_UNUSED = 5


def unused(wanted: ClaimsByMeasurement, spec: Spec, sources: Iterable[str]) -> tuple[str, ...]:
    """Return sentences about promises that decide about no measurement, of claims that tests judge.

    A misspelt workload is the usual cause. ``sources`` are paths and shipped names of the sheets; shipped ones have
    promises for all suites.
    """
    own = {Path(each).stem for each in sources if each not in shipped() and each != DEFAULT}
    judged = {claim for claims in wanted.values() for claim in claims}
    sentences = []
    for sheet in spec.different:
        if sheet.key not in own:
            continue
        deciding = (sheet.deciding(claim, *place) for place, claims in wanted.items() for claim in claims)
        used = {each.source for each in deciding if each}
        found = (each for each in sheet.promises if each.claim in judged and each.source not in used)
        sentences += [f"{each.source} ({each.about}) decides about none of these measurements" for each in found]
    more = len(sentences) - MOST_UNUSED
    return (*sentences[:MOST_UNUSED], *([f"and {more} more promises decide about none"] if more > 0 else []))


def tails(wanted: ClaimsByMeasurement, spec: Spec) -> frozenset[Workload]:
    """Return the workloads with a promise of a tail percentile or an extreme that a test judges, on at least one array.

    By workload, not by array, because sweeps compare widths.
    """
    return frozenset(
        workload
        for (geometry, workload), claims in wanted.items()
        if any(spec.is_promised(claim, geometry, workload) for claim in claims & (OF_TAIL | OF_EXTREMES))
    )


def as_measured(sweep: Sweep) -> Sweep:
    """Return the sweep without predictions."""
    return sweep


@frozen
class Promises:
    """Decides at a look whether a point needs no further visit: a ``rig.measure.visits.Enough``.

    That is when its own claims are decided, and each sweep that it belongs to by the widths that
    are known.
    """

    spec: Spec
    protocol: Protocol
    asked: ClaimsByMeasurement
    family: ErrorControl = ALONE
    #: Returns a sweep with what its arrays are predicted to do, as it will be judged.
    predicted: Callable[[Sweep], Sweep] = as_measured
    #: Returns the limit of a claim about one array, also one by the array's members; the spec's if None.
    limit: Callable[[Claim, Geometry, Workload], Limit | None] | None = None

    def __call__(self, measured: Measured, others: Sequence[Measured] = ()) -> Decision:
        """Decide for one point; ``others`` are the latest results of the others."""
        question = self.question(measured.geometry, measured.workload)
        decision = group_sequential.decide(measured, question, self.protocol.verdict, self.family)
        undecided = next(self._undecided_sweeps(measured, others), "") if decision else ""
        return Decision(done=False, sentence=undecided) if undecided else decision

    def question(self, geometry: Geometry, workload: Workload) -> Question:
        """Return what a measurement has to decide by itself.

        Claims that need another measurement (relations, workload sets, an earlier run) and figures
        without a limit need precise IOPS, and so does a reference, of which nothing is claimed.
        Claims about several widths have no precision of their own.
        """
        # More time makes no counter surer, and there is none before the process has ended.
        claims = self.asked.get((geometry, workload), frozenset()) - OF_COUNTERS
        limit_of = self.limit or self.spec.limit
        limits = {
            claim: limit
            for claim in sorted(claims)
            if claim.scope in OF_ONE and (limit := limit_of(claim, geometry, workload))
        }
        of_sweeps = {claim for claim in claims if claim.scope is Scope.SWEEP}
        is_precise = bool(claims - limits.keys() - of_sweeps) or not claims
        return Question(limits, PRECISION_PERCENT if is_precise else None)

    def _undecided_sweeps(self, measured: Measured, others: Sequence[Measured]) -> Iterator[str]:
        """Yield a sentence about each sweep of this point that the widths known so far leave undecided."""
        asked = self.asked.get((measured.geometry, measured.workload), frozenset())
        alike = [each for each in others if _is_alike(each, measured)]
        for claim in sorted(claim for claim in asked if claim.scope is Scope.SWEEP):
            widths = [each for each in alike if claim in self.asked.get((each.geometry, each.workload), ())]
            if not widths:
                continue
            sweep = self.predicted(Sweep(tuple(sorted((*widths, measured), key=lambda each: each.geometry))))
            if not self._is_decided(claim, sweep):
                yield f"{claim.label} of {len(widths) + 1} widths is undecided"

    def _is_decided(self, claim: Claim, sweep: Sweep) -> bool:
        """Return whether a claim about several widths is decided; True if more time would not help."""
        subject, rule = sweep.subject, self.protocol.verdict
        limit = self.spec.limit(claim, subject.geometry, subject.workload)
        if limit is None:
            return True
        try:
            verdicts = judge_all(claim, sweep, limit, rule.confidence, rule.indifference_percent, self.family)
        except TooFew:
            return False
        except NotApplicable:
            return True
        return all(verdict.is_settled for verdict in verdicts)


def _is_alike(other: Measured, measured: Measured) -> bool:
    """Return whether the two are widths of one sweep."""
    one, two = other.geometry, measured.geometry
    return (other.workload, one.level, one.missing) == (measured.workload, two.level, two.missing)
