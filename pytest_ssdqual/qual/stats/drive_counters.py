"""Wear and heat of drives, by their own sensors and counters before and after each fio process.

Wear is the write amplification of a measurement, and the endurance that the wear of a run extrapolates to; heat is the
highest temperature, and the time too warm or throttled. Of an array the worst member counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ssdqual.qual.measured.environment import DriveEnvironment, DriveTemperature
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, NotApplicable, TooFew
from pytest_ssdqual.qual.units import Unit, format_capacity

#: NVM Express: Warning and Critical Composite Temperature Time count minutes; thermal management counts seconds.
MINUTE_S = 60.0
#: Drives without a count that a reason names.
MOST_NAMED = 4


def unknown(measured: Measured) -> str:
    """Return why the write amplification is not known; empty if it is."""
    if not measured.workload.writes:
        return f"{measured.workload} writes nothing"
    drives = [drive for run in measured.runs if run.seen for drive in run.seen.drives]
    if not drives or not all(run.seen for run in measured.runs):
        return "the drives' counters were not read"
    lacking = dict.fromkeys(drive.name for drive in drives if _of_process(drive) is None)
    if not lacking:
        return ""
    names = named(list(lacking), MOST_NAMED)
    return (
        f"there is no count of writes to flash, or of the host's, of {names}; a promise has it read, from "
        "OCP's log C0h, Intel's log CAh, or a SMART attribute whose unit is known"
    )


def write_amplification(measured: Measured, confidence_level: ConfidenceLevel) -> Estimate:
    """Return the writes to flash over those of the host, a ratio; of an array that of its worst member.

    All processes together; the interval reaches from the least to the most that one of them can have had, so a drive
    that refreshes its counts seldom has a wide one. ``NotApplicable`` if it is not known (``unknown``).
    """
    counted: dict[str, list[tuple[float, float, float]]] = {}
    for run in measured.runs:
        for drive in run.seen.drives if run.seen else ():
            if (process := _of_process(drive)) is not None:
                counted.setdefault(drive.name, []).append(process)
    if why := unknown(measured):
        raise NotApplicable(f"the write amplification is not known: {why}")
    of_drives = [
        (
            min(max(0.0, media - error) / host for media, host, error in processes),
            sum(media for media, _, _ in processes) / sum(host for _, host, _ in processes),
            max((media + error) / host for media, host, error in processes),
        )
        for processes in counted.values()
    ]
    low, value, high = map(max, zip(*of_drives, strict=True))
    processes = sum(map(len, counted.values()))
    return Estimate(value, low, high, processes, Unit.RATIO, is_reading=True, confidence=confidence_level.confidence)


def endurance(used: int, percent: int, written_bytes: int, rated_bytes: int | None) -> str:
    """Return a clause about the writes that the wear of a run extrapolates to, beside the rated ones.

    ``used`` and ``percent`` are the endurance used at the two readings, in whole per cents: the wear between them is
    less than one per cent more or less than their difference. Most runs wear a drive by less than that, so that there
    is only a lower end. Other writes than those of the run wear a drive otherwise.
    """
    least = 100 * written_bytes // (percent - used + 1)
    most = 100 * written_bytes // (percent - used - 1) if percent > used + 1 else None
    ends = f"at least {format_capacity(least)}" + (f" and at most {format_capacity(most)}" if most else "")
    clause = (
        f"{format_capacity(written_bytes)} were written while the endurance used rose from {used} to {percent} %: such "
        f"writes may go on to {ends}"
    )
    if rated_bytes is None:
        return clause
    related = "too few to tell whether it keeps" if least < rated_bytes else "not less than"
    if most and most < rated_bytes:
        related = "less than"
    return f"{clause}, {related} the rated {format_capacity(rated_bytes)}"


def _of_process(drive: DriveEnvironment) -> tuple[float, float, float] | None:
    """Return the writes to flash and of the host in one process, and how much the former may be off; None if unknown.

    They are off by the resolution. What the drive's own count of its hosts' writes differs from the kernel's, beyond
    its unit, shows how old its counters were when they were read: those of flash may be as old.
    """
    media, own = drive.media, drive.own
    given = drive.device.counted.write_bytes if drive.device.counted else 0
    host = media.host if media and media.host is not None else given
    if media is None or not given or host <= 0:
        return None
    own_bytes = given if own is None or own.write_bytes is None else own.write_bytes
    aged = max(0, abs(own_bytes - given) - (own.unit_bytes if own else 0)) / given
    resolution = media.step * (1 if media.host is None else 1 + media.written / host)
    return media.written, host, resolution + aged * media.written


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
