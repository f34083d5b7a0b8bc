from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from support.builders.evidence import claimed
from support.documents import golden

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, ErrorControl
from pytest_ssdqual.report.evidence import multiplicity
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Finding, Part
from pytest_ssdqual.report.evidence.multiplicity import FamilyRecord, properties, tally


def counted(found: Sequence[tuple[str, Evidence]], family: ErrorControl | None = None) -> FamilyRecord:
    told = tally(found, family or ErrorControl(264), 0.95)
    assert told
    return told


def lines(found: FamilyRecord) -> list[str]:
    return multiplicity.lines(found, "snia")


def failed(p_value: float) -> Evidence:
    return claimed(value=812_000, figures={"p_value": p_value})


def test_264_claims() -> None:
    found = counted([(f"test_p99[{number}]", claimed(value=1000)) for number in range(264)])
    controlled = counted([("test_p99", claimed(value=1000))] * 2, ErrorControl(300, BONFERRONI))
    golden.same("multiplicity.txt", [*lines(found), *lines(controlled)])


def test_every_drive_side_by_side_is_a_claim_a_reading_is_none() -> None:
    alone = tuple(
        Part(f"S{number}", {"value": 1.0, "p_value": 0.001} if number == 1 else {"value": 1.0}, outcome)
        for number, outcome in enumerate((Finding.PASS, Finding.FAIL, Finding.PASS))
    )
    drives = replace(claimed(), members=alone, worst="S1")
    likeness = replace(claimed(Claim.MEMBER_SPREAD, value=0.9, bound=0.8), members=(Part("S0"), Part("S1")))
    reading = replace(claimed(Claim.MAX_LATENCY), is_reading=True, figures={"p_value": 0.5})
    lot = replace(claimed(Claim.CONFORMING_DRIVES, value=50, bound=49), is_reading=True, about=About.LOT, members=alone)
    observed = replace(claimed(), outcome=Finding.OBSERVED, limit=None)
    found = counted(
        [("test_drives", drives), ("test_alike", likeness), ("test_max", reading), ("test_lot", lot), ("o", observed)]
    )
    assert (found.claims_judged, found.readings) == (4, 2)
    assert [(each.test, each.drive, each.p_value) for each in found.failures] == [("test_drives", "S1", 0.001)]
    golden.same("multiplicity.txt", lines(found))
    assert tally([("o", observed)], ErrorControl(1), 0.95) is None


def test_every_claim_about_a_lot_counts() -> None:
    lot = replace(claimed(Claim.CONFORMING_DRIVES, value=50, bound=49), is_reading=True, about=About.LOT)
    claims = [("test_lot", replace(lot, group=claim)) for claim in ("steady_iops", "p99", "p99")]
    assert counted(claims).readings == 2


def test_a_search_counts_once_whatever_its_result() -> None:
    search = replace(claimed(), about=About.SEARCH)
    assert counted([("test_search", replace(search, group=result)) for result in ("broken", "kept")]).claims_judged == 1


def test_failures_that_do_not_hold_among_many_claims_are_named() -> None:
    good = [(f"test_good[{number}]", claimed(value=1000)) for number in range(252)]
    bad = [(f"test_bad[{number}]", failed(1e-6)) for number in range(11)]
    tallied = counted([*good, *bad, ("test_doubtful", failed(0.04))])
    many = counted([*good, *((f"test_{number}", failed(0.04)) for number in range(8))])
    golden.same("multiplicity.txt", [*lines(tallied), *lines(many)])


def test_claims_that_go_wrong_together_are_in_the_record() -> None:
    good = [(f"test_good[{number}]", claimed(value=1000)) for number in range(98)]
    tallied = counted([*good, ("test_sure", failed(1e-6)), ("test_likely", failed(0.0009))])
    record = json.loads(json.dumps(plain(tallied)))
    upheld = {
        each["test"]: (each["upheld_benjamini_hochberg"], each["upheld_benjamini_yekutieli"])
        for each in record["failures"]
    }
    # 0.0009 ≤ 0.05·2/100, but not after the division by 1 + 1/2 + … + 1/100 = 5.19.
    assert upheld == {"test_sure": (True, True), "test_likely": (True, False)}
    assert (record["claims_planned"], record["claims_judged"], record["control"]) == (264, 100, "none")
    assert dict(properties(tallied))["family.failures_upheld_benjamini_yekutieli"] == "1"


def test_a_test_that_was_run_again_counts_as_it_came_out_last() -> None:
    tallied = counted([("test_p99", failed(0.01)), ("test_p99", claimed(value=1000))])
    assert (tallied.claims_judged, tallied.failures) == (1, ())
    # Not so two claims of one test, or two tests of one claim.
    two = counted([("test_p99", claimed()), ("test_p99", claimed(Claim.P50_LATENCY)), ("test_other", claimed())])
    assert two.claims_judged == 3


def test_more_claims_than_were_planned_are_told() -> None:
    good = [(f"test_good[{number}]", claimed(value=1000)) for number in range(3)]
    golden.same("multiplicity.txt", lines(counted(good, ErrorControl(2, BONFERRONI))))
    assert len(lines(counted(good, ErrorControl(2)))) == 1
