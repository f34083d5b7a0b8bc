"""The machine itself: one boot for all of it, and what becomes of it when its owner is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.lab.faulty_vm import UnknownDrive

from pytest_ssdqual.lab.vm import Reach

if TYPE_CHECKING:
    from support.lab.faulty_vm import FaultyVm
    from support.lab.rehearsed import LabHost

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

#: Only ends what hangs.
DEADLINE_S = 60.0


@pytest.fixture
def vm(lab: LabHost) -> FaultyVm:
    return lab.vm


def ask(reach: Reach, command: str) -> str:
    done = subprocess.run(reach.argv(command), capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    return done.stdout.strip() if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()}"


def await_that(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            pytest.fail("waited in vain")
        time.sleep(0.05)


def by_id(serial: str) -> str:
    return f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}"


def test_the_drives_are_what_was_asked_for(vm: FaultyVm) -> None:
    listed = ask(vm.ssh, "lsblk --nodeps --bytes --noheadings --output SERIAL,SIZE,MODEL /dev/nvme*n1 | sort")
    assert [line.split(maxsplit=2) for line in listed.splitlines()] == [
        [drive.serial, str(drive.size_bytes), drive.MODEL] for drive in vm.drives
    ]
    assert ask(vm.ssh, f"readlink -e {by_id('SSDQ0001')}").startswith("/dev/nvme")


def test_every_tool_is_there(vm: FaultyVm) -> None:
    tools = (
        "fio mdadm smartctl nvme lsblk blkdiscard wipefs flock setpriv losetup findmnt sfdisk mkswap swapon timeout "
        "mkfs.ext4 vgcreate dmsetup cryptsetup gzip pidof perl sudo udevadm"
    )
    missing = f"for tool in {tools}; do command -v $tool >/dev/null || echo $tool; done"
    assert ask(vm.ssh, missing) == ""


def test_raid_levels_and_mappings_can_be_had(vm: FaultyVm) -> None:
    modules = "raid0 raid1 raid10 raid456 dm_crypt dm_delay loop"
    commands = [f"for name in {modules}; do test -d /sys/module/$name || echo $name; done"]
    commands.append("modprobe null_blk nr_devices=0 && rmmod null_blk")
    assert [ask(vm.ssh, command) for command in commands] == ["", ""]
    assert "ext4" in ask(vm.ssh, "cat /proc/filesystems")


def test_users(vm: FaultyVm) -> None:
    tester, nosudo = (replace(vm.ssh, user=user) for user in ("tester", "nosudo"))
    assert ask(vm.ssh, "id -un") == "root"
    by_sudo = "sudo -n id -un"
    assert ask(tester, f"id -un; {by_sudo}") == "tester\nroot"
    assert ask(nosudo, by_sudo).startswith("status 1: sudo:")


def test_what_the_guest_writes_is_in_the_backing_file(vm: FaultyVm) -> None:
    content = vm.backing_file("SSDQ0002")
    drive = by_id("SSDQ0002")
    ask(vm.ssh, f"yes SSDQUAL | head -c 4096 | dd of={drive} bs=4096 seek=3 oflag=direct conv=fsync")
    with content.open("rb") as file:
        file.seek(3 * 4096)
        assert file.read(4096) == b"SSDQUAL\n" * 512
    ask(vm.ssh, f"blkdiscard {drive}")
    assert content.stat().st_blocks == 0


def test_a_changed_limit(vm: FaultyVm) -> None:
    vm.set_iops("SSDQ0003", 77)
    limits = vm._ask("qom-get", path="/objects/limit2", property="limits")
    vm.set_iops("SSDQ0003", 300)
    assert isinstance(limits, dict)
    assert limits["iops-total"] == 77
    with pytest.raises(UnknownDrive):
        vm.set_iops("SSDQ9999", 1)
    vm.set_iops("SSDQ0003", 300, 100)
    limits = vm._ask("qom-get", path="/objects/limit2", property="limits")
    vm.set_iops("SSDQ0003", 300)
    again = vm._ask("qom-get", path="/objects/limit2", property="limits")
    assert isinstance(limits, dict)
    assert isinstance(again, dict)
    names = ("iops-total", "iops-read", "iops-write")
    assert [[found[name] for name in names] for found in (limits, again)] == [[0, 300, 100], [300, 0, 0]]


def test_drives_behind_one_limit(vm: FaultyVm) -> None:
    both = ["SSDQ0001", "SSDQ0002"]
    vm.share_limit(both)
    ask(vm.ssh, f"dd if={by_id(both[1])} of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null")
    vm.share_limit(both, shared=False)
    with pytest.raises(UnknownDrive):
        vm.share_limit(["SSDQ0001", "SSDQ9999"])


def test_pull_and_plug(vm: FaultyVm) -> None:
    vm.pull("SSDQ0003")
    assert ask(vm.ssh, f"test -e {by_id('SSDQ0003')}").startswith("status 1")
    vm.plug("SSDQ0003")
    await_that(lambda: ask(vm.ssh, f"test -b {by_id('SSDQ0003')}") == "")


def test_a_frozen_machine_goes_on(vm: FaultyVm) -> None:
    vm.pause()
    assert vm._ask("query-status") == {"status": "paused", "singlestep": False, "running": False}
    vm.cont()
    assert ask(vm.ssh, "echo alive") == "alive"


@pytest.mark.nightly
def test_reset_and_power_cut_keep_what_is_on_the_drives(vm: FaultyVm) -> None:
    drive, port = by_id("SSDQ0004"), vm.ssh.port
    ask(vm.ssh, f"yes kept | head -c 4096 | dd of={drive} bs=4096 oflag=direct")
    boots = [ask(vm.ssh, "cat /proc/sys/kernel/random/boot_id")]
    vm.reset()
    boots.append(ask(vm.ssh, "cat /proc/sys/kernel/random/boot_id"))
    vm.power_cut()
    assert vm.pid is None
    vm.power_on()
    boots.append(ask(vm.ssh, "cat /proc/sys/kernel/random/boot_id"))
    assert len(set(boots)) == 3
    assert vm.ssh.port == port
    assert ask(vm.ssh, f"head -c 5 {drive}") == "kept"
    ask(vm.ssh, f"blkdiscard {drive}")


OWNER = """
import sys, time, pytest_ssdqual.lab as lab
from pytest_ssdqual.lab.drives import shelf
with lab.start(shelf(1)): time.sleep(600)
"""


def test_a_killed_owner_takes_its_machine_along() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.DEVNULL) as owner:
        emulators: list[Path] = []

        def started() -> bool:
            children = Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text(encoding="ascii").split()
            found = [Path("/proc", child) for child in children]
            emulators[:] = [path for path in found if (path / "comm").read_text().startswith("qemu")]
            return bool(emulators)

        await_that(started)
        # A signal to the run's process group, as timeout(1) sends it, is not for its machine.
        assert os.getpgid(int(emulators[0].name)) != os.getpgid(owner.pid)
        owner.send_signal(signal.SIGKILL)
    (emulator,) = emulators
    await_that(lambda: not emulator.exists() or "\nState:\tZ" in (emulator / "status").read_text())
