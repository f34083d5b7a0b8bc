"""Two bays of one machine that take the same name for their arrays: each has one of its own in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.builders.measuring import UNPREPARED as PROTOCOL
from support.lab.bare_drives import Book, bench
from support.lab.rehearsed import Lab, Server

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

MIRROR = Geometry.parse("raid1x2")


def test_the_second_takes_another_name(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    free, stale = mdadm.free_path, ["/dev/md100", "/dev/md100"]
    # As if both had looked before either built anything.
    monkeypatch.setattr(mdadm, "free_path", lambda machine: stale.pop() if stale else free(machine))
    with bench(lab) as here:
        book, settings = Book(), replace(ArraySettings(), bitmap="none")
        setups = [
            Setup(here.machine, HeldDrives(here.machine, drives), PROTOCOL, book, "lab", lambda what, seconds: None)
            for drives in (here.drives[:2], here.drives[2:])
        ]
        arrays: list[Any] = []
        try:
            for setup in setups:
                arrays.append(array_lifecycle.create(setup, MIRROR, setup.held.drives, settings, zeroed=True))
            assert [each.path for each in arrays] == ["/dev/md100", "/dev/md101"]
            for each in arrays:
                mdadm.require_healthy(here.machine, each)
        finally:
            for setup, array in zip(setups, arrays, strict=False):
                array_lifecycle.stop(setup, array)
                setup.held.release()
        planned = [facts["device"] for kind, facts in book.notes if kind == "array_planned"]
        assert planned == ["/dev/md100", "/dev/md100", "/dev/md101"]
    assert Server(lab).left() == []
