from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import strategies

from pytest_ssdqual.qual.stats import steady_state


def test_what_comes_round_is_found_and_told() -> None:
    draw = random.Random(1)  # noqa: S311
    rates = [round(1000 + 200 * math.sin(second / 90 * 2 * math.pi) + draw.gauss(0, 20)) for second in range(1200)]
    run = strategies.run(rates, rounds=5)
    assert steady_state.repeats(*steady_state.series(run)).startswith("; it repeats")
    assert steady_state.repeats([1000.0] * 100, 1.0) == ""


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=40), st.integers(1, 10))
def test_a_series_has_a_value_for_each_report(iops: list[int], rounds: int) -> None:
    values, step_s = steady_state.series(strategies.run(iops, rounds=rounds))
    assert step_s == 1
    assert values == pytest.approx(iops)


def test_a_run_without_a_report_has_no_series() -> None:
    assert steady_state.series(replace(strategies.run([5]), intervals=())) == ((), 1.0)
