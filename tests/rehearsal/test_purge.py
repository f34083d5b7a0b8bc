"""Purging the lab's drives for real. They have Format and Deallocate; no emulation has Sanitize or ATA's commands."""

from __future__ import annotations

import pytest
from support.lab.bare_drives import Bench

from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine.machine import DriveRefused
from pytest_ssdqual.rig.purge import nvme, purge
from pytest_ssdqual.rig.purge.purge import DISCARD, LADDER, NONE, Purged, purge_one
from pytest_ssdqual.rig.purge.zero import PassedOver

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

FORMATTED = Purged("NVMe Format, user data erase")
#: A drive that can discard nothing: null_blk does not unless it is asked to.
NULL = Drive("/dev/nullb0", "nullb0", None, None, None, None, 1 << 30, 512, 512, False, None)


def test_drives_are_formatted_side_by_side_and_no_others(here: Bench) -> None:
    for drive in here.drives:
        here.soil(drive)
    purged = purge.purge(here.machine, here.drives[:3], best=True)
    assert purged == {drive.identity: FORMATTED for drive in here.drives[:3]}
    assert [here.is_soiled(drive) for drive in here.drives] == [[False] * 3] * 3 + [[True] * 3]


def test_a_format_alone_forgets_what_was_written(here: Bench) -> None:
    here.soil(here.drives[0])
    assert nvme.format_namespace(here.machine, here.drives[0]) == FORMATTED.method
    assert here.is_soiled(here.drives[0]) == [False] * 3


def test_sector_size_is_kept(here: Bench) -> None:
    """nvme-cli would take format 0 for a drive whose formats reach all namespaces."""
    drive = here.drives[1]
    # Format 4 of QEMU's drives: 4096 bytes, no metadata.
    here.machine.run(["nvme", "format", drive.path, "--lbaf=4", "--force"])
    try:
        assert here.logical_block_bytes(drive) == 4096
        assert nvme.format_namespace(here.machine, drive)
        assert here.logical_block_bytes(drive) == 4096
    finally:
        here.machine.run(["nvme", "format", drive.path, "--lbaf=0", "--force"])
    assert here.logical_block_bytes(drive) == 512


def test_the_emulated_drive_cannot_sanitize_and_is_discarded(here: Bench) -> None:
    drive = here.drives[2]
    here.soil(drive)
    reason = "NVMe Sanitize: the controller supports neither block erase nor crypto erase"
    assert purge_one(here.machine, drive, LADDER[1:]) == Purged(DISCARD, (reason,))
    assert here.is_soiled(drive) == [False] * 3
    assert nvme.sanitize_status(here.machine, drive) is None
    assert not nvme.await_sanitize(here.machine, drive)


def test_a_format_that_the_drive_refuses_is_passed_over(here: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has eight formats."""
    monkeypatch.setattr(nvme.NamespaceFormat, "options", lambda layout: ["--lbaf=9"])
    with pytest.raises(PassedOver, match="status: Invalid Format"):
        nvme.format_namespace(here.machine, here.drives[2])


def test_without_best_it_is_a_discard(here: Bench) -> None:
    here.soil(here.drives[3])
    purged = purge.purge(here.machine, here.drives[3:], best=False)
    assert purged == {here.drives[3].identity: Purged(DISCARD)}
    assert here.is_soiled(here.drives[3]) == [False] * 3


def test_a_drive_that_can_nothing_is_recorded_as_not_purged(here: Bench) -> None:
    here.machine.run(["modprobe", "null_blk", "nr_devices=1", "gb=1", "memory_backed=1"])
    try:
        here.machine.run(["mke2fs", "-q", NULL.path])
        purged = purge_one(here.machine, NULL, LADDER)
        assert purged.method == NONE
        assert len(purged.passed_over) == 1
        assert purged.passed_over[0].startswith("discard: blkdiscard: /dev/nullb0: ")
        assert here.machine.run(["wipefs", "--no-act", NULL.path]).text == ""
    finally:
        here.machine.run(["rmmod", "null_blk"])


def test_a_mounted_drive_is_refused_and_keeps_what_it_has(here: Bench) -> None:
    drive = here.drives[0]
    here.machine.run(["sh", "-ec", 'mke2fs -q "$1"; mkdir -p /mnt/late; mount "$1" /mnt/late', "mount", drive.path])
    try:
        with pytest.raises(DriveRefused, match="blkdiscard could not"):
            purge.purge(here.machine, [drive], best=True)
        here.machine.run(["test", "-d", "/mnt/late/lost+found"])
    finally:
        here.machine.run(["umount", "/mnt/late"])
        purge.purge(here.machine, [drive], best=False)
