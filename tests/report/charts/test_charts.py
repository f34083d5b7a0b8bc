"""What holds for every chart, whatever it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import charted

from pytest_ssdqual.report.charts import Chart, chart_of, charts
from pytest_ssdqual.report.drawing.figure import VARIABLES

#: What can be said of a colour without naming one.
NEUTRAL = {"none", "currentColor"}
COLOURED = re.compile(r"(?:fill|stroke|color|stop-color):([^;]+)")
FOREIGN = r"https?:|data:|javascript:|@import|<script|<style|<image|<foreignObject| on\w+="
HOSTILE = ("</title><script>alert(1)</script>", "$\\frac{1}{0}$", "_h", "\x1b[31mred\x00", "驱动器\u202e", "\"&'")


@pytest.fixture(scope="module")
def drawn() -> tuple[Chart, ...]:
    return tuple(charts(charted.everything()))


def kinds(found: Sequence[Chart]) -> set[str]:
    return {each.key.partition("-")[0] for each in found}


def test_there_is_one_of_each_kind(drawn: tuple[Chart, ...]) -> None:
    expected = (
        "widths scaling maxima saturation mixes depths blocks bandwidth radar map profiles profile drives search "
        "steady temperature wear"
    )
    assert kinds(drawn) == set(expected.split())
    assert all(each.title and each.caption and each.svg for each in drawn)


def test_all_ids_of_a_page_are_different(drawn: tuple[Chart, ...]) -> None:
    ids = [element.get("id") for each in drawn for element in charted.parsed(each.svg).iter()]
    named = [each for each in ids if each]
    assert len(named) == len(set(named))
    assert len({each.key for each in drawn}) == len(drawn)
    for each in drawn:
        assert all(element.get("id", each.key).startswith(each.key) for element in charted.parsed(each.svg).iter())


def test_references_stay_inside_and_nothing_runs(drawn: tuple[Chart, ...]) -> None:
    for each in drawn:
        root = charted.parsed(each.svg)
        ids = {element.get("id") for element in root.iter()}
        used = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', each.svg)
        assert {one or other for one, other in used} <= ids
        assert not re.search(FOREIGN, each.svg)


def test_colours_are_those_of_the_palette(drawn: tuple[Chart, ...]) -> None:
    allowed = NEUTRAL | set(VARIABLES.values())
    for each in drawn:
        for element in charted.parsed(each.svg).iter():
            assert not {"fill", "stroke", "color"} & set(element.attrib)
            found = {value for value in COLOURED.findall(element.get("style", "")) if not value.startswith("url(#")}
            assert found <= allowed, each.key


def test_two_drawings_are_the_same_to_the_byte() -> None:
    story = charted.story(charted.depths(), charted.bathtub(), charted.outlier(), *charted.saturation())
    assert tuple(charts(story)) == tuple(charts(story))


def test_few_points_are_told_in_any_chart(drawn: tuple[Chart, ...]) -> None:
    told = {each.key: len(list(charted.parsed(each.svg).iter("title"))) - 1 for each in drawn}
    assert all(count <= 200 for count in told.values())
    (bars,) = (each for each in drawn if each.key == "widths-raid5-random-writes-4k")
    # A bar and a mark of latency for each of 4 widths at 2 depths.
    assert told[bars.key] == 2 * 4 * 2


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_shown_and_do_nothing(text: str) -> None:
    story = charted.story(charted.outlier(text), *charted.health([text, *charted.SERIALS[1:]]))
    found = list(charts(story))
    assert kinds(found) == {"drives", "temperature", "wear"}
    for each in found:
        assert {element.tag for element in charted.parsed(each.svg).iter()} <= {
            "svg", "title", "desc", "g", "path", "use", "text", "tspan", "defs", "clipPath", "rect"
        }  # fmt: skip
        assert all(character.isprintable() for character in each.svg.replace("\n", "") + each.title + each.caption)
    if text.isprintable():
        # As it is, in a drawing: not set as a formula, not left out.
        assert any(text[:20] in each for chart in found for each in charted.words(chart))


def test_nothing_is_drawn_of_nothing() -> None:
    assert list(charts(charted.story())) == []
    assert list(charts(charted.story(charted.record("run_started", {"drives": []})))) == []


@pytest.mark.parametrize("kind", ["measured", "saturation", "conditioned", "loop", "health", "rebuild", "verdict"])
@pytest.mark.parametrize(
    "facts",
    [{}, {"geometry": 7, "runs": "x", "asked": 3}, {"geometry": "raid5x3", "workload": "randread_4k_qd1", "runs": []}],
)
def test_records_that_are_none_are_passed_over(kind: str, facts: dict[str, object]) -> None:
    assert list(charts(charted.story(charted.record(kind, facts)))) == []


def replaced(value: object, number: float | None) -> object:
    """Every figure another one; counts of rounds and sizes stay."""
    if isinstance(value, dict):
        kept = ("window_s", "n")
        return {name: each if name in kept else replaced(each, number) for name, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, number) for each in value]
    return number if isinstance(value, float) else value


@pytest.mark.parametrize("number", [0.0, -1.0, 1e-300, 1e300, None], ids=str)
def test_strange_figures_raise_and_warn_of_nothing(number: float | None) -> None:
    few = charted.story(
        charted.depths(), charted.bathtub(), charted.outlier(), *charted.saturation(), charted.conditioned(),
        *charted.profiles(), *charted.matrix()[:9], *charted.health()[:4],
        *(each for each in charted.parity_sweep() if "randread" in str(each.facts)),
    )  # fmt: skip
    changed = [
        charted.record(each.kind, {name: replaced(value, number) for name, value in each.facts.items()})
        for each in few.records
    ]
    strange = replace(few, records=tuple(changed))
    for chart in charts(strange):
        charted.parsed(chart.svg)
    for judged in strange.judged[-8:]:
        chart_of(strange, judged)


def test_many_levels_and_families_give_a_few_charts_of_each() -> None:
    sweeps = [each for level in ("raid0", "raid5") for each in charted.parity_sweep(level)]
    found = Counter(each.key.partition("-")[0] for each in charts(charted.story(*sweeps)))
    assert found == {"widths": 2 * 3, "scaling": 2 * 2, "maxima": 2}


def test_matplotlib_is_as_it_was_without_its_global_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    before = matplotlib.rcParams.copy()
    assert list(charts(charted.story(charted.depths())))
    assert matplotlib.rcParams.copy() == before


HOMELESS = """
import sys
from pytest_ssdqual.report.charts import charts
assert not {"numpy", "scipy", "matplotlib", "xml.etree.ElementTree"} & set(sys.modules)
from support.builders import charted
assert len(list(charts(charted.story(charted.depths())))) == 1
print("matplotlib.pyplot" in sys.modules)
"""


def test_without_a_home_nothing_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    environment = {"HOME": "/proc/nothing", "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HOMELESS], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert not list(tmp_path.iterdir())


def test_it_says_nothing(recwarn: pytest.WarningsRecorder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(charts(charted.story(charted.outlier("驱动器"))))
