from __future__ import annotations

import re

from support.builders import charted

from pytest_ssdqual.report.drawing.plot import Bars, Chart, Line, Panel, Point, level, table_of
from pytest_ssdqual.report.drawing.scales import WIDTH_IN, Numbers, Values


def chart(*marks: Line | Bars) -> Chart:
    panel = Panel(Numbers("x", (0, 1)), Values("y"), [*marks, level(1.0, "promised")])
    return Chart("k", "t", "c", panel, table_of(("a", "b"), panel))


def places(svg: str) -> list[tuple[str, float]]:
    """Texts that begin at a place, and where that is, in points."""
    found = charted.parsed(svg).iter("text")
    return [("".join(text.itertext()), float(text.get("x", 0))) for text in found if "start" in text.get("style", "")]


def test_a_legend_of_shortened_names_ends_inside_the_picture() -> None:
    lines = [Line([Point(0, index), Point(1, index)], index, f"…000{index}") for index in range(8)]
    found = [(words, at) for words, at in places(chart(*lines).svg) if words.startswith("…")]
    assert len(found) == 8
    # Dots take an em, digits 0.64 of one.
    assert max(at for _, at in found) + 8.5 * (1 + 4 * 0.64) < WIDTH_IN * 72


def test_limits_and_whiskers_are_seen_upon_bars() -> None:
    svg = chart(Bars([Point(0, 1, words="a bar")], width=0.5)).svg
    (style,) = (path.get("style", "") for path in charted.parsed(svg).iter("path") if path.find("title") is not None)
    assert "fill:var(--s1)" in style
    assert "stroke:var(--s1)" in style
    assert re.search(r"fill-opacity:0?\.25", style)


def test_the_table_has_the_rows_of_the_points_once() -> None:
    points = [Point(0, 1, ("one", "1")), Point(1, 2, ("two", "2"), interval=(1, 3)), Point(2, 3)]
    found = chart(Line(points), Line(points[:1], 1))
    assert found.table.columns == ("a", "b")
    assert found.table.rows == (("one", "1"), ("two", "2"))
    assert "one, 1" in found.svg


def test_scales_hold_what_is_drawn() -> None:
    line = Line([Point(0, 1), Point(1, 2, interval=(0.5, 9.0))])
    assert list(line.values) == [1, 2, 0.5, 9.0]
    assert list(level(7.0, "promised").values) == [7.0]
