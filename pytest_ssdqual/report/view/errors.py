"""Tests that came to no verdict: what was said, and the last commands before that; pure.

The rule of the module: an undecided verdict is told as one, not as an error as well, and what a later session has
judged after all is no trouble any more.

Tests that were skipped, by reason: neither kept nor broken, nor an error; pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_folder.reader import JUDGED, Record, RunReader
from pytest_ssdqual.report.view.tables import PageRow, PageTable, bounded

#: Kinds of records of a test that came to no verdict: the rig's errors, and tests that failed for another reason.
ERROR, FAILED = "error", "failed"
#: In the sentence of what was measured and cannot be held against a promise: no command has anything to do with that.
UNJUDGED = " cannot be judged: "
#: Of a sentence, to recognise it: messages are cut.
ENOUGH_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """What was said of one test, or of several in the same words."""

    message: str
    tests: tuple[str, ...]
    #: Of the first: UTC, ISO 8601, and which process it was.
    time: str
    writer: str
    #: Not the rig: the test itself failed, and of no promise.
    is_failure: bool = False

    @property
    def is_of_judging(self) -> bool:
        """It was measured."""
        return UNJUDGED in self.message[:ENOUGH_CHARACTERS] and not self.is_failure

    @property
    def title(self) -> str:
        if self.is_failure:
            return "A test failed, and not for a promise"
        return "Something could not be judged" if self.is_of_judging else "Something could not be measured"


def troubles(story: RunReader) -> tuple[ErrorGroup, ...]:
    """In the order in which they were first said."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in _open(story):
        found.setdefault((record.kind, str(record.facts.get("message", ""))), []).append(record)
    return tuple(
        ErrorGroup(
            message=message,
            tests=tuple(dict.fromkeys(str(each.facts.get("test", "")) for each in records)),
            time=records[0].time,
            writer=str(records[0].facts.get("writer", "")),
            is_failure=kind == FAILED,
        )
        for (kind, message), records in found.items()
    )


def _open(story: RunReader) -> Iterable[Record]:
    judged_last = {
        str(record.facts.get("test")): number for number, record in enumerate(story.records) if record.kind in JUDGED
    }
    undecided = {
        (each.test, each.evidence.sentence[:ENOUGH_CHARACTERS])
        for each in story.evidence()
        if each.evidence.outcome is Finding.INCONCLUSIVE
    }
    for number, record in enumerate(story.records):
        test, message = str(record.facts.get("test")), str(record.facts.get("message", ""))
        if record.kind not in (ERROR, FAILED) or judged_last.get(test, -1) > number:
            continue
        if (test, message[:ENOUGH_CHARACTERS]) not in undecided:
            yield record


KIND = "skipped"
#: Reasons in the table, and tests that are named for each.
MOST_REASONS, MOST_NAMED = 40, 3
RECORDS = "records.jsonl has them"


def skipped(story: RunReader) -> Mapping[str, Sequence[str]]:
    """Ids of tests by why they were skipped; those that a later session ran after all are not among them."""
    last = {str(record.facts.get("test")): record for record in story.of(KIND, ERROR, FAILED, *JUDGED)}
    found: dict[str, list[str]] = {}
    for test, record in last.items():
        if record.kind == KIND:
            found.setdefault(str(record.facts.get("reason", "")), []).append(test)
    return found


def table(found: Mapping[str, Sequence[str]]) -> PageTable:
    """Reasons, those of most tests first."""
    rows: list[PageRow] = [
        (reason or "no reason was given", f"{len(tests):,}", "; ".join(tests[:MOST_NAMED]) + _more(tests))
        for reason, tests in sorted(found.items(), key=lambda each: -len(each[1]))
    ]
    count = sum(map(len, found.values()))
    title = f"Skipped tests: {count:,}"
    return bounded(title, ("Why", "Tests", "Which"), rows, MOST_REASONS, RECORDS)


def _more(tests: Sequence[str]) -> str:
    return f" and {len(tests) - MOST_NAMED:,} more" if len(tests) > MOST_NAMED else ""
