from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.builders.kept_runs import Kept, KeptMeasurement

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.charts.ratios import CHARACTER_IN, limits, spread
from pytest_ssdqual.report.compare import compare_output
from pytest_ssdqual.report.compare.compare import Comparison, compare
from pytest_ssdqual.report.compare.compare_output import NAMES_IN, svg
from pytest_ssdqual.report.compare.compared_run import ComparedRun
from pytest_ssdqual.report.drawing.plot import Chart, Line, Point
from pytest_ssdqual.report.view.tables import Table

HOSTILE = '</title><script>alert("1")</script>$\\frac{1}{2}$'


def compared(tmp_path: Path, count: int = 3, **more: str) -> Comparison:
    old = Kept([KeptMeasurement(1000 * width, geometry=f"raid5x{width}") for width in range(3, 3 + count)])
    new = Kept([KeptMeasurement(990 * width, geometry=f"raid5x{width}") for width in range(3, 3 + count)], **more)  # type: ignore[arg-type]
    return compare([ComparedRun.read(run.keep(tmp_path / name)) for run, name in ((old, "a"), (new, "b"))])


def test_the_drawing_is_a_file_of_its_own(tmp_path: Path) -> None:
    svg = compare_output.svg(compared(tmp_path))
    root = ET.fromstring(svg)  # noqa: S314 (our own)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "raid5x5 randread_4k_qd8" in svg
    assert "no difference shown" in svg
    assert not re.search(r"(href|src)=\"(?!#)", svg)


def test_the_page_needs_nothing_else_and_no_text_is_markup(tmp_path: Path) -> None:
    page = compare_output.page(compared(tmp_path, firmware=HOSTILE, model=HOSTILE))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=[\"']?(http|//)|@import|url\((?!#)", page)
    assert page.count("<svg") == 1
    assert page.index("Circumstances") < page.index("<svg") < page.index("Confidence")


def test_the_page_marks_a_run_without_an_end(tmp_path: Path) -> None:
    both, more = KeptMeasurement(12_000), KeptMeasurement(9e5, Claim.P99_LATENCY)
    folders = [Kept(each).keep(tmp_path / name) for each, name in (([both, more], "old"), ([both], "new"))]
    path = folders[0] / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "ended": "then", "exit_status": 0}))
    page = compare_output.page(compare([ComparedRun.read(folder) for folder in folders]))
    assert re.search("now: new, .*, has not ended", page)
    assert not re.search("first: old, .*, has not ended", page)
    assert "1 figures only in the first run, 0 only in new" in page


def test_of_many_figures_the_most_telling_are_drawn(tmp_path: Path) -> None:
    found = compared(tmp_path, count=60)
    assert f"The {compare_output.MOST_ROWS} most significant of 60 figures" in compare_output.caption(found)
    svg = compare_output.svg(found)
    assert len(set(re.findall(r"raid5x\d+ randread_4k_qd8", svg))) == compare_output.MOST_ROWS


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (0.97, 1.02, ["0.98 ×", "1 ×", "1.02 ×"]),
        (0.68, 1.1, ["0.7 ×", "0.8 ×", "0.9 ×", "1 ×", "1.1 ×"]),
        (0.09, 11.0, ["0.1 ×", "0.2 ×", "0.5 ×", "1 ×", "2 ×", "5 ×", "10 ×"]),
    ],
)
def test_ticks_are_round_few_and_have_one_among_them(left: float, right: float, wanted: list[str]) -> None:
    panel = spread(["a", "b"], [Line([Point(left, 0), Point(right, 1)])], "times", 2.0, is_limit=True)
    chart = Chart("k", "t", "c", panel, Table((), ()))
    assert re.findall(r">([^<>]* ×)<", chart.svg) == wanted


def test_ticks_of_a_change_are_in_per_cent() -> None:
    panel = spread(["a", "b"], [Line([Point(0.68, 0), Point(1.1, 1)])], "change", 2.0)
    chart = Chart("k", "t", "c", panel, Table((), ()))
    assert re.findall(r">([^<>]* %)<", chart.svg) == ["-30 %", "-20 %", "-10 %", "0 %", "+10 %"]


def test_an_interval_without_an_end_does_not_hide_the_others() -> None:
    near, endless = Point(0.9, 0, interval=(0.88, 0.92)), Point(1.1, 1, interval=(0.0, math.inf))
    left, right = limits([near, endless])
    assert 0.5 < left < 0.88
    assert 1.1 < right < 2


def test_names_beside_the_drawing_are_cut_to_their_room(tmp_path: Path) -> None:
    """Those of drives and arrays are longer than the room for them; what is cut is in the table."""
    figure = KeptMeasurement(5, Claim.LATENCY_SPREAD_BETWEEN_MEMBERS, geometry="drivex24", drives={})
    runs = [ComparedRun.read(Kept([figure]).keep(tmp_path / name)) for name in "ab"]
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg(compare(runs)))
    name = next(each for each in texts if each.startswith("latency spread"))
    assert len(name) <= NAMES_IN / CHARACTER_IN
    assert "…" in name
    assert name.endswith("_qd8")


def test_the_page_says_that_intervals_include_scatter_of_runs(tmp_path: Path) -> None:
    old, new = (Kept([KeptMeasurement(value)]).keep(tmp_path / name) for name, value in (("a", 10_000), ("b", 9_000)))
    found = compare([ComparedRun.read(old), ComparedRun.read(new)], run_to_run_percent=8.0)
    for surface in (compare_output.page(found), compare_output.caption(found)):
        assert "ntervals include a standard deviation of 8 % from run to run" in surface
