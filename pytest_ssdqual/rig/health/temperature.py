"""Temperature of a drive, as nvme-cli or smartctl reports it → ``Warmth``; pure.

nvme-cli is preferred for NVMe drives, because smartctl (7.3 to 7.5) omits the counts of thermal management from its
JSON. What a drive does not report is None.
"""

from __future__ import annotations

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import DriveLink, DriveTemperature
from pytest_ssdqual.rig.health.smart_answer import at, first, possible_c, printed, temperature_c

#: NVM Express Base Specification, SMART / Health Information log page, byte 0: temperature at or beyond a threshold.
TOO_WARM_BIT = 0b10
KELVIN = 273
#: No drive has a threshold above this; 0 and 0xFFFF mean that there is none.
HIGHEST_LIMIT_C = 150


@frozen
class Warmth:
    """Temperature of one drive at one moment; the counters are lifetime totals."""

    temperature_c: float | None = None
    limit_c: float | None = None
    too_warm: bool | None = None
    too_warm_s: int | None = None
    events: int | None = None
    #: The highest temperature since power-on (SATA).
    peak_c: float | None = None
    #: What of ``too_warm_s`` is counted in seconds, not in whole minutes; None: not known.
    counted_in_s: int | None = None


def parse(plain: object) -> tuple[Warmth, DriveLink | None]:
    """Parse the JSON of ``nvme smart-log`` or of ``smartctl``; of anything else nothing is known.

    For SATA drives smartctl also reports the link, which sysfs does not for drives behind a SAS controller.
    """
    if not isinstance(plain, dict):
        return Warmth(), None
    if "json_format_version" not in plain:
        # A drive that does not report its temperature, as those of clouds, has 0 K.
        kelvin = printed(plain, "temperature")
        return _nvme(plain, kelvin - KELVIN if kelvin else None), None
    log = at(plain, "nvme_smart_health_information_log")
    if not isinstance(log, dict):
        return _ata(plain), _sata_link(at(plain, "interface_speed"))
    # smartctl has the threshold since 7.4.
    warning_c = printed(plain, "nvme_composite_temperature_threshold", "warning")
    return _nvme(log, printed(log, "temperature"), limit(warning_c)), None


def between(before: Warmth, after: Warmth, alarm_c: float | None) -> DriveTemperature:
    """Temperature of the time between two readings; ``alarm_c`` is a threshold known from another source."""
    temperatures = [value for value in (before.temperature_c, after.temperature_c) if value is not None]
    if before.peak_c is not None and after.peak_c is not None and after.peak_c > before.peak_c:
        temperatures.append(after.peak_c)
    flags = [value for value in (before.too_warm, after.too_warm) if value is not None]
    return DriveTemperature(
        temperature_c=max(temperatures, default=None),
        limit_c=next((value for value in (after.limit_c, before.limit_c, alarm_c) if value is not None), None),
        too_warm=any(flags) if flags else None,
        too_warm_s=_growth(before.too_warm_s, after.too_warm_s),
        events=_growth(before.events, after.events),
        counted_in_s=_growth(before.counted_in_s, after.counted_in_s),
    )


def limit(celsius: float | None) -> float | None:
    """Return a threshold; None if its value means that there is none."""
    return celsius if celsius is not None and 0 < celsius < HIGHEST_LIMIT_C else None


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None or after < before else after - before


def _nvme(log: object, celsius: int | None, limit_c: float | None = None) -> Warmth:
    """Parse NVMe's log; some versions of nvme-cli print flags as a structure."""
    flags = first(printed(log, "critical_warning", "value"), printed(log, "critical_warning"))
    minutes = [printed(log, name) for name in ("warning_temp_time", "critical_comp_time")]
    seconds = [printed(log, f"thm_temp{level}_total_time") for level in (1, 2)]
    counts = [printed(log, f"thm_temp{level}_trans_count") for level in (1, 2)]
    return Warmth(
        temperature_c=possible_c(celsius),
        limit_c=limit_c,
        too_warm=None if flags is None else bool(flags & TOO_WARM_BIT),
        too_warm_s=_sum([value and value * 60 for value in minutes] + seconds),
        events=_sum(counts),
        counted_in_s=_sum(seconds),
    )


def _ata(plain: object) -> Warmth:
    """Parse smartctl's answer: SATA drives report SCT status, SAS drives a trip temperature.

    Of drives without a temperature log page smartctl 7.3 has it in ``scsi_temperature``; 7.2, 7.4 and 7.5 do not.
    """
    limits = (("temperature", "op_limit_max"), ("temperature", "drive_trip"), ("scsi_temperature", "drive_trip"))
    highest = (limit(printed(plain, *names)) for names in limits)
    return Warmth(
        temperature_c=temperature_c(plain),
        limit_c=next((value for value in highest if value is not None), None),
        events=printed(plain, "ata_sct_status", "temperature", "over_limit_count"),
        peak_c=possible_c(printed(plain, "temperature", "power_cycle_max")),
    )


def _sata_link(speeds: object) -> DriveLink | None:
    current, most = _gigabits(at(speeds, "current")), _gigabits(at(speeds, "max"))
    return DriveLink("SATA", current, 1, most, 1) if current and most else None


def _gigabits(speed: object) -> float | None:
    units, bits = printed(speed, "units_per_second"), printed(speed, "bits_per_unit")
    return None if units is None or bits is None else units * bits / 1e9


def _sum(values: list[int | None]) -> int | None:
    """Sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
