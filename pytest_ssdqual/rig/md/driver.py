"""The kernel's md driver on the machine under test: loaded before anything is purged."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError

LOAD = scripts.text("md_driver.sh")
#: Module of the kernel by level; bare drives need none.
MODULES = {
    RaidLevel.RAID0: "raid0",
    RaidLevel.RAID1: "raid1",
    RaidLevel.RAID5: "raid456",
    RaidLevel.RAID6: "raid456",
    RaidLevel.RAID10: "raid10",
}


def require(machine: Machine, levels: Iterable[RaidLevel]) -> None:
    """Load the modules that arrays of these levels need; ``RigError`` if the kernel does not have one.

    Where that is unknown, as in a container without modprobe, mdadm decides later.
    """
    modules = sorted({MODULES[level] for level in levels if level in MODULES})
    if not modules:
        return
    missing = machine.run(["sh", "-c", LOAD, "md_driver", *modules], repeatable=True).text.splitlines()
    if missing:
        raise RigError(
            f"the kernel of {machine.name} has no md driver for these arrays ({'; '.join(missing)}): install the "
            "kernel's package of further modules there, or boot a kernel that has them"
        )
