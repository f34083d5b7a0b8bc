from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from support.builders import charted

from pytest_ssdqual.qual.measured.run import Visited
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import chart_of, data
from pytest_ssdqual.report.charts.data import NotedMeasurement, Notes
from pytest_ssdqual.report.charts.performance import latency

READ = Workload("randread", "4k", 8)
#: Of a second: mostly fast, one in a hundred slow, ten in all stalled. Values as fio prints them.
SECOND = {100_864: 19_780, 1_003_520: 200, 50_069_504: 20}


@pytest.fixture
def noted(tmp_path: Path) -> tuple[Notes, NotedMeasurement]:
    record = charted.with_output(tmp_path, "raid5x4", READ, [SECOND] * 6)
    promise = charted.judged(Claim.P99_9_LATENCY, "raid5x4", [READ], 5e7, 2e7)
    notes = Notes.of(charted.story(record, promise, folder=tmp_path))
    return notes, notes.measured[0]


def test_quantiles_are_of_all_seconds_and_end_at_too_few_ios(noted: tuple[Notes, NotedMeasurement]) -> None:
    found = latency.tail(*noted)
    assert found is not None
    values = {name: each.value for name, each in found.found}
    expected = [100_864, 100_864, 100_864, 1_003_520, 1_003_520, 50_069_504]
    assert values == dict(zip(["p50", "p90", "p95", "p99", "p99.9", "p99.99"], expected, strict=True))
    assert found.refused == "p99.999 needs 1,000,000 I/Os, there are 120,000"


def test_the_chart_says_what_it_left_out_and_what_is_promised(noted: tuple[Notes, NotedMeasurement]) -> None:
    notes, measured = noted
    found = latency.tail(notes, measured)
    assert found is not None
    chart = latency.chart(notes, [found], "Tail")
    assert "p99.999 needs 1,000,000 I/Os" in chart.caption
    assert [(row[2], row[3], row[5]) for row in chart.table.rows][3] == ("p99", "1 ms", "120,000")
    assert "randread_4k_qd8: ≤ 20 ms" in chart.svg
    assert "p99.999<" not in chart.svg


def test_one_measurement_without_a_promise_has_its_chart(tmp_path: Path) -> None:
    record = charted.with_output(tmp_path, "raid5x4", READ, [SECOND] * 6)
    notes = Notes.of(charted.story(record, folder=tmp_path))
    found = latency.tail(notes, notes.measured[0])
    assert found is not None
    chart = latency.chart(notes, [found], "Tail")
    assert [row[2] for row in chart.table.rows] == ["p50", "p90", "p95", "p99", "p99.9", "p99.99"]


def test_a_verdict_on_a_quantile_is_explained_by_all_of_them(noted: tuple[Notes, NotedMeasurement]) -> None:
    notes, _ = noted
    chart = chart_of(notes.story, notes.judged[0])
    assert chart is not None
    assert chart.table.columns[2] == "quantile"


def test_without_the_output_there_is_no_tail(noted: tuple[Notes, NotedMeasurement], tmp_path: Path) -> None:
    notes, measured = noted
    (tmp_path / measured.runs[0].raw).unlink()
    assert latency.tail(notes, measured) is None
    # A verdict on a quantile is then explained by the rounds that the record has.
    chart = chart_of(notes.story, notes.judged[0])
    assert chart is not None
    assert chart.table.columns == ("run", "until", "slowest I/O")
    assert "promised" not in chart.svg


def test_what_is_too_large_or_damaged_is_left(
    noted: tuple[Notes, NotedMeasurement], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, measured = noted
    path = tmp_path / measured.runs[0].raw
    assert data.runs_of(tmp_path, measured)
    with monkeypatch.context() as patch:
        patch.setattr(data, "MOST_PACKED_BYTES", path.stat().st_size - 1)
        assert data.runs_of(tmp_path, measured) == ()
    path.write_bytes(path.read_bytes()[:-40])
    assert data.runs_of(tmp_path, measured) == ()
    assert latency.tail(notes, measured) is None


def test_maxima_of_every_second_are_read_from_the_output(noted: tuple[Notes, NotedMeasurement], tmp_path: Path) -> None:
    (run,) = data.runs_of(tmp_path, noted[1])
    xs, ys = zip(*data.series(run, data.slowest_ns), strict=True)
    assert ys == (50_069_504.0,) * 6
    assert xs == pytest.approx([1, 2, 3, 4, 5, 6], abs=0.01)
    assert [rate for _, rate in data.series(run, data.rate)] == pytest.approx([20_000] * 6, rel=0.01)


def test_cells_are_drawn_by_visit() -> None:
    """A visit is a line of its own, with a gap before it."""
    record = charted.measured("raid5x4", READ, 1000.0)
    (run,) = cast("list[dict[str, object]]", record.facts["runs"])
    cell = {**run, "window_s": 60.0, "round_iops": [1000.0], "round_max_latency_ns": [3e6]}
    visited = Visited((2, 1), 22, 0.99, between=0.01, between_degrees=9.0, within=0.01, within_degrees=9.0)

    def notes(**more: object) -> Notes:
        facts = {**record.facts, "runs": [cell] * 3, **more}
        promise = charted.judged(Claim.STEADY_IOPS, "raid5x4", [READ], 1000, 900)
        return Notes.of(charted.story(replace(record, facts=facts), promise))

    together, apart = notes(visited=plain(visited)), notes()
    assert latency.maxima(together, together.measured[0]) == [(60.0, 3e6), (120.0, 3e6), (240.0, 3e6)]
    assert latency.maxima(apart, apart.measured[0]) == [(60.0, 3e6)]
    chart = chart_of(together.story, together.judged[0])
    assert chart is not None
    assert [row[:2] for row in chart.table.rows] == [
        ("visit 1", "60.0 s"),
        ("visit 1", "120.0 s"),
        ("visit 2", "240.0 s"),
    ]
    later = notes(visited=plain(replace(visited, left_out="the first one was 9 % slower")))
    shown = chart_of(later.story, later.judged[0])
    assert shown is not None
    assert {row[0] for row in shown.table.rows} == {"visit 2", "visit 3"}
    repeats = chart_of(apart.story, apart.judged[0])
    assert repeats is not None
    assert [row[0] for row in repeats.table.rows] == ["repeat 1", "repeat 2", "repeat 3"]


def test_the_interval_of_a_point_is_that_of_its_verdict() -> None:
    record = charted.measured("raid5x4", READ, 1000.0)
    (run,) = cast("list[dict[str, object]]", record.facts["runs"])
    cells = [{**run, "window_s": 60.0, "round_iops": [1000.0]}] * 4
    visited = Visited((2, 2), 22, 0.99, between=0.02, between_degrees=9.0, within=0.02, within_degrees=9.0)
    wide, narrow = (
        Notes.of(charted.story(replace(record, facts={**record.facts, "runs": cells, **more}))).measured[0].interval()
        for more in ({"visited": plain(visited)}, {})
    )
    assert wide is not None
    assert wide[0] < 990 < 1010 < wide[1]
    assert narrow == (1000, 1000), "rounds without scatter"


def test_limits_that_differ_say_what_they_are_of(tmp_path: Path) -> None:
    works = [READ, Workload("randwrite", "4k", 8), Workload("randrw", "4k", 8, read_percent=70)]
    records = [charted.with_output(tmp_path, "raid5x4", work, [SECOND] * 6) for work in works]
    bounds = (3e7, 8e7, 8e7)
    verdicts = [
        charted.judged(Claim.P99_LATENCY, "raid5x4", [work], 1e6, bound)
        for work, bound in zip(works, bounds, strict=True)
    ]
    notes = Notes.of(charted.story(*records, *verdicts, folder=tmp_path))
    tails = [found for each in notes.measured if (found := latency.tail(notes, each))]
    chart = latency.chart(notes, tails, "Tails")
    assert {
        "promised, p99: ≤ 30 ms for randread_4k_qd8",
        "promised, p99: ≤ 80 ms for 2 of them",
    } <= charted.words(chart)
    one = latency.chart(notes, tails[:1], "Tail")
    assert "promised, p99: ≤ 30 ms<" in one.svg
