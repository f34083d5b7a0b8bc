from __future__ import annotations

import random

import pytest
from scipy.stats import norm

from pytest_ssdqual.qual.stats import group_sequential


@pytest.mark.parametrize(
    ("looks", "constant"),
    # Pocock 1977, table 1; Jennison & Turnbull 2000, table 2.1: equal steps of information, 5 % two-sided.
    [(1, 1.960), (2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413), (10, 2.555), (20, 2.672)],
)
def test_the_constants_are_the_published_ones(looks: int, constant: float) -> None:
    times = tuple(float(each + 1) for each in range(looks))
    assert norm.isf((1 - group_sequential.nominal_level(times, 0.95)) / 2) == pytest.approx(constant, abs=2e-3)


def test_all_looks_together_err_as_often_as_stated() -> None:
    times = tuple(1.3**each for each in range(8))
    bound = norm.isf((1 - group_sequential.nominal_level(times, 0.90)) / 2)
    source = random.Random(7)  # noqa: S311
    crossed = 0
    for _ in range(1_500):
        at, before, outside = 0.0, 0.0, False
        for each in times:
            at += source.gauss(0, (each - before) ** 0.5)
            before = each
            outside = outside or abs(at) > bound * each**0.5
        crossed += outside
    # Four standard errors.
    assert crossed / 1_500 == pytest.approx(0.10, abs=4 * (0.1 * 0.9 / 1_500) ** 0.5)


@pytest.mark.parametrize("times", [(), (2.0, 2.0), (3.0, 1.0)])
def test_looks_come_one_after_the_other(times: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="growing times"):
        group_sequential.nominal_level(times, 0.95)
