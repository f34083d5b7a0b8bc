from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.builders.manifests import manifest
from support.builders.report_page import Claimed

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats import throughput
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE, Document
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.run_summary.fitness import Counts, Fitness, count, stand

#: A run that ended.
ENDED = manifest()
numbers = st.integers(0, 3)
counts = st.builds(Counts, numbers, numbers, numbers, numbers, numbers, numbers)
manifests = st.fixed_dictionaries(
    {
        "ended": st.none() | st.just("then"),
        "exit_status": st.none() | st.integers(0, 5),
        "acceptance": st.booleans(),
    }
)


@pytest.mark.parametrize(
    ("found", "said", "word", "sentence", "remarks"),
    [
        (Counts(passed=264), {}, "Fit", "All 264 promises judged passed.", []),
        (Counts(passed=1), {}, "Fit", "The one promise judged passed.", []),
        (Counts(passed=264), {"acceptance": False}, "Passed, not for acceptance", "All 264 promises judged", []),
        (Counts(2333, 3), {"exit_status": 1}, "Not fit", "3 of 2,336 promises failed; 2,333 passed.", []),
        (Counts(0, 1), {"exit_status": 1}, "Not fit", "1 of 1 promise failed.", []),
        (Counts(0, 1), {"exit_status": 1, "acceptance": False}, "Failed, not for acceptance", "1 of 1 promise", []),
        (
            Counts(3, 1, 2, errors=1), {"exit_status": 2}, "Not fit", "1 of 6 promises failed; 3 passed.",
            ["2 promises are inconclusive: ", "1 test ended in an error", "The run was interrupted"],
        ),
        (
            Counts(3, 0, 1), {"exit_status": 1}, "Undecided", "3 of 4 promises passed and none failed, but",
            ["1 promise is inconclusive: "],
        ),
        (Counts(0, 0, 2), {"exit_status": 1}, "Undecided", "2 promises are inconclusive; none", ["2 promises"]),
        (Counts(), {}, "No verdict", "No promise was judged in this run.", []),
        (Counts(observed=7), {}, "No verdict", "No promise was judged in this run.", []),
        (Counts(5, errors=2), {"exit_status": 1}, "No verdict", "5 of 5 promises passed", ["2 tests ended in"]),
        (Counts(5, unreadable=2), {}, "No verdict", "5 of 5 promises passed", ["This version of pytest"]),
        (Counts(5), {"ended": None}, "No verdict", "5 of 5", ["The run has not ended or was killed"]),
        (Counts(5), {"exit_status": 2}, "No verdict", "5 of 5", ["The run was interrupted"]),
        (Counts(5), {"exit_status": 1}, "No verdict", "5 of 5", ["pytest reported failed tests"]),
        (Counts(5), {"exit_status": 3}, "No verdict", "5 of 5", ["pytest ended with status 3"]),
    ],
)  # fmt: skip
def test_each_mixture_has_its_sentence(
    found: Counts, said: dict[str, Any], word: str, sentence: str, remarks: list[str]
) -> None:
    standing = stand(found, replace(ENDED, **said))
    assert standing.word == word
    assert standing.sentence.startswith(sentence)
    assert len(standing.remarks) == len(remarks)
    assert all(each.startswith(start) for each, start in zip(standing.remarks, remarks, strict=True))


def test_without_a_manifest_nothing_can_be_said() -> None:
    standing = stand(Counts(passed=5), UNREADABLE)
    assert standing.fitness is Fitness.NO_VERDICT
    assert "no readable manifest" in standing.remarks[0]
    assert standing.use.startswith("Not for acceptance: the run folder does not record whether")


@given(counts, manifests)
@example(Counts(passed=1), {"ended": "then", "exit_status": 5, "acceptance": True})
def test_fit_is_what_kept_all_and_ended_well_and_nothing_else(found: Counts, said: dict[str, Any]) -> None:
    standing = stand(found, replace(ENDED, **said))
    whole = found.passed and not (found.failed or found.inconclusive or found.errors or found.unreadable)
    ended = bool(said["ended"]) and said["exit_status"] == 0
    assert (standing.fitness is Fitness.FIT) == bool(whole and ended)
    assert (standing.fitness is Fitness.NOT_FIT) == bool(found.failed)
    assert standing.sentence.endswith(".")
    assert standing.acceptance is said["acceptance"]


@pytest.mark.parametrize(
    ("found", "said", "use"),
    [
        (
            Counts(5),
            {},
            "For acceptance: its protocol is made to accept or reject a drive, and every promise judged passed.",
        ),
        (
            Counts(5, 1),
            {},
            "For acceptance: its protocol is made to accept or reject a drive, and a failed promise decides.",
        ),
        (Counts(5, inconclusive=1), {}, "Not for acceptance: its protocol is for acceptance"),
        (
            Counts(5),
            {"acceptance": False},
            "Not for acceptance: the protocol snia is not made to accept or reject a drive.",
        ),
    ],
)
def test_whether_it_may_be_used_for_acceptance_is_said(found: Counts, said: dict[str, Any], use: str) -> None:
    assert stand(found, replace(ENDED, **said)).use.startswith(use)


def test_a_test_that_a_failed_drive_cost_is_the_drives() -> None:
    lost = Counts(0, 2, errors=110, lost=107, lost_to=("S2",), tests=112)
    assert stand(lost, replace(ENDED, exit_status=1)).remarks == (
        "107 of 112 tests could not run because drive S2 failed.",
        "3 tests ended in an error, which says nothing about the drives.",
    )


def test_the_parts_of_what_is_inconclusive_add_up() -> None:
    assert stand(Counts(69, inconclusive=40, limited=39), ENDED).remarks == (
        "40 promises are inconclusive: a cause that is no drive limits 39, the measurement does not decide 1.",
    )
    (of_all,) = stand(Counts(69, inconclusive=39, limited=39), ENDED).remarks
    assert of_all == "39 promises are inconclusive: a cause that is no drive limits 39 of them."


def test_why_a_protocol_is_not_for_acceptance_names_it() -> None:
    use = stand(Counts(5), replace(ENDED, acceptance=False, protocol=Document("quick", ""))).use
    assert use == "Not for acceptance: the protocol quick is not made to accept or reject a drive."


def test_intervals_of_steady_rates_state_repeatability_once(claimed: Claimed) -> None:
    def beside(*claims: Claim) -> str:
        found = [Judged.of(f"t{n}", claimed(claim, value=1000, bound=900)) for n, claim in enumerate(claims)]
        return stand(count(found, ()), ENDED).repeatability

    assert beside(Claim.STEADY_IOPS, Claim.THROUGHPUT) == throughput.repeatability()
    assert beside(Claim.P99_LATENCY) == ""


def test_the_sheet_of_another_model_is_a_limit_of_the_verdict() -> None:
    forced = manifest(
        remarks=["the spec acme is not for these drives: S1 is none (--ssd-force-spec)", "something else"]
    )
    verdict = stand(Counts(passed=1), forced)
    assert verdict.remarks == ("The spec acme is not for these drives (--ssd-force-spec).",)
    assert verdict.fitness is Fitness.FIT
