from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.steady_state import judge

RULE = SteadyRule()
series = st.lists(st.floats(1, 1e6), min_size=5, max_size=30)


@given(st.floats(1e-3, 1e9), st.integers(2, 30))
def test_a_constant_is_steady_after_one_window(level: float, window: int) -> None:
    rule = SteadyRule(window=window)
    found = judge([level] * window, rule)
    assert found.reached
    assert found.correlation == 0


@given(series)
def test_what_is_within_the_rule_is_at_most_one(values: list[float]) -> None:
    found = judge(values, RULE)
    assert found.reached == (found.unsteadiness <= 1 + 1e-6) or found.unsteadiness == pytest.approx(1)


def test_how_far_from_the_rule_it_is_is_a_figure() -> None:
    ranged = judge([83.0, 117.0, 100.0, 100.0, 100.0], RULE)
    assert ranged.unsteadiness == pytest.approx(1.7)
    assert "34.0 % (20" in ranged.nearest()
    drifting = judge([94.0, 97.0, 100.0, 103.0, 106.0], RULE)
    assert drifting.unsteadiness == pytest.approx(1.2)
    assert "12.0 % (10" in drifting.nearest()
    silent = judge([0.0] * 5, RULE)
    assert not silent.reached
    assert "no I/O" in silent.describe()
    assert (silent.unsteadiness, silent.nearest()) == (float("inf"), "no I/O")


def test_the_line_moves_over_four_rounds_and_not_over_five() -> None:
    # 2.5 per round: 10 over the window of five points, 12.5 if rounds were counted instead of distances.
    line = [95.0, 97.5, 100.0, 102.5, 105.0]
    found = judge(line, RULE)
    assert found.slope_excursion == pytest.approx(10.0)
    assert found.reached
    assert found.correlation == pytest.approx(1.0)
    assert not judge([94.9, 97.45, 100.0, 102.55, 105.1], RULE).reached


def test_the_range_is_the_whole_one_and_not_plus_or_minus() -> None:
    assert judge([90.0, 110.0, 100.0, 110.0, 90.0], RULE).reached
    assert not judge([89.0, 111.0, 100.0, 111.0, 89.0], RULE).reached


def test_only_the_last_window_counts() -> None:
    falling = [4_000.0, 3_000.0, 2_000.0, 1_500.0, 1_200.0, 1_000.0, 1_000.0, 1_000.0, 1_000.0, 1_000.0, 1_000.0]
    assert judge(falling, RULE).average == 1_000
    assert [end for end in range(5, 12) if judge(falling[:end], RULE).reached] == [10, 11]


def test_a_sentence_with_the_figures() -> None:
    assert "4.0 % (20" in judge([98.0, 102.0, 100.0, 102.0, 98.0], RULE).describe()
    assert judge([50.0, 75.0, 100.0, 125.0, 150.0], RULE).describe().startswith("not steady at")


def test_too_short_a_series_is_refused() -> None:
    with pytest.raises(ValueError, match="needs 5 rounds,"):
        judge([1.0] * 4, RULE)


def test_what_comes_round_is_found_and_told() -> None:
    draw = random.Random(1)  # noqa: S311
    rates = [round(1000 + 200 * math.sin(second / 90 * 2 * math.pi) + draw.gauss(0, 20)) for second in range(1200)]
    assert "every 90." in steady_state.repeats(*steady_state.series(strategies.run(rates)))
    assert steady_state.repeats([1000.0] * 100, 1.0) == ""


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=40), st.integers(1, 10))
def test_a_series_has_a_value_for_each_report(iops: list[int], rounds: int) -> None:
    run = strategies.run(iops, rounds=rounds)
    values, step_s = steady_state.series(run)
    assert step_s == 1
    assert values == pytest.approx(iops)
    assert steady_state.series(replace(run, intervals=())) == ((), 1.0)
