"""Fitness of the product by a whole run: fit, not fit or inconclusive, with counts and one sentence; pure.

A product is fit only if the run decided everything that it planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.evidence.health import HEALTH
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.run_summary.errors import ErrorGroup
from pytest_ssdqual.report.view import subject

#: Exit status of pytest: https://docs.pytest.org/en/stable/reference/exit-codes.html
INTERRUPTED, FAILED, NOTHING_JUDGED = 2, 1, 5


class Fitness(StrEnum):
    """Verdict of a run on the product."""

    FIT = "fit"
    UNFIT = "unfit"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of claims by outcome, and of tests without a verdict."""

    passed: int = 0
    failed: int = 0
    inconclusive: int = 0
    observed: int = 0
    #: Verdicts that this version cannot read.
    unreadable: int = 0
    #: Tests that ended in an error, or failed for another reason than a promise.
    errors: int = 0
    #: Those of the errors of tests that could not run because a drive had failed, and its serial number.
    lost: int = 0
    lost_to: tuple[str, ...] = ()
    #: Tests with a verdict or an error.
    tests: int = 0
    #: Inconclusive promises because something that is no drive was the bound.
    limited: int = 0
    #: Tests that were skipped without a figure.
    skipped: int = 0
    #: Drives that failed, or that report a new defect.
    worsened: int = 0
    #: True if nothing but the health of the drives was judged, whatever was observed.
    only_health: bool = False
    #: Drives whose health was not read.
    unread: int = 0

    @property
    def promises(self) -> int:
        return self.passed + self.failed + self.inconclusive


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """Fitness as pages, summary and metrics show it."""

    fitness: Fitness
    #: ``Fit``, ``Not fit``, ``Inconclusive``; ``Passed, not for acceptance`` by a protocol that may not decide.
    word: str
    sentence: str
    #: Whether the run may be used for acceptance; if not, why.
    use: str
    #: What limits the verdict, a sentence each.
    remarks: tuple[str, ...]
    counts: Counts
    acceptance: bool
    #: Those of the remarks that say why the run did not decide everything that it planned.
    gaps: tuple[str, ...] = ()


def count(
    judged: Sequence[Judged],
    errors: Sequence[ErrorGroup],
    unreadable: int = 0,
    skipped: int = 0,
    worsened: int = 0,
    unread: int = 0,
) -> Counts:
    """Return the counts of a run."""
    outcomes = [each.evidence.outcome for each in judged]
    promised = [each.evidence for each in judged if each.evidence.is_promised]
    lost = [each for each in errors if each.drives]
    return Counts(
        passed=outcomes.count(Finding.PASS),
        failed=outcomes.count(Finding.FAIL),
        inconclusive=outcomes.count(Finding.INCONCLUSIVE),
        observed=outcomes.count(Finding.OBSERVED),
        unreadable=unreadable,
        skipped=skipped,
        worsened=worsened,
        unread=unread,
        only_health=bool(promised) and all(each.claim == HEALTH for each in promised),
        errors=sum(len(each.tests) for each in errors),
        lost=sum(len(each.tests) for each in lost),
        lost_to=tuple(dict.fromkeys(serial for each in lost for serial in each.drives)),
        tests=len({*(each.test for each in judged), *(test for each in errors for test in each.tests)}),
        limited=sum(is_limited(each.evidence) for each in judged),
    )


def is_limited(evidence: Evidence) -> bool:
    """Return whether a promise is inconclusive because something that is no drive was the bound."""
    cause = evidence.cause
    return evidence.outcome is Finding.INCONCLUSIVE and cause is not None and not cause.culprit.is_drive


def stand(counts: Counts, manifest: Mapping[str, object]) -> PageVerdict:
    """Return the verdict; ``manifest`` records how the run ended, and whether its protocol may decide.

    With a drive that failed or reports a new defect the product is not fit.
    """
    acceptance = manifest.get("acceptance") is True
    gaps = tuple(_gaps(counts, manifest))
    if counts.failed or counts.worsened:
        fitness = Fitness.UNFIT
    elif gaps or not counts.promises:
        fitness = Fitness.INCONCLUSIVE
    else:
        fitness = Fitness.FIT
    word, use = word_of(fitness, acceptance), _use(fitness, counts, manifest, acceptance)
    remarks = (*gaps, *_limits(counts))
    return PageVerdict(fitness, word, _sentence(counts, gaps), use, remarks, counts, acceptance, gaps)


def _use(fitness: Fitness, counts: Counts, manifest: Mapping[str, object], acceptance: bool) -> str:
    if manifest.get("acceptance") is False:
        return f"Not for acceptance: {_protocol(manifest)} is not made to accept or reject a drive."
    if not acceptance:
        return "Not for acceptance: the run folder does not record whether its protocol may decide about a product."
    if fitness is Fitness.INCONCLUSIVE:
        return "Not for acceptance: its protocol may decide about a product, but this run is inconclusive."
    return f"For acceptance: its protocol may decide about a product, and {_decides(fitness, counts)}."


def _protocol(manifest: Mapping[str, object]) -> str:
    document = manifest.get("protocol")
    name = document.get("name") if isinstance(document, Mapping) else None
    return f"the protocol {name}" if name else "its protocol"


def _decides(fitness: Fitness, counts: Counts) -> str:
    if fitness is Fitness.FIT:
        return "every promise judged passed"
    return "a failed promise decides" if counts.failed else "the health of the drives decides"


def word_of(fitness: Fitness, acceptance: bool) -> str:
    """Return ``Fit``, ``Not fit``, ``Inconclusive``; ``Passed, not for acceptance`` if the protocol may not decide."""
    if fitness is Fitness.INCONCLUSIVE:
        return "Inconclusive"
    if acceptance:
        return "Fit" if fitness is Fitness.FIT else "Not fit"
    return f"{'Passed' if fitness is Fitness.FIT else 'Failed'}, not for acceptance"


def _sentence(counts: Counts, gaps: Sequence[str]) -> str:
    if counts.worsened and not counts.failed:
        return f"{_drives(counts.worsened)} failed or reported a new defect in this run, which no promise judged."
    if not counts.promises:
        return "No promise was judged in this run."
    if counts.failed:
        rest = f"; {counts.passed:,} passed" if counts.passed else ""
        return f"{counts.failed:,} of {_promises(counts.promises)} failed{rest}."
    if not counts.passed:
        return f"{_promises(counts.promises)} {_are(counts.promises)} inconclusive; none passed or failed."
    if gaps:
        passed = f"{counts.passed:,} of {_promises(counts.promises)} passed"
        return f"{passed} and none failed, but the run did not decide everything that it planned."
    if counts.promises == 1:
        return "The one promise judged passed."
    return f"All {_promises(counts.promises)} judged passed."


def _gaps(counts: Counts, manifest: Mapping[str, object]) -> Iterator[str]:
    """Yield a sentence for each reason why the run did not decide everything that it planned."""
    if counts.inconclusive:
        yield f"{_promises(counts.inconclusive)} {_are(counts.inconclusive)} inconclusive: {_undecided(counts)}."
    if counts.lost:
        yield lost(counts)
    if errors := counts.errors - counts.lost:
        tests = "1 test" if errors == 1 else f"{errors:,} tests"
        yield f"{tests} ended in an error, which says nothing about the drives."
    if counts.only_health:
        yield "Nothing but the health of the drives was judged."
    if counts.unreadable:
        yield f"This version of pytest-ssdqual cannot read {counts.unreadable:,} of the verdicts."
    yield from _ending(counts, manifest)


def _undecided(counts: Counts) -> str:
    """Return why promises are inconclusive, such that the numbers add up."""
    if not counts.limited:
        return "the measurement does not decide"
    rest = counts.inconclusive - counts.limited
    limited = f"a cause that is no drive limits {counts.limited:,}"
    return f"{limited}, the measurement does not decide {rest:,}" if rest else f"{limited} of them"


def lost(counts: Counts) -> str:
    """Return the sentence about tests that could not run without a drive; empty without such tests."""
    if not counts.lost:
        return ""
    drives = subject.named_drives(counts.lost_to)
    return f"{counts.lost:,} of {counts.tests:,} tests could not run because {drives} failed."


def _limits(counts: Counts) -> Iterator[str]:
    """Yield a sentence for what the run was not to judge, which does not change the verdict."""
    if counts.unread:
        yield f"The health of {_drives(counts.unread)} was not read and is not judged."


def _ending(counts: Counts, manifest: Mapping[str, object]) -> Iterator[str]:
    status, judged = manifest.get("exit_status"), manifest.get("judged")
    why = judged.get("nothing_judged") if isinstance(judged, Mapping) else ""
    not_run = judged.get("not_run") if isinstance(judged, Mapping) else 0
    if why:
        yield f"Nothing was judged: {why}."
    if isinstance(not_run, int) and not_run and status != INTERRUPTED:
        yield f"{'1 test' if not_run == 1 else f'{not_run:,} tests'} that the run planned did not run."
    if not manifest:
        yield "The run folder has no readable manifest, so the drives, the spec and the protocol are unknown."
    elif not manifest.get("ended"):
        yield "The run has not ended or was killed; how much is missing is unknown."
    elif status == INTERRUPTED:
        yield "The run was interrupted; the remaining tests were not run."
    elif status == FAILED and not counts.failed + counts.inconclusive + counts.errors:
        yield "pytest reported failed tests that the run folder does not record; see pytest's output."
    elif status == NOTHING_JUDGED and not why:
        yield "No test was run."
    elif status not in (0, FAILED, NOTHING_JUDGED):
        yield f"pytest ended with status {status}; see its output."


def _promises(number: int) -> str:
    return "1 promise" if number == 1 else f"{number:,} promises"


def _drives(number: int) -> str:
    return "1 drive" if number == 1 else f"{number:,} drives"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
