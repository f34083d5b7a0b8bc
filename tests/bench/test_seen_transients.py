"""The bench of transients: its fit finds the height that a series has, and no more of one than the series shows."""

from __future__ import annotations

import numpy as np
import pytest
import seen_transients
from seen_transients import TIME_CONSTANTS, admitted, fitted, heights

SECONDS = 7_200
TAU_S = 60.0 * TIME_CONSTANTS[0]


@pytest.mark.parametrize("height", [-0.1, 0.0, 0.05])
def test_height_of_a_known_transient_is_found(height: float) -> None:
    seconds = np.arange(SECONDS) + 0.5
    noise = np.random.default_rng(1).normal(0, 0.02, SECONDS)
    series = 10_000 * (1 + height * np.exp(-seconds / TAU_S)) * (1 + noise)
    found, error = fitted(series, TAU_S)
    assert found == pytest.approx(height, abs=4 * error)
    assert 0 < error < 0.01


def test_longer_measurements_admit_less() -> None:
    short, long = (admitted("flat", 5, 3, minutes, TIME_CONSTANTS[0]) for minutes in (39, 120))
    assert long[0] < short[0]
    assert long[1] < short[1]
    assert all(upper > largest for largest, upper in (short, long))


def test_table_has_a_line_for_each_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_transients, "LENGTHS", (39,))
    head, _, line = heights(["flat"], 2, 1)
    assert head.count("time constant") == len(TIME_CONSTANTS) == line.count("upper")
