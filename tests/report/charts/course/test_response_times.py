from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import charted, strategies

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.result_records import SaturationRecord
from pytest_ssdqual.qual.measured.run import Run, RunRecord
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.methods.demand import required
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import Chart, data
from pytest_ssdqual.report.charts.course import saturation
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.charts.performance import queue_depth
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.run_folder.reader import Record

WRITE = Workload("randwrite", "4k", 32)
STEADY = [2_000] * 20 + [200] * 60


def drawn(
    monkeypatch: pytest.MonkeyPatch,
    found: Saturation | None,
    *more: Record,
    draw: Callable[[Notes, SaturationRecord], Chart | None] = saturation.response_times,
) -> Chart | None:
    monkeypatch.setattr(data, "saturation_of", lambda folder, facts: found)
    story = charted.story(*charted.saturation(), *more)
    strip = next(saturation.strips(story))
    if found:
        run = replace(strip.run, members=found.run.members)
        strip = replace(strip, geometry=found.geometry, asked=found.workload, run=run)
    return draw(Notes.of(story), strip)


def test_the_bars_are_of_the_steady_state_and_hold_every_io(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = drawn(monkeypatch, Saturation(strategies.run(STEADY, workload=WRITE, rounds=80), 10**7))
    assert chart is not None
    assert chart.title == "drivex1: response times of randwrite_4k_qd32 in the last 60 s of the saturation"
    (row,) = chart.table.rows
    # 32 outstanding at 200 IOPS take 160 ms, by Little's law; at 2,000 they took 16.
    assert row[:3] == ("S0", "12,000", "160 ms")


def test_latencies_within_a_decade_are_labelled_in_their_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = drawn(monkeypatch, Saturation(strategies.run(STEADY, workload=WRITE, rounds=80), 10**7))
    assert chart is not None
    words = charted.words(chart)
    assert "mathdefault" not in chart.svg
    assert any(each.endswith(" ms") for each in words)


def test_each_of_few_drives_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = strategies.side_by_side([STEADY, [2_000] * 20 + [100] * 60], workload=WRITE, rounds=80)
    chart = drawn(monkeypatch, Saturation(pair, 10**7))
    assert chart is not None
    assert [row[1] for row in chart.table.rows] == ["12,000", "6,000"]
    assert {"S0", "S1"} <= charted.words(chart)


def test_many_drives_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    many = strategies.side_by_side([STEADY] * 9, workload=WRITE, rounds=80)
    chart = drawn(monkeypatch, Saturation(many, 10**7))
    assert chart is not None
    assert [row[:2] for row in chart.table.rows] == [("drivex9", "108,000")]


def test_a_promised_latency_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    promised = charted.judged(Claim.P99_9_LATENCY, "drivex1", [WRITE], 160e6, 200e6, about=About.SATURATION)
    chart = drawn(monkeypatch, Saturation(strategies.run(STEADY, workload=WRITE, rounds=80), 10**7), promised)
    assert chart is not None
    assert "promised, p99.9: ≤ 200 ms" in charted.words(chart)


def test_without_a_steady_state_or_fios_output_there_is_no_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    falling = strategies.run([round(3_000 * 0.9**index) for index in range(40)], workload=WRITE, rounds=40)
    assert drawn(monkeypatch, Saturation(falling, 10**6)) is None
    assert drawn(monkeypatch, None) is None
    assert drawn(monkeypatch, None, draw=saturation.latency_course) is None


def test_latency_over_time_has_mean_and_maximum_of_each_report(monkeypatch: pytest.MonkeyPatch) -> None:
    run = strategies.run(STEADY, workload=WRITE, rounds=80)
    chart = drawn(monkeypatch, Saturation(run, 10**7), draw=saturation.latency_course)
    assert chart is not None
    ends = [(row[0], row[2]) for row in chart.table.rows if row[1] in ("1.0 s", "80.0 s")]
    first, last = (LatencyHistogram.merged(each.latencies) for each in (run.intervals[0], run.intervals[-1]))
    assert ends == [
        (name, format_value(value, Unit.NANOSECONDS, 1))
        for name, values in (("slowest I/O", (first.max_ns, last.max_ns)), ("mean", (first.mean_ns, last.mean_ns)))
        for value in values
    ]
    assert last.mean_ns > 9 * first.mean_ns
    assert {"mean", "slowest I/O"} <= charted.words(chart)


def test_an_unsteady_saturation_has_its_latency_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    falling = strategies.run([round(3_000 * 0.9**index) for index in range(40)], workload=WRITE, rounds=40)
    assert drawn(monkeypatch, Saturation(falling, 10**6), draw=saturation.latency_course) is not None


def test_each_point_of_dirth_has_a_line_over_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    (grid,) = queue_depth.grids(charted.loops(charted.demand_loop()))

    def read_runs(folder: Path, records: Sequence[RunRecord], workload: Workload) -> tuple[Run, ...]:
        return tuple(strategies.run([round(each.iops)], workload=workload, rounds=1) for each in records)

    monkeypatch.setattr(data, "read_runs", read_runs)
    chart = saturation.response_times_of_demand(Notes.of(charted.story()), grid)
    assert chart is not None
    points = [(row[0], str(row[1])) for row in chart.table.rows]
    # Of five rounds, of which a second each is simulated here.
    found = required(grid.points)
    assert [name for name, _ in points] == [f"{name}, {point}" for name, point in found.items()]
    assert {name for name, _ in points} <= charted.words(chart)
    counts = [int(count.replace(",", "")) for _, count in points]
    assert counts == pytest.approx([5 * point.iops for point in found.values()], rel=1e-3)


def test_dirth_without_fios_output_has_no_response_times() -> None:
    (grid,) = queue_depth.grids(charted.loops(charted.demand_loop()))
    assert saturation.response_times_of_demand(Notes.of(charted.story()), grid) is None


@pytest.mark.parametrize("bins", [{1: 3}, {100: 1, 1_000_000: 5, 17_112_760_320: 1}])
def test_no_io_is_lost_between_buckets_and_bars(bins: dict[int, int]) -> None:
    found = saturation._bars(LatencyHistogram.from_bins(bins))
    assert found.total() == sum(bins.values())
