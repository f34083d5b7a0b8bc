from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, planned, record
from support.documents import golden

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.ci import markdown

HOSTILE = (
    "<img src=x onerror=alert(1)>", "a | b | c", "`code` ``two``", "`", "\\", "\\|", "[x](https://x.example)",
    "@octocat", "![](x)", "#1", "https://x.example/", "www.x.example", "a@b.example", "**bold** _it_ ~~no~~",
    "|---|", "a\nb\n\n# c", "&lt;b&gt;", "$x$", ":+1:", "\u202e", "\ud800", "", " ", "\t", "x" * 5000, "- x", "<!--",
    "```", "deadbeefdeadbeef",
)  # fmt: skip


def inline(text: str) -> list[Token]:
    """All there is in a page, blocks and what is in them; tables as GitHub knows them."""
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        found += [token, *(token.children or [])]
    return [token for token in found if token.type != "inline"]


def shape(text: str) -> list[str]:
    return [token.type for token in inline(text)]


def codes(text: str) -> list[str]:
    return [token.content for token in inline(text) if token.type == "code_inline"]


def called(model: str) -> dict[str, object]:
    """A manifest of one drive."""
    drive = {
        "identity": "S1",
        "serial": "S1",
        "model": model,
        "firmware": model,
        "size_bytes": 480 * 10**9,
        "path": "/d",
    }
    return {"bays": [{"machine": model, "facts": {}, "drives": [drive]}]}


def check(folder: Path) -> None:
    golden.same("job_summaries.md", golden.steady(markdown.text(folder), folder).splitlines())


def test_the_verdict_comes_first_then_broken_ones_then_the_table(write_run: WriteRun) -> None:
    broken, kept = claimed(), claimed(Claim.STEADY_IOPS, value=9412, bound=9000)
    trouble = record("error", test="t3", message="no cable\nx")
    filled = record("filled", geometry="drivex1", passes=1, bs="128k")
    check(write_run(filled, judged(kept, "t1"), judged(broken, "t2"), trouble))


def test_a_rehearsal_says_that_it_is_one(write_run: WriteRun) -> None:
    kept = judged(claimed(value=400_000))
    worse = record("drive_worsened", drive="S1", name="ACME 1", findings=["3 media errors more"])
    skipped = [record("skipped", test=f"t{number}", reason="no drives") for number in range(12)]
    check(write_run(planned(), kept, worse, *skipped, acceptance=False))
    plain = markdown.text(write_run(kept))
    assert "or acceptance" not in plain
    assert "Skipped" not in plain


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(HOSTILE) | st.text(st.characters(codec=None), max_size=40))
def test_nothing_that_a_drive_calls_itself_is_more_than_text(write_run: WriteRun, model: str) -> None:
    broken = replace(claimed(), sentence=f"{model} of it", geometries=("raid5x4",))
    trouble = record("error", test=f"t[{model}]", message=model)
    folder = write_run(judged(broken), trouble, manifest=called(model))
    plain = write_run(
        judged(replace(broken, sentence="harmless")), record("error", test="t", message="m"), manifest=called("m")
    )
    expected = [each for each in shape(markdown.text(plain)) if each not in ("text", "code_inline")]
    folder = write_run(judged(broken), trouble, manifest=called(model))
    text = markdown.text(folder)
    assert [each for each in shape(text) if each not in ("text", "code_inline")] == expected
    assert not {"html_block", "html_inline", "link_open", "image", "fence", "code_block"} & set(expected)
    assert all(each.isprintable() or each == "\n" for each in text)
    for token in inline(text):
        if token.type == "text":
            assert markdown.OURS.fullmatch(token.content), token.content


@pytest.mark.parametrize("foreign", HOSTILE)
def test_a_code_span_holds_all_of_it(foreign: str) -> None:
    text = markdown.code(foreign)
    table = inline(f"| a | b |\n|---|---|\n| {text} | x |\n")
    assert [token.type for token in table].count("td_open") == 2
    if text == "unknown":
        assert not foreign.strip()
        return
    assert codes(text) == [text[1:-1]]
    assert [token.content for token in table if token.type == "code_inline"] == [text[1:-1].strip()]
    assert len(text) <= 502


def undone(shown: str) -> str:
    return shown.replace("\\x60", "`").replace("\\x7c", "|").replace("\\x3a", ":")


@given(st.text(st.characters(codec=None), min_size=1, max_size=40))
@example("a|b`c")
@example("::")
@example("\U000e0100")
def test_what_stood_there_can_be_told(foreign: str) -> None:
    text = markdown.code(foreign)
    if safe_text.line(foreign) == foreign and foreign.strip():
        assert undone(text[1:-1]) == undone(foreign)


def test_what_only_seems_to_be_ours_is_code() -> None:
    assert markdown.words("3 of 4 promises failed; 1 passed.") == "3 of 4 promises failed; 1 passed."
    for text in ("see www.x.example", "@octocat", "#1", "_it_", "a|b", "<b>", "[x]", "a\nb"):
        assert markdown.words(text) == markdown.code(text)
        assert markdown.words(text).startswith("`")


def many(number: int, name: str) -> list[dict[str, object]]:
    all_of_them = (replace(claimed(), geometries=(f"{name}{each}",)) for each in range(number))
    return [judged(each, f"t{at}") for at, each in enumerate(all_of_them)]


def test_a_long_run_is_one_screen(write_run: WriteRun) -> None:
    text = markdown.text(write_run(*many(299, "x" * 2000)))
    assert len(text.splitlines()) < 60
    assert len(text.encode()) < 25_000
    assert "- and 279 more: records.jsonl" in text
    assert text.count("\n- `p99 latency of") == markdown.MOST_LISTED
    assert "- Run folder: `" in text


@pytest.mark.parametrize(
    ("count", "rows"), [(markdown.MOST_LISTED, markdown.MOST_LISTED), (markdown.MOST_LISTED + 1, 1)]
)
def test_many_promises_are_a_row_each_claim(write_run: WriteRun, count: int, rows: int) -> None:
    text = markdown.text(write_run(*many(count, "raid5x")))
    assert text.count("\n| p99 latency |") == rows
    assert ("| Claim | Array | Promises | Smallest margin | Worst |" in text) is (rows == 1)


def test_it_is_ours_alone_and_replaced_whole(write_run: WriteRun) -> None:
    folder = write_run(judged(claimed()))
    (folder / "summary.md").write_text("old")
    path = markdown.write(folder)
    assert path.read_text() == markdown.text(folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {each.name for each in folder.iterdir()} == {"records.jsonl", "manifest.json", "summary.md"}
