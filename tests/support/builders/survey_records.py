"""Answers of the survey's script, written as lines: ``kind field field …``, where the last field may have blanks."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_ssdqual.rig.drives.survey_parse import KINDS

FILES = ("mounts", "swaps", "mdstat")


def answer(lines: str | Iterable[str] = (), **files: str) -> str:
    """What the script prints; ``files`` are texts of ``FILES`` and of zpool."""
    lines = lines.split("\n") if isinstance(lines, str) else "\n".join(lines).split("\n")
    whole = [(name, files.get(name, "")) for name in dict.fromkeys((*FILES, *files))]
    records = [*map(record, filter(None, lines)), *whole, ("scanned",), ("end",)]
    return "".join(f"{field}\0" for fields in records for field in fields)


def record(line: str) -> tuple[str, ...]:
    """One line's fields; what is missing is empty."""
    name, _, rest = line.partition(" ")
    fields = rest.split(" ", KINDS[name].fields - 1)
    return name, *fields, *[""] * (KINDS[name].fields - len(fields))


def probed(facts: str, path: str, error: int) -> str:
    """An answer in which the exclusive open of a drive ended with another error."""
    before = f"probe\0{path}\0{0}\0"
    assert before in facts
    return facts.replace(before, f"probe\0{path}\0{error}\0")
