from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.evidence import claimed
from support.documents import golden

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.terminal.summary import Header, header_lines, write_table

INTEL = "INTEL SSDSC2BB480G4"


def test_one_line_says_what_the_run_is_about() -> None:
    header = Header((INTEL,) * 8, "root@dut7", "intel", True, "intel-dc-s3500-480gb", Path("ssdqual-runs/1"))
    golden.same("terminal_tables.txt", header_lines(header))


def test_what_a_reader_must_not_miss() -> None:
    header = Header((INTEL, None, INTEL), "lab", "quick", False, None, None, ("swap could not be looked at.",))
    without = Header((), "lab", "intel", True, None, None)
    golden.same("terminal_tables.txt", [*header_lines(header), *header_lines(without)])


SUMMARY = """
    from pathlib import Path
    from pytest_ssdqual.report.evidence.evidence import of_facts
    from pytest_ssdqual.report.terminal.summary import write_table

    def pytest_terminal_summary(terminalreporter, config):
        write_table(
            terminalreporter,
            [of_facts(record) for record in {records!r}],
            width=80,
            verbosity=config.get_verbosity(),
            run_folder=Path("ssdqual-runs/1"),
        )
"""


def test_pytests_own_writer_colours_it(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(SUMMARY.format(records=[plain(claimed())]))
    shown = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--color=yes").stdout.str()
    (row,) = [line for line in shown.splitlines() if "-62.4 %" in line]
    assert row.startswith("\x1b[31m")
    assert "= storage qualification =" in shown
    assert "run folder: ssdqual-runs/1" in shown


def test_quiet_and_verbose_are_pytests(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(SUMMARY.format(records=[plain(claimed(value=1000))]))
    shown = {flag: pytester.runpytest_inprocess("-p", "no:cacheprovider", flag).stdout.str() for flag in ("-q", "-v")}
    assert "PASS: 1 of 1" in shown["-v"]
    assert "PASS" not in shown["-q"]
    assert "passed: 1 of 1" in shown["-q"]


def test_nothing_judged_has_no_section() -> None:
    class Silent:
        def write_line(self, line: str, **markup: bool) -> None:
            raise AssertionError(line)

        def write_sep(self, sep: str, title: str | None = None, **markup: bool) -> None:
            raise AssertionError(title)

    write_table(Silent(), [], width=80, verbosity=1, run_folder=Path())
