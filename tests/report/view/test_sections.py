from __future__ import annotations

from dataclasses import replace

from support.builders.evidence import claimed
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import About, Evidence, Part
from pytest_ssdqual.report.view.sections import saturations, series


def point(name: str, outstanding: float, iops: float, latency_ns: float, *published: Published) -> Part:
    figures = {"outstanding": outstanding, "iops": iops, "mean_latency_ns": latency_ns}
    return Part(name, figures, published=published)


def curve(evidence: Evidence, group: str, *points: Part) -> Evidence:
    workloads = tuple(each.name for each in points)
    return replace(evidence, about=About.CURVE, group=group, workloads=workloads, points=points)


def drawn(*evidence: Evidence) -> list[str]:
    return [line.text for line in series(evidence, 100)]


SHALLOW = point(
    "randread_4k_t1xqd1", 1, 7_900, 125_000,
    Published(7_681, Unit.IOPS, "habr.com 156147"), Published(127_000, Unit.NANOSECONDS, "habr.com 156147"),
)  # fmt: skip
DEEP = point(
    "randread_4k_t1xqd1024",
    1024,
    150_000,
    6_800_000,
    Published(148_445, Unit.IOPS, "habr.com 156147", approximate=True),
)
MIX, PURE = point("randrw50_8k_qd8", 8, 2_000, 4e6), point("randread_8k_qd8", 8, 9_000, 9e5)


def test_depths_beside_the_published_ones() -> None:
    gain = curve(claimed(Claim.QD_GAIN, "raid0x4", value=19, bound=1), "randread_4k_t1xqd1to1024", SHALLOW, DEEP)
    golden.same("tables.txt", drawn(gain, replace(gain, claim="qd_knee")))


def test_workloads_of_one_depth_are_named() -> None:
    mixes = curve(claimed(Claim.BATHTUB_DEPTH, "drivex3", value=0.5, bound=0.1), "mixes_8k_qd8", PURE, MIX)
    golden.same("tables.txt", drawn(mixes))


def test_a_curve_with_points_in_other_tables_is_not_drawn_again() -> None:
    mixes = curve(claimed(Claim.BATHTUB_DEPTH, "raid0x2", value=0.5, bound=0.1), "mixes", PURE, MIX)
    alone = [claimed(Claim.STEADY_IOPS, "raid0x2", Workload.parse(each.name), value=9, bound=1) for each in (PURE, MIX)]
    assert drawn(mixes, alone[0]) != []
    assert drawn(mixes, *alone) == []
    published = curve(mixes, "depths", SHALLOW)
    ours = claimed(Claim.STEADY_IOPS, "raid0x2", Workload.parse(SHALLOW.name), value=9, bound=1)
    assert drawn(published, ours) != []


def saturated(evidence: Evidence, worst: str = "", **figures: float | None) -> Evidence:
    found = {name: value for name, value in figures.items()}
    return replace(evidence, about=About.SATURATION, figures=found, worst=worst)


def test_from_fresh_to_settled() -> None:
    writes = Workload("randwrite", "4k", 8)
    fresh = claimed(Claim.FRESH_IOPS, "raid0x4", writes, value=2_700, bound=1)
    told = saturated(
        fresh, fresh_iops=2_700, cliff_capacities=1.12, cliff_s=754, settled_iops=170, settled_capacities=2.3,
        settled_s=3_720, capacities=4, seconds=21_600,
    )  # fmt: skip
    never = saturated(
        replace(fresh, geometries=("drivex2",)), "S2", fresh_iops=2_700, cliff_capacities=None, cliff_s=None,
        settled_iops=None, settled_capacities=None, settled_s=None, capacities=0.2, seconds=30,
    )  # fmt: skip
    lines = [line.text for line in saturations([told, replace(told, claim="settled_iops"), never, claimed()], 110)]
    golden.same("tables.txt", lines)


def test_without_curves_there_is_nothing() -> None:
    assert drawn(claimed()) == []
    assert list(saturations([claimed()], 80)) == []
