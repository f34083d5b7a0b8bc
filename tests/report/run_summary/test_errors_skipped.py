from __future__ import annotations

from support.builders.report_page import Claimed, WriteRun, judged, record

from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.run_summary.errors import MOST_REASONS, skipped, table


def test_reasons_of_most_tests_come_first(write_run: WriteRun) -> None:
    folder = write_run(
        record("skipped", test="a", reason="rare"),
        *(record("skipped", test=f"b{number}", reason="common") for number in range(4)),
    )
    grid = table(skipped(RunReader.read(folder)))
    assert grid.caption == "Skipped tests: 5"
    assert grid.rows == (("common", "4", "b0; b1; b2 and 1 more"), ("rare", "1", "a"))


def test_what_ran_after_all_was_not_skipped(write_run: WriteRun, claimed: Claimed) -> None:
    folder = write_run(
        record("skipped", 1, test="a", reason="x"),
        record("skipped", 1, test="b", reason="x"),
        record("error", 2, test="a", message="lost"),
        judged(claimed(), "b", 2),
        record("error", 1, test="c", message="lost"),
        record("skipped", 2, test="c", reason=""),
    )
    assert skipped(RunReader.read(folder)) == {"": ["c"]}
    assert table(skipped(RunReader.read(folder))).rows == (("no reason given", "1", "c"),)


def test_thousands_of_reasons_are_bounded(write_run: WriteRun) -> None:
    grid = table({f"reason {number}": [f"t{number}"] for number in range(5000)})
    assert len(grid.rows) == MOST_REASONS
    assert "4,960 more rows are left out" in grid.note
