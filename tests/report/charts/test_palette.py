from __future__ import annotations

import pytest

from pytest_ssdqual.report.charts import palette


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
    [(palette.LIGHT, palette.PAPER_LIGHT), (palette.DARK, palette.PAPER_DARK)],
    ids=["light", "dark"],
)
def test_every_colour_can_be_told_from_the_paper(colours: dict[str, str], paper: str) -> None:
    assert {name: round(contrast(each, paper), 2) for name, each in colours.items() if contrast(each, paper) < 3} == {}


def test_both_papers_have_the_same_names_and_no_colour_twice() -> None:
    assert set(palette.LIGHT) == set(palette.DARK)
    used = {f"--{name}" for name in palette.LIGHT}
    assert {each[4:-1] for each in palette.VARIABLES.values() if each.startswith("var(")} == used
    for colours in (palette.LIGHT, palette.DARK):
        assert len(set(colours.values())) == len(colours)


def test_series_differ_in_more_than_colour() -> None:
    assert len(set(palette.MARKERS)) == len(palette.MARKERS) == len(palette.SERIES)
    assert len(set(map(str, palette.DASHES))) == len(palette.DASHES) == len(palette.SERIES)
    assert palette.colour(len(palette.SERIES)) == palette.colour(0)


def test_a_page_gets_both_and_light_ones_on_paper() -> None:
    sheet = palette.style_sheet()
    light, _, dark = sheet.partition("@media screen and (prefers-color-scheme: dark)")
    assert palette.LIGHT["s1"] in light
    assert palette.DARK["s1"] in dark
    assert palette.LIGHT["s1"] not in dark
