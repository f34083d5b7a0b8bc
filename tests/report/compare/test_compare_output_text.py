from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.kept_runs import Kept, KeptMeasurement

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.verdict.ratio import ChangeKind
from pytest_ssdqual.report.compare import compare_output
from pytest_ssdqual.report.compare.compare import Comparison, compare
from pytest_ssdqual.report.compare.compared_run import ComparedRun


def compared(tmp_path: Path, *runs: Kept) -> Comparison:
    return compare(
        [ComparedRun.read(run.keep(tmp_path / f"run-{index}")) for index, run in enumerate(runs)], anyway=True
    )


def several(*values: float) -> list[KeptMeasurement]:
    return [KeptMeasurement(value, geometry=f"raid5x{width}") for width, value in enumerate(values, start=3)]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_line_fits_and_differences_come_first(tmp_path: Path, width: int) -> None:
    found = compared(tmp_path, Kept(several(10_000, 9_000, 8_000)), Kept(several(5_000, 9_000, 8_000), firmware="B2"))
    lines = compare_output.table(found, width)
    assert max(len(line.text) for line in lines) <= width
    words = " ".join(" ".join(line.text for line in lines).split())
    assert words.index("differs: firmware: A1 -> B2") < words.index("the same: ") < words.index("worse")
    assert "figures compared: 1 worse" in words
    assert "raid5x3 randread_4k_qd8" in words
    assert "raid5x4 randread_4k_qd8" not in words
    assert "2 with no difference shown are not listed" in words
    assert "3 comparisons at 95 %: without any difference 0.15 would show one by chance if taken alone" in words
    assert any(line.markup == ("red",) and "worse" in line.text for line in lines)


@pytest.mark.parametrize(("was", "differs"), [("00WD", False), ("0WD", True), ("01WD", True)])
def test_the_end_of_a_firmware_revision_is_no_difference(tmp_path: Path, was: str, differs: bool) -> None:
    runs = Kept(several(10_000, 9_000), firmware=was), Kept(several(10_000, 9_000), firmware="540500WD")
    words = " ".join(line.text for line in compare_output.table(compared(tmp_path, *runs), 200))
    assert ("differs: firmware: " in words) is differs


def test_all_figures_are_listed_if_wanted(tmp_path: Path) -> None:
    run = Kept(several(10_000, 9_000))
    lines = [line.text for line in compare_output.table(compared(tmp_path, run, run), 100, every=True)]
    assert any(
        "raid5x4 randread_4k_qd8" in line and "9,000 IOPS" in line and line.endswith("no difference shown")
        for line in lines
    )
    assert not any("not listed" in line for line in lines)
    assert "no known difference of machine, drives, spec, protocol and versions" in lines


def test_what_forbids_a_comparison_is_said_loudly(tmp_path: Path) -> None:
    found = compared(tmp_path, Kept(several(1)), Kept(several(1), protocol="other"))
    loud = [line for line in compare_output.table(found, 200) if line.text.startswith("differs: protocol: ")]
    assert loud
    assert loud[0].markup == ("red", "bold")


def test_text_from_drives_cannot_break_a_line(tmp_path: Path) -> None:
    found = compared(tmp_path, Kept(several(1)), Kept(several(1), firmware="\x1b[2J\n<b>", model="=cmd()"))
    joined = "".join(line.text for line in compare_output.table(found, 100))
    assert joined.isprintable()
    assert "\\x1b[2J\\x0a<b>" in joined


def test_readings_are_told_apart(tmp_path: Path) -> None:
    runs = [Kept([KeptMeasurement(value, Claim.MAX_LATENCY, is_reading=True)]) for value in (5e6, 9e6)]
    words = " ".join(" ".join(line.text for line in compare_output.table(compared(tmp_path, *runs), 200)).split())
    assert "worse, as read" in words
    assert "figures compared: 1 " in words
    assert ", as read" in words
    assert "1 more are readings" in words


def test_drives_that_changed_as_all_did_are_not_listed(tmp_path: Path) -> None:
    """Eight drives lost a tenth, and one of them a half: rows are all together, and that one."""
    serials = [f"S{index}" for index in range(8)]
    rates = dict.fromkeys(serials, 1000.0)
    fewer = {**dict.fromkeys(serials, 900.0), "S5": 500.0}
    first, now = (
        Kept([KeptMeasurement(1000.0, geometry="drivex8", drives=each, drives_percent=1.0)], serials=tuple(serials))
        for each in (rates, fewer)
    )
    found = compare([ComparedRun.read(run.keep(tmp_path / name)) for run, name in ((first, "a"), (now, "b"))])
    (against,) = found.others
    worse = {pair.drive for pair in against.pairs if pair.change.shown is ChangeKind.WORSE}
    assert set(serials) <= worse | {""}
    assert drives_listed(found) == {"S5"}
    assert drives_listed(found, every=True) == set(serials)


def drives_listed(found: Comparison, *, every: bool = False) -> set[str]:
    rows = (line.text for line in compare_output.table(found, 200, every=every))
    return {"S" + row.partition(", S")[2].split()[0] for row in rows if row.startswith("  drive") and ", S" in row}
