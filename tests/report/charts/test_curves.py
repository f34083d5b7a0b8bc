"""Curves over depth and mix, from the purged state, and over rounds; maps, radars, drives and their health."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import charted, fio_documents, strategies
from support.builders.charted import notes
from support.documents import golden

from pytest_ssdqual.qual.measured.environment import DriveTemperature, Traffic
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.methods import snia
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats.drift import DriftTest
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.rounds import Rounds, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.charts import drives
from pytest_ssdqual.report.charts.course import loops, over_time, saturation
from pytest_ssdqual.report.charts.data import Notes
from pytest_ssdqual.report.charts.performance import block_size_and_mix, queue_depth
from pytest_ssdqual.report.drawing.plot import Bars, Line
from pytest_ssdqual.report.evidence.evidence import About, Finding, Part
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.rig.fio.output import StatusReader

READ = Workload("randread", "4k", 1)


def only_curve(*records: Record) -> tuple[Notes, queue_depth.DepthCurve]:
    found = notes(*records)
    (curve,) = queue_depth.curves(found)
    return found, curve


def test_a_sweep_over_depths_has_its_knee_and_what_is_published() -> None:
    found, curve = only_curve(charted.depths())
    assert queue_depth.is_by_depth(curve)
    assert not queue_depth.is_by_mix(curve)
    chart = queue_depth.chart(found, curve)
    assert "knee: 16" in charted.names(chart)
    golden.same("charts.txt", charted.wording(chart))


def test_a_knee_that_was_not_reached_is_not_claimed() -> None:
    record = charted.depths(published=False)
    facts = {**record.facts, "high": None}
    found, curve = only_curve(replace(record, facts=facts))
    chart = queue_depth.chart(found, curve)
    assert "no gain" not in chart.title
    assert not any(list(mark.values) for mark in charted.marks(chart) if mark.name == "published")


def test_a_bathtub_lies_below_its_line() -> None:
    found, curve = only_curve(charted.bathtub())
    assert queue_depth.is_by_mix(curve)
    assert not queue_depth.is_by_depth(curve)
    chart = queue_depth.bathtub(found, curve)
    assert "promised: ≥ 0.60 × of it" in charted.names(chart)
    golden.same("charts.txt", charted.wording(chart))


def test_points_that_are_no_curve_are_bars() -> None:
    pair = [Workload("randwrite", "4k", 8), Workload("randwrite", "4k", 8, offset="512")]
    points = [Part(str(each), {"outstanding": 8, "iops": 900.0}) for each in pair]
    record = charted.judged(Claim.UNALIGNED_PENALTY, "raid0x4", pair, 1, 2, about=About.CURVE, points=points)
    found, curve = only_curve(record)
    chart = queue_depth.bars(found, curve)
    assert chart is not None
    assert [row[2] for row in chart.table.rows] == ["900 IOPS", "900 IOPS"]
    assert queue_depth.bars(found, replace(curve, points=(Part("x"),))) is None


def test_a_strip_is_drawn_over_capacities_with_its_marks() -> None:
    found = notes(*charted.saturation())
    (strip,) = saturation.strips(found.story)
    xs = [x for x, _ in saturation.points_of(strip)]
    assert xs[0] == pytest.approx(20e3 * 4096 / 1e9)
    assert xs[11] == pytest.approx(12 * 20e3 * 4096 / 1e9)
    chart = saturation.chart(found, strip)
    assert chart.title == "drivex1: randwrite_4k_qd32 from the purged state, 4 times slower in the end"
    assert {"fresh", "cliff", "settled", "promised, settled: ≥ 4,000 IOPS"} < charted.names(chart)
    assert "peaks and dips of 164 points" in chart.caption
    assert len(chart.table.rows) <= 60 + 4
    assert ("found", "cliff after", "0.983 capacities") in chart.table.rows


def test_drives_written_side_by_side_are_drawn_one_by_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "fio").mkdir(mode=0o700)
    path, raw = tmp_path / "fio/drivex2-x.json.gz", "fio/drivex2-x.json.gz"
    path.write_bytes(fio_documents.packed(*([_written(second, ios) for second in range(12)] for ios in (900, 400))))
    path.chmod(0o600)
    story = charted.story(
        charted.record("saturation", _of_output(gzip.decompress(path.read_bytes()), raw)), folder=tmp_path
    )
    (strip,) = saturation.strips(story)
    chart = saturation.chart(Notes.of(story), strip)
    assert {row[0]: row[2] for row in chart.table.rows} == {"S3X0001": "900 IOPS", "S3X0002": "400 IOPS"}
    assert "…0001" in charted.names(chart)
    path.unlink()
    assert {row[0] for row in saturation.chart(Notes.of(story), strip).table.rows} == {"average drive"}


def _written(second: int, ios: int) -> Interval:
    empty = LatencyHistogram()
    return Interval(float(second), 1.0, 0, ios, 0, 4096 * ios, empty, LatencyHistogram([(100_864, ios)]))


def _of_output(written: bytes, raw: str) -> dict[str, object]:
    """The record of a saturation with this output."""
    workload, geometry = Workload("randwrite", "4k", 32), Geometry.parse("drivex2")
    reader = StatusReader(None)
    reader.feed(written)
    read = reader.whole()
    run = Run(workload, geometry, charted.SERIALS[:2], read.intervals, 0.0, 12.0, 12, raw, parts=read.parts)
    return {
        "geometry": str(geometry),
        "workload": str(workload),
        "asked": plain(workload),
        "capacity_bytes": 2 * 10**7,
        "rule": {"window": 5, "range_percent": 20.0, "slope_percent": 10.0},
        "gate_capacities": 0.0,
        "run": plain(run.record()),
    }


def test_a_strip_without_a_verdict_has_no_marks() -> None:
    found = notes(charted.saturation()[0])
    (strip,) = saturation.strips(found.story)
    chart = saturation.chart(found, strip)
    assert "cliff" not in charted.names(chart)
    assert chart.caption.startswith("From a purged drive on, for 2.73 min. No claim about it was judged.")


def test_rounds_until_steady_with_window_and_range() -> None:
    (found,) = loops.conditioned([charted.conditioned()])
    assert (found.begin, found.state.reached, len(found.values)) == (3, True, 8)
    chart = loops.chart(found)
    golden.same("charts.txt", charted.wording(chart))
    assert {"best fit", "average", "window and range allowed"} < charted.names(chart)


def test_conditioning_by_volume_is_shown_with_the_largest_drift() -> None:
    record = charted.conditioned()
    calm, falling = DriftTest(0.4, 0.1, 0.8, 0.9, settled=True), DriftTest(-3.4, -1.0, 0.8, 0.9, settled=False)
    facts = {**record.facts, "capacities": 1.5, "drift": {"S1": plain(calm), "S2": plain(falling)}}
    (found,) = loops.conditioned([replace(record, facts=facts)])
    assert (found.drift, found.reached, found.state.reached) == (falling, False, True)
    golden.same("charts.txt", charted.wording(loops.chart(found)))


def test_drives_side_by_side_are_shown_by_their_mean() -> None:
    record = charted.conditioned()
    rounds = record.facts["round_iops"]
    assert isinstance(rounds, list)
    beside = replace(record, facts={**record.facts, "geometry": "drivex2", "round_iops": [rounds, [0.0] * 8]})
    (found,) = loops.conditioned([beside])
    assert found.values[0] == 4500


def test_a_loop_is_followed_in_what_it_tracks() -> None:
    workload = Workload("randwrite", "4k", 32, threads=4)
    rule = {"window": 5, "range_percent": 20.0, "slope_percent": 10.0}
    asked = Rounds("snia-iops", (workload,), (Tracked(workload, "steady_iops"),), "128k")
    rates = [900.0, 500.0, 410.0, 400.0, 402.0, 398.0, 400.0, 401.0]
    rounds = [[charted.run("drivex2", workload, [2 * each])] for each in rates]
    facts = {"geometry": "drivex2", "loop": "snia-iops", "asked": plain(asked), "rule": rule, "rounds": rounds}
    (found,) = loops.looped(charted.loops(charted.record("loop", facts)))
    assert found.values == tuple(rates)
    assert (found.begin, found.state.reached) == (3, True)


def test_a_map_has_a_figure_for_every_size_and_mix() -> None:
    (matrix,) = block_size_and_mix.matrices(notes(*charted.matrix()))
    assert (matrix.sizes, matrix.mixes) == ([512, 4096, 32768, 131072], [100, 65, 0])
    chart = block_size_and_mix.heat_map(matrix)
    golden.same("charts.txt", charted.wording(chart))
    assert {"300k", "216k", "60k", "12.2k"} <= charted.words(chart)
    tints = [float(each) for each in re.findall(r"opacity:([\d.]+)", chart.svg)]
    assert max(tints) <= 0.56  # ink must stay readable on it
    assert block_size_and_mix.lines(matrix).table == chart.table


def test_noise_does_not_look_like_a_landscape() -> None:
    share = block_size_and_mix._share
    assert [round(share(each, [289.0, 300.0, 301.0]), 2) for each in (289.0, 301.0)] == [0.97, 1.0]
    assert [share(each, [10.0, 1000.0]) for each in (10.0, 1000.0, 100.0)] == [0.0, 1.0, pytest.approx(0.5)]
    assert share(0.0, [0.0, 5.0]) == share(1.0, [0.0]) == 0.0


def test_few_sizes_are_no_map() -> None:
    records = [each for each in charted.matrix() if "_4k_" in str(each.facts["workload"])]
    assert not list(block_size_and_mix.matrices(notes(*records)))


def test_a_broken_cell_is_framed() -> None:
    workload = Workload("randwrite", "4k", 32, threads=2)
    broken = charted.judged(Claim.STEADY_IOPS, "raid0x6", [workload], 6e4, 9e4)
    (matrix,) = block_size_and_mix.matrices(notes(*charted.matrix(), broken))
    chart = block_size_and_mix.heat_map(matrix)
    golden.same("charts.txt", charted.wording(chart))
    assert chart.svg.count("stroke:var(--limit)") == 1


def test_loops_have_maps_of_mean_and_maximum_latency() -> None:
    figures = {Claim.MEAN_LATENCY: 1e5, Claim.MAX_LATENCY: 4e6}
    records = [
        charted.judged(
            claim, "drivex1", [work], value * (1 + work.read_fraction), 1e9, about=About.LOOP, group="snia-latency"
        )
        for claim, value in figures.items()
        for work in snia.LATENCY.workloads
    ]
    maps = list(block_size_and_mix.latency_matrices(notes(*records)))
    assert not list(block_size_and_mix.matrices(notes(*records)))
    charts = [block_size_and_mix.heat_map(each) for each in maps]
    golden.same("charts.txt", [line for each in charts for line in charted.wording(each)])
    assert {"8 ms", "6.6 ms", "4 ms"} <= charted.words(charts[1])


def test_a_new_drive_is_drawn_against_a_working_one() -> None:
    random_writes, writes = Workload("randwrite", "8k", 8), Workload("write", "128k", 8)
    reads = Workload("randread", "8k", 8)
    saturation_of = About.SATURATION
    records = [
        charted.judged(Claim.FRESH_IOPS, "drivex1", [random_writes], 2700, 1, about=saturation_of),
        charted.judged(Claim.SETTLED_IOPS, "drivex1", [random_writes], 270, 1, about=saturation_of),
        charted.judged(Claim.FRESH_IOPS, "drivex1", [writes], 1000, 1, about=saturation_of),
        charted.judged(Claim.STEADY_IOPS, "drivex1", [reads], 5000, 1, about=About.LOOP, group="stec-new"),
        charted.judged(Claim.STEADY_IOPS, "drivex1", [reads], 4000, 1, test="suites/test_it.py::test_working"),
    ]
    (chart,) = saturation.compared(notes(*records))
    golden.same("charts.txt", charted.wording(chart))
    assert not list(saturation.compared(notes(*records[:3])))


def test_a_matrix_is_drawn_as_bandwidth_and_as_a_radar() -> None:
    (matrix,) = block_size_and_mix.matrices(notes(*charted.matrix()))
    bandwidth = block_size_and_mix.lines(matrix, Unit.BYTES_PER_SECOND)
    radar = block_size_and_mix.radar(matrix)
    assert {"512", "4k", "32k", "128k"} <= set(re.findall(r">([0-9]+k?)<", radar.svg))
    golden.same("charts.txt", [*charted.wording(bandwidth), *charted.wording(radar)])
    assert "65/35" in radar.svg
    assert block_size_and_mix.radar(matrix, Unit.BYTES_PER_SECOND).key != radar.key


@pytest.mark.parametrize(
    "other",
    [
        Workload("read", "4k", 32, threads=2),
        Workload("randread", "4k", 32, threads=2, random_percent=50),
        Workload("randread", "4k", 32, threads=2, offset="512"),
        Workload("randread", "4k", 32, threads=2, zipf=120),
        Workload("randread", "4k", 32, threads=2, name="web"),
        Workload("randread+randwrite", "4k", 32, threads=2),
    ],
    ids=str,
)
def test_other_accesses_are_no_cells_of_a_matrix(other: Workload) -> None:
    records = charted.matrix()
    beside = block_size_and_mix.matrices(notes(*records, charted.measured("raid0x6", other, 1)))
    assert list(beside) == list(block_size_and_mix.matrices(notes(*records)))


def test_a_ring_with_a_gap_is_left_out_of_the_radar() -> None:
    (matrix,) = block_size_and_mix.matrices(notes(*charted.matrix()))
    holed = replace(matrix, cells={cell: value for cell, value in matrix.cells.items() if cell != (4096, 65)})
    assert "left out" in block_size_and_mix.radar(holed).caption
    assert "4k, 100/0" not in block_size_and_mix.radar(holed).svg


def test_profiles_grow_with_the_drives() -> None:
    (chart,) = block_size_and_mix.growths(notes(*charted.profiles()))
    golden.same("charts.txt", charted.wording(chart))
    assert not list(block_size_and_mix.growths(notes(*charted.profiles()[:3])))


def test_a_radar_has_a_spoke_for_each_profile() -> None:
    found = notes(*charted.profiles())
    (chart,) = block_size_and_mix.profile_radars(found)
    golden.same("charts.txt", charted.wording(chart))
    assert "raid0x8 exchange: 58,482 IOPS" in chart.svg
    assert not list(block_size_and_mix.profile_radars(notes(*charted.profiles()[:2])))


def test_the_outlier_is_named_and_looks_different() -> None:
    (judged,) = notes(charted.outlier()).judged
    chart = drives.chart(judged)
    assert chart is not None
    golden.same("charts.txt", charted.wording(chart))
    assert chart.svg.count("S3X0005") >= 3  # title, hover, label
    assert "fail" in chart.svg


def test_of_very_many_drives_the_outlier_alone_is_named() -> None:
    names = [f"S{index:03}" for index in range(100)]
    members = [
        Part(name, {"value": 41e3 if name == "S057" else 80e3}, Finding.FAIL if name == "S057" else Finding.PASS)
        for name in names
    ]
    verdict = charted.judged(
        Claim.STEADY_IOPS, "drivex100", [Workload("randread", "4k", 8)], 41e3, 60e3, members=members, worst="S057"
    )
    chart = drives.chart(charted.story(verdict).judged[0])
    assert chart
    assert [each for each in charted.words(chart) if each.startswith("S0")] == ["S057"]
    assert len(chart.table.rows) == 100


def test_a_promise_of_likeness_is_drawn_as_a_share_of_the_median() -> None:
    members = [Part(f"S{index:04}", {"iops": 100.0 * index}) for index in (3, 4, 5)]
    record = charted.judged(Claim.MEMBER_SPREAD, "drivex3", [READ], 0.75, 0.85, members=members, worst="S0003")
    (judged,) = notes(record).judged
    chart = drives.chart(judged)
    assert chart is not None
    assert judged.outcome is Finding.FAIL
    # Of 300, 400 and 500 IOPS the median is 400.
    (limit,) = (mark for mark in charted.marks(chart) if mark.name == "promised: ≥ 0.85 × of the median")
    assert list(limit.values) == [pytest.approx(0.85 * 400)]
    alone = replace(judged, members=judged.members[:1])
    assert drives.chart(alone) is None


def test_what_is_far_from_its_limit_is_dots_on_decades() -> None:
    members = [Part(f"S{index:04}", {"value": 3e6 + index}) for index in range(3)]
    record = charted.judged(Claim.MAX_LATENCY, "drivex3", [READ], 3e6, 1e9, members=members, worst="S0000")
    (judged,) = notes(record).judged
    chart = drives.chart(judged)
    assert chart is not None
    assert not any(isinstance(mark, Bars) for mark in charted.marks(chart))
    assert len([mark for mark in charted.marks(chart) if isinstance(mark, Line)]) == 3


def test_temperatures_over_the_run_by_serial_number() -> None:
    manifest = {"bays": [{"drives": [{"identity": "wwn-1", "serial": "S3X0001"}]}]}
    records = [
        charted.record("health", {"drive": "wwn-1", "when": "before", "temperature_c": 30}, 0),
        charted.measured("drivex1", READ, 1000.0, 60, seen=_seen("S3X0001", DriveTemperature(55, 70))),
        charted.record("health", {"drive": "wwn-1", "when": "after", "temperature_c": 41}, 120),
    ]
    chart = over_time.temperatures(charted.story(*records, manifest=manifest))
    assert chart is not None
    golden.same("charts.txt", charted.wording(chart))
    assert "promised by the drive: at most 70 °C" in charted.names(chart)


def _seen(name: str, heat: DriveTemperature) -> object:
    return plain(strategies.seen([replace(strategies.seen_drive(name, Traffic(1, 1, 1, 1), None), heat=heat)]))


def test_wear_is_what_the_drives_counted() -> None:
    chart = over_time.wear(charted.story(*charted.health()))
    assert chart is not None
    golden.same("charts.txt", charted.wording(chart))


def test_wear_of_a_resumed_run_is_that_of_all_its_sessions() -> None:
    first = charted.health()
    again = [
        charted.record("health", {**each.facts, "when": when, "data_written_bytes": written}, at_s)
        for each in first[: len(charted.SERIALS)]
        for when, written, at_s in (("before", 9 * 10**9, 3100), ("after", 10 * 10**9, 3500))
    ]
    chart = over_time.wear(charted.story(*first, *again))
    assert chart is not None
    assert chart.table.rows[0][:2] == ("S3X0001", "9 GB")


def test_drives_that_do_not_tell_are_not_drawn() -> None:
    told = {"drive": "x", "temperature_c": None, "data_written_bytes": None}
    records = [charted.record("health", {**told, "when": when}) for when in ("before", "after")]
    assert over_time.temperatures(charted.story(*records)) is None
    assert over_time.wear(charted.story(*records)) is None
