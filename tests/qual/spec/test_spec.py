from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.builders.sheet import EVERY_DEPTH, PRODUCT, bound, errors, figure, loaded, promise

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.law import Striping
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import OF_HEAT, Accountable, Claim, Direction, Scope
from pytest_ssdqual.qual.spec.toml import DocumentError
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

GOOD = """
[product]
name = "ACME 9"
models = ["ACME-9*"]
capacity = "1.92 TB"
sequential_write = "450 MB/s"

[endurance]
tbw = "3,500 TB"

[[figure]]
rw = "randread"
bs = "4k"
queue_depths = [8]
iops = 1000
source = "sheet"

[[figure]]
rw = "randwrite"
bs = "4096"
queue_depths = [8, 32]
iops = 500
source = "sheet"

[[promise]]
claim = "p99_latency"
level = "raid5"
at_most = "2 ms"

[[promise]]
claim = "p99_latency"
workload = "randread_*"
at_most = "1.4 ms"

[[promise]]
claim = "steady_iops"
level = "raid1"
at_least = "900 IOPS"

[[promise]]
claim = "steady_iops"
min_percent_of_spec = 80
"""

READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
ONE, RAID0, RAID1, RAID5 = (Geometry.parse(text) for text in ("drivex1", "raid0x4", "raid1x2", "raid5x5"))


def test_a_file_becomes_base_units() -> None:
    acme = loaded(GOOD)
    assert (acme.key, acme.name, acme.product.models) == ("acme", "ACME 9", ["ACME-9*"])
    assert acme.product.capacity_bytes == 1_920 * 10**9
    assert acme.product.sequential_write_bytes_per_s == 450 * 10**6
    assert acme.endurance_bytes == 3_500 * 10**12
    assert acme.fits("ACME-9000 ")
    assert not acme.fits("ACME-8")


def test_the_first_promise_that_matches_decides() -> None:
    acme = loaded(GOOD)
    limit = acme.limit(Claim.P99_LATENCY, RAID5, READ)
    assert limit is not None
    assert (limit.bound, limit.unit, limit.direction) == (2_000_000, Unit.NANOSECONDS, Direction.AT_MOST)
    assert limit.source == "acme.toml promise[0]"
    assert bound(acme, Claim.P99_LATENCY, RAID0, READ) == 1_400_000


def test_percent_of_a_figure_goes_through_the_law_of_the_level() -> None:
    acme = loaded(GOOD)
    mixed = Workload("randrw", "4k", 8, 70)
    expected = {
        (RAID0, READ): 0.8 * 4 * 1_000,
        (RAID0, WRITE): 0.8 * 4 * 500,
        (RAID1, WRITE): 900,
        (RAID5, WRITE): 0.8 * 5 / (2 / 1_000 + 2 / 500),
        (RAID0, mixed): 0.8 * 4 / (0.7 / 1_000 + 0.3 / 500),
    }
    assert {place: bound(acme, Claim.STEADY_IOPS, *place) for place in expected} == pytest.approx(expected)


def test_a_figure_at_another_depth_or_size_promises_nothing() -> None:
    acme = loaded(GOOD)
    for workload in (READ.at(4), Workload("randread", "8k", 8), Workload("read", "4k", 8)):
        assert acme.limit(Claim.STEADY_IOPS, RAID0, workload) is None
        assert acme.why_no_limit(Claim.STEADY_IOPS, RAID0, workload).startswith("ACME 9 publishes")
    assert acme.limit(Claim.STEADY_IOPS, RAID0, WRITE.at(32)) is not None
    # A RAID 5 reads before it writes, and reads are published at 8 only.
    assert acme.limit(Claim.STEADY_IOPS, RAID5, WRITE.at(32)) is None


def test_a_claim_that_is_mentioned_is_promised_only_where_it_is() -> None:
    acme = loaded(GOOD)
    assert acme.limit(Claim.P99_LATENCY, RAID0, WRITE) is None
    assert "promises no p99" in acme.why_no_limit(Claim.P99_LATENCY, RAID0, WRITE)


def test_claim_without_promise_falls_back_to_the_defaults() -> None:
    limit = loaded(GOOD).limit(Claim.SCALING_SLOPE, RAID5, WRITE)
    assert limit is not None
    assert limit.source.startswith("default.toml promise[")
    assert limit == spec.default().limit(Claim.SCALING_SLOPE, RAID5, WRITE)


def test_default_percentages_are_of_the_products_own_figures() -> None:
    bare = loaded(GOOD.split("[[promise]]")[0])
    assert bound(bare, Claim.STEADY_IOPS, RAID0, READ) == pytest.approx(0.9 * 4_000)


def test_defaults_promise_only_what_holds_for_every_ssd() -> None:
    silent = set(Claim) - {each.claim for each in spec.default().promises}
    # About lots nothing can be promised: they have a plan.
    of_lots = {claim for claim in Claim if claim.scope is Scope.LOT}
    of_shapes = {Claim.QD_KNEE, Claim.QD_LATENCY_KNEE, Claim.QD_DEPENDENCE, Claim.MIX_RISE, Claim.BALANCED_GAIN}
    # A read that takes its turn has any rate beside a neighbour: it is what the drive's writes leave.
    of_shapes.add(Claim.NEIGHBOUR_IOPS)
    assert silent == {*of_shapes, Claim.ARRAY_EFFICIENCY, Claim.WRITE_AMPLIFICATION, *OF_HEAT, *of_lots}


def test_published_figures_are_promised_by_default() -> None:
    keys = {"iops": 100, "throughput": "9 MB/s", "mean_latency": "1 ms", "p99.9_latency": "8 ms", "settled_iops": 50}
    text = figure(workload="randwrite_4k_qd8", **keys).replace("p99.9_latency", '"p99.9_latency"')
    acme = loaded(PRODUCT + text)
    limits = [acme.limit(claim, ONE, WRITE) for claim in (Claim.STEADY_IOPS, Claim.THROUGHPUT, Claim.MEAN_LATENCY)]
    assert [each.bound for each in limits if each] == pytest.approx([90, 8_100_000, 1_110_000])
    others = (Claim.P99_9_LATENCY, Claim.SETTLED_IOPS, Claim.P99_99_LATENCY)
    more = [acme.limit(claim, ONE, WRITE) for claim in others]
    assert [each.bound if each else None for each in more] == [8_000_000, 45, None]


@pytest.mark.parametrize(
    ("claim", "text", "bound"),
    [
        ("scaling_deviation", '"5 %"', 5),
        ("scaling_slope", "0.95", 0.95),
        ("scaling_slope", '"0.95"', 0.95),
        ("latency_spread_over_time", '"3 x"', 3),
        ("latency_spread_between_widths", "2", 2),
        ("steady_iops", '"11,500 IOPS"', 11_500),
        ("p99_latency", '"200us"', 200_000),
        ("rebuild_time", '"2 h"', 7_200),
        ("rebuild_rate", '"20 MB/s"', 20_000_000),
        ("qd_knee", '"64"', 64),
        ("qd_knee", "64", 64),
        ("cliff_after", "0.9", 0.9),
    ],
)
def test_limits_in_the_unit_of_their_claim(claim: str, text: str, bound: float) -> None:
    head = GOOD.split("[[promise]]")[0]
    acme = loaded(f'{head}[[promise]]\nclaim = "{claim}"\n{Claim(claim).direction} = {text}')
    assert acme.promises[0].bound == bound


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"^gone\.toml: cannot be read: No such file"):
        spec.load(tmp_path / "gone.toml")
    with pytest.raises(DocumentError, match="default, intel-320, intel-910-400gb,"):
        spec.load("gone")
    assert errors("[product")[0].startswith("is not TOML: ")
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(DocumentError, match="is not UTF-8"):
        spec.load(tmp_path / "latin.toml")


LAWLESS = {
    "sequential": Workload("read", "4k", 8),
    "half sequential": Workload("randread", "4k", 8, random_percent=75),
    "unaligned": Workload("randread", "4k", 8, offset="512"),
    "mixed sizes": Workload("randread", "4k/60:8k/40", 8, name="mixture"),
    "streams": Workload("randread+randwrite", "4k", 8),
    "a depth that no drive sees": Workload("randread", "4k", 2, threads=1),
}


@pytest.mark.parametrize("workload", LAWLESS.values(), ids=LAWLESS)
def test_where_there_is_no_law_nothing_is_calculated(workload: Workload) -> None:
    model = spec.load(EVERY_DEPTH)
    assert model.expected_iops(RAID0, workload) is None
    assert model.limit(Claim.STEADY_IOPS, RAID0, workload) is None
    reason = model.why_no_limit(Claim.STEADY_IOPS, RAID0, workload)
    assert "publishes no" in reason
    assert str(workload) in reason


def test_no_law_holds_while_an_array_is_rebuilt() -> None:
    model, array = spec.load(EVERY_DEPTH), Geometry.parse("raid5x4-1rebuilding")
    assert model.expected_iops(array, READ) is None
    assert model.expected_iops(array.healthy, READ) == 1_200


def test_drives_side_by_side_are_held_to_one_each() -> None:
    acme = loaded(GOOD)
    side_by_side = Geometry.parse("drivex4")
    assert acme.expected_iops(side_by_side, READ) == 1_000
    assert bound(acme, Claim.STEADY_IOPS, side_by_side, READ) == 800
    # Four threads on each drive, as the method says, and not one on each of four.
    assert acme.expected_iops(side_by_side, Workload("randread", "4k", 2, threads=4)) == 1_000
    assert acme.expected_iops(RAID0, Workload("randread", "4k", 8, threads=4)) == 4_000


def test_the_reason_to_skip_names_the_figure_that_is_missing() -> None:
    s3500 = spec.load("intel-dc-s3500-480gb")
    assert s3500.why_no_limit(Claim.STEADY_IOPS, RAID5, WRITE.at(8)) == (
        "Intel SSD DC S3500 480 GB publishes no figure for randread 4k at queue depth 8, "
        f"which randwrite_4k_qd8 on {RAID5} is held to"
    )
    lawless = s3500.why_no_limit(Claim.STEADY_IOPS, RAID5, Workload("write", "128k", 8))
    assert lawless.startswith(
        f"Intel SSD DC S3500 480 GB publishes no steady IOPS of write_128k_qd8 on {RAID5}, and no law"
    )


def test_percentage_is_promised_of_arrays_with_a_law() -> None:
    """Each transfer of 128 KiB is two I/Os at chunks of 64 KiB: drives that are bound by IOPS do half as many."""
    text = PRODUCT + promise(claim="steady_iops", min_percent_of_spec=90)
    text += figure(rw="randread", bs="128k", queue_depths=[8], iops=100)
    acme, wide = loaded(text), Workload("randread", "128k", 8)
    array, drives = Geometry.parse("raid5x4"), Geometry.parse("drivex4")
    assert acme.limit(Claim.STEADY_IOPS, array, wide) is None
    assert "array.chunk" in acme.why_no_limit(Claim.STEADY_IOPS, array, wide)
    assert acme.lacks_figure(Claim.STEADY_IOPS, array, wide)
    for judged, on in ((acme, drives), (acme.on(Striping(128 << 10)), array)):
        assert judged.limit(Claim.STEADY_IOPS, on, wide) is not None
        assert not judged.lacks_figure(Claim.STEADY_IOPS, on, wide)
    # What the user promises in numbers needs no law.
    numbers = loaded(PRODUCT + promise(claim="steady_iops", at_least="100 IOPS"))
    assert numbers.limit(Claim.STEADY_IOPS, array, wide) is not None


@pytest.mark.parametrize("more", [{"zipf": 120}, {"region_percent": 10}, {"sync": True}, {"compressible_percent": 50}])
def test_no_law_carries_figures_over_to_what_is_not_usual(more: dict[str, Any]) -> None:
    sheet, two = spec.load(EVERY_DEPTH), Geometry.parse("raid0x2")
    assert sheet.expected_iops(two, Workload("randwrite", "4k", 8)) == 600
    assert sheet.expected_iops(two, Workload("randwrite", "4k", 8, **more)) is None


def test_failure_blames_drives_unless_a_system_is_accepted() -> None:
    text = PRODUCT + promise(claim="steady_iops", at_least="10 IOPS")
    of_drives = loaded(text)
    assert of_drives.subject(Claim.STEADY_IOPS, RAID0, READ) is Accountable.DRIVE
    assert of_drives.subject(Claim.ARRAY_EFFICIENCY, RAID0, READ) is Accountable.SYSTEM
    of_system = loaded(text.replace("[product]", '[product]\nsubject = "system"'))
    assert of_system.subject(Claim.STEADY_IOPS, RAID0, READ) is Accountable.SYSTEM
    mixed = loaded(PRODUCT + promise(claim="steady_iops", at_least="10 IOPS", subject="system"))
    assert mixed.subject(Claim.STEADY_IOPS, RAID0, READ) is Accountable.SYSTEM
    assert mixed.subject(Claim.P99_LATENCY, RAID0, READ) is Accountable.DRIVE
