from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.builders.kept_fleets import KeptPromise
from support.documents import golden

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.resume.resume import NotResumable, Past, Present, Verdicts, changes
from pytest_ssdqual.report.run_folder.find import find
from pytest_ssdqual.report.run_folder.journal import SCHEMA, Journal
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE, BayEntry, Document, Manifest, Session
from pytest_ssdqual.report.run_folder.reader import Judged, Record, RunReader
from pytest_ssdqual.report.run_summary.errors import troubles
from pytest_ssdqual.rig.drives.topology import Drive

FACTS = {
    "hostname": "dut7",
    "machine_id": "0123456789abcdef",
    "boot_id": "a",
    "kernel": "Linux 6.1",
    "cpu": "ACME 5000",
    "cpus": "16",
    "memory_kib": "1000",
    "fio": "3.33",
    "mdadm": "v4.2",
}


def drive(number: int) -> Drive:
    return Drive(
        path=f"/dev/sd{'abcd'[number]}", kname=f"sd{'abcd'[number]}", model="ACME 9", serial=f"S{number}", wwn=None,
        firmware="F1", size_bytes=480 * 10**9, logical_block_bytes=512, physical_block_bytes=4096, rotational=False,
        transport="sata",
    )  # fmt: skip


DRIVES = tuple(map(drive, range(3)))
NOW = Present(
    "root@dut7", FACTS, DRIVES, Document("acme", "[product]\nname = 'ACME'\n"), Document("quick", "a = 1\nb = 2\n")
)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Of a run that has begun."""
    return begun(tmp_path, "aaaaaaaa")


def begun(root: Path, run_id: str) -> Journal:
    journal = Journal.create(root, run_id)
    bay = BayEntry("root@dut7", FACTS, tuple(each for each in DRIVES), {})
    sessions = (Session(("pytest",), "then"),)
    manifest = Manifest(journal.path.name, "then", NOW.spec, NOW.protocol, False, (bay,), sessions)
    journal.write_manifest(manifest.to_record())
    journal.note("run_started", machine="root@dut7", drives=[each.identity for each in DRIVES])
    return journal


def test_the_same_means_are_no_reason_and_no_remark(journal: Journal) -> None:
    past = Past.read(journal.path)
    assert past.refusals(NOW) == []
    assert past.remarks(NOW) == ()


def facts(**changes: str | None) -> Mapping[str, str]:
    return {name: value for name, value in {**FACTS, **changes}.items() if value is not None}


def other_last(**changed: Any) -> Present:  # noqa: ANN401 (fields of a drive)
    """With something else about the last drive."""
    return replace(NOW, drives=(*DRIVES[:2], replace(DRIVES[2], **changed)))


#: Of each, one thing is another one.
OTHERS = (
    replace(NOW, spec=Document("other", NOW.spec.text)),
    replace(NOW, spec=Document("acme", "[product]\nname = 'ACME 2'\n")),
    replace(NOW, protocol=Document("intel", "")),
    replace(NOW, protocol=Document("quick", "a = 1\n")),
    replace(NOW, drives=(*DRIVES[:2], drive(3))),
    replace(NOW, drives=DRIVES[:2]),
    other_last(firmware="F2"),
    other_last(smart_type="none"),
    other_last(size_bytes=1),
    other_last(model="ACME 10"),
    other_last(logical_block_bytes=4096),
    replace(NOW, facts=facts(machine_id="f")),
    replace(NOW, facts=facts(machine_id=None)),
    replace(NOW, facts=facts(fio="3.42")),
    replace(NOW, facts=facts(fio=None)),
    replace(NOW, facts=facts(cpu="ACME 6000")),
    replace(NOW, facts=facts(cpus="8")),
)


def test_what_must_be_the_same(journal: Journal) -> None:
    refused = [Past.read(journal.path).refusals(now) for now in OTHERS]
    golden.same("refusals_to_resume.txt", [golden.steady(refusal).strip() for (refusal,) in refused])


@pytest.mark.parametrize(("firmware", "refusals"), [("540500WD", 0), ("00WD", 0), ("540501WD", len(DRIVES))])
def test_the_end_of_a_firmware_revision_is_the_same(journal: Journal, firmware: str, refusals: int) -> None:
    """A drive that smartctl did not identify has INQUIRY's four characters by util-linux before 2.39."""
    record = json.loads((journal.path / "manifest.json").read_text())
    for each in record["bays"][0]["drives"]:
        each["firmware"] = "00WD"
    (journal.path / "manifest.json").write_text(json.dumps(record))
    now = replace(NOW, drives=tuple(replace(each, firmware=firmware) for each in DRIVES))
    assert len(Past.read(journal.path).refusals(now)) == refusals


def test_every_reason_is_told(journal: Journal) -> None:
    now = replace(NOW, facts=facts(fio="3.42", cpus="8"), protocol=Document("intel", ""), drives=DRIVES[:1])
    assert len(Past.read(journal.path).refusals(now)) == 4


@pytest.mark.parametrize(
    ("changes", "remarks"),
    [
        ({"kernel": "Linux 6.12"}, ("the kernel is Linux 6.12 now and was Linux 6.1",)),
        ({"mdadm": None}, ("the version of mdadm is unknown now and was v4.2",)),
        ({"nvme": "2.8"}, ("the version of nvme-cli is 2.8 now and was unknown",)),
        ({"boot_id": "b", "memory_kib": "999", "site": "B"}, ()),
    ],
)
def test_what_may_differ(journal: Journal, changes: dict[str, str | None], remarks: tuple[str, ...]) -> None:
    past, now = Past.read(journal.path), replace(NOW, facts=facts(**changes))
    assert past.refusals(now) == []
    assert past.remarks(now) == remarks


def test_another_version_of_ours_is_told(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    past = Past.read(journal.path)
    monkeypatch.setattr("pytest_ssdqual.report.resume.resume.installed_versions", lambda: {"pytest-ssdqual": "99"})
    (remark,) = past.remarks(NOW)
    assert remark.startswith("the version of pytest-ssdqual is 99 now and was ")


def test_a_machine_that_was_not_asked_is_not_compared(journal: Journal) -> None:
    """As of a lab that is only planned: its drives are known, their firmware is not."""
    drives = tuple(replace(each, firmware=None) for each in DRIVES)
    past, now = Past.read(journal.path), replace(NOW, facts={}, drives=drives)
    assert past.refusals(now) == []
    assert past.remarks(now) == ()


@pytest.mark.parametrize(
    ("times", "hours"),
    [
        (["25T08:00", "25T12:00", "25T16:00"], 8),
        (["25T08:00", "25T12:00", "24T20:00", "25T00:00"], 8),  # set back during the run
        (["25T08:00", "25T12:00", "24T20:00"], 4),
        (["25T08:00", "28T12:00", "28T13:00"], 1),  # set by NTP
        (["25T08:00", "25T10:00+02:00", "yesterday", "25T09:00"], 1),
    ],
)
def test_the_time_of_a_run_does_not_follow_a_clock_that_is_set(
    journal: Journal, times: list[str], hours: float
) -> None:
    times = [f"2026-11-{time}" for time in times]
    records = [Record("looked", time if "+" in time else f"{time}+00:00", {}) for time in times]
    records[0] = replace(records[0], kind="run_started")
    assert replace(Past.read(journal.path), records=tuple(records)).spent_s == hours * 3600


def test_a_time_without_a_zone_is_utc(journal: Journal) -> None:
    times = ("2026-11-25T08:00:00", "2026-11-25T09:00:00+00:00")
    records = tuple(Record("looked", time, {}) for time in times)
    journal.note("run_started")
    assert replace(Past.read(journal.path), records=records).spent_s == 3600


def test_an_empty_fact_is_an_unknown_one() -> None:
    assert changes({"cpu": "processor"}, {"cpu": ""}, {}) == []
    assert len(changes({"cpu": "processor"}, {"cpu": ""}, {"cpu": "ACME"})) == 1


@pytest.mark.parametrize(
    ("since_last_s", "hours"),
    [(30 * 3600, 30), (31 * 3600, 30), (26 * 3600, 26), (None, 0), ("30", 0), (-1, 0), (float("nan"), 0), (True, 0)],
)
def test_a_step_over_a_day_is_spent_if_its_writer_counted_it(
    journal: Journal, since_last_s: object, hours: float
) -> None:
    """The time of day says 30 hours, of which the clock may have been set by some."""
    records = (
        Record("run_started", "2026-11-25T08:00:00+00:00", {}),
        Record("filled", "2026-11-26T14:00:00+00:00", {"since_last_s": since_last_s}),
    )
    assert replace(Past.read(journal.path), records=records).spent_s == hours * 3600


def test_the_time_between_two_sessions_is_not_spent(journal: Journal) -> None:
    kinds = ("run_started", "run_ended", "run_resumed", "run_ended")
    records = tuple(Record(kind, f"2026-11-25T{8 + 2 * hour:02}:00:00+00:00", {}) for hour, kind in enumerate(kinds))
    assert replace(Past.read(journal.path), records=records).spent_s == 2 * 2 * 3600


@pytest.mark.parametrize(
    ("kind", "facts"),
    [("resume_refused", {}), ("leftovers_removed", {}), ("array_stopped", {"leftover": True})],
)
def test_the_time_before_a_refusal_or_a_removal_is_not_spent(
    journal: Journal, kind: str, facts: dict[str, object]
) -> None:
    kinds = ("run_started", "run_ended", kind, "run_resumed", "run_ended")
    records = tuple(
        Record(each, f"2026-11-25T{8 + 2 * hour:02}:00:00+00:00", facts if each == kind else {})
        for hour, each in enumerate(kinds)
    )
    assert replace(Past.read(journal.path), records=records).spent_s == 2 * 2 * 3600


def test_other_default_promises_are_refused_if_they_are_recorded(journal: Journal) -> None:
    past, now = Past.read(journal.path), replace(NOW, defaults=Document("default", "a = 2\n"))
    assert past.refusals(now) == []
    then = replace(past, manifest=replace(past.manifest, defaults=Document("default", "a = 1\n")))
    (said,) = then.refusals(now)
    assert said.endswith('cannot be resumed: line 1 of the promises default is "a = 2" now and was "a = 1"')
    assert then.refusals(replace(now, defaults=then.manifest.defaults)) == []


def test_drives_are_put_back_in_order(journal: Journal) -> None:
    """After a boot the kernel may have found them in another one."""
    found = [replace(DRIVES[2], path="/dev/sda"), drive(3), replace(DRIVES[0], path="/dev/sdc"), DRIVES[1]]
    ordered = Past.read(journal.path).drives_in_order(found)
    assert [each.serial for each in ordered] == ["S0", "S1", "S2", "S3"]
    assert ordered[0].path == "/dev/sdc"
    assert Past.read(journal.path).refusals(replace(NOW, drives=ordered[:3])) == []


def test_a_refused_run_has_nothing_to_resume(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, "aaaaaaaa")
    with pytest.raises(NotResumable, match=r"has nothing to resume: it ended before anything was begun$"):
        Past.read(journal.path)
    journal.note("run_refused", reasons="/dev/sda is mounted")
    with pytest.raises(NotResumable, match=r"has nothing to resume: its request was refused$"):
        Past.read(journal.path)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"sessions": []}', "7"])
def test_without_a_manifest_nothing_can_be_compared(journal: Journal, text: str) -> None:
    (journal.path / "manifest.json").write_text(text)
    with pytest.raises(NotResumable, match=r"cannot be resumed: manifest\.json cannot be read: "):
        Past.read(journal.path)


@pytest.mark.parametrize("name", ["records.jsonl", "manifest.json"])
def test_a_run_of_another_schema_is_refused(journal: Journal, name: str) -> None:
    file = journal.path / name
    file.write_text(
        file.read_text().replace(f'"schema": {SCHEMA}', '"schema": 1').replace(f'"schema":{SCHEMA}', '"schema":1')
    )
    assert find("last", journal.path.parent) == journal.path
    with pytest.raises(NotResumable, match=rf"{name} has schema 1, and .* reads schema {SCHEMA} only$"):
        Past.read(journal.path)


def test_what_is_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(NotResumable, match=r"is not a run folder: records\.jsonl cannot be read$"):
        Past.read(tmp_path)


VERDICT = Judged.of("t.py::test_iops[raid5x3]", KeptPromise(13_000).evidence())
FAILED = Judged.of(VERDICT.test, KeptPromise(8_000).evidence())


def noted(judged: Judged = VERDICT) -> Record:
    return Record("verdict", "yesterday", {"writer": "main", "test": judged.test, **json_of(judged)})


def json_of(evidence: Evidence) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(plain(evidence)))
    found.pop("is_expected", None)
    return found


def test_a_verdict_is_noted_once() -> None:
    verdicts = Verdicts([noted(), Record("error", "", {"test": "x"})])
    other = Judged.of(VERDICT.test, KeptPromise(13_000, claim=Claim.P99_LATENCY).evidence())
    assert [verdicts.superseded(each) for each in (VERDICT, other, other)] == [None, "", None]


@pytest.mark.parametrize("kind", ["error", "failed"])
def test_a_pass_is_noted_again_if_its_test_ended_in_an_error(kind: str, tmp_path: Path) -> None:
    error = Record(kind, "later", {"test": VERDICT.test, "message": "the machine was lost"})
    assert Verdicts([noted(), error]).superseded(VERDICT) == "yesterday"
    assert troubles(RunReader(tmp_path, UNREADABLE, (noted(), error)))
    resumed = Record("run_resumed", "later", {})
    assert troubles(RunReader(tmp_path, UNREADABLE, (noted(), error, resumed, noted()))) == ()


def test_a_pass_is_noted_again_after_the_error_of_a_subtest() -> None:
    error = Record("failed", "", {"test": VERDICT.test, "message": "figure a is wrong"})
    resumed = Record("run_resumed", "", {})
    assert Verdicts([error, noted()]).superseded(VERDICT)
    assert Verdicts([error, noted(), resumed]).superseded(VERDICT)
    assert Verdicts([error, noted(), resumed, noted()]).superseded(VERDICT) is None


def test_an_inconclusive_verdict_and_its_error_are_noted_once() -> None:
    open_one = Judged.of(VERDICT.test, KeptPromise(10_000, half_percent=50).evidence())
    error = Record("error", "", {"test": VERDICT.test, "message": "it does not decide"})
    assert Verdicts([noted(open_one), error]).superseded(open_one) is None


def test_a_verdict_that_differs_says_which_it_supersedes() -> None:
    verdicts = Verdicts([noted()])
    assert [verdicts.superseded(FAILED), verdicts.superseded(FAILED)] == ["yesterday", None]
    expected = replace(FAILED, is_expected=True)
    assert [verdicts.superseded(expected), verdicts.superseded(expected)] == ["", None]


def test_the_last_verdict_counts() -> None:
    verdicts = Verdicts([noted(), noted(FAILED)])
    assert verdicts.superseded(FAILED) is None
    assert verdicts.superseded(VERDICT) == "yesterday"
