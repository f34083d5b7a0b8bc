"""Temperature of a drive, as nvme-cli or smartctl reports it → ``Warmth``; pure.

nvme-cli is preferred for NVMe drives, because smartctl (7.3 to 7.5) omits the counts of thermal management from its
JSON. What a drive does not report is None.
"""

from __future__ import annotations

from typing import Any

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import DriveLink, DriveTemperature
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.qual.strict_json import LARGEST, read_json
from pytest_ssdqual.rig.health import smart_answer

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


def parse(answer: str) -> tuple[Warmth, DriveLink | None]:
    """Parse the JSON of ``nvme smart-log`` or of ``smartctl``; of any other text nothing is known.

    For SATA drives smartctl also reports the link, which sysfs does not for drives behind a SAS controller.
    """
    try:
        plain = read_json(answer)
    except ValueError:
        return Warmth(), None
    if not isinstance(plain, dict):
        return Warmth(), None
    if "json_format_version" not in plain:
        # A drive that does not report its temperature, as those of clouds, has 0 K.
        kelvin = _number(plain.get("temperature"))
        return _nvme(plain, kelvin - KELVIN if kelvin else None), None
    log = plain.get("nvme_smart_health_information_log")
    if not isinstance(log, dict):
        return _ata(plain), _sata_link(plain)
    # smartctl has the threshold since 7.4.
    warning_c = _number(smart_answer.at(plain, "nvme_composite_temperature_threshold", "warning"))
    return _nvme(log, _number(log.get("temperature")), limit(warning_c)), None


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


def _nvme(log: dict[str, Any], celsius: int | None, limit_c: float | None = None) -> Warmth:
    """Parse NVMe's log: some versions of nvme-cli print numbers as text or as 323.0, some flags as a structure."""
    warning = log.get("critical_warning")
    flags = _number(warning.get("value") if isinstance(warning, dict) else warning)
    minutes = [_number(log.get(name)) for name in ("warning_temp_time", "critical_comp_time")]
    seconds = [_number(log.get(f"thm_temp{level}_total_time")) for level in (1, 2)]
    counts = [_number(log.get(f"thm_temp{level}_trans_count")) for level in (1, 2)]
    return Warmth(
        temperature_c=smart_answer.possible_c(celsius),
        limit_c=limit_c,
        too_warm=None if flags is None else bool(flags & TOO_WARM_BIT),
        too_warm_s=_sum([value and value * 60 for value in minutes] + seconds),
        events=_sum(counts),
        counted_in_s=_sum(seconds),
    )


def _ata(plain: dict[str, Any]) -> Warmth:
    """Parse smartctl's answer: SATA drives report SCT status, SAS drives a trip temperature.

    Of drives without a temperature log page smartctl 7.3 has it in ``scsi_temperature``; 7.2, 7.4 and 7.5 do not.
    """
    temperature = plain.get("temperature")
    temperature = temperature if isinstance(temperature, dict) else {}
    status = plain.get("ata_sct_status")
    counted = status.get("temperature") if isinstance(status, dict) else None
    trip = smart_answer.at(plain, "scsi_temperature", "drive_trip")
    highest = [limit(_number(each)) for each in (temperature.get("op_limit_max"), temperature.get("drive_trip"), trip)]
    return Warmth(
        temperature_c=smart_answer.temperature_c(plain),
        limit_c=next((value for value in highest if value is not None), None),
        events=_number(counted.get("over_limit_count")) if isinstance(counted, dict) else None,
        peak_c=smart_answer.possible_c(_number(temperature.get("power_cycle_max"))),
    )


def _sata_link(plain: dict[str, Any]) -> DriveLink | None:
    speeds = plain.get("interface_speed")
    if not isinstance(speeds, dict):
        return None
    current, most = _gigabits(speeds.get("current")), _gigabits(speeds.get("max"))
    return DriveLink("SATA", current, 1, most, 1) if current and most else None


def _gigabits(plain: object) -> float | None:
    if not isinstance(plain, dict):
        return None
    units, bits = _number(plain.get("units_per_second")), _number(plain.get("bits_per_unit"))
    return None if units is None or bits is None else units * bits / 1e9


def _number(value: object) -> int | None:
    if isinstance(value, str):
        return decimal(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    known = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST
    return value if known and isinstance(value, int) else None


def _sum(values: list[int | None]) -> int | None:
    """Sum of the known values; None if none is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
