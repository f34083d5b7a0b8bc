"""Cells: one process each; what the rig disturbs is repeated, what the drives do is never picked out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from support.builders import strategies
from support.builders.measuring import PROTOCOL, READ, setup_of
from support.fakes.logbook import Logbook

from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import MeasureRule, VisitRule
from pytest_ssdqual.qual.stats.group_sequential import Decision
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import Disturbed, InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, visits
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup

ARRAY = Array(Geometry.parse("raid5x3"), "/dev/md100", (), "u", 1 << 29, "assumed")
RULE = VisitRule(cells=(2, 1, 1), cell_s=60, ramp_s=5)
IN_VISITS = replace(PROTOCOL, measure=MeasureRule(1, 60, 1, 2), visits=RULE)


@dataclass
class Rig(Logbook):
    """What each process does: its IOPS of each second, or what becomes of it."""

    processes: list[Sequence[int] | Exception] = field(default_factory=list)
    windows: list[ProcessWindow] = field(default_factory=list)

    def run(self, setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
        self.windows.append(window)
        ends = self.processes.pop(0) if self.processes else [1000] * 65
        if isinstance(ends, Exception):
            raise ends
        run = strategies.run(ends, workload=workload, geometry=str(array.geometry), ramp_s=window.ramp_s, rounds=1)
        return replace(run, window_s=window.window_s)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig()
    monkeypatch.setattr(fixed_time, "run", rig.run)
    return rig


def test_a_cell_is_recorded_with_what_intervals_need(rig: Rig) -> None:
    first, run = visits.measure_cell(setup_of(rig, IN_VISITS), ARRAY, READ, 1, None)
    visits.measure_cell(setup_of(rig, IN_VISITS), ARRAY, READ, 1, run)
    assert first.visit == 1
    assert first.run.iops == pytest.approx(1000)
    (kind, facts), (_, second) = rig.notes
    assert (kind, facts["geometry"], facts["visit"]) == ("cell", "raid5x3", 1)
    assert facts["written_before"] is None
    assert second["written_before"] == 0
    assert [(window.ramp_s, window.window_s) for window in rig.windows] == [(5, 60)] * 2


def test_cells_begin_at_different_addresses(rig: Rig) -> None:
    for _ in range(5):
        visits.measure_cell(setup_of(rig, IN_VISITS), ARRAY, READ, 0, None)
    assert len({window.begin for window in rig.windows}) == 5
    assert all(0 <= window.begin < 1 for window in rig.windows)


def test_disturbed_cell_is_repeated_three_times(rig: Rig) -> None:
    rig.processes = [Disturbed("the connection was lost")]
    visits.measure_cell(setup_of(rig, IN_VISITS), ARRAY, READ, 0, None)
    assert rig.kinds == ["cell_left_out", "cell"]
    rig.processes = [Disturbed("the connection was lost")] * 4
    with pytest.raises(InvalidMeasurement, match="disturbed"):
        visits.measure_cell(setup_of(rig, IN_VISITS), ARRAY, READ, 0, None)
    assert not rig.processes


def test_a_cell_with_a_stall_is_not_replaced_by_one_without(rig: Rig) -> None:
    rig.processes = [[1000] * 30 + [0] * 10 + [1000] * 25]
    with pytest.raises(InvalidMeasurement):
        visits.measure_cell(setup_of(rig, IN_VISITS), ARRAY, READ, 0, None)
    assert len(rig.windows) == 1
    assert "cell" not in rig.kinds


@pytest.mark.parametrize(("enough", "cells"), [(3, 3), (4, 4), (99, 4)])
def test_workload_is_visited_until_decided_or_to_the_end(rig: Rig, enough: int, cells: int) -> None:
    def decide(measured: Measured, others: Sequence[Measured]) -> Decision:
        assert not others
        return Decision(len(measured.runs) >= enough, "so many")

    measured = visits.until_decided(setup_of(rig, IN_VISITS), ARRAY, READ, decide)
    assert len(measured.runs) == cells
    assert measured.visited
    assert sum(measured.visited.cells) == cells
    assert rig.kinds.count("measured") == 1
    looks = [facts["decided"] for kind, facts in rig.notes if kind == "looked"]
    assert looks == [number >= enough for number in range(3, cells + 1)]


def test_a_protocol_without_visits_is_refused(rig: Rig) -> None:
    with pytest.raises(ValueError, match="measure in visits"):
        visits.measure_cell(setup_of(rig), ARRAY, READ, 0, None)
