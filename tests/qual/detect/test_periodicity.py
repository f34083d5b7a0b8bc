from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.signal import lfilter

from pytest_ssdqual.qual.detect.periodicity import CYCLES, LONGEST, Rhythm, _log_chance, period

pytestmark = pytest.mark.slow

Floats = NDArray[np.float64]
MEAN = 10_000.0


def red(rng: np.random.Generator, size: int, phi: float, variation: float = 0.03) -> Floats:
    """AR(1) of standard deviation ``variation``, settled from the start."""
    steps = rng.normal(0, variation * math.sqrt(1 - phi**2), size + 1_000)
    noise: Floats = lfilter([1.0], [1.0, -phi], steps)[1_000:]
    return noise


def dips(size: int, every: float, length: int, depth: float, first: float) -> Floats:
    at = (np.arange(size) - first) % every
    return np.where(at < length, -depth, 0.0)


def swing(size: int, every: float, amplitude: float, phase: float = 0.0) -> Floats:
    wave: Floats = amplitude * np.sin(2 * np.pi * np.arange(size) / every + phase)
    return wave


def look(series: Floats, step_s: float = 1.0) -> Rhythm | None:
    return period((MEAN * (1 + series)).tolist(), step_s)


@pytest.mark.parametrize(("size", "phi"), [(120, 0.95), (600, 0.95), (1_800, 0.95), (600, 0.0), (600, 0.99)])
def test_noise_is_hardly_ever_called_periodic(size: int, phi: float) -> None:
    rng = np.random.default_rng(size)
    alarms = sum(look(red(rng, size, phi)) is not None for _ in range(60))
    assert alarms <= 0.05 * 60


def test_neither_are_stalls_steps_and_decays() -> None:
    rng = np.random.default_rng(5)
    size = 900
    at = np.arange(size)

    def series() -> tuple[Floats, ...]:
        noise = red(rng, size, 0.7, 0.01)
        return (
            noise - 0.5 * (rng.random(size) < 6 / size),
            noise + 0.2 * (at < rng.uniform(0.2, 0.8) * size),
            noise + 0.5 * np.exp(-at / rng.uniform(50, 500)),
            np.cumsum(rng.normal(0, 0.003, size)),
        )

    alarms = sum(look(each) is not None for _ in range(20) for each in series())
    assert alarms <= 0.05 * 80


def test_a_few_stalls_have_a_common_measure_but_no_rhythm() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for number in range(50):
        series = red(rng, 1_800, 0.5, 0.01)
        series[rng.integers(0, 1_800, 3 + number % 3)] -= 0.5
        alarms += look(series) is not None
    assert alarms <= 0.04 * 50


@pytest.mark.parametrize("every", [777, 900])
def test_rare_dips_are_not_told_with_a_part_of_their_period(every: int) -> None:
    found = look(red(np.random.default_rng(every), 7_200, 0.8, 0.02) + dips(7_200, every, 3, 0.5, 37))
    assert found is not None
    assert found.period_s == pytest.approx(every, rel=0.01)


@settings(max_examples=8, deadline=None)
@given(
    st.floats(40, 200),
    st.integers(3, 8),
    st.floats(0.2, 0.6),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_short_dips_are_found(every: float, length: int, depth: float, first: float, seed: int) -> None:
    noise = red(np.random.default_rng(seed), 1_800, 0.8, 0.02)
    found = look(noise + dips(1_800, every, length, depth, first * every))
    assert found is not None
    assert found.period_s == pytest.approx(every, rel=0.02)
    assert found.strength > 0.2
    # Half of the dip's depth; few waves cannot follow all of it, and noise adds a little.
    mean = 1 - depth * length / every
    assert 0.35 * depth < found.amplitude_percent / 100 * mean < 0.75 * depth + 0.03


@settings(max_examples=8, deadline=None)
@given(st.floats(30, 250), st.floats(0.05, 0.3), st.floats(0, 7), st.integers(0, 2**32))
def test_so_are_swings(every: float, amplitude: float, phase: float, seed: int) -> None:
    noise = red(np.random.default_rng(seed), 1_800, 0.7, 0.02)
    found = look(noise + swing(1_800, every, amplitude, phase))
    assert found is not None
    assert found.period_s == pytest.approx(every, rel=0.04)
    assert found.strength == pytest.approx(amplitude**2 / (amplitude**2 + 2 * 0.02**2), abs=0.1)
    assert found.amplitude_percent == pytest.approx(100 * amplitude, rel=0.2)


@pytest.mark.parametrize("every", [7.5, 450.0])
def test_a_pattern_without_any_noise(every: float) -> None:
    for pattern in (swing(3_600, every, 0.1), dips(3_600, every, 3, 0.3, 2.0)):
        found = look(pattern)
        assert found is not None
        assert found.period_s == pytest.approx(every, rel=0.02)
        assert found.strength > 0.5


def test_a_drift_is_no_part_of_it() -> None:
    drift = np.linspace(-0.5, 0.5, 1_200)
    noise = red(np.random.default_rng(1), 1_200, 0.5, 0.01)
    assert look(drift + noise) is None
    found = look(drift + noise + swing(1_200, 100, 0.05))
    assert found is not None
    assert found.period_s == pytest.approx(100, rel=0.02)
    assert found.amplitude_percent == pytest.approx(5, rel=0.2)


def test_three_cycles_have_to_be_seen() -> None:
    noise = red(np.random.default_rng(2), 1_000, 0.0, 0.01)
    for cycles, is_seen in ((CYCLES - 1, False), (CYCLES + 1, True)):
        found = look(noise + swing(1_000, 1_000 / cycles, 0.2))
        assert (found is not None) is is_seen


@pytest.mark.parametrize(("strength", "is_told"), [(0.008, False), (0.06, True)])
def test_a_rhythm_that_explains_hardly_anything_is_not_told(strength: float, is_told: bool) -> None:
    """Both are far beyond chance in so long a series."""
    noise = red(np.random.default_rng(8), 7_200, 0.0, 0.02)
    found = look(noise + swing(7_200, 90, 0.02 * math.sqrt(2 * strength)))
    assert (found is not None) is is_told


def test_the_bound_of_a_chance_is_one_up_to_the_mean() -> None:
    assert _log_chance(3.0, 4) == _log_chance(4.0, 4) == 0
    assert _log_chance(20.0, 4) == pytest.approx(4 - 20 + 4 * math.log(5))


def test_the_step_is_the_unit_of_time() -> None:
    found = look(red(np.random.default_rng(3), 600, 0.5, 0.01) + swing(600, 45, 0.12), 10.0)
    assert found is not None
    assert found.period_s == pytest.approx(450, rel=0.02)


def test_a_day_of_seconds_is_looked_at_in_longer_steps() -> None:
    size = 86_400
    noise = red(np.random.default_rng(4), size, 0.9, 0.03)
    found = look(noise + dips(size, 900, 60, 0.2, 30))
    assert size > LONGEST
    assert found is not None
    assert found.period_s == pytest.approx(900, rel=0.01)


@pytest.mark.parametrize("values", [[], [1.0] * 5, [1_000.0] * 500, [0.0] * 500])
def test_nothing_moves_so_nothing_comes_round(values: list[float]) -> None:
    assert period(values, 1.0) is None


@given(st.lists(st.floats(0, 1e7), max_size=60), st.floats(0.1, 60))
def test_of_any_series_the_answer_makes_sense(values: list[float], step_s: float) -> None:
    found = period(values, step_s)
    if found is not None:
        assert 0 < found.strength <= 1
        assert 2 * step_s < found.period_s <= len(values) * step_s / (CYCLES - 0.1)
        assert math.isfinite(found.amplitude_percent)


def test_the_sentence() -> None:
    assert Rhythm(450.0, 0.6, 12.3).describe() == "repeats every 7.5 min (±12 % of the mean)"
    assert Rhythm(90.0, 0.6, 0.83).describe() == "repeats every 90 s (±0.83 % of the mean)"
