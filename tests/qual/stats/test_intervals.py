from __future__ import annotations

import math
import random
from dataclasses import replace
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import run, visited

from pytest_ssdqual.qual.measured.run import Measured, Visited
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, TooFew, student_t
from pytest_ssdqual.qual.stats.intervals import Basis, Scatter, of_repeats, scatters, usual_cells

CALM = [99.9, 100.1, 100.1, 99.9]


def noisy(seed: int, count: int = 40, mean: float = 1_000, scatter: float = 0.02) -> list[float]:
    source = random.Random(seed)  # noqa: S311
    return [mean * source.gauss(1, scatter) for _ in range(count)]


def half_of(cells: list[float], found: Visited, *, are_rates: bool = True) -> float:
    bounds = Basis(visited=found).bounds(cells, [1.0] * len(cells), are_rates=are_rates)
    assert bounds.high - bounds.value == pytest.approx(bounds.value - bounds.low)
    return bounds.high - bounds.value


def test_of_rounds_it_is_students_interval_by_hand() -> None:
    found = Basis().bounds([98, 99, 100, 101, 102], [1] * 5)
    half = 2.776 * math.sqrt(2.5) / math.sqrt(5)
    assert (found.value, found.low, found.high) == pytest.approx((100, 100 - half, 100 + half), abs=1e-3)


def test_a_round_counts_by_its_denominator() -> None:
    # 10 of 100 and 0 of 900 slow: 1 %, not 5 %.
    assert Basis().bounds([10, 0], [100, 900]).value == pytest.approx(0.01)


def test_a_measurement_knows_which_it_is() -> None:
    fixed = run([1_000] * 40, rounds=40)
    assert Basis.of(Measured((fixed, fixed)), ConfidenceLevel(0.9)) == Basis(ConfidenceLevel(0.9), repeats=2)
    cells = Measured((fixed,) * 4, visited())
    assert Basis.of(cells, ConfidenceLevel(0.9)) == Basis(ConfidenceLevel(0.9), visited=cells.visited)
    # What is stated does not change what the looks need.
    assert Basis.of(cells, ConfidenceLevel(0.9)).level == 0.99


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=60), st.floats(1e-3, 1e3))
def test_scaled_series_have_scaled_intervals(values: list[float], factor: float) -> None:
    basis = Basis(visited=visited((2, 2))) if len(values) == 4 else Basis()
    ones = [1.0] * len(values)
    plain, scaled = basis.bounds(values, ones), basis.bounds([each * factor for each in values], ones)
    close = 1e-6 * max(values) * factor
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx(
        (plain.value * factor, plain.low * factor, plain.high * factor), abs=close
    )


def test_of_visits_the_larger_half_width_counts() -> None:
    many = replace(visited((2, 2), level=0.95), between=0.02, between_degrees=6.0, within=0.01, within_degrees=40.0)
    assert half_of(CALM, many) == pytest.approx(student_t(0.95, 6) * 2 / math.sqrt(2))
    few = replace(many, between=0.001)
    assert half_of(CALM, few) == pytest.approx(student_t(0.95, 40) * 1 / 2)


def test_uneven_visits_count_as_fewer() -> None:
    found = replace(visited((2, 6), level=0.95), between=0.02, between_degrees=6.0, within=0.0)
    # 8²/(2² + 6²) visits.
    assert half_of(CALM * 2, found) == pytest.approx(student_t(0.95, 6) * 2 / math.sqrt(1.6))


def test_a_single_visit_has_the_scatter_of_its_cells() -> None:
    found = replace(visited((4,), level=0.95), within=0.01, within_degrees=30.0)
    assert half_of(CALM, found) == pytest.approx(student_t(0.95, 30) * 1 / 2)
    with pytest.raises(TooFew, match="a second visit"):
        half_of([100.0, 100.0], replace(found, cells=(2,), within_degrees=0.0))


def test_point_with_more_scatter_than_its_mix_stands_alone() -> None:
    """85 and 115 in each visit, among points whose cells scatter by 1 %; then 85 in one, and 115 in the other."""
    mix = visited((2, 2), level=0.95, scatter=0.01)
    assert half_of([85.0, 115.0, 85.0, 115.0], mix) == pytest.approx(student_t(0.95, 2) * 30 / math.sqrt(2) / 2)
    assert half_of([85.0, 85.0, 115.0, 115.0], mix) == pytest.approx(
        student_t(0.95, 1) * 30 / math.sqrt(2) / math.sqrt(2)
    )
    # A little more is chance.
    assert half_of([99.0, 101.0, 99.0, 101.0], mix) == half_of(CALM, mix)


def test_a_part_of_a_pool_is_compared_with_its_rest() -> None:
    """Ten times as much as another is chance, and not as much as twenty others."""
    assert not Scatter(10.0, 1).exceeds(Scatter(math.sqrt((100 + 1) / 2), 2))
    assert Scatter(10.0, 1).exceeds(Scatter(math.sqrt((100 + 20) / 21), 21))
    assert not Scatter(1.0, 1).exceeds(Scatter(1.0, 1))
    assert not Scatter(2.0, 1).exceeds(Scatter(1.0, 20))


@given(st.integers(0, 10_000))
def test_one_point_in_a_hundred_speaks_for_itself_by_chance(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    draws = 0
    for _ in range(60):
        squares = [rng.gauss(0, 1) ** 2 for _ in range(21)]
        pool = Scatter(math.sqrt(math.fsum(squares) / 21), 21)
        draws += Scatter(math.sqrt(squares[0]), 1).exceeds(pool)
    assert draws <= 6  # 0.6 are expected


def test_scatters_are_those_of_an_analysis_of_variance() -> None:
    between, within = scatters([98.0, 100, 102, 104], (2, 2))
    assert (between.deviation, between.degrees) == pytest.approx((stdev([99, 103]), 1))
    assert (within.deviation, within.degrees) == pytest.approx((math.sqrt(2), 2))
    assert usual_cells((2, 2)) == 2
    assert usual_cells((1, 3)) == pytest.approx(4 - 10 / 4)


@pytest.mark.parametrize(("below", "above"), [(0.05, 0.0), (0.0, 0.05)])
def test_bias_extends_rates_to_one_side_and_shares_to_both(below: float, above: float) -> None:
    found = replace(visited(scatter=0.001), below=below, above=above)
    basis, ones = Basis(visited=found), [1.0] * 4
    rate, time = basis.bounds(CALM, ones, are_rates=True), basis.time_each(ones, CALM)
    share = basis.bounds(ones, CALM)
    assert ((rate.value - rate.low) / rate.value > 0.05, (rate.high - rate.value) / rate.value > 0.05) == (
        below > 0,
        above > 0,
    )
    # Fewer I/Os take longer.
    assert (time.value, time.low, time.high) == pytest.approx((1 / rate.value, 1 / rate.high, 1 / rate.low))
    assert min(share.value - share.low, share.high - share.value) > 0.05 * share.value


def test_a_share_has_its_own_scatter_and_not_less_than_rates() -> None:
    mix = visited((2, 2), level=0.95, scatter=0.01)
    rough = half_of([10.0, 190, 20, 180], mix, are_rates=False)
    assert rough == pytest.approx(student_t(0.95, 3) * stdev([10.0, 190, 20, 180]) / 2)
    assert half_of([100.0] * 4, mix, are_rates=False) == half_of([100.0] * 4, mix)


def test_what_may_not_happen_at_all_takes_any_time() -> None:
    rare = replace(visited(scatter=0.5), within_degrees=2.0)
    assert Basis(visited=rare).time_each([1e9] * 4, [100.0, 0, 0, 0]).high == math.inf
    with pytest.raises(TooFew, match="I/O was counted"):
        Basis(visited=rare).time_each([1e9] * 4, [0.0] * 4)
    with pytest.raises(TooFew, match="I/O was counted"):
        Basis().bounds([0.0] * 5, [0.0] * 5)
    with pytest.raises(TooFew, match="least 2 rounds,"):
        Basis().bounds([1.0], [1.0])


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_differing_repeats_are_as_certain_as_their_means(seed: int, repeats: int) -> None:
    values = [level + each for level in noisy(seed, repeats, scatter=0.2) for each in noisy(seed + 1, 5, 0, 1)]
    groups = [values[at : at + 5] for at in range(0, len(values), 5)]
    of_means = Basis().bounds([math.fsum(each) for each in groups], [5.0] * repeats)
    found = Basis(repeats=repeats).bounds(values, [1.0] * len(values))
    assert (found.low, found.high) == pytest.approx((of_means.low, of_means.high))


def test_repeats_that_do_not_differ_are_one_series_of_rounds() -> None:
    values, ones = [98.0, 99, 100, 101, 102] * 2, [1.0] * 10
    assert of_repeats(values, 2) is None
    assert Basis(repeats=2).bounds(values, ones) == Basis().bounds(values, ones)
    assert of_repeats(values[:9], 2) is None
    assert of_repeats([100.0] * 10, 2) is None
    assert of_repeats([100.0] * 5 + [101.0] * 5, 2) == Scatter(math.sqrt(5 * 0.5), 1)
