"""How many claims a run makes: counted when its tests are collected, and kept for as long as the run is continued."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.plan import needs
from pytest_ssdqual.report.run_folder.reader import Record

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification

#: Kind of the record.
KIND = "claims_planned"


def count(items: Iterable[pytest.Item]) -> int:
    """One for each test that asks for verdicts, one for each drive where drives side by side are judged one by one.

    Rather too many than too few: of some of them it turns out only later that nothing is promised.
    """
    return sum(
        max((each.width if each.is_side_by_side else 1 for each in needs.of(item).geometries), default=0)
        for item in items
        if "sla" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("skip")
    )


def planned_in(records: Iterable[Record]) -> int | None:
    """What a run counted when it began; None if it did not get there.

    The first record counts: who resumes a run, with whatever tests, does not change how sure its failures have to be.
    """
    for record in records:
        found = record.facts.get("count") if record.kind == KIND else None
        if isinstance(found, int) and found > 0:
            return found
    return None


def plan(run: Qualification, items: Iterable[pytest.Item]) -> int:
    """How many claims the run is planned to make, at least one; noted unless it resumes one that did so."""
    before = planned_in(run.resumed.past.records) if run.resumed else None
    found = before or max(1, count(items))
    if run.journal and before is None:
        run.journal.note(KIND, count=found, control=run.protocol.verdict.family)
    return found
