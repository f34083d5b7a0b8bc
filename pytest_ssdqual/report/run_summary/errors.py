"""Tests without a verdict: errors, grouped by message, and skips, grouped by reason; pure.

An inconclusive verdict is not listed as an error, too. A test that a later session judged is no error any more, nor is
a bay that did not begin once a later session has begun, nor a file that could not be collected once a later session has
tests of it. A verdict of the same session resolves nothing: of a test with subtests one can fail and another one pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.report.evidence import health
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_folder.manifest import PlannedTests
from pytest_ssdqual.report.run_folder.reader import JUDGED, PLANNED, RESUMED, Record, RunReader

#: Kinds of records of a test without a verdict: an error, or a fail for another reason than a promise.
ERROR, FAILED = "error", "failed"
#: Kind of record of a test that passed and has no evidence.
PASSED = "passed"
#: The end of the id under which a file that could not be collected is reported, and the name of errors of no file.
COLLECTION, OF_NO_FILE = "::collection[", "ssdqual"
#: Marks the message of a measurement that cannot be judged; commands do not explain that error.
UNJUDGED = " cannot be judged: "
#: Characters by which a sentence is recognised, as messages are cut.
ENOUGH_CHARACTERS = 200
#: Kind of record of a skipped test.
SKIPPED = "skipped"


@frozen
class ErrorGroup:
    """An error message and the tests that ended with it."""

    message: str
    tests: tuple[str, ...]
    #: Time (UTC, ISO 8601) and process of the first occurrence.
    time: str
    writer: str
    #: True if the test failed for another reason than a promise.
    is_failure: bool = False
    #: Serial numbers of the drives that had failed in an earlier test, which is why these tests could not run.
    drives: tuple[str, ...] = ()

    @property
    def is_of_judging(self) -> bool:
        """True if the measurement succeeded, but could not be judged."""
        return UNJUDGED in self.message[:ENOUGH_CHARACTERS] and not self.is_failure

    @property
    def brief(self) -> str:
        """The first line of the message with its tests."""
        more = f" and {len(self.tests) - 1:,} more tests" if len(self.tests) > 1 else ""
        return f"{self.message.strip().partition(chr(10))[0] or 'without a message'} in {self.tests[0]}{more}"

    @property
    def title(self) -> str:
        if self.is_failure:
            return "A test failed for another reason than a promise"
        return "A measurement could not be judged" if self.is_of_judging else "A measurement failed"


def troubles(story: RunReader) -> tuple[ErrorGroup, ...]:
    """Return the errors in the order of their first occurrence."""
    found: dict[tuple[str, str], list[Record]] = {}
    clauses = {health.failed_in(serial, test): serial for serial, test in story.failed_drives()}
    for record in _open(story):
        found.setdefault((record.kind, str(record.facts.get("message", ""))), []).append(record)
    return tuple(
        ErrorGroup(
            message=message,
            tests=tuple(dict.fromkeys(each.test for each in records)),
            time=records[0].time,
            writer=str(records[0].facts.get("writer", "")),
            is_failure=kind == FAILED,
            drives=tuple(serial for clause, serial in clauses.items() if kind == ERROR and clause in message),
        )
        for (kind, message), records in found.items()
    )


def _open(story: RunReader) -> Iterable[Record]:
    sessions = list(accumulate(record.kind == RESUMED for record in story.records))
    judged_last = {
        record.test: session
        for session, record in zip(sessions, story.records, strict=True)
        if record.kind in (*JUDGED, PASSED)
    }
    undecided = {
        (each.test, each.sentence[:ENOUGH_CHARACTERS]) for each in story.judged if each.outcome is Finding.INCONCLUSIVE
    }
    for number, record in enumerate(story.records):
        test, message = record.test, str(record.facts.get("message", ""))
        if record.kind not in (ERROR, FAILED) or judged_last.get(test, -1) > sessions[number]:
            continue
        if record.is_of_session and _is_made_up_for(test, replace(story, records=story.records[number + 1 :])):
            continue
        if (test, message[:ENOUGH_CHARACTERS]) not in undecided:
            yield record


def _is_made_up_for(error: str, later: RunReader) -> bool:
    """Return whether a later session of a bay began, or has tests of the file that could not be collected.

    A file that later sessions leave out stays an error, or leaving it out would make the run green.
    """
    file, is_of_file, _ = error.partition(COLLECTION)
    if not is_of_file or file == OF_NO_FILE:
        return bool(later.of(RESUMED))
    tests = (each.test for each in later.records if not each.is_of_session)
    found = chain(tests, *(planned.tests for planned in later.contents(PlannedTests, PLANNED)))
    return any(test.startswith((f"{file}::", f"{file}/")) for test in found)


def skipped(story: RunReader) -> Mapping[str, Sequence[str]]:
    """Return ids of tests by reason of their skip, without tests that a later session ran."""
    last = {record.test: record for record in story.of(SKIPPED, ERROR, FAILED, PASSED, *JUDGED)}
    found: dict[str, list[str]] = {}
    for test, record in last.items():
        if record.kind == SKIPPED:
            found.setdefault(str(record.facts.get("reason", "")), []).append(test)
    return found


@frozen
class Unresolved:
    """Ids of tests, each once."""

    failed: tuple[str, ...]
    #: Inconclusive, or ended in an error.
    undecided: tuple[str, ...]


def unresolved(
    story: RunReader, *, tests: Collection[str] = (), subjects: Collection[object] = (), inconclusive: bool = True
) -> Unresolved:
    """Return what is open in ``story``, without what the present session reports itself.

    ``tests`` are those that it judged or ended in an error, ``subjects`` what its verdicts are about.
    ``inconclusive``: verdicts without a result count (``ssd_inconclusive``).
    """
    failed, undecided = dict[str, None](), dict[str, None]()
    for judged in story.judged:
        if judged.subject in subjects or judged.is_expected:
            continue
        if judged.outcome is Finding.FAIL:
            failed[judged.test] = None
        elif inconclusive and judged.outcome is Finding.INCONCLUSIVE:
            undecided[judged.test] = None
    for trouble in troubles(story):
        of_kind = failed if trouble.is_failure else undecided
        of_kind.update({test: None for test in trouble.tests if test not in tests})
    return Unresolved(tuple(failed), tuple(undecided))
