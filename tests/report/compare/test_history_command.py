from __future__ import annotations

import csv
import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders.kept_fleets import KeptBay, KeptPromise, keep_fleet
from support.builders.kept_runs import Kept, KeptMeasurement
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.compare import history, history_output
from pytest_ssdqual.report.compare.history import FigureHistory, NoFigure

ANY: dict[str, str | None] = {}
#: They scatter by half a per cent.
STEADY = (1000.0, 1004.0, 998.0, 1005.0, 1001.0, 996.0, 1003.0, 999.0, 1002.0, 997.0, 1006.0, 1000.5)


def keep(root: Path, values: tuple[float, ...], since: int = 0, **more: object) -> None:
    """A run a day."""
    for day, value in enumerate(values, start=since + 1):
        kept = Kept([KeptMeasurement(value)], started=f"2026-03-{day:02}T12:00:00+00:00", **more)  # type: ignore[arg-type]
        kept.keep(root / f"202603{day:02}T120000Z-aaaa")


def words(found: FigureHistory) -> str:
    return " ".join(history_output.sentences(found))


def test_points_are_in_the_order_of_time_not_of_names(tmp_path: Path) -> None:
    Kept([KeptMeasurement(2)], started="2026-03-02T00:00:00+00:00").keep(tmp_path / "a")
    Kept([KeptMeasurement(1)], started="2026-03-01T00:00:00+00:00").keep(tmp_path / "deep" / "er" / "b")
    found = history.read(tmp_path, ANY)
    assert [point.run for point in found.points] == ["b", "a"]


@pytest.mark.parametrize("count", [1, 4, 9, 12])
def test_a_steady_figure_shows_nothing(tmp_path: Path, count: int) -> None:
    keep(tmp_path, STEADY[:count])
    golden.same("histories.txt", history_output.sentences(history.read(tmp_path, ANY)))


@pytest.mark.parametrize(("after", "changes"), [("5405A101", False), ("5405B202", True)])
def test_the_end_of_a_firmware_revision_is_no_change(tmp_path: Path, after: str, changes: bool) -> None:
    keep(tmp_path, STEADY[:6], firmware="A101")
    keep(tmp_path, tuple(0.9 * each for each in STEADY[6:]), since=6, firmware=after)
    assert ("the firmware changed" in words(history.read(tmp_path, ANY))) is changes


def test_a_change_is_told_with_its_place_and_what_changed_there(tmp_path: Path) -> None:
    keep(tmp_path, STEADY[:6])
    keep(tmp_path, tuple(0.9 * each for each in STEADY[6:]), since=6, firmware="B2")
    found = words(history.read(tmp_path, ANY))
    place = "between 20260306T120000Z-aaaa and 20260307T120000Z-aaaa"
    pattern = rf"single change {place}: -[\d.]+ %, .*interval (-[\d.]+)…(-[\d.]+) %"
    ((low, high),) = re.findall(pattern, found)
    assert -12 < float(low) <= -10 <= float(high) < -8
    golden.same("histories.txt", history_output.sentences(history.read(tmp_path, ANY)))


def test_a_trend_is_told_with_its_slope(tmp_path: Path) -> None:
    keep(tmp_path, tuple(each * 0.97**index for index, each in enumerate(STEADY)))
    golden.same("histories.txt", history_output.sentences(history.read(tmp_path, ANY)))


def test_other_products_and_protocols_are_shown_and_not_counted(tmp_path: Path) -> None:
    keep(tmp_path, (10.0, 11.0), model="OLD")
    keep(tmp_path, (12.0, 13.0), since=2, protocol="other")
    keep(tmp_path, (14.0, 15.0, 16.0), since=4)
    found = history.read(tmp_path, ANY)
    assert [point.counts for point in found.points] == [False] * 4 + [True] * 3
    assert found.drift.runs == 3
    golden.same("histories.txt", history_output.sentences(found))
    assert history.read(tmp_path, dict(model="OLD")).drift.runs == 2


def test_other_definitions_of_a_figure_are_not_counted(tmp_path: Path) -> None:
    keep(tmp_path, (10.0, 11.0), asked={"random_percent": 50})
    keep(tmp_path, (14.0, 15.0, 16.0), since=2)
    found = history.read(tmp_path, ANY)
    assert [point.counts for point in found.points] == [False] * 2 + [True] * 3
    relative = KeptMeasurement(90, relative_to="randwrite_4k_qd8")
    for day in (6, 7):
        Kept([replace(relative, relative_to=f"randwrite_4k_qd{day}")], started=f"2026-03-{day:02}T12:00:00+00:00").keep(
            tmp_path / f"202603{day:02}T120000Z-aaaa"
        )
    found = history.read(tmp_path, ANY)
    assert [point.counts for point in found.points] == [False] * 6 + [True]


def test_a_start_that_no_calendar_has_is_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, (10.0, 11.0))
    Kept([KeptMeasurement(12.0)], started="0001-01-01T00:00:00+14:00").keep(tmp_path / "first")
    assert len(history.read(tmp_path, ANY).points) == 2


def test_a_figure_of_zero_is_not_told_as_that_of_another_product(tmp_path: Path) -> None:
    keep(tmp_path, (10.0, 11.0, 0.0, 12.0))
    found = history.read(tmp_path, ANY)
    assert [point.counts for point in found.points] == [True, True, False, True]
    golden.same("histories.txt", history_output.sentences(found))


def test_damaged_or_foreign_folders_are_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, (10.0, 11.0))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "records.jsonl").write_text("hello\n{}\n[1]\n")
    without = Kept([KeptMeasurement(1)]).keep(tmp_path / "without")
    (without / "manifest.json").write_text("{")
    timeless = Kept([KeptMeasurement(1)], started="yesterday\x1b[2J").keep(tmp_path / "timeless")
    linked = Kept([KeptMeasurement(1)]).keep(tmp_path / "linked")
    (linked / "records.jsonl").unlink()
    (linked / "records.jsonl").symlink_to(timeless / "records.jsonl")
    Kept([KeptMeasurement(1)]).keep(tmp_path / ".hidden" / "run")
    found = history.read(tmp_path, ANY)
    assert len(found.points) == 2
    golden.same("histories.txt", sorted(found.passed_over))
    assert "".join(words(found)).isprintable()


def test_exactly_one_figure_has_to_be_left(tmp_path: Path) -> None:
    figures = [KeptMeasurement(1), KeptMeasurement(2, geometry="raid5x5"), KeptMeasurement(3, Claim.P99_LATENCY)]
    Kept(figures).keep(tmp_path / "a")
    Kept(figures[:1]).keep(tmp_path / "b")
    with pytest.raises(NoFigure, match="3 figures match: steady_iops of raid5x4"):
        history.read(tmp_path, ANY)
    found = history.read(tmp_path, dict(claim="steady_*", geometry="raid5x5"))
    assert found.name == "steady IOPS of raid5x5 randread_4k_qd8"
    assert found.without == 1
    with pytest.raises(NoFigure, match="none of 2 matching runs has such a figure"):
        history.read(tmp_path, dict(workload="write*"))
    with pytest.raises(NoFigure, match="--firmware"):
        history.read(tmp_path, dict(firmware="Z*"))


def test_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoFigure, match="no run folder") as empty:
        history.read(tmp_path, ANY)
    assert str(tmp_path) in str(empty.value)
    Kept([]).keep(tmp_path / "a")
    with pytest.raises(NoFigure, match="a is skipped: it has no readable verdict"):
        history.read(tmp_path, ANY)


def test_for_programs(tmp_path: Path) -> None:
    keep(tmp_path, (10.0, 11.0), firmware="=cmd()")
    found = history.read(tmp_path, ANY)
    plain = json.loads(json.dumps(history_output.record(found), allow_nan=False))
    assert [point["value"] for point in plain["points"]] == [10, 11]
    assert (plain["schema"], plain["trend"], plain["step"], plain["runs_counted"]) == (2, None, None, 2)
    rows = list(csv.DictReader(io.StringIO(history_output.csv(found))))
    assert [row["firmware"] for row in rows] == ["'=cmd()"] * 2
    assert [float(row["low"]) for row in rows] == [9.9, 10.89]


def test_it_is_drawn_and_nothing_in_it_is_markup(tmp_path: Path) -> None:
    keep(tmp_path, STEADY[:6], firmware="<script>alert(1)</script>")
    keep(tmp_path, tuple(0.9 * each for each in STEADY[6:]), since=6, firmware="$\\alpha$")
    found = history.read(tmp_path, ANY)
    svg, page = history_output.svg(found), history_output.page(found)
    ET.fromstring(svg)  # noqa: S314 (our own)
    assert "changed here" in svg
    assert "<script" not in page
    assert page.count("<svg") == 1
    assert "alert(1)" in page


def test_every_bay_of_a_fleet_is_a_point_and_a_copy_is_none(tmp_path: Path) -> None:
    bays = [KeptBay(name, [KeptPromise(12_000 + index)]) for index, name in enumerate(("dut1", "dut2"))]
    fleet = keep_fleet(tmp_path / "runs", bays)
    other = keep_fleet(tmp_path / "more", [KeptBay("dut1", [KeptPromise(11_000)], started="2026-02-01T12:00:00+00:00")])
    shutil.copytree(fleet / "bays" / "dut2", tmp_path / "runs" / "zcopied")
    found = history.read(tmp_path, ANY)
    assert [point.run for point in found.points] == [f"{other.name}/dut1", f"{fleet.name}/dut1", f"{fleet.name}/dut2"]
    assert found.passed_over == (f"zcopied is skipped: it is the same run as {fleet.name}/dut2",)


def test_the_runs_of_one_bay(tmp_path: Path) -> None:
    keep_fleet(tmp_path, [KeptBay(name, [KeptPromise(12_000)]) for name in ("a7-left", "a7-right", "b1")])
    Kept([KeptMeasurement(12_000)]).keep(tmp_path / "a7-alone")
    found = history.read(tmp_path, dict(bay="a7-*", geometry="raid5x4"))
    assert [point.run.partition("/")[2] for point in found.points] == ["a7-left", "a7-right"]
