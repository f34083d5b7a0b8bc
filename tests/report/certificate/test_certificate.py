from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders.report_page import MANIFEST, Claimed, WriteRun, judged, record

from pytest_ssdqual.report.certificate import pdf
from pytest_ssdqual.report.certificate.certificate import NOT_CERTIFIED, Certificate, certificate
from pytest_ssdqual.report.certificate.pdf import document
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder import checksums


@pytest.fixture
def kept(claimed: Claimed) -> Evidence:
    return replace(claimed(value=1000), outcome=Finding.PASS, margin_percent=99.0)


def sealed(folder: Path) -> Path:
    (folder / checksums.SUMS).write_bytes(checksums.text(folder))
    return folder


def words(found: Certificate) -> str:
    return repr(found)


def test_a_complete_run_for_acceptance_is_certified(write_run: WriteRun, kept: Evidence) -> None:
    found = certificate(sealed(write_run(judged(kept))), {"Order": "4711"})
    assert found.is_certified
    assert [each.outcome for each in found.claims] == ["passed"]
    assert dict(found.fields) == {"Order": "4711", "Lot": "", "Operator": ""}
    assert found.drives[0].serials == ("S1",)


@pytest.mark.parametrize(
    "manifest", [{"acceptance": False}, {"ended": None}, {"exit_status": 2}, {"acceptance": None}], ids=str
)
def test_a_run_that_may_not_decide_never_passed(
    write_run: WriteRun, kept: Evidence, manifest: dict[str, object]
) -> None:
    found = certificate(sealed(write_run(judged(kept), **manifest)), {})
    assert found.reasons
    assert "passed" not in words(found)
    assert [each.outcome for each in found.claims] == [NOT_CERTIFIED]


def test_an_inconclusive_run_never_passed(write_run: WriteRun, kept: Evidence) -> None:
    undecided = replace(kept, outcome=Finding.INCONCLUSIVE, geometries=("raid5x5",))
    found = certificate(sealed(write_run(judged(kept), judged(undecided, "u"))), {})
    assert found.reasons
    assert "passed" not in words(found)


@pytest.mark.parametrize("damage", ["records.jsonl", "SHA256SUMS"])
def test_damaged_evidence_never_passed(write_run: WriteRun, kept: Evidence, damage: str) -> None:
    folder = sealed(write_run(judged(kept)))
    if damage == checksums.SUMS:
        (folder / damage).unlink()
    else:
        (folder / damage).write_bytes((folder / damage).read_bytes() + b"\n")
    found = certificate(folder, {})
    assert damage in " ".join(found.reasons)
    assert "passed" not in words(found)


def test_a_page_written_again_is_no_damage(write_run: WriteRun, kept: Evidence) -> None:
    folder = write_run(judged(kept))
    (folder / "report.html").write_text("old")
    sealed(folder)
    (folder / "report.html").write_text("new")
    assert certificate(folder, {}).is_certified


def test_drives_of_which_nothing_was_measured_are_not_certified(write_run: WriteRun, kept: Evidence) -> None:
    drives = [{"identity": f"w{name}", "serial": name, "model": "ACME"} for name in ("S1", "S2", "S3", "S4")]
    bays = [{"machine": "dut", "drives": drives}]
    built = [
        record("purging", geometry="raid5x3", members=["wS1", "wS2"]),
        record("array_planned", geometry="raid5x3", members=["wS1", "wS2", "wS3"]),
    ]
    narrow = judged(replace(kept, geometries=("raid5x3",)))
    found = certificate(sealed(write_run(*built, narrow, manifest={**MANIFEST, "bays": bays})), {})
    assert found.is_certified
    assert [each.serials for each in found.drives] == [("S1", "S2", "S3")]
    assert found.remarks == ("Not tested: drive S4, not certified and not listed.",)


def test_what_was_not_judged_is_on_the_certificate(write_run: WriteRun, kept: Evidence) -> None:
    drive = {"identity": "S1", "serial": "S1", "model": "ACME", "smart_type": "none"}
    bays = [{"machine": "dut", "drives": [drive]}]
    skipped = [record("skipped", test=f"t{number}", reason="no limit") for number in range(12)]
    found = certificate(sealed(write_run(*skipped, judged(kept), manifest={**MANIFEST, "bays": bays})), {})
    assert found.is_certified
    assert found.remarks == (
        "12 tests were skipped; the report of the run has the reasons.",
        "The health of 1 drive was not read and is not judged.",
    )
    assert len(document(found)) > len(document(replace(found, remarks=())))


def test_any_text_fits_onto_one_page(write_run: WriteRun, kept: Evidence) -> None:
    drive = {"identity": "S", "model": "中文 \u202e", "firmware": "Ω", "size_bytes": 1}
    bays = [{"machine": "d", "drives": [{**drive, "serial": f"中{number:08}"} for number in range(60)]}]
    claims = [judged(replace(kept, claim=f"claim_{number}"), f"t{number}") for number in range(40)]
    found = certificate(sealed(write_run(*claims, manifest={**MANIFEST, "bays": bays})), {"Lot": "x" * 200})
    page = document(found)
    assert page.startswith(b"%PDF-")
    assert page.count(b"/Type /Page\n") == 1


def test_without_the_library_a_sentence_names_the_extra(
    write_run: WriteRun, kept: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fpdf", None)
    found = certificate(sealed(write_run(judged(kept))), {})
    with pytest.raises(pdf.NoLibrary, match=r"pytest-ssdqual\[certificate\]"):
        pdf.write(found, tmp_path / "page.pdf")
    assert not (tmp_path / "page.pdf").exists()
