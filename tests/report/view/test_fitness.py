from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.report.view.fitness import Counts, Fitness, stand

ENDED: dict[str, object] = {"ended": "then", "exit_status": 0, "acceptance": True}
numbers = st.integers(0, 3)
counts = st.builds(Counts, numbers, numbers, numbers, numbers, numbers, numbers)
manifests = st.fixed_dictionaries(
    {},
    optional={
        "ended": st.none() | st.just("then"),
        "exit_status": st.none() | st.integers(0, 5),
        "acceptance": st.booleans(),
    },
)


@pytest.mark.parametrize(
    ("found", "manifest", "word", "sentence", "remarks"),
    [
        (Counts(kept=264), {}, "Fit", "All 264 promises that were judged are kept.", []),
        (Counts(kept=1), {}, "Fit", "The one promise that was judged is kept.", []),
        (Counts(kept=264), {"acceptance": False}, "Would be fit", "All 264 promises that were judged are kept.", []),
        (Counts(2333, 3), {"exit_status": 1}, "Not fit", "3 of 2,336 promises are broken; 2,333 are kept.", []),
        (Counts(0, 1), {"exit_status": 1}, "Not fit", "1 of 1 promise is broken.", []),
        (Counts(0, 1), {"exit_status": 1, "acceptance": None}, "Would not be fit", "1 of 1 promise is broken.", []),
        (
            Counts(3, 1, 2, troubled=1), {"exit_status": 2}, "Not fit", "1 of 6 promises is broken; 3 are kept.",
            ["2 promises could not be decided", "1 test ended in an error", "The run was interrupted"],
        ),
        (
            Counts(3, 0, 1), {"exit_status": 1}, "Cannot say", "3 of 4 promises are kept and none is broken, but",
            ["1 promise could not be decided"],
        ),
        (Counts(0, 0, 2), {"exit_status": 1}, "Cannot say", "None of 2 promises could be decided.", ["2 promises"]),
        (Counts(), {}, "Cannot say", "No promise was judged in this run.", []),
        (Counts(observed=7), {}, "Cannot say", "No promise was judged in this run.", []),
        (Counts(5, troubled=2), {"exit_status": 1}, "Cannot say", "5 of 5 promises are kept", ["2 tests ended in"]),
        (Counts(5, unreadable=2), {}, "Cannot say", "5 of 5 promises are kept", ["2 of the verdicts cannot be read"]),
        (Counts(5), {"ended": None}, "Cannot say", "5 of 5", ["The run has not ended, or was killed"]),
        (Counts(5), {"exit_status": 2}, "Cannot say", "5 of 5", ["The run was interrupted"]),
        (Counts(5), {"exit_status": 1}, "Cannot say", "5 of 5", ["pytest reported failed tests"]),
        (Counts(5), {"exit_status": 3}, "Cannot say", "5 of 5", ["pytest ended with status 3"]),
    ],
)  # fmt: skip
def test_each_mixture_has_its_sentence(
    found: Counts, manifest: dict[str, object], word: str, sentence: str, remarks: list[str]
) -> None:
    standing = stand(found, {**ENDED, **manifest})
    assert standing.word == word
    assert standing.sentence.startswith(sentence)
    assert len(standing.remarks) == len(remarks)
    assert all(each.startswith(start) for each, start in zip(standing.remarks, remarks, strict=True))


def test_without_a_manifest_nothing_can_be_said() -> None:
    standing = stand(Counts(kept=5), {})
    assert standing.fitness is Fitness.OPEN
    assert "no manifest" in standing.remarks[0]


@given(counts, manifests)
def test_fit_is_what_kept_all_and_ended_well_and_nothing_else(found: Counts, manifest: dict[str, object]) -> None:
    standing = stand(found, manifest)
    whole = found.kept and not (found.broken or found.undecided or found.troubled or found.unreadable)
    ended = bool(manifest.get("ended")) and manifest.get("exit_status") == 0
    assert (standing.fitness is Fitness.FIT) == bool(whole and ended)
    assert (standing.fitness is Fitness.UNFIT) == bool(found.broken)
    assert standing.sentence.endswith(".")
    assert standing.acceptance is (manifest.get("acceptance") is True)


@pytest.mark.parametrize(
    ("found", "manifest", "use"),
    [
        (Counts(5), {}, "For acceptance: its protocol may decide about a product, and all that was judged is kept."),
        (Counts(5, 1), {}, "For acceptance: its protocol may decide about a product, and a broken promise decides."),
        (Counts(5, undecided=1), {}, "Not for acceptance as it is: its protocol may decide about a product"),
        (Counts(5), {"acceptance": False}, "Not for acceptance: its protocol may not decide about a product."),
        (Counts(5), {"acceptance": None}, "Not for acceptance: the run folder does not say whether"),
    ],
)
def test_whether_it_may_be_used_for_acceptance_is_said(found: Counts, manifest: dict[str, object], use: str) -> None:
    assert stand(found, {**ENDED, **manifest}).use.startswith(use)
