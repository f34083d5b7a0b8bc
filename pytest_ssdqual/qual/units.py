"""Sizes, times and rates: parse them from text, format them for people.

Transfer sizes are binary (``4k`` = 4096, as fio's ``bs``), capacities and throughputs are decimal (``480 GB`` =
480·10⁹, as on every drive's label). ``KB`` could be either and is rejected, and so is a small ``b`` after a prefix:
``Mb`` are bits.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

_NUMBER = re.compile(r"\s*([0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)\s*([^\s0-9].*?)?\s*", re.ASCII)
#: Commas only between thousands; "1,5" may mean one and a half.
_GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?|[0-9]+(\.[0-9]+)?|\.[0-9]+", re.ASCII)

#: Longest text of a number, characters; bounds the time to reject a longer one.
LONGEST = 64

_BINARY = {"k": 10, "m": 20, "g": 30, "t": 40}
_DECIMAL = {"mb": 6, "gb": 9, "tb": 12}
_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,  # U+03BC, what some keyboards and data sheets give instead of U+00B5
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_TIMES = ("ns", "µs", "ms", "s")
#: Longest unit of a latency, in ns; no I/O of a drive takes minutes, and "4 m" was meant as 4 ms.
_LONGEST_LATENCY_UNIT = _NS["s"]


class InBits(ValueError):
    """A size or a rate in bits, or in a spelling of bytes that may mean bits."""


class Unit(StrEnum):
    """Unit of an estimate or a limit."""

    IOPS = "IOPS"
    NANOSECONDS = "ns"
    BYTES_PER_SECOND = "B/s"
    RATIO = "ratio"
    PERCENT = "%"
    SECONDS = "s"
    #: A count, such as outstanding I/Os.
    COUNT = "count"
    #: Degrees Celsius.
    CELSIUS = "°C"


def parse_number(text: str) -> tuple[Decimal, str]:
    """Split ``"11,500 IOPS"`` into its number and its unit (empty when there is none).

    Raises ValueError when the text does not begin with a plain non-negative number.
    """
    if len(text) > LONGEST:
        raise ValueError(f"{text[:20]!r}… is not a number with a unit")
    found = _NUMBER.fullmatch(text)
    if not found or not _GROUPED.fullmatch(found[1]):
        raise ValueError(f"{text!r} is not a number with a unit")
    return Decimal(found[1].replace(",", "")), found[2] or ""


@lru_cache(maxsize=1024)  # a plan of all suites asks 700,000 times for some twenty sizes
def parse_size(text: str) -> int:
    """Bytes of ``4k``, ``128KiB``, ``1m``, ``512`` (binary) or ``480 GB`` (decimal); ValueError otherwise.

    `InBits` for ``500 Mb``.
    """
    example = 'write e.g. "4k", "128KiB" or "480 GB"'
    try:
        number, unit = parse_number(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a size; {example}") from None
    written, unit = unit, unit.lower()
    if unit == "kb":
        raise ValueError(f'{text!r} is 1000 or 1024 bytes a piece; write "KiB" or "k" for 1024')
    if written.endswith("b") and (unit in _DECIMAL or unit.removesuffix("ib") in _BINARY):
        in_bytes = f"{written[0].upper()}{written[1:-1]}B"
        raise InBits(f'{text!r} may be bits, which have a small b; write "{in_bytes}" for bytes')
    if unit in ("", "b"):
        factor = 1
    elif unit.removesuffix("ib") in _BINARY:
        factor = 1 << _BINARY[unit.removesuffix("ib")]
    elif unit in _DECIMAL:
        factor = int(10 ** _DECIMAL[unit])
    else:
        raise ValueError(f"{text!r} is not a size; {example}")
    size = number * factor
    if size != int(size) or size < 1:
        raise ValueError(f"{text!r} is not a whole, positive number of bytes")
    return int(size)


def format_size(size: int) -> str:
    """The one spelling of a transfer size, fio's: ``4k``, ``1m``, ``512``. ``parse_size`` reads it back exactly."""
    for suffix, bits in reversed(_BINARY.items()):
        if size and size % (1 << bits) == 0:
            return f"{size >> bits}{suffix}"
    return str(size)


def format_capacity(size: int) -> str:
    """Decimal, three digits, as on the label: ``480 GB``."""
    return _scaled(size, ("B", "kB", "MB", "GB", "TB", "PB"))


def _parse_time_ns(text: str, kind: str, example: str, longest: int = max(_NS.values())) -> Decimal:
    try:
        number, unit = parse_number(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a {kind}; write e.g. {example}') from None
    if _NS.get(unit, math.inf) > longest:
        raise ValueError(f'"{text}" is not a {kind}; write e.g. {example}')
    return number * _NS[unit]


def parse_duration(text: str) -> float:
    """Seconds of ``12m``, ``10s``, ``1.5h``, ``5 min``, ``200us``; ValueError without a unit or with another."""
    return float(_parse_time_ns(text, "duration", '"10 s", "12 min" or "2 h"') / 10**9)


def parse_latency(text: str) -> int:
    """Whole nanoseconds of ``1.4 ms``, ``200us``; ValueError when the text is no latency, in minutes, or zero."""
    latency_ns = round(_parse_time_ns(text, "latency", '"1.4 ms"', _LONGEST_LATENCY_UNIT))
    if latency_ns < 1:
        raise ValueError(f'"{text}" is no valid latency; it must be above zero')
    return latency_ns


def parse_throughput(text: str) -> int:
    """Bytes per second of ``450 MB/s`` (decimal) or ``430 MiB/s``; ValueError otherwise, `InBits` for ``500 Mb/s``."""
    if text.endswith("/s"):
        try:
            return parse_size(text.removesuffix("/s"))
        except InBits:
            raise
        except ValueError:
            pass
    raise ValueError(f'"{text}" is not a throughput; write e.g. "450 MB/s"')


def format_duration(seconds: float) -> str:
    """``200 µs``, ``10 s``, ``12 min``, ``2 h``; three digits."""
    if seconds < 1:
        return format_latency(seconds * 1e9)
    for unit, length, until in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172800)):
        if seconds < until:
            return f"{_digits(seconds / length)} {unit}"
    return f"{_digits(seconds / 86400)} d"


def format_clock(seconds: float) -> str:
    """``0:31``, ``12:00``, ``4:10:00``, ``3 d 4:10:00``; whole seconds, rounded down."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours}:{minutes:02}:{rest:02}" if hours or days else f"{minutes}:{rest:02}"
    return f"{days} d {text}" if days else text


def format_latency(latency_ns: float) -> str:
    """``812 µs``, ``1.42 ms``, ``2.1 s``; three digits."""
    return _scaled(latency_ns, _TIMES)


def format_value(value: float, unit: Unit, more: int = 0) -> str:
    """A number as people read it: ``9,412 IOPS``, ``1.42 ms``, ``98.7 %``, ``1.35 ×``, ``450 MB/s``, ``2 h 5 min``.

    With ``more`` digits than three, except for times in minutes and hours.
    """
    if unit is Unit.NANOSECONDS:
        return _scaled(value, _TIMES, more)
    if unit is Unit.BYTES_PER_SECOND:
        return _scaled(value, ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"), more)
    if unit is Unit.PERCENT:
        return f"{value:.{1 + more}f} %" if math.isfinite(value) else "∞ %"
    if unit is Unit.RATIO:
        return f"{value:.{3 + more}g} ×" if abs(value) >= 10 else f"{value:.{2 + more}f} ×"
    if unit is Unit.SECONDS:
        return format_duration(value) if math.isfinite(value) else "∞ s"
    if unit is Unit.COUNT:
        return _digits(value, more)
    if unit is Unit.CELSIUS:
        return f"{_digits(value, more)} °C"
    return f"{_digits(value, more)} IOPS"


def format_range(low: float, high: float, unit: Unit) -> str:
    """An interval with its unit once where both ends share it: ``810…818 µs``, ``980 µs…1.2 ms``, ``812 µs…∞``.

    Ends that differ look different, if two more digits are enough for that.
    """
    if not math.isfinite(low):
        return f"-∞…{format_value(high, unit) if math.isfinite(high) else '∞'}"
    if not math.isfinite(high):
        return f"{format_value(low, unit)}…∞"
    first, last = format_value(low, unit), format_value(high, unit)
    for more in (1, 2):
        if first == last and low != high:
            first, last = format_value(low, unit, more), format_value(high, unit, more)
    number, space, name = first.rpartition(" ")
    return f"{number}…{last}" if space and last.endswith(f" {name}") else f"{first}…{last}"


def format_difference(value: float, reference: float, unit: Unit) -> str:
    """How far a value is from a reference: ``4.2 %`` of it, or with the unit where a percentage would mislead.

    Percentages of a percentage or of a temperature mean nothing to a reader, nor do those of a reference near zero,
    which run into thousands. Beyond the reference itself the difference is absolute: ``150 ms``.
    """
    difference = abs(value - reference)
    if unit is Unit.PERCENT:
        return f"{difference:.1f} percentage points" if math.isfinite(difference) else "∞ percentage points"
    if unit is Unit.CELSIUS or not reference or not difference <= abs(reference):
        return format_value(difference, unit)
    return f"{100 * difference / abs(reference):.1f} %"


def _scaled(value: float, names: tuple[str, ...], more: int = 0) -> str:
    if not math.isfinite(value):
        return f"∞ {names[-1]}"
    step = 0
    # 999.6 prints as 1000 with three digits: take the next name before that happens.
    while abs(value) >= 999.5 and step < len(names) - 1:
        value /= 1000
        step += 1
    return f"{_digits(value, more)} {names[step]}"


def _digits(value: float, more: int = 0) -> str:
    """Three significant digits (and ``more``), all digits of a larger whole, and no trailing zeros after a point."""
    if not math.isfinite(value):
        return "∞"
    after = more + (abs(value) < 99.95) + (abs(value) < 9.995)
    text = f"{value:,.{after}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
