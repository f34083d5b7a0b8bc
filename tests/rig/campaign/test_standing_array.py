"""What stands on the drives: preparations that fail are undone, and drives that have not settled are not used."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders.drives import drive
from support.builders.measuring import SETTLED, STREAM, WRITE, setup_of
from support.fakes.logbook import Logbook

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import (
    ArrayCondition,
    Assemble,
    CampaignStep,
    Precondition,
    Refresh,
    StepKind,
)
from pytest_ssdqual.rig.campaign.result_cache import ResultCache
from pytest_ssdqual.rig.campaign.standing_array import StandingArray
from pytest_ssdqual.rig.drives.failed import DrivesUndecided
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement, RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, precondition, refresh
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

BARE, PAIR = Geometry.parse("drivex3"), Geometry.parse("raid0x2")
DRIVES = Array(BARE, "/dev/nvme0n1", (drive(0), drive(1), drive(2)), "", 3 << 28, "none needed")
ARRAY = Array(PAIR, "/dev/md100", (drive(0), drive(1)), "u", 1 << 29, "none needed")
CONDITIONED = Conditioned(WRITE, SETTLED, {"S0": 1000.0, "S1": 1000.0, "S2": 1000.0})
#: The subject of what drives side by side are left out of.
SUBJECT = BARE, "random"


class Rig(Logbook):
    """What is done to the drives, and what happens then."""

    def __init__(self) -> None:
        super().__init__()
        self.did: list[str] = []
        #: Reasons why drives do not become as fast as they settled.
        self.slow: dict[str, str] = {}
        self.rates = dict(CONDITIONED.rates)

    def refresh(self, setup: Setup, array: Array, conditioned: Conditioned) -> Conditioned:
        names = [each.serial or "" for each in array.members]
        self.did.append(f"refresh {','.join(names)} from:{conditioned.rates['S0']:g}")
        slow = {name: why for name, why in self.slow.items() if name in names}
        if len(slow) == len(names):
            raise InvalidMeasurement("none is as it settled")
        if slow:
            raise DrivesUndecided("some are not as they settled", slow)
        return replace(conditioned, rates=self.rates)

    def condition(self, setup: Setup, array: Array, workload: Workload) -> Conditioned:
        self.did.append(f"condition for {workload.pattern}")
        setup.failures.undecided.pop((array.geometry, workload.pattern), None)
        return replace(CONDITIONED, writes=precondition.conditioning(workload))

    def assemble(self, setup: Setup, bare: Array, geometry: Geometry) -> Array:
        self.did.append(f"assemble {geometry}")
        return ARRAY

    def stop(self, setup: Setup, array: Array) -> None:
        self.did.append(f"stop {array.geometry}")


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    monkeypatch.setattr(refresh, "refresh", rig.refresh)
    monkeypatch.setattr(precondition, "until_steady", rig.condition)
    monkeypatch.setattr(array_lifecycle, "assemble", rig.assemble)
    monkeypatch.setattr(array_lifecycle, "stop", rig.stop)
    monkeypatch.setattr(readopt_array, "count", lambda setup, array, moment: None)
    return rig


@pytest.fixture
def standing(rig: Rig) -> StandingArray:
    """Three bare drives that are conditioned for random writes."""
    setup = setup_of(rig, None)
    found = StandingArray(setup, ResultCache(), array=DRIVES, _bare=DRIVES)
    found.condition = ArrayCondition(BARE, Fill(1, "128k"), drives=BARE)
    found.prepare([Precondition(BARE, WRITE)])
    rig.did.clear()
    return found


def measured(geometry: Geometry, workload: Workload = WRITE) -> CampaignStep:
    return CampaignStep(StepKind.MEASURED, geometry, workload)


REFRESH = Refresh(BARE, WRITE)


def test_array_that_could_not_be_stopped_is_stopped_at_the_end(
    standing: StandingArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of the preparation is raised, with what became of its undo; ``close`` tries again."""
    stopped: list[str] = []

    def stop(setup: Setup, array: Array) -> None:
        stopped.append(array.path)
        if len(stopped) == 1:
            raise RigError("cannot stop /dev/md100: busy")

    def fails() -> None:
        raise RigError("a member could not be failed")

    monkeypatch.setattr(array_lifecycle, "stop", stop)
    standing.array = ARRAY
    step = cast("Any", SimpleNamespace(failure_key="x"))
    with pytest.raises(RigError, match="not be failed") as raised:
        standing._or_undone(step, fails, standing.close)
    assert "busy" in raised.value.__notes__[0]
    standing.close()
    standing.close()
    assert stopped == ["/dev/md100"] * 2


def test_drives_are_refreshed_before_they_are_assembled(standing: StandingArray, rig: Rig) -> None:
    standing.prepare([REFRESH, Assemble(PAIR)])
    assert rig.did == ["refresh S0,S1,S2 from:1000", "stop drivex3", "assemble raid0x2"]
    assert standing.steady == SETTLED
    assert standing.use_for(measured(PAIR)) == ARRAY


def test_drive_that_settled_anew_is_compared_with_its_new_rate(standing: StandingArray, rig: Rig) -> None:
    rig.rates = {"S0": 900.0, "S1": 1000.0, "S2": 1000.0}
    standing.prepare([REFRESH])
    standing.prepare([REFRESH])
    assert rig.did == ["refresh S0,S1,S2 from:1000", "refresh S0,S1,S2 from:900"]


def test_drive_that_stays_slow_is_left_out_of_the_pattern(standing: StandingArray, rig: Rig) -> None:
    rig.slow = {"S1": "900 IOPS, settled at 1000"}
    standing.prepare([REFRESH])
    assert rig.did == ["refresh S0,S1,S2 from:1000", "refresh S0,S2 from:1000"]
    assert [each.serial for each in standing.use_for(measured(BARE)).members] == ["S0", "S2"]
    standing.prepare([Assemble(PAIR)])
    with pytest.raises(InvalidMeasurement, match="S1 900 IOPS"):
        standing.use_for(measured(PAIR))
    rig.slow = {}
    standing.prepare([Precondition(BARE, STREAM), Assemble(PAIR)])
    assert standing.use_for(measured(PAIR, STREAM)) == ARRAY


def test_drive_that_did_not_settle_is_not_refreshed_or_used(standing: StandingArray, rig: Rig) -> None:
    standing.setup.failures.undecided[SUBJECT] = {"S2": "did not settle"}
    standing.prepare([REFRESH])
    assert rig.did == ["refresh S0,S1 from:1000"]
    # Fewer drives side by side were conditioned with all others.
    standing.prepare([Assemble(Geometry.parse("drivex3"))])
    assert [each.serial for each in standing.use_for(measured(BARE)).members] == ["S0", "S1"]
    standing.prepare([Assemble(PAIR)])
    assert standing.use_for(measured(PAIR)) == ARRAY


def test_without_any_drive_nothing_is_measured(standing: StandingArray) -> None:
    standing.setup.failures.undecided[SUBJECT] = {f"S{number}": "did not settle" for number in range(3)}
    with pytest.raises(InvalidMeasurement, match="no drive is"):
        standing.use_for(measured(BARE))
    # Nothing was conditioned for this step.
    assert standing.use_for(CampaignStep(StepKind.ARRAY, BARE)) == DRIVES


def test_a_refresh_that_failed_twice_is_not_tried_again(standing: StandingArray, rig: Rig) -> None:
    rig.slow = dict.fromkeys(CONDITIONED.rates, "slow")
    for _ in range(3):
        with pytest.raises(InvalidMeasurement, match="none is as"):
            standing.prepare([REFRESH, Assemble(PAIR)])
    assert rig.did == ["refresh S0,S1,S2 from:1000"] * 2
    assert standing.array == DRIVES


def test_what_no_protocol_conditions_needs_no_refresh(standing: StandingArray, rig: Rig) -> None:
    standing._conditioned = None
    standing.prepare([REFRESH])
    assert rig.did == []
    assert standing.steady is None
