"""Verdict on a lot: accepted or rejected by the verdicts on a sample of its drives.

The drives side by side are the sample. Each was judged separately; the plan decides about the lot. The risks are those
of the plan, so the lot's verdict is not another statistical test: its estimate is a reading. `LotTable` is the table
``lot`` of spec files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean, stdev
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from pytest_ssdqual.qual.lots import sampling_plan
from pytest_ssdqual.qual.lots.sampling_plan import CONSUMERS_RISK, ByAttributes, ByVariables, Plan
from pytest_ssdqual.qual.measured.judgeable import LeftOutDrive, Subject
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.toml import Percentage, Strict
from pytest_ssdqual.qual.stats.estimate import CannotJudge, Estimate, NotApplicable
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict

#: Most drives named in a sentence.
NAMED = 3
#: Fewest figures for the test of normality.
FEWEST_FIGURES = 3
#: Significance level of the normality test that a plan by variables requires.
NORMALITY_LEVEL = 0.05
#: Share of the variance between drives due to measurement, above which it is reported. ISO 3951-1 requires a standard
#: deviation of the measurement of at most a tenth of the drives'.
MEASUREMENT_SHARE = 0.01
#: A drive of a sample.
Sampled = Verdict | LeftOutDrive
#: Sets of keys that define a plan, each with the optional keys that may accompany it.
_KINDS: dict[frozenset[str], tuple[str, ...]] = {
    frozenset({"aql"}): ("inspection",),
    frozenset({"ltpd"}): ("accept",),
    frozenset({"aql", "ltpd"}): (),
    frozenset({"sample", "accept"}): (),
    frozenset({"sample", "k"}): (),
}
_ORIGIN = "as agreed"


class TooFewDrives(CannotJudge):
    """The plan needs more drives than there are; the message has both numbers."""


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class LotVerdict(Verdict):
    """Verdict on a lot: accepted (true), rejected, or inconclusive."""

    plan: Plan
    #: The claim by which the drives were judged.
    of: Claim
    #: The sample, in the order of the drives.
    drives: tuple[Verdict, ...]
    #: Drives of the sample without a figure; a failed one does not conform, another one is undecided.
    left_out: tuple[LeftOutDrive, ...] = ()
    sentence: str

    def __repr__(self) -> str:
        return self.sentence

    @property
    def nonconforming(self) -> tuple[str, ...]:
        """Serial numbers."""
        return _with((*self.drives, *self.left_out), Outcome.FAIL)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Serial numbers."""
        return _with((*self.drives, *self.left_out), Outcome.INCONCLUSIVE)


def judge(of: Claim, plan: Plan, verdicts: Sequence[Verdict], left_out: Sequence[LeftOutDrive] = ()) -> LotVerdict:
    """Judge the lot that the drives were drawn from; ``left_out`` are those without a verdict.

    By attributes the first ``plan.sample`` drives are the sample, in the order in which they were given before anything
    was measured; more drives with the same acceptance number would be another plan. By variables all drives are: with
    the same k both risks only become smaller. ``TooFewDrives``; ``NotApplicable`` if the plan does not fit the figures.
    """
    drives: list[Sampled] = list(verdicts)
    for each in sorted(left_out, key=lambda each: each.place):
        drives.insert(each.place, each)
    if len(drives) < plan.sample:
        raise TooFewDrives(f"the plan needs {plan.sample} drives ({plan}), there are {len(drives)}")
    if isinstance(plan, ByVariables):
        if left_out:
            return _without_some(of, plan, tuple(verdicts), left_out)
        return _by_variables(of, replace(plan, sample=len(verdicts)), tuple(verdicts))
    whole = replace(verdicts[0].subject, drive="")
    return _by_attributes(of, plan, whole, drives[: plan.sample], drives[plan.sample :])


def _by_attributes(
    of: Claim, plan: ByAttributes, whole: Subject, sample: Sequence[Sampled], others: Sequence[Sampled]
) -> LotVerdict:
    """Judge by attributes. An inconclusive drive counts as nonconforming for acceptance, but not for rejection.

    If the inconclusive drives decide, the lot is inconclusive: imprecise measurement rejects no lot. A drive that
    failed under the load is a nonconforming item of ISO 2859-1.
    """
    bad, open_ = len(_with(sample, Outcome.FAIL)), len(_with(sample, Outcome.INCONCLUSIVE))
    conforming = len(sample) - bad - open_
    estimate = Estimate(conforming, conforming, conforming + open_, len(sample), Unit.COUNT, is_reading=True)
    limit = Limit(Direction.AT_LEAST, plan.sample - plan.accept, Unit.COUNT, str(plan))
    outcome = Outcome.of(good=bad + open_ <= plan.accept, bad=bad > plan.accept)
    found = f"{bad} of {plan.sample} drives {'does' if bad == 1 else 'do'} not conform{_named(sample, Outcome.FAIL)}"
    if open_:
        found += f", {open_} {'is' if open_ == 1 else 'are'} undecided{_named(sample, Outcome.INCONCLUSIVE)}"
    if more := len(_with(others, Outcome.FAIL)):
        does = "does" if more == 1 else "do"
        found += f", of those beyond the sample {more} {does} not{_named(others, Outcome.FAIL)}"
    left_out = tuple(each for each in sample if isinstance(each, LeftOutDrive))
    if failed := [each for each in left_out if each.failed]:
        found += f"; {len(failed)} failed under the load ({named([each.serial for each in failed], NAMED)})"
    return LotVerdict(
        Claim.CONFORMING_DRIVES, whole, estimate, limit, outcome,
        plan=plan, of=of, drives=tuple(each for each in sample if isinstance(each, Verdict)), left_out=left_out,
        sentence=_sentence(of, whole, plan, found, outcome),
    )  # fmt: skip


def _without_some(
    of: Claim, plan: ByVariables, verdicts: tuple[Verdict, ...], left_out: Sequence[LeftOutDrive]
) -> LotVerdict:
    """Judge by variables without some drives: rejected if the others reject the lot, else ``NotApplicable``.

    A drive without a figure has no place in a distribution. A failed one only makes a lot worse, so a lot that the
    others reject is rejected; how much worse is unknown, so no lot is accepted.
    """
    names = named([f"{each.serial} {each.why}" for each in left_out], NAMED)
    why = f"a plan by variables needs a figure of every drive ({names})"
    if len(verdicts) < FEWEST_FIGURES or not all(each.failed for each in left_out):
        raise NotApplicable(f"{why}: judge this lot by attributes")
    found = _by_variables(of, replace(plan, sample=len(verdicts)), verdicts)
    if found.outcome is not Outcome.FAIL:
        raise NotApplicable(f"{why}, the others would be accepted: judge this lot by attributes")
    sentence = f"{found.sentence}; {len(left_out)} more without a figure ({names})"
    return replace(found, left_out=tuple(left_out), sentence=sentence)


def _by_variables(of: Claim, plan: ByVariables, sample: tuple[Verdict, ...]) -> LotVerdict:
    """Judge by variables: ISO 3951, s-method with one limit, Q = mean/s of the margins ≥ k.

    The margins are logarithms of figure over limit, as figures are positive and vary in per cent. s includes the
    variance of the measurement, which can only make a lot look worse, so it is not subtracted.
    """
    figures = margins(sample)
    require_normal(figures, sample)
    quality = fmean(figures) / stdev(figures)
    estimate = Estimate(quality, quality, quality, len(sample), Unit.COUNT, is_reading=True)
    limit = Limit(Direction.AT_LEAST, plan.k, Unit.COUNT, str(plan))
    outcome = Outcome.PASS if quality >= plan.k else Outcome.FAIL
    found = f"Q = {quality:.3g} standard deviations within the limit"
    if beyond := sum(each < 0 for each in figures):
        found += f", {beyond} of {plan.sample} drives beyond it"
    whole = replace(sample[0].subject, drive="")
    return LotVerdict(
        Claim.QUALITY_INDEX, whole, estimate, limit, outcome,
        plan=plan, of=of, drives=sample, sentence=_sentence(of, whole, plan, found, outcome),
    )  # fmt: skip


def margins(sample: Sequence[Verdict]) -> tuple[float, ...]:
    """log(figure/limit) of each drive, above 0 on the good side; ``NotApplicable`` unless all figures are positive."""
    for each in sample:
        if not 0 < each.estimate.value < math.inf:
            raise NotApplicable(
                f"{each.estimate} of drive {each.subject.drive} has no logarithm: judge this lot by attributes"
            )
    sign = 1 if sample[0].limit.direction is Direction.AT_LEAST else -1
    return tuple(sign * math.log(each.estimate.value / each.limit.bound) for each in sample)


def normality(figures: Sequence[float]) -> float:
    """P-value of the Shapiro-Wilk test (1965) of normality."""
    from scipy.stats import shapiro

    return float(shapiro(figures).pvalue)


def require_normal(figures: Sequence[float], sample: Sequence[Verdict]) -> None:
    """Raise ``NotApplicable`` unless a plan by variables may be used on these figures."""
    if max(figures) - min(figures) <= 1e-12 * max(1.0, *map(abs, figures)):
        raise NotApplicable("all drives have the same figure: that is no sample of a lot; judge it by attributes")
    if (p_value := normality(figures)) < NORMALITY_LEVEL:
        mean = fmean(figures)
        farthest = max(zip(figures, sample, strict=True), key=lambda each: abs(each[0] - mean))[1].subject.drive
        raise NotApplicable(
            f"the drives' figures are not normally distributed (Shapiro-Wilk p = {p_value:.2g}, farthest out is drive "
            f"{farthest}): judge this lot by attributes"
        )


def measurement_share(sample: Sequence[Verdict]) -> float | None:
    """Share of the variance of the drives' logarithms that is due to measurement; None if an interval has no end."""
    figures = [each.estimate for each in sample]
    if len(figures) < 2 or any(each.low <= 0 or not math.isfinite(each.high) for each in figures):
        return None
    ends = (NormalDist().inv_cdf((1 + each.confidence) / 2) for each in figures)
    errors = [math.log(each.high / each.low) / 2 / end for each, end in zip(figures, ends, strict=True)]
    between = stdev(math.log(each.value) for each in figures)
    return fmean(error**2 for error in errors) / between**2 if between else None


def ruled_out(verdict: LotVerdict) -> float:
    """Return the least fraction of bad drives that the sample rules out at the consumer's risk: a tolerance bound.

    Inconclusive drives count as bad. 1 if nothing is ruled out.
    """
    plan = verdict.plan
    if isinstance(plan, ByAttributes):
        found = plan.sample - round(verdict.estimate.low)
        return replace(plan, accept=found).limiting_quality() if found < plan.sample else 1.0
    return replace(plan, k=verdict.estimate.value).quality(CONSUMERS_RISK)


def _with(drives: Sequence[Sampled], outcome: Outcome) -> tuple[str, ...]:
    """Serial numbers of the drives with this outcome."""
    return tuple(serial for serial, found in map(_outcome, drives) if found is outcome)


def _outcome(drive: Sampled) -> tuple[str, Outcome]:
    if isinstance(drive, Verdict):
        return drive.subject.drive, drive.outcome
    return drive.serial, Outcome.FAIL if drive.failed else Outcome.INCONCLUSIVE


def _named(drives: Sequence[Sampled], outcome: Outcome) -> str:
    """The drives of an outcome, for a sentence: `` (S1, S2, S3 and 4 more)``."""
    serials = _with(drives, outcome)
    return f" ({named(serials, NAMED)})" if serials else ""


def _sentence(of: Claim, whole: Subject, plan: Plan, found: str, outcome: Outcome) -> str:
    lot = f"lot of {plan.lot:,}" if plan.lot else "lot"
    workload = whole.workloads[0]
    ending = {
        Outcome.PASS: "ACCEPT",
        Outcome.FAIL: "REJECT",
        Outcome.INCONCLUSIVE: "INCONCLUSIVE, the undecided ones decide",
    }[outcome]
    return (
        f"{of.label} of {workload}, {lot} ({plan}): {found}: {ending}; the plan accepts a lot with "
        f"{100 * plan.limiting_quality():.2g} % bad drives every tenth time"
    )


class LotTable(Strict):
    """Table ``lot``: a lot of drives, and its sampling plan."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["aql"]},
                {"required": ["ltpd"]},
                {"required": ["sample", "accept"]},
                {"required": ["sample", "k"]},
            ]
        }
    )

    size: Annotated[int | None, Field(ge=2)] = None
    """Drives in the lot"""
    by: Literal["attributes", "variables"] = "attributes"
    """Whether bad drives are counted, or the spread of the drives' figures is judged"""
    aql: Percentage | None = None
    """Acceptance quality limit: bad drives that are acceptable on average"""
    inspection: Literal["S-1", "S-2", "S-3", "S-4", "I", "II", "III"] | None = None
    """Inspection level of ISO 2859-1; II if left out"""
    ltpd: Percentage | None = None
    """Bad drives of a lot that is to be accepted in one case of ten at most"""
    sample: Annotated[int | None, Field(ge=1)] = None
    """Drives to be tested, of a plan of your own"""
    accept: Annotated[int | None, Field(ge=0)] = None
    """Bad drives with which the lot is still accepted"""
    k: Annotated[float | None, Field(gt=0)] = None
    """Acceptability constant of a plan by variables"""

    @model_validator(mode="after")
    def _is_a_plan(self) -> Self:
        self.plan()
        return self

    def plan(self) -> Plan:
        """Build the plan; ValueError if the keys do not define one."""
        given = {key for key in ("aql", "ltpd", "sample", "accept", "k") if getattr(self, key) is not None}
        kind = next((each for each, more in _KINDS.items() if each <= given <= each | set(more)), None)
        if kind is None:
            raise ValueError(
                "a plan is aql (with inspection), ltpd (with accept), both of them, sample with accept, or sample with "
                f"k; not {', '.join(sorted(given)) or 'nothing'}"
            )
        if self.inspection is not None and kind != {"aql"}:
            raise ValueError("an inspection level goes with aql alone")
        if kind == {"sample", "k"}:
            return self._by_variables()
        if self.by == "variables" and kind == {"ltpd"}:
            # Of a process: measured values say nothing about how many drives of a finite lot are bad.
            found = sampling_plan.for_limiting_quality(self.ltpd or 0.0, None, self.accept or 0)
            return sampling_plan.as_variables(found, self.size)
        found = self._by_attributes(kind)
        if self.by == "attributes":
            return found
        if kind == {"aql", "ltpd"} and self.aql is not None and self.ltpd is not None:
            origin = f"by the s-method of ISO 3951, AQL {self.aql:g} %, LTPD {self.ltpd:g} %"
            good, bad = self.aql / 100, self.ltpd / 100
            return sampling_plan.variables_through_two_points(good, bad, origin, self.size, self.aql)
        return sampling_plan.as_variables(found, self.size)

    def _by_variables(self) -> ByVariables:
        if self.by != "variables":
            raise ValueError('k is of a plan with by = "variables"')
        return ByVariables(self.sample or 0, self.k or 0.0, f"by the s-method of ISO 3951, {_ORIGIN}", self.size)

    def _by_attributes(self, kind: frozenset[str]) -> ByAttributes:
        if kind == {"sample", "accept"}:
            return ByAttributes(self.sample or 0, self.accept or 0, _ORIGIN, self.size)
        aql, ltpd = self.aql or 0.0, self.ltpd or 0.0
        if kind == {"ltpd"}:
            return sampling_plan.for_limiting_quality(ltpd, self.size, self.accept or 0)
        if kind == {"aql", "ltpd"}:
            return sampling_plan.through_two_points(aql, ltpd, self.size)
        if self.size is None:
            raise ValueError("ISO 2859-1 finds the sample for an aql by the size of the lot: give size")
        return sampling_plan.indexed_by_aql(self.size, self.inspection or "II", aql)
