"""Fitness of the product by a whole run, with counts, coverage and one sentence; pure.

A product is fit only if the run decided everything that it planned, and judged each promise of the selected suites.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted, named
from pytest_ssdqual.qual.spec.spec import DEFAULT
from pytest_ssdqual.qual.stats import throughput
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.report.evidence.evidence import INSPECTED, Evidence, Finding
from pytest_ssdqual.report.evidence.health import OF_HEALTH
from pytest_ssdqual.report.evidence.integrity import READ_BACK
from pytest_ssdqual.report.run_folder.manifest import Manifest
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.run_summary.coverage import Coverage
from pytest_ssdqual.report.run_summary.errors import ErrorGroup
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.tables import State

#: Exit status of pytest: https://docs.pytest.org/en/stable/reference/exit-codes.html
INTERRUPTED, FAILED, NOTHING_JUDGED = 2, 1, 5
#: Hollow promises that the sentence names; the remarks have all.
MOST_NAMED = 3
NOTHING = Coverage()
#: Option that a remark of the manifest ends with if the sheet is another model's.
FORCED = "--ssd-force-spec"
NOT_FOR_ACCEPTANCE = ", not for acceptance"


class Fitness(StrEnum):
    """Verdict of a run on the product."""

    FIT = "fit"
    NOT_FIT = "not fit"
    #: Promises are inconclusive.
    UNDECIDED = "undecided"
    #: The run was interrupted or crashed, tests ended in errors, or not every promise was judged.
    NO_VERDICT = "no verdict"


#: Mark and colour of each verdict.
LOOKS = {
    Fitness.FIT: Finding.PASS,
    Fitness.NOT_FIT: Finding.FAIL,
    Fitness.UNDECIDED: Finding.INCONCLUSIVE,
    Fitness.NO_VERDICT: Finding.INCONCLUSIVE,
}
#: Columns of a table of runs.
NUMBERS = ("Pass", "Fail", "Inconclusive", "Error", "Judged")
#: Words of a run by a protocol that may not decide about a product.
USE = {Fitness.FIT: "Passed", Fitness.NOT_FIT: "Failed"}


@frozen
class Counts:
    """Number of claims by outcome, and of tests without a verdict."""

    passed: int = 0
    failed: int = 0
    inconclusive: int = 0
    #: Missed because md, the host or a shared path is the bottleneck; the drives can do more.
    bounded: int = 0
    observed: int = 0
    #: Damaged records without which the run could look better (``RunReader.unreadable``).
    unreadable: int = 0
    #: Tests that ended in an error, or failed for another reason than a promise.
    errors: int = 0
    #: Those of the errors of tests that could not run because a drive had failed, and its serial number.
    lost: int = 0
    lost_to: tuple[str, ...] = ()
    #: Tests with a verdict or an error.
    tests: int = 0
    #: Inconclusive promises because something that is no drive was the bottleneck.
    limited: int = 0
    #: Tests that were skipped without a figure.
    skipped: int = 0
    #: Intervals of steady rates; see ``qual.stats.throughput``.
    steady_rates: int = 0
    #: Drives that failed, or that report a new defect.
    worsened: int = 0
    #: True if nothing but the health of the drives was judged, or inspected beside what is bounded.
    only_health: bool = False
    #: Drives whose health was not read.
    unread: int = 0
    #: Loads of fio during which the kernel log could not be read.
    unlogged: int = 0
    #: A sentence for each drive that settled far below its siblings, by serial number; see ``drive_history.uneven``.
    uneven: Mapping[str, str] = field(default_factory=dict)

    @property
    def promises(self) -> int:
        return self.passed + self.failed + self.inconclusive + self.bounded


@frozen
class PageVerdict:
    """Fitness as pages, summary and metrics show it."""

    fitness: Fitness
    sentence: str
    #: Whether the run may be used for acceptance; if not, why.
    use: str
    #: What limits the verdict, a sentence each.
    remarks: tuple[str, ...]
    counts: Counts
    acceptance: bool
    coverage: Coverage
    #: Those of the remarks that say why the run did not decide everything that it planned.
    gaps: tuple[str, ...]
    #: Sentence beside the intervals of steady rates; empty if there are none.
    repeatability: str = ""

    @property
    def word(self) -> str:
        """See ``word_of``."""
        return word_of(self.fitness, self.acceptance)

    @property
    def state(self) -> State:
        """The word with the mark and colour of the fitness."""
        return State(self.word, LOOKS[self.fitness])

    @property
    def numbers(self) -> tuple[str, ...]:
        """Cells of the columns ``NUMBERS``."""
        counts = self.counts
        by_outcome = (counts.passed, counts.failed, counts.inconclusive, counts.errors)
        return (*(f"{number:,}" for number in by_outcome), str(self.coverage))

    @property
    def properties(self) -> tuple[tuple[str, str], ...]:
        """The verdict and its coverage, by the names of JUnit's properties."""
        return ("verdict", self.fitness.value), *((name, str(count)) for name, count in self.coverage.facts.items())

    @property
    def headline(self) -> str:
        """The word; of a pass with its coverage: ``Fit for 7 of 187 tests, 3 of 8 drives``."""
        return headline(self.fitness, self.acceptance, self.coverage)


def count(judged: Sequence[Judged], errors: Sequence[ErrorGroup]) -> Counts:
    """Return the counts of verdicts and errors of a run; the others are 0."""
    outcomes = [each.outcome for each in judged]
    promised = [each for each in judged if each.is_promised]
    # Bounded verdicts do not judge performance; with them, passes of health, inspection and data comparison alone do
    # not make a product fit.
    decided = [evidence for evidence in promised if evidence.outcome is not Finding.BOUNDED]
    idle = (*OF_HEALTH, INSPECTED, READ_BACK) if len(decided) < len(promised) else OF_HEALTH
    lost = [each for each in errors if each.drives]
    return Counts(
        passed=outcomes.count(Finding.PASS),
        failed=outcomes.count(Finding.FAIL),
        inconclusive=outcomes.count(Finding.INCONCLUSIVE),
        bounded=outcomes.count(Finding.BOUNDED),
        observed=outcomes.count(Finding.OBSERVED),
        only_health=bool(decided) and all(evidence.claim.startswith(idle) for evidence in decided),
        errors=sum(len(each.tests) for each in errors),
        lost=sum(len(each.tests) for each in lost),
        lost_to=tuple(dict.fromkeys(serial for each in lost for serial in each.drives)),
        tests=len({*(each.test for each in judged), *(test for each in errors for test in each.tests)}),
        limited=sum(map(is_limited, judged)),
        steady_rates=sum(each.claim in throughput.STEADY_RATES for each in judged),
    )


def is_limited(evidence: Evidence) -> bool:
    """Return whether a promise is inconclusive because something that is no drive was the bottleneck."""
    culprit = evidence.cause.culprit if evidence.cause else Culprit.UNKNOWN
    is_known = culprit.acquits_drives and culprit is not Culprit.UNEXPLAINED
    return evidence.outcome is Finding.INCONCLUSIVE and is_known


def stand(counts: Counts, manifest: Manifest, coverage: Coverage = NOTHING) -> PageVerdict:
    """Return the verdict; ``manifest`` records how the run ended, and whether its protocol may decide.

    With a drive that failed or reports a new defect the product is not fit.
    """
    acceptance = manifest.acceptance
    missing = tuple(f"{_capital(str(each))}." for each in coverage.missing)
    gaps = (*_gaps(counts, manifest), *missing)
    if counts.passed and not gaps and manifest.exit_status == NOTHING_JUDGED:
        gaps = (_other_status(manifest),)
    if counts.failed or counts.worsened:
        fitness = Fitness.NOT_FIT
    elif counts.passed and not gaps:
        fitness = Fitness.FIT
    elif counts.inconclusive and not _is_cut_short(manifest):
        fitness = Fitness.UNDECIDED
    else:
        fitness = Fitness.NO_VERDICT
    use = _use(fitness, counts, manifest, coverage)
    sentence = _sentence(counts, gaps, coverage)
    remarks = (*(each for each in gaps if each[:-1] not in sentence), *_limits(counts, manifest, coverage))
    beside = throughput.repeatability() if counts.steady_rates else ""
    return PageVerdict(fitness, sentence, use, remarks, counts, acceptance, coverage, gaps, beside)


def _is_cut_short(manifest: Manifest) -> bool:
    """Return whether the run was interrupted, crashed, or has not ended."""
    return not manifest.ended or manifest.exit_status not in (0, FAILED, NOTHING_JUDGED)


def _use(fitness: Fitness, counts: Counts, manifest: Manifest, coverage: Coverage) -> str:
    if not manifest.is_readable:
        return "Not for acceptance: the run folder does not record whether its protocol is for acceptance."
    if not manifest.acceptance:
        return f"Not for acceptance: the protocol {manifest.protocol.name} is not made to accept or reject a drive."
    if fitness is Fitness.UNDECIDED:
        return "Not for acceptance: its protocol is for acceptance, but this run is undecided."
    if fitness is Fitness.NO_VERDICT:
        return "Not for acceptance: its protocol is for acceptance, but this run came to no verdict."
    part = ", but only of what was judged" if fitness is Fitness.FIT and coverage.is_partial else ""
    return f"For acceptance{part}: its protocol is made to accept or reject a drive, and {_decides(fitness, counts)}."


def _decides(fitness: Fitness, counts: Counts) -> str:
    if fitness is Fitness.FIT:
        return "no promise judged failed" if counts.bounded else "every promise judged passed"
    return "a failed promise decides" if counts.failed else "the health of the drives decides"


def word_of(fitness: Fitness, acceptance: bool) -> str:
    """Return ``Fit``, ``Not fit``, ``Undecided``, ``No verdict``; ``Passed, not for acceptance`` if the protocol may
    not decide.
    """
    if acceptance or fitness not in USE:
        return fitness.value.capitalize()
    return f"{USE[fitness]}{NOT_FOR_ACCEPTANCE}"


#: All words of a run, in the order of counters.
WORDS = (*(word_of(fitness, True) for fitness in Fitness), *(word_of(fitness, False) for fitness in USE))


def headline(fitness: Fitness, acceptance: bool, coverage: Coverage) -> str:
    """Return the word; of a pass with its coverage."""
    if fitness is not Fitness.FIT:
        return word_of(fitness, acceptance)
    return f"Fit for {coverage}" if acceptance else f"{USE[fitness]} for {coverage}{NOT_FOR_ACCEPTANCE}"


def _sentence(counts: Counts, gaps: Sequence[str], coverage: Coverage) -> str:
    if counts.worsened and not counts.failed:
        return (
            f"{counted(counts.worsened, 'drive')} failed or reported a new defect in this run, which no promise judged."
        )
    if not counts.promises:
        return "No promise was judged in this run."
    if coverage.missing and not counts.failed and not counts.inconclusive:
        if counts.bounded:
            return f"{_not_judged(coverage)}. {counted(counts.passed, 'promise')} passed and none failed."
        rest = "The one promise that was" if counts.promises == 1 else f"All {counts.promises:,} promises that were"
        return f"{_not_judged(coverage)}. {rest} judged passed."
    if counts.failed:
        rest = f"; {counts.passed:,} passed" if counts.passed else ""
        return f"{counts.failed:,} of {counted(counts.promises, 'promise')} failed{rest}."
    if not counts.passed:
        kinds = {"inconclusive": counts.inconclusive, "bounded": counts.bounded}
        how = " or ".join(kind for kind, number in kinds.items() if number)
        return f"{counted(counts.promises, 'promise')} {_are(counts.promises)} {how}; none passed or failed."
    if gaps:
        passed = f"{counts.passed:,} of {counted(counts.promises, 'promise')} passed"
        return f"{passed} and none failed, but the run did not decide everything that it planned."
    if counts.bounded:
        return f"{counted(counts.passed, 'promise')} passed and none failed."
    if counts.promises == 1:
        return "The one promise judged passed."
    return f"All {counted(counts.promises, 'promise')} judged passed."


def _not_judged(coverage: Coverage) -> str:
    """Return ``Steady IOPS: none of 384 tests judged``, one sentence for each promise."""
    named = [_capital(str(each)) for each in coverage.missing[:MOST_NAMED]]
    more = len(coverage.missing) - MOST_NAMED
    return ". ".join([*named, *([f"Nothing was judged of {counted(more, 'promise')} more"] if more > 0 else [])])


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _gaps(counts: Counts, manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each reason why the run did not decide everything that it planned."""
    if counts.inconclusive:
        open_ones = f"{counted(counts.inconclusive, 'promise')} {_are(counts.inconclusive)} inconclusive"
        yield f"{open_ones}: {_undecided(counts)}."
    if counts.lost:
        yield lost(counts)
    if errors := counts.errors - counts.lost:
        yield f"{counted(errors, 'test')} ended in an error, which says nothing about the drives."
    if counts.only_health and not _nothing_judged(manifest):
        yield "Nothing but the health of the drives was judged."
    if counts.unreadable:
        yield f"This version of pytest-ssdqual cannot read {counts.unreadable:,} of the run's records."
    yield from counts.uneven.values()
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


def _limits(counts: Counts, manifest: Manifest, coverage: Coverage) -> Iterator[str]:
    """Yield a sentence for what the run was not to judge, which does not change the verdict."""
    if counts.bounded and counts.passed + counts.failed:
        yield (
            f"{counted(counts.bounded, 'promise')} {_are(counts.bounded)} bounded: something above the drives is the "
            "bottleneck, and the drives can do more."
        )
    if counts.unread:
        yield f"The health of {counted(counts.unread, 'drive')} was not read and is not judged."
    if counts.unlogged:
        yield (
            f"The kernel log could not be read in {counted(counts.unlogged, 'load')}: errors of drives and host that "
            "it names were not seen."
        )
    yield from (f"{_capital(str(each))} (not required)." for each in coverage.hollow if each not in coverage.missing)
    yield from (f"{_capital(str(each))} (not promised)." for each in coverage.unpromised)
    for remark in manifest.remarks:
        if FORCED in remark:
            yield f"{_capital(remark.partition(':')[0])} ({FORCED})."
    models = manifest.without_sheet
    if models or (manifest.spec and manifest.spec.name == DEFAULT):
        of = f" of {named(models, MOST_NAMED)}" if models else ""
        yield f"No figure of a data sheet was judged{of} (--ssd-spec={DEFAULT})."


def _nothing_judged(manifest: Manifest) -> str:
    """Return why no test was judged; empty if one was."""
    return manifest.judged.nothing_judged if manifest.judged else ""


def _ending(counts: Counts, manifest: Manifest) -> Iterator[str]:
    status, why = manifest.exit_status, _nothing_judged(manifest)
    not_run = manifest.judged.not_run if manifest.judged else 0
    if why and not counts.bounded:
        yield f"Nothing was judged: {why}."
    if not_run and status != INTERRUPTED:
        yield f"{counted(not_run, 'test')} that the run planned did not run."
    if not manifest.is_readable:
        yield "The run folder has no readable manifest, so the drives, the spec and the protocol are unknown."
    elif not manifest.ended:
        yield "The run has not ended or was killed; how much is missing is unknown."
    elif status == INTERRUPTED:
        yield "The run was interrupted; the remaining tests were not run."
    elif status == FAILED and not counts.failed + counts.inconclusive + counts.errors + counts.unreadable:
        yield "pytest reported failed tests that the run folder does not record; see pytest's output."
    elif status == NOTHING_JUDGED and not (why or not_run or counts.promises):
        yield "No test was run."
    elif status not in (0, FAILED, NOTHING_JUDGED):
        yield _other_status(manifest)


def _other_status(manifest: Manifest) -> str:
    return f"pytest ended with status {manifest.exit_status}; see its output."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
