from __future__ import annotations

import itertools
import math
import re

import pytest

from pytest_ssdqual.report.drawing import figure
from pytest_ssdqual.report.html import page

SHEET = page.own(page.PALETTE).partition("@media screen and (prefers-color-scheme: dark)")
LIGHT, DARK = (dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", part)) for part in (SHEET[0], SHEET[2]))
PAPER_LIGHT, PAPER_DARK = "#ffffff", "#14181d"


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(
    ("colours", "paper"),
    [(LIGHT, PAPER_LIGHT), (DARK, PAPER_DARK)],
    ids=["light", "dark"],
)
def test_every_colour_can_be_told_from_the_paper(colours: dict[str, str], paper: str) -> None:
    assert {name: round(contrast(each, paper), 2) for name, each in colours.items() if contrast(each, paper) < 3} == {}


def test_both_papers_have_the_same_names_and_no_colour_twice() -> None:
    assert set(LIGHT) == set(DARK)
    used = {f"--{name}" for name in LIGHT}
    assert {each[4:-1] for each in figure.VARIABLES.values() if each.startswith("var(")} == used
    for colours in (LIGHT, DARK):
        assert len(set(colours.values())) == len(colours)


def test_series_differ_in_more_than_colour() -> None:
    assert len(set(figure.MARKERS)) == len(figure.MARKERS) == len(figure.SERIES)
    assert len(set(map(str, figure.DASHES))) == len(figure.DASHES) == len(figure.SERIES)
    assert figure.colour(len(figure.SERIES)) == figure.colour(0)


#: Of those who lack one kind of cone: Machado, Oliveira, Fernandes 2009, table 1 (severity 1), of linear RGB.
SIGHTS: dict[str, list[list[float]]] = {
    "all": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: str, sight: list[list[float]]) -> tuple[float, float, float]:
    """CIELAB (D65) of what is seen of it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    red, green, blue = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in sight)
    xyz = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (each ** (1 / 3) if each > 0.008856 else 7.787 * each + 16 / 116 for each in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize(("colours", "ink"), [(LIGHT, "#16191d"), (DARK, "#e8eaed")])
def test_any_two_colours_differ_to_any_eye(colours: dict[str, str], ink: str, sight: str) -> None:
    seen = {name: lab(each, SIGHTS[sight]) for name, each in {**colours, "ink": ink}.items() if name != "band"}
    alike = {(one, other) for one, other in itertools.combinations(seen, 2) if math.dist(seen[one], seen[other]) < 17}
    assert alike == set()
