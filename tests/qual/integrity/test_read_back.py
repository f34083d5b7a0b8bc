from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.integrity.read_back import (
    PARTS,
    DriveReadBack,
    ReadBack,
    SlowZone,
    WrongBlock,
    WrongKind,
    examine,
    median_part,
    rates,
    slow_parts,
)
from pytest_ssdqual.qual.integrity.stamp import Stamp, filled
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain, plain

WRITTEN = Stamp(7, 3_000_000_000, 64 << 20)
SIZE = 1 << 16
RIGHT = filled(WRITTEN, SIZE)
#: More seconds than a report has if a host pauses.
REPORTS = 4 * PARTS


@given(st.integers(0, SIZE - 1), st.integers(1, 255))
def test_one_wrong_byte_is_found_where_it_is(at: int, difference: int) -> None:
    data = RIGHT[:at] + bytes([RIGHT[at] ^ difference]) + RIGHT[at + 1 :]
    assert examine(data, WRITTEN) == WrongBlock(WrongKind.DAMAGED, WRITTEN.offset_bytes + at, wrong_bytes=1)


@pytest.mark.parametrize("at", [0, 512, 4096 * 3])
@pytest.mark.parametrize(
    ("returned", "kind", "belongs_to_bytes"),
    [
        (bytes(SIZE), WrongKind.ZEROES, None),
        (filled(WRITTEN.at(1 << 20), SIZE), WrongKind.ELSEWHERE, 1 << 20),
        (filled(replace(WRITTEN, generation=5), SIZE), WrongKind.EARLIER, None),
        (filled(replace(WRITTEN, history=8), SIZE), WrongKind.EARLIER, None),
        (bytes(range(256)) * (SIZE // 256), WrongKind.DAMAGED, None),
    ],
)
def test_what_a_drive_returns_instead_has_its_kind(
    at: int, returned: bytes, kind: WrongKind, belongs_to_bytes: int | None
) -> None:
    block = examine(RIGHT[:at] + returned[at:], WRITTEN)
    assert block.kind is kind
    assert block.offset_bytes == WRITTEN.offset_bytes + at
    assert block.belongs_to_bytes == belongs_to_bytes


def test_data_that_are_right_at_the_second_time_are_unstable() -> None:
    assert examine(RIGHT, WRITTEN) == WrongBlock(WrongKind.UNSTABLE, WRITTEN.offset_bytes)


def course(*seconds: float, size_bytes: int = 1000) -> list[Interval]:
    """Reports of so many bytes each."""
    none = LatencyHistogram()
    starts = [sum(seconds[:number]) for number in range(len(seconds))]
    return [Interval(start, each, 1, 0, size_bytes, 0, none, none) for start, each in zip(starts, seconds, strict=True)]


@given(st.integers(0, PARTS - 1), st.floats(0.01, 0.4))
def test_a_slow_part_is_found_where_it_is(number: int, share: float) -> None:
    each = REPORTS // PARTS
    seconds = [1 / share if at // each == number else 1.0 for at in range(REPORTS)]
    of_parts = rates(course(*seconds), 1000 * REPORTS)
    assert slow_parts(of_parts) == [number]
    assert of_parts[number] == pytest.approx(1000 * share)


@given(st.lists(st.floats(0.8, 1.2), min_size=REPORTS, max_size=REPORTS))
def test_an_even_drive_has_no_slow_part(seconds: list[float]) -> None:
    assert slow_parts(rates(course(*seconds), 1000 * REPORTS)) == []


@pytest.mark.parametrize(("reports", "parts"), [(0, 0), (PARTS - 1, 0), (PARTS, PARTS)])
def test_too_few_reports_show_no_parts(reports: int, parts: int) -> None:
    assert len(rates(course(*[1.0] * reports), 1000 * reports)) == parts


def test_the_time_after_the_last_byte_is_nobodys() -> None:
    """The reports of a fast drive go on until the slowest one beside it is done."""
    read = course(*[1.0] * REPORTS)
    waiting = course(*[1.0] * REPORTS, size_bytes=0)
    assert rates([*read, *waiting], 1000 * REPORTS) == rates(read, 1000 * REPORTS)


@given(st.permutations(range(PARTS)))
def test_the_slowest_parts_come_first_beside_a_median_one(order: list[int]) -> None:
    of_parts = [1.0] * PARTS
    for place, number in enumerate(order[:5]):
        of_parts[number] = 0.1 + place / 100
    assert slow_parts(of_parts) == order[:5]
    assert of_parts[median_part(of_parts)] == 1.0


DRIVE = DriveReadBack("A", 480 * 10**9, 480 * 10**9)
WRONG = WrongBlock(WrongKind.ELSEWHERE, 200, 100, 4096)
SLOW = SlowZone(300, 7_500_000_000, 51e6, 512e6)


@pytest.mark.parametrize(
    ("drive", "is_sound", "findings", "is_doubtful"),
    [
        (DRIVE, True, 0, False),
        (replace(DRIVE, foreign_bytes=4096), True, 0, False),
        (replace(DRIVE, wrong=WRONG), False, 1, False),
        (replace(DRIVE, slow=(SLOW,)), False, 1, False),
        (replace(DRIVE, wrong=replace(WRONG, kind=WrongKind.UNSTABLE)), False, 0, True),
        (replace(DRIVE, wrong=WRONG, foreign_bytes=4096), False, 0, True),
        (replace(DRIVE, wrong=WRONG, foreign_bytes=4096, slow=(SLOW,)), False, 1, True),
    ],
)
def test_a_wrong_block_is_a_finding_or_a_doubt(
    drive: DriveReadBack, is_sound: bool, findings: int, is_doubtful: bool
) -> None:
    found = ReadBack(Geometry.parse("drivex2"), 1.0, (replace(DRIVE, serial="B"), drive), "fio/raw.json.gz")
    assert (bool(found), len(drive.findings), bool(drive.doubt)) == (is_sound, findings, is_doubtful)
    assert ("drive A" in repr(found)) is bool(findings)
    assert from_plain(ReadBack, plain(found)) == found


def test_a_doubtful_drive_is_named_beside_one_with_a_finding() -> None:
    """It may be the worse of both, and is not among those that are replaced."""
    doubtful = replace(DRIVE, serial="SSDQ0007", wrong=replace(WRONG, kind=WrongKind.UNSTABLE))
    found = ReadBack(
        Geometry.parse("drivex3"), 1.0, (replace(DRIVE, slow=(SLOW,)), doubtful, replace(DRIVE, serial="C"))
    )
    assert f"SSDQ0007: {doubtful.doubt}" in repr(found)
