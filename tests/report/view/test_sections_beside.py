from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.evidence import claimed
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim, Published
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.view.sections import beside, stated, times


def iops(array: str, value: float, published: Published | None) -> Evidence:
    return replace(claimed(Claim.STEADY_IOPS, array, value=value, bound=1), published=published)


def drawn(*evidence: Evidence) -> list[str]:
    return [line.text for line in beside(evidence, 100)]


def test_ours_and_theirs_and_how_many_times_that_is() -> None:
    paper = "Intel white paper 329903-001US"
    found = drawn(
        iops("raid10x8", 212_000, Published(200_000, Unit.IOPS, paper)),
        iops("raid5x8", 75_000, Published(140_000, Unit.IOPS, paper, approximate=True)),
        iops("raid5x3", 75_000, None),
    )
    golden.same("tables.txt", found)


def test_what_failed_is_marked_and_a_drive_is_named() -> None:
    failed = replace(
        iops("drivex4", 100, Published(200, Unit.IOPS, "sheet")), worst="SSDQ0003", outcome=claimed().outcome
    )
    head, row, *_ = beside([failed], 100)
    assert row.markup == ("red",)
    assert row.text.split()[:3] == ["drivex4", "SSDQ0003", "randread_4k_qd8"]
    assert head.markup == ("bold",)


def test_nothing_published_is_nothing_shown() -> None:
    assert drawn(claimed()) == []


def test_many_sources_are_left_to_the_run_folder() -> None:
    many = [iops(f"raid0x{n}", 100, Published(100, Unit.IOPS, f"figure {n}")) for n in range(2, 6)]
    assert not any("published in" in line for line in drawn(*many))
    assert sum("published in" in line for line in drawn(*many[:3])) == 3


@pytest.mark.parametrize(
    ("value", "published", "shown"),
    [(212, 200, "1.06 ×"), (100, 0, ""), (None, 1, ""), (99.94, 1, "99.94 ×"), (6_349_031, 300, "21,163 ×")],
)
def test_times(value: float | None, published: float, shown: str) -> None:
    assert times(value, Published(published, Unit.IOPS, "")) == shown
    assert times(value, None) == ""


def test_in_a_narrow_column() -> None:
    assert stated(Published(110_000, Unit.IOPS, "", approximate=True)) == "~110k"
    assert stated(Published(1_400_000, Unit.NANOSECONDS, "")) == "1.4 ms"
    assert stated(None) == ""
