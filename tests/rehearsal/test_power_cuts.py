"""Real kernels and fio, and drives that are pulled under writes and come back under each other's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from support.builders.measuring import UNPREPARED
from support.lab.bare_drives import Book, bench
from support.lab.rehearsed import Lab

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.power_loss import LossKind
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import IntegrityRule
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.integrity import drive_cuts
from pytest_ssdqual.rig.integrity.drive_power import PowerCommands
from pytest_ssdqual.rig.machine.machine import Machine
from pytest_ssdqual.rig.measure.session import Setup

pytestmark = pytest.mark.lab

#: One cut of each mode.
PROTOCOL = replace(UNPREPARED, integrity=IntegrityRule(power_cuts=3, regions=2))
PAIR = Geometry(RaidLevel.DRIVE, 2)


@frozen
class PullingCommands(PowerCommands):
    """Pulls the drives instead, and plugs them in the other order; meanwhile one may forget the first region."""

    vm: Any
    forgetful: str

    @contextmanager
    def cut(self, machine: Machine, slots: Mapping[Drive, int]) -> Iterator[None]:
        for drive in slots:
            self.vm.pull(drive.name)
        try:
            yield
        finally:
            for drive in reversed([*slots]):
                if drive.name == self.forgetful:
                    self.forget(drive)
                self.vm.plug(drive.name)

    def forget(self, drive: Drive) -> None:
        """Lose 4 KiB that were written."""
        with self.vm.backing_file(drive.name).open("r+b") as medium:
            medium.seek(label.HEAD_BYTES)
            medium.write(bytes(4096))


@pytest.mark.nightly
@pytest.mark.parametrize("forgetful", [False, True])
def test_pulled_drives_keep_flushed_data_unless_they_forget(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, forgetful: bool
) -> None:
    monkeypatch.setattr(drive_cuts, "MOST_BYTES", 256 << 10)
    with bench(lab) as here:
        held = HeldDrives(here.machine, here.drives)
        before = [drive.name for drive in held.drives]
        book = Book()
        setup = Setup(here.machine, held, PROTOCOL, book, "lab", lambda what, seconds: None)
        commands = PullingCommands((), (), lab.vm, before[1] if forgetful else "")
        try:
            first, second = drive_cuts.run(setup, PAIR, commands, lambda serial: True)
        finally:
            held.release()
        assert [drive.name for drive in held.drives] == before
        assert (first.findings, first.judged) == ((), 3)
        modes = [facts["mode"] for kind, facts in book.notes if kind == "drive_power_cut"]
        assert modes == ["flushed", "FUA", "unflushed"]
        assert dict(second.wrong) == ({LossKind.LOST: 1} if forgetful else {})
