"""Many claims judged in one run: what that does to the error rates of their verdicts, and what can be done.

A run is accepted when every claim is kept. That needs no correction on the side of the passes: whoever wants to let a
bad product through must get *every* broken claim past its test, and each of those tests has its own error rate as an
upper bound (intersection-union test, Berger 1982). On the side of the failures it is the other way round: one false
failure among hundreds of claims rejects a good product, and with each claim more that becomes more likely.

Levels are two-sided, as the confidence of the interval that a claim is judged by; of the two ends only one is an error
of a given kind, so the probability of a false failure of one claim is half of one minus its confidence, at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: Names of ``VerdictRule.family``.
NONE, BONFERRONI = "none", "bonferroni"
#: Smaller p-values are not told apart: no model of a drive is good for them.
SMALLEST_P = 1e-12
#: Relative, of a p-value.
P_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Family:
    """The claims that are judged together."""

    #: Planned when the run began, and not changed afterwards: whoever counts later counts what suits him.
    claims: int = 1
    control: str = NONE

    def __post_init__(self) -> None:
        if self.claims < 1:
            raise ValueError(f"a family has at least one claim, not {self.claims}")
        if self.control not in (NONE, BONFERRONI):
            raise ValueError(f"{self.control} is no control of a family; there are {NONE} and {BONFERRONI}")

    @property
    def is_corrected(self) -> bool:
        return self.control == BONFERRONI and self.claims > 1

    @property
    def share(self) -> float:
        """Of the error rate, what may be spent on the interval that has to be on the bad side for a failure.

        The interval is then at 1 - (1 - confidence)/m (Bonferroni), at a look of a sequential measurement at
        1 - (1 - its level)/m, and a false failure among all claims no more likely than of a single one.
        """
        return 1 / self.claims if self.is_corrected else 1.0

    def false_failures(self, judged: int, confidence: float) -> float:
        """How many are to be expected if every product were exactly on its limit, of so many judged; at most."""
        return judged * (1 - confidence) * self.share / 2

    def false_passes(self, judged: int, confidence: float) -> float:
        """The same of passes, which no family control touches."""
        return judged * (1 - confidence) / 2


#: A claim by itself.
ALONE = Family()


def p_value(is_broken: Callable[[float], bool], confidence: float) -> float:
    """Of a failed verdict: the least one-minus-confidence at which the interval is still on the bad side; two-sided.

    ``is_broken`` says whether it is when only a share of 1 - ``confidence`` may be spent on it; with all of it, it is.
    Found by halving, to one per cent, and never too small; ``SMALLEST_P`` stands for everything below it.
    """
    high, low = 0.0, math.log(SMALLEST_P / (1 - confidence))
    if is_broken(math.exp(low)):
        return SMALLEST_P
    while high - low > P_TOLERANCE:
        middle = (high + low) / 2
        high, low = (middle, low) if is_broken(math.exp(middle)) else (high, middle)
    return math.exp(high) * (1 - confidence)


def benjamini_hochberg(p_values: Sequence[float], level: float, claims: int | None = None) -> tuple[bool, ...]:
    """Which of them are upheld if the share of false ones among the upheld is to stay below ``level``, on average.

    Benjamini & Hochberg 1995, step-up: the k smallest, for the largest k with p_(k) ≤ level·k/m. ``claims`` is m where
    more were judged than have a p-value here; what is left out counts as if it had p = 1. Holds for independent
    claims and for those that go wrong together in the same direction (Benjamini & Yekutieli 2001).

    With the p-values of ``p_value`` only failures count, so the share of false ones is even below half the level.
    """
    count = max(len(p_values), claims or 0)
    ordered = sorted(p_values)
    upheld = max((k for k, p in enumerate(ordered, start=1) if p <= level * k / count), default=0)
    return tuple(p <= ordered[upheld - 1] if upheld else False for p in p_values)


def benjamini_yekutieli(p_values: Sequence[float], level: float, claims: int | None = None) -> tuple[bool, ...]:
    """The same for claims that depend on each other in whatever way, as several about one measurement do.

    Benjamini & Yekutieli 2001: the level divided by 1 + 1/2 + … + 1/m.
    """
    count = max(len(p_values), claims or 0)
    return benjamini_hochberg(p_values, level / math.fsum(1 / k for k in range(1, count + 1)), count) if count else ()
