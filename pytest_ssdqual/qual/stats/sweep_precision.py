"""How precisely the widths of a sweep have to be measured, so that claims about all of them are decided.

A claim about a slope or a deviation is decided by its margin, not by figures of a fixed precision. Each width is first
measured as precisely as a part of the claim's tolerance; a sweep with a usual margin is decided by that. While the
widths that are known do not decide it, the next ones are measured to the protocol's precision.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.spec.protocol import VerdictRule
from pytest_ssdqual.qual.stats.estimate import NotApplicable, TooFew
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import judge_all

#: Half width of each width's interval, as a share of the tolerance. The difference of two widths has √2 of it, so that
#: a deviation of less than 0.58 of its limit is decided at once. A point of simulated drives takes a third of the time
#: that ±1 % take with 0.35, and half of it with 0.2; the more, the more deviations near the limit stay undecided.
SHARE = 0.3


def tolerance_percent(claim: Claim, limit: Limit) -> float:
    """Return by how many per cent IOPS of a width may be off before ``claim`` is broken; 0 for other claims."""
    bound = limit.bound
    tolerances = {
        Claim.SCALING_SLOPE: 100 * (1 - bound),
        Claim.SCALING_DEVIATION: bound,
        Claim.LATENCY_GROWTH_BETWEEN_WIDTHS: 100 * (bound - 1),
    }
    return tolerances.get(claim, 0.0)


def coarse_percent(limits: Mapping[Claim, Limit], finest_percent: float) -> float:
    """Return the half width of IOPS, in per cent, that a width needs at first; never below ``finest_percent``."""
    tolerances = [tolerance_percent(claim, limit) for claim, limit in limits.items()]
    return max(finest_percent, round(SHARE * min(tolerances, default=0.0), 6))


def is_decided(sweep: Sweep, limits: Mapping[Claim, Limit], rule: VerdictRule, family: ErrorControl = ALONE) -> bool:
    """Return whether the widths known so far decide all claims; a claim that does not apply needs no more time."""
    for claim, limit in limits.items():
        try:
            verdicts = judge_all(claim, sweep, limit, rule.confidence, rule.indifference_percent, family)
        except TooFew:
            return False
        except NotApplicable:
            continue
        if not all(verdict.is_settled for verdict in verdicts):
            return False
    return True
