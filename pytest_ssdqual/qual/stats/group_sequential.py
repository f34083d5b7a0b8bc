"""Sequential measurement: times and nominal levels of the interim analyses (looks), and the rule that stops after one.

Looks planned beforehand share the error rate (Pocock boundary, Biometrika 64, 1977, 191-199), so the stated confidence
holds whichever look decides. The boundary is constant over looks at unequal times, computed by the recursive numerical
integration of Armitage, McPherson and Rowe (J. R. Statist. Soc. A 132, 1969, 235-244). It assumes normal, independent
increments; ``batch_means`` handles what is neither.

The product, the forecast and the benches call `decide`. It uses the code that judges afterwards, so a measurement never
ends on a verdict that the test then finds undecided, and never continues past one that the test would accept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from pytest_ssdqual.qual.measured.run import FEWEST_SPELLS, SPELL_S, Look, Measured, Run
from pytest_ssdqual.qual.spec.claims import OF_EXTREMES, Claim, Limit
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import batch_means
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, NotApplicable, TooFew
from pytest_ssdqual.qual.stats.shared_evidence import NOTHING_KNOWN, SharedEvidence
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, Verdict, judge_all

#: Points of the grid of densities: 2 % finer or coarser moves the level by less than 1e-6.
GRID = 301


@lru_cache(maxsize=32)
def nominal_level(times: tuple[float, ...], confidence: float) -> float:
    """Two-sided confidence of each look at ``times`` at which all of them hold together at ``confidence``.

    ValueError without a look, or if times do not grow.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    if not times or any(after <= before for before, after in pairwise(times)):
        raise ValueError(f"looks have to be at growing times, not at {times}")
    # At least as wide as for a single look, at most as wide as for independent looks (Bonferroni).
    narrow, wide = (-float(ndtri((1 - confidence) / 2 / count)) for count in (1, len(times)))
    if len(times) == 1:
        return confidence
    bound = brentq(lambda width: staying_inside(times, width) - confidence, narrow, wide, xtol=1e-7)
    return float(1 - 2 * ndtr(-bound))


def staying_inside(times: tuple[float, ...], bound: float) -> float:
    """Probability that a mean without any effect is within ``bound`` standard errors at every look."""
    import numpy as np

    grid = np.linspace(-bound, bound, GRID)
    # Simpson's rule.
    weights = np.full(GRID, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    weights *= (grid[1] - grid[0]) / 3
    density = np.exp(-(grid**2) / 2) / math.sqrt(2 * math.pi)
    for before, after in pairwise(times):
        # The mean at the later look, in its standard errors, given that at the earlier one.
        share = (before / after) ** 0.5
        spread = (1 - share**2) ** 0.5
        apart = (grid[:, None] - share * grid[None, :]) / spread
        density = np.exp(-(apart**2) / 2) / (spread * math.sqrt(2 * math.pi)) @ (weights * density)
    return float(weights @ density)


#: Least share of the series that truncation leaves; never less than the first look.
LEAST_REMAINING = 0.3
#: Share of the warm-up that means leave out altogether; the rest only shows the direction of a trend.
LEFT_OUT = 0.7
#: Factor to the limit from which a figure may be that of a plateau.
PLATEAU = 1.12


@lru_cache(maxsize=64)
def look_times(rule: SequentialRule) -> tuple[float, ...]:
    """Times of the looks, seconds of stimulus after the ramp, growing geometrically; the last is the limit."""
    times = [rule.first_s]
    while times[-1] < rule.limit_s:
        times.append(min(rule.limit_s, times[-1] * rule.growth))
    return tuple(times)


def earliest_end_s(rule: SequentialRule) -> float:
    """Time of the earliest look at which a measurement may end undecided: later than any plateau, and after the
    observation that extremes need.
    """
    times = look_times(rule)
    return next((each for each in times if each >= max(rule.plateau_s, rule.observe_s)), times[-1])


def level(rule: SequentialRule, confidence: float) -> float:
    """Two-sided confidence of the interval at each look, so that all looks together hold at ``confidence``."""
    return nominal_level(look_times(rule), confidence)


def extremes_level(rule: SequentialRule, confidence: float, number: int) -> float:
    """Two-sided confidence at look ``number`` of the interval of a claim about extremes.

    No look before ``observe_s`` decides such a claim (`decide`), so those from then on share the error alone. A
    measurement that ended earlier was not asked about extremes, and has the level of all looks.
    """
    times = look_times(rule)
    if times[number - 1] < rule.observe_s:
        return level(rule, confidence)
    return nominal_level(tuple(each for each in times if each >= rule.observe_s), confidence)


def spell_s(rule: SequentialRule) -> float:
    """Length of the spells whose extremes are recorded, seconds; the same at all looks."""
    return min(SPELL_S, max(float(rule.report_s), rule.observe_s / FEWEST_SPELLS))


def is_too_early(seconds: float, value: float, limit: float, rule: SequentialRule) -> bool:
    """Return whether a figure after ``seconds`` of load may still be that of a plateau.

    A plateau (of a cache, of spare blocks) is as steady as a settled drive, and its end cannot be foreseen. A cache
    that refilled while the drive idled gives two to four times the settled rate, so distance from the limit is no
    reason to accept a figure early.
    """
    if seconds >= rule.plateau_s or value <= 0 or limit <= 0:
        return False
    return max(value / limit, limit / value) > PLATEAU


def at_look(
    run: Run, number: int, rule: SequentialRule, confidence: float, shared: SharedEvidence = NOTHING_KNOWN
) -> Run:
    """Return the run as it was at look ``number``: cut into blocks, with its warm-up, without what came after the look.

    ``shared`` is what was known of the drives before the run; the look carries it. For drives side by side the latest
    warm-up applies to all. A run that already has a look is returned unchanged.
    """
    times = look_times(rule)
    if run.look is not None:
        return run
    until = replace(run, window_s=times[number - 1])
    count = max(1, min(batch_means.COUNT, len(until.counted)))
    block_s = until.window_s / count
    warmup_s = max(_warmup_s(each, rule) for each in until.of_members())
    left_out = int(LEFT_OUT * warmup_s / block_s)
    found = Look(
        number=number,
        of=len(times),
        level=level(rule, confidence),
        warmup_s=warmup_s,
        left_out=left_out,
        head=math.ceil(warmup_s / block_s - 1e-9) - left_out,
        slowest_s=rule.slowest_s,
        pause_s=rule.pause_s,
        spell_s=spell_s(rule),
        shared=shared,
        extremes_level=extremes_level(rule, confidence, number),
    )
    return replace(until, rounds=count, look=found)


def _warmup_s(run: Run, rule: SequentialRule) -> float:
    counted = run.counted
    if len(counted) < batch_means.FEWEST:
        return 0.0
    begin = warmup([each.ios / each.seconds for each in counted], _least(len(counted), run.window_s, rule))
    return max(0.0, counted[begin].start_s - run.ramp_s) if begin else 0.0


def _least(count: int, seconds: float, rule: SequentialRule) -> int:
    """Fewest of ``count`` intervals of ``seconds`` together that truncation leaves."""
    return min(count, max(batch_means.FEWEST, round(count * max(LEAST_REMAINING, rule.first_s / seconds))))


def warmup(rates: Sequence[float], least: int) -> int:
    """Number of values at the head that are warm-up: without them the mean of the rest has the least variance.

    MSER (White 1997; White, Cobb & Spratt 2000); at least ``least`` values remain.
    """
    import numpy as np

    backwards = np.asarray(rates, float)[::-1]
    counts = np.arange(1, len(backwards) + 1)
    sums, squares = np.cumsum(backwards), np.cumsum(backwards**2)
    merit = ((squares - sums**2 / counts) / counts**2)[::-1]
    return int(np.argmin(merit[: max(0, len(backwards) - least) + 1]))


@dataclass(frozen=True, slots=True)
class Decision:
    """Result of the stopping rule: done or not, and a sentence about what is known so far."""

    done: bool
    sentence: str = ""

    def __bool__(self) -> bool:
        return self.done


class Side(Enum):
    """The side of an interval whose distance from the figure counts as its precision."""

    BOTH = "both"
    BELOW = "below"
    ABOVE = "above"

    def percent(self, estimate: Estimate) -> float:
        """Return the distance of the end on this side, in per cent of the figure.

        For both sides it is half of the interval's width. Infinite for a figure of 0.
        """
        if not estimate.value:
            return math.inf
        below, above = estimate.value - estimate.low, estimate.high - estimate.value
        distances = {Side.BOTH: (below + above) / 2, Side.BELOW: below, Side.ABOVE: above}
        return 100 * distances[self] / estimate.value


@dataclass(frozen=True, slots=True)
class Question:
    """The claims that one measurement has to decide, and the precision asked of it."""

    #: Claims that this measurement decides alone, each with its limit.
    limits: Mapping[Claim, Limit] = field(default_factory=dict)
    #: Precision of its IOPS in per cent, where no limit of its own says how precise they have to be: the half width of
    #: the interval, or the distance of one end.
    precision_percent: float | None = None
    precision_side: Side = Side.BOTH
    #: Its extremes are needed, for a claim that compares several measurements.
    is_observed: bool = False


def decide(
    measured: Measured,
    question: Question,
    looks: SequentialRule | None,
    rule: VerdictRule,
    family: ErrorControl = ALONE,
) -> Decision:
    """Decide whether ``measured``, the run up to this look, answers the question; for drives side by side, of every
    drive.
    """
    sentence, undecided = "", list[str]()
    for claim, limit in question.limits.items():
        try:
            verdicts = judge_all(claim, measured, limit, rule.confidence, rule.indifference_percent, family)
        except TooFew as error:
            undecided.append(f"{claim.label}: {error}")
            continue
        except NotApplicable:
            continue  # more time does not help; the test reports the reason
        # None if the drives that have a limit were left out.
        sentence = sentence or next(map(_sentence, verdicts), "")
        undecided += [_sentence(verdict) for verdict in verdicts if not verdict.is_settled]
        undecided += [
            f"{_sentence(verdict)} (too early)" for verdict in verdicts if _is_too_early(verdict, measured, looks)
        ]
    if looks and question.precision_percent is not None:
        known, precision = _precision(measured, question, ConfidenceLevel(rule.confidence))
        sentence = sentence or precision
        undecided += [] if known else [precision]
    if question.is_observed or OF_EXTREMES & question.limits.keys():
        undecided += _not_observed(measured, looks)
    return _decision(undecided, sentence)


def _is_too_early(verdict: Verdict, measured: Measured, looks: SequentialRule | None) -> bool:
    """Return whether a decided verdict may be that of a plateau; never at the last look."""
    if looks is None or measured.is_last or verdict.outcome is Outcome.INCONCLUSIVE:
        return False
    return is_too_early(_loaded_s(measured, looks), verdict.estimate.value, verdict.limit.bound, looks)


def _loaded_s(measured: Measured, looks: SequentialRule) -> float:
    """Return the time under load of its class until now: before the measurement and in it."""
    cells, look = measured.interleaved, measured.look
    if cells:
        return cells.loaded_s + cells.span_s
    return (look.shared.loaded_s if look else 0.0) + _observed_s(measured, looks)


def _observed_s(measured: Measured, looks: SequentialRule) -> float:
    look = measured.look
    return look_times(looks)[look.number - 1] if look else measured.observed_s


def _not_observed(measured: Measured, looks: SequentialRule | None) -> Iterator[str]:
    """Yield a sentence while extremes were observed for less than ``observe_s``, however clear other figures are."""
    if looks and not measured.is_last and _observed_s(measured, looks) < looks.observe_s:
        yield f"slowest I/Os are observed for {format_duration(looks.observe_s)} at least"


def _decision(undecided: list[str], sentence: str) -> Decision:
    if not undecided:
        return Decision(done=True, sentence=sentence)
    others = len(undecided) - 1
    return Decision(done=False, sentence=undecided[0] + (f", and {others} more undecided" if others else ""))


def _precision(measured: Measured, question: Question, confidence_level: ConfidenceLevel) -> tuple[bool, str]:
    """Return whether the IOPS are as precise as asked, of every drive side by side, and a sentence."""
    percent, side = question.precision_percent or 0.0, question.precision_side
    rates: list[Estimate] = []
    for member in measured.members():
        try:
            rates.append(iops(member, confidence_level))
        except TooFew as error:
            return False, f"IOPS: {error}"
    widest = max(rates, key=side.percent)
    found = side.percent(widest)
    return found <= percent, f"{widest}, {_SIGNS[side]}{found:.2g} % ({percent:g} % is wanted)"


_SIGNS = {Side.BOTH: "±", Side.BELOW: "−", Side.ABOVE: "+"}


def _sentence(verdict: Verdict) -> str:
    unit = verdict.claim.unit if verdict.reference is None else Unit.PERCENT
    by = f" of drive {verdict.subject.drive}" if verdict.subject.drive else ""
    return f"{verdict.claim.label}{by} {verdict.estimate}, limit {format_value(verdict.limit.bound, unit)}"
