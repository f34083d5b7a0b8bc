from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stopping_rules import CLASSICAL, Ending, cells, fio, fixed, intel, ours, rules, snia

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.group_sequential import Decision, Question
from pytest_ssdqual.qual.verdict.verdict import Outcome

HOURS = 4 * 3600


@pytest.mark.parametrize("rule", CLASSICAL.values(), ids=CLASSICAL)
def test_a_constant_is_told_from_the_limit(rule: object) -> None:
    assert callable(rule)
    assert rule(np.full(HOURS, 1.0), 1.0).outcome is Outcome.PASS
    assert rule(np.full(HOURS, 0.999), 1.0).outcome is Outcome.FAIL


def test_only_the_last_ten_of_twelve_minutes_count() -> None:
    series = np.full(HOURS, 2.0)
    series[120:720] = 1.0
    assert fixed(series, 1.001) == Ending(Outcome.FAIL, 720)
    series[7320:7920] = 0.5
    assert intel(series, 0.501) == Ending(Outcome.FAIL, 7920)


def test_snia_waits_for_five_steady_minutes() -> None:
    series = np.concatenate((np.repeat([2.0, 1.5, 1.2, 1.0], 60), np.full(3600, 1.0)))
    # The range of minutes 3…7 is 0.2 of 1.04, but their line falls by more than a tenth of that.
    assert snia(series, 1.0) == Ending(Outcome.PASS, 8 * 60)


def test_snia_gives_up_after_25_rounds() -> None:
    falling = np.exp(-np.arange(HOURS) / 600)
    assert snia(falling, 0.001) == Ending(Outcome.INCONCLUSIVE, 25 * 60)


@given(st.integers(0, 1000), st.integers(2, 40), st.floats(0.01, 3))
def test_fio_stops_at_the_first_window_that_is_level(seed: int, window: int, percent: float) -> None:
    series = 1 + 0.05 * np.random.default_rng(seed).standard_normal(120).cumsum() ** 2
    found = fio(window, percent)(series, 1.1)
    for end in range(window, len(series) + 1):
        part = series[end - window : end]
        slope, _ = np.polyfit(np.arange(window), part, 1)
        if abs(slope) < percent / 100 * part.mean() * (1 - 1e-9):
            assert found == Ending(Outcome.PASS if part.mean() >= 1.1 else Outcome.FAIL, end)
            return
    assert found == Ending(Outcome.INCONCLUSIVE, len(series))


def test_cells_leave_out_what_is_not_a_whole_one() -> None:
    assert cells(np.array([1.0, 3.0, 5.0, 7.0, 100.0]), 2).tolist() == [2.0, 6.0]


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(ValueError, match="no rule guess"):
        rules(("fixed", "guess"))


def test_ours_is_fed_what_fio_reports_and_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each look it asks the product's own rule, about what fio had reported by then."""
    seen: list[tuple[int, float]] = []

    def decide(measured: Measured, question: Question, *_: object) -> Decision:
        seen.append((len(measured.runs[0].intervals), measured.iops / question.limits[Claim.STEADY_IOPS].bound))
        return Decision(done=len(seen) == 2)

    monkeypatch.setattr(group_sequential, "decide", decide)
    settings = SequentialRule(first_s=8, growth=1.5, limit_s=100, report_s=4)
    found = ours(settings, VerdictRule(confidence=0.9))(np.full(100, 0.5), 1.0)
    assert (found.outcome, found.seconds) == (Outcome.INCONCLUSIVE, 12)
    assert seen == [(2, 0.5), (3, 0.5)]
