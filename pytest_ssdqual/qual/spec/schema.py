"""What spec and protocol files share, for pydantic. Imported only when a document is read: pydantic is slow to load.

Everything arrives here as text with units and leaves as numbers in base units; nothing that reaches a
command line later (sizes, bitmap) keeps the user's spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pytest_ssdqual.qual.units import (
    Unit,
    format_size,
    parse_duration,
    parse_latency,
    parse_number,
    parse_size,
    parse_throughput,
)

#: Looser than the parsers, which have the last word and the better sentence: an editor only shows the kind of text.
NUMBER = r"^\s*[0-9.,]+\s*"
SIZE = rf"{NUMBER}([kKmMgGtT]?[iI]?[bB]?)\s*$"
TIME = rf"{NUMBER}(ns|us|µs|μs|ms|s|m|min|h|d)\s*$"
RATE = rf"{NUMBER}([kKmMgGtT]?[iI]?[bB]?)\s*/s$"


def quoted(parse: Callable[[str], float]) -> Callable[[object], float]:
    """A parser that also says what it wants when the file has a bare number."""

    def read(given: object) -> float:
        if not isinstance(given, str):
            raise ValueError(f"{given!r} needs a unit, as text in quotes")  # noqa: TRY004  pydantic collects ValueErrors
        return parse(given)

    return read


def parse_bound(text: str, unit: Unit) -> float:
    """A limit in base units: ``1.4 ms`` → 1_400_000, ``2 h``, ``11,500 IOPS``, ``5 %``, ``1.5`` or ``1.5 x``, ``64``.

    ValueError for anything that is not a number above zero in ``unit``.
    """
    if unit is Unit.NANOSECONDS:
        return parse_latency(text)
    if unit is Unit.BYTES_PER_SECOND:
        return parse_throughput(text)
    if unit is Unit.SECONDS:
        seconds = parse_duration(text)
        if not seconds > 0:
            raise ValueError(f'"{text}" is no time that can be kept; it must be above zero')
        return seconds
    kind, names, example = {
        Unit.IOPS: ("number of IOPS", ("iops",), '"11,500 IOPS"'),
        Unit.PERCENT: ("percentage", ("%",), '"5 %"'),
        Unit.RATIO: ("ratio", ("", "x", "×"), '"1.5"'),
        Unit.COUNT: ("count", ("",), '"64"'),
    }[unit]
    try:
        number, name = parse_number(text)
    except ValueError:
        number, name = None, ""
    if number is None or name.lower() not in names or not number > 0:
        raise ValueError(f'"{text}" is not a {kind} above zero; write e.g. {example}')
    return float(number)


def read_bound(given: object, unit: Unit) -> float:
    """``parse_bound`` of text; a ratio or a count may also be a bare number."""
    if unit in (Unit.RATIO, Unit.COUNT) and isinstance(given, int | float) and not isinstance(given, bool):
        given = str(given)
    return quoted(lambda text: parse_bound(text, unit))(given)


def text_like(pattern: str, *examples: str) -> Any:  # noqa: ANN401  a type made at run time, for pydantic's eyes only
    """What the JSON Schema says of a field that is text in the file and a number afterwards."""
    return Annotated[str, Field(pattern=pattern, examples=list(examples))]


def _one_spelling(text: str) -> str:
    return format_size(parse_size(text))


def _named(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


_CAPACITY = text_like(SIZE, "480 GB", "1.92 TB")
_DURATION = text_like(TIME, "10 s", "12 min", "2 h")
_THROUGHPUT = text_like(RATE, "450 MB/s")
_PERCENTAGE = text_like(rf"{NUMBER}%\s*$", "95 %")

Size = Annotated[int, BeforeValidator(quoted(parse_size), json_schema_input_type=_CAPACITY)]
BlockSize = Annotated[str, Field(examples=["4k", "128k"]), AfterValidator(_one_spelling)]
Seconds = Annotated[float, BeforeValidator(quoted(parse_duration), json_schema_input_type=_DURATION)]
Throughput = Annotated[int, BeforeValidator(quoted(parse_throughput), json_schema_input_type=_THROUGHPUT)]
Name = Annotated[str, AfterValidator(_named)]
Percentage = Annotated[
    float, BeforeValidator(quoted(lambda text: parse_bound(text, Unit.PERCENT)), json_schema_input_type=_PERCENTAGE)
]
Depth = Annotated[int, Field(ge=1, le=65536)]
Percent = Annotated[float, Field(gt=0, le=1000)]


class Strict(BaseModel):
    """Unknown keys are errors, and ``true`` is no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
