"""``docs/architecture.md`` has every file and every word of the keeper's scripts, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_ssdqual.rig.machine import scripts

DOCUMENT = (Path(__file__).parents[3] / "docs/architecture.md").read_text(encoding="utf-8")
SCRIPTS = [scripts.text(name) for name in ("keeper_start.sh", "keeper.sh", "keeper_attach.sh", "will.sh")]


def first_column(heading: str, number: int = 0) -> set[str]:
    """What is code in the first column of a table below a heading."""
    section = re.split(r"(?m)^##+ ", DOCUMENT.split(f"### {heading}\n", 1)[1])[0]
    table = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[number]
    return {name for line in table.splitlines() for name in re.findall(r"`([a-z]+)", line.split(" | ")[0])}


def test_files_of_a_keeper_are_in_the_document() -> None:
    used = {name for text in SCRIPTS for name in re.findall(r"\$dir/([a-z]+)(?![a-z.])", text)}
    assert len(used) > 5
    assert used == first_column("Files")


def test_words_to_an_attachment_are_in_the_document() -> None:
    attach = scripts.text("keeper_attach.sh")
    read = set(re.findall(r"\b([a-z])\) true", attach))
    assert read | {"b"} == first_column("Words", 0)  # a heartbeat is any other word


def test_words_of_an_attachment_are_in_the_document() -> None:
    attach = scripts.text("keeper_attach.sh")
    written = set(re.findall(r"(?:echo|printf) *[\"']?([a-z]{4,})", attach))
    assert written == first_column("Words", 1)
