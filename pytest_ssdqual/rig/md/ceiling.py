"""Ceiling of md and the host: the same array on memory devices of the machine under test, for a few seconds.

No drive is opened. The members are devices that this module makes itself (``scripts/memory_devices.sh``) with null_blk
or, where that is missing, brd, and it refuses any other path. What cannot be measured is unknown, with the reason; only
a lost machine raises.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pytest_ssdqual.qual.measured.sweep import Ceiling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.fio import jobs, process
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.load import Load
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, MachineLost, RigError, ask, count
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.measure.session import Setup

NULL_BLK, BRD, PREFIX = "null_blk", "brd", "ssdqualnull"
#: Size of a member, MiB: a thousand stripes for each I/O outstanding would be better, but memory is short.
MEMBER_MIB = 48
#: Counted time and the ramp before it, seconds.
WINDOW_S, RAMP_S = 4.0, 1.0
#: random(4).
BOOT_ID = "/proc/sys/kernel/random/boot_id"
DEVICES = scripts.text("memory_devices.sh")
#: Paths that null_blk gives its devices, by its own numbers or by their names in configfs, and those of brd, which the
#: script loads for this purpose only.
OWN = re.compile(rf"/dev/(?:nullb\d{{1,4}}|{PREFIX}[0-9a-f]+n\d{{1,4}}|(?P<brd>ram\d{{1,4}}))", re.ASCII)


def measure(setup: Setup, geometry: Geometry, workload: Workload) -> Ceiling:
    """Measure ``workload`` on an array of memory devices that complete each I/O at once.

    ``MachineLost`` if the machine is lost; any other fault gives a ceiling that is unknown, with the reason.
    """
    setup.progress(f"{geometry}: {workload} on memory devices", RAMP_S + WINDOW_S)
    try:
        with _devices(setup.machine, geometry.width) as members:
            iops = _on(setup, geometry, workload, members)
        driver = BRD if all(path["brd"] for path in map(OWN.fullmatch, members) if path) else NULL_BLK
        boot = boot_id(setup.machine)
        measured = Ceiling(geometry, str(workload), driver, iops, boot_id=boot, asked=workload)
    except MachineLost:
        raise
    except (RigError, ValueError) as error:
        measured = Ceiling(geometry, str(workload), "", None, unknown=str(error), asked=workload)
    setup.logbook.note("ceiling", **shallow(measured))
    return measured


def boot_id(machine: Machine) -> str:
    """Return the kernel's id of this boot; ``RigError`` if it cannot be read."""
    return machine.run(["cat", BOOT_ID], repeatable=True).text.strip()


@contextmanager
def _devices(machine: Machine, number: int) -> Iterator[tuple[str, ...]]:
    """Make the memory devices, and remove them; ``RigError`` if the machine cannot."""
    script, whose = ["sh", "-c", DEVICES, "memory_devices"], [PREFIX, machine.token, DIRECTORY]
    try:
        up = [*script, "up", *whose, str(number), str(MEMBER_MIB)]
        done = machine.run(up, check=False, deadline_s=120)
        if done.status:
            raise RigError(done.errors.strip().splitlines()[-1] if done.errors.strip() else "no memory devices")
        paths = tuple(done.text.split())
        if len(set(paths)) != number or not all(OWN.fullmatch(path) for path in paths):
            raise RigError(f"the script made {', '.join(paths)[:200] or 'no devices'}")
        yield paths
    finally:
        machine.run([*script, "down", *whose], check=False, deadline_s=120)


def _on(setup: Setup, geometry: Geometry, workload: Workload, members: Sequence[str]) -> float:
    """Build the array on ``members``, measure, and stop it."""
    machine, settings = setup.machine, setup.protocol.array.of(geometry)
    uuid = ":".join(secrets.token_hex(4) for _ in range(4))
    path = mdadm.free_path(machine)
    try:
        machine.run(
            mdadm.create_argv(geometry.healthy, path, members, settings, uuid, assume_clean=True), deadline_s=120
        )
        mdadm.settle_udev(machine)
        for member in members[geometry.width - geometry.missing :]:
            machine.run(["mdadm", path, "--fail", member], deadline_s=60)
        mdadm.tune(machine, geometry, path.removeprefix("/dev/"), settings)
        size = count(machine.run(["blockdev", "--getsize64", path], repeatable=True))
        target = JobTarget(path, size, checked=Checked(path, size, uuid=uuid))
        seconds = RAMP_S + WINDOW_S
        load = Load(setup.load.drives.array_engine, setup.load.drives.jobs)
        job = jobs.measurement(workload, [target], geometry.width, seconds, load=load)
        result = process.run(machine, job, seconds).accepted(job.expectation)
    finally:
        if ask(machine, ["test", "-e", path]).status == 0:
            mdadm.require_uuid(machine, path, uuid)
            mdadm.halt(machine, path)
    counted = [each for each in result.intervals if each.start_s >= RAMP_S]
    return sum(each.ios for each in counted) / max(1e-9, sum(each.seconds for each in counted))
