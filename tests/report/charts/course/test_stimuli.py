from __future__ import annotations

from dataclasses import replace

from support.builders import charted

from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.report.charts import selection
from pytest_ssdqual.report.charts.course import loops
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
    (found,) = loops.stimulated(charted.loops(crossed()))
    assert found.unit is Unit.BYTES_PER_SECOND
    before, small, after = found.stimuli
    assert (before.begin_s, small.begin_s, after.begin_s) == (0, 180, 300)
    assert before.points(found.unit)[0] == (60 / 3600, 200 * 2**20)
    assert small.points(found.unit)[1] == (300 / 3600, 2000 * 8192)
    chart = loops.stimuli_chart(found)
    assert len(chart.table.rows) == 8
    assert chart.table.rows[-1][:2] == ("after_t1xqd32", "8 min")
    assert "average drive" in chart.svg
    assert "It was back at once." in chart.caption


def test_a_stimulus_with_pauses_is_drawn_from_its_processes() -> None:
    hour = [[[900.0], [950.0]], [[500.0, 400.0]]]
    (found,) = loops.stimulated(charted.loops(loop(snia.HOST_IDLE, hour, "drivex1")))
    assert found.unit is Unit.IOPS
    assert [each.iops for each in found.stimuli] == [(900, 950), (500, 400)]
    # Two minutes of bursts take four with their pauses.
    assert (found.stimuli[0].part_s, found.stimuli[1].begin_s) == (120, 240)
    assert "bursts" in loops.stimuli_chart(found).caption


def test_loops_without_stimuli_and_unreadable_ones_are_left_out() -> None:
    whole = crossed()
    damaged = replace(whole, facts={**whole.facts, "after": [[{}]]})
    empty = replace(whole, facts={**whole.facts, "after": [[]]})
    assert not list(loops.stimulated(charted.loops(charted.demand_loop(), damaged, empty)))


def test_the_page_has_the_chart() -> None:
    titles = [each.title for each in selection.charts(charted.story(crossed()))]
    assert any("snia-xsr" in each for each in titles)
