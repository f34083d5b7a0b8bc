from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.builders import drives
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine.machine import Completed, DriveRefused, Machine, RigError
from pytest_ssdqual.rig.purge import ata, nvme, purge
from pytest_ssdqual.rig.purge.purge import DISCARD, LADDER, NONE, Purged, Rung, purge_one
from pytest_ssdqual.rig.purge.zero import PassedOver

BUSY = "blkdiscard: cannot open /dev/nvme0n1: Device or resource busy\n"
UNSUPPORTED = "blkdiscard: /dev/nvme0n1: BLKDISCARD ioctl failed: Operation not supported\n"
IO_ERROR = "blkdiscard: /dev/nvme0n1: BLKDISCARD ioctl failed: Input/output error\n"


def drive(number: int = 0, transport: str | None = "nvme") -> Drive:
    if transport == "nvme":
        return drives.drive(number)
    kname = f"sd{'bcdefghij'[number]}"
    return replace(drives.drive(number), path=f"/dev/{kname}", kname=kname, transport=transport)


def failing(stderr: str) -> Completed:
    return completed(["blkdiscard"], status=1, stderr=stderr)


def machine(discard: Completed | str = "") -> ScriptedMachine:
    return ScriptedMachine().on("blkdiscard", answer=discard).on("wipefs")


def rung(name: str, outcome: str | Exception, *transports: str) -> Rung:
    def climb(here: Machine, each: Drive) -> str:
        here.run([name, each.path])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Rung(name, frozenset(transports or ("nvme",)), climb)


def test_the_first_rung_that_holds_is_the_purge() -> None:
    here = machine().on("best").on("good").on("other")
    ladder = (rung("best", PassedOver("none")), rung("good", "done well"), rung("other", "done, too"))
    assert purge_one(here, drive(), ladder) == Purged("done well", ("best: none",))
    # The discard opens the drive exclusively, which neither nvme-cli nor hdparm does: it is always first.
    assert [argv[0] for argv in here.asked] == ["blkdiscard", "best", "good"]


def test_purged_drive_that_answers_no_read_in_time_is_named() -> None:
    here, drives = machine(), [drive(0), drive(1)]
    purge.purge(here, drives, best=False)
    assert here.asked[-1][4:] == ("3600", "/dev/nvme0n1", "/dev/nvme1n1")
    here.contents.silent.add("/dev/nvme1n1")
    with pytest.raises(RigError) as silent:
        purge.purge(here, drives, best=False)
    assert "serial S1" in str(silent.value)
    assert "S0" not in str(silent.value)


def test_a_rung_is_for_its_own_kind_of_drive() -> None:
    ladder = (rung("nvme's", "by nvme"), rung("ata's", "by ata", "sata", "sas"))
    here = machine().on("ata's")
    assert purge_one(here, drive(transport="sata"), ladder) == Purged("by ata")
    assert purge_one(machine(), drive(transport="usb"), ladder) == Purged(DISCARD)
    assert purge_one(machine(), drive(transport=None), ladder) == Purged(DISCARD)


def test_when_no_rung_holds_it_is_a_discard_and_says_why() -> None:
    ladder = (rung("best", PassedOver("frozen")), rung("good", PassedOver("none")))
    purged = purge_one(machine().on("best").on("good"), drive(), ladder)
    assert purged == Purged(DISCARD, ("best: frozen", "good: none"))
    assert plain(purged) == {"method": DISCARD, "passed_over": ["best: frozen", "good: none"]}
    assert json.loads(json.dumps(plain(purged))) == plain(purged)


def test_drive_that_can_do_nothing_is_recorded_as_not_purged() -> None:
    here = machine(failing(UNSUPPORTED)).on("best").on("hdparm", "--sanitize-status")
    purged = purge_one(here, drive(transport="sata"), (rung("best", PassedOver("none"), "sata"),))
    assert purged.method == NONE
    best, discard = purged.passed_over
    assert best == "best: none"
    assert discard.startswith("discard: ")
    assert here.asked[-1] == ("wipefs", "--all", "/dev/sdb")  # what the user gave up is not found there afterwards


def test_a_drive_that_is_purged_needs_no_discard_and_no_wiping() -> None:
    here = machine(failing(UNSUPPORTED)).on("best").on("nvme", "get-log", answer=failing("unsupported"))
    assert purge_one(here, drive(), (rung("best", "done"),)) == Purged("done")
    assert "wipefs" not in [argv[0] for argv in here.asked]


@pytest.mark.parametrize("best", [True, False])
def test_drive_in_use_is_refused_before_anything_is_erased(best: bool) -> None:
    here = machine(failing(BUSY))
    with pytest.raises(DriveRefused, match=r"S0\) is in"):
        purge.purge(here, [drive()], best=best)
    assert here.asked == [("blkdiscard", "/dev/nvme0n1")]


def test_drive_that_is_put_to_use_before_it_is_wiped_is_refused() -> None:
    here = machine(failing(UNSUPPORTED)).on("wipefs", answer=failing("wipefs: error: /dev/x: Device or resource busy"))
    with pytest.raises(DriveRefused, match="wipefs could not"):
        purge_one(here, drive(transport="usb"), ())


def test_drive_that_cannot_be_written_is_an_error() -> None:
    """A drive that is locked by a password, say."""
    here = machine(failing(IO_ERROR)).on("best").on("hdparm", "--sanitize-status")
    here.on("wipefs", answer=failing("wipefs: error: /dev/sdb: Input/output error"))
    with pytest.raises(RigError, match=r"S0\) .*best: locked.*wipefs"):
        purge_one(here, drive(transport="sata"), (rung("best", PassedOver("locked"), "sata"),))


def test_an_error_of_a_rung_is_not_passed_over() -> None:
    ladder = (rung("best", RigError("the drive is worse")), rung("good", "done"))
    with pytest.raises(RigError, match="is worse"):
        purge_one(machine().on("best"), drive(), ladder)


@pytest.mark.parametrize(("transport", "room"), [("nvme", nvme), ("sata", ata), ("sas", ata)])
def test_a_drive_that_somebody_sanitizes_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, transport: str, room: object
) -> None:
    answers = [failing(IO_ERROR), completed(["blkdiscard"])]
    monkeypatch.setattr(room, "await_sanitize", lambda here, drive: len(answers) == 1)
    here = ScriptedMachine().on("blkdiscard", answer=lambda argv: answers.pop(0))
    assert purge_one(here, drive(transport=transport), ()) == Purged(DISCARD)
    assert not answers


def test_each_drive_has_its_own_method_by_its_identity() -> None:
    here = ScriptedMachine().on("wipefs").on("hdparm", "--sanitize-status")
    here.on("blkdiscard", answer=lambda argv: failing(UNSUPPORTED) if argv[-1] == "/dev/sdc" else completed(argv))
    purged = purge.purge(here, [drive(0), drive(1, "sata")], best=False)
    assert {name: each.method for name, each in purged.items()} == {"S0": DISCARD, "S1": NONE}


@pytest.mark.parametrize("best", [True, False])
def test_only_the_best_means_ask_the_controller(best: bool) -> None:
    here = machine().on("nvme", "id-ctrl", answer=failing("no"))
    purged = purge.purge(here, [drive()], best=best)["S0"]
    assert (purged.method, bool(purged.passed_over)) == (DISCARD, best)
    assert (("nvme", "id-ctrl", "/dev/nvme0n1", "--output-format=json") in here.asked) is best


def test_ladder_begins_with_format_for_nvme_and_sanitize_for_ata() -> None:
    names = {transport: [each.name for each in LADDER if transport in each.transports] for transport in TRANSPORTS}
    assert names == TRANSPORTS


TRANSPORTS = {
    "nvme": ["NVMe Format", "NVMe Sanitize"],
    "sata": ["ATA Sanitize", "ATA Security Erase"],
    "sas": ["ATA Sanitize", "ATA Security Erase"],  # SATA drives behind a SAS adapter
    "usb": [],
}
