from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import charted

from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.report.charts import selection
from pytest_ssdqual.report.charts.course import loops
from pytest_ssdqual.report.drawing.plot import Line
from pytest_ssdqual.report.run_folder.reader import Record


def loop(asked: Rounds, rates: list[list[list[float]]], array: str = "drivex2") -> Record:
    """A loop whose stimuli did so many IOPS in the parts of their processes."""
    after = [
        [charted.run(array, stimulus.workload, each, window_s=60.0 * len(each)) for each in processes]
        for stimulus, processes in zip(asked.after, rates, strict=False)
    ]
    facts = {"geometry": array, "loop": asked.name, "asked": plain(asked), "rule": plain(SteadyRule()), "rounds": []}
    return charted.record("loop", {**facts, "reached": True, "after": after, "recoveries": ["it was back at once"]})


def crossed() -> Record:
    return loop(snia.CROSS_STIMULUS, [[[400.0, 300.0, 300.0]], [[8000.0, 4000.0]], [[100.0, 200.0, 300.0]]])


def test_stimuli_of_several_sizes_are_drawn_as_throughput() -> None:
    (chart,) = loops.stimulated(charted.loops(crossed()))
    before, small, after = (mark.points for mark in charted.marks(chart) if isinstance(mark, Line))
    assert (before[0].x, before[0].y) == (60 / 3600, 200 * 2**20)
    assert (small[1].x, small[1].y) == (300 / 3600, 2000 * 8192)
    assert after[0].x == pytest.approx(360 / 3600)
    assert len(chart.table.rows) == 8
    assert chart.table.rows[-1][:2] == ("after_t1xqd32", "8 min")
    assert "average drive" in chart.svg
    assert "It was back at once." in chart.caption


def test_a_stimulus_with_pauses_is_drawn_from_its_processes() -> None:
    hour = [[[900.0], [950.0]], [[500.0, 400.0]]]
    (chart,) = loops.stimulated(charted.loops(loop(snia.HOST_IDLE, hour, "drivex1")))
    first, second = (mark.points for mark in charted.marks(chart) if isinstance(mark, Line))
    # Two minutes of bursts take four with their pauses.
    assert [(point.x * 3600, point.y) for point in first] == [(120, 900), (240, 950)]
    assert [point.y for point in second] == [500, 400]
    assert "bursts" in chart.caption


def test_loops_without_stimuli_and_unreadable_ones_are_left_out() -> None:
    whole = crossed()
    damaged = replace(whole, facts={**whole.facts, "after": [[{}]]})
    empty = replace(whole, facts={**whole.facts, "after": [[]]})
    assert not list(loops.stimulated(charted.loops(charted.demand_loop(), damaged, empty)))


def test_the_page_has_the_chart() -> None:
    titles = [each.title for each in selection.charts(charted.story(crossed()))]
    assert any("snia-xsr" in each for each in titles)
