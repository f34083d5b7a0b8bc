from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import charted

from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.methods.demand import MAX_IOPS, MID_IOPS, MIN_IOPS
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.charts import charts
from pytest_ssdqual.report.charts.performance import queue_depth
from pytest_ssdqual.report.run_folder.reader import Record


def only_grid(record: Record) -> queue_depth.DemandGrid:
    (found,) = queue_depth.grids(charted.loops(record))
    return found


def test_the_page_has_both_charts_of_a_grid() -> None:
    keys = [each.key for each in charts(charted.story(charted.demand_loop()))]
    assert [each for each in keys if each.startswith("demand")] == [
        "demand-variation-drivex1-snia-dirth",
        "demand-intensity-drivex1-snia-dirth",
    ]


def test_a_grid_is_of_the_average_drive_and_the_mean_round() -> None:
    one, two = (only_grid(charted.demand_loop(array)) for array in ("drivex1", "drivex2"))
    assert len(one.points) == 49
    assert one.points[-1].iops == pytest.approx(1 / (100e-6 + 1 / 75e3))
    assert [each.iops for each in two.points] == pytest.approx([each.iops for each in one.points])


def test_only_the_last_window_counts() -> None:
    record = charted.demand_loop()
    rounds = record.facts["rounds"]
    assert isinstance(rounds, list)
    before = charted.demand_loop(best=150e3).facts["rounds"]
    assert isinstance(before, list)
    later = replace(record, facts={**record.facts, "rounds": [*before[:2], *rounds]})
    assert only_grid(later).points == only_grid(record).points


def test_variation_has_a_line_for_each_number_of_threads() -> None:
    chart = queue_depth.variation(only_grid(charted.demand_loop()))
    steps = {f"TC{each}" for each in snia.DEMANDS}
    assert steps <= charted.words(chart)
    assert chart.table.columns[1:] == ("TC1", "TC2", "TC4", "TC6", "TC8", "TC16", "TC32")
    assert [row[0] for row in chart.table.rows] == ["1", "2", "4", "6", "8", "16", "32"]
    assert "MaxIOPS is 72,865 IOPS at TC32/QD8, mean 3.51 ms" in chart.caption


def test_intensity_names_the_three_points() -> None:
    chart = queue_depth.intensity(only_grid(charted.demand_loop()))
    assert {MIN_IOPS, MID_IOPS, MAX_IOPS} <= charted.words(chart)
    assert [row[0] for row in chart.table.rows[:3]] == [MIN_IOPS, MID_IOPS, MAX_IOPS]
    assert chart.table.rows[0] == (MIN_IOPS, "TC1/QD1", "8,824 IOPS", "113 µs")
    assert len(chart.table.rows) == 3 + 49


def test_a_drive_that_is_always_too_slow_has_no_best() -> None:
    grid = only_grid(charted.demand_loop(best=100, reached=False))
    chart = queue_depth.variation(grid)
    assert "there is no MaxIOPS" in chart.caption
    assert "unsteady" in chart.caption
    assert MAX_IOPS not in charted.words(queue_depth.intensity(grid))


def test_loops_without_a_grid_and_damaged_ones_have_no_chart() -> None:
    record = charted.demand_loop()
    others = [
        {**record.facts, "asked": plain(snia.LATENCY)},
        {**record.facts, "rounds": [[{}]]},
        {name: each for name, each in record.facts.items() if name != "rule"},
    ]
    assert list(queue_depth.grids(charted.loops(*(replace(record, facts=each) for each in others)))) == []
