"""md's ceiling on memory devices, with real md: known on every level, and nothing is left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from support.builders.measuring import UNPREPARED as PROTOCOL
from support.lab.bare_drives import Book, bench
from support.lab.rehearsed import Lab

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY
from pytest_ssdqual.rig.md import ceiling
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import host_load

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]


@pytest.fixture(scope="module")
def setup(lab: Lab) -> Iterator[Setup]:
    with bench(lab) as here:
        held = HeldDrives(here.machine, here.drives)
        yield Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
        held.release()
        # Another rehearsal loads the module with devices of its own.
        here.machine.run(["rmmod", "null_blk"], check=False)


@pytest.mark.every_release
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("raid0x4", marks=pytest.mark.nightly),
        "raid5x4",
        pytest.param("raid6x4-1failed", marks=pytest.mark.nightly),
        pytest.param("raid10x4", marks=pytest.mark.nightly),
    ],
)
def test_the_ceiling_of_every_level_is_known_and_nothing_is_left(setup: Setup, name: str) -> None:
    geometry = Geometry.parse(name)
    found = ceiling.measure(setup, geometry, Workload("randwrite", "4k", 4))
    assert found.unknown == ""
    assert found.boot_id == ceiling.boot_id(setup.machine) != ""
    assert found.iops is not None
    assert found.iops > 0
    left = setup.machine.run(["sh", "-c", "cat /proc/mdstat; ls /sys/kernel/config/nullb"]).text
    assert "md1" not in left
    assert ceiling.PREFIX not in left
    if geometry.has_parity:
        assert host_load.RAID5_QUEUE in _queues(setup)


def _queues(setup: Setup) -> list[str]:
    """Names of the last work of the kernel's workers, while an array of memory devices does something."""
    done = threading.Event()
    names: list[str] = []

    def look() -> None:
        while not done.wait(0.5):
            lines = setup.machine.run(["sh", "-c", "grep -sH '' /proc/[0-9]*/stat"], check=False).text.splitlines()
            names.extend(match["queue"] for match in map(host_load.WORKER.fullmatch, lines) if match)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        ceiling.measure(setup, Geometry.parse("raid5x4"), Workload("randwrite", "4k", 4))
    finally:
        done.set()
        looking.join()
    return names


def test_devices_of_another_run_are_left_alone_until_it_is_dead(setup: Setup) -> None:
    machine, other = setup.machine, "0123456789ab"
    alive = machine.tether(["flock", "--shared", f"{DIRECTORY}/run-{other}.lock", "sleep", "600"], first_signal="TERM")
    argv = ["sh", "-c", ceiling.DEVICES, "memory_devices", "up", ceiling.PREFIX, other, DIRECTORY, "2", "48"]
    others = machine.run(argv).text.split()
    # As a run leaves it that is killed during the measurement.
    machine.run(["mdadm", "--create", "/dev/md200", "--run", "--level=0", "--raid-devices=2", *others])
    for is_alive in (True, False):
        assert ceiling.measure(setup, Geometry.parse("raid0x2"), Workload("randread", "4k", 4)).unknown == ""
        left = machine.run(["sh", "-c", "cat /proc/mdstat; ls /sys/kernel/config/nullb"]).text
        assert (("md200" in left), (other in left)) == (is_alive, is_alive)
        assert machine.token not in left
        alive.cut()


def test_brd_serves_where_null_blk_is_missing(setup: Setup) -> None:
    setup.machine.run(["rmmod", "null_blk"], check=False)
    # modprobe finds the module by its table; without the file it fails.
    module = setup.machine.run(["find", "/lib/modules", "-name", "null_blk.ko*"]).text.strip()
    assert module.startswith("/")
    setup.machine.run(["mv", module, "/root/null_blk"])
    try:
        found = ceiling.measure(setup, Geometry.parse("raid5x3"), Workload("randread", "4k", 4))
    finally:
        setup.machine.run(["mv", "/root/null_blk", module])
    assert (found.driver, found.unknown) == (ceiling.BRD, "")
    assert found.iops is not None
    assert found.iops > 0
    left = "ls -d /sys/module/brd /run/*.brd 2>/dev/null || :"
    assert setup.machine.run(["sh", "-c", left]).text == ""
