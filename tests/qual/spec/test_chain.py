"""The chain sheet → drive → array: which published figures an array rests on whose depth no sheet states."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ssdqual import INTEL_RAID
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import datasheet, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.workload import Workload

KINDS = ("randread", "randwrite")
ARRAYS = tuple(map(Geometry.parse, ("raid0x2", "raid1x2", "raid5x3", "raid5x8", "raid6x8", "raid10x4")))
RAID5X8, WRITES = Geometry.parse("raid5x8"), Workload("randwrite", "4k", 8)
PRODUCT = '[product]\nname = "ACME 9"\nmodels = []\n'


def sheet(tmp_path: Path, *figures: str) -> Spec:
    path = tmp_path / "acme.toml"
    path.write_text(PRODUCT + "".join(f'[[figure]]\n{each}\nsource = "ACME"\n' for each in figures))
    return spec.load(path)


READS = 'rw = "randread"\nbs = "4k"\nconditions = "unpublished"\niops = 1_000_000'
WRITTEN = 'rw = "randwrite"\nbs = "4k"\nconditions = "unpublished"\niops = 200_000'
WRITTEN_16K = 'rw = "randwrite"\nbs = "16k"\nconditions = "unpublished"\niops = 40_000'


def shipped_with_maxima() -> list[Spec]:
    sheets = map(spec.load, spec.shipped())
    return [each for each in sheets if datasheet.anchors(each.figures, KINDS, "4k")]


def test_three_of_four_sheets_publish_both_maxima() -> None:
    assert len(shipped_with_maxima()) >= 0.75 * len(spec.shipped())


@pytest.mark.parametrize("of", [pytest.param(each, id=each.key) for each in shipped_with_maxima()])
def test_every_array_of_a_sheet_with_both_maxima_has_a_limit(of: Spec) -> None:
    for geometry in ARRAYS:
        for workload in INTEL_RAID:
            place = Claim.STEADY_IOPS, geometry, workload
            assert (of.limit(*place) is None) != (of.chained(*place) is None), f"{geometry} {workload}"
            assert not of.lacks_figure(*place)


def test_an_array_rests_on_the_kinds_of_io_that_its_members_do(tmp_path: Path) -> None:
    whole = sheet(tmp_path, READS, WRITTEN)

    def rests_on(array: str, load: Workload) -> list[str]:
        promise = whole.chained(Claim.STEADY_IOPS, Geometry.parse(array), load)
        return [anchor.workload.rw for anchor in promise.anchors] if promise else []

    assert rests_on("raid5x8", WRITES) == ["randread", "randwrite"]  # parity is read first
    assert rests_on("raid10x4", WRITES) == ["randwrite"]
    assert rests_on("raid0x4", Workload("randread", "4k", 8)) == ["randread"]


def test_no_chain_without_the_figure_the_law_or_the_array(tmp_path: Path) -> None:
    of_reads = sheet(tmp_path, READS)
    assert of_reads.chained(Claim.STEADY_IOPS, RAID5X8, WRITES) is None
    assert of_reads.lacks_figure(Claim.STEADY_IOPS, RAID5X8, WRITES)
    whole = sheet(tmp_path, READS, WRITTEN)
    assert whole.chained(Claim.P99_LATENCY, RAID5X8, WRITES) is None
    assert whole.chained(Claim.STEADY_IOPS, Geometry.parse("drivex8"), WRITES) is None
    assert whole.chained(Claim.STEADY_IOPS, RAID5X8, Workload("randwrite", "128k", 8)) is None


def test_anchor_is_the_nearest_size_then_the_highest_rate(tmp_path: Path) -> None:
    of_depths = 'rw = "randread"\nbs = "4k"\nqueue_depths = [{}]\niops = {}'
    whole = sheet(tmp_path, of_depths.format(1, 10_000), of_depths.format(128, 900_000), WRITTEN, WRITTEN_16K)
    (reads, writes) = datasheet.anchors(whole.figures, KINDS, "4k")
    assert (reads.workload.qd_per_drive, reads.published.value) == (128, 900_000)
    assert writes.workload.bs == "4k"
    assert [each.workload.bs for each in datasheet.anchors(whole.figures, ("randwrite",), "64k")] == ["16k"]


def test_a_figure_of_the_depth_itself_needs_no_chain(tmp_path: Path) -> None:
    depths = "queue_depths = [8]\niops"
    both = [each.replace('conditions = "unpublished"\niops', depths) for each in (READS, WRITTEN)]
    own = sheet(tmp_path, *both)
    assert own.limit(Claim.STEADY_IOPS, RAID5X8, WRITES)
    assert own.chained(Claim.STEADY_IOPS, RAID5X8, WRITES) is None
