from __future__ import annotations

from typing import Any

from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record
from support.documents import golden

from pytest_ssdqual.report.ci import markdown
from pytest_ssdqual.report.compare.compared_run import ComparedRun
from pytest_ssdqual.report.html.certificate import certificate, html
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.run_summary import write_caches

SWITCHED, REFUSED = "off, switched from on", "on, because the drive did not switch it off"


def cache(drive: str, now: str = "off", outcome: str = SWITCHED) -> dict[str, object]:
    return record("write_cache", drive=drive, found="on", now=now, outcome=outcome)


def shown(write_run: WriteRun, *records: dict[str, object]) -> tuple[str, dict[str, str]]:
    drives: list[dict[str, Any]] = [{"identity": "0x51", "serial": "S1"}, {"identity": "0x54", "serial": "S4"}]
    story = RunReader.read(write_run(*records, bays=[{"machine": "a", "drives": drives}]))
    return write_caches.states(story), {str(row[0]): str(row[1]) for row in write_caches.rows(story)}


def check(*found: tuple[str, dict[str, str]]) -> None:
    lines = [f"{name}: {said}" for states, rows in found for name, said in (("states", states), *rows.items())]
    golden.same("write_caches.txt", lines)


def test_run_without_records_of_write_caches_says_nothing(write_run: WriteRun) -> None:
    assert shown(write_run, record("run_started")) == ("", {})


def test_one_state_is_a_word_with_its_reason_and_drives(write_run: WriteRun) -> None:
    found = shown(write_run, *(cache(f"0x5{number}") for number in range(3)))
    assert found == ("off", {"write caches": f"{SWITCHED} (3 drives)"})


def test_drive_that_differs_is_named(write_run: WriteRun) -> None:
    check(shown(write_run, *(cache(f"0x5{number}") for number in range(3)), cache("0x54", "on", REFUSED)))


def test_last_session_counts(write_run: WriteRun) -> None:
    assert shown(write_run, cache("0x51", "on", REFUSED), cache("0x51"))[0] == "off"


def test_restoration_is_shown(write_run: WriteRun) -> None:
    planned = [record("write_cache_planned", change=change, drive=change) for change in "abc"]
    restored = record("write_cache_restored", change="a", lost=False, sentence="is on again")
    lost = record("write_cache_restored", change="b", lost=True, sentence="was on at the end")
    left = record("write_cache_left", change="c", sentence="could not be restored: run with it again")
    check(
        shown(write_run, *planned),
        shown(write_run, *planned, restored, lost),
        shown(write_run, *planned, restored, left),
        shown(write_run, *planned[:1], restored),
    )


def test_certificate_summary_and_comparison_have_the_states(write_run: WriteRun) -> None:
    folder = write_run(judged(claimed(value=1000)), cache("S1"), cache("S2"))
    assert '<th scope="row">Write caches</th><td>off</td>' in html(certificate(folder, {}))
    assert "- Write caches: `off`\n" in markdown.text(folder)
    assert ComparedRun.read(folder).write_caches == "off"


def test_damaged_records_do_not_break_the_page(write_run: WriteRun) -> None:
    states, rows = shown(write_run, record("write_cache"), record("write_cache_planned"), record("write_cache_left"))
    assert states == ""
    assert set(rows) >= {"write caches restored"}
