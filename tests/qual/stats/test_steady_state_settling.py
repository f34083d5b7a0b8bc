from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.qual.stats import steady_state


def test_the_drift_is_from_one_end_to_the_other() -> None:
    run = strategies.run([1000 + second for second in range(-300, 300)], rounds=40)
    found = steady_state.of(run)
    assert found.drift_percent == pytest.approx(60, rel=0.01)
    assert found.correlation > 0.8
    assert found.rhythm is None


def test_independent_rounds_have_no_drift_and_no_correlation() -> None:
    draw = random.Random(1)  # noqa: S311
    run = strategies.run([round(draw.gauss(1000, 50)) for _ in range(2000)], rounds=40)
    found = steady_state.of(run)
    assert abs(found.drift_percent) < 2
    assert abs(found.correlation) < 0.4


def test_what_comes_round_is_found_and_told() -> None:
    draw = random.Random(1)  # noqa: S311
    rates = [round(1000 + 200 * math.sin(second / 90 * 2 * math.pi) + draw.gauss(0, 20)) for second in range(1200)]
    run = strategies.run(rates, rounds=5)
    found = steady_state.of(run).rhythm
    assert found
    assert found.period_s == pytest.approx(90, rel=0.05)
    assert steady_state.repeats(*steady_state.series(run)).startswith("; it repeats every 90.")
    assert steady_state.repeats([1000.0] * 100, 1.0) == ""


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=40), st.integers(1, 10))
def test_a_series_has_a_value_for_each_report(iops: list[int], rounds: int) -> None:
    values, step_s = steady_state.series(strategies.run(iops, rounds=rounds))
    assert step_s == 1
    assert values == pytest.approx(iops)


def test_without_io_nothing_is_told() -> None:
    found = steady_state.of(strategies.run([0] * 20))
    assert (found.drift_percent, found.correlation, found.rhythm) == (0, 0, None)
    assert steady_state.series(replace(strategies.run([5]), intervals=())) == ((), 1.0)
