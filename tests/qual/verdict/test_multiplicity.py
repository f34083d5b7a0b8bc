from __future__ import annotations

import math

import pytest

from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew, mean_of_rounds, student_t
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import SHARES, Widening, at, of, rescaled

ROUNDS = [990.0, 1010.0, 1000.0, 1005.0, 995.0]


def of_rounds(share: float) -> Estimate:
    return mean_of_rounds(ROUNDS, Unit.IOPS, ConfidenceLevel(share=share))


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.03, 1e-3, 3e-4, 1e-4])
def test_interpolated_width_is_near_the_computed_one(share: float) -> None:
    found, true = at(of_rounds(1.0), of(of_rounds), share), of_rounds(share)
    assert 0.98 < (found.high - found.value) / (true.high - true.value) < 1.15


@pytest.mark.parametrize("share", [1.0, 0.1, 1e-3])
def test_another_figure_of_as_many_rounds_widens_alike(share: float) -> None:
    other = [330.0, 336.0, 333.0, 335.0, 331.0]
    once = mean_of_rounds(other, Unit.IOPS)
    true = mean_of_rounds(other, Unit.IOPS, ConfidenceLevel(share=share))
    found = at(once, rescaled(of_rounds(1.0), of(of_rounds), once), share)
    assert math.log(found.high / found.value) == pytest.approx(math.log(true.high / true.value), rel=0.05)
    assert math.log(found.value / found.low) == pytest.approx(math.log(true.value / true.low), rel=0.05)


def test_without_a_proportion_nothing_is_known_of_its_widening() -> None:
    once = of_rounds(1.0)
    at_its_end = Estimate(1000, 1000, 1010, 5, Unit.IOPS)
    assert rescaled(once, (), once) == ()
    assert rescaled(at_its_end, of(of_rounds), once) == ()
    (open_end,) = rescaled(once, (Widening(0.1, -math.inf, math.inf),), once)
    assert (open_end.low, open_end.high) == (0, math.inf)


def normal(share: float) -> Estimate:
    half = student_t(1 - 0.05 * share, 10**6)
    return Estimate(1000, 1000 - half, 1000 + half, 10**6, Unit.IOPS)


@pytest.mark.parametrize("share", [0.7, 0.3, 0.05, 2e-3, 1e-4])
def test_of_a_normal_figure_it_is_hardly_narrower(share: float) -> None:
    found, true = at(normal(1.0), of(normal), share), normal(share)
    assert 0.987 < (found.high - found.value) / (true.high - true.value) < 1.01


def test_what_was_recorded_without_is_of_the_fewest_rounds() -> None:
    """As of a drive whose interval grows in an unknown proportion; its n may be I/Os."""
    old = Estimate(1e6, 0.99e6, 1.01e6, 10**7, Unit.NANOSECONDS)
    grown = math.log(at(old, (), 0.01).high / 1e6) / math.log(1.01)
    assert grown == pytest.approx(student_t(1 - 0.0005, 4) / student_t(0.95, 4))
    of_two = Estimate(1000, 990, 1010, 2, Unit.IOPS)
    assert at(of_two, (), 0.1).high > 1000 * 1.01**9


def test_without_a_width_nothing_is_known_among_others() -> None:
    cut = Estimate(1.0, 1.0, 1.5, 5, Unit.RATIO)
    assert at(cut, (), 1.0) == cut
    assert (at(cut, (), 0.1).low, at(cut, (), 0.1).high > 1.5) == (0, True)


def test_a_reading_stays_as_it_is() -> None:
    reading = Estimate(1e6, 0.99e6, 1.01e6, 9, Unit.NANOSECONDS, is_reading=True)
    assert of(lambda share: reading) == ()
    assert at(reading, (), 1e-3) == reading


def test_too_little_evidence_leaves_both_ends_open() -> None:
    def again(share: float) -> Estimate:
        if share < 0.05:
            raise TooFew("too few")
        return of_rounds(share)

    found = at(of_rounds(1.0), of(again), 0.01)
    assert (found.low, found.high) == (0, math.inf)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.05, 1e-6])
def test_an_interval_without_ends_has_none_for_less_either(share: float) -> None:
    endless = (Widening(0.1, -math.inf, math.inf), Widening(0.01, -math.inf, math.inf))
    found = at(of_rounds(1.0), endless, share)
    assert (found.low, found.high) == (0, math.inf)
    assert at(of_rounds(1.0), endless, 1.0) == of_rounds(1.0)


def test_surer_intervals_are_never_narrower() -> None:
    odd = (Widening(0.1, 999, 1001), Widening(0.01, 900, 1100))
    alone = Estimate(1000, 950, 1050, 5, Unit.IOPS)
    assert (at(alone, odd, 0.1).low, at(alone, odd, 0.1).high) == pytest.approx((950, 1050))


def test_a_tail_that_ends_ends() -> None:
    """The interval of a quantile cannot be wider than what was seen."""
    ends = tuple(Widening(share, 900, 1100) for share in SHARES)
    assert at(Estimate(1000, 950, 1050, 5, Unit.IOPS), ends, 1e-9).high == pytest.approx(1100)
