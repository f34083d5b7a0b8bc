from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders.evidence import claimed
from support.builders.manifests import manifest

from pytest_ssdqual.qual.records import plain, shallow
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding
from pytest_ssdqual.report.run_folder.journal import SCHEMA, Journal, OtherSchema
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE, PlannedClaims, PlannedTests, WorsenedDrive
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.create(tmp_path / "runs", "story")


def note(journal: Journal, test: str, evidence: Evidence, **more: object) -> None:
    journal.note("verdict" if evidence.is_promised else "observation", test=test, **{**plain(evidence), **more})


def test_a_story_is_the_records_in_order_and_the_manifest(journal: Journal) -> None:
    journal.write_manifest(manifest(run_id="1").to_record())
    journal.note("run_started", machine="lab")
    note(journal, "a", claimed())
    story = RunReader.read(journal.path)
    assert story.folder == journal.path
    assert story.manifest == manifest(run_id="1")
    assert [record.kind for record in story.records] == ["run_started", "verdict"]
    assert [record.facts["machine"] for record in story.of("run_started", "run_ended")] == ["lab"]
    (judged,) = story.judged
    assert judged == Judged.of("a", claimed(), judged.time)
    assert judged.time == story.records[1].time


def test_a_verdict_judged_again_takes_the_earlier_one_back(journal: Journal) -> None:
    note(journal, "a", claimed(value=812_000))
    note(journal, "b", claimed(value=812_000))
    note(journal, "a", claimed(value=812_000, arrays="raid5x8"))
    note(journal, "a", claimed(value=100_000), supersedes="2026-01-01T00:00:00.000+00:00")
    found = [(each.test, each.geometries[0], each.outcome) for each in RunReader.read(journal.path).judged]
    assert found == [
        ("b", "raid5x4", Finding.FAIL),
        ("a", "raid5x8", Finding.FAIL),
        ("a", "raid5x4", Finding.PASS),
    ]


def test_verdicts_on_two_claims_of_one_lot_both_count(journal: Journal) -> None:
    bad = replace(claimed(), claim="conforming_drives", about=About.LOT, group="steady_iops")
    good = replace(bad, outcome=Finding.PASS, margin_percent=10.0, group="p99_latency")
    for each in (bad, good):
        journal.note("verdict", test="test_lot", **plain(each))
    outcomes = [each.outcome for each in RunReader.read(journal.path).judged]
    assert outcomes == [Finding.FAIL, Finding.PASS]


def test_the_result_of_a_search_is_no_part_of_what_it_is_about(journal: Journal) -> None:
    for sentence in ("2 of 30 workloads", "3 of 40 workloads"):
        found = replace(claimed(), about=About.SEARCH, group=sentence)
        journal.note("verdict", test="test_search", **plain(found))
    (last,) = RunReader.read(journal.path).judged
    assert last.group == "3 of 40 workloads"


@pytest.mark.parametrize("schema", [0, 2, 99])
@pytest.mark.parametrize("kinds", [(), ("verdict",)])
def test_records_of_another_schema_are_refused(tmp_path: Path, schema: int, kinds: tuple[str, ...]) -> None:
    lines = [{"schema": schema, "kind": kind, "time": "t"} for kind in ("run_started", "run_ended")]
    (tmp_path / "records.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(OtherSchema, match=rf"records\.jsonl .* {schema}, .* schema {SCHEMA} "):
        RunReader.read(tmp_path, *kinds)


def test_a_manifest_of_another_schema_is_refused(journal: Journal) -> None:
    journal.note("run_started")
    journal.write_manifest({"schema": 1})
    with pytest.raises(OtherSchema, match=rf"manifest\.json .* schema {SCHEMA} "):
        RunReader.read(journal.path)


def test_a_verdict_that_cannot_be_read_is_counted_and_left_out(journal: Journal) -> None:
    note(journal, "a", claimed(), outcome="splendid")
    note(journal, "b", claimed())
    story = RunReader.read(journal.path)
    assert [each.test for each in story.judged] == ["b"]
    assert story.unreadable == 1


@pytest.mark.parametrize(
    ("later", "unreadable"),
    [
        ({}, 0),
        ({"about": About.SEARCH, "group": "what it found now"}, 0),
        ({"group": "another"}, 1),
        ({"geometries": ("raid5x8",)}, 1),
        ({"claim": "mean_latency"}, 1),
    ],
)
def test_a_damaged_verdict_that_is_judged_again_is_not_missing(
    journal: Journal, later: dict[str, Any], unreadable: int
) -> None:
    note(journal, "a", claimed(), outcome="splendid")
    note(journal, "a", replace(claimed(), **later))
    assert RunReader.read(journal.path).unreadable == unreadable
    note(journal, "b", claimed())
    assert RunReader.read(journal.path).unreadable == unreadable
    note(journal, "a", claimed(), outcome="splendid")
    assert RunReader.read(journal.path).unreadable == unreadable + 1


def line(kind: str, time: str | None = "t") -> bytes:
    return json.dumps({"schema": SCHEMA, "kind": kind, "time": time, "test": "a"}).encode()


BROKEN, NO_TIME = line("drive_worsened")[:-1], line("verdict", None)


@pytest.mark.parametrize(
    ("lines", "unreadable"),
    [
        ([BROKEN, line("health")], 1),
        ([NO_TIME, BROKEN, line("run_ended")], 2),
        ([line("health")[:-1], line("run_ended")], 0),
        # What a crash leaves was never acknowledged.
        ([BROKEN], 0),
        ([BROKEN, line("run_resumed")], 0),
        ([BROKEN, line("leftovers_removed"), line("run_resumed")], 0),
        ([BROKEN, line("resume_refused")], 0),
        ([BROKEN, line("verdict").replace(b'"a"', b'"run_resumed"')], 2),
    ],
)
def test_a_lost_line_of_a_decisive_kind_is_counted(tmp_path: Path, lines: list[bytes], unreadable: int) -> None:
    (tmp_path / "records.jsonl").write_bytes(b"\n".join([line("run_started"), *lines, b""]))
    for kinds in ((), ("verdict", "drive_worsened")):
        assert RunReader.read(tmp_path, *kinds).unreadable == unreadable


@pytest.mark.parametrize(
    ("kind", "damage", "unreadable"),
    [
        ("drive_worsened", {}, 0),
        ("drive_worsened", {"severity": 3}, 1),
        ("drive_worsened", {"defects": "2 media errors"}, 1),
        ("tests_planned", {}, 0),
        ("tests_planned", {"claims": None}, 1),
        ("tests_planned", {"claims": [["steady_iops"], []]}, 1),
        ("claims_planned", {}, 0),
        ("claims_planned", {"count": "many"}, 1),
        ("array_stopped", {}, 0),
        ("array_stopped", {"objections": None}, 1),
        ("array_left", {"objections": "degraded"}, 1),
        ("health", {"when": 7}, 0),
    ],
)
def test_damaged_records_that_decide_about_a_run_are_counted(
    journal: Journal, kind: str, damage: dict[str, object], unreadable: int
) -> None:
    worsened = WorsenedDrive("0x50", "/dev/sdb (ACME, serial 1)", ("2 media errors",), ("2 media errors",))
    planned = PlannedTests(("a",), (("steady_iops",),), (), ("steady_iops",))
    facts: dict[str, dict[str, object]] = {
        "drive_worsened": shallow(worsened), "tests_planned": shallow(planned),
        "claims_planned": shallow(PlannedClaims(16, "none")), "array_stopped": {"uuid": "1", "objections": []},
    }  # fmt: skip
    journal.note(kind, **{**facts.get(kind, {}), **damage})
    assert RunReader.read(journal.path).unreadable == unreadable


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', None, f'{{"schema": {SCHEMA}}}', "{}"])
def test_a_manifest_that_cannot_be_read_is_an_empty_one(journal: Journal, text: str | None) -> None:
    if text is not None:
        (journal.path / "manifest.json").write_text(text)
    assert RunReader.read(journal.path).manifest is UNREADABLE


def test_a_folder_without_records_is_no_story(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RunReader.read(tmp_path)
