from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import cast

import pytest
from support.builders.drives import named
from support.builders.measuring import setup_of
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.integrity import power_cut
from pytest_ssdqual.rig.machine.machine import (
    CommandFailed,
    Completed,
    DriveRefused,
    InvalidMeasurement,
    LeaseTaken,
    RigError,
    Tethered,
)
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"


DRIVES = tuple(named(f"sd{number}", f"S{number}", size_bytes=1 << 30) for number in range(3))


ARRAY = Array(Geometry.parse("raid5x3"), "/dev/md100", DRIVES, UUID, 1 << 30, "zeroed")


@dataclass
class HeldForCut:
    drives: Sequence[Drive] = DRIVES
    asked: list[str] = field(default_factory=list)
    refuses: bool = False

    def require(self, drives: Sequence[Drive]) -> None:
        self.asked.append("require")
        if self.refuses:
            raise DriveRefused("somebody mounted it")

    def hold_again(self, first: Callable[[], None]) -> None:
        self.asked.append("lease")
        if self.refuses:
            raise LeaseTaken("another run holds it")
        first()


class CutRack:
    """A machine on which the array was stopped."""

    def __init__(self) -> None:
        self.assembled: list[tuple[str, ...]] = []
        #: Exit status of each attempt.
        self.answers = [0]
        self.held = HeldForCut()
        self.machine = ScriptedMachine()
        for name in ("udevadm", "nproc", "tee"):
            self.machine.on(name, answer="2")
        self.machine.on("mdadm", "--readwrite")
        self.machine.on("mdadm", "--detail", answer=f"UUID : {UUID}")
        self.machine.on("mdadm", "--assemble", answer=self._assemble)
        self.machine.on("lsblk", answer='{"blockdevices": []}')

    def _assemble(self, argv: tuple[str, ...]) -> Completed:
        self.assembled.append(argv)
        status = self.answers.pop(0)
        return completed(argv, status=status, stderr="cannot start dirty degraded array" if status else "")

    @property
    def setup(self) -> Setup:
        return setup_of(Logbook(), machine=self.machine, held=self.held)


@pytest.fixture
def rack(monkeypatch: pytest.MonkeyPatch) -> CutRack:
    rack = CutRack()
    monkeypatch.setattr(power_cut, "stop_array", lambda setup, array: rack.held.asked.append("stop ours"))
    return rack


def test_array_is_assembled_of_the_named_members_only(rack: CutRack) -> None:
    assert power_cut.assemble(rack.setup, ARRAY, DRIVES[:2], dirty=True) is False
    assert rack.assembled == [("mdadm", "--assemble", "/dev/md100", f"--uuid={UUID}", "--run", "/dev/sd0", "/dev/sd1")]
    assert rack.held.asked == ["require"]


def test_assembly_is_forced_only_where_parity_may_be_in_doubt(rack: CutRack) -> None:
    rack.answers = [1, 1, 0]
    with pytest.raises(CommandFailed, match="dirty degraded"):
        power_cut.assemble(rack.setup, ARRAY, DRIVES, dirty=False)
    rack.held.asked.clear()
    assert power_cut.assemble(rack.setup, ARRAY, DRIVES, dirty=True) is True
    assert ["--force" in argv for argv in rack.assembled] == [False, False, True]
    assert rack.held.asked == ["require", "stop ours", "require"]


def test_nothing_is_assembled_of_drives_that_are_used(rack: CutRack) -> None:
    rack.held.refuses = True
    with pytest.raises(DriveRefused, match="mounted"):
        power_cut.assemble(rack.setup, ARRAY, DRIVES, dirty=True)
    assert rack.assembled == []


def test_another_array_at_its_path_is_an_error(rack: CutRack) -> None:
    rack.machine.on("mdadm", "--detail", answer="UUID : 0:0:0:0")
    with pytest.raises(RigError, match="not the array"):
        power_cut.assemble(rack.setup, ARRAY, DRIVES, dirty=False)


class Restarting(ScriptedMachine):
    """A machine whose power can be cut."""

    def restarted(self, deadline_s: float) -> None:
        self.generation += 1


@pytest.mark.parametrize("is_taken", [False, True])
def test_an_array_found_at_boot_is_stopped_under_the_lease(
    rack: CutRack, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    """Until the drives are leased again, another run may get them, and give the array's name to one of its own."""
    monkeypatch.setattr(power_cut, "Channel", Restarting)
    rack.machine = Restarting(answers=rack.machine.answers)
    rack.held.refuses = is_taken
    with pytest.raises(LeaseTaken) if is_taken else nullcontext():
        power_cut.cut(rack.setup, lambda: None, ARRAY)
    assert rack.held.asked == (["lease"] if is_taken else ["lease", "stop ours"])


def test_a_machine_that_cannot_be_reached_anew_keeps_its_power(rack: CutRack) -> None:
    cut: list[str] = []
    with pytest.raises(RigError, match="after a power"):
        power_cut.cut(rack.setup, lambda: cut.append("cut"), ARRAY)
    assert cut == []


TARGET, OVER = JobTarget("/dev/md100", 1 << 20), Stretch(0, 65536, 7, 4096)


class FakeLoop:
    """A process that overwrites for as long as it lives."""

    def __init__(self, lives: bool) -> None:
        self.lives = lives

    def alive(self) -> bool:
        return self.lives

    def cut(self, deadline_s: float = 30.0) -> Completed:
        return completed(["sh"], status=1, stderr="fio: device is gone")


class FakeMachine(ScriptedMachine):
    """Tells one word of what it noted at each look; the last for ever."""

    lives = True

    def tether(self, argv: object, *, first_signal: str = "INT", announces: bool = False) -> Tethered:
        return cast(Tethered, FakeLoop(self.lives))

    def notes(self, *words: str) -> FakeMachine:
        left = list(words)
        self.on("cat", answer=lambda argv: left.pop(0) if len(left) > 1 else left[0])
        return self


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_cut, "PAUSE_S", 0.0)
    monkeypatch.setattr(power_cut, "SHARE", 0.0)


@pytest.mark.parametrize(
    ("notes", "passes"), [(["", "", "22\n", "38\n"], 38), (["22\n", ""], 22)], ids=["grows", "not read at last"]
)
def test_overwriting_reports_the_last_pass_that_was_flushed(notes: list[str], passes: int) -> None:
    assert power_cut.begin(FakeMachine().notes(*notes), TARGET, 1, OVER) == passes


def test_what_does_not_get_going_is_an_error() -> None:
    machine = FakeMachine().notes("")
    machine.lives = False
    with pytest.raises(InvalidMeasurement, match="device is gone"):
        power_cut.begin(machine, TARGET, 1, OVER)
