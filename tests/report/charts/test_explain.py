from __future__ import annotations

from collections.abc import Callable

import pytest
from support.builders import charted

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import chart_of, charts
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE
from pytest_ssdqual.report.run_folder.reader import Record, RunReader

READ = Workload("randread", "4k", 4)
SWEEP = [charted.measured(f"raid5x{width}", READ, 100.0 * width) for width in (3, 4, 6)]


def explained(*records: Record) -> tuple[str, str]:
    """Title and caption of the chart for the last verdict."""
    story = charted.story(*records)
    chart = chart_of(story, story.judged[-1])
    assert chart is not None
    assert chart.key.startswith("why-")
    return chart.title, chart.caption


def of_sweep(claim: Claim, value: float = 3, bound: float = 2) -> Record:
    return charted.judged(claim, "raid5x3 raid5x4 raid5x6", [READ], value, bound, about=About.SWEEP)


def test_growth_by_the_law() -> None:
    assert "growth with drives" in explained(*SWEEP, of_sweep(Claim.SCALING_SLOPE))[0]


def test_spread_between_widths_by_the_maxima() -> None:
    assert "slowest I/Os of 3 and 6 drives" in explained(*SWEEP, of_sweep(Claim.LATENCY_SPREAD_BETWEEN_WIDTHS))[0]


def test_latency_growth_by_iops_and_latency() -> None:
    assert "on 3 to 6 drives" in explained(*SWEEP, of_sweep(Claim.LATENCY_GROWTH_BETWEEN_WIDTHS))[0]


def test_series_by_their_curves() -> None:
    assert "queue depth" in explained(charted.depths())[0]
    assert "mixes of reads and writes" in explained(charted.bathtub())[0]


def test_drives_beside_each_other() -> None:
    assert "S3X0005 stands out" in explained(charted.outlier())[0]


def test_saturation_by_its_strip() -> None:
    assert "from the purged state" in explained(*charted.saturation())[0]


@pytest.mark.parametrize(
    ("claim", "title"),
    [
        (Claim.STEADY_IOPS, "IOPS over time"),
        (Claim.THROUGHPUT, "throughput over time"),
        (Claim.MAX_LATENCY, "slowest I/O over time"),
        (Claim.LATENCY_SPREAD_OVER_TIME, "slowest I/O over time"),
        (Claim.WORST_SECOND, "throughput over time"),
    ],
)
def test_a_measurement_over_its_time(claim: Claim, title: str) -> None:
    record = charted.judged(claim, "raid5x4", [READ], 0.4 if claim is Claim.WORST_SECOND else 400, 800)
    found = explained(SWEEP[1], record)
    assert found[0] == f"raid5x4 randread_4k_qd4: {title}"
    assert "limit" in found[1]


def test_the_limit_is_drawn_in_the_unit_of_the_axis_only() -> None:
    for claim, drawn in ((Claim.STEADY_IOPS, True), (Claim.LATENCY_SPREAD_OVER_TIME, False)):
        story = charted.story(SWEEP[1], charted.judged(claim, "raid5x4", [READ], 400, 300))
        chart = chart_of(story, story.judged[0])
        assert chart is not None
        assert ("promised" in chart.svg) is drawn


def test_a_rebuild_by_the_load_beside_it() -> None:
    array = "raid5x4-1rebuilding"
    facts = {
        "geometry": array,
        "workload": str(READ),
        "asked": plain(READ),
        "foreground": {"iops": 90.0, "runs": [charted.run(array, READ, [80.0, 90.0, 100.0])], "visited": None},
    }
    verdict = charted.judged(Claim.REBUILD_TIME, array, [READ], 270, 200, about=About.REBUILD)
    title, caption = explained(charted.record("rebuild", facts), verdict)
    assert title == "raid5x4-1rebuilding randread_4k_qd4: IOPS over time"
    assert "FAIL" in caption


@pytest.mark.parametrize("about", list(About))
def test_what_has_left_no_records_has_no_chart(about: About) -> None:
    story = charted.story(charted.judged(Claim.STEADY_IOPS, "raid5x4", [READ], 1, 2, about=about))
    assert chart_of(story, story.judged[0]) is None


def test_every_verdict_has_a_chart_of_its_own() -> None:
    story = charted.everything()
    page = {each.key for each in charts(story)}
    keys = [chart.key for each in story.judged[::5] if (chart := chart_of(story, each))]
    assert len(keys) == len(set(keys)) > 5
    assert not page & set(keys)


@pytest.mark.parametrize("harm", [lambda text: text.replace("4", "x"), lambda text: ""], ids=["other", "empty"])
def test_broken_names_draw_nothing_and_raise_nothing(harm: Callable[[str], str]) -> None:
    record = charted.judged(Claim.SCALING_SLOPE, "raid5x3 raid5x4", [READ], 1, 2, about=About.SWEEP)
    facts = {**record.facts, "geometries": [harm("raid5x4")], "workloads": [harm("randread_4k_qd4")]}
    story = RunReader(charted.NOWHERE, UNREADABLE, (Record("verdict", record.time, facts), *SWEEP))
    assert chart_of(story, story.judged[0]) is None
