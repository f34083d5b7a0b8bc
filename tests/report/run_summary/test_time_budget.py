from __future__ import annotations

import pytest

from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.report.run_summary.time_budget import BudgetUse


def record(kind: str, **facts: object) -> Record:
    return Record(kind, "2026-03-01T12:00:00.000+00:00", facts)


@pytest.mark.parametrize(
    ("left_out", "spent", "sentence"),
    [
        ([], [], "8 h; it left nothing out and ended nothing"),
        (["raid5x4 a"], [], "8 h; 1 measurement left out"),
        (["a", "b"], ["c", "c"], "8 h; 2 measurements left out, 1 step ended undecided or not begun"),
    ],
)
def test_a_budget_and_what_it_cost(left_out: list[str], spent: list[str], sentence: str) -> None:
    records = [
        record("budget", seconds=28_800.0, left_out=["x"] * 9),  # of an earlier session
        record("budget", seconds=28_800.0, left_out=left_out),
        *(record("budget_spent", step=step) for step in spent),
    ]
    found = BudgetUse.of(records)
    assert str(found) == sentence
    assert found
    assert dict(found.facts()) == {"budget_left_out": str(len(left_out)), "budget_cut_short": str(len(set(spent)))}


@pytest.mark.parametrize("facts", [{}, {"seconds": "8 h", "left_out": []}, {"seconds": 1.0, "left_out": "x"}])
def test_without_a_readable_plan_there_is_no_budget(facts: dict[str, object]) -> None:
    assert BudgetUse.of([record("budget", **facts)]) is None
    assert BudgetUse.of([record("budget_spent", step="a")]) is None


def test_a_step_that_a_later_session_begins_is_not_cut_short() -> None:
    budget = record("budget", seconds=28_800.0, left_out=[])
    earlier = [
        budget,
        record("budget_spent", step="a", begun=False),
        record("budget_spent", step="b", begun=True),
        record("budget_spent", step="c", begun=False),
    ]
    found = [
        BudgetUse.of(each) for each in (earlier, [*earlier, budget, record("budget_spent", step="c", begun=False)])
    ]
    assert [each and each.cut_short for each in found] == [3, 2]
