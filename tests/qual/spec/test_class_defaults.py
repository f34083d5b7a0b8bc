"""Limits of the file ``default`` by class of drive: each as documented, kept by the drives that are named beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.builders.sheet import bound

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim, Direction
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.protocol_rules import RebuildRule
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.spec.toml import read_bound
from pytest_ssdqual.qual.workload.workload import Workload

DOCUMENT = (Path(__file__).parents[3] / "docs" / "specs.md").read_text(encoding="utf-8")
ONE, REBUILDING = Geometry.parse("drivex1"), Geometry.parse("raid5x4-1rebuilding")
LOAD = Workload("randrw", "4k", 1, read_percent=70)
#: One of the defaults of a class: `claim`, classes, workloads, limit.
ROW = re.compile(
    r"\| `(?P<claim>[\w.]+)` \| (?P<classes>[a-z0-9_, ]+) \| `(?P<workload>[^`]+)` \| (?P<limit>[^|]+) "
    r"\| (?P<rest>.*) \|"
)
#: A drive with its figure: ``Micron 7500 (1 ms)``.
DRIVE = re.compile(r"\((?P<value>[\d.,]+ ?[a-zµA-Z×%/]*)\)")


@dataclass(frozen=True, slots=True)
class DocumentedDefault:
    """A row of the table in docs/specs.md."""

    claim: Claim
    drive_class: DriveClass
    workload: str
    limit: str
    #: Figures of the drives that keep the limit, and of those that do not.
    kept_by: tuple[str, ...]
    broken_by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.claim}-{self.drive_class}-{self.workload}"

    @property
    def geometry(self) -> Geometry:
        return REBUILDING if self.claim is Claim.REBUILD_RATE else ONE


def documented() -> list[DocumentedDefault]:
    rows = []
    for found in filter(None, map(ROW.fullmatch, DOCUMENT.splitlines())):
        cells = found["rest"].split(" | ")
        kept, broken = (tuple(each["value"] for each in DRIVE.finditer(cell)) for cell in cells[1:])
        rows += [
            DocumentedDefault(Claim(found["claim"]), DriveClass(name), found["workload"], found["limit"], kept, broken)
            for name in found["classes"].split(", ")
        ]
    return rows


def of_class(name: str, sheet: Spec | None = None) -> Spec:
    return replace(sheet or spec.default(), drive_class=DriveClass(name))


@pytest.mark.parametrize("row", documented(), ids=str)
def test_a_documented_default_is_kept_by_two_and_broken_by_one(row: DocumentedDefault) -> None:
    limit = of_class(row.drive_class).limit(row.claim, row.geometry, Workload.parse(row.workload))
    assert limit
    assert limit.bound == pytest.approx(read_bound(row.limit, row.claim.unit))
    sign = 1 if row.claim.direction is Direction.AT_LEAST else -1
    kept, broken = (
        [sign * read_bound(text, row.claim.unit) for text in texts] for texts in (row.kept_by, row.broken_by)
    )
    assert len(kept) >= 2
    assert len(broken) >= 1
    assert min(kept) >= sign * limit.bound > max(broken)


def test_the_table_has_each_default_that_depends_on_the_class() -> None:
    promised = {(each.claim, name) for each in spec.default().promises for name in each.drive_classes or ()}
    # The time of a rebuild follows from its rate and the capacity of the sheet.
    of_drives = {(claim, name) for claim, name in promised if claim is not Claim.REBUILD_TIME}
    assert {(row.claim, row.drive_class) for row in documented()} == of_drives


@pytest.mark.parametrize(
    ("sheet", "most", "rate"),
    [
        ("samsung-pm9a3-7t68", None, 0.1 * 204.8e6),
        ("samsung-pm9a3-7t68", 20_000_000, 2e6),
        ("samsung-pm9a3-7t68", 10**10, 4e8),  # 4 GB/s of writes
        ("kingston-dc600m-960gb", 10**9, 0.1 * 530e6),
        ("solidigm-d5-p5336-122t88", None, 0.1 * 204.8e6),
    ],
)
def test_a_rebuild_is_promised_a_tenth_of_what_bounds_it(sheet: str, most: int | None, rate: float) -> None:
    rules = replace(protocol.load("intel"), rebuild=RebuildRule(max_bytes_per_s=most))
    product = spec.load(sheet)
    limit = product.on(rules.striping).limit(Claim.REBUILD_RATE, REBUILDING, LOAD)
    assert limit
    assert limit.bound == pytest.approx(rate)
    time = product.on(rules.striping).limit(Claim.REBUILD_TIME, REBUILDING, LOAD)
    assert time
    assert product.product.capacity_bytes
    assert time.bound == pytest.approx(product.product.capacity_bytes / rate)


@pytest.mark.parametrize("sheet", [of_class("emulated"), spec.default()])
def test_a_rebuild_without_a_class_is_promised_the_floor_of_md(sheet: Spec) -> None:
    assert bound(sheet, Claim.REBUILD_RATE, REBUILDING, LOAD) == 1_000_000


@pytest.mark.parametrize(
    ("own_s", "shortest_s", "allowed_s"),
    [(None, 0, 86_400), (None, 5_000, 86_400), (None, 150_000, 1_800_000), (3_600, 150_000, 3_600)],
)
def test_a_rebuild_of_a_large_member_may_take_longer(own_s: float | None, shortest_s: float, allowed_s: float) -> None:
    assert RebuildRule(own_s).allowed_s(shortest_s) == allowed_s


def _rate(sheet: Spec, rw: str) -> tuple[float, int] | None:
    """Most published IOPS of one drive, and their size in bytes."""
    found = [(each.iops, Workload.parse(each.workloads[0]).block_bytes) for each in sheet.figures
             if each.rw == rw and each.iops]  # fmt: skip
    return max(((iops, int(size)) for iops, size in found if iops), default=None)


CURRENT = [name for name in spec.shipped() if not name.startswith(("default", "intel-", "stec", "ssdqual"))]
#: Without random and sequential writes.
INCOMPLETE = {"kioxia-pm7-r-7t68", "samsung-pm1653-7t68", "solidigm-d5-p5430-30t72"}


@pytest.mark.parametrize("name", sorted({*CURRENT} - INCOMPLETE))
def test_no_default_accuses_a_drive_that_meets_its_sheet(name: str) -> None:
    sheet = spec.load(name)
    sheet = sheet if sheet.drive_class else of_class("nvme_gen4", sheet)
    reads, writes, fastest = (
        _rate(sheet, "randread"),
        _rate(sheet, "randwrite"),
        sheet.product.sequential_write_bytes_per_s,
    )
    assert reads
    assert writes
    assert fastest
    fresh = sheet.limit(Claim.FRESH_TO_STEADY, ONE, Workload("randwrite", "4k", 32))
    depth = sheet.limit(Claim.BATHTUB_DEPTH, ONE, Workload("randread", "8k", 32))
    assert fresh
    assert depth
    # A purged drive writes at its sequential rate at most.
    assert fastest / writes[1] / writes[0] <= fresh.bound
    # Reads take 60 µs each at least: 32 at a time are 533,000 a second.
    times = min(reads[0], 32 / 60e-6) / writes[0]
    assert 4 * times / (1 + times) ** 2 >= depth.bound
