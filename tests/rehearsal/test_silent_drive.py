"""A drive that answers slowly, and names without an array, on a real kernel: what the scripts make of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from support.builders.measuring import UNPREPARED as PROTOCOL
from support.lab.bare_drives import Bench, Book
from support.lab.rehearsed import Server, await_that

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings
from pytest_ssdqual.rig.drives import answers
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine.machine import DriveSilent
from pytest_ssdqual.rig.md import driver, mdadm
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

#: $1 a drive: a reader that waits for it in the kernel.
READER = 'setsid dd if="$1" of=/dev/null bs=4096 count=60 iflag=direct </dev/null >/dev/null 2>&1 &'
#: $1 the number of an array: opens its node as udev does when the array has just been stopped.
NAME = 'mknod "/run/node-$1" b 9 "$1" && exec 3<"/run/node-$1" && rm "/run/node-$1"'


@contextmanager
def released(held: HeldDrives) -> Iterator[HeldDrives]:
    """The lease of these drives; it ends with the block, so that one failed test costs no other its drives."""
    try:
        yield held
    finally:
        held.release()


def test_reader_that_hangs_on_a_slow_drive_is_the_drives_silence(here: Bench) -> None:
    """Its requests take a second each; a busy drive that answers is not silent."""
    slow, busy = here.drives[:2]
    with released(HeldDrives(here.machine, [slow, busy])) as held:
        try:
            here.lab.vm.set_iops(slow.serial or "", 1)
            here.machine.run(["sh", "-c", READER, "reader", slow.path])
            with pytest.raises(DriveSilent) as silent:
                held.require([slow, busy])
            assert slow.path in str(silent.value)
            assert "request of dd" in str(silent.value)
            assert busy.path not in str(silent.value)
            assert answers.unanswered(here.machine, [busy.path], 10) == {}
        finally:
            here.lab.vm.set_iops(slow.serial or "", 0)
            await_that(lambda: not here.machine.run(["pidof", "dd"], check=False).text, "the reader ends")
        held.require([slow, busy])


def test_names_without_an_array_are_removed_and_arrays_are_not(here: Bench) -> None:
    driver.require(here.machine, [RaidLevel.RAID1])
    book, settings = Book(), replace(ArraySettings(), bitmap="none")
    held = HeldDrives(here.machine, here.drives[:2])
    setup = Setup(here.machine, held, PROTOCOL, book, "lab", lambda what, seconds: None)
    array = array_lifecycle.create(setup, Geometry.parse("raid1x2"), held.drives, settings, zeroed=True)
    number = array.path.removeprefix("/dev/md")
    here.machine.run(["sh", "-c", NAME, "name", "125"])
    assert {"md125", f"md{number}"} <= names(here)
    assert mdadm.remove_empty(here.machine, [array.path, "/dev/md125", "/dev/md124"]) == ("/dev/md125",)
    mdadm.require_healthy(here.machine, array)
    array_lifecycle.stop(setup, array)
    held.release()
    here.machine.run(["udevadm", "settle"])
    assert not names(here)
    assert Server(here.lab).left() == []


def test_stopped_array_leaves_no_name_while_udev_opens_its_node(here: Bench) -> None:
    held = HeldDrives(here.machine, here.drives[:2])
    setup = Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
    settings = replace(ArraySettings(), bitmap="none")
    for _ in range(3):
        array = array_lifecycle.create(setup, Geometry.parse("raid1x2"), held.drives, settings, zeroed=True)
        array_lifecycle.stop(setup, array)
        assert array.path == "/dev/md100"
        assert not names(here)
    held.release()


def test_mdadm_takes_the_first_and_the_last_number(here: Bench) -> None:
    """mdadm creates an array under the last number, too."""
    held = HeldDrives(here.machine, here.drives[:2])
    setup = Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
    settings = replace(ArraySettings(), bitmap="none")
    for number in (126, 20):
        path = f"/dev/md{number}"
        uuid = f"00000000:00000000:00000000:{number:08x}"
        held.expect(uuid)
        array = mdadm.create(
            here.machine, Geometry.parse("raid1x2"), held.drives, settings, path=path, uuid=uuid, zeroed=True
        )
        assert array.path == path
        array_lifecycle.take_down(setup, path, held.drives, uuid)
    held.release()


def names(here: Bench) -> set[str]:
    """Arrays, and names of arrays, that the kernel has."""
    return {name for name in here.machine.run(["ls", "/sys/block"]).text.split() if name.startswith("md")}
