"""How precisely the widths of a sweep have to be measured, so that claims about all of them are decided.

A claim about a slope or a deviation is decided by its margin, not by figures of a fixed precision. Each width is first
measured as precisely as a part of the claim's tolerance, the narrowest one, with which all are compared, the most; a
sweep with a usual margin is decided by that. While the widths that are known do not decide it, the next ones are
measured to the protocol's precision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule
from pytest_ssdqual.qual.stats.estimate import NotApplicable, TooFew
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import judge_all

#: Half width of the difference of a width and the narrowest one, as a share of the tolerance: a deviation of less than
#: 0.58 of its limit is decided at once. The more, the less time, and the more deviations near the limit stay undecided.
SHARE = 0.3 * math.sqrt(2)


def tolerance_percent(claim: Claim, limit: Limit) -> float:
    """Return by how many per cent IOPS of a width may be off before ``claim`` is broken; 0 for other claims."""
    bound = limit.bound
    tolerances = {
        Claim.SCALING_SLOPE: 100 * (1 - bound),
        Claim.SCALING_DEVIATION: bound,
        Claim.LATENCY_GROWTH_BETWEEN_WIDTHS: 100 * (bound - 1),
    }
    return tolerances.get(claim, 0.0)


def coarse_percent(limits: Mapping[Claim, Limit], finest_percent: float, compared: int, *, is_narrowest: bool) -> float:
    """Return the half width of IOPS, in per cent, that a width needs at first; never below ``finest_percent``.

    All ``compared`` widths are compared with the narrowest one. The time of all is least if that one has √compared
    times as much as each other (Dunnett 1955), so that squares of half widths are as 1 : √compared.
    """
    tolerances = [tolerance_percent(claim, limit) for claim, limit in limits.items()]
    times = math.sqrt(max(1, compared))
    share = SHARE * math.sqrt((1 if is_narrowest else times) / (1 + times))
    return max(finest_percent, round(share * min(tolerances, default=0.0), 6))


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
