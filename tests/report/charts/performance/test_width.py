from __future__ import annotations

import math

import pytest
from support.builders import charted, strategies
from support.builders.charted import notes
from support.documents import golden

from pytest_ssdqual.qual.measured.environment import ArrayEnvironment, DeviceTraffic
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.charts.performance import latency
from pytest_ssdqual.report.charts.performance import width as widths
from pytest_ssdqual.report.drawing.plot import Bars, Chart, Line

WRITE, READ = Workload("randwrite", "4k", 1), Workload("randread", "4k", 1)


def sweep_of(found: Notes, family: Workload = WRITE) -> widths.DrawnSweep:
    return next(each for each in widths.sweeps(found) if each.family == family)


def test_bars_are_as_high_as_what_was_measured() -> None:
    found = notes(*charted.parity_sweep())
    chart = widths.chart(found, sweep_of(found))
    bars = {point.row[:2]: point.y for mark in charted.marks(chart) if isinstance(mark, Bars) for point in mark.points}
    assert len(bars) == 8
    assert bars["raid5x8", "randwrite_4k_qd4"] == pytest.approx(4800)
    assert bars["raid5x3", "randwrite_4k_qd1"] == pytest.approx(900)


def test_the_table_has_every_number_and_its_promise() -> None:
    found = notes(*charted.parity_sweep())
    chart = widths.chart(found, sweep_of(found))
    golden.same("charts.txt", charted.wording(chart))
    assert "promised" in charted.names(chart)


def test_what_is_published_is_marked_and_named() -> None:
    stated = Published(11_000, Unit.IOPS, "329903-001US, figure 9")
    records = [
        record
        for width in (3, 4)
        for record in (
            charted.measured(f"raid5x{width}", READ, 1000.0 * width),
            charted.judged(Claim.STEADY_IOPS, f"raid5x{width}", [READ], 1000.0 * width, 900, published=stated),
        )
    ]
    found = notes(*records)
    chart = widths.chart(found, sweep_of(found, READ))
    golden.same("charts.txt", charted.wording(chart))
    assert "published: 11,000 IOPS" in chart.svg


def test_degraded_arrays_are_no_sweep() -> None:
    assert not list(
        widths.sweeps(notes(*[charted.measured(f"raid5x{width}-1failed", READ, 100.0) for width in (3, 4, 5)]))
    )


def test_one_width_is_drawn_only_if_it_is_all_of_its_level() -> None:
    deeper = Workload("randread", "4k", 8)
    records = [
        charted.measured("raid10x4", READ, 1000.0),
        charted.measured("raid10x4", deeper, 3000.0),
        *(charted.measured(f"raid5x{width}", READ, 500.0 * width) for width in (3, 4)),
        charted.measured("raid5x4", Workload("randwrite", "4k", 1), 500.0),
    ]
    found = notes(*records)
    sweeps = list(widths.sweeps(found))
    assert [(each.level, str(each.family.rw), each.widths) for each in sweeps] == [
        ("raid10", "randread", [4]),
        ("raid5", "randread", [3, 4]),
    ]
    chart = widths.chart(found, sweeps[0])
    assert widths.scaling_chart(found, sweeps[0]) is None
    slowest = latency.maxima_chart(found, sweeps[0], 8)
    assert slowest is not None
    golden.same("charts.txt", [*charted.wording(chart), slowest.title])


def test_a_measurement_that_was_made_again_counts_once() -> None:
    records = [
        charted.measured("raid5x3", READ, 100.0),
        charted.measured("raid5x3", READ, 200.0),
        charted.measured("raid5x4", READ, 9.0),
    ]
    assert [cell.rate for cell in sweep_of(notes(*records), READ).at(1)] == [200.0, 9.0]


def test_growth_is_held_against_the_law_of_the_level() -> None:
    records = [charted.measured(f"raid5x{width}", WRITE, iops) for width, iops in ((3, 100.0), (6, 158.0), (8, 150.0))]
    short = charted.judged(Claim.SCALING_DEVIATION, "raid5x3 raid5x6 raid5x8", [WRITE], 25, 20)
    found = notes(*records, short)
    chart = widths.scaling_chart(found, sweep_of(found))
    assert chart is not None
    golden.same("charts.txt", charted.wording(chart))
    assert "allowed" in charted.names(chart)


def test_reads_grow_with_the_drives_from_the_narrowest_on() -> None:
    found = notes(*(charted.measured(f"raid5x{width}", READ, 50.0 * width) for width in (3, 6)))
    chart = widths.scaling_chart(found, sweep_of(found, READ))
    assert chart is not None
    golden.same("charts.txt", charted.wording(chart))


def test_a_band_needs_a_promise_and_a_chart_needs_a_law() -> None:
    streams = Workload("randread+randwrite", "4k", 1)
    found = notes(*(charted.measured(f"raid5x{width}", each, 100.0) for width in (3, 4) for each in (READ, streams)))
    chart = widths.scaling_chart(found, sweep_of(found, READ))
    assert chart is not None
    assert "allowed" not in (*charted.names(chart), chart.caption)
    assert widths.scaling_chart(found, sweep_of(found, streams)) is None


def test_of_writes_wider_than_a_chunk_there_is_no_law() -> None:
    wide = Workload("randwrite", "128k", 2)

    def grown(chunk_bytes: int | None) -> Chart | None:
        seen = plain(strategies.seen(array=ArrayEnvironment(DeviceTraffic(None, None), chunk_bytes, None, None)))
        noted = notes(*(charted.measured(f"raid5x{width}", wide, 100.0, seen=seen) for width in (5, 6)))
        return widths.scaling_chart(noted, sweep_of(noted, wide.at(1)))

    assert grown(64 * 1024) is None
    assert grown(128 * 1024) is not None
    assert grown(None) is not None


def test_maxima_of_the_smallest_and_the_widest() -> None:
    spread = charted.judged(Claim.LATENCY_SPREAD_BETWEEN_WIDTHS, "raid5x3 raid5x4 raid5x5", [READ], 3, 2)
    records = [
        charted.measured(f"raid5x{width}", READ, 100.0, round_max_latency_ns=[1e6, None, 3e6 * width, 2e6 * width, 1e6])
        for width in (3, 4, 5)
    ]
    found = notes(*records, spread)
    chart = latency.maxima_chart(found, sweep_of(found, READ), 1)
    assert chart is not None
    # Nothing is known of the second without I/O.
    golden.same("charts.txt", charted.wording(chart))


def test_no_maxima_without_latencies() -> None:
    records = [charted.measured(f"raid5x{width}", READ, 100.0, round_max_latency_ns=[None] * 5) for width in (3, 4)]
    found = notes(*records)
    assert latency.maxima_chart(found, sweep_of(found, READ), 1) is None


def test_no_line_leads_over_a_width_not_measured_at_this_depth() -> None:
    whole = charted.parity_sweep()
    lacking = [each for each in whole if "raid5x6" not in str(each.facts) or "randwrite_4k_qd4" not in str(each.facts)]
    assert len(lacking) == len(whole) - 2
    for draw in (widths.chart, widths.scaling_chart):
        counts = []
        for records in (whole, lacking):
            found = notes(*records)
            chart = draw(found, sweep_of(found))
            assert chart
            lines = [mark for mark in charted.marks(chart) if isinstance(mark, Line)]
            counts.append(sum(math.isnan(point.y) for line in lines for point in line.points))
        assert counts == [0, 1]


def test_a_figure_published_far_above_all_is_not_drawn() -> None:
    far, near = Published(1e6, Unit.IOPS, "a paper"), Published(1000, Unit.IOPS, "a sheet")
    verdicts = [
        charted.judged(Claim.STEADY_IOPS, f"raid5x{width}", [WRITE], 900, 500, published=published)
        for width, published in ((3, near), (4, far))
    ]
    found = notes(*(each for each in charted.parity_sweep() if each.kind == "measured"), *verdicts)
    chart = widths.chart(found, sweep_of(found))
    golden.same("charts.txt", charted.wording(chart))
    figures = [mark for mark in charted.marks(chart) if mark.name == "published"]
    assert [list(mark.values) for mark in figures] == [[1000], []]


def test_whiskers_are_in_the_table_of_growth() -> None:
    found = notes(*charted.parity_sweep())
    chart = widths.scaling_chart(found, sweep_of(found))
    assert chart
    golden.same("charts.txt", charted.wording(chart))
