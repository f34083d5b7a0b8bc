"""Making an array lose members: first something is written that must not be lost with them."""

from __future__ import annotations

from dataclasses import replace

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.md import mdadm, members, reserve
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup


def fail(setup: Setup, array: Array, missing: int) -> Array:
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
    failing = members.present(array)[geometry.width - missing :]
    members.require(setup.held, setup.machine, array, failing)
    for drive in failing:
        setup.logbook.note(
            "member_failed", geometry=str(geometry), uuid=array.uuid, member=drive.identity, serial=drive.serial,
            path=drive.path,
        )  # fmt: skip
    members.lose(setup.machine, array, failing)
    degraded = replace(array, geometry=geometry)
    mdadm.require_healthy(setup.machine, degraded)
    return degraded
