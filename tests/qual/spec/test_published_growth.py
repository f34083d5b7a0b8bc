"""What an author calls linear passes the promises by which this program judges his method."""

from __future__ import annotations

import pytest

from pytest_ssdqual.qual.methods.toms_s3700 import MATRIX
from pytest_ssdqual.qual.raid import scaling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

#: IOPS of 4, 8 and 24 drives in the article, relative ones where it has no numbers.
PUBLISHED = {"webserver": (1.0, 2.0, 4.1), "exchange": (40_000.0, 80_000.0, 200_000.0)}


def load(name: str) -> Workload:
    return next(each for each in MATRIX if str(each) == f"{name}_qd32")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_growth_keeps_its_promises(name: str) -> None:
    widths = [Geometry.parse(f"raid0x{width}") for width in (4, 8, 24)]
    iops = {
        width: Estimate(value, value, value, 10, Unit.IOPS)
        for width, value in zip(widths, PUBLISHED[name], strict=True)
    }
    workload = load(name)
    found = scaling.fit(iops, workload.read_fraction)
    sheet = spec.load("intel-dc-s3700-800gb")
    slope, deviation = (sheet.limit(f"scaling_{claim}", widths[-1], workload) for claim in ("slope", "deviation"))
    assert slope
    assert deviation
    assert slope.bound <= found.slope.value < 1.15 * slope.bound
    assert deviation.bound / 1.6 < found.deviation.value <= deviation.bound


def test_other_loads_of_the_sheet_have_the_promises_of_any_drive() -> None:
    sheet = spec.load("intel-dc-s3700-800gb")
    limit = sheet.limit("scaling_slope", Geometry.parse("raid0x24"), Workload("randread", "4k", 8))
    assert limit
    assert limit.bound == 0.9
