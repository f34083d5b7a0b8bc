from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import inspected
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record
from support.documents import golden

from pytest_ssdqual.qual.inspection.checks import Answer
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.report.ci import markdown
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, Part
from pytest_ssdqual.report.evidence.health import failed_in, of_drives, of_failures
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.run_summary.overview import Overview, arrays_judged, overview
from pytest_ssdqual.report.run_summary.run_view import RunView
from pytest_ssdqual.report.terminal.summary import ending

BAYS = [{"machine": "root@dut", "drives": [{"identity": each, "serial": each} for each in ("S1", "S2", "S3")]}]


def test_the_first_screen_says_what_was_tested() -> None:
    names = ("raid5x3", "raid5x8", "drivex8", "raid5x4-1failed", "raid10x4")
    judged = [Judged.of("t", replace(claimed(), geometries=(name,))) for name in names]
    sweep = replace(claimed(), geometries=("raid5x3", "raid5x9"))
    assert arrays_judged([*judged, Judged.of("t", sweep)]) == (
        "single drives, RAID 10 of 4 drives, RAID 5 of 3, 8 and 9 drives, RAID 5 (1 failed) of 4 drives"
    )


def test_without_an_array_nothing_is_said() -> None:
    assert arrays_judged([Judged.of("t", replace(claimed(), geometries=("the lot",)))]) == ""
    assert arrays_judged([]) == ""


def healthy(about: str = "drivex3") -> Evidence:
    return of_drives(about, {"S1": ()}, "healthy", spec="acme")


def test_health_is_no_measurement_of_single_drives() -> None:
    assert arrays_judged([Judged.of("t", healthy())]) == ""


def test_health_and_figures_alone_make_no_product_fit(write_run: WriteRun) -> None:
    seen = replace(claimed(), outcome=Finding.OBSERVED, limit=None, margin_percent=None, source="")
    verdict = RunView.read(write_run(judged(seen), judged(healthy(), "u"))).verdict
    assert verdict.word == "No verdict"
    assert verdict.gaps == ("Nothing but the health of the drives was judged.",)


def test_neither_health_nor_inspection_makes_what_is_bounded_fit(write_run: WriteRun) -> None:
    bounded = replace(claimed(), outcome=Finding.BOUNDED)
    inspected = replace(claimed(), claim="inspected_model", outcome=Finding.PASS)
    verdict = RunView.read(write_run(judged(bounded), judged(healthy(), "u"), judged(inspected, "v"))).verdict
    assert verdict.word == "No verdict"
    kept = replace(claimed(), outcome=Finding.PASS)
    verdict = RunView.read(write_run(judged(bounded), judged(kept, "w"))).verdict
    assert (verdict.word, verdict.counts.bounded) == ("Fit", 1)


def first_screen(folder: Path) -> Overview:
    return overview(RunView.read(folder))


def check(*overviews: Overview) -> None:
    """Compare what is said of causes, drives and next steps with the golden file."""
    lines: list[str] = []
    for found in overviews:
        lines += (f"cause: {' / '.join(cause.lines)}" for cause in found.causes)
        lines += (f"{drive.serial}: {', '.join((*drive.charges, drive.untested))}" for drive in found.drives)
        lines += (f"step: {step.text} {step.command}" for step in found.steps)
    golden.same("first_screens.txt", lines)


def of_one_dead_drive(write_run: WriteRun, *more: dict[str, object]) -> Overview:
    dead = FailedDrive("S2", ("it dropped out",), ())
    worse = record(
        "drive_worsened", 4, drive="S2", name="/dev/b (serial S2)", defects=["x"],
        findings=[dead.sentence, "smartctl cannot read /dev/b (serial S2)"],
    )  # fmt: skip
    lost = [
        record("error", 2, test=f"t[{each}]", message=f"raid5x{each} was not measured: {failed_in('S2', 't[0]')}")
        for each in (3, 4)
    ]
    died = judged(of_failures("raid5x3", [dead]), "t[0]")
    return first_screen(write_run(died, *lost, worse, *more, bays=BAYS, exit_status=1))


def test_a_dead_drive_is_one_cause_with_its_consequences(write_run: WriteRun) -> None:
    check(of_one_dead_drive(write_run))


def test_another_error_beside_a_dead_drive_is_a_cause_of_its_own(write_run: WriteRun) -> None:
    check(of_one_dead_drive(write_run, record("error", 5, test="u", message="no cable\nat all")))


def test_a_drive_whose_health_worsened_did_not_fail(write_run: WriteRun) -> None:
    findings = ["media errors: 0, now 3"]
    worse = record("drive_worsened", drive="S1", name="ACME 1", findings=findings, defects=findings)
    check(first_screen(write_run(judged(healthy()), worse, bays=BAYS)))


def test_an_unhealthy_drive_is_one_cause_whether_it_got_worse_or_was_before(write_run: WriteRun) -> None:
    findings = {"S1": (), "S2": ("media errors rose from 0 to 7",)}
    broken = judged(of_drives("drivex2", findings, "one has findings", spec="acme"))
    worse = record("drive_worsened", drive="S2", name="ACME 2", findings=findings["S2"], defects=findings["S2"])
    for records in ((broken,), (broken, worse)):
        screen = first_screen(write_run(*records, bays=BAYS))
        assert len(screen.causes) == 1
        assert "S2" in screen.causes[0].sentence
        assert "S2" in screen.steps[0].command


def test_no_defect_is_left_out_among_changes_of_all_drives(write_run: WriteRun) -> None:
    """Of a shelf that lost its power each drive counts an unsafe shutdown."""
    serials = [f"S{number}" for number in range(8)]
    bays = [{"machine": "root@dut", "drives": [{"identity": each, "serial": each} for each in serials]}]
    cut = "unsafe shutdowns: 3, now 4"
    changes = [record("drive_worsened", drive=each, name="ACME", findings=[cut], defects=[]) for each in serials[:-1]]
    bad = [
        record("drive_worsened", drive=each, name="ACME", findings=["x: 0, now 3"], defects=["x"]) for each in "ABCD"
    ]
    found = first_screen(write_run(judged(claimed()), *changes, *bad, bays=bays))
    assert [each.sentence.split()[1].rstrip(":") for each in found.causes[:4]] == ["A", "B", "C", "D"]
    assert len(found.causes) == 5


def test_a_judged_drive_without_a_mark_failed_no_promise(write_run: WriteRun) -> None:
    members = tuple(Part(each, {}, Finding.FAIL if each == "S3" else Finding.PASS) for each in ("S1", "S2", "S3"))
    check(first_screen(write_run(judged(replace(claimed(), geometries=("drivex3",), members=members)), bays=BAYS)))


def test_a_drive_without_a_figure_is_named_beside_judged_ones(write_run: WriteRun) -> None:
    members = tuple(Part(each, {}, Finding.PASS) for each in ("S1", "S3"))
    check(first_screen(write_run(judged(replace(claimed(), geometries=("drivex2",), members=members)), bays=BAYS)))


def test_what_passed_is_a_fact_with_the_smallest_margin(write_run: WriteRun) -> None:
    kept = [judged(claimed(value=value), f"t{value}") for value in (300_000, 400_000)]
    facts = dict(first_screen(write_run(*kept, judged(claimed(), "bad"))).facts)
    assert facts["Passed"].startswith("2 of 3 promises: 2 p99 latency; smallest margin +20.0 %")
    assert "Passed" not in dict(first_screen(write_run(judged(claimed()))).facts)


def test_drives_that_deviate_at_the_inspection_are_causes(write_run: WriteRun) -> None:
    of = inspected.checked("wear", "≤ 0 %", {"S1": ("0 %", Answer.CONFORMS), "S2": ("38 %", Answer.DEVIATES)})
    bays = [{"machine": "dut", "drives": [{"serial": each, "path": f"/dev/{each}"} for each in ("S1", "S2")]}]
    check(first_screen(write_run(judged(of), bays=bays, exit_status=1)))


@pytest.mark.parametrize("acceptance", [True, False])
def test_the_next_step_after_a_pass(write_run: WriteRun, acceptance: bool) -> None:
    check(first_screen(write_run(judged(claimed(value=1000)), acceptance=acceptance)))


def test_the_next_step_judges_a_slow_drive_alone(write_run: WriteRun) -> None:
    slow = replace(claimed(), cause=Cause(Culprit.DRIVE, "it is slow", ("S2",), confidence=0.9))
    check(first_screen(write_run(judged(slow), bays=BAYS, acceptance=False)))


def test_a_command_has_a_line_of_its_own_at_any_width(write_run: WriteRun) -> None:
    slow = replace(claimed(), cause=Cause(Culprit.DRIVE, "it is slow", ("S2",), confidence=0.9))
    folder = write_run(judged(slow), bays=BAYS)
    command = "ssdqual run drive --devices='root@dut:/dev/disk/by-id/*S2'"
    assert f"    {command}" in [line.text for line in ending(RunView.read(folder), 40)]
    assert f"`{command}`" in markdown.text(folder).splitlines()


def test_a_drive_blamed_more_than_the_others_keeps_its_mark(write_run: WriteRun) -> None:
    bays = [{"machine": "root@dut", "drives": [{"identity": each, "serial": each} for each in ("S1", "S2")]}]

    def by(serial: str) -> Evidence:
        return replace(claimed(), cause=Cause(Culprit.DRIVE, "it is slow", (serial,), confidence=0.9))

    blamed = [judged(by(serial), name) for name, serial in (("t", "S1"), ("u", "S1"), ("v", "S2"))]
    assert [bool(each.charges) for each in first_screen(write_run(*blamed, bays=bays)).drives] == [True, True]
    # What is common to all is no mark.
    assert not any(each.charges for each in first_screen(write_run(*blamed[1:], bays=bays)).drives)


def test_the_next_step_after_a_new_defect_is_about_health(write_run: WriteRun) -> None:
    kept = replace(claimed(), outcome=Finding.PASS, margin_percent=3.0)
    worse = record("drive_worsened", drive="S1", name="ACME 1", findings=["x"], defects=["media errors: 0, now 3"])
    check(first_screen(write_run(judged(kept), worse, bays=BAYS)))


@pytest.mark.parametrize("acceptance", [True, False])
def test_findings_that_the_verdict_does_not_count_come_first(write_run: WriteRun, acceptance: bool) -> None:
    worse = record("drive_worsened", drive="S2", name="ACME 1", findings=["343 time-outs"], defects=[])
    check(first_screen(write_run(judged(claimed(value=1000)), worse, bays=BAYS, acceptance=acceptance)))


def test_a_serial_number_that_is_no_pattern_is_in_no_command(write_run: WriteRun) -> None:
    slow = replace(claimed(), cause=Cause(Culprit.DRIVE, "it is slow", ("S 2*",), confidence=0.9))
    bays = [{"machine": "dut", "drives": [{"serial": "S 2*"}, {"serial": "S3"}]}]
    check(first_screen(write_run(judged(slow), bays=bays)))


def test_the_next_step_where_the_host_limits_is_the_remedy_once(write_run: WriteRun) -> None:
    limited = replace(
        claimed(),
        outcome=Finding.INCONCLUSIVE,
        cause=Cause(Culprit.MD, "it is busy", advice="raise threads", confidence=0.9),
    )
    check(first_screen(write_run(judged(limited), exit_status=1)))


def test_the_next_step_decides_what_is_inconclusive(write_run: WriteRun) -> None:
    undecided = judged(replace(claimed(), outcome=Finding.INCONCLUSIVE))
    changes = {"ended": None}, {"exit_status": 1}, {"exit_status": 1, "acceptance": False}
    check(*(first_screen(write_run(undecided, **changed)) for changed in changes))


def left_out(serial: str, why: str, failed: Sequence[str] = ()) -> dict[str, object]:
    """One record of a drive that a measurement side by side is without."""
    return record("drives_left_out", geometry="drivex3", of="measured", drives={serial: why}, failed=failed)


def test_a_drive_that_was_left_out_is_a_cause_and_is_to_be_mended(write_run: WriteRun) -> None:
    undecided = replace(claimed(), outcome=Finding.INCONCLUSIVE, sentence="no figure of S2, S3")
    records = [judged(undecided), left_out("S2", "drive S2 is connected by x2"), left_out("S3", "it died", ["S3"])]
    records.append(left_out("S", "drive S is another one, whose serial number is the beginning of that"))
    check(first_screen(write_run(*records, bays=BAYS, exit_status=1)))


def test_a_drive_that_a_later_session_judged_is_no_cause(write_run: WriteRun) -> None:
    kept = replace(claimed(value=1000), sentence="drive S2 is fast")
    found = first_screen(write_run(left_out("S2", "drive S2 is connected by x2"), judged(kept), bays=BAYS))
    assert found.causes == ()


def test_what_only_a_budget_left_out_asks_for_a_longer_one(write_run: WriteRun) -> None:
    left_out, broken = (
        record("error", test=each, message=f"it was not measured: {each}") for each in ("the budget of 8 h ends", "x")
    )
    planned = record("budget", seconds=28_800, left_out=["x"])
    (longer,) = first_screen(write_run(planned, left_out, exit_status=1)).steps
    assert longer.command == "--ssd-resume=20260101T000000Z-1 --ssd-budget=…"
    (mended,) = first_screen(write_run(planned, left_out, broken, exit_status=1)).steps
    assert mended.command == ""


def test_every_run_has_a_next_step(write_run: WriteRun) -> None:
    check(
        first_screen(write_run()),
        first_screen(write_run(manifest={})),
        first_screen(write_run(record("error", test="t", message="m"))),
        first_screen(write_run(judged(claimed()))),
    )
