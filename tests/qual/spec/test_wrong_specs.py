"""What the program says of wrong specs, and which of them its JSON schema refuses, in ``tests/golden``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

from support.builders.sheet import PRODUCT, errors
from support.documents import golden
from support.documents.json_schema import problems

from pytest_ssdqual.qual.spec import spec

NAME, ANSWER, WHOLE = "wrong-specs.txt", "#! ", "(whole file)"
AGAINST_SCHEMA = f"{ANSWER}against the schema, too"


def test_golden_answers_to_wrong_specs() -> None:
    head, *sections = (golden.FOLDER / NAME).read_text().split("\n## ")
    assert len(sections) > 100
    # As it is written to a file.
    schema: dict[str, Any] = json.loads(json.dumps(spec.json_schema()))
    golden.check(NAME, "\n## ".join([head, *(answered(section, schema) for section in sections)]))


def answered(section: str, schema: dict[str, Any]) -> str:
    """A section of the golden file with the answers of today."""
    name, *lines = section.splitlines()
    given = [line for line in lines if line and not line.startswith(ANSWER)]
    text = "\n".join(given) + "\n"
    whole = text if name.endswith(WHOLE) else PRODUCT + text
    return "\n".join([name, *given, *answers(whole, schema)]) + "\n"


def answers(text: str, schema: dict[str, Any]) -> Iterator[str]:
    yield from (f"{ANSWER}{error}" for error in errors(text))
    if problems(tomllib.loads(text), schema):
        yield AGAINST_SCHEMA
