from __future__ import annotations

from typing import cast

import pytest
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.integrity import power_cut
from pytest_ssdqual.rig.machine.machine import Completed, InvalidMeasurement, Tethered

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
