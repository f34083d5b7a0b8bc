"""Run folders to make a page of, and the page as its readers' programs see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.journal import SCHEMA
from support.builders import whole_records
from support.builders.manifests import whole

WriteRun = Callable[..., Path]
#: HTML: headings, and elements without an end tag.
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
VOID = frozenset({"meta", "br", "input", "link", "img", "hr"})
MANIFEST: dict[str, object] = {
    "bays": [
        {
            "machine": "dut",
            "facts": {"kernel": "Linux 6.1"},
            "drives": [
                {"identity": "S1", "serial": "S1", "model": "ACME 1", "firmware": "F1", "size_bytes": 480 * 10**9}
            ],
        }
    ],
}


def record(kind: str, second: int = 0, **facts: object) -> dict[str, object]:
    time = f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000+00:00"
    return {"schema": SCHEMA, "kind": kind, "time": time, "writer": "main", **whole_records.whole(kind, facts)}


def judged(evidence: Evidence, test: str = "test_it", second: int = 0, **more: object) -> dict[str, object]:
    kind = "verdict" if evidence.is_promised else "observation"
    return record(kind, second, test=test, **{**plain(evidence), **more})


def planned(test: str = "test_it") -> dict[str, object]:
    """One planned test, without a claim."""
    return record("tests_planned", tests=[test], claims=[[]], left_out=[], promised=[])


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """A run folder with these records."""

    def tell(*records: dict[str, object], manifest: dict[str, object] | None = None, **changed: object) -> Path:
        folder = tmp_path / "20260101T000000Z-1"
        folder.mkdir(exist_ok=True)
        (folder / "records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
        said = {**(MANIFEST if manifest is None else manifest), **changed}
        (folder / "manifest.json").write_text(json.dumps(whole(said) if said else {}))
        return folder

    return tell


@dataclass
class Reader(HTMLParser):
    """A page taken apart: elements in order, text by element; nothing may be left open."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    @classmethod
    def of(cls, text: str) -> Reader:
        found = cls()
        found.feed(text)
        found.close()
        assert found.open == []
        return found

    @property
    def text(self) -> str:
        """What is read of it, in order."""
        return " ".join("".join(self.shown).split())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag in HEADINGS:
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)
            if self.open[-1] not in ("style", "script"):
                self.shown.append(data)
            if any(tag in HEADINGS for tag in self.open):
                level, said = self.headings[-1]
                self.headings[-1] = (level, f"{said} {data.strip()}".strip())


def observed(evidence: Evidence) -> Evidence:
    return replace(evidence, outcome=Finding.OBSERVED, limit=None, margin_percent=None, source="")
