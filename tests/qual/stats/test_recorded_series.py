"""The interval of a look against drives of known rate that were measured with the real fio: ``data/series``."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest

from pytest_ssdqual.qual.detect import periodicity
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.estimate import Estimate, TooFew
from pytest_ssdqual.qual.stats.steady_state import series
from pytest_ssdqual.qual.stats.throughput import iops
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio.output import StatusReader

SERIES = Path(__file__).parents[2] / "data" / "series"
#: I/Os per second in the long run, by the model: see the folder's README.
KNOWN = {"steady": 300.0, "jittery": 243.75}
#: One pause costs the work of 2.25 s, and one comes every 16 s at the latest.
RULE = SequentialRule(first_s=30, growth=1.3, limit_s=230, report_s=1, slowest_s=16, pause_s=2.25)


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
        window_s=RULE.limit_s,
        rounds=5,
        raw=f"{name}.json.gz",
    )


def found(name: str, number: int) -> Estimate:
    return iops(Measured((group_sequential.at_look(whole(name), number, RULE, 0.95),)))


@pytest.mark.parametrize("name", KNOWN)
def test_a_recorded_run_is_believable(name: str) -> None:
    assert checks.objections(whole(name)) == ()
    assert len(whole(name).intervals) >= 235


@pytest.mark.parametrize("name", KNOWN)
def test_every_look_holds_the_known_rate(name: str) -> None:
    known = 0
    for number in range(1, len(group_sequential.look_times(RULE)) + 1):
        try:
            estimate = found(name, number)
        except TooFew:
            continue
        known += 1
        assert estimate.low <= KNOWN[name] <= estimate.high, f"look {number}: {estimate}"
    assert known >= 5


@pytest.mark.parametrize(("name", "percent"), [("steady", 3), ("jittery", 12)])
def test_the_last_look_knows_it_well(name: str, percent: float) -> None:
    estimate = found(name, len(group_sequential.look_times(RULE)))
    assert estimate.high - estimate.low < 2 * percent / 100 * KNOWN[name], estimate


def test_jitter_without_a_rhythm_has_none() -> None:
    """Pauses come every 8 to 16 s, independently of each other."""
    assert periodicity.period(*series(whole("jittery"))) is None
