from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.builders import charted
from support.builders.evidence import claimed

from pytest_ssdqual.report.ci import junit
from pytest_ssdqual.report.evidence.evidence import Finding

HOSTILE = "</td><script>alert(1)</script>\"'&amp;\x1b[31m\u202e"
SVG = '<svg viewBox="0 0 9.5 8" class="chart"><path style="stroke:var(--s1)" d="M0 0"></path></svg>'


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


def test_what_others_say_is_text() -> None:
    hostile = replace(
        claimed(), sentence=HOSTILE, source=HOSTILE, worst=HOSTILE, raw=(HOSTILE,), geometries=(HOSTILE,),
        remarks=(HOSTILE,), protocol=HOSTILE,
    )  # fmt: skip
    for text in (junit.tables([hostile]), junit.sentences([hostile, hostile])):
        assert set(Tags(text).seen) <= {"p", "strong", "table", "tr", "th", "td", "br"}
        assert "&lt;script&gt;alert(1)" in text
        assert not {"\x1b", "\u202e"} & set(text)


def test_a_table_has_the_figures_and_nothing_that_is_not_known() -> None:
    text = junit.tables([claimed(), claimed()])
    assert text.count('<th scope="row">limit</th><td>≤ 500 µs (acme.toml promise[3])</td>') == 2
    assert '<th scope="row">published</th>' not in text


def test_only_what_was_broken_or_is_open_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pytest_ssdqual.report.charts.chart_of",
        lambda story, each: charted.chart_of_svg(each.outcome, SVG, each.test),
    )
    (tmp_path / "records.jsonl").touch()
    every = [replace(claimed(), outcome=outcome) for outcome in Finding]
    assert [each.key for each in junit.explained(tmp_path, "test_it", every)] == ["fail", "inconclusive", "bounded"]
    kept = [replace(claimed(), outcome=Finding.PASS)]
    assert junit.explained(Path("/nowhere"), "test_it", kept) == []
