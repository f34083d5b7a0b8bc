from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.evidence import claimed

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_summary import causes

SLOW = Cause(Culprit.DRIVE, "it does 60% of the median drive's IOPS", ("S3",), confidence=0.95)
MD = Cause(Culprit.MD, "its thread used 97% of a CPU", advice="raise array.group_threads", confidence=0.95)


@pytest.fixture
def failed() -> Evidence:
    return replace(claimed(Claim.STEADY_IOPS), outcome=Finding.FAIL)


def test_one_drive_is_one_headline_the_worst_promise_first(failed: Evidence) -> None:
    several = [replace(failed, cause=SLOW, margin_percent=-percent) for percent in (10, 40, 20)]
    (group,) = causes.groups(several)
    assert group.headline == "drive S3 explains 3 of 3 failed promises: it does 60% of the median drive's IOPS"
    assert [each.margin_percent for each in group.broken] == [-40, -20, -10]
    assert group.advice == ""


def test_the_largest_group_comes_first_and_no_cause_last(failed: Evidence) -> None:
    held_back = replace(failed, outcome=Finding.INCONCLUSIVE, cause=MD)
    passed = replace(failed, outcome=Finding.PASS)
    undecided = replace(failed, outcome=Finding.INCONCLUSIVE)
    found = causes.groups([failed, failed, failed, held_back, *[replace(failed, cause=SLOW)] * 2, passed, undecided])
    assert [(each.culprit, each.share) for each in found] == [
        (Culprit.DRIVE, "2 of 5 failed promises"),
        (Culprit.MD, "1 of 2 inconclusive promises"),
        (None, "3 of 5 failed promises"),
    ]  # fmt: skip
    assert found[1].headline == "md, not a drive, limits 1 of 2 inconclusive promises: its thread used 97% of a CPU"
    assert found[1].advice == MD.advice
    assert "no cause was attributed" in found[2].headline


def test_an_unknown_cause_comes_last_and_accuses_no_drive(failed: Evidence) -> None:
    unknown = [replace(failed, cause=Cause(Culprit.UNKNOWN, "no law for it"))] * 2
    first, last = causes.groups([*unknown, replace(failed, cause=SLOW)])
    assert (first.culprit, last.culprit) == (Culprit.DRIVE, Culprit.UNKNOWN)
    assert "no law for it" in last.headline
    assert causes.blamed([first, last]) == {"S3": 1}


def test_without_any_cause_there_is_no_group(failed: Evidence) -> None:
    assert causes.groups([failed]) == ()
    assert causes.groups([]) == ()


def test_drives_and_how_many_broken_promises_they_cause(failed: Evidence) -> None:
    both = replace(SLOW, culprit=Culprit.DRIVES, drives=("S3", "S4"))
    path = replace(MD, culprit=Culprit.PATH, drives=("S5", "S6"))
    found = causes.groups([replace(failed, cause=each) for each in (SLOW, SLOW, both, path, MD)])
    assert causes.blamed(found) == {"S3": 3, "S4": 1}
