"""The published sets against what their sources say: counts, orders, sums and means."""

from __future__ import annotations

import re

import pytest
from support.documents.published_sets import EVERYTHING, WORKLOADS, Value

from pytest_ssdqual.qual.methods import intel_910, intel_s3500, snia, stec, toms_s3500, toms_s3700
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID, WorkloadSet


def test_one_id_means_one_thing_in_all_methods() -> None:
    named: dict[tuple[type[Value], str], Value] = {}
    for each in EVERYTHING:
        assert named.setdefault((type(each), str(each)), each) == each
    assert len({str(each) for each in WORKLOADS}) == len(WORKLOADS) > 300


def test_ids_can_be_written_into_a_spec() -> None:
    plain = [each for each in WORKLOADS if not each.name]
    assert [Workload.parse(str(each)) for each in plain] == plain


def test_ids_of_series_are_plain_words() -> None:
    assert all(re.fullmatch(r"[a-z0-9_+]+", str(each)) for each in EVERYTHING if isinstance(each, WorkloadSet))


def test_a_series_has_each_of_its_workloads_once() -> None:
    for each in EVERYTHING:
        assert not isinstance(each, WorkloadSet) or len(set(each.workloads)) == len(each.workloads) > 1


def test_s3500_paper_has_five_more_sizes() -> None:
    assert len(intel_s3500.SIZES) == 5 * 4 * 4
    assert not set(intel_s3500.SIZES) & set(INTEL_RAID)
    assert {each.block_bytes for each in intel_s3500.SIZES} == {8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10}
    curves = [intel_s3500.WRITES, *intel_s3500.READS]
    assert {each for series in curves for each in series.workloads} == set(INTEL_RAID)
    assert intel_s3500.WRITES.workloads[0].read_fraction == 0


def test_applications_of_the_s3500_paper_have_its_shares() -> None:
    shares = {each.name: (each.random_percent, each.read_percent, len(each.sizes)) for each in intel_s3500.APPLICATIONS}
    assert len(shares) == 8
    assert shares["appweb"] == (75, 95, 3)
    assert shares["appmail"] == (95, 70, 1)
    assert shares["appoltp"] == (95, 70, 2)
    assert shares["appsearch"] == (95, 95, 3)


def test_toms_s3500_matrix_is_56_points_of_64_outstanding() -> None:
    assert len(toms_s3500.MATRIX) == len(set(toms_s3500.MATRIX)) == 8 * 7
    assert {each.outstanding(6) for each in toms_s3500.MATRIX} == {64}
    assert {each for series in toms_s3500.MIX_SERIES for each in series.workloads} == set(toms_s3500.MATRIX)
    assert min(each.block_bytes for each in toms_s3500.LARGE) == 32 << 10
    assert toms_s3500.SUB_PAGE in toms_s3500.MATRIX


@pytest.mark.parametrize(
    ("profile", "sizes", "mean_kib", "reads"),
    [
        (toms_s3700.WEB_SERVER, 10, 15.66, 1.0),
        (toms_s3700.DATABASE, 1, 8, 0.67),
        (toms_s3700.EXCHANGE, 1, 32, 0.62),
        (toms_s3700.FILE_SERVER, 8, 11.08, 0.8),
    ],
    ids=str,
)
def test_server_profiles_have_the_published_sizes(profile: Workload, sizes: int, mean_kib: float, reads: float) -> None:
    assert len(profile.sizes) == sizes
    assert sum(share for _, share in profile.sizes) == 100
    assert profile.block_bytes / 1024 == pytest.approx(mean_kib)
    assert profile.read_fraction == reads


def test_mail_is_the_series_that_was_flat() -> None:
    assert {each.name for each in toms_s3700.EXCHANGE_INTENSITY.workloads} == {"exchange"}


def test_stec_mixes_go_from_pure_reads_to_pure_writes() -> None:
    for series in (stec.MIXES, *stec.SIZE_MIXES):
        assert [each.read_fraction for each in series.workloads] == [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]
    assert {each.workloads[0].qd_per_drive for each in stec.SIZE_MIXES} == {32}
    assert stec.SATURATING in stec.MIXES.workloads


def test_stec_depth_series_are_unaligned_and_cover_all_mixes() -> None:
    starts = [series.workloads[0] for series in stec.DEPTH_SERIES]
    assert [each.read_fraction for each in starts] == [1.0, 0.8, 0.6, 0.4, 0.2, 0.0]
    assert {each.offset_bytes for each in starts} == {512}


def test_the_910_sweep_is_of_total_depths() -> None:
    for series in (intel_910.READS, intel_910.WRITES):
        assert [each.outstanding(4) for each in series.workloads] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert [each.outstanding(4) for each in intel_910.STREAMS.workloads] == [2, 4, 8, 16, 32, 64, 128]
    assert set(intel_910.USEFUL[0].workloads) < set(intel_910.READS.workloads)
    assert set(intel_910.USEFUL[1].workloads) < set(intel_910.WRITES.workloads)


def test_streams_of_the_910_are_two_readers_and_one_writer() -> None:
    assert intel_910.SEQUENTIAL_READ.outstanding(4) == 8
    assert intel_910.SEQUENTIAL_WRITE.outstanding(4) == 4


def test_the_snia_order_is_the_normative_one() -> None:
    cells = [(each.read_fraction, each.smallest_bytes) for each in snia.IOPS.workloads]
    mixes, sizes = (1.0, 0.95, 0.65, 0.5, 0.35, 0.05, 0.0), (1 << 20, 131072, 65536, 32768, 16384, 8192, 4096, 512)
    assert cells == [(reads, size) for reads in mixes for size in sizes]
    assert {each.outstanding(4) for each in snia.IOPS.workloads} == {4 * 32}


def test_snia_tracks_three_cells_of_iops_and_one_of_the_others() -> None:
    tracked = {(each.workload.read_fraction, each.workload.smallest_bytes) for each in snia.IOPS.tracked}
    assert tracked == {(0.0, 4096), (0.65, 65536), (1.0, 1 << 20)}
    assert [loop.fill_bs for loop in snia.THROUGHPUT] == ["128k", "1m"]
    for loop in snia.THROUGHPUT:
        assert [each.rw for each in loop.workloads] == ["read", "write"]
        assert {each.bs for each in loop.workloads} == {loop.fill_bs}
        assert [each.claim for each in loop.tracked] == ["throughput"]


def test_the_composite_has_the_sizes_of_jesd219() -> None:
    shares = dict(snia.COMPOSITE.sizes)
    assert (shares[4096], shares[512], sum(shares.values()), len(shares)) == (67, 4, 100, 12)
    assert snia.COMPOSITE.read_fraction == 0.4
    assert str(snia.COMPOSITE) == "composite_zoned50x5_30x15_20x80_t4xqd32"


def test_snia_latency_has_one_io_at_a_time_in_nine_cells() -> None:
    assert len(snia.LATENCY.workloads) == 9
    assert {each.outstanding(8) for each in snia.LATENCY.workloads} == {1}
    (tracked,) = snia.LATENCY.tracked
    assert (str(tracked.workload), tracked.claim) == ("randwrite_4k_t1xqd1", "mean_latency")


def test_snia_demand_variation_goes_from_most_ios_to_one() -> None:
    for loop, mix in zip(snia.DEMAND_VARIATIONS, (snia.OLTP, snia.COMPOSITE), strict=True):
        steps = (32, 16, 8, 6, 4, 2, 1)
        loads = [(each.threads, each.qd_per_drive) for each in loop.workloads]
        assert loads == [(threads, depth) for threads in steps for depth in steps]
        assert {(each.bs, each.read_percent) for each in loop.workloads} == {(mix.bs, mix.read_percent)}
        assert [each.workload for each in loop.tracked] == [loop.workloads[0]]
        before = loop.pre_write
        assert before
        assert (before.rw, before.threads, before.qd_per_drive, loop.pre_write_cells) == ("randwrite", 32, 32, 5)


def test_snia_cross_stimulus_is_eight_six_and_eight_hours() -> None:
    loop = snia.CROSS_STIMULUS
    assert [(each.workload.rw, each.workload.bs, each.cells, each.parts) for each in loop.after] == [
        ("write", "1m", 480, 480), ("randwrite", "8k", 360, 360), ("write", "1m", 480, 480)
    ]  # fmt: skip
    assert (loop.fill_passes, loop.workloads) == (0, ())


def test_snia_host_idle_has_360_bursts_of_five_seconds() -> None:
    loop = snia.HOST_IDLE
    assert (loop.fill_passes, loop.cells) == (0, 30)
    paused, between = loop.after[::2], loop.after[1::2]
    assert [(each.workload.burst_s, each.workload.idle_s) for each in paused] == [(5, w) for w in (5, 10, 15, 25, 50)]
    assert all(each.cells * 60 == 360 * (5 + each.workload.idle_s) for each in paused)
    # Whole cycles in each process.
    assert all(each.cells * 60 / each.parts % (5 + each.workload.idle_s) == 0 for each in paused)
    assert {each.cells for each in between} == {30}
    assert sum(each.cells for each in loop.after) / 60 == 15.5
    assert {(each.workload.threads, each.workload.qd_per_drive) for each in loop.after} == {(4, 32)}
