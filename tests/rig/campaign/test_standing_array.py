"""What a measurement is told about the load of its drives before it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.builders.drives import drive
from support.builders.strategies import side_by_side

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.result_cache import ResultCache
from pytest_ssdqual.rig.campaign.standing_array import StandingArray
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
MIX = Workload("randrw", "4k", 8, read_percent=70)
STREAM = Workload("write", "128k", 8)
ARRAY = Array(Geometry.parse("raid0x2"), "/dev/md100", (drive(0), drive(1)), "u", 1 << 29, "none needed")
SETTLED = steady_state.judge([1000.0] * 5, SteadyRule())


@pytest.fixture
def machine() -> SimpleNamespace:
    return SimpleNamespace(generation=1)


@pytest.fixture
def standing(machine: SimpleNamespace) -> StandingArray:
    """Two drives whose conditioning for random writes took two hours."""
    nothing = cast("Any", None)
    setup = Setup(machine, nothing, protocol.load("sequential"), nothing, "m", lambda what, seconds: None)
    found = StandingArray(setup, ResultCache())
    found._conditioned = Conditioned(WRITE, SETTLED, {"S0": 1000.0, "S1": 1000.0})
    found._series.add(side_by_side([[1000] * 7200, [900] * 7200]))
    return found


def test_an_array_that_could_not_be_stopped_is_stopped_at_the_end(
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
    with pytest.raises(RigError, match="a member could not be failed") as raised:
        standing._or_undone(step, fails, standing.close)
    assert "cannot stop /dev/md100: busy" in raised.value.__notes__[0]
    standing.close()
    standing.close()
    assert stopped == ["/dev/md100"] * 2


@pytest.mark.parametrize(("workload", "is_shown"), [(WRITE, True), (MIX, True), (READ, False), (STREAM, False)])
def test_conditioning_has_shown_the_rhythms_of_writes_of_its_class(
    standing: StandingArray, workload: Workload, is_shown: bool
) -> None:
    assert standing.known_of(ARRAY, workload).has_excursions is is_shown


def test_a_load_that_a_lost_connection_interrupted_counts_nothing(
    standing: StandingArray, machine: SimpleNamespace
) -> None:
    clock = SimpleNamespace(now_s=0.0)
    standing._ledger.clock = lambda: clock.now_s
    with standing.under_load(ARRAY, WRITE):
        clock.now_s += 600
    assert standing.known_of(ARRAY, WRITE).loaded_s == 600
    with standing.under_load(ARRAY, WRITE):
        clock.now_s += 600
        machine.generation += 1
    assert standing.known_of(ARRAY, WRITE).loaded_s == 0
