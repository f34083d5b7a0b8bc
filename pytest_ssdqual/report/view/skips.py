"""Tests that were skipped, by reason: neither kept nor broken, nor an error; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_ssdqual.report.run_folder.story import JUDGED, Story
from pytest_ssdqual.report.view.errors import ERROR, FAILED
from pytest_ssdqual.report.view.grid import Grid, Row, bounded

KIND = "skipped"
#: Reasons in the table, and tests that are named for each.
MOST_REASONS, MOST_NAMED = 40, 3
RECORDS = "records.jsonl has them"


def skipped(story: Story) -> Mapping[str, Sequence[str]]:
    """Ids of tests by why they were skipped; those that a later session ran after all are not among them."""
    last = {str(record.facts.get("test")): record for record in story.of(KIND, ERROR, FAILED, *JUDGED)}
    found: dict[str, list[str]] = {}
    for test, record in last.items():
        if record.kind == KIND:
            found.setdefault(str(record.facts.get("reason", "")), []).append(test)
    return found


def table(found: Mapping[str, Sequence[str]]) -> Grid:
    """Reasons, those of most tests first."""
    rows: list[Row] = [
        (reason or "no reason was given", f"{len(tests):,}", "; ".join(tests[:MOST_NAMED]) + _more(tests))
        for reason, tests in sorted(found.items(), key=lambda each: -len(each[1]))
    ]
    count = sum(map(len, found.values()))
    title = f"Skipped tests: {count:,}"
    return bounded(title, ("Why", "Tests", "Which"), rows, MOST_REASONS, RECORDS)


def _more(tests: Sequence[str]) -> str:
    return f" and {len(tests) - MOST_NAMED:,} more" if len(tests) > MOST_NAMED else ""
