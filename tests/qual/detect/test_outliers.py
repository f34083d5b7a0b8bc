from __future__ import annotations

import math
import statistics
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import Grubbs, grubbs, of_positive

figures = st.lists(st.floats(1, 1e6), min_size=1, max_size=12)


@given(figures)
def test_a_spread_holds_all_figures(values: list[float]) -> None:
    found = outliers.spread(values)
    assert (found.n, found.least, found.most) == (len(values), min(values), max(values))
    assert found.least <= found.median <= found.most
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert (found.deviation is None) == (len(values) == 1)


def test_of_nothing_there_is_no_spread() -> None:
    with pytest.raises(ValueError, match="least one figure"):
        outliers.spread([])
    assert outliers.spread([0.0, 0.0]).range_percent is None
    assert outliers.spread([90.0, 100.0, 120.0]).range_percent == pytest.approx(30)


def test_one_stands_out_by_its_modified_z_score() -> None:
    # By hand: median 100, median absolute deviation 1, so 0.6745 * 40 / 1.
    found = outliers.standing_out([99, 100, 101, 100, 60, 101])
    assert found
    assert (found.index, round(found.score, 2)) == (4, round(-0.6745 * 40 / 1, 2))
    # 0.6745 * 5 / 1 is 3.37, 0.6745 * 5.5 / 1 is 3.71.
    assert outliers.standing_out([98, 99, 100, 101, 105]) is None
    assert outliers.standing_out([98, 99, 100, 101, 105.5])


def test_where_most_are_equal_the_mean_deviation_is_used() -> None:
    # Mean absolute deviation 10 / 6; 10 / (1.253314 * 10 / 6) is 4.79.
    found = outliers.standing_out([5, 5, 5, 5, 5, 15])
    assert found
    assert found.score == pytest.approx(4.787, abs=0.001)
    assert outliers.standing_out([5.0] * 6) is None


def test_figure_within_its_interval_does_not_stand_out() -> None:
    values = [5.0, 5.0, 5.0, 5.0, 5.0, 6.0]
    assert outliers.standing_out(values, [(4, 6)] * 5 + [(4.9, 7)]) is None
    assert outliers.standing_out(values, [(4, 6)] * 5 + [(5.1, 7)])


@given(st.lists(st.floats(1, 100), max_size=outliers.FEWEST - 1))
def test_of_few_none_stands_out(values: list[float]) -> None:
    assert outliers.standing_out(values) is None


@given(st.lists(st.integers(1, 100), min_size=5, max_size=12), st.sampled_from([0.5, 2.0, 1024.0]), st.integers(0, 99))
def test_who_stands_out_does_not_depend_on_the_unit(values: list[int], times: float, shift: int) -> None:
    one = outliers.standing_out([float(each) for each in values])
    other = outliers.standing_out([each * times + shift for each in values])
    assert (one is None) == (other is None)
    if one and other:
        assert other.index == one.index
        assert other.score == pytest.approx(one.score)


def test_grubbs_example() -> None:
    """NIST/SEMATECH handbook 1.3.5.17.1: G = 2.4687 for 245.57, beyond the critical value of 2.032 at 5 %."""
    found = grubbs([199.31, 199.53, 200.19, 200.82, 201.92, 201.95, 202.18, 245.57])
    assert found is not None
    assert (found.index, round(found.statistic, 3)) == (7, 2.469)
    assert found.p_value < 1e-6
    # At the critical value of a two-sided test (2.126 for n = 8) it is the level itself.
    critical = math.sqrt(49 / 8 * t_squared(8, 0.05) / (6 + t_squared(8, 0.05)))
    assert round(critical, 3) == 2.127


def t_squared(n: int, level: float) -> float:
    from scipy.stats import t

    return float(t.ppf(1 - level / (2 * n), n - 2)) ** 2


def test_an_outlier_by_chance_is_as_rare_as_its_p_value_says() -> None:
    import numpy as np

    random = np.random.default_rng(5)
    found = [grubbs(random.normal(0, 1, 8).tolist()) for _ in range(2_000)]
    share = fmean(each is not None and each.p_value <= 0.05 for each in found)
    assert 0.035 < share < 0.065  # three standard errors
    assert grubbs([1, 2]) is None
    assert grubbs([1, 1, 1]) is None
    assert grubbs([1.0, 1.0, 1.0, 2.0]) == Grubbs(3, 1.5, 0.0)


def test_figures_are_compared_in_per_cent_and_zero_is_farthest() -> None:
    found = of_positive([300, 300 * 1.01, 300 / 1.01, 0])
    assert found is not None
    assert found.index == 3
    halves, twice = of_positive([100, 101, 99, 50]), of_positive([100, 101, 99, 200])
    assert halves is not None
    assert twice is not None
    assert math.isclose(halves.statistic, twice.statistic, rel_tol=1e-3)
