"""The part of JSON Schema 2020-12 that our schemas use; a word of it that is not known here is an error, not a pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
#: Words that say nothing about whether a document is right.
REMARKS = {"$schema", "$defs", "title", "description", "examples", "default"}


def problems(value: object, schema: dict[str, Any], root: dict[str, Any] | None = None) -> list[str]:
    """What ``schema`` has against ``value``; an empty list if nothing."""
    return list(_problems(value, schema, schema if root is None else root, "$"))


def _problems(value: object, schema: dict[str, Any], root: dict[str, Any], place: str) -> Iterator[str]:
    for word, rule in schema.items():
        if word in REMARKS:
            continue
        if word not in WORDS and word not in NESTED:
            raise NotImplementedError(f"{place}: {word}")
        if word in WORDS and not WORDS[word](value, rule):
            yield f"{place}: {value!r} breaks {word} {rule!r}"
        if word in NESTED:
            yield from NESTED[word](value, rule, root, place, schema)


def _ref(value: object, rule: str, root: dict[str, Any], place: str, _: object) -> Iterator[str]:
    yield from _problems(value, root["$defs"][rule.removeprefix("#/$defs/")], root, place)


def _properties(value: object, rule: dict[str, Any], root: dict[str, Any], place: str, _: object) -> Iterator[str]:
    table = value if isinstance(value, dict) else {}
    for key in rule.keys() & table.keys():
        yield from _problems(table[key], rule[key], root, f"{place}.{key}")


def _closed(value: object, rule: bool, root: dict[str, Any], place: str, schema: dict[str, Any]) -> Iterator[str]:
    for key in value.keys() - schema["properties"].keys() if isinstance(value, dict) and not rule else ():
        yield f"{place}.{key}: unknown"


def _items(value: object, rule: dict[str, Any], root: dict[str, Any], place: str, _: object) -> Iterator[str]:
    for index, each in enumerate(value if isinstance(value, list) else ()):
        yield from _problems(each, rule, root, f"{place}[{index}]")


def _dependent(value: object, rule: dict[str, Any], root: dict[str, Any], place: str, _: object) -> Iterator[str]:
    for key in rule.keys() & value.keys() if isinstance(value, dict) else ():
        yield from _problems(value, rule[key], root, place)


def _some(value: object, rule: list[dict[str, Any]], root: dict[str, Any], place: str, _: object) -> Iterator[str]:
    if not any(not problems(value, each, root) for each in rule):
        yield f"{place}: {value!r} is none of {rule!r}"


def _one(value: object, rule: list[dict[str, Any]], root: dict[str, Any], place: str, _: object) -> Iterator[str]:
    if sum(not problems(value, each, root) for each in rule) != 1:
        yield f"{place}: {value!r} is not exactly one of {rule!r}"


def _none(value: object, rule: dict[str, Any], root: dict[str, Any], place: str, _: object) -> Iterator[str]:
    if not problems(value, rule, root):
        yield f"{place}: {value!r} is {rule!r}"


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


WORDS: dict[str, Any] = {
    "type": lambda value, rule: isinstance(value, TYPES[rule]) and (rule == "boolean" or not isinstance(value, bool)),
    "enum": lambda value, rule: value in rule,
    "const": lambda value, rule: value == rule,
    "pattern": lambda value, rule: not isinstance(value, str) or re.search(rule, value) is not None,
    "required": lambda value, rule: not isinstance(value, dict) or set(rule) <= value.keys(),
    "minItems": lambda value, rule: not isinstance(value, list) or len(value) >= rule,
    "minimum": lambda value, rule: not _number(value) or value >= rule,
    "maximum": lambda value, rule: not _number(value) or value <= rule,
    "exclusiveMinimum": lambda value, rule: not _number(value) or value > rule,
}
NESTED: dict[str, Any] = {
    "$ref": _ref,
    "properties": _properties,
    "additionalProperties": _closed,
    "items": _items,
    "dependentSchemas": _dependent,
    "anyOf": _some,
    "oneOf": _one,
    "not": _none,
}
