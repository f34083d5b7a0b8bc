from __future__ import annotations

from dataclasses import replace

from support.builders.evidence import claimed

from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.view.promises import ALL_WIDTHS, MOST_BAYS, MOST_SINGLE, matrix, of_bays


def judged(*evidence: Evidence) -> list[Evidence]:
    return list(evidence)


def test_widths_are_columns_and_a_cell_has_the_least_margin() -> None:
    near = replace(claimed(arrays="raid5x10", value=1000), margin_percent=3.0)
    far = replace(claimed(arrays="raid5x10", workload=Workload("randread", "4k", 1), value=1000), margin_percent=60.0)
    sweep = replace(near, geometries=("raid5x4", "raid5x10"), claim="scaling_slope")
    found = matrix(judged(far, near, claimed(arrays="raid5x4"), sweep))
    assert found.columns == ("x4", "x10", ALL_WIDTHS)
    latency, slope = found.rows
    assert (latency.cells[1].worst, latency.cells[1].count) == (near, 2)  # type: ignore[union-attr]
    assert latency.worst.outcome is Finding.FAIL
    assert slope.cells[:2] == (None, None)
    assert len(latency.singles.rows) == 3


def test_a_bar_ends_at_the_limit() -> None:
    (row,) = matrix(judged(replace(claimed(), margin_percent=-2033.0))).rows
    assert row.worst.reach == -100.0


def test_thousands_of_promises_are_counted_and_bounded() -> None:
    (row,) = matrix(judged(*[claimed()] * (MOST_SINGLE + 5))).rows
    assert row.count == MOST_SINGLE + 5
    assert len(row.singles.rows) == MOST_SINGLE
    assert row.singles.note.startswith("5 more")


def test_bays_are_columns_and_a_cell_names_its_worst_width() -> None:
    wide = replace(claimed(arrays="raid5x10", value=1000), margin_percent=3.0)
    narrow = replace(wide, geometries=("raid5x4",), margin_percent=9.0)
    found = of_bays({"dut1": judged(narrow, wide), "dut2": judged(narrow), "dut3": []})
    assert found.columns == ("dut1", "dut2")
    (row,) = found.rows
    assert [(cell.worst, cell.count, cell.width) for cell in row.cells if cell] == [(wide, 2, "x10"), (narrow, 1, "x4")]
    assert (found.caption, found.note, row.singles.rows) == ("Promises of each bay: 3", "", ())


def test_of_many_bays_those_with_the_least_margins_have_columns() -> None:
    good = replace(claimed(value=1000), outcome=Finding.PASS, margin_percent=50.0)
    near = replace(good, margin_percent=1.0)
    bays = {f"dut{number}": judged(near if number == 20 else good) for number in range(1, 21)}
    found = of_bays(bays)
    assert len(found.columns) == MOST_BAYS
    assert found.columns[-1] == "dut20"
    assert found.note == "8 more bays have larger margins."
