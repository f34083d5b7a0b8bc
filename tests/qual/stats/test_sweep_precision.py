from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol_rules import VerdictRule
from pytest_ssdqual.qual.stats import sweep_precision
from pytest_ssdqual.qual.units import Unit

RULE = VerdictRule()
DEVIATION = Limit(Direction.AT_MOST, 10.0, Unit.PERCENT, "test")
SLOPE = Limit(Direction.AT_LEAST, 0.95, Unit.RATIO, "test")
GROWTH = Limit(Direction.AT_MOST, 1.2, Unit.RATIO, "test")


@pytest.mark.parametrize(
    ("claim", "limit", "percent"),
    [
        (Claim.SCALING_DEVIATION, DEVIATION, 10),
        (Claim.SCALING_SLOPE, SLOPE, 5),
        (Claim.LATENCY_GROWTH_BETWEEN_WIDTHS, GROWTH, 20),
        (Claim.LATENCY_SPREAD_BETWEEN_WIDTHS, GROWTH, 0),
    ],
)
def test_a_tolerance_is_what_a_width_may_be_off(claim: Claim, limit: Limit, percent: float) -> None:
    assert sweep_precision.tolerance_percent(claim, limit) == pytest.approx(percent)


def test_the_tightest_claim_decides_and_never_more_than_the_protocol_asks() -> None:
    both = {Claim.SCALING_DEVIATION: DEVIATION, Claim.SCALING_SLOPE: SLOPE}
    for is_narrowest in (True, False):
        assert sweep_precision.coarse_percent(both, 0.5, 1, is_narrowest=is_narrowest) == pytest.approx(1.5)
        assert sweep_precision.coarse_percent(both, 3, 1, is_narrowest=is_narrowest) == 3
        assert sweep_precision.coarse_percent({}, 1, 1, is_narrowest=is_narrowest) == 1


@given(st.integers(1, 40))
def test_the_width_that_all_are_compared_with_gets_more_time(compared: int) -> None:
    """By the square root of their number (Dunnett 1955); differences are as precise whatever their number is."""
    limits = {Claim.SCALING_DEVIATION: DEVIATION}
    narrowest, other = (
        sweep_precision.coarse_percent(limits, 0.01, compared, is_narrowest=each) for each in (True, False)
    )
    assert (other / narrowest) ** 2 == pytest.approx(math.sqrt(compared), rel=1e-4)
    assert math.hypot(narrowest, other) == pytest.approx(10 * sweep_precision.SHARE, rel=1e-4)


def sweep(*iops: int) -> Sweep:
    """Of two rounds each, narrowest first."""
    rounds = [[each - each // 100, each, each + each // 100] * 4 for each in iops]
    runs = (strategies.run(each, geometry=f"raid0x{width}", rounds=12) for width, each in enumerate(rounds, 2))
    return Sweep(tuple(Measured((run,)) for run in runs))


@pytest.mark.parametrize(("iops", "is_decided"), [((200, 300), True), ((200, 240), True), ((200, 270), False)])
def test_a_sweep_is_decided_away_from_its_limit(iops: tuple[int, ...], is_decided: bool) -> None:
    assert sweep_precision.is_decided(sweep(*iops), {Claim.SCALING_DEVIATION: DEVIATION}, RULE) is is_decided


def test_a_claim_that_does_not_apply_needs_no_more_time() -> None:
    assert sweep_precision.is_decided(sweep(200), {Claim.SCALING_DEVIATION: DEVIATION}, RULE)
