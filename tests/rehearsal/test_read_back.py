"""Drives that do not return what was written to them: their media are changed behind them after the fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders.measuring import UNPREPARED
from support.lab.bare_drives import MIB, Bench, Book

from pytest_ssdqual.qual.integrity.read_back import WrongKind
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.measure import array_lifecycle, read_back
from pytest_ssdqual.rig.measure.session import Setup

# tests/rig/measure/ has the real fio on files that were changed, in each run of script/test.
pytestmark = [pytest.mark.lab, pytest.mark.unhurried, pytest.mark.nightly]

FILL = Fill(1, "1m")
PROTOCOL = replace(UNPREPARED, fill=FILL)


def flip_a_bit(medium: Path) -> None:
    at = 100 * MIB + 70_000
    content = medium.read_bytes()[at]
    overwrite(medium, at, bytes([content ^ 4]))


def wrap(medium: Path) -> None:
    """As a drive does that holds 200 MiB and says 256: what it was given last is where the first was."""
    content = medium.read_bytes()
    overwrite(medium, MIB, content[201 * MIB :])


def lose(medium: Path) -> None:
    overwrite(medium, 150 * MIB, bytes(4096))


def overwrite(medium: Path, at: int, data: bytes) -> None:
    with medium.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_drives_that_return_other_data_are_named(here: Bench) -> None:
    held = HeldDrives(here.machine, here.drives)
    setup = Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
    filled = read_back.StampedFill.new()
    array = array_lifecycle.build(setup, Geometry.parse("drivex4"), FILL, filled.pattern)
    try:
        filled.written(setup.readings)
        assert read_back.compare(setup, array, FILL, filled)
        faults: list[Callable[[Path], None]] = [flip_a_bit, wrap, lose]
        for drive, fault in zip(array.members, faults, strict=False):
            fault(here.lab.vm.backing_file(drive.serial or ""))
        found = read_back.compare(setup, array, FILL, filled)
    finally:
        array_lifecycle.stop(setup, array)
        held.release()
    first, second, third, sound = found.drives
    assert first.wrong is not None
    assert (first.wrong.kind, first.wrong.offset_bytes) == (WrongKind.DAMAGED, 100 * MIB + 70_000)
    assert second.wrong is not None
    assert second.wrong.kind is WrongKind.ELSEWHERE
    assert (second.wrong.belongs_to_bytes, second.wrong.offset_bytes) == (201 * MIB, MIB)
    assert third.wrong is not None
    assert (third.wrong.kind, third.wrong.offset_bytes) == (WrongKind.ZEROES, 150 * MIB)
    assert (sound.findings, sound.read_bytes) == ((), sound.size_bytes)
    assert not any(drive.doubt for drive in found.drives)
