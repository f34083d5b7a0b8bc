from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from support.builders.evidence import claimed
from support.builders.manifests import manifest
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats import throughput
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.report.evidence.evidence import Finding
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


#: What was counted, and what the manifest says.
MIXTURES: tuple[tuple[Counts, dict[str, Any]], ...] = (
    (Counts(passed=264), {}),
    (Counts(passed=1), {}),
    (Counts(passed=264), {"acceptance": False}),
    (Counts(2333, 3), {"exit_status": 1}),
    (Counts(0, 1), {"exit_status": 1}),
    (Counts(0, 1), {"exit_status": 1, "acceptance": False}),
    (Counts(3, 1, 2, errors=1), {"exit_status": 2}),
    (Counts(3, 0, 1), {"exit_status": 1}),
    (Counts(0, 0, 2), {"exit_status": 1}),
    (Counts(5, inconclusive=1), {}),
    (Counts(), {}),
    (Counts(observed=7), {}),
    (Counts(), {"exit_status": 5}),
    (Counts(5, errors=2), {"exit_status": 1}),
    (Counts(5, unreadable=2), {}),
    (Counts(5), {"ended": None}),
    (Counts(5), {"exit_status": 2}),
    (Counts(5), {"exit_status": 1}),
    (Counts(5), {"exit_status": 3}),
    # What a failed drive cost is the drive's.
    (Counts(0, 2, errors=110, lost=107, lost_to=("S2",), tests=112), {"exit_status": 1}),
    # The parts of what is inconclusive add up.
    (Counts(69, inconclusive=40, limited=39), {}),
    (Counts(69, inconclusive=39, limited=39), {}),
    (Counts(5), {"acceptance": False, "protocol": Document("quick", "")}),
)


def test_each_mixture_has_its_sentences() -> None:
    said: list[str] = []
    for counted, recorded in MIXTURES:
        standing = stand(counted, replace(ENDED, **recorded))
        lines = standing.sentence, *standing.remarks, standing.use
        said += [standing.word, *(f"  {line}" for line in lines)]
    golden.same("verdicts.txt", said)


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


def test_intervals_of_steady_rates_state_repeatability_once() -> None:
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


def test_a_drive_that_settled_far_below_its_siblings_keeps_a_set_from_being_fit() -> None:
    counted = Counts(passed=5, uneven={"S3": "Drive S3 had settled at 59 %."})
    assert stand(counted, ENDED).fitness is Fitness.NO_VERDICT
    assert stand(counted, ENDED).gaps == tuple(counted.uneven.values())


def test_only_what_acquits_the_drives_is_a_cause_that_is_no_drive() -> None:
    def limited(culprit: Culprit | None) -> int:
        cause = Cause(culprit, "it is") if culprit else None
        return count([Judged.of("t", replace(claimed(), outcome=Finding.INCONCLUSIVE, cause=cause))], ()).limited

    assert [limited(culprit) for culprit in (Culprit.MD, Culprit.HOST, Culprit.PATH, Culprit.MEASUREMENT)] == [1] * 4
    others = (Culprit.DRIVE, Culprit.PRODUCT, Culprit.UNKNOWN, Culprit.UNEXPLAINED, None)
    assert [limited(culprit) for culprit in others] == [0] * 5
