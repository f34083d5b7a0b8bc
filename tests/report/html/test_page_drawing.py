from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import charted
from support.builders.evidence import claimed
from support.builders.report_page import WriteRun, judged

from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report import charts
from pytest_ssdqual.report.drawing.plot import Chart
from pytest_ssdqual.report.evidence.evidence import About, Finding, Part
from pytest_ssdqual.report.html import run_page
from pytest_ssdqual.report.html.run_page import Drawn, draw
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.view.failures import failures


def chart(key: str, geometry: str = "raid5", size: int = 10) -> Chart:
    return charted.chart_of_svg(key, "x" * size, key, geometry=geometry)


def drawn(folder: Path) -> Drawn:
    story = RunReader.read(folder)
    return draw(story, list(failures(story, story.judged, ())))


def of(monkeypatch: pytest.MonkeyPatch, every: list[Chart], failed: Chart | None = None) -> None:
    monkeypatch.setattr(charts, "charts", lambda story: iter(every))
    monkeypatch.setattr(charts, "chart_of", lambda story, judged: failed)


def test_charts_are_grouped_by_level_in_their_order(write_run: WriteRun, monkeypatch: pytest.MonkeyPatch) -> None:
    of(monkeypatch, [chart("a"), chart("b", "raid0"), chart("c"), chart("d", "")])
    found = drawn(write_run())
    assert [(level, [each.key for each in several]) for level, several in found.levels] == [
        ("RAID 5", ["a", "c"]),
        ("RAID 0", ["b"]),
        ("All arrays and drives", ["d"]),
    ]
    assert found.note == ""


def test_the_chart_of_a_failure_is_shown_once(write_run: WriteRun, monkeypatch: pytest.MonkeyPatch) -> None:
    of(monkeypatch, [chart("a"), chart("b")], chart("a"))
    found = drawn(write_run(judged(claimed(), "x"), judged(claimed(), "y")))
    assert {key: each.key for key, each in found.of_failures.items()} == {"failure-1": "a"}
    assert found.shown_by == {"failure-2": "a"}
    assert [each.key for _, several in found.levels for each in several] == ["b"]


def test_what_does_not_fit_is_left_out_and_counted(write_run: WriteRun, monkeypatch: pytest.MonkeyPatch) -> None:
    large = run_page.FAILURE_BYTES + 1
    of(monkeypatch, [chart(name, size=900_000) for name in "abc"], chart("z", size=large))
    found = drawn(write_run(judged(claimed())))
    assert found.of_failures == {}
    assert [each.key for _, several in found.levels for each in several] == ["a", "b"]
    assert found.note.startswith("2 more charts are left out")


@pytest.mark.parametrize("at", [0, 2])
def test_a_library_that_fails_costs_the_charts_only(
    write_run: WriteRun, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    def broken(story: RunReader) -> Iterator[Chart]:
        yield from [chart(str(number)) for number in range(at)]
        raise RuntimeError("no <font> found")

    monkeypatch.setattr(charts, "charts", broken)
    monkeypatch.setattr(charts, "chart_of", None)
    found = drawn(write_run())
    assert found.note.startswith("The charts could not be drawn (RuntimeError: no <font> found)")
    assert [chart.key for _, of_level in found.levels for chart in of_level] == [str(number) for number in range(at)]


def test_the_chart_of_a_failure_is_asked_for_with_its_verdict(
    write_run: WriteRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Judged] = []
    of(monkeypatch, [])
    monkeypatch.setattr(charts, "chart_of", lambda story, judged: asked.append(judged))
    found = drawn(write_run(judged(claimed(value=1000), "kept"), judged(claimed(), "broken")))
    assert [each.test for each in asked] == ["broken"]
    assert found.of_failures == {}


def test_lots_judged_by_two_claims_have_a_chart_for_each(write_run: WriteRun) -> None:
    parts = tuple(Part(f"S{number}", {"value": number * 1e6}, Finding.FAIL) for number in (1, 2, 3))
    lot = replace(claimed(arrays="drivex3"), claim="conforming_drives", unit=Unit.COUNT, about=About.LOT, members=parts)
    groups = ("p99_latency", "throughput")
    found = drawn(write_run(*(judged(replace(lot, group=each), each) for each in groups)))
    assert found.shown_by == {}
    tables = [chart.table.rows[0][1] for chart in found.of_failures.values()]
    assert tables == ["1 ms", "1 MB/s"]
