from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import inspected
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.command import main
from pytest_ssdqual.qual.inspection.checks import Answer
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.html.certificate import NoLibrary, certificate, html, write
from pytest_ssdqual.report.run_folder import checksums

KEPT = replace(claimed(value=1000), outcome=Finding.PASS, margin_percent=99.0)


def sealed(folder: Path) -> Path:
    (folder / checksums.SUMS).write_bytes(checksums.text(folder))
    return folder


def test_complete_run_for_acceptance_is_certified(write_run: WriteRun) -> None:
    content = certificate(sealed(write_run(judged(KEPT))), {"Order": "4711", "Lot": ""})
    assert content.is_of_fit_product
    assert list(content.drives.values()) == [["S1"]]
    page = html(content)
    assert '<td class="pass">passed</td>' in page
    assert "<dt>Order</dt><dd>4711</dd></div>" in page
    assert "<dt>Lot</dt><dd></dd></div>" in page
    assert "<dt>Signature</dt>" in page


def test_a_delivery_is_certified_with_its_readings(write_run: WriteRun) -> None:
    of = inspected.checked("wear", "≤ 0 %", dict.fromkeys(("S1", "S2"), ("0 %", Answer.CONFORMS)))
    page = html(certificate(sealed(write_run(judged(KEPT), judged(of, "u"))), {}))
    assert "wear 0 %" in page
    assert '<td class="pass">conforming</td>' in page


@pytest.mark.parametrize("manifest", [{"acceptance": False}, {"ended": None}, {"exit_status": 2}], ids=str)
def test_run_that_may_not_decide_never_passed(write_run: WriteRun, manifest: dict[str, object]) -> None:
    content = certificate(sealed(write_run(judged(KEPT), **manifest)), {})
    assert content.reasons
    assert not content.is_of_fit_product
    page = html(content)
    assert "<h1>Qualification record: not a certificate</h1>" in page
    assert "passed" not in page
    assert page.count(">not certified</td>") == 1


def test_a_shell_does_not_ship_what_is_not_fit(write_run: WriteRun, tmp_path: Path) -> None:
    """``ssdqual certificate … && ship``: a certificate may also say that the product is not fit."""
    broken = replace(claimed(value=10), outcome=Finding.FAIL, margin_percent=-90.0)
    for number, (evidence, status) in enumerate(((KEPT, 0), (broken, 1))):
        folder = sealed(write_run(judged(evidence)))
        assert main(["certificate", str(folder), "-o", str(tmp_path / f"{number}.html")]) == status


def test_inconclusive_run_never_passed(write_run: WriteRun) -> None:
    undecided = replace(KEPT, outcome=Finding.INCONCLUSIVE, geometries=("raid5x5",))
    content = certificate(sealed(write_run(judged(KEPT), judged(undecided, "u"))), {})
    assert content.reasons
    assert "passed" not in html(content)


@pytest.mark.parametrize("damage", ["records.jsonl", "SHA256SUMS"])
def test_damaged_evidence_never_passed(write_run: WriteRun, damage: str) -> None:
    folder = sealed(write_run(judged(KEPT)))
    if damage == checksums.SUMS:
        (folder / damage).unlink()
    else:
        (folder / damage).write_bytes((folder / damage).read_bytes() + b"\n")
    content = certificate(folder, {})
    assert damage in " ".join(content.reasons)
    assert "passed" not in html(content)


def test_page_written_again_is_no_damage(write_run: WriteRun) -> None:
    folder = write_run(judged(KEPT))
    (folder / "report.html").write_text("old")
    sealed(folder)
    (folder / "report.html").write_text("new")
    assert not certificate(folder, {}).reasons


def test_drives_of_which_nothing_was_measured_are_not_certified(write_run: WriteRun) -> None:
    drives = [{"identity": f"w{name}", "serial": name, "model": "ACME"} for name in ("S1", "S2", "S3", "S4")]
    bays = [{"machine": "dut", "drives": drives}]
    built = [
        record("purging", geometry="raid5x3", members=["wS1", "wS2"]),
        record("array_planned", geometry="raid5x3", members=["wS1", "wS2", "wS3"]),
    ]
    narrow = judged(replace(KEPT, geometries=("raid5x3",)))
    content = certificate(sealed(write_run(*built, narrow, bays=bays)), {})
    assert not content.reasons
    assert list(content.drives.values()) == [["S1", "S2", "S3"]]
    assert content.not_tested == ["S4"]
    assert "Not tested: drive S4," in html(content)


def test_what_was_not_judged_is_on_the_certificate(write_run: WriteRun) -> None:
    drive = {"identity": "S1", "serial": "S1", "model": "ACME", "smart_type": "none"}
    bays = [{"machine": "dut", "drives": [drive]}]
    skipped = [record("skipped", test=f"t{number}", reason="no limit") for number in range(12)]
    content = certificate(sealed(write_run(*skipped, judged(KEPT), bays=bays)), {})
    assert not content.reasons
    assert "12 tests were skipped" in html(content)
    assert "The health of 1 drive was not read" in html(content)


@pytest.mark.parametrize("defects", [(), ("43 kernel messages of errors",)], ids=["repaired", "defect"])
def test_what_was_found_of_a_drive_is_on_the_certificate(write_run: WriteRun, defects: tuple[str, ...]) -> None:
    """The signer of a certified run has to see errors that the kernel repaired, as terminal and page show them."""
    finding = "43 kernel messages of errors"
    worsened = record("drive_worsened", drive="S1", name="ACME 1", findings=[finding], defects=list(defects))
    page = html(certificate(sealed(write_run(judged(KEPT), worsened)), {}))
    assert page.count(finding) == 1


def test_a_sheet_of_another_model_is_on_the_certificate(write_run: WriteRun) -> None:
    """--ssd-force-spec judges by it, and the certificate must not look as if it were the sheet of the drives."""
    remark = "the spec acme is not for these drives: S1 is none of its models (--ssd-force-spec)"
    assert remark in html(certificate(sealed(write_run(judged(KEPT), remarks=[remark])), {}))


def test_pdf_has_every_drive_and_claim(write_run: WriteRun, tmp_path: Path) -> None:
    drive = {"identity": "S", "model": "中文 \u202e <b>", "firmware": "Ω", "size_bytes": 1}
    bays = [{"machine": "d", "drives": [{**drive, "serial": f"中{number:08}"} for number in range(600)]}]
    claims = [judged(replace(KEPT, claim=f"claim_{number}"), f"t{number}") for number in range(40)]
    content = certificate(sealed(write_run(*claims, bays=bays)), {"Lot": "x" * 200})
    page = html(content)
    assert page.count("中0") == 600
    assert page.count(">passed</td>") == 40
    assert "<b>" not in page
    assert "\u202e" not in page
    write(content, tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF-")


def test_without_the_library_only_html_is_written(
    write_run: WriteRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    content = certificate(sealed(write_run(judged(KEPT))), {})
    with pytest.raises(NoLibrary, match=r"pytest-ssdqual\[certificate\]"):
        write(content, tmp_path / "page.pdf")
    assert not (tmp_path / "page.pdf").exists()
    write(content, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == html(content)
