from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import strategies

from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    CpuUse,
    DeviceQueue,
    DeviceTraffic,
    DriveEnvironment,
    DrivePlacement,
    StripeCache,
    Traffic,
)  # fmt: skip
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity import shortfall
from pytest_ssdqual.qual.validity.shortfall import Shortfall
from pytest_ssdqual.qual.workload.workload import Workload

ABOUT = Estimate(1_000, 990, 1_010, 5, Unit.IOPS)


def drive(name: str, cpus: str, node: int | None = 0) -> DriveEnvironment:
    seen = strategies.seen_drive(name, Traffic(1_000, 0, 4_096_000, 0), None)
    queue = DeviceQueue(100.0, 0.0, 8.0, 8e7, None, 1.0)
    return replace(seen, queue=queue, placement=DrivePlacement("none", 64, node, cpus))


def evidence(*drives: DriveEnvironment, busy: tuple[float, ...], cache: StripeCache | None = None) -> Shortfall:
    array = ArrayEnvironment(DeviceTraffic(None, None), 65536, None, (), 0.5, cache)
    seen = strategies.seen(drives, array)
    assert seen.cpu
    uses = tuple(CpuUse(number, share, share, 0.0) for number, share in enumerate(busy))
    run = replace(strategies.run([1_000] * 5), seen=replace(seen, cpu=replace(seen.cpu, each=uses)))
    return shortfall.of_run(run, ABOUT, 2_000, None)


def test_interrupts_that_few_cpus_serve() -> None:
    host = evidence(drive("S0", "3"), drive("S1", "3-4"), busy=(0.1, 0.2, 0.1, 0.97, 0.5, 0.1)).host
    assert (host.interrupt_cpus, host.interrupts_busy) == ("3-4", 0.97)


def test_interrupts_spread_over_cpus_are_no_bound() -> None:
    host = evidence(drive("S0", "0-1"), drive("S1", "2-3"), busy=(0.1, 0.2, 0.1, 0.97)).host
    assert (host.interrupt_cpus, host.interrupts_busy) == ("", None)


def test_interrupts_of_which_nothing_is_known() -> None:
    assert evidence(drive("S0", ""), busy=(0.9, 0.9)).host.interrupts_busy is None


def test_nodes_and_stripe_cache() -> None:
    host = evidence(
        drive("S0", "0", 1), drive("S1", "1", 0), drive("S2", "1", None), busy=(0.1,) * 8,
        cache=StripeCache(256, 4, 128.0, 200),
    ).host  # fmt: skip
    assert host.numa_nodes == (0, 1)
    assert host.stripe_cache == pytest.approx(0.5)
    assert host.md_thread_busy == 0.5


def test_the_share_of_the_possible_ios_that_is_at_the_drives() -> None:
    alike = [replace(drive(f"S{number}", "0"), queue=DeviceQueue(100.0, 0.0, 2.0, 8e7, None, 1.0)) for number in "012"]
    run = strategies.run([1_000] * 5, geometry="raid5x3", workload=Workload("randread", "4k", 8))
    run = replace(run, seen=strategies.seen(alike))
    # 24 host reads are 24 member reads; phases of a parity write are of different size.
    assert shortfall.of_run(run, ABOUT, None, None).at_drives == pytest.approx(6 / 24)
    writes = replace(run, workload=Workload("randwrite", "4k", 8))
    assert shortfall.of_run(writes, ABOUT, None, None).at_drives is None
    mirrored = replace(writes, geometry=Geometry.parse("raid10x4"))
    mirrored = replace(mirrored, seen=strategies.seen([*alike, replace(alike[0], name="S3")]))
    assert shortfall.of_run(mirrored, ABOUT, None, None).at_drives is not None
    rebuilding = replace(run, geometry=Geometry.parse("raid5x3-1rebuilding"))
    assert shortfall.of_run(rebuilding, ABOUT, None, None).at_drives is not None
    # md merges sequential I/Os.
    assert shortfall.of_run(replace(run, workload=Workload("read", "4k", 8)), ABOUT, None, None).at_drives is None


def test_workers_of_raid5_over_those_of_a_node() -> None:
    array = ArrayEnvironment(DeviceTraffic(None, None), 65536, None, (), 0.5, None, 4, 3.8)
    run = replace(strategies.run([1_000] * 5), seen=strategies.seen([], array))
    assert shortfall.of_run(run, ABOUT, None, None).host.md_workers_busy == pytest.approx(0.95)
    unknown = replace(run, seen=strategies.seen([], replace(array, md_workers=0)))
    assert shortfall.of_run(unknown, ABOUT, None, None).host.md_workers_busy is None
