from __future__ import annotations

import re

from support.builders import charted

from pytest_ssdqual.report.drawing.figure import WIDTH_IN, Plate, drawing


def places(svg: str) -> list[tuple[str, float]]:
    """Texts that begin at a place, and where that is, in points."""
    found = charted.parsed(svg).iter("text")
    return [("".join(text.itertext()), float(text.get("x", 0))) for text in found if "start" in text.get("style", "")]


def test_a_legend_of_shortened_names_ends_inside_the_picture() -> None:
    with drawing():
        plate = Plate.of()
        axes = plate.axes("x", "y")
        for index in range(8):
            plate.line(axes, [0, 1], [index, index], index, f"…000{index}")
        found = [(words, at) for words, at in places(plate.svg("k", "t", "d")) if words.startswith("…")]
    assert len(found) == 8
    # Dots take an em, digits 0.64 of one.
    assert max(at for _, at in found) + 8.5 * (1 + 4 * 0.64) < WIDTH_IN * 72


def test_limits_and_whiskers_are_seen_upon_bars() -> None:
    with drawing():
        plate = Plate.of()
        axes = plate.axes("x", "y")
        (bar,) = plate.bars(axes, [0], [1], 0.5, 0)
        plate.add_tooltips(bar, ["a bar"])
        svg = plate.svg("k", "t", "d")
    (style,) = (path.get("style", "") for path in charted.parsed(svg).iter("path") if path.find("title") is not None)
    assert "fill:var(--s1)" in style
    assert "stroke:var(--s1)" in style
    assert re.search(r"fill-opacity:0?\.25", style)
