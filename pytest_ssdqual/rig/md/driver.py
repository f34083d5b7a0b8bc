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
    """Load the modules that arrays of these levels need; ``RigError`` if the kernel does not have one."""
    if lacking := list(filter(None, missing(machine, levels, load=True).values())):
        raise RigError(without(machine, lacking))


def missing(machine: Machine, levels: Iterable[RaidLevel], *, load: bool) -> dict[str, str]:
    """Return the words of modprobe about each module of these levels that the kernel does not have.

    They are empty where that is unknown, as in a container without modprobe: mdadm decides later. The others are loaded
    with ``load``.
    """
    modules = sorted({MODULES[level] for level in levels if level in MODULES})
    if not modules:
        return {}
    argv = ["sh", "-c", LOAD, "md_driver", "" if load else "-n", *modules]
    lines = machine.run(argv, repeatable=True).text.splitlines()
    words = {line.partition(":")[0]: line for line in lines}
    return {module: "" if line.endswith(":") else line for module, line in words.items()}


def without(machine: Machine, lacking: Iterable[str]) -> str:
    """Return the sentence about modules that the kernel does not have."""
    return (
        f"the kernel of {machine.name} has no md driver for these arrays ({'; '.join(lacking)}): install the kernel's "
        "package of further modules there, or boot a kernel that has them"
    )
