"""Rare stalls belong to drives: what all cells of a run prove about each point."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders.strategies import visited, watched

from pytest_ssdqual.qual.measured.run import Exposure, Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.claims import TIMES_PER_HOUR, Claim, Direction, Limit
from pytest_ssdqual.qual.stats import group_sequential, visits
from pytest_ssdqual.qual.stats.estimate import USUAL, ConfidenceLevel, Estimate
from pytest_ssdqual.qual.stats.latency import pooled_end
from pytest_ssdqual.qual.stats.spread import RareEvents
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all

CALM, STALL = 2_000_000, 200_000_000
maxima = st.lists(st.integers(10**6, 10**9), min_size=4, max_size=40)


def four_minutes(*slowest_ns: int, width: int = 4, exposure: Exposure | None = None) -> Measured:
    """24 spells of ten seconds, of an array of four."""
    spells = [*slowest_ns, *[CALM] * (24 - len(slowest_ns))]
    found = watched(spells, spell_s=10.0)
    runs = tuple(replace(each, geometry=Geometry.parse(f"raid0x{width}")) for each in found.runs)
    return Measured(runs, replace(visited(), exposure=exposure))


def of_run(*slowest_ns: int, hours: float = 10.0) -> Exposure:
    """All drives of a run together, for hours; the rest is calm."""
    spells = round(360 * hours / 4)
    slowest = sorted([*slowest_ns, *[CALM] * 100], reverse=True)
    return Exposure(3600 * hours, 3600 * hours, spells, tuple(each / CALM for each in slowest), tuple(slowest))


@pytest.mark.parametrize("claim", [RareEvents.max_latency, RareEvents.over_time])
def test_four_minutes_prove_what_the_whole_run_has_shown(
    claim: Callable[[RareEvents], Estimate],
) -> None:
    alone, among = (claim(RareEvents(four_minutes(exposure=each), USUAL, 10)) for each in (None, of_run()))
    assert (alone.high, bool(alone.unbounded)) == (math.inf, True)
    assert among.high == pytest.approx(CALM if claim is RareEvents.max_latency else 1, rel=0.03)
    assert not among.unbounded


@pytest.mark.parametrize("claim", [RareEvents.max_latency, RareEvents.over_time])
def test_all_visits_of_the_shipped_protocol_prove_a_calm_drive(
    claim: Callable[[RareEvents], Estimate],
) -> None:
    shipped = protocol.load("acceptance")
    assert shipped.visits
    planned, confidence = visits.looks(shipped.visits), shipped.verdict.confidence
    level = group_sequential.nominal_level(tuple(map(float, planned)), confidence)
    calm = watched([CALM] * int(planned[-1] * shipped.visits.cell_s / 10), spell_s=10.0)
    measured = Measured(calm.runs, replace(visited(), level=level))
    found = claim(RareEvents(measured, ConfidenceLevel(confidence), TIMES_PER_HOUR))
    assert math.isfinite(found.high)
    assert not found.unbounded


def test_array_is_credited_with_the_time_of_arrays_only() -> None:
    """Thirty stalls in ten hours of drives, in two and a half of arrays of four: twelve an hour of md, of any width."""
    of_drives = of_run(*[STALL] * 30)
    of_md = replace(of_drives, array_s=of_drives.drive_s / 4)
    by_drives, by_arrays = (
        RareEvents(four_minutes(width=2, exposure=exposure), USUAL, 10).max_latency().high
        for exposure in (of_drives, of_md)
    )
    assert by_drives < 1.1 * CALM
    assert by_arrays > 0.9 * STALL


def test_a_wide_array_has_more_stalls_than_a_narrow_one() -> None:
    """Ten hours of drives with thirty stalls: three an hour of each; twelve an hour of four, 48 of sixteen."""
    exposure = of_run(*[STALL] * 30)
    narrow, wide = (
        RareEvents(four_minutes(width=width, exposure=exposure), USUAL, 10).max_latency() for width in (2, 4)
    )
    assert narrow.high < 1.1 * CALM
    assert wide.high > 0.9 * STALL


def test_point_with_more_stalls_has_only_its_own_evidence() -> None:
    """Four minutes are a thirtieth of the run: three of its four stalls are no chance."""
    exposure = of_run(*[STALL] * 4)
    lucky, unlucky = (
        RareEvents(four_minutes(*each, exposure=exposure), USUAL, 10).max_latency() for each in ([], [STALL] * 3)
    )
    assert lucky.high < 1.1 * CALM
    assert unlucky.high > 0.9 * STALL


@settings(max_examples=20)
@given(maxima, maxima, st.integers(2, 16), st.floats(1, 60))
def test_exposure_moves_only_the_upper_end_and_only_down(
    own: list[int], others: list[int], width: int, per_hour: float
) -> None:
    """Whatever other points show, none fails for it: a failure is a lower end above the limit."""
    exposure = of_run(*own, *others)
    for claim in (RareEvents.max_latency, RareEvents.over_time):
        alone = claim(RareEvents(four_minutes(*own[:24], width=width), USUAL, per_hour))
        among = claim(RareEvents(four_minutes(*own[:24], width=width, exposure=exposure), USUAL, per_hour))
        assert among.low <= alone.low
        assert among.low <= among.value <= among.high <= alone.high


@settings(max_examples=20)
@given(maxima, maxima, st.floats(1e6, 1e9))
def test_exposure_never_fails_a_point(own: list[int], others: list[int], limit_ns: float) -> None:
    limit = Limit(Direction.AT_MOST, limit_ns, Unit.NANOSECONDS, "test")
    (alone,) = judge_all(Claim.MAX_LATENCY, four_minutes(*own[:24]), limit)
    (among,) = judge_all(Claim.MAX_LATENCY, four_minutes(*own[:24], exposure=of_run(*own, *others)), limit)
    assert among.outcome is not Outcome.FAIL or alone.outcome is Outcome.FAIL


def test_nothing_is_proved_beyond_the_maxima_that_are_kept() -> None:
    # A thousand clusters would be allowed, and only the three largest maxima are known.
    assert pooled_end([], [9.0, 7.0, 5.0], 0.01, 10_000, 1_000.0, 0.95) == 5.0
    assert pooled_end([], [], 0.01, 10_000, 1_000.0, 0.95) == math.inf
    assert pooled_end([], [9.0], 0.01, 10_000, 1.0, 0.95) == math.inf


def test_equal_points_are_rarely_taken_for_different_ones() -> None:
    """Stalls of drives at a fifth of what is allowed: a point of 24 is proved good by the run in nearly all cases."""
    rng = random.Random(5)  # noqa: S311
    proved = 0
    for _ in range(200):
        spells = [[STALL if rng.random() < 0.005 else CALM for _ in range(24)] for _ in range(24)]
        of_all = sorted((each for point in spells for each in point), reverse=True)
        exposure = Exposure(24 * 240.0 * 4, 24 * 240.0, 24 * 24, (), tuple(of_all[:128]))
        proved += RareEvents(four_minutes(*spells[0], exposure=exposure), USUAL, 10).max_latency().high < STALL / 2
    assert proved > 185
