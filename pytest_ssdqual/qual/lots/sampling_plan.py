"""Sampling plans that accept or reject a lot of drives by a sample, and their operating characteristics.

By attributes, a drive is conforming or not and the bad ones are counted. By variables, the drives' figures are taken as
normally distributed, and their mean has to lie k of their standard deviations on the good side of the limit (ISO 3951,
s-method). Fractions nonconforming are 0 to 1 in this module, per cent everywhere else.

The tables are those of single sampling for normal inspection by attributes, ISO 2859-1:1999 (the same: ANSI/ASQ Z1.4).
The master table is not copied cell by cell: sample sizes and AQLs both grow in steps of about 10^(1/5), so the
acceptance number depends only on the sum of the two positions, and so do the arrows between the plans. AQLs below 0.065
% (samples of 315 drives and more) and above 10 % (which count faults, not drives) are left out.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

from pytest_ssdqual.qual.frozen import frozen

#: Per cent nonconforming.
AQLS = (0.065, 0.10, 0.15, 0.25, 0.40, 0.65, 1.0, 1.5, 2.5, 4.0, 6.5, 10.0)

LETTERS = "ABCDEFGHJKLMNPQR"
SAMPLES = (2, 3, 5, 8, 13, 20, 32, 50, 80, 125, 200, 315, 500, 800, 1250, 2000)

#: Largest lot of each row of table 1; the last row is open.
LOTS = (8, 15, 25, 50, 90, 150, 280, 500, 1200, 3200, 10_000, 35_000, 150_000, 500_000)
#: Code letters of those rows, by inspection level.
LEVELS = {
    "S-1": "AAAABBBBCCCCDDD",
    "S-2": "AAABBBCCCDDDEEE",
    "S-3": "AABBCCDDEEFFGGH",
    "S-4": "AABCCDEEFGGHJJK",
    "I": "AABCCDEFGHJKLMN",
    "II": "ABCDEFGHJKLMNPQ",
    "III": "BCDEFGHJKLMNPQR",
}

#: Acceptance number by position of the letter plus position of the AQL.
_ACCEPT = {10: 0, 13: 1, 14: 2, 15: 3, 16: 5, 17: 7, 18: 10, 19: 14, 20: 21}
#: Sum at which the arrow points to the plan above, a smaller sample; at all others without a number it points below.
_UP = 11
_LAST = max(_ACCEPT)
#: Probability of rejecting a lot as good as the AQL, and of accepting one as bad as the limiting quality, as in the
#: tables of ISO 2859 and 3951.
PRODUCERS_RISK, CONSUMERS_RISK = 0.05, 0.10
#: Points of the reported operating characteristic, per cent nonconforming.
POINTS_PERCENT = (0.1, 0.25, 0.5, 1, 2, 5, 10, 15, 20, 30)
#: Fewest drives for a test of normality.
FEWEST_BY_VARIABLES = 3
#: Most drives of a plan; one that needs more is an error in the specification.
MOST = 10_000


@frozen
class TablePlan:
    """A cell of the master table, after following the arrows."""

    #: Code letter of the plan's row, which may differ from the lot's.
    letter: str
    sample: int
    accept: int


def code_letter(lot: int, level: str) -> str:
    """Code letter of a lot of this size; ValueError for a lot below two and for an unknown level."""
    if lot < 2:
        raise ValueError(f"a lot has at least 2 drives, not {lot}")
    if level not in LEVELS:
        raise ValueError(f"{level} is no inspection level; there are {', '.join(LEVELS)}")
    return LEVELS[level][bisect_left(LOTS, lot)]


def plan(letter: str, aql_percent: float) -> TablePlan:
    """Plan of a code letter and an AQL; ValueError if the table has no such column."""
    if aql_percent not in AQLS:
        listed = ", ".join(f"{each:g}" for each in AQLS)
        raise ValueError(f"{aql_percent:g} % is no AQL of the table; there are {listed} %")
    row, column = LETTERS.index(letter), AQLS.index(aql_percent)
    # There is no row above the first.
    step = -1 if row + column > _LAST or (row + column == _UP and row > 0) else 1
    while row + column not in _ACCEPT:
        row += step
    return TablePlan(LETTERS[row], SAMPLES[row], _ACCEPT[row + column])


@frozen
class ByAttributes:
    """Plan by attributes: accept with at most ``accept`` bad drives among ``sample``."""

    sample: int
    accept: int
    #: Origin of the plan: ``ISO 2859-1 level II, AQL 1 %, code letter H``.
    origin: str
    #: Drives in the lot; None if unknown, or for continuous production.
    lot: int | None = None
    aql_percent: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.accept < self.sample:
            raise ValueError(f"{self.accept} bad ones of {self.sample} drives can be no acceptance number")
        _fits(self.sample, self.lot)

    def __str__(self) -> str:
        return f"{self.origin}; n = {self.sample}, Ac {self.accept}"

    def acceptance(self, fraction: float) -> float:
        """Probability of accepting the output of a process with this fraction bad (binomial)."""
        from scipy.special import bdtr

        return float(bdtr(self.accept, self.sample, fraction))

    def acceptance_of_lot(self, bad: int) -> float:
        """Probability of accepting this lot if ``bad`` of its drives are bad (hypergeometric).

        ValueError if the size of the lot is unknown.
        """
        if self.lot is None:
            raise ValueError("how many drives the lot has is not known")
        return _without_replacement(self.lot, bad, self.sample, self.accept)

    def quality(self, acceptance: float) -> float:
        """Fraction bad of a process that is accepted with this probability."""
        from scipy.special import bdtri

        return float(bdtri(self.accept, self.sample, acceptance))

    def limiting_quality(self) -> float:
        """Least fraction bad that is accepted with at most the consumer's risk; of this lot if its size is known.

        A sample without replacement finds more: 7.4 % for 50 of 500 with Ac 1, where a process would be 7.6 %.
        """
        if self.lot is None:
            return self.quality(CONSUMERS_RISK)
        low, high = self.accept, self.lot
        while high - low > 1:  # accepted at ``low``, not at ``high``
            middle = (low + high) // 2
            low, high = (low, middle) if self.acceptance_of_lot(middle) <= CONSUMERS_RISK else (middle, high)
        return high / self.lot


@frozen
class ByVariables:
    """Plan by variables: accept if the mean of ``sample`` drives is at least ``k`` standard deviations inside the
    limit.
    """

    sample: int
    k: float
    origin: str
    lot: int | None = None
    aql_percent: float | None = None

    def __post_init__(self) -> None:
        if self.sample < FEWEST_BY_VARIABLES:
            raise ValueError(f"a plan by variables needs at least {FEWEST_BY_VARIABLES} drives, not {self.sample}")
        _fits(self.sample, self.lot)

    def __str__(self) -> str:
        return f"{self.origin}; n = {self.sample}, k = {self.k:.3f}"

    def acceptance(self, fraction: float) -> float:
        """Probability of accepting drives that are normally distributed with this fraction beyond the limit.

        √n·Q has the noncentral t distribution with n - 1 degrees of freedom and noncentrality √n·z (1 - fraction).
        """
        if not 0 < fraction < 1:
            return 1.0 - fraction
        from scipy.special import nctdtr, ndtri

        root, inside = math.sqrt(self.sample), -float(ndtri(fraction))
        rejected = float(nctdtr(self.sample - 1, inside * root, self.k * root))
        # NaN far out in either tail, where the probability is 0 or 1.
        return float(inside > self.k) if math.isnan(rejected) else 1.0 - rejected

    def quality(self, acceptance: float) -> float:
        """Fraction bad that is accepted with this probability; at least 1e-9 and at most 1 - 1e-9.

        With the k of a good sample hardly any fraction is accepted: k = 8 and n = 24 accept 1e-9 in 5 % of all cases.
        """
        from scipy.optimize import brentq

        best, worst = 1e-9, 1 - 1e-9
        if self.acceptance(best) <= acceptance:
            return best
        if self.acceptance(worst) >= acceptance:
            return worst
        return float(brentq(lambda fraction: self.acceptance(fraction) - acceptance, best, worst, xtol=1e-10))

    def limiting_quality(self) -> float:
        """Fraction bad that is accepted with only the consumer's risk."""
        return self.quality(CONSUMERS_RISK)


Plan = ByAttributes | ByVariables


def indexed_by_aql(lot: int, level: str, aql_percent: float) -> ByAttributes:
    """Plan of ISO 2859-1, single sampling, normal inspection. ValueError for values that its tables do not have.

    If the sample would be as large as the lot, every drive is inspected.
    """
    cell = plan(code_letter(lot, level), aql_percent)
    origin = f"ISO 2859-1 level {level}, AQL {aql_percent:g} %, code letter {cell.letter}"
    sample = min(cell.sample, lot)
    return ByAttributes(sample, min(cell.accept, sample - 1), origin, lot, aql_percent)


def for_limiting_quality(
    ltpd_percent: float, lot: int | None = None, accept: int = 0, risk: float = CONSUMERS_RISK
) -> ByAttributes:
    """Smallest sample that accepts a lot as bad as ``ltpd_percent`` with at most this risk.

    Hypergeometric if the lot's size is known: a lot of 24 with 10 % bad has at least 3 of them, and 13 drives find one
    in nine cases of ten, not 22. ValueError if not even all drives suffice.
    """
    sample = _smallest(ltpd_percent / 100, lot, accept, risk)
    if sample is None:
        bad = f"{math.ceil(lot * ltpd_percent / 100)} bad drives" if lot else f"{ltpd_percent:g} %"
        raise ValueError(
            f"with Ac {accept} no sample distinguishes a lot of {lot or 'any size'} with {bad} from a good one"
        )
    return ByAttributes(sample, accept, f"LTPD {ltpd_percent:g} % at {100 * risk:g} % risk", lot)


def through_two_points(aql_percent: float, ltpd_percent: float, lot: int | None = None) -> ByAttributes:
    """Smallest plan for both risks: 5 % of rejecting at the AQL, 10 % of accepting at the LTPD.

    ValueError if there is no such plan.
    """
    for accept in range(MOST):
        sample = _smallest(ltpd_percent / 100, lot, accept, CONSUMERS_RISK)
        if sample is None or sample > MOST:
            break
        found = ByAttributes(sample, accept, f"AQL {aql_percent:g} %, LTPD {ltpd_percent:g} %", lot, aql_percent)
        if found.acceptance(aql_percent / 100) >= 1 - PRODUCERS_RISK:
            return found
    raise ValueError(f"no plan distinguishes {aql_percent:g} % from {ltpd_percent:g} % in a lot of {lot or 'any size'}")


def variables_through_two_points(
    good: float, bad: float, origin: str, lot: int | None = None, aql_percent: float | None = None
) -> ByVariables:
    """Smallest plan by variables for both risks: k from the fraction ``good``, accepted in 95 % of all cases.

    ValueError if there is no such plan.
    """
    for sample in range(FEWEST_BY_VARIABLES, min(lot or MOST, MOST) + 1):
        k = acceptability(sample, good)
        if k > 0 and (found := ByVariables(sample, k, origin, lot, aql_percent)).acceptance(bad) <= CONSUMERS_RISK:
            return found
    raise ValueError(
        f"no plan by variables distinguishes {100 * good:.3g} % from {100 * bad:.3g} % in a lot of {lot or 'any size'}"
    )


def as_variables(plan: ByAttributes, lot: int | None = None) -> ByVariables:
    """Plan by variables that matches ``plan`` at 95 % and at 10 % acceptance; for a lot of another size if ``lot``.

    The tables of ISO 3951-1 are made from those of ISO 2859-1 in this way. This plan is computed and not looked up, so
    n and k may differ from the standard's in the last digit. ValueError if there is none for so few drives.
    """
    good, bad = plan.quality(1 - PRODUCERS_RISK), plan.quality(CONSUMERS_RISK)
    origin = f"by the s-method of ISO 3951, as n = {plan.sample}, Ac {plan.accept} of {plan.origin}"
    return variables_through_two_points(good, bad, origin, lot or plan.lot, plan.aql_percent)


@lru_cache(maxsize=4096)
def acceptability(sample: int, fraction: float, acceptance: float = 1 - PRODUCERS_RISK) -> float:
    """The k at which ``sample`` drives, this fraction of them beyond the limit, are accepted with this probability."""
    from scipy.special import nctdtrit, ndtri

    root = math.sqrt(sample)
    return float(nctdtrit(sample - 1, -ndtri(fraction) * root, 1 - acceptance)) / root


@lru_cache(maxsize=4096)
def _smallest(fraction: float, lot: int | None, accept: int, risk: float) -> int | None:
    """Smallest sample that accepts at ``fraction`` with at most ``risk``; None if there is none.

    A larger sample contains a smaller one, so it never accepts more often.
    """
    from scipy.special import bdtr

    def suffices(sample: int) -> bool:
        if lot is None:
            return float(bdtr(accept, sample, fraction)) <= risk
        bad = math.ceil(lot * fraction * (1 - 1e-9))
        return _without_replacement(lot, bad, sample, accept) <= risk

    samples = range(accept + 1, (lot or MOST) + 1)
    found = bisect_left(samples, True, key=suffices)
    return samples[found] if found < len(samples) else None


def _without_replacement(lot: int, bad: int, sample: int, accept: int) -> float:
    """Probability of at most ``accept`` bad ones among ``sample`` of a lot with ``bad``; exact in integers.

    Sample and bad drives may change places, which makes the binomial coefficients smaller: both are subsets of the lot,
    and only the size of their overlap counts.
    """
    fewer, more = sorted((bad, sample))
    overlaps = range(min(accept, fewer) + 1)
    ways = sum(math.comb(more, both) * math.comb(lot - more, fewer - both) for both in overlaps)
    return ways / math.comb(lot, fewer)


def _fits(sample: int, lot: int | None) -> None:
    if lot is not None and sample > lot:
        raise ValueError(f"a sample of {sample} drives needs a lot of as many, not of {lot}")
