"""Workloads, protocols and a steady state of tests that hardly measure, and the set-up of their measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import Fill, MeasureRule, PreconditionRule, SteadyRule
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.measure.session import Setup

READ, WRITE, STREAM = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8), Workload("write", "128k", 8)
#: Rounds of one second each.
PROTOCOL = Protocol(
    "test",
    acceptance=False,
    fill=Fill(1, "128k"),
    precondition=PreconditionRule(5, 15),
    measure=MeasureRule(1, 5, 1, 2),
)
#: Nothing is filled or conditioned.
UNPREPARED = Protocol(
    "brief",
    acceptance=False,
    fill=Fill(0, "1m"),
    precondition=PreconditionRule(0, 0),
    measure=MeasureRule(1, 5, 1, 1),
    purge="discard",
)
SETTLED = steady_state.judge([1000.0] * 5, SteadyRule())


def setup_of(
    logbook: object,
    protocol: object = PROTOCOL,
    *,
    machine: object = None,
    held: object = None,
    progress: Callable[[str, float], None] = lambda what, seconds: None,
) -> Setup:
    """Return the set-up of one run; what a test does not use is None."""
    return Setup(cast("Any", machine), cast("Any", held), cast("Any", protocol), cast("Any", logbook), "m", progress)
