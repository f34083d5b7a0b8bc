from __future__ import annotations

from dataclasses import dataclass

import pytest

from pytest_ssdqual.qual.stats.shared_evidence import PAUSE_S
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.load_ledger import LoadLedger

READ, WRITE, STREAM = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8), Workload("write", "128k", 8)
MIX = Workload("randrw", "4k", 8, read_percent=70)
DRIVES = ("S0", "S1", "S2")


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(clock: Clock) -> LoadLedger:
    return LoadLedger(clock)


def run(ledger: LoadLedger, clock: Clock, workload: Workload, seconds: float, width: int = 3) -> None:
    with ledger.load(DRIVES[:width], workload):
        clock.now_s += seconds


def test_nothing_is_known_at_first(ledger: LoadLedger) -> None:
    assert ledger.loaded_s(DRIVES, WRITE) == 0


def test_loads_of_a_class_add_up_over_short_pauses(ledger: LoadLedger, clock: Clock) -> None:
    run(ledger, clock, WRITE, 600)
    clock.now_s += PAUSE_S
    run(ledger, clock, MIX, 60)
    assert ledger.loaded_s(DRIVES, WRITE) == 600 + PAUSE_S + 60
    assert ledger.loaded_s(DRIVES, STREAM) == 0


def test_a_longer_pause_ends_a_load(ledger: LoadLedger, clock: Clock) -> None:
    run(ledger, clock, WRITE, 600)
    clock.now_s += PAUSE_S + 1
    assert ledger.loaded_s(DRIVES, WRITE) == 0
    run(ledger, clock, WRITE, 60)
    assert ledger.loaded_s(DRIVES, WRITE) == 60


def test_another_class_ends_a_load(ledger: LoadLedger, clock: Clock) -> None:
    run(ledger, clock, WRITE, 600)
    run(ledger, clock, STREAM, 60)
    run(ledger, clock, WRITE, 30)
    assert ledger.loaded_s(DRIVES, WRITE) == 30


def test_reads_are_a_pause_for_writes(ledger: LoadLedger, clock: Clock) -> None:
    run(ledger, clock, WRITE, 600)
    run(ledger, clock, READ, PAUSE_S + 1)
    assert ledger.loaded_s(DRIVES, WRITE) == 0
    assert ledger.loaded_s(DRIVES, READ) == 600 + PAUSE_S + 1


def test_the_drive_that_idled_decides(ledger: LoadLedger, clock: Clock) -> None:
    run(ledger, clock, WRITE, 600)
    run(ledger, clock, WRITE, 600, width=2)
    assert ledger.loaded_s(DRIVES[:2], WRITE) == 1200
    assert ledger.loaded_s(DRIVES, WRITE) == 0


def test_a_load_that_failed_and_a_purge_are_forgotten(ledger: LoadLedger, clock: Clock) -> None:
    run(ledger, clock, WRITE, 600)
    with pytest.raises(OSError, match="gone"), ledger.load(DRIVES[:1], WRITE):
        raise OSError("gone")
    assert ledger.loaded_s(DRIVES[:1], WRITE) == 0
    assert ledger.loaded_s(DRIVES[1:], WRITE) == 600
    ledger.forget(DRIVES)
    assert ledger.loaded_s(DRIVES[1:], WRITE) == 0
