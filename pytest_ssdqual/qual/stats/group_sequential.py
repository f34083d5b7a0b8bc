"""Nominal levels of planned looks, and the rule that says whether a look decides.

Looks planned beforehand share the error rate (Pocock boundary, Biometrika 64, 1977, 191-199), so
the stated confidence holds whichever look decides. The boundary is constant over looks at unequal
times, computed by the recursive numerical integration of Armitage, McPherson and Rowe (J. R.
Statist. Soc. A 132, 1969, 235-244). It assumes normal, independent increments.

`decide` uses the code that judges afterwards, so a measurement never ends on a verdict that the
test then finds undecided, and never continues past one that the test would accept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from itertools import pairwise

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, NotApplicable, TooFew
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Verdict, judge_all

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


@frozen
class Decision:
    """Result of the stopping rule: done or not, and a sentence about what is known so far."""

    done: bool
    sentence: str = ""

    def __bool__(self) -> bool:
        return self.done


@frozen
class Question:
    """The claims that one measurement has to decide, and the precision asked of it."""

    #: Claims that this measurement decides alone, each with its limit.
    limits: Mapping[Claim, Limit] = field(default_factory=dict)
    #: Half width of the interval of its IOPS, per cent, where no limit says how precise they have
    #: to be: figures that are asked for without a promise, and references of relations.
    precision_percent: float | None = None


def decide(
    measured: Measured,
    question: Question,
    rule: VerdictRule,
    family: ErrorControl = ALONE,
) -> Decision:
    """Decide whether ``measured`` answers the question; for drives side by side, of every drive."""
    sentence, undecided = "", list[str]()
    for claim, limit in question.limits.items():
        try:
            verdicts = judge_all(
                claim,
                measured,
                limit,
                rule.confidence,
                rule.indifference_percent,
                family,
            )
        except TooFew as error:
            undecided.append(f"{claim.label}: {error}")
            continue
        except NotApplicable:
            continue  # more time does not help; the test reports the reason
        # None if the drives that have a limit were left out.
        sentence = sentence or next(map(_sentence, verdicts), "")
        undecided += [_sentence(verdict) for verdict in verdicts if not verdict.is_settled]
    if question.precision_percent is not None:
        level = ConfidenceLevel(rule.confidence)
        known, precision = _precision(measured, question.precision_percent, level)
        sentence = sentence or precision
        undecided += [] if known else [precision]
    return _decision(undecided, sentence)


def _decision(undecided: list[str], sentence: str) -> Decision:
    if not undecided:
        return Decision(done=True, sentence=sentence)
    others = len(undecided) - 1
    more = f", and {others} more undecided" if others else ""
    return Decision(done=False, sentence=undecided[0] + more)


def _precision(
    measured: Measured,
    percent: float,
    confidence_level: ConfidenceLevel,
) -> tuple[bool, str]:
    """Return whether the IOPS, of every drive side by side, are so precise, and a sentence."""
    rates: list[Estimate] = []
    for member in measured.members():
        try:
            rates.append(iops(member, confidence_level))
        except TooFew as error:
            return False, f"IOPS: {error}"
    widest = max(rates, key=_half_percent)
    half = _half_percent(widest)
    return half <= percent, f"{widest}, ±{half:.2g} % ({percent:g} % is wanted)"


def _half_percent(estimate: Estimate) -> float:
    """Return half of the interval's width in per cent of the figure; infinite for a figure of 0."""
    half = (estimate.high - estimate.low) / 2
    return 100 * half / estimate.value if estimate.value else math.inf


def _sentence(verdict: Verdict) -> str:
    unit = verdict.claim.unit if verdict.reference is None else Unit.PERCENT
    by = f" of drive {verdict.subject.drive}" if verdict.subject.drive else ""
    limit = format_value(verdict.limit.bound, unit)
    return f"{verdict.claim.label}{by} {verdict.estimate}, limit {limit}"
