"""``--ssd-budget``: fits a plan into a time, and keeps the run to it.

Sequential measurements get an earlier end, all of them the same quantile of their own expected durations. A step that
alone takes longer than the budget is left out, because ``KeptBudget`` would not begin it. Of the others, what does not
fit is left out, from the end of the plan: what is measured is complete arrays. Of all such plans the one is taken by
which the most measurements are expected to be decided. An end by the budget is one of the protocol's looks, whose
intervals hold together, so it needs no other statistics; but it is never before the time at which a plateau or a rare
event could be taken for the drive.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from pytest_ssdqual.plugin.plan import durations
from pytest_ssdqual.plugin.plan.durations import Durations, Sample
from pytest_ssdqual.plugin.plan.forecast import PricedPlan
from pytest_ssdqual.plugin.plan.step_prices import OVERHEAD_S, Prices
from pytest_ssdqual.qual.forecast import duration, simulated_drive
from pytest_ssdqual.qual.forecast.duration import Asked, Judging
from pytest_ssdqual.qual.measured.judgeable import Judgeable
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.units import Unit, format_duration
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignPlan, CampaignStep, Preparation, StepKind
from pytest_ssdqual.rig.measure.sequential_verdict import Enough
from pytest_ssdqual.rig.measure.session import BudgetSpent

#: By when, after the ramp, each sequential measurement ends.
Ends = Mapping[tuple[Geometry, Workload], float]
#: Kind of the records of steps that were not begun, and of measurements that ended undecided.
SPENT = "budget_spent"
#: Kinds of steps that are left out if they do not fit. The others prepare these, or take no time of their own.
MEASUREMENTS = (
    StepKind.MEASURED,
    StepKind.SATURATION,
    StepKind.LOOP,
    StepKind.REBUILD,
    StepKind.SEARCH,
    StepKind.INTEGRITY,
)
#: Quantiles of their durations at which measurements may end, the longest first.
SHARES = (1.0, 0.97, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.0)
#: Units of the claims whose shortfalls are those of a rate.
RATES = (Unit.IOPS, Unit.BYTES_PER_SECOND)
#: Shortfalls that are tried for the smallest that is detected, in per cent, and the share of runs that detect it.
SHORTFALLS, DETECTED = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0), 0.9


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a budget buys."""

    seconds: float
    #: None in a protocol of fixed times.
    ends_s: Ends = field(default_factory=dict)
    left_out: tuple[CampaignStep, ...] = ()
    measured: int = 0
    #: Nine of ten runs take at most this.
    ninety_s: float = 0.0
    #: Expected number of measurements that end before they are decided.
    undecided: float = 0.0
    #: Those of ``left_out`` that alone may take longer than the budget.
    too_long: tuple[CampaignStep, ...] = ()

    def end_of(self, geometry: Geometry, workload: Workload, looks: SequentialRule) -> float:
        """Return by when a measurement ends; one that was not planned may take as long as any that was."""
        latest_s = max(self.ends_s.values(), default=looks.limit_s)
        return self.ends_s.get((geometry, workload), latest_s)

    def leaves_out(self, step: CampaignStep) -> bool:
        """Return whether the step is left out; a search is, with all workloads that it probes."""
        if step.kind is not StepKind.SEARCH:
            return step in self.left_out
        searches = (each for each in self.left_out if each.kind is StepKind.SEARCH)
        return any((each.geometry, each.is_random) == (step.geometry, step.is_random) for each in searches)

    def to_record(self) -> dict[str, object]:
        """Return the facts for the journal."""
        return {
            "seconds": self.seconds,
            "ninety_s": self.ninety_s,
            "measurements": self.measured,
            "undecided": round(self.undecided, 2),
            "left_out": [str(each) for each in self.left_out],
            "ends_s": {f"{array} {workload}": end_s for (array, workload), end_s in self.ends_s.items()},
        }

    @property
    def called(self) -> str:
        """``the budget of 8 h``."""
        return f"the budget of {format_duration(self.seconds)}"


def fit(seconds: float, steps: Sequence[CampaignStep], prices: Prices) -> Fitted:
    """Fit the steps into ``seconds``, so that nine of ten runs take no longer, and that most measurements are decided.

    If all of them are decided either way, more time for each is better than less.
    """
    too_long = tuple(each for each in steps if each.kind in MEASUREMENTS and least_s(prices, each) > seconds)
    possible = [each for each in steps if each not in too_long]
    priced = PricedPlan.of(CampaignPlan.of(possible, prices.protocol), prices)
    most_s = sum(each.condition.seconds + each.most.seconds for each in priced.rows.values())
    fitting = _Fitting(seconds, possible, prices, dict(priced.sample_of), is_ample=most_s <= seconds)
    shares = SHARES if prices.protocol.sequential else (1.0,)
    found = [fitting.most_that_fit(share) for share in shares]
    best = max(found, key=lambda each: round(each.measured - each.undecided, 3))
    left_out = {*too_long, *best.left_out}
    return replace(best, left_out=tuple(each for each in steps if each in left_out), too_long=too_long)


def least_of(steps: Sequence[CampaignStep], prices: Prices) -> float:
    """Return the seconds of the smallest budget by which the first measurement of the plan can be made."""
    priced = PricedPlan.of(CampaignPlan.of(steps, prices.protocol), prices)
    fitting = _Fitting(math.inf, steps, prices, dict(priced.sample_of))
    return max(fitting.first(SHARES[-1]).ninety_s, least_s(prices, fitting.measured[0]))


def least_s(prices: Prices, step: CampaignStep, preparations: Sequence[Preparation] = ()) -> float:
    """Return the time that has to be left when a step begins, with its preparations."""
    before_s = sum(prices.preparation(each).expected.seconds for each in preparations)
    protocol, looks = prices.protocol, prices.protocol.sequential
    if looks and step.kind is StepKind.MEASURED:
        return before_s + protocol.ramp_s + group_sequential.earliest_end_s(looks) + OVERHEAD_S
    return before_s + prices.step(step).most.seconds


@dataclass(slots=True)
class _Fitting:
    """The durations of a plan's steps, of which all ways to fit it are sums."""

    seconds: float
    steps: Sequence[CampaignStep]
    prices: Prices
    _samples: dict[CampaignStep | Preparation, Sample]
    #: The budget suffices for the most that all can take; otherwise none may take the time of the others.
    is_ample: bool = False
    #: By the number of measurements from the beginning of the plan: all that is done then, with what it needs.
    _prepared: dict[int, list[tuple[tuple[Preparation, ...], CampaignStep]]] = field(default_factory=dict)

    @property
    def measured(self) -> list[CampaignStep]:
        """The measurements of the plan, of all kinds."""
        return [each for each in self.steps if each.kind in MEASUREMENTS]

    def first(self, share: float) -> Fitted:
        """Return the plan with the first measurement alone, ended at this quantile of its durations."""
        return self._fitted(1, self._ends(share))

    def most_that_fit(self, share: float) -> Fitted:
        """Return the plan with the most measurements, all ended at this quantile of their durations."""
        ends_s, measured = self._ends(share), self.measured
        best = self._fitted(len(measured), ends_s)
        least, most = 0, len(measured)
        while best.ninety_s > self.seconds and most > 0:
            kept = (least + most) // 2
            tried = self._fitted(kept, ends_s)
            if tried.ninety_s <= self.seconds:
                least = kept
            else:
                most = kept
            if most - least <= 1:
                best = self._fitted(least, ends_s)
                break
        return best

    def _ends(self, share: float) -> dict[tuple[Geometry, Workload], float]:
        protocol, looks = self.prices.protocol, self.prices.protocol.sequential
        if looks is None:
            return {}
        times, least_s = group_sequential.look_times(looks), group_sequential.earliest_end_s(looks)
        found = {}
        for step in self.measured:
            if step.kind is StepKind.MEASURED and isinstance(step.what, Workload):
                wanted_s = durations.quantile(self._sample(step), share) - protocol.ramp_s - OVERHEAD_S - 1
                end_s = next((each for each in times if each >= max(least_s, wanted_s)), times[-1])
                found[step.geometry, step.what] = looks.limit_s if self.is_ample else end_s
        return found

    def _fitted(self, kept: int, ends_s: Ends) -> Fitted:
        """Return the plan with the first ``kept`` measurements."""
        if kept not in self._prepared:
            left_out = set(self.measured[kept:])
            steps = [each for each in self.steps if each not in left_out]
            self._prepared[kept] = list(CampaignPlan.of(steps, self.prices.protocol).prepared())
        more_s, undecided, found = self.prices.protocol.ramp_s + OVERHEAD_S, 0.0, list[Sample]()
        for preparations, step in self._prepared[kept]:
            found += map(self._sample, preparations)
            sample, end_s = self._sample(step), None
            if step.kind is StepKind.MEASURED and isinstance(step.what, Workload):
                end_s = ends_s.get((step.geometry, step.what))
            if end_s is None:
                found.append(sample)
                continue
            most_s = more_s + end_s
            found.append(tuple(min(each, most_s) for each in sample))
            undecided += fmean(each > most_s + 1 for each in sample)
        measured = self.measured
        of_kept = {(each.geometry, each.what) for each in measured[:kept] if each.kind is StepKind.MEASURED}
        return Fitted(
            self.seconds,
            {key: end_s for key, end_s in ends_s.items() if key in of_kept},
            left_out=tuple(measured[kept:]),
            measured=kept,
            ninety_s=durations.quantile(durations.summed(found), 0.9),
            undecided=undecided,
        )

    def _sample(self, step: CampaignStep | Preparation) -> Sample:
        """Return the durations of a step or a preparation; drawn once, so that sums can be compared."""
        if step not in self._samples:
            price = self.prices.step(step) if isinstance(step, CampaignStep) else self.prices.preparation(step)
            self._samples[step] = price.sample
        return self._samples[step]


def lines(found: Fitted, simulated: Durations) -> Iterator[str]:
    """Yield what the budget buys, a sentence each."""
    promises, all_of_them = simulated.promises, found.measured + len(found.left_out)
    within = f", in nine of ten runs within {format_duration(round(found.ninety_s))}" if found.measured else ""
    yield f"{found.called}: {found.measured} of {all_of_them} measurements{within}"
    last = [each for each in found.left_out if each not in found.too_long]
    for why, steps in (("each may take longer than the budget", found.too_long), ("from the end of the plan", last)):
        if steps:
            on = ", ".join(dict.fromkeys(str(each.geometry) for each in steps))
            yield f"left out, {why}: {len(steps)} on {on}; their tests are errors"
    looks, rule = promises.protocol.sequential, promises.protocol.verdict
    yield (
        f"a budget makes no verdict less certain: each false accept and each false reject has at most "
        f"{50 * (1 - rule.confidence):.2g} %"
    )
    if looks is None or not found.ends_s or min(found.ends_s.values()) >= looks.limit_s:
        return
    earliest, latest = (format_duration(round(end(found.ends_s.values()))) for end in (min, max))
    when = earliest if earliest == latest else f"{earliest} to {latest}"
    yield (
        f"what is undecided then ends as inconclusive after {when}, instead of {format_duration(looks.limit_s)}; "
        f"about {found.undecided:.1f} measurements will be"
    )
    if shortfalls := tuple(_shortfalls(found, simulated, looks)):
        yield f"shortfalls that nine of ten runs detect: {'; '.join(shortfalls)}"


def _shortfalls(found: Fitted, simulated: Durations, looks: SequentialRule) -> Iterator[str]:
    """Yield the smallest detectable shortfall of each claim, at the earliest end of a measurement that it has."""
    promises = simulated.promises
    judging = Judging(looks, promises.protocol.verdict, promises.family)
    ends: dict[str, float] = {}
    asked: dict[str, Asked] = {}
    for (geometry, workload), end_s in found.ends_s.items():
        for claim in promises.question(geometry, workload).limits:
            of_rate = claim if claim in duration.QUANTILES else Claim.STEADY_IOPS
            if claim in duration.QUANTILES or claim.unit in RATES:
                ends[claim.label] = min(end_s, ends.get(claim.label, end_s))
                asked[claim.label] = Asked(of_rate)
    for label, end_s in ends.items():
        if percent := _smallest(simulated, judging, asked[label], end_s):
            yield f"{label} {percent:g} %"
            continue
        most = SHORTFALLS[-1]
        needed, end = (
            format_duration(round(each)) for each in (_detected_s(simulated, judging, asked[label], most), end_s)
        )
        yield f"{label} none: {most:g} % needs {needed}, and the earliest end is {end}"


def _smallest(simulated: Durations, judging: Judging, asked: Asked, end_s: float) -> float | None:
    """Return the smallest shortfall that is detected by ``end_s``; None if none of ``SHORTFALLS`` is."""
    found = bisect_left(SHORTFALLS, True, key=lambda each: _detected_s(simulated, judging, asked, each) <= end_s)
    return SHORTFALLS[found] if found < len(SHORTFALLS) else None


def _detected_s(simulated: Durations, judging: Judging, asked: Asked, shortfall: float) -> float:
    """Return by when, after the ramp, a shortfall in per cent is detected in ``DETECTED`` of the simulated runs."""
    # A latency falls short of its limit by being that much larger.
    margin = 1 / (1 + shortfall / 100) if asked.claim in duration.QUANTILES else 1 - shortfall / 100
    wrong = frozenset({Asked(asked.claim, round(margin, 3))})
    pools = [simulated.of_kind(judging, wrong, kind) for kind in simulated_drive.KINDS]
    return durations.quantile(tuple(each for pool in pools for each in pool), DETECTED)


def note_nothing(kind: str, **facts: object) -> None:
    """Record nothing."""


@dataclass(slots=True)
class KeptBudget:
    """A run that keeps to its budget; the time of earlier sessions counts."""

    fitted: Fitted
    protocol: Protocol
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
        needed_s = self._least_s(step, preparations)
        if needed_s > self.left_s():
            needed, left = (format_duration(max(0, round(each))) for each in (needed_s, self.left_s()))
            sentence = f"{step} was not begun: it takes {needed}, and {left} remain of {self.fitted.called}"
            self.note(SPENT, step=str(step), sentence=sentence, begun=False)
            raise BudgetSpent(sentence)

    def until_spent(self, enough: Enough) -> Enough:
        """Return the stopping rule that also ends what is undecided when its part of the budget is spent.

        It has to be the outermost rule: no other one may go on.
        """

        def decide(measured: Measured) -> Decision:
            found = enough(measured)
            why = "" if found else self.end(measured)
            return Decision(done=True, sentence=f"{found.sentence}: {why}") if why else found

        return decide

    def end(self, measured: Measured) -> str:
        """Return why a measurement has to end at its look although it is not decided; empty if it may go on."""
        looks, look = self.protocol.sequential, measured.look
        if looks is None or look is None or look.number == look.of:
            return ""
        times, step = group_sequential.look_times(looks), f"{measured.geometry} {measured.workload}"
        now_s, next_s = times[look.number - 1], times[look.number]
        if now_s < group_sequential.earliest_end_s(looks):
            return ""
        ends_s = self.fitted.end_of(measured.geometry, measured.workload, looks)
        if now_s < ends_s and next_s - now_s + OVERHEAD_S <= self.left_s():
            return ""
        sentence = f"{self.fitted.called} ended it"
        self.ended.add(step)
        self.note(SPENT, step=step, sentence=sentence, begun=True)
        return sentence

    def why(self, judged: Judgeable) -> str:
        """Return why what is judged may be undecided; empty if all its measurements ended by themselves."""
        subject = judged.subject
        names = (f"{geometry} {workload}" for geometry in subject.geometries for workload in subject.workloads)
        ended = [name for name in names if name in self.ended]
        return f"{self.fitted.called} ended the measurement of {', '.join(ended)}" if ended else ""

    def _least_s(self, step: CampaignStep, preparations: Sequence[Preparation]) -> float:
        """Return the time that a step needs, with its preparations, once it has begun."""
        if step.kind is StepKind.SEARCH and not preparations:
            return 0.0  # it has begun, and asks again for each of its probes
        return least_s(self.prices, step, preparations)
