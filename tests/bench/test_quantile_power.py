from __future__ import annotations

import numpy as np
import pytest
from quantile_power import ALLOWED, TailLaw, binomial, ours, point, table, tail

from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.verdict.verdict import Outcome

HOURS = 4 * 3600


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_in_the_long_run_a_tail_has_the_share_it_was_drawn_with(ratio: float) -> None:
    drives = [tail(np.random.default_rng([2, run]), ratio, HOURS) for run in range(40)]
    shares = [drive.slow.sum() / drive.ios.sum() / ALLOWED for drive in drives]
    assert np.mean(shares) == pytest.approx(ratio, abs=4 * np.std(shares) / np.sqrt(len(shares)))
    assert np.std(shares) < 0.1 * ratio
    assert all((drive.slow < drive.ios).all() for drive in drives)


def even(ratio: float) -> TailLaw:
    return TailLaw(np.full(HOURS, 5000 * ALLOWED * ratio), np.full(HOURS, 5000.0))


@pytest.mark.parametrize(("ratio", "outcome"), [(0.9, Outcome.PASS), (1.1, Outcome.FAIL)])
def test_every_rule_tells_an_even_tail_from_the_limit(ratio: float, outcome: Outcome) -> None:
    for rule in (point, binomial, ours(SequentialRule(), VerdictRule())):
        assert rule(even(ratio)).outcome is outcome


def test_the_limit_itself_is_decided_by_nothing_but_a_point() -> None:
    assert point(even(1)).outcome is Outcome.PASS
    assert binomial(even(1)).outcome is Outcome.INCONCLUSIVE
    uneven = TailLaw(np.random.default_rng(1).poisson(50, HOURS).astype(float), np.full(HOURS, 5000.0))
    assert ours(SequentialRule(), VerdictRule())(uneven).outcome is Outcome.INCONCLUSIVE


def test_a_row_tells_shares_and_minutes() -> None:
    rows = table({0.5: [(point(even(0.5)), point(even(2)), point(even(0.5)))]}).splitlines()
    assert rows[-1] == "| 0.50 | 100.0 / 0.0 / 0.0, 10′ | 0.0 / 100.0 / 0.0, 10′ | 100.0 / 0.0 / 0.0, 10′ |"
