"""Records: dataclasses ⇄ plain JSON data, for everything that is written to disk or sent to another process.

`plain` writes a dataclass as an object of its fields, `from_plain` reads it strictly: no field may be unknown, missing
or of another type. pydantic, which validates, is loaded when the first record is read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import nearest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import ErrorDetails, SchemaValidator
    from pydantic_core.core_schema import CoreSchema

RecordT = TypeVar("RecordT")

#: Of more names than these, an error has only the one that was probably meant.
MOST_NAMES = 12
#: Largest figure that is read.
LARGEST = strict_json.LARGEST_FIGURE
#: Accepted numbers: counts up to those of 64 bits, and figures up to ``LARGEST``.
BOUNDS: dict[str, dict[str, float]] = {
    "int": {"ge": -strict_json.LARGEST, "le": strict_json.LARGEST},
    "float": {"ge": -LARGEST, "le": LARGEST},
}


def plain(value: Any) -> Any:  # noqa: ANN401  JSON data has no better type
    """Return plain JSON data; infinity and NaN, which JSON does not have, become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, AsText):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(each) for each in value]
    return str(value) if isinstance(value, PurePath | AsText) else value


def shallow(record: DataclassInstance) -> dict[str, object]:
    """Return the fields of a record for the journal, which makes their values plain."""
    found = {each.name: getattr(record, each.name) for each in fields(record)}
    return {name: str(value) if isinstance(value, AsText) else value for name, value in found.items()}


def from_plain(kind: type[RecordT], data: object) -> RecordT:
    """Return the inverse of ``plain``; ``ValueError``, in one sentence with the field, for anything else."""
    from pydantic import ValidationError

    if data is None:
        raise ValueError(f"this is no {kind.__name__}: null")
    try:
        # Validation of JSON turns lists into tuples and texts into enums, even if it is strict.
        found: RecordT = _validator(kind).validate_json(_json(data))  # type: ignore[arg-type]
    except ValidationError as error:
        raise ValueError(f"this is no {kind.__name__}: {sentence(error.errors()[0])}") from None
    return found


def sentence(detail: ErrorDetails) -> str:
    """Return an error of pydantic with its place: ``verdict.confidence: should be less than 100, not 100.0``."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
    where = "".join(steps).removeprefix(".")
    return f"{where}: {_words(detail)}" if where else _words(detail)


class AsText:
    """Base of dataclasses that records hold as text: written by ``str()``, read by their ``parse``."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(source.parse, core_schema.str_schema())


@frozen
class NullIs:
    """Annotation of a number that may be infinite: the value that null in a record stands for."""

    value: float

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        number = core_schema.nullable_schema(handler(source))
        return core_schema.no_info_after_validator_function(lambda it: self.value if it is None else it, number)


#: Ends of an interval that may be unbounded.
LowEnd = Annotated[float, NullIs(-math.inf)]
HighEnd = Annotated[float, NullIs(math.inf)]


def _json(data: object) -> bytes:
    from pydantic_core import PydanticSerializationError, to_json

    try:
        return to_json(data)
    except PydanticSerializationError:  # for a lone surrogate, which only Python's strings can hold
        return json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")


@cache
def _validator(kind: Any) -> SchemaValidator:  # noqa: ANN401
    from pydantic import ConfigDict, TypeAdapter
    from pydantic_core import CoreConfig, SchemaValidator

    # An adapter of a dataclass takes no configuration; that of an alternative to None passes it on.
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    adapter: TypeAdapter[Any] = TypeAdapter(kind | None, config=config)
    return SchemaValidator(_stricter(adapter.core_schema), CoreConfig(strict=True, allow_inf_nan=False))


def _stricter(schema: Any) -> Any:  # noqa: ANN401  a core schema is nested dicts and lists of many kinds
    """Return the schema with no field optional, and with bounds for numbers, as enormous ones overflow later."""
    if isinstance(schema, list):
        return [_stricter(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "default":
        return _stricter(schema["schema"])
    bounds = BOUNDS.get(str(schema.get("type")), {})
    # A field's own limits are narrower.
    return {**bounds, **{name: _stricter(each) for name, each in schema.items()}}


def _words(detail: ErrorDetails) -> str:
    problem, given = detail["type"], detail["input"]
    if problem == "missing":
        return "is missing"
    if problem in {"extra_forbidden", "unexpected_keyword_argument"}:
        return "unknown key"
    if problem == "value_error":
        return str(detail["ctx"]["error"])
    message = detail["msg"].replace("Input should be", "should be")
    if problem in {"enum", "literal_error"} and isinstance(given, str):
        names = re.findall(r"'([^']+)'", detail["ctx"]["expected"])
        near = nearest(given, names) if len(names) > MOST_NAMES else ""
        message = f"should be {near!r}" if near else message
    # A whole table would be too long for the sentence.
    if isinstance(given, int) and abs(given) > 10**40:  # too long to print, perhaps even for Python
        return message
    return (
        f"{message}, not {given!r}"
        if isinstance(given, str | int | float | bool)
        else message[:1].lower() + message[1:]
    )
