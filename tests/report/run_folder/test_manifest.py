from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.report.run_folder.journal import Journal, read_document
from pytest_ssdqual.report.run_folder.manifest import (
    BayEntry,
    Document,
    Manifest,
    Session,
    installed_versions,
    keep_health,
)
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health.health import parse

DRIVE = Drive("/dev/sdb", "sdb", "ACME SSD", "S 1/2", "0x50", "F1", 480 * 10**9, 512, 4096, False, "sata")
HEALTH = parse('{"smart_status": {"passed": true}, "temperature": {"current": 31}, "smartctl": {"exit_status": 0}}')


WHOLE = Manifest(
    run_id="aaaaaaaa",
    started="2026-01-01T00:00:00.000+00:00",
    spec=Document("acme", "µ = 1\n"),
    protocol=Document("snia", ""),
    acceptance=True,
    bays=(BayEntry("root@dut7", {"kernel": "Linux 6.12"}, (DRIVE,), {"50026b7686e0b30f": "acme (SATA)"}),),
    sessions=(Session(("pytest", "--ssd-devices=/dev/sd[b-i]"), "2026-01-01T00:00:00.000+00:00"),),
    remarks=("zpool could not be looked at",),
    baseline={"run": "bbbbbbbb", "sha256": "00ff"},
)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.create(tmp_path, "aaaaaaaa")


def test_it_says_what_was_tested_with_what(journal: Journal) -> None:
    journal.write_manifest(WHOLE.closed("2026-01-02T00:00:00.000+00:00", 1).to_record())
    record = json.loads((journal.path / "manifest.json").read_text())
    digest = hashlib.sha256(b"\xc2\xb5 = 1\n").hexdigest()
    assert record["spec"] == {"name": "acme", "sha256": digest, "text": "µ = 1\n"}
    assert (record["ended"], record["exit_status"]) == ("2026-01-02T00:00:00.000+00:00", 1)
    assert record["sessions"][0]["versions"]["pytest"] == pytest.__version__
    (bay,) = record["bays"]
    (drive,) = bay["drives"]
    assert (bay["machine"], bay["facts"]) == ("root@dut7", {"kernel": "Linux 6.12"})
    assert (drive["wwn"], drive["model"], drive["serial"], drive["firmware"], drive["size_bytes"]) == (
        "0x50",
        "ACME SSD",
        "S 1/2",
        "F1",
        480 * 10**9,
    )


def test_a_run_without_a_spec(journal: Journal) -> None:
    manifest = Manifest("a", "", None, Document("quick", ""), False, (), ())
    assert (manifest.to_record()["spec"], manifest.to_record()["acceptance"]) == (None, False)


def test_it_is_read_back(journal: Journal) -> None:
    resumed = Session(("pytest", "--ssd-resume=last"), "2026-01-03T00:00:00.000+00:00", differences=("another kernel",))
    whole = WHOLE.resumed(resumed).closed("2026-01-04T00:00:00.000+00:00", 0)
    journal.write_manifest(whole.to_record())
    read = read_document(Manifest, Path("manifest.json"), json.loads((journal.path / "manifest.json").read_text()))
    assert read == whole


def test_every_session_is_in_it() -> None:
    second = Session(("pytest", "--ssd-resume=last"), "later", differences=("another kernel",))
    record = WHOLE.resumed(second).closed("end", 0).to_record()
    assert [(each["started"], each["ended"], each["exit_status"]) for each in record["sessions"]] == [  # type: ignore[attr-defined]
        (WHOLE.started, None, None),  # it was killed, and that stays
        ("later", "end", 0),
    ]
    assert (record["started"], record["ended"], record["exit_status"]) == (WHOLE.started, "end", 0)


@pytest.mark.parametrize("name", ["sessions", "run_id", "spec", "protocol", "bays", "remarks", "budget_s", "defaults"])
def test_what_is_not_whole_is_no_manifest(name: str) -> None:
    record = WHOLE.to_record()
    del record[name]
    with pytest.raises(ValueError, match=f"{name}: is missing|nothing is no array"):
        read_document(Manifest, Path("manifest.json"), record)


@pytest.mark.parametrize("name", ["revision", "smart_type", "max_link", "names"])
def test_a_manifest_needs_all_of_its_drives(name: str) -> None:
    record: dict[str, Any] = WHOLE.to_record()
    del record["bays"][0]["drives"][0][name]
    with pytest.raises(ValueError, match=rf"bays\[0\]\.drives\[0\]\.{name}: is missing"):
        read_document(Manifest, Path("manifest.json"), record)


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ssdqual.report.run_folder.manifest.DISTRIBUTIONS", ("pytest", "no-such-distribution"))
    assert sorted(installed_versions()) == ["pytest", "python"]


def test_a_drives_own_words_are_kept(journal: Journal) -> None:
    keep_health(journal, DRIVE, HEALTH, "before")
    assert (journal.path / "health/S_1_2-before.json").read_text() == HEALTH.raw_json
    (record,) = read_records(journal.path)
    assert record.kind == "health"
    assert record.facts["raw"] == "health/S_1_2-before.json"
    assert (record.facts["drive"], record.facts["when"], record.facts["temperature_c"]) == ("0x50", "before", 31)
