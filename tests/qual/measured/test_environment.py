from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    Cpu,
    DeviceTraffic,
    DriveEnvironment,
    DriveLink,
    DrivePlacement,
    DriveTemperature,
    KernelLine,
    KernelLog,
    ProcessEnvironment,
    Traffic,
    format_list,
    parse_list,
    total,
)
from pytest_ssdqual.qual.records import from_plain, plain

counts = st.integers(0, 2**62)
shares = st.floats(0, 1)
numbers = st.floats(-1e9, 1e9)
traffics = st.builds(Traffic, counts, counts, counts, counts)
devices = st.builds(DeviceTraffic, st.none() | traffics, st.none() | traffics)
heats = st.builds(
    DriveTemperature,
    st.none() | numbers,
    st.none() | numbers,
    st.none() | st.booleans(),
    st.none() | numbers,
    st.none() | counts,
)
links = st.builds(
    DriveLink,
    st.sampled_from(["PCIe", "SATA"]),
    st.floats(1, 64),
    st.integers(1, 16),
    st.floats(1, 64),
    st.integers(1, 16),
)
seen = st.builds(
    ProcessEnvironment,
    seconds=numbers,
    fio_s=numbers,
    clock_jump_s=st.none() | numbers,
    clock_resolution_s=numbers,
    cpu=st.none() | st.builds(Cpu, st.integers(1, 999), shares, shares, shares, st.none() | shares),
    jobs_busy=st.none() | shares,
    drives=st.lists(st.builds(DriveEnvironment, st.text(), devices, heats, st.none() | links), max_size=4).map(tuple),
    array=st.none()
    | st.builds(
        ArrayEnvironment,
        devices,
        st.none() | counts,
        st.none() | st.booleans(),
        st.none() | st.lists(st.text()).map(tuple),
    ),
    kernel=st.none()
    | st.builds(
        KernelLog,
        st.lists(st.builds(KernelLine, numbers, st.none() | st.integers(0, 7), st.text())).map(tuple),
        counts,
        st.booleans(),
    ),
)


@given(seen)
def test_a_record_is_read_back_to_the_last_bit(original: ProcessEnvironment) -> None:
    assert from_plain(ProcessEnvironment, json.loads(json.dumps(plain(original)))) == original


def test_a_message_in_words() -> None:
    said = [KernelLine(9.1, level, "nvme0: gone").describe() for level in (0, 3, 4, 5, 7, None, -9)]
    assert [each.removeprefix("[    9.100000] ") for each in said] == [
        "emergency: nvme0: gone", "error: nvme0: gone", "warning: nvme0: gone", *["nvme0: gone"] * 4,
    ]  # fmt: skip


@given(st.lists(traffics))
def test_a_total_has_everything_of_everyone(each: list[Traffic]) -> None:
    found = total(each)
    assert found.ios == sum(one.reads + one.writes for one in each)
    assert found.total_bytes == sum(one.read_bytes for one in each) + sum(one.write_bytes for one in each)


def test_of_one_drive_is_what_concerns_it() -> None:
    drives = tuple(DriveEnvironment(name, DeviceTraffic(None, None), DriveTemperature(), None) for name in "ABC")
    whole = ProcessEnvironment(1.0, 1.0, None, 0.0, None, 0.5, drives, None)
    assert [each.name for each in whole.of_drive(1).drives] == ["B"]
    assert whole.of_drive(1).jobs_busy == 0.5


def test_a_link_in_words_and_as_a_share() -> None:
    narrow = DriveLink("PCIe", 8.0, 2, 16.0, 4)
    assert (narrow.describe(), narrow.share) == ("PCIe 8 GT/s x2, at most 16 GT/s x4", 0.25)
    assert DriveLink("SATA", 1.5, 1, 6.0, 1).describe() == "SATA 1.5 Gb/s, at most 6 Gb/s"


@given(st.sets(st.integers(0, 300)))
def test_a_list_of_cpus_is_read_back(numbers: set[int]) -> None:
    assert parse_list(format_list(numbers)) == sorted(numbers)


def test_the_kernel_s_format() -> None:
    assert format_list([16, 0, 1, 2, 7]) == "0-2,7,16"
    assert parse_list("0-2,7\n") == [0, 1, 2, 7]
    assert parse_list("") == []
    with pytest.raises(ValueError, match="x"):
        parse_list("0-x")


def test_cpus_of_a_drive() -> None:
    assert DrivePlacement("none", 64, 0, "0-1,8").cpus == {0, 1, 8}
    assert DrivePlacement("none", 64, None, "").cpus == frozenset()
