"""Heat of drives during a measurement: the highest temperature, and the time too warm or throttled.

Both are readings of the drives' own sensors and counters just before and after each fio process. Of an array the worst
member counts.
"""

from __future__ import annotations

import math

from pytest_ssdqual.qual.measured.environment import DriveTemperature
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew
from pytest_ssdqual.qual.units import Unit

#: NVM Express: Warning and Critical Composite Temperature Time count minutes; thermal management counts seconds.
MINUTE_S = 60.0


def sustained_temperature(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    """Return the highest temperature of a drive, °C; ``TooFew`` if one was not read."""
    found = []
    for name, each, _ in _heat(measured):
        if each.temperature_c is None:
            raise TooFew(f"the temperature of drive {name} was not read")
        found.append(each.temperature_c)
    highest = max(found)
    return Estimate(
        highest, highest, highest, len(found), Unit.CELSIUS, is_reading=True, confidence=confidence_level.confidence
    )


def throttled_time(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    """Return the share of the time in which a drive was too warm or throttled, per cent, of the worst drive.

    A count of whole minutes is at most one minute off either way. ``TooFew`` if a drive counts no such time.
    """
    counted: dict[str, float] = {}
    lasted: dict[str, float] = {}
    heat = _heat(measured)
    for name, each, seconds in heat:
        counted[name] = counted.get(name, 0.0) + _throttled_s(name, each)
        lasted[name] = lasted.get(name, 0.0) + seconds
    worst = max(counted, key=lambda name: counted[name] / lasted[name])
    whole_minutes = counted[worst] > 0 and math.fmod(counted[worst], MINUTE_S) == 0
    ends = (counted[worst] + off for off in (-MINUTE_S, 0.0, MINUTE_S)) if whole_minutes else (counted[worst],) * 3
    low, value, high = (min(100.0, max(0.0, 100 * end / lasted[worst])) for end in ends)
    return Estimate(value, low, high, len(heat), Unit.PERCENT, is_reading=True, confidence=confidence_level.confidence)


def _heat(measured: Measured) -> list[tuple[str, DriveTemperature, float]]:
    """Return name, heat and seconds of each drive in each process; ``TooFew`` without a reading."""
    if not all(run.seen and run.seen.drives for run in measured.runs):
        raise TooFew("the drives' temperature was not read")
    return [
        (drive.name, drive.heat, run.seen.seconds) for run in measured.runs if run.seen for drive in run.seen.drives
    ]


def _throttled_s(name: str, heat: DriveTemperature) -> float:
    if heat.too_warm_s is not None:
        return heat.too_warm_s
    if heat.events == 0:
        return 0.0
    raise TooFew(f"drive {name} does not count the time in which it is too warm or throttled")
