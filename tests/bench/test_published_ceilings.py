"""Flawless drives behind the ceilings of md that kernel mails report: what is attributed never is a failure of drives.

The systems are those of ``bench/attribution.py``; its drives have dies, and the package knows nothing of dies.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import attribution as bench
import pytest
from simulated_system import SimulatedSystem, even_drives

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity import attribution, latency_attribution
from pytest_ssdqual.qual.validity.attribution import Cause, Culprit
from pytest_ssdqual.qual.validity.shortfall import HostEvidence
from pytest_ssdqual.qual.workload.workload import Workload

#: A quarter of the dies, of the I/Os outstanding and of md's ceiling are the same system, and sooner simulated.
SCALE = 4
READS, WRITES = (Workload(rw, "4k", 64 // SCALE) for rw in ("randread", "randwrite"))
#: Dies, and service times of reads and writes: 1,000,000 and 200,000, and 1,500,000 and 400,000 IOPS.
GEN4, GEN5 = (80, 80e-6, 400e-6), (120, 80e-6, 300e-6)


@dataclass(frozen=True, slots=True)
class Published:
    """One report: its drives, and the share of all CPUs that was busy."""

    array: str
    workload: Workload
    drives: tuple[int, float, float]
    #: None: a share of what the drives can do.
    md_iops: float | None
    share: float = 1.0
    cpu_busy: float = 0.58


REPORTS = {
    "463k writes (linux-raid, before 6.12)": Published("raid5x8", WRITES, GEN5, 463_000),
    "523k writes (6.12)": Published("raid5x8", WRITES, GEN5, 523_000),
    "4M reads (5.14)": Published("raid5x8", READS, GEN5, 4_000_000),
    "2M reads (before 5.14)": Published("raid6x8", READS, GEN4, 2_000_000, cpu_busy=0.5),
    "3.8M of 7M on RAID 0": Published("raid0x8", READS, GEN4, 3_800_000),
    "RAID 10 at 7.0 of 9.3 GiB/s": Published("raid10x4", READS, GEN4, None, 0.75),
    "half of the drives' IOPS at 42 % idle": Published("raid5x8", READS, GEN4, None, 0.5),
    "25 % less on the other NUMA node, 96.5 % idle": Published("raid5x8", READS, GEN4, None, 0.75, cpu_busy=0.035),
}


def cause(report: Published, *, p99: bool, ceiling: bool) -> Cause | None:
    """The cause of a broken promise: 95 % of what the same drives do without md's ceiling, or 110 % of their p99."""
    dies, read_s, write_s = report.drives
    draw = random.Random(f"{report} {p99}")  # noqa: S311 (a simulation)
    geometry = Geometry.parse(report.array)
    drives = even_drives(geometry.width, 0.01, 7, dies=dies // SCALE, read_s=read_s, write_s=write_s)
    case = bench.Case(
        "published",
        lambda system, iops: replace(system, md_iops=(report.md_iops or 0) / SCALE or report.share * iops),
        bench.MD,
        host=replace(bench.CALM, cpu_busy=report.cpu_busy, numa_nodes=(0, 1)),
        no_ceiling=not ceiling,
    )
    found = bench.shortfall(case, SimulatedSystem(drives), geometry, report.workload, draw, p99=p99)
    if found is None:
        return None
    assert isinstance(found.host, HostEvidence)
    return latency_attribution.attribute(found) if p99 else attribution.attribute(found)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "IOS", 2_000)


@pytest.mark.parametrize("name", REPORTS)
def test_iops_that_md_or_a_numa_node_costs_are_not_the_drives(name: str) -> None:
    """Memory devices do not show what a NUMA node costs; where they show md's ceiling, md is the cause."""
    unknown = cause(REPORTS[name], p99=False, ceiling=False)
    assert unknown
    assert unknown.culprit in (Culprit.MD, Culprit.UNEXPLAINED)
    assert not unknown.drives
    if name in ("463k writes (linux-raid, before 6.12)", "3.8M of 7M on RAID 0"):
        known = cause(REPORTS[name], p99=False, ceiling=True)
        assert known
        assert known.culprit is Culprit.MD


@pytest.mark.parametrize("name", ["523k writes (6.12)", "4M reads (5.14)", "RAID 10 at 7.0 of 9.3 GiB/s"])
def test_latency_of_md_or_a_numa_node_is_not_the_drives(name: str) -> None:
    found = cause(REPORTS[name], p99=True, ceiling=False)
    assert found is None or not found.culprit.is_drive
