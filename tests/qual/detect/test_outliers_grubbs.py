from __future__ import annotations

import math
from statistics import fmean

from pytest_ssdqual.qual.detect.outliers import Grubbs, grubbs, of_positive


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
