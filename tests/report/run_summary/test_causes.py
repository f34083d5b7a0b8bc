from __future__ import annotations

from dataclasses import replace

from support.builders.evidence import claimed
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_summary import causes

SLOW = Cause(Culprit.DRIVE, "it does 60% of the median drive's IOPS", ("S3",), confidence=0.95)
MD = Cause(Culprit.MD, "its thread used 97% of a CPU", advice="raise array.group_threads", confidence=0.95)


FAILED = replace(claimed(Claim.STEADY_IOPS), outcome=Finding.FAIL)


def test_one_drive_is_one_headline_the_worst_promise_first() -> None:
    several = [replace(FAILED, cause=SLOW, margin_percent=-percent) for percent in (10, 40, 20)]
    (group,) = causes.groups(several)
    golden.same("headlines.txt", [group.headline])
    assert [each.margin_percent for each in group.broken] == [-40, -20, -10]
    assert group.advice == ""


def test_the_largest_group_comes_first_and_no_cause_last() -> None:
    held_back = replace(FAILED, outcome=Finding.INCONCLUSIVE, cause=MD)
    passed = replace(FAILED, outcome=Finding.PASS)
    undecided = replace(FAILED, outcome=Finding.INCONCLUSIVE)
    groups = causes.groups([FAILED, FAILED, FAILED, held_back, *[replace(FAILED, cause=SLOW)] * 2, passed, undecided])
    assert [each.culprit for each in groups] == [Culprit.DRIVE, Culprit.MD, None]
    assert groups[1].advice == MD.advice
    golden.same("headlines.txt", [line for each in groups for line in (each.headline, f"  {each.share}")])


def test_an_unknown_cause_comes_last_and_accuses_no_drive() -> None:
    unknown = [replace(FAILED, cause=Cause(Culprit.UNKNOWN, "no law for it"))] * 2
    first, last = causes.groups([*unknown, replace(FAILED, cause=SLOW)])
    assert (first.culprit, last.culprit) == (Culprit.DRIVE, Culprit.UNKNOWN)
    assert "no law for it" in last.headline
    assert causes.blamed([first, last]) == {"S3": 1}


def test_without_any_cause_there_is_no_group() -> None:
    assert causes.groups([FAILED]) == ()
    assert causes.groups([]) == ()


def test_drives_and_how_many_broken_promises_they_cause() -> None:
    both = replace(SLOW, culprit=Culprit.DRIVES, drives=("S3", "S4"))
    path = replace(MD, culprit=Culprit.PATH, drives=("S5", "S6"))
    groups = causes.groups([replace(FAILED, cause=each) for each in (SLOW, SLOW, both, path, MD)])
    assert causes.blamed(groups) == {"S3": 3, "S4": 1}
