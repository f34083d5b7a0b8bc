from __future__ import annotations

import re
from pathlib import Path

from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged, record

from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.run_summary.errors import skipped


def section(folder: Path) -> str:
    """The skipped tests of the page."""
    return run_page.text(RunReader.read(folder)).partition("<summary>Skipped tests: ")[2].partition("</details>")[0]


def rows(folder: Path) -> list[tuple[str, ...]]:
    return re.findall('<tr><th scope="row">([^<]*)</th><td>([^<]*)</td><td>([^<]*)</td></tr>', section(folder))


def test_reasons_of_most_tests_come_first(write_run: WriteRun) -> None:
    folder = write_run(
        record("skipped", test="a", reason="rare"),
        *(record("skipped", test=f"b{number}", reason="common") for number in range(4)),
    )
    assert section(folder).startswith("5<")
    assert rows(folder) == [("common", "4", "b0; b1; b2 and 1 more"), ("rare", "1", "a")]


def test_what_ran_after_all_was_not_skipped(write_run: WriteRun) -> None:
    folder = write_run(
        record("skipped", 1, test="a", reason="x"),
        record("skipped", 1, test="b", reason="x"),
        record("error", 2, test="a", message="lost"),
        judged(claimed(), "b", 2),
        record("error", 1, test="c", message="lost"),
        record("skipped", 2, test="c", reason=""),
    )
    assert skipped(RunReader.read(folder)) == {"": ["c"]}
    assert rows(folder) == [("no reason given", "1", "c")]


def test_thousands_of_reasons_are_bounded(write_run: WriteRun) -> None:
    folder = write_run(*(record("skipped", test=f"t{number}", reason=f"reason {number}") for number in range(5000)))
    assert len(rows(folder)) == 40
    assert "4,960 more rows are left out" in section(folder)
