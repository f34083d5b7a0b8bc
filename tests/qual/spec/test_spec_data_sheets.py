"""The data sheets that come with the package."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from support.builders.sheet import EVERY_DEPTH, bound

from pytest_ssdqual.qual.methods import toms_s3700
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import OF_HEAT, Claim, Scope
from pytest_ssdqual.qual.workload.workload import Workload

ONE = Geometry.parse("drivex1")
READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)

MODELS = Path(__file__).parents[2] / "data" / "models" / "models.json"
#: What a source begins with: who published the figure, or who measured it.
ORIGINS = ("maker: ", "second-hand: ", "measured: ")
CURRENT = [name for name in spec.shipped() if not name.startswith(("default", "intel", "stec", "ssdqual"))]


def _listed() -> Iterator[tuple[str, str]]:
    """Each model string of the list, with the name of its sheet; of a neighbour, which has none, an empty one."""
    listed: dict[str, dict[str, list[str]]] = json.loads(MODELS.read_text())
    for key, models in listed["sheets"].items():
        yield from ((model, key) for model in models)
    for models in listed["neighbours"].values():
        yield from ((model, "") for model in models)


def _workload(text: str) -> Workload:
    """By its id; of a profile the one that the methods have."""
    profiles = {str(each): each for each in toms_s3700.MATRIX}
    return profiles[text] if text in profiles else Workload.parse(text)


@pytest.mark.parametrize("name", spec.shipped())
def test_what_is_shipped_is_in_order(name: str) -> None:
    sheet = spec.load(name)
    assert sheet.key == name
    assert sheet.product.models or not name.startswith("ssdqual")
    assert not list(sheet.doubts()) or name.startswith("ssdqual")
    # Every figure can be asked for.
    for each in sheet.figures:
        assert all(array.healthy == array for array in each.arrays)
        assert all(_workload(text) for text in each.workloads)


def test_a_drive_is_known_by_its_model() -> None:
    found = spec.find_by_model("INTEL SSDSC2BB480G4")
    assert found is not None
    assert found.key == "intel-dc-s3500-480gb"
    assert spec.find_by_model("Samsung SSD 870") is None


def test_each_public_model_string_has_its_sheet_alone() -> None:
    """A neighbour, of another capacity or class, has none: its drives would be judged by another drive's figures."""
    sheets = [spec.load(name) for name in spec.shipped()]
    fitting = [(model, [sheet.key for sheet in sheets if sheet.fits(model)]) for model, _ in _listed()]
    assert fitting == [(model, [key] if key else []) for model, key in _listed()]


def test_each_glob_of_a_current_drive_fits_a_public_model() -> None:
    models = [model for model, key in _listed() if key]
    globs = [glob for sheet in map(spec.load, CURRENT) for glob in sheet.product.models]
    assert [glob for glob in globs if not any(fnmatchcase(model, glob) for model in models)] == []


def test_no_model_has_two_shipped_sheets() -> None:
    sheets = [spec.load(name) for name in spec.shipped()]
    patterns = [(sheet.key, pattern.strip("*")) for sheet in sheets for pattern in sheet.product.models]
    for key, bare in patterns:
        assert [sheet.key for sheet in sheets if sheet.fits(bare)] in ([], [key])


@pytest.mark.parametrize("name", [name for name in spec.shipped() if name not in ("default", "ssdqual-sm300")])
def test_each_figure_says_whether_the_maker_published_it(name: str) -> None:
    sheet = spec.load(name)
    sources = [sheet.product.source, *(figure.source for figure in sheet.figures)]
    assert [source for source in sources if not source.startswith(ORIGINS)] == []


def test_all_but_three_current_drives_have_random_writes() -> None:
    sheets = map(spec.load, CURRENT)
    without = [sheet.key for sheet in sheets if not any(each.rw == "randwrite" and each.iops for each in sheet.figures)]
    assert without == ["kioxia-pm7-r-7t68", "samsung-pm1653-7t68", "solidigm-d5-p5430-30t72"]


@pytest.mark.parametrize(
    ("sheet", "workload", "value", "approximate"),
    [
        ("kioxia-cd8-r-3t84", "randwrite_4k", 200_000, True),
        ("solidigm-d5-p5336-61t44", "randwrite_16k", 38_000, True),
        ("solidigm-d5-p5336-122t88", "randwrite_16k", 19_000, False),
        ("micron-6500-ion-30t72", "randwrite_4k", 200_000, False),
    ],
)
def test_random_writes_of_current_drives_have_their_size(
    sheet: str, workload: str, value: float, approximate: bool
) -> None:
    rw, size = workload.split("_")
    figures = [figure for figure in spec.load(sheet).figures if (figure.rw, figure.bs) == (rw, (size,)) and figure.iops]
    assert [(figure.iops, figure.approximate) for figure in figures] == [(value, approximate)]


def test_intels_mirror_without_a_figure_is_held_to_four_drives() -> None:
    sheet, eight = spec.load("intel-dc-s3500-480gb"), Geometry.parse("raid10x8")
    limits = [sheet.limit(Claim.STEADY_IOPS, eight, WRITE.at(depth)) for depth in (1, 4)]
    assert [limit.bound for limit in limits if limit] == pytest.approx([50_000, 0.9 * 46_000])


@pytest.mark.parametrize(
    ("sheet", "claim", "array", "workload", "value", "approximate"),
    [
        ("intel-dc-s3500-480gb", "steady_iops", "drivex1", "randread_4k_qd32", 75_000, False),
        ("intel-dc-s3500-480gb", "mean_latency", "raid1x2", "randwrite_4k_qd8", 1_400_000, True),
        ("intel-dc-s3500-800gb", "steady_iops", "raid5x8", "randrw70_4k_qd8", 75_000, False),
        ("intel-dc-s3500-raid0", "throughput", "raid0x6", "randread_64k_t2xqd32", 1_600_000_000, True),
        ("intel-dc-s3700-800gb", "steady_iops", "raid0x24", "database_qd32", 500_000, True),
        ("intel-910-400gb", "read_mean_latency", "raid0x4", "randread+randwrite_4k_t1xqd8", 210_000, False),
        ("intel-910-400gb", "throughput", "raid0x4", "read_256k_s2_qd1", 1_680_000_000, False),
        ("intel-320", "settled_iops", "drivex1", "randwrite_4k_t8xqd16", 300, True),
        ("stec-unnamed-sata-ssd", "fresh_iops", "drivex3", "randwrite_8k_qd8", 2_700, True),
    ],
)
def test_published_figures_are_found(
    sheet: str, claim: str, array: str, workload: str, value: float, approximate: bool
) -> None:
    found = spec.load(sheet).published(Claim(claim), Geometry.parse(array), _workload(workload))
    assert found is not None
    assert (found.value, found.approximate) == (value, approximate)
    assert found.source


def test_a_latency_that_contradicts_its_iops_is_left_out() -> None:
    sheet, array = spec.load("intel-910-400gb"), Geometry.parse("raid0x4")
    bad = Workload("randwrite", "4k", 64, threads=1)
    assert sheet.published(Claim.STEADY_IOPS, array, bad) is not None
    assert sheet.published(Claim.MEAN_LATENCY, array, bad) is None


@pytest.mark.parametrize("name", spec.shipped())
def test_published_iops_and_latencies_obey_littles_law(name: str) -> None:
    sheet = spec.load(name)
    for each in sheet.figures:
        known = dict(each.quantities)
        for array, text in ((array, text) for array in each.arrays for text in each.workloads):
            load = _workload(text)
            outstanding = load.outstanding(array.width) / (2 if load.has_streams else 1)
            for rate, latency in ((Claim.STEADY_IOPS, Claim.MEAN_LATENCY), (Claim.READ_IOPS, Claim.READ_MEAN_LATENCY)):
                if rate in known and latency in known:
                    assert known[rate] * known[latency] / 1e9 == pytest.approx(outstanding, rel=0.05), text


def test_intels_array_is_held_to_what_it_did_not_to_the_law() -> None:
    sheet, eight = spec.load("intel-dc-s3500-480gb"), Geometry.parse("raid10x8")
    assert bound(sheet, Claim.STEADY_IOPS, eight, READ) == 200_000  # "more than": a bound has no tolerance
    assert sheet.expected_iops(eight, READ) is None
    assert sheet.expected_iops(eight, READ.at(32)) == 8 * 75_000
    assert bound(sheet, Claim.MEAN_LATENCY, eight, WRITE.at(1)) == 200_000


def test_arrays_are_held_to_the_law_of_a_depth_that_is_published() -> None:
    sheet = spec.load(EVERY_DEPTH)
    for text, iops in (("drivex1", 300), ("raid0x8", 2_400), ("raid10x4", 600), ("raid5x3", 300), ("raid6x8", 400)):
        assert bound(sheet, Claim.STEADY_IOPS, Geometry.parse(text), WRITE) == pytest.approx(0.8 * iops)
    assert sheet.expected_iops(Geometry.parse("raid5x4"), Workload("randwrite", "4k", 32, threads=4)) == 300
    assert sheet.expected_iops(Geometry.parse("raid5x4-1failed"), READ) == pytest.approx(600)
    sequential = sheet.published(Claim.THROUGHPUT, ONE, Workload("write", "128k", 1))
    assert sequential is not None
    assert sequential.value == 300 * (128 << 10)


def test_the_scale_model_publishes_maxima_as_makers_do() -> None:
    """Its arrays have limits by the chain, which rests on what its bare drives do at the one depth of its sheet."""
    model = spec.find_by_model("SSDQUAL-SM300-R2")
    assert model is not None
    assert {each.rw for each in model.figures} == {"randread", "randwrite", "read", "write"}
    array = Geometry.parse("raid5x4")
    assert model.limit(Claim.STEADY_IOPS, array, WRITE) is None
    chained = model.chained(Claim.STEADY_IOPS, array, WRITE)
    assert chained is not None
    assert {str(each.workload) for each in chained.anchors} == {"randread_4k_qd32", "randwrite_4k_qd32"}


def test_the_scale_model_promises_what_can_be_measured_of_it() -> None:
    model = spec.load("ssdqual-sm300")
    promised = {each.claim for each in model.promises}
    # 1,500 I/Os of a window have no such quantile, and without flash there is no cliff.
    silent = {Claim.P99_9_LATENCY, Claim.P99_99_LATENCY, Claim.P99_999_LATENCY, Claim.CLIFF_AFTER, *OF_HEAT}
    # QEMU has no flash, and no count of its writes to it.
    silent |= {Claim.WRITE_AMPLIFICATION}
    # Its bursts after an idle moment are QEMU's, and nothing is published of them.
    silent |= {Claim.SLOWEST_SECOND, Claim.FASTEST_SECOND, Claim.FASTEST_TO_SLOWEST_SECOND}
    assert {claim for claim in Claim if claim.scope is not Scope.LOT} - promised == silent
    assert all(model.limit(claim, ONE, WRITE) is None for claim in silent)


def test_other_loads_of_the_sheet_have_the_promises_of_any_drive() -> None:
    sheet = spec.load("intel-dc-s3700-800gb")
    assert bound(sheet, Claim.SCALING_SLOPE, Geometry.parse("raid0x24"), Workload("randread", "4k", 8)) == 0.9
