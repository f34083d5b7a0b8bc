from __future__ import annotations

import json
import subprocess
import threading
import time

import pytest
from scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.condition import SIDE_BY_SIDE, ZEROES, each, purge, zero
from pytest_ssdqual.rig.machine import CommandFailed, DriveRefused, InvalidMeasurement
from pytest_ssdqual.rig.topology import Drive

BUSY = "blkdiscard: /dev/nvme0n1: open failed: Device or resource busy\n"
UNSUPPORTED = "blkdiscard: /dev/nvme0n1: BLKDISCARD ioctl failed: Operation not supported\n"
FORMATS = {"oacs": 0b10, "fna": 0}


def drive(number: int = 0, transport: str = "nvme") -> Drive:
    kname = f"nvme{number}n1" if transport == "nvme" else f"sd{'bcdefghij'[number]}"
    return Drive(
        path=f"/dev/{kname}", kname=kname, model="ACME", serial=f"S{number}", wwn=None, firmware=None,
        size_bytes=256 << 20, logical_block_bytes=512, physical_block_bytes=512, rotational=False, transport=transport,
    )  # fmt: skip


def machine(controller: dict[str, int] | None = None, namespaces: int = 1) -> ScriptedMachine:
    listed = json.dumps({"nsid_list": [{"nsid": number + 1} for number in range(namespaces)]})
    here = ScriptedMachine().on("blkdiscard").on("nvme", "format").on("nvme", "list-ns", answer=listed)
    return here.on("nvme", "id-ctrl", answer=json.dumps(controller or FORMATS))


def formatted(here: ScriptedMachine) -> bool:
    return any(argv[:2] == ("nvme", "format") for argv in here.asked)


def test_the_best_purge_of_an_nvme_drive_is_a_format() -> None:
    here = machine()
    assert purge(here, [drive()], best=True) == {"S0": "NVMe format, user data erase"}
    assert here.asked[0] == ("blkdiscard", "/dev/nvme0n1")  # opens exclusively, which nvme-cli does not
    assert here.asked[-1] == ("nvme", "format", "/dev/nvme0n1", "--ses=1", "--force")


@pytest.mark.parametrize(("best", "transport"), [(False, "nvme"), (True, "sata"), (True, "sas")])
def test_otherwise_it_is_a_discard(best: bool, transport: str) -> None:
    here = machine()
    assert purge(here, [drive(transport=transport)], best=best) == {"S0": "discard of the whole range"}
    assert not formatted(here)


@pytest.mark.parametrize("fna", [0b001, 0b010, 0b111])
def test_a_format_that_would_reach_drives_nobody_gave_us_is_not_made(fna: int) -> None:
    here = machine({"oacs": 2, "fna": fna}, namespaces=2)
    assert purge(here, [drive()], best=True) == {"S0": "discard of the whole range"}
    assert not formatted(here)


def test_where_there_is_one_namespace_it_reaches_no_other() -> None:
    purge(here := machine({"oacs": 2, "fna": 1}), [drive()], best=True)
    assert formatted(here)


def test_who_does_not_say_how_many_namespaces_there_are_is_not_formatted() -> None:
    here = machine({"oacs": 2, "fna": 1}).on("nvme", "list-ns", answer=completed(["nvme"], status=1))
    purge(here, [drive()], best=True)
    assert not formatted(here)


def test_a_controller_without_the_command_is_not_asked_for_it() -> None:
    purge(here := machine({"oacs": 0b101, "fna": 0}), [drive()], best=True)
    assert not formatted(here)


@pytest.mark.parametrize("best", [True, False])
def test_a_drive_that_is_in_use_after_all_is_refused_before_anything_is_erased(best: bool) -> None:
    here = machine().on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=BUSY))
    with pytest.raises(DriveRefused, match=r"^/dev/nvme0n1 \(ACME, serial S0\) is in use: blkdiscard could not"):
        purge(here, [drive()], best=best)
    assert not formatted(here)


def test_a_drive_that_can_do_neither_is_recorded_as_not_purged() -> None:
    here = machine().on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=UNSUPPORTED)).on("wipefs")
    assert purge(here, [drive(transport="sata")], best=True) == {"S0": "none"}
    assert here.asked[-1] == ("wipefs", "--all", "/dev/sdb")  # what the user gave up is not found there afterwards


def test_a_format_that_fails_is_an_error() -> None:
    here = machine().on("nvme", "format", answer=completed(["nvme"], status=1, stderr="NVMe status: Invalid\n"))
    with pytest.raises(CommandFailed):
        purge(here, [drive()], best=True)


def zeroing(limits: str = "131072\n", left: str = "65536\n" * 4) -> ScriptedMachine:
    return ScriptedMachine().on("blkdiscard").on("cat", answer=limits).on("sh", answer=left)


def test_drives_that_can_are_zeroed_and_looked_at() -> None:
    here = zeroing("131072\n2147483648\n")
    assert zero(here, [drive(0), drive(1)])
    assert [argv for argv in here.asked if argv[0] == "blkdiscard"] == [
        ("blkdiscard", "--zeroout", "/dev/nvme0n1"), ("blkdiscard", "--zeroout", "/dev/nvme1n1"),
    ]  # fmt: skip
    spots = next(argv for argv in here.asked if argv[0] == "sh")[5:]
    assert spots[0] == "65536"
    assert [int(spot) for spot in spots[1:]] == [0, 1365, 2047, 4095]


def test_one_drive_that_would_need_a_whole_write_is_enough_not_to() -> None:
    here = zeroing("131072\n0\n")
    assert not zero(here, [drive(0), drive(1)])
    assert [argv[0] for argv in here.asked] == ["cat"]


def test_a_drive_that_does_not_keep_its_promise_is_found_out() -> None:
    assert not zero(zeroing(left="65536\n65536\n65535\n65536\n"), [drive()])


def test_a_drive_that_cannot_be_read_back_is_an_error() -> None:
    with pytest.raises(InvalidMeasurement, match="could not be read back after it was zeroed"):
        zero(zeroing(left="65536\n65536\n"), [drive()])


def test_a_spot_that_cannot_be_read_is_not_zero() -> None:
    said = subprocess.run(["sh", "-c", ZEROES, "zeroes", "/dev/none", "65536", "0"], capture_output=True, check=True)
    assert said.stdout.strip() == b"0"
    assert not zero(zeroing(left="65536\n65536\n0\n65536\n"), [drive()])


def test_a_drive_in_use_is_not_zeroed() -> None:
    with pytest.raises(DriveRefused, match="is in use"):
        zero(zeroing().on("blkdiscard", answer=completed(["blkdiscard"], status=1, stderr=BUSY)), [drive()])


def test_drives_are_worked_on_side_by_side_but_not_all_at_once() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def work(each_drive: Drive) -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return each_drive.kname

    drives = [drive(number) for number in range(20)]
    assert each(drives, work) == [one.kname for one in drives]
    assert 1 < most <= SIDE_BY_SIDE


def test_every_drive_is_finished_before_an_error_is_told() -> None:
    finished: list[str] = []

    def work(each_drive: Drive) -> None:
        if each_drive.kname == "nvme0n1":
            raise InvalidMeasurement("no")
        time.sleep(0.05)
        finished.append(each_drive.kname)

    with pytest.raises(InvalidMeasurement):
        each([drive(number) for number in range(4)], work)
    assert len(finished) == 3
