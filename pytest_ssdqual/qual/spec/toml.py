"""TOML documents of users: found by path or shipped name, validated as a whole, every error with its path.

The base of spec and protocol files, for pydantic. Values are text with units in the file and numbers in base units
afterwards; what reaches a command line later (sizes, bitmap) never keeps the user's spelling.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema
from pydantic_core.core_schema import no_info_after_validator_function, str_schema

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import nearest
from pytest_ssdqual.qual.records import sentence
from pytest_ssdqual.qual.units import (
    Unit,
    format_size,
    parse_duration,
    parse_latency,
    parse_number,
    parse_size,
    parse_throughput,
)

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema, ErrorDetails

    CheckedT = TypeVar("CheckedT")


#: Largest document: the largest shipped data sheet has 40 kB, so a much larger file is something else, or endless.
LARGEST_BYTES = 4 << 20
#: Limits of an error message, which may name all possible values.
ERROR_CHARACTERS, MOST_ERRORS = 2000, 100
#: Patterns for editors; looser than the parsers, which validate and have the better messages.
NUMBER = r"^\s*[0-9.,]+\s*"
SIZE = rf"{NUMBER}([kKmMgGtT]([iI]B)?|[mMgGtT]B|[bB])?\s*$"
TIME = rf"{NUMBER}(ns|us|µs|μs|ms|s|m|min|h|d)\s*$"
LATENCY = rf"{NUMBER}(ns|us|µs|μs|ms|s)\s*$"
RATE = rf"{NUMBER}([kKmMgGtT]([iI]B)?|[mMgGtT]B|[bB])?\s*/s$"


class DocumentError(ValueError):
    """A document that cannot be used; ``str()`` has one line per error, each beginning with the file's name."""

    def __init__(self, name: str, errors: Sequence[str]) -> None:
        # Errors quote the file, which a vendor wrote: escape unprintable characters.
        shown = [safe_text.line(error, ERROR_CHARACTERS) for error in errors[:MOST_ERRORS]]
        if len(errors) > MOST_ERRORS:
            shown.append(f"and {len(errors) - MOST_ERRORS} more errors")
        super().__init__("\n".join(f"{safe_text.line(name)}: {error}" for error in shown))
        self.name = name
        self.errors = tuple(shown)


def shipped(folder: str) -> tuple[str, ...]:
    """Names of the documents that come with the package, in order."""
    files = resources.files("pytest_ssdqual").joinpath(folder).iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def read(path_or_name: str | Path, folder: str) -> tuple[str, dict[str, object]]:
    """File name and content of the document that a user named; ``DocumentError`` if there is none.

    A text without a slash and without ``.toml`` is a shipped name; anything else is a path.
    """
    file = _find(path_or_name, folder)
    return file.name, loads(file.name, _text(file))


def loads(name: str, written: str) -> dict[str, object]:
    """Parse a document that was already read; ``DocumentError`` if it is not TOML."""
    try:
        content = tomllib.loads(written)
    except RecursionError as failure:
        raise DocumentError(name, ["is nested too deeply"]) from failure
    except ValueError as failure:  # also raised for a number of thousands of digits
        raise DocumentError(name, [f"is not TOML: {failure}"]) from failure
    if errors := list(_unprintable(content, "")):
        raise DocumentError(name, errors)
    return content


def text(path_or_name: str | Path, folder: str) -> str:
    """The document as written, for the record of a run; ``DocumentError`` if there is none."""
    return _text(_find(path_or_name, folder))


def _text(file: Path | Traversable) -> str:
    try:
        with file.open("rb") as opened:
            read = opened.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as failure:  # a path with NUL is a ValueError
        raise DocumentError(
            file.name, [f"cannot be read: {getattr(failure, 'strerror', None) or failure}"]
        ) from failure
    if len(read) > LARGEST_BYTES:
        raise DocumentError(file.name, [f"is larger than {LARGEST_BYTES >> 20} MiB"])
    try:
        return read.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as failure:
        raise DocumentError(file.name, ["is not UTF-8 text"]) from failure


def _unprintable(value: object, where: str) -> Iterator[str]:
    """Errors for unprintable text: names and sources are printed, and a terminal must not interpret them."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _unprintable(each, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _unprintable(each, f"{where}[{number}]")
    elif isinstance(value, str) and not value.replace("\n", " ").replace("\t", " ").isprintable():
        yield f"{where}: has characters that cannot be printed"


def _find(path_or_name: str | Path, folder: str) -> Path | Traversable:
    named = str(path_or_name)
    if isinstance(path_or_name, Path) or "/" in named or named.endswith(".toml"):
        return Path(named).expanduser()
    if named not in shipped(folder):
        kinds, near = ", ".join(shipped(folder)), nearest(named, shipped(folder))
        guess = f"; did you mean {near}?" if near else ""
        raise DocumentError(
            named, [f"is not shipped (there are: {kinds}); for a file of your own give its path{guess}"]
        )
    return resources.files("pytest_ssdqual").joinpath(folder, f"{named}.toml")


def checked(
    validate: Callable[[object], CheckedT],
    name: str,
    content: dict[str, object],
    errors: Sequence[str] = (),
) -> CheckedT:
    """Validate the content by a model of pydantic; ``DocumentError`` with all errors at once, ``errors`` among them."""
    from pydantic import ValidationError

    try:
        document = validate(content)
    except ValidationError as failure:
        raise DocumentError(name, [*errors, *(sentence(_in_toml(each)) for each in failure.errors())]) from failure
    if errors:
        raise DocumentError(name, errors)
    return document


def _in_toml(detail: ErrorDetails) -> ErrorDetails:
    """Return the error with TOML's word for a dictionary or an instance of a class."""
    is_table = detail["type"] in {"dataclass_type", "dict_type", "model_type"}
    return {**detail, "msg": "Input should be a table"} if is_table else detail


def quoted(parse: Callable[[str], float]) -> Callable[[object], float]:
    """Wrap a parser so that a number without a unit gets an error that asks for text in quotes."""

    def read(given: object) -> float:
        if not isinstance(given, str):
            raise ValueError(f"{given!r} needs a unit, as text in quotes")  # noqa: TRY004  pydantic collects ValueErrors
        return parse(given)

    return read


def parse_bound(text: str, unit: Unit) -> float:
    """Parse a limit in base units: ``1.4 ms`` → 1_400_000, ``2 h``, ``11,500 IOPS``, ``5 %``, ``1.5`` or ``1.5 x``,
    ``64``.

    ValueError for anything that is not a number above zero in ``unit``.
    """
    if unit is Unit.NANOSECONDS:
        return parse_latency(text)
    if unit is Unit.BYTES_PER_SECOND:
        return parse_throughput(text)
    if unit is Unit.SECONDS:
        seconds = parse_duration(text)
        if not seconds > 0:
            raise ValueError(f'"{text}" is no valid time; it must be above zero')
        return seconds
    kind, names, example = {
        Unit.IOPS: ("number of IOPS", ("iops",), '"11,500 IOPS"'),
        Unit.PERCENT: ("percentage", ("%",), '"5 %"'),
        Unit.RATIO: ("ratio", ("", "x", "×"), '"1.5"'),
        Unit.COUNT: ("count", ("",), '"64"'),
        Unit.CELSIUS: ("temperature in °C", ("°c",), '"70 °C"'),
    }[unit]
    try:
        number, name = parse_number(text)
    except ValueError:
        number, name = None, ""
    if number is None or name.lower() not in names or not number > 0:
        raise ValueError(f'"{text}" is not a {kind} above zero; write e.g. {example}')
    return float(number)


#: Text that a bare number lacks, by unit.
BARE = {Unit.IOPS: " IOPS", Unit.RATIO: "", Unit.COUNT: ""}


def read_bound(given: object, unit: Unit) -> float:
    """``parse_bound`` of text; IOPS, a ratio or a count may also be a bare number."""
    if unit in BARE and isinstance(given, int | float) and not isinstance(given, bool):
        given = f"{given}{BARE[unit]}"
    return quoted(lambda text: parse_bound(text, unit))(given)


def text_like(pattern: str, *examples: str) -> Any:  # noqa: ANN401  a type made at run time, for pydantic's eyes only
    """JSON Schema type of a field that is text in the file and a number afterwards."""
    return Annotated[str, Field(pattern=pattern, examples=list(examples))]


def _one_spelling(text: str) -> str:
    return format_size(parse_size(text))


def _power_of_two(text: str) -> str:
    size = parse_size(text)
    if size < 4096 or size & (size - 1):
        raise ValueError(f'"{text}" is not a power of two of at least 4k')
    return text


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
PowerOfTwo = Annotated[BlockSize, AfterValidator(_power_of_two)]
Seconds = Annotated[float, BeforeValidator(quoted(parse_duration), json_schema_input_type=_DURATION)]
Throughput = Annotated[int, BeforeValidator(quoted(parse_throughput), json_schema_input_type=_THROUGHPUT)]
Name = Annotated[str, AfterValidator(_named)]
Percentage = Annotated[
    float, BeforeValidator(quoted(lambda text: parse_bound(text, Unit.PERCENT)), json_schema_input_type=_PERCENTAGE)
]
Depth = Annotated[int, Field(ge=1, le=65536)]
Percent = Annotated[float, Field(gt=0, le=1000)]


def parsed(parse: Callable[[str], object]) -> Any:  # noqa: ANN401  GetPydanticSchema has no better type
    """Annotation of a field that is text in the file, and what ``parse`` makes of it afterwards."""
    return GetPydanticSchema(lambda _kind, _handler: no_info_after_validator_function(parse, str_schema(strict=True)))


class Strict(BaseModel):
    """Base model: unknown keys are errors, and ``true`` is not a number. The text below a field describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


@frozen
class _Table:
    """Annotation of a dataclass in a strict model: a table is validated into it, where strict needs an instance.

    The method ``validated`` of the dataclass, if it has one, then returns the final value.
    """

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        table: dict[str, Any] = cast("dict[str, Any]", handler.resolve_ref_schema(schema))
        while table["type"] != "dataclass":  # in the validators of the whole table
            table = table["schema"]
        table["strict"] = False
        validated = getattr(source, "validated", None)
        return no_info_after_validator_function(validated, schema) if validated else schema


TABLE = _Table()
