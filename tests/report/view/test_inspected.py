from __future__ import annotations

from dataclasses import replace

from support.builders.inspected import checked

from pytest_ssdqual.qual.inspection.checks import Answer
from pytest_ssdqual.report.evidence.evidence import Finding
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.view import promises
from pytest_ssdqual.report.view.tables import Cell, MeasuredCell

#: Check: reading and answer of each of three drives, and the limit.
READ = {
    "wear": (("0 %", Answer.CONFORMS), ("38 %", Answer.DEVIATES), ("0 %", Answer.CONFORMS)),
    "temperature": (("34 °C", Answer.CONFORMS), ("38 °C", Answer.CONFORMS), ("36 °C", Answer.CONFORMS)),
    "spare": (("100 %", Answer.CONFORMS), ("100 %", Answer.CONFORMS), ("", Answer.UNKNOWN)),
    "model": (("ACME", Answer.UNLIMITED), ("ACME", Answer.UNLIMITED), ("ACME", Answer.UNLIMITED)),
}
BOUNDS = {"wear": "≤ 0 %", "temperature": "≤ 60 °C", "spare": "≥ 100 %", "model": ""}


def verdict(check: str) -> Judged:
    read = {f"S{number}": each for number, each in enumerate(READ[check])}
    return Judged.of(check, checked(check, BOUNDS[check], read))


DRIVES = promises.inspected_drives(map(verdict, READ))


def test_a_drive_has_the_verdict_of_its_worst_reading() -> None:
    assert [(each.name, each.path, each.outcome) for each in DRIVES] == [
        ("S1", "/dev/S1", Finding.FAIL),
        ("S2", "/dev/S2", Finding.INCONCLUSIVE),
        ("S0", "/dev/S0", Finding.PASS),
    ]
    assert [each.deviations for each in DRIVES] == [("wear 38 % (≤ 0 %)",), (), ()]


def test_the_matrix_has_drives_down_and_readings_across() -> None:
    whole = promises.inspection_matrix(DRIVES)
    assert whole.columns == ("Drive", "Path", "Verdict", "model", "wear", "spare", "temperature")
    assert whole.rows[0] == ("limit", "", "", "", "≤ 0 %", "≥ 100 %", "≤ 60 °C")
    deviating = promises.inspection_matrix(DRIVES, only_deviating=True)
    assert deviating.columns[3:] == ("wear", "spare")
    cells: dict[str, tuple[Cell, ...]] = {str(row[0]): row[3:] for row in deviating.rows}
    assert cells["S1"] == (MeasuredCell("38 %", "", Finding.FAIL), "100 %")
    assert cells["S2"] == ("0 %", MeasuredCell("unknown", "", Finding.INCONCLUSIVE))


def test_readings_that_no_drive_misses_are_ranges_with_a_limit() -> None:
    assert list(promises.conforming(DRIVES)) == ["temperature 34 °C…38 °C (≤ 60 °C)", "without a limit: model"]


def test_two_drives_with_one_serial_number_are_two_rows() -> None:
    of = verdict("wear")
    twins = replace(of, members=tuple(replace(part, name="S0") for part in of.members))
    found = promises.inspected_drives([twins])
    assert sorted(each.path for each in found) == ["/dev/S0", "/dev/S1", "/dev/S2"]
