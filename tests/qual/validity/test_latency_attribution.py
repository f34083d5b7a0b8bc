from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import about

from pytest_ssdqual.qual.measured.environment import DeviceQueue
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity import attribution
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.qual.validity.latency_attribution import RULES, attribute
from pytest_ssdqual.qual.validity.shortfall import HostEvidence, LatencyEvidence, MemberEvidence, Shortfall

ARRAY = Geometry.parse("raid5x4")
EVEN = dict.fromkeys("ABCD", 1.0)


def members(depth: float = 8.0, **changes: dict[str, object]) -> tuple[MemberEvidence, ...]:
    queue = DeviceQueue(1_000.0, 0.0, depth, 1e6, None, 1.0)
    even = {name: MemberEvidence(name, 1.0, 1.0, depth, 8.0, 1e6, 1.0, queue) for name in "ABCD"}
    return tuple(replace(each, **changes.get(name, {})) for name, each in even.items())  # type: ignore[arg-type]


def late(
    measured_ms: float, alone_ms: float | None, limit_ms: float = 5.0, efficiency: float = 1.0, **more: object
) -> Shortfall:
    """An array whose latency is ``measured_ms``, where one of exactly its members has ``alone_ms``."""
    latency = LatencyEvidence(measured_ms * 1e6, limit_ms * 1e6, None if alone_ms is None else alone_ms * 1e6, own=EVEN)
    found = {"members": members(), "latency": latency, **more}
    return Shortfall(ARRAY, about(1_000 * efficiency, 1), None, about(1_000, 1), **found)  # type: ignore[arg-type]


def with_latency(found: Shortfall, **changes: object) -> Shortfall:
    assert found.latency
    return replace(found, latency=replace(found.latency, **changes))  # type: ignore[arg-type]


def test_drives_whose_curves_predict_the_latency_are_the_cause() -> None:
    found = attribute(late(8, 7.5))
    assert (found.culprit, found.drives) == (Culprit.DRIVES, ())


def test_a_latency_that_keeps_the_promise_is_no_evidence_against_the_drives() -> None:
    cause = attribute(late(5.1, 4.8))
    assert cause.culprit is Culprit.DRIVES
    assert "1.06 times" in cause.evidence
    assert "4.8" not in cause.evidence


def test_drive_is_named_if_a_median_one_would_keep_the_promise() -> None:
    slow = with_latency(late(8, 7.5), own=EVEN | {"C": 1.8}, replaced=lambda drives: 4e6 if "C" in drives else 7.5e6)
    found = attribute(slow)
    assert (found.culprit, found.drives) == (Culprit.DRIVE, ("C",))
    in_vain = with_latency(slow, replaced=lambda drives: 7e6)
    assert attribute(in_vain).culprit is Culprit.DRIVES


def test_rules_about_drives_and_hosts_are_those_of_iops() -> None:
    shared = {attribution.drive_delivers_less, attribution.drive_stands_out, attribution.fio_is_the_bound}
    assert shared < set(RULES)
    assert next(iter(RULES)) is attribution.foreign
    slow = members(B={"delivered": 0.5, "wait_ns": 3e6, "depth": 20.0})
    cause = attribute(late(20, 3, efficiency=0.6, members=slow))
    assert (cause.culprit, cause.drives) == (Culprit.DRIVE, ("B",))


@pytest.mark.parametrize(
    ("host", "culprit"),
    [
        (HostEvidence(cpu_busy=0.95), Culprit.HOST),
        (HostEvidence(md_thread_busy=0.97), Culprit.MD),
        (HostEvidence(jobs_busy=0.97), Culprit.MEASUREMENT),
        (HostEvidence(), Culprit.MD),
    ],
)
def test_long_latency_with_short_waits_is_from_above(host: HostEvidence, culprit: Culprit) -> None:
    idle = members(depth=3.0)
    assert attribute(late(20, 4, efficiency=0.5, members=idle, host=host)).culprit is culprit
    # Also if the bare drives had that latency: they were measured on the same host.
    assert attribute(late(20, 18, efficiency=0.99, members=idle, host=host)).culprit is culprit


def test_tail_beyond_bare_drives_is_the_hosts_or_unexplained() -> None:
    pressed = late(20, 4, host=HostEvidence(cpu_pressure=0.6))
    assert attribute(pressed).culprit is Culprit.HOST
    found = attribute(late(20, 4))
    assert found.culprit is Culprit.UNEXPLAINED
    assert "20 ms" in found.evidence


def test_a_prediction_far_above_what_was_measured_is_refuted() -> None:
    found = attribute(late(6, 40, efficiency=0.5, members=members(depth=3.0)))
    assert not found.culprit.is_drive


def test_rare_slow_ios_are_the_drives_if_bare_ones_have_them() -> None:
    rare = with_latency(late(20, None), is_rare=True, often=2.5, own=EVEN | {"A": 60.0}, replaced=lambda drives: 0.1)
    found = attribute(rare)
    assert (found.culprit, found.drives) == (Culprit.DRIVE, ("A",))
    assert attribute(with_latency(rare, own=EVEN, replaced=lambda drives: 2.0)).culprit is Culprit.DRIVES


def test_rare_slow_ios_beyond_bare_drives_are_unexplained() -> None:
    assert attribute(with_latency(late(20, None), is_rare=True, often=0.0)).culprit is Culprit.UNEXPLAINED
    found = attribute(with_latency(late(20, None), is_rare=True))
    assert found.culprit is Culprit.UNKNOWN
    assert found.evidence


def test_without_a_predicted_percentile_the_waits_decide() -> None:
    """Rate-limited drives: their IOPS and waits are as predicted, and so is what follows."""
    assert attribute(late(8, None, efficiency=1.0)).culprit is Culprit.DRIVES
    assert attribute(late(8, None, efficiency=0.8)).culprit is Culprit.UNKNOWN


def test_shared_path_is_the_cause_if_the_promise_would_hold() -> None:
    shared = members(A={"together": 0.5}, B={"together": 0.5})
    assert attribute(late(8, 7.5, members=shared)).culprit is Culprit.PATH
    assert attribute(late(18, 17.5, members=shared)).culprit is Culprit.DRIVES


@given(st.floats(5.1, 500), st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 1))
def test_good_drives_are_never_blamed_for_a_tail_twice_as_long(
    measured_ms: float, cpu: float, pressure: float, efficiency: float
) -> None:
    host = HostEvidence(cpu_busy=cpu, cpu_pressure=pressure)
    found = attribute(late(measured_ms, min(4.9, measured_ms / 2), efficiency=efficiency, host=host))
    assert not found.culprit.is_drive
