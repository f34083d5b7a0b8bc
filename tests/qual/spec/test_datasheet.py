from __future__ import annotations

from typing import Any

import pytest
from support.builders.sheet import PRODUCT, errors, figure, loaded, promise

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.spec.datasheet import DEFAULT_CONDITIONS, QUANTITIES, DataSheetValue
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

READ = figure(rw="randread", bs=["4k", "8k"], queue_depths=[8, 32], iops=1_000, mean_latency="8 ms")
ONE, FOUR_ALONE = Geometry.parse("drivex1"), Geometry.parse("drivex4")
READ_8 = Workload("randread", "4k", 8)
_RANDOM = ("randread", "randwrite")


def value(spec: Spec, claim: str, array: str, workload: Workload) -> float | None:
    found = spec.published(Claim(claim), Geometry.parse(array), workload)
    return found.value if found else None


def latencies(**given: str) -> str:
    return figure(rw="randread", bs="4k", queue_depths=[1], **given)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"p50_latency": "90 us"}, {"p99_latency": "80 us"}),
        ({"mean_latency": "90 us"}, {"p99_latency": "80 us"}),
        ({"p99_latency": "1 ms"}, {"max_latency": "0.9 ms"}),
    ],
)
def test_latencies_that_contradict_each_other_are_refused(first: dict[str, str], second: dict[str, str]) -> None:
    for index, text in enumerate((latencies(**first, **second), latencies(**first) + latencies(**second))):
        (error,) = errors(PRODUCT + text)
        assert error.startswith(f"figure[{index}]")
    elsewhere = figure(rw="randread", bs="4k", queue_depths=[2], **second)
    assert loaded(PRODUCT + latencies(**first) + elsewhere)


def test_a_mean_may_be_above_low_percentiles() -> None:
    assert loaded(PRODUCT + latencies(p50_latency="1 ms", p90_latency="2 ms", mean_latency="3 ms"))


@pytest.mark.parametrize(
    ("drive_class", "bs", "depth", "iops", "is_doubtful"),
    [
        ("nvme_gen4", "4k", 32, 75, True),
        ("nvme_gen4", "4k", 1, 5_000, False),
        ("nvme_gen4", "4k", 8, 29_000, True),
        ("nvme_gen4", "16k", 8, 29_000, False),
        ("nvme_gen4", "512", 8, 29_000, False),
        ("nvme", "4k", 8, 29_000, False),
        ("", "4k", 8, 75, True),
        ("emulated", "4k", 8, 75, False),
    ],
)
def test_figures_below_the_floor_of_the_class_are_doubtful(
    drive_class: str, bs: str, depth: int, iops: int, *, is_doubtful: bool
) -> None:
    product = PRODUCT + (f'class = "{drive_class}"\n' if drive_class else "")
    acme = loaded(product + figure(rw="randread", bs=bs, queue_depths=[depth], iops=iops))
    assert bool(list(acme.doubts())) == is_doubtful


def test_figure_of_one_drive_holds_for_its_sizes_and_depths() -> None:
    acme = loaded(PRODUCT + READ)
    found = acme.published(Claim.STEADY_IOPS, ONE, READ_8)
    assert found == Published(1_000, Unit.IOPS, "sheet", approximate=False)
    assert value(acme, "mean_latency", "drivex1", Workload("randread", "8k", 32)) == 8_000_000
    for other in (
        READ_8.at(4),
        Workload("randread", "16k", 8),
        Workload("randwrite", "4k", 8),
        Workload("read", "4k", 8),
    ):
        assert acme.published(Claim.STEADY_IOPS, ONE, other) is None
    assert acme.published(Claim.MAX_LATENCY, ONE, READ_8) is None


def test_drives_side_by_side_have_the_figures_of_one_drive() -> None:
    acme = loaded(PRODUCT + READ)
    assert acme.published(Claim.STEADY_IOPS, FOUR_ALONE, READ_8) == acme.published(Claim.STEADY_IOPS, ONE, READ_8)
    assert acme.published(Claim.STEADY_IOPS, Geometry.parse("raid0x4"), READ_8) is None


@pytest.mark.parametrize("text", ["randread_4k_t1xqd8", "randread_4k_t4xqd2", "randread_4k_s2_qd4"])
def test_a_drive_only_knows_how_many_ios_are_waiting(text: str) -> None:
    acme = loaded(PRODUCT + READ)
    assert value(acme, "steady_iops", "drivex3", Workload.parse(text)) == 1_000


@pytest.mark.parametrize("text", ["randread_4k_t4xqd4", "randread_4k_off512_qd8", "randread_4k_rnd75_qd8"])
def test_what_is_asked_of_a_drive_must_be_what_is_published(text: str) -> None:
    assert value(loaded(PRODUCT + READ), "steady_iops", "drivex1", Workload.parse(text)) is None


def test_independent_streams_are_never_one_of_them() -> None:
    streams = figure(workload="randread+randwrite_4k_qd8", read_iops=100, write_iops=200)
    acme = loaded(PRODUCT + READ + streams)
    both = Workload("randread+randwrite", "4k", 8)
    assert value(acme, "read_iops", "drivex1", both) == 100
    assert value(acme, "write_iops", "drivex1", both) == 200
    assert value(acme, "steady_iops", "drivex1", both) is None
    # 8 of each are 16 outstanding, but not 16 of each.
    assert value(acme, "read_iops", "drivex1", both.at(4)) is None


def test_a_figure_of_an_array_is_for_that_array_and_workload() -> None:
    text = figure(array=["raid10x4", "raid10x8"], workload="randrw70_4k_qd8", iops=5_000, approximate=True)
    acme = loaded(PRODUCT + text)
    mixed = Workload("randrw", "4k", 8, read_percent=70)
    for array in ("raid10x4", "raid10x8"):
        found = acme.published(Claim.STEADY_IOPS, Geometry.parse(array), mixed)
        assert found is not None
        assert (found.value, found.approximate, str(found)) == (5_000, True, "about 5,000 IOPS")
    assert value(acme, "steady_iops", "raid10x6", mixed) is None
    assert value(acme, "steady_iops", "raid0x4", mixed) is None
    assert value(acme, "steady_iops", "drivex1", mixed) is None
    assert value(acme, "steady_iops", "raid10x4", mixed.at(4)) is None


def test_of_an_array_the_number_of_jobs_counts() -> None:
    acme = loaded(PRODUCT + figure(array="raid0x4", workload="randread_4k_t1xqd32", iops=9_000))
    assert value(acme, "steady_iops", "raid0x4", Workload("randread", "4k", 32, threads=1)) == 9_000
    assert value(acme, "steady_iops", "raid0x4", READ_8) is None  # 32 outstanding, too, but of four jobs
    acme = loaded(PRODUCT + figure(array="raid0x4", workload="randread_4k_qd8", iops=9_000))
    assert value(acme, "steady_iops", "raid0x4", Workload("randread", "4k", 8, threads=1)) is None


def test_nothing_is_published_of_arrays_with_members_missing() -> None:
    acme = loaded(PRODUCT + figure(array="raid5x4", workload="randread_4k_qd8", iops=5_000))
    assert value(acme, "steady_iops", "raid5x4", READ_8) == 5_000
    assert value(acme, "steady_iops", "raid5x4-1failed", READ_8) is None
    assert value(acme, "steady_iops", "raid5x4-1rebuilding", READ_8) is None


def test_profiles_are_found_by_their_name() -> None:
    text = figure(array="raid0x4", workload=["fileserver_qd8", "fileserver_t2xqd32"], iops=50_000)
    acme = loaded(PRODUCT + text)
    profile = Workload("randrw", "4k/60:64k/40", 8, read_percent=80, name="fileserver")
    assert value(acme, "steady_iops", "raid0x4", profile) == 50_000
    assert value(acme, "steady_iops", "raid0x4", Workload("randread", "4k", 32, threads=2, name="fileserver")) == 50_000
    assert value(acme, "steady_iops", "raid0x4", profile.at(4)) is None


@pytest.mark.parametrize(
    "more",
    [
        {"align": "512"},
        {"zipf": 120, "offset": "512"},
        {"region_percent": 10, "sync": True, "fsync": 3},
        {"compressible_percent": 50, "dedupe_percent": 50, "streams_per_drive": 2},
    ],
)
def test_a_profile_is_found_by_its_name_whatever_else_its_id_has(more: dict[str, Any]) -> None:
    profile = Workload("randrw", "4k/60:64k/40", 8, read_percent=80, name="fileserver", **more)
    acme = loaded(PRODUCT + figure(array="raid0x4", workload=str(profile), iops=50_000))
    assert value(acme, "steady_iops", "raid0x4", profile) == 50_000


def test_an_id_has_one_spelling() -> None:
    acme = loaded(PRODUCT + figure(workload="randread_4096_qd8", iops=7))
    assert value(acme, "steady_iops", "drivex1", READ_8) == 7


def test_every_claim_about_one_measurement_can_be_published() -> None:
    keys = {field.alias or name for name, field in DataSheetValue.model_fields.items()}
    described = {"rw", "bs", "queue_depths", "conditions", "workload", "array", "source", "approximate", "bound"}
    assert keys - described == set(QUANTITIES.values())


@pytest.mark.parametrize(
    ("key", "text", "found"),
    [
        ("iops", '"75,000 IOPS"', 75_000),
        ("iops", "75_000", 75_000),
        ("read_iops", "10", 10),
        ("throughput", '"2300 MB/s"', 2_300_000_000),
        ("mean_latency", '"140 us"', 140_000),
        ('"p99.9_latency"', '"2 ms"', 2_000_000),
        ('"p99.999_latency"', '"2 ms"', 2_000_000),
        ("worst_second", "0.49", 0.49),
        ("fresh_to_steady", '"15.9 x"', 15.9),
        ("fresh_to_steady", '"150 x"', 150),
    ],
)
def test_quantities_are_in_the_unit_of_their_claim(key: str, text: str, found: float) -> None:
    head = figure(workload="randwrite_4k_qd8").rstrip()
    acme = loaded(f"{PRODUCT}{head}\n{key} = {text}\n")
    claim = "steady_iops" if key == "iops" else key.strip('"')
    assert value(acme, claim, "drivex1", Workload("randwrite", "4k", 8)) == found


UNPUBLISHED = figure(rw="randread", bs="4k", conditions="unpublished", iops=1_000_000)


def test_figure_without_conditions_is_judged_at_the_default_ones() -> None:
    acme = loaded(PRODUCT + UNPUBLISHED)
    default = Workload.parse(f"randread_4k_{DEFAULT_CONDITIONS['randread']}")
    found = acme.published(Claim.STEADY_IOPS, FOUR_ALONE, default)
    assert found is not None
    assert (found.value, found.approximate) == (1_000_000, True)
    assert "unpublished" in found.source
    limit = acme.limit(Claim.STEADY_IOPS, FOUR_ALONE, default)
    assert limit is not None
    assert "about" in limit.source
    assert "approximately" in limit.source


@pytest.mark.parametrize("text", ["randread_4k_qd1", "randread_4k_qd32", "randread_4k_qd512", "randread_4k_t8xqd32"])
def test_figure_without_conditions_holds_nowhere_else(text: str) -> None:
    acme = loaded(PRODUCT + UNPUBLISHED)
    assert acme.published(Claim.STEADY_IOPS, ONE, Workload.parse(text)) is None
    assert acme.expected_iops(Geometry.parse("raid0x4"), Workload.parse(text)) is None


@pytest.mark.parametrize("text", ["randread_4k_qd32", "randread_4k_t4xqd32", "randrw70_4k_qd32"])
def test_no_array_follows_from_a_sata_figure_without_conditions(text: str) -> None:
    """The program's conditions of a SATA drive are a plain depth, which the law of an array would find."""
    writes = figure(rw="randwrite", bs="4k", conditions="unpublished", iops=30_000)
    acme = loaded(PRODUCT + 'class = "sata"\n' + UNPUBLISHED + writes)
    assert value(acme, "steady_iops", "drivex1", READ_8.at(32)) == 1_000_000
    array = Geometry.parse("raid0x4")
    assert acme.expected_iops(array, Workload.parse(text)) is None
    assert acme.limit(Claim.STEADY_IOPS, array, Workload.parse(text)) is None
    assert "publishes no figure" in acme.why_no_limit(Claim.STEADY_IOPS, array, Workload.parse(text))
    assert acme.limit(Claim.STEADY_IOPS, ONE, Workload.parse("randrw70_4k_qd32")) is None


def test_limit_from_an_approximate_figure_is_approximate() -> None:
    about = figure(rw="randwrite", bs="4k", queue_depths=[8], iops=500, approximate=True)
    acme = loaded(PRODUCT + figure(rw="randread", bs="4k", queue_depths=[8], iops=1_000) + about)
    reads, writes = (acme.limit(Claim.STEADY_IOPS, Geometry.parse("raid0x4"), Workload(rw, "4k", 8)) for rw in _RANDOM)
    assert reads is not None
    assert writes is not None
    assert "of 4,000 IOPS" in reads.source
    assert "about 2,000 IOPS" in writes.source


def test_latency_without_conditions_is_of_one_io_at_a_time() -> None:
    acme = loaded(PRODUCT + figure(rw="randread", bs="4k", conditions="unpublished", p50_latency="80 us"))
    assert value(acme, "p50_latency", "drivex1", READ_8.at(1)) == 80_000
    assert value(acme, "p50_latency", "drivex1", READ_8) is None


def test_a_bound_has_no_tolerance() -> None:
    promised = promise(claim="steady_iops", min_percent_of_spec=90)
    published = {"rw": "randread", "bs": "4k", "queue_depths": [8], "iops": 1000}
    place = Claim.STEADY_IOPS, Geometry.parse("drivex1"), Workload("randread", "4k", 8)
    bounds = []
    for more in ({}, {"bound": True}):
        limit = loaded(PRODUCT + figure(**published, **more) + promised).limit(*place)
        assert limit
        bounds.append(limit.bound)
    assert bounds == [900, 1000]
