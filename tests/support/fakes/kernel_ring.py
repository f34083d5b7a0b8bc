"""A machine of which only /sys, the uptime and the kernel's log exist, for ``environment.SCRIPT``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pytest_ssdqual.qual.measured.environment import KernelLine
from pytest_ssdqual.qual.validity.drive_failure import DriveTrace
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.observe.drive_failure import own_names
from pytest_ssdqual.rig.observe.environment import SCRIPT, EnvironmentReading, parse
from pytest_ssdqual.rig.observe.kernel_log import PICK

#: Where drives hang, as Linux 6.1 has it: NVMe below a root port, SATA at an AHCI controller, behind a port multiplier,
#: SAS at an HBA, by USB, behind RAID adapters, NVMe behind Intel's VMD, virtio, and an NVMe of two controllers.
PLACES = {
    "nvme0n1": "pci0000:00/0000:00:1c.0/0000:01:00.0/nvme/nvme0",
    "nvme2n1": "pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0/nvme/nvme2",
    "sda": "pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0",
    "sdb": "pci0000:00/0000:00:1f.2/ata4/host3/target3:1:0/3:1:0:0",
    "sdc": "pci0000:00/0000:00:03.0/0000:05:00.0/host6/port-6:0/end_device-6:0/target6:0:1/6:0:1:0",
    "sdd": "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host9/target9:0:0/9:0:0:0",
    "sde": "pci0000:00/0000:00:04.0/0000:06:00.0/host7/target7:2:0/7:2:0:0",
    "sdf": "pci0000:00/0000:00:06.0/0000:07:00.0/host8/port-8:0/end_device-8:0/target8:0:1/8:0:1:0",
    "vda": "pci0000:00/0000:00:05.0/virtio2",
    "nvme1n1": "virtual/nvme-subsystem/nvme-subsys1",
}
#: Of them one of each kind: NVMe, SATA, SAS behind mpt3sas, USB, and behind RAID adapters.
DRIVES = ("nvme0n1", "sda", "sdc", "sdd", "sde", "sdf")
SECOND_PATH = "pci0000:00/0000:00:1d.0/0000:02:00.0/nvme/nvme3"


def build(tmp_path: Path) -> Path:
    """Make a root directory with those drives."""
    devices, block = tmp_path / "sys/devices", tmp_path / "sys/block"
    for kname, place in {**PLACES, "": SECOND_PATH}.items():
        (devices / place).mkdir(parents=True)
        if kname:
            (block / kname).mkdir(parents=True)
            (block / kname / "device").symlink_to(devices / place)
    for namespace in ("nvme0n1", "nvme0n2"):
        (devices / PLACES["nvme0n1"] / namespace).mkdir()
    (devices / PLACES["nvme1n1"] / "nvme3").symlink_to(devices / SECOND_PATH)
    (block / "nvme1c3n1").mkdir()
    for host, driver in ((2, "ahci"), (6, "mpt3sas"), (7, "megaraid_sas"), (8, "smartpqi"), (9, "uas")):
        (tmp_path / f"sys/class/scsi_host/host{host}").mkdir(parents=True)
        (tmp_path / f"sys/class/scsi_host/host{host}/proc_name").write_text(f"{driver}\n")
        (tmp_path / f"sys/class/scsi_host/host{host}/unique_id").write_text("1\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/uptime").write_text("1442.10 2770.07\n")
    (tmp_path / "bin").mkdir()
    program(tmp_path, "dmesg", "exit 1")
    return tmp_path


def program(machine: Path, name: str, script: str) -> None:
    (machine / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
    (machine / "bin" / name).chmod(0o755)


def say(machine: Path, *texts: str, first: int = 1, level: int = 3) -> None:
    """Put them into the kernel's log, a second each, in the manner of /dev/kmsg."""
    (machine / "dev").mkdir(exist_ok=True)
    with (machine / "dev/kmsg").open("a") as log:
        for number, text in enumerate(texts, first):
            log.write(
                f"{level},{number},{1_000_000 * number + 5},-;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:01:00.0\n"
            )


def look(
    machine: Path, drives: Sequence[str], when: str, array: str = "md100", since: str = "new", names: str = ""
) -> EnvironmentReading:
    script = SCRIPT
    for root in ("/proc/", "/sys/", "/dev/kmsg"):
        script = script.replace(root, f"{machine}{root}")
    words = [part for kname in drives for part in (kname, f"/dev/{kname}", "auto")]
    env = {**os.environ, "PATH": f"{machine / 'bin'}:{os.environ['PATH']}"}
    argv = ["sh", "-c", script, "environment", PICK, when, array, since, names, *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    assert done.stderr == ""
    return parse(done.stdout, array, drives)


def collected(machine: Path, messages: Sequence[str]) -> tuple[list[KernelLine], list[DriveTrace]]:
    """Put messages into the log, and return those that the script reports, and the drives with their names."""
    say(machine, "Linux version 6.1")
    first = look(machine, DRIVES, "before")
    say(machine, *messages, first=2)
    assert first.kernel_log
    last = look(machine, DRIVES, "after", "md100", first.kernel_log.mark, " ".join(first.names))
    assert last.kernel_log
    members = [
        Drive(f"/dev/{each}", each, "ACME", each, None, None, 1 << 30, 512, 512, False, "sata") for each in DRIVES
    ]
    names = own_names(members, first.names)
    traces = [DriveTrace(each, f"/dev/{each}", names[each], True) for each in DRIVES]
    return list(last.kernel_log.log.lines), traces
