from __future__ import annotations

import pytest

from pytest_ssdqual.plugin.plan.planned_load import PlannedLoad, counted_s
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.shared_evidence import PAUSE_S
from pytest_ssdqual.qual.workload.workload import Workload

READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
MIX = Workload("randrw", "4k", 8, read_percent=70)
PROTOCOL = protocol.load("sequential")
assert PROTOCOL.sequential
LOOKS = PROTOCOL.sequential


def test_writes_add_up_until_reads_are_a_pause() -> None:
    load = PlannedLoad()
    load.load(WRITES, 400)
    load.passed(PAUSE_S)
    load.load(MIX, 600)
    assert load.loaded_s(WRITES) == 400 + PAUSE_S + 600
    load.load(READS, PAUSE_S + 1)
    assert load.loaded_s(WRITES) == 0
    assert load.loaded_s(READS) == load.now_s


@pytest.mark.parametrize("workload", [Workload("read", "128k", 8), Workload("write", "128k", 8)])
def test_another_class_counts_nothing(workload: Workload) -> None:
    load = PlannedLoad()
    load.load(WRITES, 4000)
    assert load.loaded_s(workload) == 0


@pytest.mark.parametrize("loaded_s", [0.0, 1.0, 400.0, 1500.0, 2099.0, 2100.0, 9000.0])
def test_counted_load_permits_the_same_first_look(loaded_s: float) -> None:
    def first(load_s: float) -> float:
        return next(each for each in group_sequential.look_times(LOOKS) if load_s + each >= LOOKS.plateau_s)

    assert counted_s(loaded_s, LOOKS) <= LOOKS.plateau_s
    assert first(counted_s(loaded_s, LOOKS)) == first(loaded_s)
