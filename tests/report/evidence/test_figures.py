from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import strategies

from pytest_ssdqual.qual.measured.environment import DriveTemperature
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured, Run, Visited
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.estimate import USUAL
from pytest_ssdqual.qual.stats.latency import slower_than
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.figures import (
    of_exceedance,
    of_measured,
    of_point,
    of_rebuild,
    of_saturation,
)


def _measured(cpu_busy: float | None, latency_ns: int, ios: int) -> Measured:
    histogram, empty = LatencyHistogram(((latency_ns, ios),)) if ios else LatencyHistogram(()), LatencyHistogram(())
    interval = Interval(0, 1, ios, 0, ios * 4096, 0, histogram, empty)
    seen = None if cpu_busy is None else strategies.seen(cpu_busy=cpu_busy)
    run = Run(Workload("randread", "4k", 2), Geometry.parse("raid5x4"), ("A",), (interval,), 0, 1, 1, "x", seen)
    return Measured((run, run))


def test_figures_of_a_measurement() -> None:
    figures = dict(of_measured(_measured(0.25, 1_000_000, 8000)))
    assert figures["iops"] == 8000
    assert figures["ios"] == 16000
    assert figures["counted_s"] == 2
    assert figures["cpu_busy_percent"] == 25
    cpus = strategies.seen(cpu_busy=0.25).cpu
    assert cpus
    assert figures["cpu_per_io_ns"] == pytest.approx(1e9 * cpus.count * 0.25 / 8000)
    assert figures["mean_latency_ns"] == pytest.approx(1_000_000, rel=0.01)
    # 8,000 IOPS × 1 ms are 8 outstanding, and 2 × 4 drives were asked for.
    assert figures["littles_law_percent"] == pytest.approx(100, rel=0.01)


def test_what_was_seen_around_it_is_there_at_its_worst() -> None:
    calm = strategies.seen([strategies.seen_drive("A", None, None)])
    warm = replace(calm, drives=(replace(calm.drives[0], heat=DriveTemperature(73.0, 70.0, True, None, None)),))
    (run, _) = _measured(0.25, 1_000_000, 8000).runs
    measured = Measured((replace(run, seen=calm), replace(run, seen=warm), replace(run, seen=calm)))
    figures = dict(of_measured(measured))
    assert (figures["temperature_c"], figures["link_percent"], figures["clock_jump_s"]) == (73, 100, 0.002)
    assert figures["foreign_percent"] is None
    assert len(figures) == len(of_measured(measured))
    # Of a RAID 5 without what it did itself, and of one run without the drive's own count: I/O of others (at drive or
    # array), resyncs, and the time of being too warm. What the drive counted itself, who had it open, its self-test.
    assert figures["checks_unknown"] == 6


def test_nothing_is_said_of_surroundings_that_nobody_saw() -> None:
    assert "checks_unknown" not in of_measured(_measured(None, 1_000_000, 8000))


def test_figures_of_a_measurement_in_visits() -> None:
    cells = tuple(strategies.run([1_000] * 60, rounds=1) for _ in range(4))
    visited = Visited((2, 2), 22, 0.993, between=0.006, between_degrees=9.0, within=0.004, within_degrees=20.0)
    figures = dict(of_measured(Measured(cells, visited)))
    assert (figures["visits"], figures["cells"], figures["most_cells"]) == (2, 4, 22)
    assert figures["look_confidence_percent"] == pytest.approx(99.3)
    assert figures["scatter_between_visits_percent"] == pytest.approx(0.6)
    assert figures["scatter_within_visits_percent"] == pytest.approx(0.4)
    assert not {"visits", "cells", "look_confidence_percent"} & of_measured(Measured(cells)).keys()


def test_figures_of_an_exceedance() -> None:
    measured = strategies.watched([strategies.histogram({10**6: 1_000})] * 9 + [strategies.histogram({80 * 10**6: 7})])
    figures = dict(of_exceedance(slower_than(50e6, measured, USUAL)))
    assert (figures["slower_ios"], figures["slower_spells"]) == (7, 1)
    assert (figures["slower_high_per_hour"] or 0) > (figures["slower_low_per_hour"] or 0) > 0
    everywhere = dict(of_exceedance(slower_than(1e3, measured, USUAL)))
    assert everywhere["slower_high_per_hour"] is None


def test_figures_of_nothing() -> None:
    figures = dict(of_measured(_measured(None, 1, 0)))
    unknown = ("mean_latency_ns", "littles_law_percent", "cpu_busy_percent", "cpu_per_io_ns")
    assert [figures[name] for name in unknown] == [None] * 4


def test_a_point_of_drives_side_by_side_is_that_of_one() -> None:
    ios = 8000
    histogram, empty = LatencyHistogram(((1_000_000, ios),)), LatencyHistogram(())
    interval = Interval(0, 1, ios, 0, ios * 4096, 0, histogram, empty)
    run = Run(Workload("randread", "4k", 2), Geometry.parse("drivex4"), tuple("ABCD"), (interval,), 0, 1, 1, "x")
    figures = dict(of_point(Measured((run,))))
    assert figures == {"outstanding": 2, "iops": 2000, "mean_latency_ns": pytest.approx(1_000_000, rel=0.01)}
    array = Measured((replace(run, geometry=Geometry.parse("raid0x4")),))
    assert dict(of_point(array))["outstanding"] == 8


def test_figures_of_a_curve_from_fresh_to_settled() -> None:
    run = strategies.run([6000] * 10 + [3000] * 30, workload=Workload("randwrite", "4k", 8), rounds=40)
    whole = replace(run, window_s=40.0)
    figures = dict(of_saturation(Saturation(whole, 60_000 * 4096)))
    assert figures["fresh_iops"] == pytest.approx(6000)
    assert figures["settled_iops"] == pytest.approx(3000)
    assert figures["cliff_capacities"] == figures["settled_capacities"] == pytest.approx(1.0)
    assert figures["capacities"] == pytest.approx(2.5)
    assert (figures["cliff_s"], figures["seconds"]) == (10, 40)


def test_what_a_curve_does_not_show_is_none() -> None:
    run = strategies.run([3000], workload=Workload("randwrite", "4k", 8), rounds=1)
    figures = dict(of_saturation(Saturation(run, 10**12)))
    assert figures["fresh_iops"] is figures["cliff_s"] is figures["settled_iops"] is None


def test_figures_of_a_rebuild() -> None:
    run = strategies.run([1000] * 5, geometry="raid5x3-1rebuilding")
    rebuild = Rebuild(Geometry.parse("raid5x3-1rebuilding"), 100.0, 200 * 10**6, Measured((run,)), mismatches=3)
    figures = dict(of_rebuild(rebuild))
    assert (figures["rebuild_s"], figures["rebuild_bytes_per_s"], figures["mismatches"]) == (100, 2_000_000, 3)
    assert figures["foreground_iops"] == pytest.approx(1000)
