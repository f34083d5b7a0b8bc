"""``docs/reference.md`` is what the source says, and has all of it."""

from __future__ import annotations

import re

import pytest
from support.documents import reference_tables as reference

import pytest_ssdqual
from pytest_ssdqual.plugin import fixtures, hookspecs
from pytest_ssdqual.plugin.options import declare

HEADINGS = re.compile(r"^### `([\w.]+)", re.MULTILINE)


def headings(part: str) -> list[str]:
    return HEADINGS.findall(reference.committed(reference.DOCUMENT.read_text(), part))


@pytest.fixture(scope="module", autouse=True)
def _write() -> None:
    if reference.is_to_be_written():
        reference.DOCUMENT.write_text(reference.written(reference.DOCUMENT.read_text()))


@pytest.mark.parametrize("part", reference.PARTS)
def test_the_document_is_what_the_source_says(part: str) -> None:
    assert reference.committed(reference.DOCUMENT.read_text(), part) == reference.PARTS[part](), (
        f"write it anew: {reference.WRITE}=1 pytest tests/plugin/test_reference_document.py"
    )


def test_what_help_and_markers_print_is_in_the_document(pytester: pytest.Pytester) -> None:
    document = reference.DOCUMENT.read_text()
    helped = pytester.runpytest_inprocess("--help").stdout.str()
    printed = set(re.findall(r"(?<![\w-])(?:--ssd-[a-z-]+|ssd_[a-z_]+)", helped))
    assert len(printed) > 20
    assert {name for name in printed if f"`{name}" not in document} == set()
    marked = re.findall(r"^@pytest\.mark\.(\w+)", pytester.runpytest_inprocess("--markers").stdout.str(), re.MULTILINE)
    ours = [name for name in marked if any(line.startswith(name) for line in declare.MARKERS)]
    assert len(ours) == len(declare.MARKERS)
    assert {name for name in ours if f"| `{name}" not in document} == set()


def test_every_fixture_hook_and_public_name_has_its_place() -> None:
    assert sorted(headings("fixtures")) == sorted(name for name in vars(fixtures) if name.startswith("ssd_"))
    assert headings("names") == pytest_ssdqual.__all__
    assert headings("hooks") == [name for name in vars(hookspecs) if name.startswith("pytest_ssdqual_")]


def test_help_names_every_shipped_protocol() -> None:
    (protocol,) = [each for each in reference.declared_now().options if each.name == "--ssd-protocol"]
    shipped = {path.stem for path in (reference.ROOT / "pytest_ssdqual/protocols").glob("*.toml")}
    assert shipped <= set(re.findall(r"\w+", protocol.said["help"]))


def test_no_description_is_empty() -> None:
    """A field or a constant without a comment is told by its name alone; an option, a mark and a fixture is not."""
    for part in ("options", "ini values", "marks", "commands"):
        for line in reference.committed(reference.DOCUMENT.read_text(), part).splitlines()[2:]:
            said = re.split(r"(?<!\\)\|", line)[-2 if part != "options" else 2].strip()
            assert len(said.split()) >= 3, line
