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
    if belongs_to_bytes is None:
        assert block.belongs_to_bytes is None
    else:
        assert block.belongs_to_bytes == block.offset_bytes - WRITTEN.offset_bytes + belongs_to_bytes


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


def test_too_few_reports_show_no_parts() -> None:
    assert slow_parts(rates(course(*[1.0] * (2 * PARTS - 1)), 1000)) == []


def test_a_read_back_is_true_without_findings_and_names_those_that_it_has() -> None:
    sound = DriveReadBack("A", 480 * 10**9, 480 * 10**9)
    wrong = replace(sound, serial="B", wrong=WrongBlock(WrongKind.ELSEWHERE, 200, 100))
    slow = replace(sound, serial="C", slow=(SlowZone(300, 7_500_000_000, 51e6, 512e6),))
    geometry = Geometry.parse("drivex3")
    assert ReadBack(geometry, 1.0, (sound,) * 3)
    found = ReadBack(geometry, 1.0, (sound, wrong, slow), "fio/raw.json.gz")
    assert not found
    assert [len(drive.findings) for drive in found.drives] == [0, 1, 1]
    assert "drive B: byte 200 has what was written to byte 100; drive C: 7.5 GB from byte 300 on" in repr(found)
    assert from_plain(ReadBack, plain(found)) == found
