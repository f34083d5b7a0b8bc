"""What part of a run was judged, and of which promises nothing was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.evidence.evidence import Finding, Part
from pytest_ssdqual.report.evidence.health import of_drives
from pytest_ssdqual.report.run_summary.coverage import Coverage, HollowPromise
from pytest_ssdqual.report.run_summary.fitness import Fitness, PageVerdict, headline, word_of
from pytest_ssdqual.report.run_summary.run_view import RunView

Line = dict[str, object]
Verdict = Callable[..., PageVerdict]
IOPS, P99 = "steady_iops", "p99_latency"
DRIVES = [{"identity": f"w{name}", "serial": name} for name in ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8")]
BAYS = [{"machine": "dut", "drives": DRIVES}]
FIRST, SECOND, OTHER = "raid5/a.py::iops[0]", "raid5/a.py::iops[1]", "raid5/b.py::p99"
TESTS: Mapping[str, Sequence[str]] = {FIRST: [IOPS], SECOND: [IOPS], OTHER: [P99]}


#: Of evidence without a limit.
OBSERVED: dict[str, Any] = {"outcome": Finding.OBSERVED, "limit": None, "margin_percent": None, "source": ""}


def planned(
    tests: Mapping[str, Sequence[str]], *, left_out: Sequence[str] = (), unpromised: Sequence[str] = ()
) -> Line:
    claims = {claim for each in tests.values() for claim in each}.difference(unpromised)
    return record(
        "tests_planned", tests=[*tests], claims=[*tests.values()], left_out=[*left_out], promised=sorted(claims)
    )


def skipped(test: str, *, applies: bool = True) -> Line:
    return record("skipped", test=test, reason="why", **({} if applies else {"inapplicable": True}))


def passed(test: str, claim: str = P99, arrays: str = "raid5x3", **changed: Any) -> Line:  # noqa: ANN401 (fields of evidence)
    evidence = replace(claimed(Claim(claim), arrays, value=1000), outcome=Finding.PASS, margin_percent=99.0)
    return judged(replace(evidence, **changed), test)


@pytest.fixture
def verdict(write_run: WriteRun) -> Verdict:
    return lambda *records, **manifest: RunView.read(write_run(*records, bays=BAYS, **manifest)).verdict


def numbers(found: PageVerdict) -> tuple[int, ...]:
    """Tests judged, all tests, those without a limit, drives judged, all drives."""
    return tuple(found.coverage.facts.values())


def missing(found: PageVerdict) -> list[tuple[str, tuple[str, ...], int]]:
    return [(each.claim, each.suites, each.tests) for each in found.coverage.missing]


def test_a_run_with_a_promise_that_no_test_judged_is_not_fit(verdict: Verdict) -> None:
    found = verdict(planned(TESTS), passed(OTHER), skipped(FIRST), skipped(SECOND), exit_status=5)
    assert missing(found) == [(IOPS, (), 2)]
    assert found.fitness is Fitness.NO_VERDICT
    assert str(found.coverage.missing[0]).lower() in found.sentence.lower()
    assert found.use.startswith("Not for acceptance")


def test_one_verdict_of_a_promise_is_enough(verdict: Verdict) -> None:
    found = verdict(planned(TESTS), passed(OTHER), passed(FIRST, IOPS), skipped(SECOND))
    assert (found.fitness, found.coverage.missing) == (Fitness.FIT, ())
    assert numbers(found) == (2, 3, 0, 3, 8)


def test_a_figure_without_a_limit_is_no_verdict(verdict: Verdict) -> None:
    records = passed(OTHER), passed(FIRST, IOPS, **OBSERVED), passed(SECOND, IOPS, **OBSERVED)
    assert missing(verdict(planned(TESTS), *records, exit_status=5)) == [(IOPS, (), 2)]


def test_a_test_that_does_not_apply_makes_no_promise_hollow(verdict: Verdict) -> None:
    away = skipped(FIRST, applies=False), skipped(SECOND, applies=False)
    found = verdict(planned(TESTS), passed(OTHER), *away)
    assert (found.fitness, numbers(found)) == (Fitness.FIT, (1, 1, 0, 3, 8))
    # One that applies and has no verdict does.
    found = verdict(planned(TESTS), passed(OTHER), away[0], skipped(SECOND), exit_status=5)
    assert missing(found) == [(IOPS, (), 1)]


def test_a_suite_of_which_no_test_applies_is_hollow(verdict: Verdict) -> None:
    """Too few drives for any array of a suite must not make it green beside another one."""
    both = {**TESTS, "drive/a.py::iops": [IOPS]}
    away = [skipped(test, applies=False) for test in TESTS]
    found = verdict(planned(both), *away, passed("drive/a.py::iops", IOPS, "drivex8"), exit_status=5)
    assert missing(found) == [(IOPS, ("raid5",), 2), (P99, (), 1)]


@pytest.mark.parametrize("before", ["", "dut2-", "4k-"], ids=["alone", "in a bay", "behind a parameter"])
def test_published_maxima_do_not_stand_for_arrays_never_built(verdict: Verdict, before: str) -> None:
    array, maximum = f"raid5/b.py::p99[{before}raid5-randread_4k_qd8]", f"raid5/c.py::maximum[{before}drivex2]"
    tests: dict[str, Sequence[str]] = {array: [P99], maximum: [IOPS]}
    of_drives = skipped(array, applies=False), passed(maximum, IOPS, "drivex2")
    assert missing(verdict(planned(tests), *of_drives, exit_status=5)) == [(P99, (), 1)]
    # What else is judged of the drives is a result of its own.
    data = "raid5/d.py::data"
    found = verdict(planned({**tests, data: ["read_back"]}), *of_drives, passed(data, IOPS, "drivex2"))
    assert found.fitness is Fitness.FIT


def test_a_limit_that_could_not_be_applied_is_not_none(verdict: Verdict) -> None:
    """Its baseline is missing, or its protocol is too short: it counts as not judged."""
    records = passed(OTHER), passed(FIRST, IOPS), passed(SECOND, IOPS, **OBSERVED, is_unjudged=True)
    found = verdict(planned(TESTS), *records).coverage
    assert (found.tests_judged, found.tests, found.unlimited, found.is_partial) == (2, 3, 0, True)


def test_a_claim_of_another_suite_is_named_with_its_suite(verdict: Verdict) -> None:
    both = {**TESTS, "sheet/a.py::iops": [IOPS]}
    records = passed(OTHER), passed("sheet/a.py::iops", IOPS, "drivex8"), skipped(FIRST), skipped(SECOND)
    assert missing(verdict(planned(both), *records, exit_status=5)) == [(IOPS, ("raid5",), 2)]


def test_a_claim_that_the_spec_does_not_promise_is_a_remark(verdict: Verdict) -> None:
    found = verdict(planned(TESTS, unpromised=[IOPS]), passed(OTHER), skipped(FIRST), skipped(SECOND))
    assert (found.fitness, found.coverage.missing) == (Fitness.FIT, ())
    assert [each.claim for each in found.coverage.unpromised] == [IOPS]
    assert any("none of 2" in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("required", "expected"),
    [
        (None, [(IOPS, (), 2)]),
        ([], []),
        ([P99], []),
        ([P99, IOPS], [(IOPS, (), 2)]),
        (["max_latency"], [("max_latency", (), 0)]),
    ],
)
def test_the_required_claims_decide_what_is_missing(
    verdict: Verdict, required: list[str] | None, expected: list[object]
) -> None:
    records = planned(TESTS), passed(OTHER), skipped(FIRST), skipped(SECOND)
    found = verdict(*records, required_claims=required)
    assert missing(found) == expected
    assert (found.fitness is Fitness.FIT) == (not expected)
    assert found.coverage.hollow == (HollowPromise(IOPS, (), 2),)


@pytest.mark.parametrize("why", ["error", "not run", "drive failed"])
def test_what_another_sentence_explains_is_not_hollow_as_well(verdict: Verdict, why: str) -> None:
    of_second = {
        "error": [record("error", test=SECOND, message="no cable")],
        "not run": [],
        "drive failed": [passed(SECOND, claim=P99, outcome=Finding.FAIL) | {"claim": "failed_drives"}],
    }[why]
    found = verdict(planned(TESTS), passed(OTHER), skipped(FIRST), *of_second, exit_status=1)
    assert found.fitness is not Fitness.FIT
    assert found.coverage.missing == ()


def test_left_out_tests_count_until_a_session_runs_them(verdict: Verdict) -> None:
    first = planned({OTHER: [P99]}, left_out=[FIRST, SECOND])
    assert numbers(verdict(first, passed(OTHER))) == (1, 3, 0, 3, 8)
    second = planned({FIRST: [IOPS]}, left_out=[SECOND])
    assert numbers(verdict(first, passed(OTHER), second, passed(FIRST, IOPS))) == (2, 3, 0, 3, 8)


def test_a_drive_counts_if_a_judged_test_loaded_it(verdict: Verdict) -> None:
    healthy = of_drives("drivex8", {each["serial"]: () for each in DRIVES}, "", spec="a")
    tests = planned({OTHER: [P99], "raid5/h.py::health": []})
    found = verdict(tests, passed(OTHER), judged(healthy, "raid5/h.py::health")).coverage
    assert (found.drives_judged, found.untested_as("wS3"), found.untested_as("wS4")) == (3, "", "not tested")
    members = tuple(Part(name, {}, Finding.PASS) for name in ("S1", "S8"))
    found = verdict(tests, passed(OTHER, arrays="drivex8", members=members)).coverage
    assert (found.drives_judged, found.untested_as("wS8"), found.untested_as("wS2")) == (2, "", "not tested")
    # The run has recorded which drives the array was made of.
    built = record("array_planned", geometry="raid5x3", members=["wS6", "wS7", "wS8"])
    assert verdict(tests, built, passed(OTHER)).coverage.untested == {f"wS{number}" for number in range(1, 6)}


def test_an_inspected_drive_counts_only_without_measurements(verdict: Verdict) -> None:
    members = tuple(Part(str(each["serial"]), {}, Finding.PASS) for each in DRIVES)
    inspected = passed("i/a.py::new", members=members) | {"claim": "inspected_wear"}
    tests = planned({"i/a.py::new": ["inspection"]})
    assert numbers(verdict(tests, inspected)) == (1, 1, 0, 8, 8)
    found = verdict(tests, planned({OTHER: [P99]}), inspected, passed(OTHER)).coverage
    assert (found.drives_judged, found.untested_as("wS8")) == (3, "only inspected")


@pytest.mark.parametrize("damage", [{"claims": 7}, {"claims": [["x"]]}, {"tests": None}, {"left_out": {}}])
def test_damaged_records_do_not_raise(verdict: Verdict, damage: Line) -> None:
    assert verdict({**planned(TESTS), **damage}, passed(OTHER)).coverage.drives == len(DRIVES)


@pytest.mark.parametrize("models", [["ACME 9", "ACME 7"], []])
def test_a_run_by_the_default_spec_says_so(verdict: Verdict, models: object) -> None:
    default = {"name": "default", "sha256": "", "text": ""}
    found = verdict(planned({OTHER: [P99]}), passed(OTHER), spec=default, without_sheet=models)
    assert any("No figure of a data sheet was judged" in each for each in found.remarks)


counts = st.integers(0, 5)


@given(st.lists(st.builds(Coverage, counts, counts, counts, counts), min_size=1, max_size=4))
def test_the_coverage_of_bays_adds_up(bays: list[Coverage]) -> None:
    of_all = sum(bays[1:], bays[0])
    assert list(of_all.facts.values()) == [
        sum(each) for each in zip(*(bay.facts.values() for bay in bays), strict=True)
    ]


def test_tests_without_a_limit_are_counted_apart(verdict: Verdict) -> None:
    found = verdict(
        planned(TESTS, unpromised=[IOPS]),
        passed(OTHER, arrays="raid5x8"),
        passed(FIRST, IOPS, "raid5x8", **OBSERVED),
        passed(SECOND, IOPS, "raid5x8", **OBSERVED),
    )
    assert (found.fitness, numbers(found)) == (Fitness.FIT, (1, 3, 2, 8, 8))
    assert found.use.startswith("For acceptance: ")


@pytest.mark.parametrize("acceptance", [True, False])
def test_only_a_pass_has_its_coverage_in_the_headline(acceptance: bool) -> None:
    for fitness in Fitness:
        found = headline(fitness, acceptance, Coverage(7, 187, 3, 8))
        assert (found == word_of(fitness, acceptance)) is (fitness is not Fitness.FIT)
        assert (str(Coverage(7, 187, 3, 8)) in found) is (fitness is Fitness.FIT)


def test_a_hollow_promise_is_named_as_the_field_does() -> None:
    assert str(HollowPromise(IOPS, (), 384)) == "steady IOPS: none of 384 tests judged"
