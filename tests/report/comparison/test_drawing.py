from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from kept_runs import Kept, Measured

from pytest_ssdqual.report.comparison import Comparison, Told, compare, drawing

HOSTILE = '</title><script>alert("1")</script>$\\frac{1}{2}$'


def compared(tmp_path: Path, count: int = 3, **more: str) -> Comparison:
    old = Kept([Measured(1000 * width, geometry=f"raid5x{width}") for width in range(3, 3 + count)])
    new = Kept([Measured(990 * width, geometry=f"raid5x{width}") for width in range(3, 3 + count)], **more)  # type: ignore[arg-type]
    return compare([Told.read(run.keep(tmp_path / name)) for run, name in ((old, "a"), (new, "b"))])


def test_the_drawing_is_a_file_of_its_own(tmp_path: Path) -> None:
    svg = drawing.svg(compared(tmp_path))
    root = ET.fromstring(svg)  # noqa: S314 (our own)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "raid5x5 randread_4k_qd8" in svg
    assert "no difference shown" in svg
    assert not re.search(r"(href|src)=\"(?!#)", svg)


def test_the_page_needs_nothing_else_and_no_text_is_markup(tmp_path: Path) -> None:
    page = drawing.page(compared(tmp_path, firmware=HOSTILE, model=HOSTILE))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"(src|href)=[\"']?(http|//)|@import|url\((?!#)", page)
    assert page.count("<svg") == 1
    assert page.index("What differs") < page.index("How much")


def test_of_many_figures_the_most_telling_are_drawn(tmp_path: Path) -> None:
    found = compared(tmp_path, count=60)
    assert f"The {drawing.MOST_ROWS} most telling of 60 figures" in drawing.caption(found)
    svg = drawing.svg(found)
    assert len(set(re.findall(r"raid5x\d+ randread_4k_qd8", svg))) == drawing.MOST_ROWS
