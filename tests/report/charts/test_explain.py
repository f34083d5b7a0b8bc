from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from support.builders import charted
from support.documents import golden

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import chart_of, charts
from pytest_ssdqual.report.evidence.evidence import About
from pytest_ssdqual.report.run_folder.manifest import UNREADABLE
from pytest_ssdqual.report.run_folder.reader import Record, RunReader

READ = Workload("randread", "4k", 4)
SWEEP = [charted.measured(f"raid5x{width}", READ, 100.0 * width) for width in (3, 4, 6)]


def of_sweep(claim: Claim, value: float = 3, bound: float = 2) -> Record:
    return charted.judged(claim, "raid5x3 raid5x4 raid5x6", [READ], value, bound, about=About.SWEEP)


def over_time(claim: Claim) -> list[Record]:
    value = 0.4 if claim is Claim.WORST_SECOND else 400
    return [SWEEP[1], charted.judged(claim, "raid5x4", [READ], value, 800)]


def rebuilding() -> list[Record]:
    array = "raid5x4-1rebuilding"
    facts = {
        "geometry": array,
        "workload": str(READ),
        "asked": plain(READ),
        "foreground": {"iops": 90.0, "runs": [charted.run(array, READ, [80.0, 90.0, 100.0])], "visited": None},
    }
    verdict = charted.judged(Claim.REBUILD_TIME, array, [READ], 270, 200, about=About.REBUILD)
    return [charted.record("rebuild", facts), verdict]


EXPLAINED = {
    "growth by the law": [*SWEEP, of_sweep(Claim.SCALING_SLOPE)],
    "spread between widths by the maxima": [*SWEEP, of_sweep(Claim.LATENCY_SPREAD_BETWEEN_WIDTHS)],
    "latency growth by IOPS and latency": [*SWEEP, of_sweep(Claim.LATENCY_GROWTH_BETWEEN_WIDTHS)],
    "depths by their curve": [charted.depths()],
    "mixes by their curve": [charted.bathtub()],
    "drives beside each other": [charted.outlier()],
    "saturation by its strip": charted.saturation(),
    "IOPS": over_time(Claim.STEADY_IOPS),
    "throughput": over_time(Claim.THROUGHPUT),
    "slowest I/O": over_time(Claim.MAX_LATENCY),
    "spread of the slowest": over_time(Claim.LATENCY_SPREAD_OVER_TIME),
    "worst second": over_time(Claim.WORST_SECOND),
    "a rebuild by the load beside it": rebuilding(),
}


@pytest.mark.parametrize("records", EXPLAINED.values(), ids=EXPLAINED)
def test_a_verdict_is_explained_by_a_chart(records: Sequence[Record]) -> None:
    story = charted.story(*records)
    chart = chart_of(story, story.judged[-1])
    assert chart is not None
    assert chart.key.startswith("why-")
    golden.same("charts.txt", charted.wording(chart)[:2])


def test_the_limit_is_drawn_in_the_unit_of_the_axis_only() -> None:
    for claim, drawn in ((Claim.STEADY_IOPS, True), (Claim.LATENCY_SPREAD_OVER_TIME, False)):
        story = charted.story(SWEEP[1], charted.judged(claim, "raid5x4", [READ], 400, 300))
        chart = chart_of(story, story.judged[0])
        assert chart is not None
        assert ("promised" in chart.svg) is drawn


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
