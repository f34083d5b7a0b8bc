"""What siblings have in common by their environment, their survey and their paths, each as the cause of a slow half."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import drives, strategies

from pytest_ssdqual.plugin.judging.siblings import Siblings
from pytest_ssdqual.qual.measured.environment import DriveEnvironment, DriveLink, DrivePlacement
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit, Scope
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.qual.verdict.verdict import judge
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard import shared_paths
from pytest_ssdqual.rig.guard.shared_paths import ROOT_PORT, DrivePath, Shared
from pytest_ssdqual.rig.machine.machine import RigError

#: Writes: no drive is measured alone.
WRITES = Workload("randwrite", "4k", 8)
LIMIT = Limit(Direction.AT_LEAST, 290, Unit.IOPS, "test")
PLACE = DrivePlacement("none", 1023, 0, "0-3", "write through")
SLOW, FAST = 200, 300
NOTHING: Mapping[str, Any] = {}
HALF = SLOW, SLOW, FAST, FAST
PATH, HOST, DRIVES, UNKNOWN = Culprit.PATH, Culprit.HOST, Culprit.DRIVES, Culprit.UNKNOWN


def changed(each: Any, values: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """The same with those values of which it has the field."""
    return replace(each, **{name: value for name, value in values.items() if hasattr(each, name)})


def found(
    monkeypatch: pytest.MonkeyPatch,
    rates: Sequence[int] = HALF,
    *,
    of_slow: Mapping[str, Any] = NOTHING,
    on: Sequence[Shared | None] = (None,) * 4,
    cpu_busy: float = 0.3,
    claim: Claim = Claim.STEADY_IOPS,
    limit: Limit = LIMIT,
    values: Sequence[float] = (),
) -> Culprit | None:
    """The culprit of writes of four drives; the slow ones have these fields of their survey and environment.

    The verdicts are about ``values``, one of each drive or one of all together; by default about the rates.
    """
    survey: list[Drive] = []
    environments: list[DriveEnvironment] = []
    for number, rate in enumerate(rates):
        drive = replace(drives.drive(number), firmware="A", queue_limit=64)
        environment = replace(strategies.seen_drive(f"S{number}", None, None), placement=PLACE)
        survey.append(changed(drive, of_slow if rate == SLOW else NOTHING))
        environments.append(changed(environment, of_slow if rate == SLOW else NOTHING))
    run = strategies.side_by_side([[rate] * 5 for rate in rates], workload=WRITES)
    measured = Measured((replace(run, seen=strategies.seen(environments, cpu_busy=cpu_busy)),))

    def paths(machine: object, listed: Sequence[Drive]) -> list[DrivePath]:
        if any(on):
            return [DrivePath(each, (thing,) if thing else ()) for each, thing in zip(listed, on, strict=True)]
        raise RigError("no sysfs")

    monkeypatch.setattr(shared_paths, "paths", paths)
    setup = SimpleNamespace(held=SimpleNamespace(drives=survey), machine=None)
    campaign: Any = SimpleNamespace(setup=setup, alone=lambda *load: None, all_alone=list)
    verdicts = [
        judge(
            claim,
            replace(measured.subject, drive=f"S{number}" if claim.scope is Scope.RUN else ""),
            replace(strategies.about(value, 1), unit=limit.unit),
            limit,
        )
        for number, value in enumerate(values or rates)
    ]
    cause = Siblings(lambda: campaign).cause(verdicts, measured)
    return cause.culprit if cause else None


def placed(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"placement": replace(PLACE, **more)}


@pytest.mark.parametrize(
    ("of_slow", "culprit"),
    [
        ({}, UNKNOWN),
        ({"link": DriveLink("PCIe", 16.0, 2, 16.0, 4)}, PATH),
        (placed(numa_node=1), PATH),
        (placed(scheduler="bfq"), HOST),
        (placed(nr_requests=64), HOST),
        (placed(write_cache="write back"), HOST),
        (placed(interrupt_cpus="3"), HOST),
        ({"firmware": "B"}, DRIVES),
        ({"model": "ACME 2"}, DRIVES),
        ({"size_bytes": 512 << 20}, DRIVES),
        ({"queue_limit": 1}, HOST),
        # What a drive does not report is no trait.
        (placed(numa_node=None, scheduler=""), UNKNOWN),
        ({"link": None, "placement": None, "firmware": None, "queue_limit": None}, UNKNOWN),
    ],
)
def test_what_the_slow_half_is_or_has_decides(
    monkeypatch: pytest.MonkeyPatch, of_slow: dict[str, Any], culprit: Culprit
) -> None:
    assert found(monkeypatch, of_slow=of_slow) is culprit


EXPANDERS = [Shared("SAS expander", f"0x500000000000000{number}") for number in range(4)]
PORTS = [Shared(ROOT_PORT, f"0000:00:0{number}.0", "boot") for number in range(4)]


@pytest.mark.parametrize(
    ("rates", "on", "culprit"),
    [
        (HALF, EXPANDERS[:1] * 2 + EXPANDERS[1:2] * 2, PATH),
        (HALF, EXPANDERS[:1] * 4, UNKNOWN),
        # A drive behind an expander of its own may be slow by that.
        ((SLOW, FAST, FAST, FAST), EXPANDERS[:1] + EXPANDERS[1:2] * 3, PATH),
        # With another one behind the same expander, the drive itself is slow.
        ((SLOW, FAST, FAST, FAST), EXPANDERS[:1] * 2 + EXPANDERS[1:2] * 2, Culprit.DRIVE),
        # Each drive has a root port of its own: that distinguishes none.
        ((SLOW, FAST, FAST, FAST), PORTS, Culprit.DRIVE),
        ((SLOW, FAST, FAST, FAST), PORTS[:1] + PORTS[1:2] * 3, Culprit.DRIVE),
        (HALF, PORTS[:1] * 2 + PORTS[1:2] * 2, PATH),
    ],
)
def test_what_the_slow_drives_hang_on_decides(
    monkeypatch: pytest.MonkeyPatch, rates: Sequence[int], on: Sequence[Shared], culprit: Culprit
) -> None:
    assert found(monkeypatch, rates, on=on) is culprit


@pytest.mark.parametrize(("cpu_busy", "culprit"), [(0.3, Culprit.PRODUCT), (0.99, HOST)])
def test_a_busy_host_is_the_cause_of_what_all_drives_show(
    monkeypatch: pytest.MonkeyPatch, cpu_busy: float, culprit: Culprit
) -> None:
    assert found(monkeypatch, (SLOW,) * 4, cpu_busy=cpu_busy) is culprit


@pytest.mark.parametrize(
    ("claim", "bound", "rates", "values", "culprit"),
    [
        # A rate is behind below 0.955 of the others' median, a latency above 1.25 of it.
        (Claim.STEADY_IOPS, 290, (280, FAST, FAST, FAST), (), Culprit.DRIVE),
        (Claim.STEADY_IOPS, 299, (289, FAST, FAST, FAST), (), Culprit.PRODUCT),
        (Claim.P99_LATENCY, 1000, (FAST,) * 4, (1200, 900, 900, 900), Culprit.DRIVE),
        (Claim.P99_LATENCY, 1000, (FAST,) * 4, (1100, 900, 900, 900), Culprit.PRODUCT),
        # A promise of evenness says itself what is behind; of latencies, on both sides of the median.
        (Claim.MEMBER_SPREAD, 0.99, (294, FAST, FAST, FAST), (0.98,), Culprit.DRIVE),
        (Claim.MEMBER_SPREAD, 0.99, (298, FAST, FAST, FAST), (0.98,), Culprit.PRODUCT),
        (Claim.LATENCY_SPREAD_BETWEEN_MEMBERS, 4, (100, FAST, FAST, FAST), (5,), Culprit.DRIVE),
        (Claim.LATENCY_SPREAD_BETWEEN_MEMBERS, 4, (180, FAST, FAST, FAST), (5,), Culprit.PRODUCT),
    ],
)
def test_what_is_behind_depends_on_the_claim(
    monkeypatch: pytest.MonkeyPatch, claim: Claim, bound: float, rates: Sequence[int], values: Sequence[float],
    culprit: Culprit,
) -> None:  # fmt: skip
    limit = Limit(claim.direction, bound, claim.unit, "test")
    assert found(monkeypatch, rates, claim=claim, limit=limit, values=values) is culprit


def test_kept_promises_have_no_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, (FAST,) * 4) is None
