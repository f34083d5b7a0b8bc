from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.builders.evidence import claimed
from support.documents import golden

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding, Part
from pytest_ssdqual.report.view.sections import members, shortened
from pytest_ssdqual.report.view.tables import text_table

SERIALS = ("BTWL3455014Z480QGN", "BTWL3455015A480QGN", "BTWL3455016B480QGN")


def side_by_side(evidence: Evidence, values: tuple[float, ...], worst: int, outcomes: tuple[Finding, ...]) -> Evidence:
    parts = tuple(
        Part(serial, {"value": value}, outcome)
        for serial, value, outcome in zip(SERIALS, values, outcomes, strict=True)
    )
    return replace(evidence, members=parts, worst=SERIALS[worst])


def drawn(*evidence: Evidence) -> list[str]:
    return [line.text for grid in members(evidence) for line in text_table(grid, 100)]


def test_a_column_for_each_drive_and_the_outlier_marked() -> None:
    good, bad, unsure = Finding.PASS, Finding.FAIL, Finding.INCONCLUSIVE
    reads = claimed(Claim.STEADY_IOPS, "drivex3", value=41_000, bound=60_000)
    writes = claimed(Claim.STEADY_IOPS, "drivex3", Workload("randwrite", "4k", 8), value=9_000, bound=9_000)
    lines = drawn(
        side_by_side(reads, (75_100, 41_000, 74_900), 1, (good, bad, good)),
        side_by_side(writes, (11_400, 11_500, 9_000), 2, (good, good, unsure)),
    )
    golden.same("tables.txt", lines)


def test_of_several_specs_each_drive_has_its_own_limit() -> None:
    reads = claimed(Claim.STEADY_IOPS, "drivex3", value=70_000, bound=80_000)
    found = side_by_side(reads, (70_000, 20_600, 25_000), 0, (Finding.FAIL, Finding.PASS, Finding.PASS))
    limits = (80_000.0, 20_000.0, 20_000.0)
    parts = (
        replace(part, figures={**part.figures, "limit": limit})
        for part, limit in zip(found.members, limits, strict=True)
    )
    text = "\n".join(drawn(replace(found, members=tuple(parts))))
    assert "-12.5 %" in text
    assert "-74" not in text


def test_of_their_likeness_the_slowest_is_at_fault() -> None:
    spread = claimed(Claim.MEMBER_SPREAD, "drivex3", value=0.55, bound=0.8)
    parts = tuple(Part(serial, {"iops": iops}) for serial, iops in zip(SERIALS, (300, 165, 301), strict=True))
    (row,) = drawn(replace(spread, members=parts, worst=SERIALS[1]))[-1:]
    assert row.split()[1:4] == ["300", "165!", "301"]
    kept = replace(spread, members=parts, worst=SERIALS[1], outcome=Finding.PASS)
    assert drawn(kept)[-1].split()[1:4] == ["300", "165", "301"]


def test_the_drive_that_has_the_slowest_ios_is_at_fault() -> None:
    spread = claimed(Claim.LATENCY_SPREAD_BETWEEN_MEMBERS, "drivex3", value=4.1, bound=2.0)
    parts = tuple(Part(serial, {"slowest_ns": ns}) for serial, ns in zip(SERIALS, (9e6, 9.2e6, 37e6), strict=True))
    (row,) = drawn(replace(spread, members=parts, worst=SERIALS[2]))[-1:]
    assert row.split()[1:7] == ["9", "ms", "9.2", "ms", "37", "ms!"]


def test_arrays_have_no_such_table() -> None:
    assert drawn(claimed()) == []


@given(st.lists(st.text("AB01", min_size=1, max_size=12), min_size=1, max_size=12, unique=True))
def test_shortened_serial_numbers_still_tell_drives_apart(serials: list[str]) -> None:
    short = shortened(serials)
    assert list(short) == serials
    assert len(set(short.values())) == len(serials)
    for serial, name in short.items():
        assert serial.endswith(name.removeprefix("…"))
        assert len(name) <= len(serial)
