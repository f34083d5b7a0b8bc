"""Slow I/Os in simulated suites."""

from __future__ import annotations

import numpy as np
import pytest
import suite_tails
from simulated_suite import MODELS, Suite
from suite_tails import STALL_NS, TAILS, Tail, limits, run

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.verdict.verdict import Outcome
from pytest_ssdqual.qual.workload.workload import Workload

NARROW, MIDDLE, WIDE = (Geometry.parse(f"raid5x{width}") for width in (3, 5, 8))
WRITES = Workload("randwrite", "4k", 8)
#: Few points, so that a test takes a moment.
SUITE = Suite(
    "few", tuple((each, WRITES) for each in (NARROW, MIDDLE, WIDE)), MODELS["sata"], protocol.load("acceptance")
)


def test_spreads_are_judged_at_both_ends_and_p99_at_qd_8() -> None:
    assert set(limits((NARROW, WRITES))) == {Claim.P99_LATENCY, Claim.LATENCY_SPREAD_OVER_TIME}
    assert set(limits((MIDDLE, WRITES))) == {Claim.P99_LATENCY}
    assert not limits((WIDE, WRITES.at(1)))


@pytest.mark.parametrize(("drive", "geometry", "stalls"), [(0, NARROW, True), (7, NARROW, False), (7, WIDE, True)])
def test_stalls_are_those_of_arrays_with_the_drive(drive: int, geometry: Geometry, stalls: bool) -> None:
    tail = Tail("stalls", stalls=360.0, drive=drive)
    spells = tail.spells((geometry, WRITES), np.random.default_rng(1), 10_000, 1e9)
    stalled = sum(each.max_ns > STALL_NS / 2 for each in spells) / len(spells)
    assert stalled == pytest.approx(1 - np.exp(-1) if stalls else 0.0, abs=0.06)


def test_shares_of_slow_ios_are_those_of_the_tail() -> None:
    tail = Tail("later", slow=0.002, later=0.02)
    rng = np.random.default_rng(2)

    def share(at_s: float) -> float:
        found = [tail.latency(at_s, 60, 100_000, rng, STALL_NS) for _ in range(300)]
        return sum(each.count_above(suite_tails.SLOW_NS / 2) for each in found) / sum(each.total for each in found)

    assert share(0.0) == pytest.approx(0.002, rel=0.2)
    assert share(4000.0) == pytest.approx(0.02, rel=0.2)


def test_faultless_drives_keep_what_slow_ones_do_not() -> None:
    faultless, stalling = (run(SUITE, tail, 1) for tail in (TAILS[0], Tail("bad", stalls=200.0, slow=0.05)))
    assert set(faultless.outcomes[Claim.P99_LATENCY]) == {Outcome.PASS}
    assert Outcome.PASS not in stalling.outcomes[Claim.P99_LATENCY]
    assert Outcome.FAIL not in faultless.outcomes[Claim.LATENCY_SPREAD_OVER_TIME]
    assert Outcome.PASS not in stalling.outcomes[Claim.LATENCY_SPREAD_OVER_TIME]
