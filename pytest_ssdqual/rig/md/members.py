"""Members of this run's array: fail and remove them, and add them again as new ones.

Before an array loses members, a pattern is written that must survive the loss.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive, Topology, UseKind, survey
from pytest_ssdqual.rig.drives.topology import plain_uuid
from pytest_ssdqual.rig.guard import refusals
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine.machine import DriveRefused, Machine, RigError
from pytest_ssdqual.rig.md import mdadm, reserve
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

#: A failed member is let go by md's own thread, when its last I/O is over.
REMOVAL_TRIES = 20


def present(array: Array) -> tuple[Drive, ...]:
    """The members that are not missing: missing are always the last."""
    return array.members[: array.geometry.width - array.geometry.missing]


def missing(array: Array) -> tuple[Drive, ...]:
    return array.members[array.geometry.width - array.geometry.missing :]


def require(held: HeldDrives, machine: Machine, array: Array, drives: Sequence[Drive]) -> None:
    """Raise unless these members may be failed *now*: held, the same drives as before, used by nothing but our array.

    And that by nothing at all. ``DriveRefused`` with every reason; ``RigError`` if the array is not ours any more.
    """
    held.require_lease()
    strangers = [drive.describe() for drive in drives if drive not in held.drives or drive not in array.members]
    if strangers:
        raise DriveRefused(f"not among the members of {array.path} or the drives of this run: {', '.join(strangers)}")
    topology = survey(machine, [drive.kname for drive in drives])
    if plain_uuid(array.uuid) not in [each.uuid for each in topology.arrays if each.kname == array.kname]:
        raise RigError(f"{array.path} is not our array any more, so none of its members is failed")
    refused = [refusals.Refusal(array.path, used)] if (used := tuple(refusals.in_use(topology, array.kname))) else []
    for drive in drives:
        if reasons := tuple(_objections(topology, array, drive)):
            refused.append(refusals.Refusal(drive.describe(), reasons))
    if refused:
        raise DriveRefused(refusals.explain(refused))


def _objections(topology: Topology, array: Array, drive: Drive) -> Iterator[str]:
    node = topology.nodes.get(drive.kname)
    if node is None or array.kname not in node.holders:
        yield f"is not a member of {array.path}"
    yield from refusals.changed(without(topology, array.kname), drive)


def without(topology: Topology, kname: str) -> Topology:
    """The same devices as if the array were not built on its members, which alone hold them exclusively then."""
    nodes = {
        name: replace(
            node,
            holders=tuple(holder for holder in node.holders if holder != kname),
            uses=tuple(use for use in node.uses if use.kind is not UseKind.EXCLUSIVE),
        )
        if kname in node.holders
        else node
        for name, node in topology.nodes.items()
    }
    return replace(topology, nodes=nodes)


def lose(machine: Machine, array: Array, drives: Sequence[Drive]) -> None:
    """Fail members, as md does when a drive answers with errors, and remove them. ``RigError`` if md keeps them."""
    for drive in drives:
        fail(machine, array, drive)
        remove(machine, array, drive)
    machine.run(["udevadm", "settle", "--timeout=30"], check=False, deadline_s=60, repeatable=True)


def fail(machine: Machine, array: Array, drive: Drive) -> None:
    """Fail one member; it stays, as a failed one."""
    machine.run(["mdadm", "--fail", array.path, drive.path])


def remove(machine: Machine, array: Array, drive: Drive) -> None:
    """Take a failed member out. ``RigError`` if md keeps it."""
    for attempt in range(REMOVAL_TRIES):
        done = machine.run(["mdadm", "--remove", array.path, drive.path], check=False)
        if done.status == 0:
            return
        time.sleep(0.1 * (attempt + 1))
    raise RigError(f"cannot remove {drive.describe()} from {array.path}: {done.errors.strip()}")


def forget(machine: Machine, array: Array, drives: Sequence[Drive]) -> None:
    """Erase our superblock from removed members, so that md takes them for new ones and writes them whole.

    With it, mdadm would add them again as those they were, and with a bitmap only what changed meanwhile is written.
    ``RigError`` if one did not bear it: then it is not what we removed.
    """
    left = machine.run(["sh", "-c", mdadm.ERASE, "erase", array.uuid, *(drive.path for drive in drives)]).text.split()
    if left:
        raise RigError(f"{', '.join(left)} cannot be given back to {array.path}: without our superblock on it")


def give_back(machine: Machine, array: Array, drives: Sequence[Drive]) -> None:
    """Add members; one command for all, during which mdadm keeps md from starting with the first alone."""
    argv = ["mdadm", "--add", array.path, *(drive.path for drive in drives)]
    fencing.run(machine, argv, drives, alone=False, deadline_s=120)


def fail_members(setup: Setup, array: Array, missing: int) -> Array:
    """Fail and remove the last members until ``missing`` are; the array as it is then.

    Before the first of them a pattern is written to the end of the array, which is reserved from then on
    (``reserve``). Members are identified immediately before. ``ValueError`` if as many or more are missing already,
    or the level cannot lose so many; ``RigError`` or a child of it if the array is not as it should be.
    """
    geometry = Geometry(array.geometry.level, array.geometry.width, missing)
    if missing <= array.geometry.missing:
        raise ValueError(f"{array.geometry} cannot become {geometry} by losing members")
    setup.progress(f"{geometry}: fail members", 0)
    mdadm.require_healthy(setup.machine, array)
    if not array.geometry.missing:
        array = reserve.write(setup, array)
    failing = present(array)[geometry.width - missing :]
    require(setup.held, setup.machine, array, failing)
    for drive in failing:
        setup.logbook.note(
            "member_failed", geometry=str(geometry), uuid=array.uuid, member=drive.identity, serial=drive.serial,
            path=drive.path,
        )  # fmt: skip
    lose(setup.machine, array, failing)
    degraded = replace(array, geometry=geometry)
    mdadm.require_healthy(setup.machine, degraded)
    return degraded
