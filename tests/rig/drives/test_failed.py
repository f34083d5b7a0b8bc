from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.drives import drive
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity.drive_failure import FailedDrive
from pytest_ssdqual.rig.drives.failed import (
    CONDITIONING,
    FILL,
    DriveFailed,
    DriveFailures,
    DrivesUndecided,
    findings,
)
from pytest_ssdqual.rig.health import health
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError

DRIVES = tuple(map(drive, range(6)))
SIDE_BY_SIDE, ARRAY = Geometry.parse("drivex4"), Geometry.parse("raid5x4")


@dataclass
class Bench:
    """A step whose drives prevent it one after another: ``dead`` ones fail, ``odd`` ones give no figure."""

    geometry: Geometry
    dead: Sequence[str] = ()
    odd: Sequence[str] = ()
    failures: DriveFailures = field(default_factory=DriveFailures)
    log: Logbook = field(default_factory=Logbook)
    attempts: list[list[str]] = field(default_factory=list)

    def step(self) -> list[str]:
        left_out = self.failures.left_out_of("step")
        usable = [each.name for each in self.failures.usable(self.geometry, DRIVES)]
        serials = [serial for serial in usable if serial not in left_out]
        self.attempts.append(serials)
        if dying := [serial for serial in serials if serial in self.dead][:1]:
            found = FailedDrive(dying[0], ("it dropped out",), ())
            self.failures.failed[dying[0]] = found
            raise DriveFailed(str(self.geometry), [found])
        if odd := {serial: "odd" for serial in serials if serial in self.odd}:
            raise DrivesUndecided("x", odd) if len(odd) < len(serials) else InvalidMeasurement("all are odd")
        return serials

    def run(self, work: Callable[[], list[str]] | None = None) -> list[str]:
        return self.failures.isolated(self.geometry, "step", work or self.step, self.log)


@given(st.sets(st.sampled_from(["S0", "S1", "S2", "S3"])), st.sets(st.sampled_from(["S0", "S1", "S2", "S3"])))
def test_isolated_step_is_repeated_with_the_usable_drives(dead: set[str], odd: set[str]) -> None:
    bench = Bench(SIDE_BY_SIDE, sorted(dead), sorted(odd))
    good = [f"S{number}" for number in range(4) if f"S{number}" not in dead | odd]
    if good:
        assert bench.run() == good
        assert set(bench.failures.left_out_of("step")) == odd - dead
        left_out = [serial for _, facts in bench.log.notes for serial in facts["drives"]]
        assert sorted(left_out) == sorted(dead | odd)
    else:
        with pytest.raises(RigError) as caught:
            bench.run()
        assert isinstance(caught.value, DriveFailed) is (dead == {"S0", "S1", "S2", "S3"})
    assert set(bench.failures.failed) == dead
    assert len(bench.attempts) <= len(dead) + 2


def test_isolated_step_on_an_array_is_not_repeated() -> None:
    bench = Bench(ARRAY, dead=["S1"])
    with pytest.raises(DriveFailed):
        bench.run()
    assert len(bench.attempts) == 1
    with pytest.raises(DriveFailed, match="S1"):
        bench.failures.usable(ARRAY, DRIVES)


def test_isolated_step_raises_what_is_about_no_new_drive() -> None:
    bench = Bench(SIDE_BY_SIDE)

    def again() -> list[str]:
        raise DriveFailed("drivex4", [FailedDrive("S9", (), ())])

    bench.failures.failed["S9"] = FailedDrive("S9", (), ())
    with pytest.raises(DriveFailed):
        bench.run(again)
    with pytest.raises(InvalidMeasurement, match="all of them"):
        bench.run(lambda: (_ for _ in ()).throw(InvalidMeasurement("all of them")))


def test_usable_drives_keep_their_order() -> None:
    failures = DriveFailures(failed={"S1": FailedDrive("S1", (), ())})
    assert [each.name for each in failures.usable(SIDE_BY_SIDE, DRIVES)] == ["S0", "S2", "S3"]


def test_drive_that_was_not_prepared_is_left_out() -> None:
    failures, log = DriveFailures(failed={"S1": FailedDrive("S1", (), ())}), Logbook()
    failures.leave_out(SIDE_BY_SIDE, CONDITIONING, {"S2": "it is locked"}, log)
    assert [each.name for each in failures.usable(SIDE_BY_SIDE, DRIVES)] == ["S0", "S3"]
    failures.leave_out(SIDE_BY_SIDE, FILL, {"S0": "it is locked", "S3": "it is locked"}, log)
    with pytest.raises(InvalidMeasurement, match="drivex4"):
        failures.usable(SIDE_BY_SIDE, DRIVES)


def test_drive_is_left_out_of_its_subject_only() -> None:
    failures, log = DriveFailures(), Logbook()
    failures.leave_out(SIDE_BY_SIDE, "random", {"S1": "unsettled"}, log)
    failures.leave_out(SIDE_BY_SIDE, "random", {"S2": "nor did it"}, log)
    assert failures.left_out_of("random") == {"S1": "unsettled", "S2": "nor did it"}
    assert failures.left_out_of("sequential") == {}
    assert log.kinds == ["drives_left_out"] * 2


SOUND = health.DriveHealth(True, 30, 3, 0, {"nvme": 0}, 100, 10**12, "{}")
WORN = replace(SOUND, media_counts={"nvme": 2})


@pytest.mark.parametrize("lost", [{}, {"passed": None}, {"media_counts": {}}, {"media_counts": {"other": 0}}])
def test_drive_that_reports_less_than_before_is_not_healthy(
    monkeypatch: pytest.MonkeyPatch, lost: dict[str, Any]
) -> None:
    before = SOUND if lost else WORN
    monkeypatch.setattr(health, "read", lambda machine, drives: {drives[0].path: replace(before, **lost)})
    failures = DriveFailures(before={DRIVES[0].path: before})
    with pytest.raises(RigError, match="of it now") if lost else nullcontext():
        ((sentence,),) = findings(ScriptedMachine(), DRIVES[:1], failures).values()
        assert "from 0 to" in sentence


def test_drive_that_cannot_be_read_is_not_reported_as_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(machine: object, drives: Sequence[Any]) -> dict[str, health.DriveHealth]:
        if drives[0] == DRIVES[1]:
            raise RigError("smartctl does not answer")
        return {each.path: SOUND for each in drives}

    monkeypatch.setattr(health, "read", read)
    failed = FailedDrive("S0", ("it dropped out",), (), "drivex3")
    failures = DriveFailures(failed={"S0": failed}, before={each.path: SOUND for each in DRIVES[:3]})
    assert findings(ScriptedMachine(), DRIVES[:3], failures) == {"S0": (failed.sentence,), "S2": ()}
    with pytest.raises(RigError):
        findings(ScriptedMachine(), DRIVES[1:3], DriveFailures(before=failures.before))
