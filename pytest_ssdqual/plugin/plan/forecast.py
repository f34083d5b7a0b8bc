"""What a plan will cost: time, bytes written and how often arrays are built, from the protocol and the data sheet."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_ssdqual.plugin.plan.order import Wanted
from pytest_ssdqual.qual.explore import dimensions as spaces
from pytest_ssdqual.qual.raid.geometry import Geometry, costs
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.rounds import Loop
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan
from pytest_ssdqual.rig.measure import fixed_time

#: Starting fio and looking at the array before and after, per measurement (3.5 s in the lab under emulation); purge,
#: creation and stop, per array.
OVERHEAD_S, BUILD_S = 3.5, 20.0
#: What a fill is assumed to reach if the data sheet does not say: a slow SATA SSD, bytes per second and drive.
FILL_BYTES_PER_S = 200e6


@dataclass(frozen=True, slots=True)
class StepCost:
    """Time, and bytes that the members take from us, parity and copies included."""

    seconds: float = 0.0
    bytes_written: float = 0.0

    def __add__(self, other: StepCost) -> StepCost:
        return StepCost(self.seconds + other.seconds, self.bytes_written + other.bytes_written)

    def times(self, count: int) -> StepCost:
        return StepCost(self.seconds * count, self.bytes_written * count)


def predict(
    wanted: Wanted,
    protocol: Protocol,
    spec: Spec,
    drives: int,
    drive_bytes: int,
    tails: Container[Workload] = frozenset(),
) -> PrintedPlan:
    """The plan with its costs, in the order in which it will be done; of ``tails`` percentiles are asked for."""
    prices = Prices(protocol, spec, drive_bytes, tails)
    arrays = dict.fromkeys(geometry.healthy for geometry in wanted.geometries)
    looks = protocol.sequential
    return PrintedPlan(
        tuple(row for array in arrays for row in _rows(array, wanted, prices)),
        drives=drives,
        protocol=protocol.name,
        acceptance=protocol.acceptance,
        endurance_bytes=spec.endurance_bytes,
        most_rounds=protocol.loop.max_rounds if wanted.loops else 0,
        first_s=looks.first_s if looks else 0.0,
        limit_s=looks.limit_s if looks else 0.0,
    )


def _rows(array: Geometry, wanted: Wanted, prices: Prices) -> Iterator[PlannedArray]:
    """What is done with one array; first what has a purge of its own."""
    for geometry, workloads in wanted.saturated.items():
        if geometry.healthy == array:
            cost = sum((prices.saturation(geometry, each) for each in workloads), StepCost())
            built = prices.build(array, 0).times(len(workloads))
            yield _row(f"{geometry} saturation", len(workloads), built, cost)
    for geometry, loops in wanted.loops.items():
        for loop in loops if geometry.healthy == array else ():
            least, most = prices.loop(geometry, loop)
            built = prices.build(array, loop.fill_passes)
            yield replace(_row(f"{geometry} {loop}", len(loop.workloads), built, least, most), is_loop=True)
    chain = [(geometry, each) for geometry, each in wanted.measured.items() if geometry.healthy == array]
    rebuilt = [(geometry, each) for geometry, each in wanted.rebuilt.items() if geometry.healthy == array]
    built_for = _built_for([*chain, *sorted(rebuilt, key=lambda each: -each[0].missing)], prices)
    for geometry, workloads in chain:
        prices_of = [prices.measurement(geometry, each) for each in workloads]
        least, most = (
            (sum(costs, StepCost()) for costs in zip(*prices_of, strict=True))
            if prices_of
            else (StepCost(), StepCost())
        )
        yield _row(str(geometry), len(workloads), built_for.get(geometry, StepCost()), least, most)
    for geometry, workloads in rebuilt:
        cost = sum((prices.rebuild(geometry, each) for each in workloads), StepCost())
        yield _row(str(geometry), len(workloads), built_for.get(geometry, StepCost()), cost)
    for geometry in wanted.lived:
        if geometry.healthy == array:
            yield _row(f"{geometry} integrity", 0, prices.build(array, 0), prices.lives(geometry))
    for geometry, plain in wanted.explored.items():
        for each in plain if geometry.healthy == array else ():
            built = prices.build(array) + prices.precondition(array, each)
            yield _row(f"{geometry} search around {each}", prices.searched, built, prices.search(geometry))


def _row(
    name: str, workloads: int, condition: StepCost, measure: StepCost, most: StepCost | None = None
) -> PlannedArray:
    more = StepCost(most.seconds - measure.seconds, most.bytes_written - measure.bytes_written) if most else StepCost()
    return PlannedArray(
        geometry=name,
        workloads=workloads,
        condition_s=condition.seconds,
        measure_s=measure.seconds,
        bytes_written=int(condition.bytes_written + measure.bytes_written),
        more_s=more.seconds,
        more_bytes=int(more.bytes_written),
    )


def _built_for(stages: Sequence[tuple[Geometry, list[Workload]]], prices: Prices) -> dict[Geometry, StepCost]:
    """Building and conditioning, with the stage that it is done for.

    An array is conditioned with all its members, for a class at a time, and then loses them; what a rebuild leaves
    behind is of no more use.
    """
    found: dict[Geometry, StepCost] = {}
    missing: int | None = None  # of what stands, if anything does
    random: bool | None = None  # the class that it is conditioned for
    for geometry, workloads in stages:
        for workload in workloads or (None,):
            steady = workload is None or workload.is_random == random
            if missing is None or missing > geometry.missing or (missing and not steady):
                found[geometry] = found.get(geometry, StepCost()) + prices.build(geometry.healthy)
                random, steady = None, workload is None
            if workload is not None and not steady:
                found[geometry] = found.get(geometry, StepCost()) + prices.precondition(geometry.healthy, workload)
                random = workload.is_random
            missing = None if geometry.rebuilding else geometry.missing
    return found


@dataclass(frozen=True, slots=True)
class Prices:
    """What single steps cost."""

    protocol: Protocol
    spec: Spec
    drive_bytes: int
    tails: Container[Workload] = frozenset()

    def build(self, geometry: Geometry, passes: int | None = None) -> StepCost:
        """Purge, creation, and sequential fills; as many as the protocol wants if ``passes`` is not said."""
        passes = self.protocol.fill_passes if passes is None else passes
        return StepCost(BUILD_S + passes * self.drive_bytes / self._stream, passes * self.drive_bytes * geometry.width)

    def precondition(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Of the class of ``workload``: one step, or as many as it takes to write what the protocol wants."""
        step_s, limit_s = self.protocol.precondition_s, self.protocol.precondition_limit_s
        if not step_s:
            return StepCost()
        writes = fixed_time.conditioning(workload)
        rate = self.host_bytes_per_s(geometry, writes)
        volume = self.protocol.precondition_capacities * self._capacity(geometry)
        steps = max(1, math.ceil(volume / rate / step_s)) if rate else 1
        seconds = min(steps * step_s, max(limit_s, step_s))
        return StepCost(seconds, self._written(geometry, writes, seconds))

    def measurement(self, geometry: Geometry, workload: Workload) -> tuple[StepCost, StepCost]:
        """All repeats, none of them tried again; of a sequential protocol until its first look, and to its last."""
        looks, repeats = self.protocol.sequential, self.protocol.repeats

        def lasting(window_s: float) -> StepCost:
            each_s = self.protocol.ramp_s + window_s
            return StepCost(repeats * (each_s + OVERHEAD_S), self._written(geometry, workload, repeats * each_s))

        window_s = self.protocol.window_of(tail=workload in self.tails)
        return lasting(window_s), lasting(looks.limit_s if looks else window_s)

    def saturation(self, geometry: Geometry, workload: Workload) -> StepCost:
        """To the end of the volume at the published rate, which a fresh drive exceeds; else to that of the time."""
        rule = self.protocol.saturation
        rate, volume = self.host_bytes_per_s(geometry, workload), rule.capacities * self._capacity(geometry)
        seconds = min(rule.limit_s, volume / rate) if rate else rule.limit_s
        written = min(volume, rate * seconds) if rate else volume
        return StepCost(seconds + OVERHEAD_S, written * _copies(geometry, workload))

    def loop(self, geometry: Geometry, loop: Loop) -> tuple[StepCost, StepCost]:
        """At least one window of the steady-state rule, and at most what the protocol allows."""
        rule = self.protocol.loop
        seconds = len(loop.workloads) * (rule.cell_s + OVERHEAD_S)
        once = StepCost(seconds, sum(self._written(geometry, each, rule.cell_s) for each in loop.workloads))
        least = min(self.protocol.steady.window, rule.max_rounds)
        return once.times(least), once.times(rule.max_rounds)

    def rebuild(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Each replaced member is written once, and all are read once more to check them."""
        rule = self.protocol.rebuild
        rate = min(self._stream, rule.max_bytes_per_s or math.inf)
        seconds = min(self.drive_bytes / rate, rule.limit_s)
        written = self._written(geometry, workload, seconds) + geometry.missing * self.drive_bytes
        return StepCost(seconds + self.drive_bytes / self._stream + OVERHEAD_S, written)

    def lives(self, geometry: Geometry) -> StepCost:
        """Its whole limit; members are rebuilt for about a tenth of it."""
        seconds = self.protocol.integrity.limit_s
        return StepCost(seconds, 0.1 * seconds * self._stream)

    def host_bytes_per_s(self, geometry: Geometry, workload: Workload) -> float | None:
        """Bytes per second of reads and writes, by the data sheet; None if it does not say."""
        drives = geometry.width if geometry.is_side_by_side else 1
        if throughput := self.spec.published(Claim.THROUGHPUT, geometry, workload):
            return throughput.value * drives
        iops = self.spec.published(Claim.STEADY_IOPS, geometry, workload)
        expected = iops.value if iops else self.spec.expected_iops(geometry, workload)
        if expected is not None:
            return expected * workload.block_bytes * drives
        if not workload.is_random and not workload.reads and self.spec.sequential_write_bytes_per_s:
            return float(self.spec.sequential_write_bytes_per_s * geometry.data_drives)
        return None

    @property
    def searched(self) -> int:
        """Workloads that a search has time for, if the drives' time is what ends it."""
        rule, probing = self.protocol.explore, spaces.probing(self.protocol)
        return min(rule.workloads, int(rule.budget_s / (spaces.shortest_s(probing) + OVERHEAD_S)))

    def search(self, geometry: Geometry) -> StepCost:
        """Its whole budget. Of its I/Os half are writes on average, and hardly faster than sequential ones."""
        seconds = self.protocol.explore.budget_s
        return StepCost(seconds, 0.5 * seconds * self._stream * geometry.width)

    @property
    def _stream(self) -> float:
        return self.spec.sequential_write_bytes_per_s or FILL_BYTES_PER_S

    def _capacity(self, geometry: Geometry) -> float:
        return self.drive_bytes * geometry.data_drives

    def _written(self, geometry: Geometry, workload: Workload, seconds: float) -> float:
        """Bytes the members take, if the array does what the data sheet says; 0 where that is not published."""
        rate = self.host_bytes_per_s(geometry, workload) if workload.writes else None
        return (rate or 0.0) * (1 - workload.read_fraction) * seconds * _copies(geometry, workload)


def _copies(geometry: Geometry, workload: Workload) -> float:
    """Bytes written to members for each that the host writes."""
    return costs(geometry).writes if workload.is_random else geometry.width / geometry.data_drives
