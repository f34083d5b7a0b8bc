"""Discards and purges on the lab's drives, which promise zeroes (DLFEAT); the medium of one ignores discards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.measuring import UNPREPARED
from support.lab import faulty_vm
from support.lab.bare_drives import Bench, Book

from pytest_ssdqual.lab import drives
from pytest_ssdqual.qual.integrity.erasure import DISCARD, DiscardPromise
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.integrity import erase
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.read_back import StampedFill
from pytest_ssdqual.rig.measure.session import Setup

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

FILL = Fill(1, "1m")
PROTOCOL = replace(UNPREPARED, fill=FILL, purge="discard")


def test_a_medium_that_ignores_discards_breaks_the_promise(here: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    liar, sound = here.drives[1], here.drives[0]
    held = HeldDrives(here.machine, here.drives)
    setup = Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
    stamp = StampedFill.new()
    array = array_lifecycle.build(setup, Geometry.parse("drivex4"), FILL, stamp.pattern)
    deaf = {"discard": "ignore", "detect-zeroes": "off"}
    monkeypatch.setattr(faulty_vm, "throttle_options", lambda names, node: drives.throttle_options(names, node) | deaf)
    try:
        here.lab.vm.share_limit([liar.serial or ""], shared=False)
        found = {target.name: target for target in erase.discard(setup, array, stamp.stamp)}
        purged = {drive.name: drive for drive in erase.purge(setup, array, stamp.stamp)}
    finally:
        monkeypatch.undo()
        here.lab.vm.share_limit([liar.serial or ""], shared=False)
        held.release()
    assert {target.promise for target in found.values()} == {DiscardPromise.ZEROES}
    assert [name for name, target in found.items() if target.findings] == [liar.name]
    assert all(target.is_kept for target in found.values())
    assert {each.fill for each in found[sound.name].ranges} == {0}
    assert [name for name, drive in purged.items() if drive.findings] == [liar.name]
    assert {drive.method for drive in purged.values()} == {DISCARD}
    assert purged[liar.name].left
    assert purged[sound.name].sampled > erase.RANGES


@pytest.mark.parametrize("name", ["raid0x2", "raid1x2", "raid10x4"])
def test_arrays_pass_discards_to_their_members(here: Bench, name: str) -> None:
    held = HeldDrives(here.machine, here.drives)
    setup = Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
    array = array_lifecycle.build(setup, Geometry.parse(name), Fill(0, "1m"))
    try:
        (found,) = erase.discard(setup, array, StampedFill.new().stamp)
    finally:
        array_lifecycle.stop(setup, array)
        held.release()
    assert (found.findings, found.promise) == ((), DiscardPromise.ZEROES)
    assert {each.fill for each in found.ranges} == {0}
