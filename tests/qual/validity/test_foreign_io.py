"""Other I/O on drives and arrays. What members did comes from captures of the lab where it says so (Linux 6.1)."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import geometries, run, seen, seen_drive, side_by_side, unusual_workloads, workloads
from support.simulator.simulated_surroundings import of_members

from pytest_ssdqual.qual.measured.environment import ArrayEnvironment, DeviceTraffic, Traffic, total
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity.check import Check
from pytest_ssdqual.qual.validity.other_users import LOOKED_AT, QUIET, foreign_io, needed
from pytest_ssdqual.qual.workload.workload import Workload

MB = 10**6
READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
#: Ten minutes at 400,000 I/Os a second: what goes on anyway is nothing beside it.
MANY = 240 * MB


def asked_of(workload: Workload, ios: int) -> Traffic:
    reads = round(ios * workload.read_fraction)
    size = workload.block_bytes
    return Traffic(reads, ios - reads, round(reads * size), round((ios - reads) * size))


def drives(workload: Workload, ios: int, *more: Traffic) -> Run:
    """Drives side by side, each with so many I/Os and what else was done there."""
    asked = asked_of(workload, ios)
    around = seen([seen_drive(f"S{n}", total([asked, each]), asked) for n, each in enumerate(more)])
    return replace(side_by_side([[1000] * 5] * len(more), workload=workload), seen=around)


def array(
    name: str, workload: Workload, asked: Traffic, counted: Traffic, members: list[Traffic], *,
    chunk: int = 65536, bitmap: bool = False, syncs: tuple[str, ...] = (),
) -> Run:  # fmt: skip
    around = ArrayEnvironment(DeviceTraffic(counted, asked), chunk, bitmap, syncs)
    each = [seen_drive(f"S{n}", one, None) for n, one in enumerate(members)]
    return replace(run([1000] * 5, geometry=name, workload=workload), seen=seen(each, around))


def said(of: Run) -> list[str]:
    return [objection for check in foreign_io(of) for objection in check.objections]


def told(of: Run) -> list[tuple[str, ...]]:
    """Drive, direction and amount of each objection about I/O of others."""
    return [
        (check.drive, *way)
        for check in foreign_io(of)
        for objection in check.objections
        for way in re.findall(r" (read|wrote) ([\d,.]+ MB) ", objection)
    ]


def found(of: Run) -> dict[str, Check]:
    return {check.name: check for check in foreign_io(of)}


NOTHING = Traffic(0, 0, 0, 0)


def test_what_fio_did_and_no_more_holds() -> None:
    (check,) = foreign_io(drives(READS, 20_000, NOTHING))
    assert (check.holds, check.figure, check.drive) == (True, 0.0, "S0")


@pytest.mark.parametrize(("share", "holds"), [(0.0099, True), (0.0102, False)])
def test_one_per_cent_of_a_long_run_is_the_limit(share: float, holds: bool) -> None:
    ios = round(MANY * share)
    checks = list(foreign_io(drives(READS, MANY, NOTHING, Traffic(ios, 0, ios * 4096, 0))))
    assert [check.holds for check in checks] == [True, holds]
    assert checks[1].figure == pytest.approx(100 * share, rel=1e-3)


def test_the_drive_and_the_amount_are_named() -> None:
    other = Traffic(20_000, 0, 20_000 * 131_072, 0)
    assert told(drives(READS, 600_000, NOTHING, other)) == [("S1", "read", "2,621.4 MB")]
    other = Traffic(0, 5_000, 0, 5_000 * 131_072)
    assert told(drives(READS, 60_000, other)) == [("S0", "wrote", "655.4 MB")]


def test_many_small_ios_count_though_their_bytes_are_few() -> None:
    """A drive that does 128 KiB at a time has less than 1 % of the bytes, and four times the I/Os, to do."""
    small = Traffic(400_000, 0, 400_000 * 512, 0)
    stream = Workload("read", "64k", 8)
    assert told(drives(stream, 1_000_000, small)) == [("S0", "read", "204.8 MB")]
    # Large transfers are split by the kernel: their number says nothing.
    assert said(drives(Workload("read", "1m", 8), 1_000_000, small)) == []


def test_what_is_written_to_is_looked_at_afterwards() -> None:
    """Seen in the lab: 228 reads of 4.3 MB after fio had closed the device."""
    looks = Traffic(228, 0, 4_292_608, 0)
    assert said(drives(WRITES, 2_435, looks)) == []
    assert said(drives(READS, 2_435, looks)) != []
    assert LOOKED_AT.read_bytes > 4_292_608


def test_what_was_under_way_when_fio_was_ended_is_not_foreign() -> None:
    """fio does not count what comes back after it was told to end."""
    deep = Workload("read", "1m", 256)
    under_way = Traffic(256, 0, 256 << 20, 0)
    assert said(drives(deep, 1000, under_way)) == []
    assert said(drives(deep, 1000, total([under_way, under_way]))) != []


def test_a_drive_that_the_kernel_saw_less_of_than_fio() -> None:
    lost = Traffic(-50_000, 0, -50_000 * 4096, 0)
    (check,) = foreign_io(drives(READS, 100_000, lost))
    assert (check.holds, check.drive, told(drives(READS, 100_000, lost))) == (False, "S0", [])


def test_a_drive_that_was_not_counted_is_not_known() -> None:
    true = drives(READS, 1000, NOTHING)
    assert true.seen
    blind = replace(true, seen=replace(true.seen, drives=(seen_drive("S0", None, NOTHING),)))
    (check,) = foreign_io(blind)
    assert (check.holds, check.figure) == (None, None)
    (check,) = foreign_io(replace(true, seen=None))
    assert check.holds is None


def test_another_program_on_the_array() -> None:
    asked = asked_of(READS, 100_000)
    counted = total([asked, Traffic(100, 0, 100 * MB, 0)])
    of = array("raid5x4", READS, asked, counted, of_members(Geometry.parse("raid5x4"), counted))
    # The members did what was done at the array: one sentence is enough.
    assert told(of) == [("", "read", "100.0 MB")]
    assert found(of)["foreign_percent"].holds is False


#: Captured in the lab: array, workload, what fio did, what the array was counted for, what each member was.
CAPTURED = [
    (
        "raid0x4", "write_128k_qd8", (0, 4849, 0, 635_568_128), (128, 9698, 2_162_688, 635_568_128),
        [(63, 2425, 585_728, 158_924_800), (16, 2425, 524_288, 158_924_800), (22, 2424, 524_288, 158_859_264),
         (30, 2424, 540_672, 158_859_264)],
    ),
    (
        "raid1x2", "randrw70_4k_qd8", (2538, 1133, 10_395_648, 4_640_768), (2685, 1133, 13_615_104, 4_640_768),
        [(1384, 1135, 7_741_440, 4_641_792), (1304, 1135, 5_885_952, 4_641_792)],
    ),
    (
        "raid10x4", "randwrite_4k_qd8", (0, 4791, 0, 19_623_936), (171, 4791, 3_219_456, 19_623_936),
        [(109, 2449, 1_294_336, 10_023_936), (11, 2449, 352_256, 10_023_936), (48, 2346, 1_282_048, 9_602_048),
         (6, 2346, 303_104, 9_602_048)],
    ),
    (
        "raid5x4", "randwrite_4k_qd8", (0, 2435, 0, 9_973_760), (228, 2435, 4_292_608, 9_973_760),
        [(1311, 1218, 6_025_216, 4_981_760), (1191, 1237, 5_828_608, 5_059_584), (1238, 1204, 5_955_584, 4_924_416),
         (1234, 1219, 5_922_816, 4_985_856)],
    ),
    (
        "raid5x4", "write_1m_qd1", (0, 615, 0, 644_874_240), (114, 615, 2_146_304, 644_874_240),
        [(6620, 52_482, 27_443_200, 214_959_104), (3292, 55_762, 13_959_168, 228_393_984),
         (36, 55_762, 589_824, 228_393_984), (56, 52_482, 663_552, 214_959_104)],
    ),
    (
        "raid6x4", "write_128k_qd8", (0, 3876, 0, 508_035_072), (171, 3876, 3_219_456, 508_035_072),
        [(33, 62_018, 798_720, 254_018_560), (84, 62_018, 847_872, 254_018_560), (18, 62_018, 786_432, 254_018_560),
         (39, 62_018, 798_720, 254_018_560)],
    ),
]  # fmt: skip


def captured(number: int) -> Run:
    name, workload, asked, counted, members = CAPTURED[number]
    each = [Traffic(*one) for one in members]
    return array(name, Workload.parse(workload), Traffic(*asked), Traffic(*counted), each)


@pytest.mark.parametrize("number", range(len(CAPTURED)), ids=[f"{each[0]}-{each[1]}" for each in CAPTURED])
def test_nothing_is_said_against_what_the_lab_really_does(number: int) -> None:
    of = captured(number)
    assert said(of) == []
    assert found(of)["members_foreign_percent"].holds is True


@pytest.mark.parametrize("number", range(len(CAPTURED)), ids=[f"{each[0]}-{each[1]}" for each in CAPTURED])
@pytest.mark.parametrize("way", ["read", "wrote"])
def test_io_of_others_on_a_member_names_the_drive(number: int, way: str) -> None:
    """As much as all that fio did, as it is not for less that parity's costs can be told from it."""
    of = captured(number)
    assert of.seen
    size = 2 * 644_874_240
    more = Traffic(100, 0, size, 0) if way == "read" else Traffic(0, 100, 0, size)
    counted = of.seen.drives[1].device.counted
    assert counted
    worse = seen_drive("S1", total([counted, more]), None)
    changed = replace(of, seen=replace(of.seen, drives=(of.seen.drives[0], worse, *of.seen.drives[2:])))
    (sentence,) = said(changed)
    assert [direction for _, direction, _ in told(changed)] == [way]
    assert "at drive S1:" in sentence


def test_of_reads_little_is_found_on_parity_too() -> None:
    """As in the lab: 12.6 MB were read from one member."""
    asked = Traffic(7100, 0, 7100 * 4096, 0)
    members = of_members(Geometry.parse("raid5x4"), asked)
    members[3] = total([members[3], Traffic(96, 0, 12_582_912, 0)])
    assert told(array("raid5x4", READS, asked, asked, members)) == [("", "read", "12.6 MB")]


@given(geometries, workloads | unusual_workloads, st.integers(1000, 10**7))
def test_array_that_obeys_the_law_has_no_foreign_io(geometry: Geometry, workload: Workload, ios: int) -> None:
    if geometry.is_side_by_side:
        return
    asked = asked_of(workload, ios)
    of = array(str(geometry), workload, asked, asked, of_members(geometry, asked))
    assert said(of) == []
    assert found(of)["members_foreign_percent"].holds is True


def test_pages_are_read_and_written_whole_where_there_is_parity() -> None:
    small, straddling = Workload("randwrite", "512", 4), Workload("randwrite", "4k", 4, offset="512")
    asked = Traffic(0, 1000, 0, 512_000)
    # A sector may lie across no more than two pages; data and parity are written, two or three pages read.
    assert needed(Geometry.parse("raid5x5"), small, asked).write_bytes == 1000 * 2 * 2 * 4096
    assert needed(Geometry.parse("raid5x5"), small, asked).read_bytes == 1000 * 2 * 3 * 4096
    asked = Traffic(0, 1000, 0, 4_096_000)
    assert needed(Geometry.parse("raid5x5"), straddling, asked).write_bytes == 1000 * 2 * 2 * 4096
    assert needed(Geometry.parse("raid5x5"), WRITES, asked).read_bytes == 1000 * 2 * 4096
    # md without a fast way to undo Q reads all other data.
    assert needed(Geometry.parse("raid6x10"), WRITES, asked).read_bytes == 1000 * 7 * 4096
    assert needed(Geometry.parse("raid10x4"), small, asked) == Traffic(0, 2000, 0, 8_192_000)


def test_a_bitmap_is_written_to_all_members() -> None:
    asked = asked_of(WRITES, 10_000)
    members = [total([one, Traffic(0, 10_000, 0, 40 * MB)]) for one in of_members(Geometry.parse("raid1x2"), asked)]
    assert said(array("raid1x2", WRITES, asked, asked, members, bitmap=True)) == []
    assert said(array("raid1x2", WRITES, asked, asked, members)) != []


def test_of_members_nothing_is_known_where_no_law_holds() -> None:
    asked = asked_of(READS, 10_000)
    members = [Traffic(10**6, 0, 10**10, 0)] * 4
    name = "members_foreign_percent"
    assert found(array("raid5x4-1failed", READS, asked, asked, members))[name].holds is None
    assert found(array("raid5x4", READS, asked, asked, members, syncs=("md: …",)))[name].holds is None
    assert found(array("raid5x4", READS, asked, asked, members))[name].holds is False
    blind = array("raid5x4", READS, asked, asked, members)
    assert blind.seen
    around = replace(blind.seen, drives=(seen_drive("S0", None, None), *blind.seen.drives[1:]))
    assert found(replace(blind, seen=around))[name].holds is None


@pytest.mark.parametrize(
    ("workload", "chunk", "looked_at"),
    [
        ("randread_4k_qd8", 65536, True),
        ("randread_64k_qd8", 65536, True),
        ("read_128k_qd8", 65536, False),
        ("randread_4k_off512_qd8", 65536, False),
        ("read_128k_qd8", 0, True),
    ],
)
def test_an_array_is_counted_only_where_no_io_crosses_a_chunk(workload: str, chunk: int, looked_at: bool) -> None:
    """Old kernels count such an I/O twice."""
    load = Workload.parse(workload)
    asked = asked_of(load, 10_000)
    twice = replace(asked, read_bytes=2 * asked.read_bytes)
    members = of_members(Geometry.parse("raid0x2"), asked)
    of = array("raid0x2", load, asked, twice, members, chunk=chunk)
    assert found(of)["foreign_percent"].holds is (False if looked_at else None)
    assert found(of)["members_foreign_percent"].holds is True


def test_an_array_that_the_kernel_does_not_count_is_not_known() -> None:
    asked = asked_of(READS, 10_000)
    of = array("raid0x2", READS, asked, NOTHING, of_members(Geometry.parse("raid0x2"), asked))
    assert found(of)["foreign_percent"].holds is None
    assert found(of)["members_foreign_percent"].holds is True
    assert QUIET.ios < 200
