from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.strategies import seen, seen_drive, side_by_side

from pytest_ssdqual.qual.measured.environment import DriveEnvironment, OpenFile, OwnCount, Traffic
from pytest_ssdqual.qual.validity import other_users
from pytest_ssdqual.qual.workload.workload import Workload

READS = Workload("randread", "4k", 8)
IOS = 1_000_000
SENT = Traffic(IOS, 0, IOS * 4096, 0)
UNIT = 512_000
SG = OpenFile("sg_dd", 737, "generic")


def own(commands: int | None, size: int | None, unit_bytes: int = UNIT) -> OwnCount:
    return OwnCount(commands, None if commands is None else 0, size, None if size is None else 0, unit_bytes)


def objections(*, counted: Traffic | None = SENT, **changes: object) -> list[str]:
    drive: DriveEnvironment = replace(seen_drive("S0", counted, SENT), **changes)  # type: ignore[arg-type]
    run = replace(side_by_side([[1000] * 5], workload=READS), seen=seen([drive]))
    return [objection for check in other_users.of_run(run) for objection in check.objections]


@pytest.mark.parametrize(
    "count",
    [
        own(IOS, IOS * 4096),
        own(IOS, -(-IOS * 4096 // UNIT) * UNIT + UNIT),
        own(IOS + 500, IOS * 4096 + (8 << 20)),
        # It counts less, or commands or bytes in a way of its own.
        own(0, 0),
        own(IOS, IOS * 4096 * 8),
        own(4 * IOS, IOS * 4096),
        None,
    ],
)
def test_what_a_drive_counts_anyway_is_no_objection(count: OwnCount | None) -> None:
    assert objections(own=count, opened=()) == []


@pytest.mark.parametrize(
    "count",
    [
        own(IOS + 100_000, (IOS + 100_000) * 4096),
        own(None, (IOS + 100_000) * 4096, 10**6),
        own(IOS + 1_000, IOS * 4096 + 1_000 * (1 << 20)),
    ],
)
def test_commands_that_passed_the_block_layer_are_an_objection(count: OwnCount) -> None:
    (sentence,) = objections(own=count, opened=())
    assert "drive S0" in sentence
    assert "another host" in sentence


def test_the_program_is_named_if_it_is_known() -> None:
    told = objections(own=own(IOS + 100_000, (IOS + 100_000) * 4096), opened=(SG,))
    assert ["sg_dd (pid 737)" in objection for objection in told] == [True, True]


def test_without_the_kernels_count_only_bytes_are_compared() -> None:
    """It may split and merge what fio asks for."""
    assert objections(counted=None, own=own(4 * IOS, IOS * 4096), opened=()) == []
    assert objections(counted=None, own=own(4 * IOS, IOS * 5000), opened=())


def test_open_node_counts_unless_the_drive_counts_nothing() -> None:
    assert len(objections(own=None, opened=(SG,))) == 1
    assert objections(own=own(IOS, IOS * 4096), opened=(SG,)) == []
    # A drive whose count lags shows nothing.
    assert len(objections(own=own(IOS // 2, IOS * 2048), opened=(SG,))) == 1
    assert len(objections(own=own(IOS, IOS * 4096), opened=(replace(SG, access="write"),))) == 1
    # The kernel counts what is read through the block device.
    assert objections(own=None, opened=(replace(SG, access="read"),)) == []


def test_a_self_test_is_an_objection_with_the_cure() -> None:
    (sentence,) = objections(self_test="an extended self-test (40 % left)")
    assert "extended self-test (40" in sentence
    assert "smartctl -X" in sentence
    assert objections(self_test="") == []
