"""Fit, not fit, or cannot say: what a run as a whole says of the product, in one sentence with its counts; pure.

The rule of the module: nothing is said to be fit unless everything that was planned was also decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view.errors import ErrorGroup

#: Of pytest: https://docs.pytest.org/en/stable/reference/exit-codes.html
INTERRUPTED, FAILED, NOTHING_JUDGED = 2, 1, 5


class Fitness(StrEnum):
    """Of the product."""

    FIT = "fit"
    UNFIT = "unfit"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Counts:
    """Claims, each once."""

    kept: int = 0
    broken: int = 0
    undecided: int = 0
    observed: int = 0
    #: Verdicts that this version cannot read.
    unreadable: int = 0
    #: Tests that ended in an error, or failed for another reason than a promise.
    troubled: int = 0
    #: Tests that were skipped without a figure.
    skipped: int = 0

    @property
    def promises(self) -> int:
        return self.kept + self.broken + self.undecided


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """The verdict of the page."""

    fitness: Fitness
    #: ``Fit``, ``Not fit``, ``Cannot say``; of a rehearsal in the conditional.
    word: str
    sentence: str
    #: Whether it may be used for acceptance, and why not.
    use: str
    #: What else must be known before it is believed.
    remarks: tuple[str, ...]
    counts: Counts
    acceptance: bool


def count(judged: Sequence[Judged], troubles: Sequence[ErrorGroup], unreadable: int = 0, skipped: int = 0) -> Counts:
    """Of a run."""
    of = [each.evidence.outcome for each in judged]
    return Counts(
        kept=of.count(Finding.PASS),
        broken=of.count(Finding.FAIL),
        undecided=of.count(Finding.INCONCLUSIVE),
        observed=of.count(Finding.OBSERVED),
        unreadable=unreadable,
        skipped=skipped,
        troubled=sum(len(each.tests) for each in troubles),
    )


def stand(counts: Counts, manifest: Mapping[str, object]) -> PageVerdict:
    """``manifest`` says how the run ended and whether its protocol may decide about a product."""
    acceptance = manifest.get("acceptance") is True
    gaps = tuple(_gaps(counts, manifest))
    if counts.broken:
        fitness = Fitness.UNFIT
    elif gaps or not counts.promises:
        fitness = Fitness.OPEN
    else:
        fitness = Fitness.FIT
    word, use = _word(fitness, acceptance), _use(fitness, manifest, acceptance)
    return PageVerdict(fitness, word, _sentence(counts, gaps), use, gaps, counts, acceptance)


def _use(fitness: Fitness, manifest: Mapping[str, object], acceptance: bool) -> str:
    if manifest.get("acceptance") is False:
        return (
            "Not for acceptance: its protocol may not decide about a product. Take nothing from this run but that the "
            "procedure works."
        )
    if not acceptance:
        return "Not for acceptance: the run folder does not say whether its protocol may decide about a product."
    if fitness is Fitness.OPEN:
        return "Not for acceptance as it is: its protocol may decide about a product, but the run does not."
    return f"For acceptance: its protocol may decide about a product, and {_decides(fitness)}."


def _decides(fitness: Fitness) -> str:
    return "all that was judged is kept" if fitness is Fitness.FIT else "a broken promise decides"


def _word(fitness: Fitness, acceptance: bool) -> str:
    if fitness is Fitness.OPEN:
        return "Cannot say"
    if acceptance:
        return "Fit" if fitness is Fitness.FIT else "Not fit"
    return "Would be fit" if fitness is Fitness.FIT else "Would not be fit"


def _sentence(counts: Counts, gaps: Sequence[str]) -> str:
    if not counts.promises:
        return "No promise was judged in this run."
    if counts.broken:
        rest = f"; {counts.kept:,} {_are(counts.kept)} kept" if counts.kept else ""
        return f"{counts.broken:,} of {_promises(counts.promises)} {_are(counts.broken)} broken{rest}."
    if not counts.kept:
        return f"None of {_promises(counts.promises)} could be decided."
    if gaps:
        kept = f"{counts.kept:,} of {_promises(counts.promises)} {_are(counts.kept)} kept"
        return f"{kept} and none is broken, but the run does not say all that it was made for."
    if counts.promises == 1:
        return "The one promise that was judged is kept."
    return f"All {_promises(counts.promises)} that were judged are kept."


def _gaps(counts: Counts, manifest: Mapping[str, object]) -> Iterator[str]:
    """Why a run does not say all that it was made for."""
    if counts.undecided:
        yield f"{_promises(counts.undecided)} could not be decided by what was measured."
    if counts.troubled:
        tests = "1 test" if counts.troubled == 1 else f"{counts.troubled:,} tests"
        yield f"{tests} ended in an error, which says nothing about the drives."
    if counts.unreadable:
        yield f"{counts.unreadable:,} of the verdicts cannot be read by this version of pytest-ssdqual."
    yield from _ending(counts, manifest)


def _ending(counts: Counts, manifest: Mapping[str, object]) -> Iterator[str]:
    status, judged = manifest.get("exit_status"), manifest.get("judged")
    why = judged.get("nothing_judged") if isinstance(judged, Mapping) else ""
    if why:
        yield f"Nothing was judged: {why}."
    if not manifest:
        yield "The run folder has no manifest that can be read: it does not say what was tested."
    elif not manifest.get("ended"):
        yield "The run has not ended, or was killed: what is missing is not known."
    elif status == INTERRUPTED:
        yield "The run was interrupted: what came after that was not measured."
    elif status == FAILED and not counts.broken + counts.undecided + counts.troubled:
        yield "pytest reported failed tests of which the run folder has no record; see its own output."
    elif status == NOTHING_JUDGED and not why:
        yield "No test was run."
    elif status not in (0, FAILED, NOTHING_JUDGED):
        yield f"pytest ended with status {status}: see its own output."


def _promises(number: int) -> str:
    return "1 promise" if number == 1 else f"{number:,} promises"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
