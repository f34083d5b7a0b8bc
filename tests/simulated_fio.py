"""What fio would have measured on drives that were never there: the law of the level, at 300 I/Os a second and drive.

As the lab's scale model: of any size and direction, at any depth that keeps the drive busy. From the purged state a
drive is twice as fast, until it was written once. No time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import fio_documents
from scripted import completed

from pytest_ssdqual.qual.geometry import Geometry, expected_iops
from pytest_ssdqual.qual.histogram import LatencyHistogram
from pytest_ssdqual.qual.measurement import Interval, Measured, Run
from pytest_ssdqual.qual.rebuild import Rebuild
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.rig import measuring
from pytest_ssdqual.rig.fio import output
from pytest_ssdqual.rig.fio.process import Finished
from pytest_ssdqual.rig.md import Array
from pytest_ssdqual.rig.measuring import Window
from pytest_ssdqual.rig.setup import Setup

IOPS = 300
#: Share of the I/Os of a second, and their latency over the mean: the mean is 1, the p99 twice that.
LATENCIES = ((0.49, 0.6), (0.49, 1.36), (0.02, 2.0))
#: How a round differs from the mean; the signs of the five rounds of a window add up to zero.
SIGNS = (1.0, -1.0, 0.0, -1.0, 1.0)
#: Fresh over settled, and the user capacities written before the cliff.
FRESH, CLIFF = 2.0, 1.0
#: A longer one would look as if fio had been silent.
LONGEST_S = 2.5
#: What a rebuild leaves to the load, and how long it takes.
LEFT, REBUILD_S = 0.5, 270.0


@dataclass(frozen=True)
class Fio:
    """How the drives of one machine do; ``slow`` is the share of its speed that a drive has, by serial."""

    slow: Mapping[str, float]
    #: By how much a round differs from the mean, as a share of it.
    noise: float
    #: Of the run that is now made.
    number: int = 0
    #: Called when fio would start.
    begin: Callable[[], None] = lambda: None

    def run(self, setup: Setup, array: Array, workload: Workload, kind: str, window: Window) -> Run:
        """Instead of ``measuring.run``: what fio would have written, read as ever."""

        def work() -> Finished:
            self.begin()
            return Finished(completed(["fio"]), fio_documents.packed(*self._parts(array, workload, window)))

        raw, finished = measuring.noted(setup, array, workload, kind, work)
        read = output.parse(finished.output)
        return Run(
            workload=workload,
            geometry=array.geometry,
            members=tuple(drive.identity for drive in array.members),
            intervals=read.intervals,
            ramp_s=window.ramp_s,
            window_s=window.window_s,
            rounds=window.rounds,
            raw=raw,
            parts=read.parts if array.geometry.is_side_by_side else (),
        )

    def _parts(self, array: Array, workload: Workload, window: Window) -> list[tuple[Interval, ...]]:
        """What each target did."""
        speeds = [self.slow.get(drive.serial or "", 1.0) for drive in array.members]
        geometry = array.geometry
        alone = [Geometry(geometry.level, 1)] * len(speeds) if geometry.is_side_by_side else [geometry]
        rates = [law(each, workload) * speed for each, speed in zip(alone, speeds, strict=False)]
        if not geometry.is_side_by_side:  # the slowest member sets the pace of all
            rates = [rates[0] / speeds[0] * min(speeds)]
        curve = self._saturating(array, workload, window) if window.volume_bytes else self._even(window)
        return [
            tuple(
                interval(at, seconds, workload, workload.outstanding(each.width), rate * share)
                for at, seconds, share in curve
            )
            for each, rate in zip(alone, rates, strict=True)
        ]

    def _even(self, window: Window) -> list[tuple[float, float, float]]:
        """Time, length and share of the mean rate of each interval; a round differs a little from the next."""
        whole = window.ramp_s + window.window_s
        seconds = max(1.0, min(whole / 200, LONGEST_S if window.rounds < 6 else whole / 200))
        times = [number * seconds for number in range(round(whole / seconds))]
        first = self.number if window.rounds == 1 else 0

        def sign(at: float) -> float:
            return SIGNS[(first + int((at - window.ramp_s) / window.window_s * window.rounds)) % len(SIGNS)]

        return [(at, seconds, 1 + self.noise * sign(at)) for at in times]

    def _saturating(self, array: Array, workload: Workload, window: Window) -> list[tuple[float, float, float]]:
        """The same for a curve that has written its volume when the time is over, whatever a drive can do."""
        capacity = array.size_bytes
        volume = (window.volume_bytes or 0) / capacity
        settled = (CLIFF / FRESH + volume - CLIFF) * capacity / window.window_s
        share = settled / (law(array.geometry, workload) * workload.block_bytes * (1 - workload.read_fraction))
        cliff_s = CLIFF * capacity / (FRESH * settled)
        count = max(1, round(window.window_s / window.every_s))
        return [
            (
                number * window.every_s,
                float(window.every_s),
                share * (FRESH if number * window.every_s < cliff_s else 1.0) * (1 + self.noise * SIGNS[number % 5]),
            )
            for number in range(count)
        ]


def law(geometry: Geometry, workload: Workload) -> float:
    """I/Os per second; fewer if less is outstanding than there are members."""
    failed = Geometry(geometry.level, geometry.width, geometry.missing)
    left = LEFT if geometry.rebuilding else 1.0
    busy = expected_iops(failed, workload.read_fraction, IOPS, IOPS)
    return left * min(busy, workload.outstanding(geometry.width) * IOPS)


def interval(start_s: float, seconds: float, workload: Workload, outstanding: int, iops: float) -> Interval:
    reads = round(iops * seconds * workload.read_fraction)
    writes = round(iops * seconds) - reads
    mean_ns = outstanding / iops * 1e9
    size = workload.block_bytes
    return Interval(
        start_s, seconds, reads, writes, round(reads * size), round(writes * size),
        histogram(reads, mean_ns), histogram(writes, mean_ns),
    )  # fmt: skip


def histogram(ios: int, mean_ns: float) -> LatencyHistogram:
    counts = [round(ios * share) for share, _ in LATENCIES]
    counts[0] += ios - sum(counts)
    return LatencyHistogram.from_bins(
        {round(mean_ns * factor): count for (_, factor), count in zip(LATENCIES, counts, strict=True) if count}
    )


def fail(setup: Setup, array: Array, missing: int) -> Array:
    """Instead of ``degraded.fail``."""
    geometry = Geometry(array.geometry.level, array.geometry.width, missing)
    setup.logbook.note("members_failed", geometry=str(geometry), uuid=array.uuid)
    return replace(array, geometry=geometry)


def rebuild(run: Callable[..., Run]) -> Callable[[Setup, Array, Workload], Rebuild]:
    """Instead of ``rebuilding.rebuild``."""

    def rebuilt(setup: Setup, array: Array, workload: Workload) -> Rebuild:
        failed = array.geometry
        geometry = Geometry(failed.level, failed.width, failed.missing, rebuilding=True)
        rule = setup.protocol
        window = measuring.Window(rule.ramp_s, REBUILD_S - rule.ramp_s, rule.steady.window)
        foreground = Measured((run(setup, replace(array, geometry=geometry), workload, "rebuild", window).condensed(),))
        size = array.members[0].size_bytes
        found = Rebuild(geometry, REBUILD_S, size, foreground, mismatches=0)
        about = {"asked": workload.to_record(), "protocol": rule.name, "acceptance": rule.acceptance}
        setup.logbook.note("rebuild", **about, **found.summary())
        return found

    return rebuilt
