from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import norm

from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import group_sequential, latency


@pytest.mark.parametrize(
    ("looks", "constant"),
    # Pocock 1977, table 1; Jennison & Turnbull 2000, table 2.1: equal steps of information, 5 % two-sided.
    [(1, 1.960), (2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413), (10, 2.555), (20, 2.672)],
)
def test_the_constants_are_the_published_ones(looks: int, constant: float) -> None:
    times = tuple(float(each + 1) for each in range(looks))
    assert norm.isf((1 - group_sequential.nominal_level(times, 0.95)) / 2) == pytest.approx(constant, abs=2e-3)


def test_more_looks_have_to_be_surer() -> None:
    levels = [group_sequential.nominal_level(tuple(1.2**each for each in range(count)), 0.95) for count in (1, 3, 9)]
    assert levels == sorted(levels)
    assert levels[0] == 0.95
    # Bonferroni is on the safe side of what is exact.
    assert levels[-1] < 1 - 0.05 / 9


def test_all_looks_together_err_as_often_as_stated() -> None:
    times = tuple(1.3**each for each in range(8))
    bound = norm.isf((1 - group_sequential.nominal_level(times, 0.90)) / 2)
    source = random.Random(7)  # noqa: S311
    crossed = 0
    for _ in range(4_000):
        at, before, outside = 0.0, 0.0, False
        for each in times:
            at += source.gauss(0, (each - before) ** 0.5)
            before = each
            outside = outside or abs(at) > bound * each**0.5
        crossed += outside
    # Four standard errors.
    assert crossed / 4_000 == pytest.approx(0.10, abs=4 * (0.1 * 0.9 / 4_000) ** 0.5)


@pytest.mark.parametrize("times", [(), (2.0, 2.0), (3.0, 1.0)])
def test_looks_come_one_after_the_other(times: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="growing times"):
        group_sequential.nominal_level(times, 0.95)


def test_looks_that_decide_nothing_about_extremes_take_no_share_of_their_error() -> None:
    rule = SequentialRule(first_s=100, growth=2, limit_s=1_600, observe_s=300)
    levels = [group_sequential.extremes_level(rule, 0.95, number) for number in range(1, 6)]
    assert levels[:2] == [group_sequential.level(rule, 0.95)] * 2
    assert levels[2:] == [group_sequential.nominal_level((400, 800, 1_600), 0.95)] * 3
    assert levels[2] < levels[1]


def test_extremes_that_are_observed_to_the_end_have_one_look() -> None:
    late = SequentialRule(first_s=100, growth=2, limit_s=1_600, observe_s=1_600)
    assert group_sequential.extremes_level(late, 0.95, 5) == 0.95
    # No look is late enough: the last one decides at the level of all.
    never = SequentialRule(first_s=100, growth=2, limit_s=1_600, observe_s=9_000)
    assert group_sequential.extremes_level(never, 0.95, 5) == group_sequential.level(never, 0.95)


def test_claims_about_extremes_err_no_more_often_than_stated() -> None:
    """Arrays whose stalls come exactly as often as allowed, at the looks that may decide about them."""
    rule, per_spell, runs, errors = SequentialRule(), 1 - np.exp(-10 / 360), 1_000, 0
    looks = [number for number, each in enumerate(group_sequential.look_times(rule), 1) if each >= rule.observe_s]
    counts = [int(group_sequential.look_times(rule)[number - 1] / 10) for number in looks]
    level = group_sequential.extremes_level(rule, 0.95, looks[0])
    interval = lru_cache(maxsize=None)(lambda hit, count: latency.clusters(hit, count, level))
    for row in np.cumsum(np.random.default_rng(8).random((runs, counts[-1])) < per_spell, axis=1):
        intervals = (interval(int(row[count - 1]), count) for count in counts)
        errors += any(
            not each.low <= per_spell * count <= each.high for each, count in zip(intervals, counts, strict=True)
        )
    # Four standard errors. At 95 % each, looks would err in a fourth of the runs.
    assert errors / runs <= 0.05 + 4 * (0.05 * 0.95 / runs) ** 0.5
    assert errors
