"""What was seen of each fault is what ``docs/faults.md`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fault_table import Ledger


def test_every_fault_is_in_both_tables() -> None:
    import fault_table

    rows = fault_table.committed(fault_table.DOCUMENT.read_text(encoding="utf-8"))
    titles = list(fault_table.FAULTS.values())
    assert [tuple(row.split(" |")[0] for row in pair) for pair in rows] == [(f"| {each}",) * 2 for each in titles]


def test_what_was_not_seen_stays_as_it_was_written() -> None:
    import fault_table

    titles = list(fault_table.FAULTS.values())
    rows = [(f"| {title} | said |", f"| {title} | left |") for title in titles]
    empty = f"before\n{fault_table.BEGIN}\n{fault_table.END}\nafter\n"
    whole = fault_table.written(empty, rows[::-1])
    assert fault_table.committed(whole) == rows
    assert whole.startswith("before\n")
    assert whole.endswith("\nafter\n")
    anew = (f"| {titles[3]} | says otherwise |", f"| {titles[3]} | left |")
    assert fault_table.committed(fault_table.written(whole, [anew])) == [*rows[:3], anew, *rows[4:]]


@pytest.mark.lab
@pytest.mark.unhurried
def test_the_document_says_what_was_seen(ledger: Ledger) -> None:
    import fault_table

    if not ledger.observed:
        pytest.skip("no fault was rehearsed")
    document = fault_table.DOCUMENT.read_text(encoding="utf-8")
    if fault_table.is_to_be_written():
        document = fault_table.written(document, ledger.rows())
        fault_table.DOCUMENT.write_text(document, encoding="utf-8")
    assert set(ledger.rows()) <= set(fault_table.committed(document))
    if unseen := ledger.missing():
        pytest.skip(f"not everything was rehearsed: {', '.join(unseen)}")
