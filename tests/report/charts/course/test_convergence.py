from __future__ import annotations

from dataclasses import replace

from support.builders import charted

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.workload.rounds import Rounds, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.course import loops
from pytest_ssdqual.report.drawing.plot import Line
from pytest_ssdqual.report.run_folder.reader import Record

WRITES = [Workload("randwrite", bs, 32, threads=4) for bs in ("64k", "4k")]
READ = Workload("randread", "4k", 32, threads=4)
#: The first figure falls until round 3; its first window that is steady alone ends before that of the second.
LARGE = [400.0, 100.0, 102.0, 98.0, 100.0, 101.0, 99.0, 100.0]
SMALL = [9000.0, 8000.0, 7000.0, 5100.0, 5000.0, 5050.0, 4950.0, 5000.0]


def loop(*workloads: Workload, tracked: tuple[Workload, ...] = tuple(WRITES)) -> Record:
    rates = {str(WRITES[0]): LARGE, str(WRITES[1]): SMALL, str(READ): [7000.0] * 8}
    asked = Rounds("snia-iops", workloads, tuple(Tracked(each, "steady_iops") for each in tracked), "128k")
    rounds = [[charted.run("drivex2", each, [2 * rates[str(each)][index]]) for each in workloads] for index in range(8)]
    rule = {"window": 5, "range_percent": 20.0, "slope_percent": 10.0}
    facts = {"geometry": "drivex2", "loop": "snia-iops", "asked": plain(asked), "rule": rule, "rounds": rounds}
    return charted.record("loop", facts)


def test_sizes_of_pure_writes_are_drawn_for_the_average_drive() -> None:
    (chart,) = loops.convergences(charted.loops(loop(READ, *WRITES)))
    lines = {mark.name: [point.y for point in mark.points] for mark in charted.marks(chart) if isinstance(mark, Line)}
    assert lines == {str(WRITES[0]): LARGE, str(WRITES[1]): SMALL}
    assert "the last 5," in chart.caption
    assert chart.table.columns == ("round", *map(str, WRITES))
    assert chart.table.rows[0] == ("1", "400 IOPS", "9,000 IOPS")
    assert len(chart.table.rows) == 8
    assert all(str(each) in chart.svg for each in WRITES)


def test_one_size_is_no_comparison_and_a_bad_loop_is_left_out() -> None:
    whole = loop(*WRITES)
    damaged = replace(whole, facts={**whole.facts, "rounds": [[{}]]})
    assert not list(loops.convergences(charted.loops(loop(READ, WRITES[0], tracked=(WRITES[0],)), damaged)))


def test_the_window_of_a_figure_is_that_of_the_whole_loop() -> None:
    """The large size alone was steady after six rounds, but the loop only after eight, whose window is judged."""
    large, small = loops.looped(charted.loops(loop(*WRITES)))
    assert (large.begin, small.begin) == (3, 3)
    assert large.state.values == tuple(LARGE[3:])
    rows = {str(name): str(value) for name, value in loops.chart(large).table.rows}
    assert rows["slope excursion allowed"] == "9.96 IOPS"
    assert rows["range measured"] == "3 IOPS"
    slope, _, intercept = rows["best fit"].partition(" × round + ")
    level = large.state.average
    assert abs(float(slope) * 6 + float(intercept.partition(",")[0]) - level) < 1e-3 * level
