"""Hypothesis strategies for the values of ``qual``, and plain builders of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from pytest_ssdqual.qual.measured.environment import (
    ArrayEnvironment,
    Cpu,
    DeviceTraffic,
    DriveEnvironment,
    DriveLink,
    DriveTemperature,
    KernelLog,
    ProcessEnvironment,
    Traffic,
)
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import SPELL_S, Measured, Run, Visited
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload

EMPTY = LatencyHistogram()


def fio_bucket(latency_ns: int) -> int:
    """fio's ``plat_val_to_idx`` and ``plat_idx_to_val`` in a row, written down from stat.c: what fio would print."""
    msb = latency_ns.bit_length() - 1
    if msb <= 6:
        return latency_ns
    error_bits = msb - 6
    index = min(((error_bits + 1) << 6) + ((latency_ns >> error_bits) & 63), 29 * 64 - 1)
    error_bits = (index >> 6) - 1
    return (1 << (error_bits + 6)) + int((index % 64 + 0.5) * (1 << error_bits))


latencies_ns = st.integers(0, 2**36)

histograms = st.dictionaries(latencies_ns.map(fio_bucket), st.integers(1, 10**6), max_size=30).map(
    LatencyHistogram.from_bins
)

geometries = st.sampled_from(
    [Geometry(level, width) for level in RaidLevel for width in range(1, 25) if FACTS[level].allows(width)]
)

workloads = st.builds(
    Workload,
    rw=st.sampled_from(["randread", "randwrite", "read", "write"]),
    bs=st.sampled_from(["512", "4k", "8k", "128k", "1m"]),
    qd_per_drive=st.integers(1, 256),
) | st.builds(
    Workload,
    rw=st.sampled_from(["randrw", "rw"]),
    bs=st.just("4k"),
    qd_per_drive=st.integers(1, 256),
    read_percent=st.integers(1, 99),
)

#: Those that ``workloads`` leaves out: independent streams, threads, several streams a drive, offsets, mixed sizes.
unusual_workloads = st.builds(
    Workload,
    rw=st.sampled_from(["randread+randwrite", "read+write", "randwrite"]),
    bs=st.just("4k"),
    qd_per_drive=st.integers(1, 32),
    threads=st.none() | st.integers(1, 8),
    offset=st.sampled_from(["0", "512"]),
) | st.builds(
    Workload,
    rw=st.just("randrw"),
    bs=st.sampled_from(["4k/60:64k/40", "512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10"]),
    qd_per_drive=st.integers(1, 32),
    read_percent=st.integers(1, 99),
    streams_per_drive=st.integers(1, 3),
    name=st.just("profile"),
)


@st.composite
def estimates(draw: st.DrawFn, unit: Unit = Unit.IOPS) -> Estimate:
    low, value, high = sorted(draw(st.tuples(*[st.floats(1e-3, 1e12)] * 3)))
    return Estimate(value, low, high, draw(st.integers(2, 10**6)), unit)


def about(iops: float, percent: float = 0.0) -> Estimate:
    """IOPS of five rounds that are known to so many per cent."""
    return Estimate(iops, iops * (1 - percent / 100), iops * (1 + percent / 100), 5, Unit.IOPS)


def histogram(bins: Mapping[int, int]) -> LatencyHistogram:
    """From true latencies: each goes where fio would count it."""
    return LatencyHistogram.merged(LatencyHistogram.from_bins({fio_bucket(ns): n}) for ns, n in bins.items())


def interval(
    start_s: float,
    *,
    seconds: float = 1.0,
    reads: int = 0,
    writes: int = 0,
    block: float = 4096,
    latency_ns: int = 10**6,
) -> Interval:
    return Interval(
        start_s,
        seconds,
        reads,
        writes,
        round(reads * block),
        round(writes * block),
        histogram({latency_ns: reads}) if reads else EMPTY,
        histogram({latency_ns: writes}) if writes else EMPTY,
    )


def run(
    iops: Sequence[int],
    *,
    geometry: str = "drivex1",
    workload: Workload | None = None,
    ramp_s: float = 0.0,
    window_s: float | None = None,
    rounds: int | None = None,
    cpu_busy: float | None = None,
) -> Run:
    """A run with one interval a second, whose latencies obey Little's law exactly (to the bucket)."""
    workload = workload or Workload("randread", "4k", 8)
    array = Geometry.parse(geometry)
    alone = array.is_side_by_side
    outstanding = array.width * workload.outstanding(1) if alone else workload.outstanding(array.width)
    intervals = []
    for second, ios in enumerate(iops):
        reads = round(ios * workload.read_fraction)
        latency_ns = outstanding * 10**9 // ios if ios else 0
        intervals.append(
            interval(second, reads=reads, writes=ios - reads, block=workload.block_bytes, latency_ns=latency_ns)
        )
    window_s = len(iops) - ramp_s if window_s is None else window_s
    return Run(
        workload=workload,
        geometry=array,
        members=tuple(f"S{n}" for n in range(array.width)),
        intervals=tuple(intervals),
        ramp_s=ramp_s,
        window_s=window_s,
        rounds=rounds or 5,
        raw="fio.json",
        seen=None if cpu_busy is None else seen(cpu_busy=cpu_busy),
    )


def visited(cells: Sequence[int] = (2, 2), level: float = 0.99, scatter: float = 0.01) -> Visited:
    """Visits of a point among many others, whose cells scatter like its own by ``scatter``."""
    return Visited(
        cells=tuple(cells),
        of=22,
        level=level,
        between=scatter / math.sqrt(cells[0]) if len(cells) > 1 else 0.0,
        between_degrees=20.0 if len(cells) > 1 else 0.0,
        within=scatter,
        within_degrees=40.0,
    )


def watched(
    slowest: Sequence[LatencyHistogram | int],
    spell_s: float = 60.0,
    of_visits: Visited | None = None,
    usual_ns: int = 10**6,
) -> Measured:
    """One report of fio for each spell, of a thousand I/Os of ``usual_ns`` and of one that is slower; or as given."""
    intervals = []
    for index, each in enumerate(slowest):
        latency = histogram({usual_ns: 1_000, each: 1}) if isinstance(each, int) else each
        block = 4096 * latency.total
        intervals.append(Interval(index * spell_s, spell_s, latency.total, 0, block, 0, latency, EMPTY))
    alone = Geometry.parse("drivex1")
    window_s = len(slowest) * spell_s
    count = max(1, min(5, len(slowest)))
    reads, parts = Workload("randread", "4k", 8), tuple(intervals)
    found = Run(reads, alone, ("S0",), parts, 0.0, window_s, count, "fio.json")
    return Measured((replace(found, spell_length_s=SPELL_S if of_visits else None),), of_visits)


def seen(
    drives: Sequence[DriveEnvironment] = (), array: ArrayEnvironment | None = None, *, cpu_busy: float = 0.3
) -> ProcessEnvironment:
    """Around a process of ten seconds; nothing is out of order."""
    cpu = Cpu(count=4, busy=cpu_busy, busiest=cpu_busy, busiest_in_kernel=cpu_busy, throttled=0.0)
    return ProcessEnvironment(
        seconds=11.0, fio_s=10.0, clock_jump_s=0.002, clock_resolution_s=0.02, cpu=cpu, jobs_busy=0.2,
        drives=tuple(drives), array=array, kernel=KernelLog((), 0, lost=False),
    )  # fmt: skip


def seen_drive(name: str, counted: Traffic | None, asked: Traffic | None) -> DriveEnvironment:
    """A cool drive on all of its lanes."""
    return DriveEnvironment(
        name,
        DeviceTraffic(counted, asked),
        DriveTemperature(41.0, 70.0, False, 0, 0),
        DriveLink("PCIe", 16.0, 4, 16.0, 4),
    )


def side_by_side(iops: Sequence[Sequence[int]], *, workload: Workload | None = None, rounds: int = 5) -> Run:
    """Drives side by side, ``S0`` first, each with its own IOPS second by second."""
    alone = [run(rates, workload=workload, rounds=rounds) for rates in iops]
    parts = tuple(each.intervals for each in alone)
    together = tuple(
        replace(
            each[0],
            read_ios=sum(one.read_ios for one in each),
            write_ios=sum(one.write_ios for one in each),
            read_bytes=sum(one.read_bytes for one in each),
            write_bytes=sum(one.write_bytes for one in each),
            read_latency=LatencyHistogram.merged(one.read_latency for one in each),
            write_latency=LatencyHistogram.merged(one.write_latency for one in each),
        )
        for each in zip(*parts, strict=True)
    )
    return replace(
        alone[0],
        geometry=Geometry(RaidLevel.DRIVE, len(parts)),
        members=tuple(f"S{number}" for number in range(len(parts))),
        intervals=together,
        parts=parts,
    )
