from __future__ import annotations

import base64
import hashlib
import json
import re
import stat
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from support.builders import charted
from support.builders.evidence import claimed
from support.builders.report_page import Reader, WriteRun, judged, planned, record

from pytest_ssdqual.report.evidence.evidence import Finding, Part
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.html.page import policy
from pytest_ssdqual.report.html.run_page import Drawn, write
from pytest_ssdqual.report.run_folder.journal import SCHEMA
from pytest_ssdqual.report.view.tables import Table

HOSTILE = "</title></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;\x1b[31m\u202e{{ 7*7 }}"
SVG = '<svg class="chart" viewBox="0 0 9 9" role="img"><title id="a-t">t</title><path d="M0 0"></path></svg>'
TABLE = Table(("x <1>", "y"), (("1", "<2>"),))
CHART = charted.chart_of_svg("a", SVG, "What is <seen>", "How & why", TABLE, "raid5")


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn is tested elsewhere, and takes its time."""
    monkeypatch.setattr(run_page, "draw", lambda story, failures: Drawn((("raid5", (CHART,)),), {}, {}, "", None))


def read(folder: Path) -> tuple[str, Reader]:
    text = write(folder).read_text(encoding="utf-8")
    return text, Reader.of(text)


def everything(write_run: WriteRun, word: str) -> Path:
    """A run folder in which every text is the same."""
    figures = {word: 1.0}
    broken = replace(
        claimed(), claim=word, sentence=word, source=word, figures=figures, raw=(word,), remarks=(word,),
        geometries=(word,), workloads=(word,), members=(Part(word, figures, Finding.FAIL),), worst=word,
    )  # fmt: skip
    undecided = replace(broken, outcome=Finding.INCONCLUSIVE, geometries=("b",))
    said = {"lines": [{"time_s": 1.0, "level": 3, "text": word}], "more": 1, "lost": True}
    drive = {"identity": word, "serial": word, "model": word, "firmware": word, "path": word}
    folder = write_run(
        record("health", drive=word, when="before", temperature_c=word),
        record("array_created", geometry=word, members=[word], purge={word: word}, settings={word: word}),
        record("conditioned", geometry=word, workload=word, capacities=word),
        record("cell", of="measured", geometry=word, workload=word, visit=0),
        record("environment", checks={word: 1.0}, unknown=[word], objections=[word], raw=word, kernel=said),
        record("drive_worsened", name=word, findings=[word]),
        judged(broken, word),
        judged(undecided, word),
        judged(replace(broken, geometries=("c",), outcome=Finding.OBSERVED, limit=None, margin_percent=None), word),
        record("error", 9, test=word, message=word),
        manifest={
            "remarks": [word], "run_id": word, "versions": {word: word},
            "protocol": {"name": word, "text": word}, "spec": {"name": word, "text": word},
            "bays": [{"machine": word, "facts": {word: word}, "drives": [drive]}],
            "sessions": [{"differences": [word], "command_line": [word]}],
        },
    )  # fmt: skip
    command = {"writer": "main", "number": 1, "argv": [word], "status": 1, "stderr": word, "stdout": "", "elapsed_s": 1}
    command["started"] = "2026-01-01T00:00:05+00:00"
    (folder / "transcript.jsonl").write_text(json.dumps(command) + "\n")
    (folder / re.sub(r"[/\0]", "_", word)).write_text("")
    return folder


def test_what_looks_like_markup_stays_text(write_run: WriteRun) -> None:
    text, page = read(everything(write_run, HOSTILE))
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    assert not [attributes for _, attributes in page.elements if any(name.startswith("on") for name in attributes)]
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in read(everything(write_run, "word"))[1].elements}
    assert "<script>alert(1)</script>" in page.text  # as it would be read
    assert "{{ 7*7 }}" in page.text
    assert not {"\x1b", "\u202e"} & set(text)
    assert r"\x1b[31m\u202e" in text
    assert "error: </title>" in page.text  # of the kernel


def test_nothing_comes_from_elsewhere(write_run: WriteRun) -> None:
    text, page = read(everything(write_run, "word"))
    links = [value for _, attributes in page.elements for name, value in attributes.items() if name in ("href", "src")]
    assert links
    assert [each for each in links if not each.startswith("#")] == []
    without_policy = re.sub(r"sha256-[^;]+;", "", text)
    assert re.findall(r"https?:|url\((?!#)|@import|//\w", without_policy) == []


def test_the_policy_allows_our_script_and_no_other(write_run: WriteRun) -> None:
    _, page = read(write_run())
    (script,) = page.texts["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (found,) = [each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    assert found == policy(script)
    assert f"script-src 'sha256-{digest}';" in found
    assert found.startswith("default-src 'none';")
    assert len(script.encode()) < 8_000


def test_headings_are_in_order_and_ids_unique(write_run: WriteRun) -> None:
    _, page = read(everything(write_run, "word"))
    levels = [level for level, _ in page.headings]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert all(said for _, said in page.headings)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [each["href"][1:] for each in page.all("a")]
    targets += [name for _, each in page.elements for name in each.get("aria-labelledby", "").split()]
    assert set(targets) <= set(ids)


def test_tables_are_read_out_with_their_heads(write_run: WriteRun) -> None:
    _, page = read(everything(write_run, "word"))
    assert len(page.all("table")) == len(page.all("caption")) > 5
    assert all(each.get("scope") in ("col", "row") for each in page.all("th"))
    assert page.all("html")[0]["lang"] == "en"
    assert [tag for tag, _ in page.elements if tag in ("main", "nav", "header", "footer")] == [
        "header", "main", "nav", "footer",
    ]  # fmt: skip


def test_the_verdict_comes_first_and_warns_if_it_decides_nothing(write_run: WriteRun) -> None:
    _, page = read(write_run(judged(claimed()), exit_status=1))
    assert page.headings[0] == (1, "✗ Not fit")
    assert "1 of 1 promise" in page.text
    assert "Not for acceptance" not in page.text
    _, page = read(write_run(planned(), judged(claimed(value=1000)), acceptance=False))
    assert page.headings[0] == (1, "✓ Passed for 1 of 1 test, 1 of 1 drive, not for acceptance")
    assert "Not for acceptance: " in page.text


def test_drives_protocol_and_validity_stand_with_the_verdict(write_run: WriteRun) -> None:
    text, _ = read(write_run(judged(claimed(value=1000))))
    top = " ".join(Reader.of(text.partition("<nav")[0] + "</main></body></html>").text.split())
    assert "For acceptance: " in top
    for name, value in (
        ("Drives", "1 × ACME 1 on dut"), ("Spec", "acme"), ("Protocol", "snia"),
        ("Started", "2026-01-01 00:00:00 UTC"),
    ):  # fmt: skip
        assert f"{name}{value}" in top


def test_skipped_tests_do_not_count(write_run: WriteRun) -> None:
    skips = [record("skipped", test=f"t[{number}]", reason="needs 6 drives, there is 1") for number in range(5)]
    _, page = read(write_run(planned(), *skips, judged(claimed(value=1000))))
    assert page.headings[0] == (1, "✓ Fit for 1 of 1 test, 1 of 1 drive")
    assert "– tests skipped5" in page.text
    _, page = read(write_run(judged(claimed(value=1000))))
    assert "Skipped tests" not in page.text


def test_a_drive_that_calls_itself_pass_is_a_name(write_run: WriteRun) -> None:
    drive = {"serial": "pass", "model": "fail"}
    _, page = read(write_run(bays=[{"machine": "observed", "drives": [drive]}]))
    assert not [each for each in page.all("span") if each.get("class", "").startswith("outcome")]


def test_a_failure_is_linked_to_its_own_section(write_run: WriteRun) -> None:
    _, page = read(write_run(judged(claimed(), "suite.py::test_one[raid5x4]"), exit_status=1))
    assert {"href": "#failure-1"} in page.all("a")
    assert [each["class"] for each in page.all("article") if each["id"] == "failure-1"] == ["failure"]
    assert "suite.py::test_one[raid5x4]" in page.text
    assert "No kernel log" in page.text


def test_many_inconclusive_promises_leave_the_charts_in_reach(write_run: WriteRun) -> None:
    open_ones = [
        judged(replace(claimed(arrays=f"raid5x{number}"), outcome=Finding.INCONCLUSIVE), f"t[{number}]")
        for number in range(3, 18)
    ]
    _, page = read(write_run(*open_ones))
    assert "3 more inconclusive" in page.text
    assert "raid5x17" in page.text


@pytest.mark.parametrize("outcome", [Finding.FAIL, Finding.INCONCLUSIVE, Finding.BOUNDED])
def test_a_list_says_how_many_it_leaves_out(
    write_run: WriteRun, monkeypatch: pytest.MonkeyPatch, outcome: Finding
) -> None:
    monkeypatch.setattr(run_page, "MOST_SENTENCES", 20)
    many = [judged(replace(claimed(arrays=f"raid5x{width}"), outcome=outcome), f"t{width}") for width in range(3, 30)]
    assert "7 more are" in read(write_run(*many))[1].text


@pytest.mark.parametrize(
    "manifest", ["", "{", '{"bays": 7, "protocol": [], "sessions": {}, "versions": 1, "family": 3}']
)
def test_a_damaged_folder_has_a_page_that_says_so(write_run: WriteRun, manifest: str) -> None:
    folder = write_run(judged(claimed(value=1000)))
    (folder / "manifest.json").write_text(manifest)
    with (folder / "records.jsonl").open("a") as file:
        file.write(f'{{"kind": "verdict"\n{{"schema":{SCHEMA},"kind":"health","time":"t","drive":[],"when":1}}\n')
        file.write(f'{{"schema":{SCHEMA},"kind":"array_created","time":"t","members":1,"purge":[],"settings":null}}\n')
        file.write(f'{{"schema":{SCHEMA},"kind":"verdict","time":"t","test":"x"}}\n')
    _, page = read(folder)
    assert page.headings[0] == (1, "? No verdict")
    assert "cannot read 2" in page.text


def test_an_empty_folder_has_a_page(write_run: WriteRun) -> None:
    _, page = read(write_run(manifest={}))
    assert page.headings[0] == (1, "? No verdict")
    assert "No promise was" in page.text


def test_the_page_is_for_its_owner_and_an_old_one_is_replaced(write_run: WriteRun) -> None:
    folder = write_run()
    (folder / "report.html").write_text("old")
    path = write(folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "old" not in path.read_text()[:100]
    assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []


def test_thousands_of_promises_stay_below_the_size_of_a_page(write_run: WriteRun) -> None:
    broken = [judged(claimed(arrays=f"raid5x{3 + number % 6}"), f"t[{number}]") for number in range(3_000)]
    text, page = read(write_run(*broken))
    assert len(text.encode()) < 1_000_000  # charts have two more
    assert "3,000 of 3,000 " in page.text
    assert "in records.jsonl" in page.text


def test_what_a_chart_says_is_text_and_its_table_is_there(write_run: WriteRun) -> None:
    text, page = read(write_run())
    assert SVG in text
    assert "What is <seen> How & why" in page.text
    assert "<2>" in page.text
    assert [each["id"] for each in page.all("figure")] == ["a"]


def test_many_models_and_long_names_leave_the_verdict_readable(write_run: WriteRun) -> None:
    drives = [{"serial": f"S{number}", "model": f"ACME {number} {'x' * 500}"} for number in range(9)]
    _, page = read(write_run(bays=[{"machine": "dut", "drives": drives}]))
    title = page.texts["title"][0]
    assert "+ 5 of" in title
    assert len(title) < 400


def test_a_long_message_is_whole_only_in_its_section(write_run: WriteRun) -> None:
    message = "lost " + "y" * 1000
    _, page = read(write_run(record("error", test="t", message=message)))
    listed, whole = (next(each for each in page.texts[tag] if each.startswith("lost")) for tag in ("a", "code"))
    assert len(listed) <= 300
    assert whole == message
