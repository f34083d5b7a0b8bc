from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import charted
from support.builders.charted import words
from support.documents import golden

from pytest_ssdqual.report.charts import Chart, chart_of, charts
from pytest_ssdqual.report.charts.explore import DRAWN, MOST_LOOKS, of_search
from pytest_ssdqual.report.evidence.evidence import Finding, Part
from pytest_ssdqual.report.run_folder.reader import RunReader


def told(chart: Chart) -> list[str]:
    return [each.text or "" for each in charted.parsed(chart.svg).iter("title")][1:]


def drawn(story: RunReader) -> Chart:
    (found,) = charts(story)
    return found


def test_every_look_is_drawn_beside_its_limit_and_named() -> None:
    chart = drawn(charted.story(*charted.search()))
    assert chart.key == "search-drivex2-randwrite-64k-off512-sync-qd1"
    golden.same("charts.txt", [*charted.wording(chart), *told(chart)])
    assert {"pass", "fail", "inconclusive", "not measured", "suspect, measured again", "promised",
            "simplified", "confirmed: randwrite_64k_off512_sync_qd1"} <= words(chart)  # fmt: skip


def test_what_was_cleared_is_not_said_to_be_confirmed() -> None:
    chart = drawn(charted.story(*charted.search("cleared")))
    assert "no fail is confirmed" in chart.title
    assert not [each for each in words(chart) if each.startswith("confirmed")]
    assert not [each for each in told(chart) if "measured again" in each]


def test_a_broken_one_with_an_unbounded_figure_is_drawn() -> None:
    records, verdict = charted.search()
    points = verdict.facts["points"]
    assert isinstance(points, list)
    points[2]["figures"]["margin_percent"] = None
    chart = drawn(charted.story(records, verdict))
    assert "randrw70_128k_off512_sync_qd16: fails by more than could be measured" in told(chart)


def test_without_its_record_a_search_has_its_looks_and_no_steps() -> None:
    _, verdict = charted.search()
    chart = drawn(charted.story(verdict))
    assert {row[2:4] for row in chart.table.rows} == {("", DRAWN)}
    assert "simplified" not in words(chart)


@pytest.mark.parametrize("margin", [-5000.0, -200.0, 0.0])
def test_the_scale_has_room_for_what_is_many_times_its_limit(margin: float) -> None:
    records, verdict = charted.search()
    points = verdict.facts["points"]
    assert isinstance(points, list)
    points[2]["figures"]["margin_percent"] = margin
    ticks = words(drawn(charted.story(records, verdict)))
    assert ({"-100", "-1,000"} <= ticks) == (margin == -5000.0)


def test_of_thousands_of_probes_the_telling_ones_are_kept() -> None:
    _, verdict = charted.search()
    (judged,) = charted.story(verdict).judged
    many = tuple(
        Part(f"randread_4k_qd{index + 1}", {"margin_percent": 5.0 + index, "seconds": 1.0}, Finding.PASS)
        for index in range(5 * MOST_LOOKS)
    )
    searched = replace(judged, points=(*many, *judged.points))
    chart = chart_of(charted.story(), searched)
    assert chart
    assert f"Drawn are {MOST_LOOKS} of {len(searched.points)}." in chart.caption
    assert f"The table has 60 of {len(searched.points)}" in chart.caption
    assert [row[0] for row in chart.table.rows if row[5] == "fail"] == [
        each.name for each in judged.points if each.outcome is Finding.FAIL
    ]
    assert chart.table.rows[0][0] == "randread_4k_qd1"
    assert len(chart.svg) < 120_000


def test_a_search_that_looked_at_nothing_has_no_chart() -> None:
    _, verdict = charted.search()
    (judged,) = charted.story(verdict).judged
    assert of_search(charted.story(), replace(judged, points=())) is None
