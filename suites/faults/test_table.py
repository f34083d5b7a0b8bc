"""The observations of each fault match ``docs/faults.md``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.lab.fault_table import Ledger

#: Keys in pytest's cache: the observed lines of the tables, and how runs went on after each fault.
SEEN, RESUMED = "ssdqual/faults", "ssdqual/faults-resumed"


def test_every_fault_is_in_both_tables() -> None:
    from support.lab import fault_table

    rows = fault_table.committed(fault_table.DOCUMENT.read_text(encoding="utf-8"))
    titles = list(fault_table.FAULTS.values())
    assert [tuple(row.split(" |")[0] for row in pair) for pair in rows] == [(f"| {each}",) * 2 for each in titles]


def test_what_was_not_seen_stays_as_it_was_written() -> None:
    from support.lab import fault_table

    titles = list(fault_table.FAULTS.values())
    rows = [(f"| {title} | said |", f"| {title} | left |") for title in titles]
    empty = f"before\n{fault_table.BEGIN}\n{fault_table.END}\nafter\n"
    whole = fault_table.written(empty, rows[::-1])
    assert fault_table.committed(whole) == rows
    assert whole.startswith("before\n")
    assert whole.endswith("\nafter\n")
    anew = (f"| {titles[3]} | says otherwise |", f"| {titles[3]} | left |")
    assert fault_table.committed(fault_table.written(whole, [anew])) == [*rows[:3], anew, *rows[4:]]


def test_what_is_seen_again_counts_instead_of_what_was_seen_before() -> None:
    from support.lab import fault_table

    titles = list(fault_table.FAULTS.values())
    before = [[f"| {title} | said |", f"| {title} | left |"] for title in titles[1:]]
    anew = (f"| {titles[2]} | says otherwise |", f"| {titles[2]} | left |")
    assert fault_table.newest(before, [anew]) == [tuple(before[0]), anew, *map(tuple, before[2:])]


def test_a_fault_that_alone_is_seen_again_keeps_how_its_run_went_on() -> None:
    from support.lab import fault_table

    (name, title), *_ = fault_table.FAULTS.items()
    seen = fault_table.Observed(("said",), "ends", "whole", "free", 0, "well-formed", "sealed")
    again = fault_table.Ledger({name: seen})
    assert again.rows() == []
    again.resumed_before({name: "continues"})
    ((said, _),) = again.rows()
    assert said == f"| {title} | said | ends | continues |"
    later = fault_table.Ledger({name: seen}, {name: "refused"})
    later.resumed_before({name: "continues"})
    assert "refused" in later.rows()[0][0]


@pytest.mark.lab
@pytest.mark.unhurried
def test_the_document_says_what_was_seen(ledger: Ledger, pytestconfig: pytest.Config) -> None:
    """Observations of the first run count for faults that do not run again."""
    from support.lab import fault_table

    cache = getattr(pytestconfig, "cache", None)
    is_again = cache and os.environ.get("PYTEST_SSDQUAL_AGAIN")
    before = cache.get(SEEN, []) if cache and is_again else []
    if cache and is_again:
        ledger.resumed_before(cache.get(RESUMED, {}))
    rows = fault_table.newest(before, ledger.rows())
    if not rows:
        pytest.skip("no fault was rehearsed")
    if cache:
        cache.set(SEEN, rows)
        cache.set(RESUMED, ledger.resumed)
    document = fault_table.DOCUMENT.read_text(encoding="utf-8")
    if fault_table.is_to_be_written():
        document = fault_table.written(document, rows)
        fault_table.DOCUMENT.write_text(document, encoding="utf-8")
    strange = set(rows) - set(fault_table.committed(document))
    assert not strange, "\n".join(line for row in strange for line in row)
    # Run again, the row of a fault whose resumption failed the first time cannot be completed: its tests have their own
    # second chance, and all rows that are complete were compared.
    if len(rows) < len(fault_table.FAULTS) and not os.environ.get("PYTEST_SSDQUAL_AGAIN"):
        pytest.skip(f"not everything was rehearsed: {', '.join(ledger.missing())}")
