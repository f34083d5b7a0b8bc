"""Members of this run's array: fail and remove them, and add them again as new ones.

Before an array loses members, a pattern is written that must survive the loss.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.survey import Drive, Topology, UseKind, survey
from pytest_ssdqual.rig.drives.topology import plain_uuid
from pytest_ssdqual.rig.guard import refusals
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine.machine import DriveRefused, Machine, RigError
from pytest_ssdqual.rig.md import mdadm, survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

#: Tries to remove a failed member: md's own thread releases it when its last I/O is over.
REMOVAL_TRIES = 20


def present(array: Array) -> tuple[Drive, ...]:
    """The members that are not missing; missing are always the last."""
    return array.members[: array.geometry.width - array.geometry.missing]


def missing(array: Array) -> tuple[Drive, ...]:
    return array.members[array.geometry.width - array.geometry.missing :]


def require(held: HeldDrives, machine: Machine, array: Array, drives: Sequence[Drive]) -> None:
    """Require that these members may be failed *now*: leased, the same drives as before, used only by this run's array.

    Nothing may use the array. ``DriveRefused`` with every reason; ``RigError`` if it is no longer this run's array.
    """
    held.require_lease()
    strangers = [drive.describe() for drive in drives if drive not in held.drives or drive not in array.members]
    if strangers:
        raise DriveRefused(f"not among the members of {array.path} or the drives of this run: {', '.join(strangers)}")
    topology = survey(machine, [drive.kname for drive in drives])
    if plain_uuid(array.uuid) not in [
        known_array.uuid for known_array in topology.arrays if known_array.kname == array.kname
    ]:
        raise RigError(f"{array.path} is no longer this run's array, so none of its members is failed")
    refused = [refusals.Refusal(array.path, uses)] if (uses := tuple(refusals.in_use(topology, array.kname))) else []
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
    """The topology without the array: it alone holds its members exclusively."""
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
    """Fail members, as md does when a drive returns errors, and remove them. ``RigError`` if md keeps them."""
    for drive in drives:
        fail(machine, array, drive)
        remove(machine, array, drive)
    mdadm.settle_udev(machine)


def fail(machine: Machine, array: Array, drive: Drive) -> None:
    """Fail one member; it stays in the array, as a failed one."""
    machine.run(["mdadm", "--fail", array.path, drive.path])


def remove(machine: Machine, array: Array, drive: Drive) -> None:
    """Remove a failed member. ``RigError`` if md keeps it."""
    for attempt in range(REMOVAL_TRIES):
        done = machine.run(["mdadm", "--remove", array.path, drive.path], check=False)
        if done.status == 0:
            return
        time.sleep(0.1 * (attempt + 1))
    raise RigError(f"cannot remove {drive.describe()} from {array.path}: {done.errors.strip()}")


def forget(machine: Machine, array: Array, drives: Sequence[Drive]) -> None:
    """Erase this run's superblock from removed members, so that md adds them as new ones and writes them whole.

    With it, mdadm would re-add them as the former members, and with a bitmap write only what changed meanwhile.
    ``RigError`` if one has no such superblock: then it is not the removed member.
    """
    not_erased = machine.run(
        ["sh", "-c", mdadm.ERASE, "erase", array.uuid, *(drive.path for drive in drives)]
    ).text.split()
    if not_erased:
        raise RigError(
            f"{', '.join(not_erased)} cannot be added to {array.path} again: this run's superblock is missing"
        )


def give_back(machine: Machine, array: Array, drives: Sequence[Drive]) -> None:
    """Add members with one command, during which mdadm keeps md from starting with the first alone."""
    argv = ["mdadm", "--add", array.path, *(drive.path for drive in drives)]
    fencing.run(machine, argv, drives, alone=False, deadline_s=120)


def fail_members(setup: Setup, array: Array, missing: int) -> Array:
    """Fail and remove the last members until ``missing`` are; return the degraded array.

    Before the first failure a pattern is written to the end of the array, which is reserved from then on
    (``survival_pattern``); not of an assembled array, whose parity is not right. Members are identified immediately
    before. ``ValueError`` if as many or more are missing already, or the level cannot lose so many; ``RigError`` or a
    child of it if the array is not healthy.
    """
    geometry = replace(array.geometry, missing=missing)
    if missing <= array.geometry.missing:
        raise ValueError(f"{array.geometry} cannot become {geometry} by losing members")
    setup.progress(f"{geometry}: fail members", 0)
    mdadm.require_healthy(setup.machine, array)
    if not array.geometry.missing and array.consistency != mdadm.ASSUMED:
        array = survival_pattern.write(setup, array)
    failing = present(array)[geometry.width - missing :]
    require(setup.held, setup.machine, array, failing)
    for drive in failing:
        setup.note(
            "member_failed", geometry, uuid=array.uuid, member=drive.identity, serial=drive.serial,
            path=drive.path,
        )  # fmt: skip
    lose(setup.machine, array, failing)
    degraded = replace(array, geometry=geometry)
    mdadm.require_healthy(setup.machine, degraded)
    return degraded
