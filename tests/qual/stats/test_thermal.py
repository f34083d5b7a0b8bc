"""Heat of drives during a measurement, by their own sensors and counters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import run, seen, seen_drive

from pytest_ssdqual.qual.measured.environment import DriveTemperature
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.drive_counters import sustained_temperature, throttled_time
from pytest_ssdqual.qual.stats.estimate import USUAL, TooFew
from pytest_ssdqual.qual.units import Unit


def measured(*runs: list[DriveTemperature], seconds: float = 600.0) -> Measured:
    """Fio processes of an array, with the heat of each member."""
    return Measured(
        tuple(
            replace(
                run([1000] * 5, geometry="raid5x3"),
                seen=replace(
                    seen([replace(seen_drive(f"S{index}", None, None), heat=each) for index, each in enumerate(heat)]),
                    seconds=seconds,
                ),
            )
            for heat in runs
        )
    )


def test_the_hottest_member_of_all_repeats_counts() -> None:
    found = sustained_temperature(measured([DriveTemperature(61), DriveTemperature(70)], [DriveTemperature(66)]), USUAL)
    assert (found.low, found.value, found.high, found.n) == (70, 70, 70, 3)
    assert (found.unit, found.is_reading) == (Unit.CELSIUS, True)


@pytest.mark.parametrize(
    ("heat", "ends"),
    [
        ([DriveTemperature(too_warm_s=0)], (0, 0, 0)),
        ([DriveTemperature(too_warm_s=None, events=0)], (0, 0, 0)),
        ([DriveTemperature(too_warm_s=30), DriveTemperature(too_warm_s=3)], (5, 5, 5)),
        ([DriveTemperature(too_warm_s=60)], (0, 10, 20)),  # a count of minutes
        ([DriveTemperature(too_warm_s=660)], (100, 100, 100)),  # warning and thermal management overlap
        # A minute too warm, in which it may have been throttled or not.
        ([DriveTemperature(too_warm_s=127, counted_in_s=67)], (67 / 6, 67 / 6, 187 / 6)),
        ([DriveTemperature(too_warm_s=67, counted_in_s=67)], (67 / 6, 67 / 6, 67 / 6)),
    ],
)
def test_share_of_the_time(heat: list[DriveTemperature], ends: tuple[float, float, float]) -> None:
    found = throttled_time(measured(heat), USUAL)
    assert (found.low, found.value, found.high) == pytest.approx(ends)


def test_minutes_of_processes_are_off_by_their_root() -> None:
    """The counter carries what is left of a minute over from one process to the next."""
    cells = [[DriveTemperature(too_warm_s=60, counted_in_s=0)]] * 6
    found = throttled_time(measured(*cells, seconds=65.0), USUAL)
    off = 60 * 6**0.5
    assert (found.low, found.high) == pytest.approx((100 * (360 - off) / 390, 100))
    assert found.value == pytest.approx(100 * 60 / 65)
    seldom = [[DriveTemperature(too_warm_s=60 * (number == 7), counted_in_s=0)] for number in range(100)]
    assert throttled_time(measured(*seldom, seconds=66.0), USUAL).high == pytest.approx(100 * 180 / 6600)


def test_drive_that_may_be_worse_is_not_hidden() -> None:
    found = throttled_time(measured([DriveTemperature(too_warm_s=61), DriveTemperature(too_warm_s=60)]), USUAL)
    assert (found.low, found.value, found.high) == pytest.approx((61 / 6, 61 / 6, 20))


def test_repeats_are_taken_together() -> None:
    heat = [DriveTemperature(too_warm_s=30)], [DriveTemperature(too_warm_s=0)]
    assert throttled_time(measured(*heat), USUAL).value == pytest.approx(2.5)


@pytest.mark.parametrize("heat", [DriveTemperature(), DriveTemperature(events=2)])
def test_what_is_not_known_is_no_figure(heat: DriveTemperature) -> None:
    unknown = measured([DriveTemperature(50, too_warm_s=0), heat])
    for figure in (sustained_temperature, throttled_time):
        with pytest.raises(TooFew, match="S1"):
            figure(unknown, USUAL)
        with pytest.raises(TooFew):
            figure(Measured((run([1000] * 5),)), USUAL)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=4), st.floats(1, 1e5))
def test_the_share_is_a_share(counted: list[int], seconds: float) -> None:
    found = throttled_time(measured([DriveTemperature(too_warm_s=each) for each in counted], seconds=seconds), USUAL)
    assert 0 <= found.low <= found.value <= found.high <= 100
    assert (found.value > 0) is (max(counted) > 0)
