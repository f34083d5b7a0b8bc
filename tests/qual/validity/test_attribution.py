from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.strategies import about

from pytest_ssdqual.qual.measured.environment import DeviceQueue
from pytest_ssdqual.qual.measured.sweep import Ceiling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity.attribution import RULES, Cause, Culprit, _members_cannot, attribute
from pytest_ssdqual.qual.validity.shortfall import HostEvidence, LatencyEvidence, MemberEvidence, Shortfall

ARRAY = Geometry.parse("raid5x4")


def members(**changes: dict[str, Any]) -> tuple[MemberEvidence, ...]:
    even = {name: MemberEvidence(name, 1.0, 1.0, 8.0, 8.0, 1e6, 1.0) for name in ("A", "B", "C", "D")}
    return tuple(replace(each, **changes.get(name, {})) for name, each in even.items())


def shortfall(measured: float, predicted: float | None, needed: float | None = 1_000, **more: object) -> Shortfall:
    found = {"members": members(), **more}
    return Shortfall(ARRAY, about(measured, 1), needed, about(predicted, 1) if predicted else None, **found)  # type: ignore[arg-type]


IDLE = members(**{name: {"depth": 3.0} for name in "ABCD"})


def heals(drives: Collection[str]) -> float:
    return 1_100 if "C" in drives else 700


def test_one_slow_drive_is_named() -> None:
    found = attribute(shortfall(700, 700, members=members(C={"speed": 0.7}), replaced=heals))
    assert (found.culprit, found.drives) == (Culprit.DRIVE, ("C",))
    assert "70 %" in found.evidence


def test_drives_that_are_all_too_slow_are_the_cause_together() -> None:
    found = attribute(shortfall(700, 700))
    assert (found.culprit, found.drives, found.subject) == (Culprit.DRIVES, (), "all drives")
    # Also if one of them is slower, but a median one in its place would not help.
    slower = shortfall(700, 700, members=members(C={"speed": 0.9}), replaced=lambda drives: 750)
    assert attribute(slower).culprit is Culprit.DRIVES
    assert attribute(slower).drives == ("C",)


def test_what_drives_can_do_is_no_evidence_against_them_where_it_would_suffice() -> None:
    cause = attribute(shortfall(970, 1_010))
    assert cause.culprit is Culprit.DRIVES
    assert "96%" in cause.evidence
    assert "1,010" not in cause.evidence


def test_drives_slower_together_than_alone_share_a_path() -> None:
    behind = members(A={"together": 0.6}, B={"together": 0.62})
    found = attribute(shortfall(700, 700, members=behind))
    assert (found.culprit, found.drives) == (Culprit.PATH, ("A", "B"))
    assert found.advice
    alone_too_slow = shortfall(300, 300, members=behind)
    assert attribute(alone_too_slow).culprit is Culprit.DRIVES


@pytest.mark.parametrize(
    ("ceiling", "more", "is_proven"),
    [
        (620, {}, True),
        (1_010, {"measured": about(900, 1)}, False),  # md could do more than is needed
        (620, {"needed": None}, False),  # evenness does not follow from IOPS
        (620, {"latency": LatencyEvidence(60e6, 10e6)}, False),
    ],
)
def test_a_ceiling_proves_only_what_it_keeps_from_its_limit(
    ceiling: int, more: dict[str, Any], is_proven: bool
) -> None:
    known = Ceiling(ARRAY, "randread_4k_qd8", "null_blk", ceiling)
    found = attribute(replace(shortfall(600, 1_200, ceiling=known, members=IDLE), **more))
    assert (found.culprit, found.is_proven) == (Culprit.MD, is_proven)
    assert "null_blk" in found.evidence


@pytest.mark.parametrize(
    ("host", "culprit"),
    [
        (HostEvidence(cpu_busy=0.93), Culprit.HOST),
        (HostEvidence(cpu_busy=0.4, cpu_pressure=0.7), Culprit.HOST),
        (HostEvidence(cpu_busy=0.4, md_thread_busy=0.97), Culprit.MD),
        (HostEvidence(cpu_busy=0.4, interrupt_cpus="3", interrupts_busy=0.97), Culprit.HOST),
        (HostEvidence(cpu_busy=0.4, stripe_cache=0.99), Culprit.MD),
        (HostEvidence(jobs_busy=0.97), Culprit.MEASUREMENT),
        (HostEvidence(cpu_busy=0.4), Culprit.MD),
    ],
)
def test_what_is_above_idle_drives_is_the_cause(host: HostEvidence, culprit: Culprit) -> None:
    assert attribute(shortfall(600, 1_200, host=host, members=IDLE)).culprit is culprit


def test_busy_host_is_no_cause_where_drives_are_the_bound() -> None:
    busy = HostEvidence(cpu_busy=0.4, interrupt_cpus="3", interrupts_busy=0.97, stripe_cache=1.0)
    slower = members(**{name: {"delivered": 0.6} for name in "ABCD"})
    assert attribute(shortfall(700, 1_200, host=busy, members=slower)).culprit.is_drive


def test_members_that_do_as_their_curves_are_not_accused() -> None:
    """As below an md that takes a few per cent: it hardly changes what is outstanding."""
    nearly = members(**{name: {"depth": 7.2, "delivered": 0.99} for name in "ABCD"})
    assert not attribute(shortfall(900, 1_000, needed=950, members=nearly)).culprit.is_drive


def test_drives_that_can_do_it_are_accused_by_what_they_deliver_only() -> None:
    """The curves promise enough, and the I/Os wait at the drives."""
    slower = members(**{name: {"delivered": 0.8} for name in "ABCD"})
    found = attribute(shortfall(800, 1_010, members=slower))
    assert (found.culprit, found.drives) == (Culprit.DRIVES, ())
    assert "80%" in found.evidence
    assert "1,010" not in found.evidence
    unknown = members(**{name: {"delivered": None} for name in "ABCD"})
    assert attribute(shortfall(800, 1_010, members=unknown)).culprit is Culprit.UNEXPLAINED


def test_drives_on_several_nodes_are_part_of_the_advice() -> None:
    host = HostEvidence(cpu_busy=0.95, numa_nodes=(0, 1))
    assert "nodes 0, 1" in attribute(shortfall(600, 1_200, members=IDLE, host=host)).advice
    one = replace(host, numa_nodes=(0,))
    assert "nodes" not in attribute(shortfall(600, 1_200, members=IDLE, host=one)).advice


def test_a_drive_that_became_slow_in_the_array_is_named() -> None:
    waits = members(B={"delivered": 0.5, "wait_ns": 3e6, "depth": 20.0})
    found = attribute(shortfall(600, 1_200, members=waits))
    assert (found.culprit, found.drives) == (Culprit.DRIVE, ("B",))


def test_another_program_is_the_cause_whatever_else() -> None:
    assert attribute(shortfall(700, 700, foreign=("something read 5 GB",))).culprit is Culprit.MEASUREMENT


def test_without_a_prediction_only_positive_evidence_counts() -> None:
    found = attribute(shortfall(600, None, members=(), why_not="no law for it"))
    assert (found.culprit, found.evidence) == (Culprit.UNKNOWN, "no law for it")
    busy = shortfall(600, None, members=(), host=HostEvidence(jobs_busy=0.99))
    assert attribute(busy).culprit is Culprit.MEASUREMENT


def queue(read_ms: float, iops: float = 100.0, depth: float = 4.0) -> DeviceQueue:
    return DeviceQueue(iops, 0.0, depth, read_ms * 1e6, None, 1.0)


def unpredicted(*read_ms: float, iops: tuple[float, ...] = (), **more: Any) -> Cause:  # noqa: ANN401 (as shortfall has it)
    rates = iops or (100.0,) * len(read_ms)
    drives = zip("ABCDEFGH", read_ms, rates, strict=False)
    found = tuple(MemberEvidence(name, queue=queue(wait, rate)) for name, wait, rate in drives)
    return attribute(shortfall(600, None, members=found, why_not="no law for it", **more))


def test_unpredicted_drive_with_long_waits_is_named() -> None:
    found = unpredicted(2.0, 2.1, 6.0, 1.9)
    assert (found.culprit, found.drives) == (Culprit.DRIVE, ("C",))
    # Even drives at high depth: the slowest collects what is outstanding.
    assert unpredicted(2.0, 2.1, 3.2, 1.9).culprit is Culprit.UNKNOWN
    # Half of the drives are no exception, and another load explains another wait.
    assert unpredicted(2.0, 6.1, 6.0, 1.9).culprit is Culprit.UNKNOWN
    assert unpredicted(2.0, 2.1, 6.0, 1.9, iops=(100, 100, 300, 100)).culprit is Culprit.UNKNOWN


def test_unpredicted_md_is_the_bound_if_drives_are_idle() -> None:
    assert unpredicted(2.0, 2.0, 2.0, at_drives=0.2).culprit is Culprit.MD
    assert unpredicted(2.0, 2.0, 2.0, at_drives=0.7).culprit is Culprit.UNKNOWN
    # A full cache and busy interrupts are no cause where the I/Os are at the drives.
    busy = HostEvidence(stripe_cache=1.0, interrupt_cpus="1", interrupts_busy=0.99, md_thread_busy=0.97)
    assert unpredicted(2.0, 2.0, 2.0, at_drives=0.9, host=busy).culprit is Culprit.UNKNOWN
    assert unpredicted(2.0, 2.0, 2.0, at_drives=0.6, host=busy).culprit is Culprit.HOST


@given(st.floats(10, 2_000), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_able_idle_drives_are_never_blamed(measured: float, cpu: float, pressure: float, jobs: float) -> None:
    host = HostEvidence(cpu_busy=cpu, cpu_pressure=pressure, jobs_busy=jobs)
    found = attribute(shortfall(min(measured, 900), 1_200, host=host, members=IDLE))
    assert not found.culprit.is_drive


@given(st.floats(10, 900), st.floats(0, 1))
def test_unable_drives_are_never_acquitted(measured: float, cpu: float) -> None:
    found = attribute(shortfall(measured, 900, members=IDLE, host=HostEvidence(cpu_busy=cpu)))
    assert found.culprit.is_drive


def test_cause_has_the_confidence_of_its_rule() -> None:
    assert all(0.5 <= confidence < 1 for confidence in RULES.values())
    assert attribute(shortfall(700, 700)).confidence == RULES[_members_cannot]
    assert attribute(shortfall(900, 1_000, needed=950)).confidence == 0


def test_a_cause_as_a_sentence() -> None:
    assert str(Cause(Culprit.DRIVE, "it waits", ("A",), confidence=0.9)) == "cause: drive A, it waits"
    several = Cause(Culprit.DRIVES, "they wait", tuple("ABCDE"), confidence=0.9)
    assert str(several) == "cause: drives A, B, C and 2 more, they wait"
    assert str(Cause(Culprit.UNEXPLAINED, "nothing fits")) == "cause unexplained: nothing fits"
    assert str(Cause(Culprit.UNKNOWN, "no rule")) == "cause unknown: no rule"
