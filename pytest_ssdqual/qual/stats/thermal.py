"""Heat of drives during a measurement: the highest temperature, and the time too warm or throttled.

Both are readings of the drives' own sensors and counters just before and after each fio process. Of an array the worst
member counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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

    NVMe drives count minutes above their temperature threshold, and seconds of thermal management; both may be the same
    time. The interval contains both cases and the resolution of the minutes (``_ends``). ``TooFew`` if a drive counts
    no such time.
    """
    counted: dict[str, list[tuple[float, float]]] = {}
    lasted: dict[str, float] = {}
    heat = _heat(measured)
    for name, each, seconds in heat:
        counted.setdefault(name, []).append(_throttled_s(name, each))
        lasted[name] = lasted.get(name, 0.0) + seconds
    of_drives = [[100 * end / lasted[name] for end in _ends(each)] for name, each in counted.items()]
    low, value, high = (min(100.0, max(ends)) for ends in zip(*of_drives, strict=True))
    return Estimate(value, low, high, len(heat), Unit.PERCENT, is_reading=True, confidence=confidence_level.confidence)


def _ends(counted: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the shortest, the likely and the longest time too warm or throttled of a drive, seconds.

    ``counted`` has, for each process of fio, the seconds that were counted in minutes, and those counted in seconds. A
    count of minutes is at most one off in one process. In n processes that begin at random moments of the counter's
    minute, the errors are independent: with standard deviations of at most half a minute each, and of at most the root
    of the number of counted minutes together. Two standard deviations are used. No minute counted in any process is 0.
    """
    warm, throttled = (sum(each) for each in zip(*counted, strict=True))
    likely = sum(max(minutes, seconds) for minutes, seconds in counted)
    off = MINUTE_S * max(1.0, min(2 * math.sqrt(warm / MINUTE_S), math.sqrt(len(counted)))) if warm else 0.0
    return max(warm - off, throttled), likely, warm + off + throttled


def _heat(measured: Measured) -> list[tuple[str, DriveTemperature, float]]:
    """Return name, heat and seconds of each drive in each process; ``TooFew`` without a reading."""
    if not all(run.seen and run.seen.drives for run in measured.runs):
        raise TooFew("the drives' temperature was not read")
    return [
        (drive.name, drive.heat, run.seen.seconds) for run in measured.runs if run.seen for drive in run.seen.drives
    ]


def _throttled_s(name: str, heat: DriveTemperature) -> tuple[float, float]:
    """Return the seconds that were counted as whole minutes, and those that were counted as seconds."""
    if heat.too_warm_s is not None:
        seconds = heat.counted_in_s
        if seconds is None:
            seconds = heat.too_warm_s if math.fmod(heat.too_warm_s, MINUTE_S) else 0.0
        return heat.too_warm_s - seconds, seconds
    if heat.events == 0:
        return 0.0, 0.0
    raise TooFew(f"drive {name} does not count the time in which it is too warm or throttled")
