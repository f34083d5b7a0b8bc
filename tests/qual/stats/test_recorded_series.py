"""Visits of drives of known rate that were measured with the real fio: ``data/series``, cut into cells."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

from pytest_ssdqual.qual.detect import periodicity
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol_rules import VisitRule
from pytest_ssdqual.qual.stats import visits
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.stats.steady_state import series
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.output import StatusReader

SERIES = Path(__file__).parents[2] / "data" / "series"
#: I/Os per second in the long run, by the model: see the folder's README.
KNOWN = {"steady": 300.0, "jittery": 243.75}
#: Length of a cell, seconds; the last look has 22.
CELL_S = 10.0
NUMBERS = (2, 2, 2, 3, 5, 8)
SHIPPED = protocol.load("acceptance")
PROTOCOL = replace(SHIPPED, visits=VisitRule(NUMBERS, CELL_S), verdict=replace(SHIPPED.verdict, confidence=0.95))


@cache
def whole(name: str) -> Run:
    reader = StatusReader()
    reader.feed(gzip.decompress((SERIES / f"{name}.json.gz").read_bytes()))
    return Run(
        workload=Workload("randread", "4k", 8),
        geometry=Geometry(RaidLevel.DRIVE, 1),
        members=("SSDQ0001",),
        intervals=reader.whole().intervals,
        ramp_s=2.0,
        window_s=230.0,
        rounds=5,
        raw=f"{name}.json.gz",
    )


def found(name: str, until: int) -> Estimate:
    """The rate after so many visits, which follow each other without a pause."""
    run, cells = whole(name), []
    for visit, end in enumerate(accumulate(NUMBERS[:until])):
        for number in range(end - NUMBERS[visit], end):
            part = replace(run, ramp_s=run.ramp_s + number * CELL_S, window_s=CELL_S, rounds=1)
            cells.append(visits.cell(part, None, visit))
    point = (run.geometry, run.workload)
    return iops(visits.at_look({point: cells}, PROTOCOL)[point])


@pytest.mark.parametrize("name", KNOWN)
def test_a_recorded_run_is_believable(name: str) -> None:
    assert checks.objections(whole(name)) == ()
    assert len(whole(name).intervals) >= 235


@pytest.mark.parametrize("name", KNOWN)
def test_every_look_holds_the_known_rate(name: str) -> None:
    for until in range(2, len(NUMBERS) + 1):
        estimate = found(name, until)
        assert estimate.low <= KNOWN[name] <= estimate.high, f"look after {until} visits: {estimate}"


@pytest.mark.parametrize(("name", "percent"), [("steady", 3), ("jittery", 12)])
def test_the_last_look_knows_it_well(name: str, percent: float) -> None:
    estimate = found(name, len(NUMBERS))
    assert estimate.high - estimate.low < 2 * percent / 100 * KNOWN[name], estimate


def test_jitter_without_a_rhythm_has_none() -> None:
    """Pauses come every 8 to 16 s, independently of each other."""
    assert periodicity.period(*series(whole("jittery"))) is None
