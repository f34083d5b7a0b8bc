"""Forecasts the cost of a plan: time, bytes written and array builds, from the protocol and the data sheet."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.explore import dimensions
from pytest_ssdqual.qual.raid.geometry import Geometry, costs
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan
from pytest_ssdqual.rig.campaign.campaign_plan import (
    OF_MEMBERS,
    Assemble,
    Build,
    CampaignPlan,
    CampaignStep,
    Confirm,
    Precondition,
    Preparation,
    StepKind,
)
from pytest_ssdqual.rig.measure import fixed_time

#: Per measurement: starting fio and checking the array before and after (3.5 s in the lab under emulation). Per array:
#: purge, creation and stop.
OVERHEAD_S, BUILD_S = 3.5, 20.0
#: Fill rate without a data sheet value: a slow SATA SSD, bytes per second and drive.
FILL_BYTES_PER_S = 200e6


@dataclass(frozen=True, slots=True)
class StepCost:
    """Time of a step, and bytes written to the members, with parity and copies."""

    seconds: float = 0.0
    bytes_written: float = 0.0

    def __add__(self, other: StepCost) -> StepCost:
        return StepCost(self.seconds + other.seconds, self.bytes_written + other.bytes_written)

    def times(self, count: int) -> StepCost:
        return StepCost(self.seconds * count, self.bytes_written * count)


@dataclass(slots=True)
class CostRow:
    """Costs of the steps that are one row of the printed plan."""

    workloads: int = 0
    condition: StepCost = StepCost()
    #: Without a reason to go on longer, and at most.
    least: StepCost = StepCost()
    most: StepCost = StepCost()
    is_loop: bool = False

    def printed(self, name: str) -> PlannedArray:
        return PlannedArray(
            geometry=name,
            workloads=self.workloads,
            condition_s=self.condition.seconds,
            measure_s=self.least.seconds,
            bytes_written=int(self.condition.bytes_written + self.least.bytes_written),
            more_s=self.most.seconds - self.least.seconds,
            more_bytes=int(self.most.bytes_written - self.least.bytes_written),
            is_loop=self.is_loop,
        )


def predict(
    steps: Sequence[CampaignStep],
    protocol: Protocol,
    spec: Spec,
    drives: int,
    drive_bytes: int,
    tails: Container[Workload] = frozenset(),
) -> PrintedPlan:
    """Return the plan with its costs, in the order of execution; ``tails``: the workloads with tests of percentiles."""
    prices = Prices(protocol, spec, drive_bytes, tails)
    rows: dict[str, CostRow] = {}
    for preparations, step in CampaignPlan.of(steps, protocol).prepared():
        for each in preparations:
            rows.setdefault(_name_of(each, step), CostRow()).condition += prices.preparation(each)
        row = rows.setdefault(_name(step), CostRow())
        least, most = prices.step(step)
        row.least, row.most = row.least + least, row.most + most
        row.workloads += prices.workloads(step)
        row.is_loop = step.kind is StepKind.LOOP
    looks = protocol.sequential
    return PrintedPlan(
        tuple(row.printed(name) for name, row in rows.items()),
        drives=drives,
        protocol=protocol.name,
        acceptance=protocol.acceptance,
        endurance_bytes=spec.endurance_bytes,
        most_rounds=protocol.loop.max_rounds if any(row.is_loop for row in rows.values()) else 0,
        first_s=looks.first_s if looks else 0.0,
        limit_s=looks.limit_s if looks else 0.0,
    )


def _name_of(preparation: Preparation, step: CampaignStep) -> str:
    """Return the name of the row of a preparation: the step's, or one of its own for drives that arrays share."""
    if preparation.geometry.is_side_by_side and not step.geometry.is_side_by_side:
        return f"{preparation.geometry} conditioning"
    return _name(step)


def _name(step: CampaignStep) -> str:
    """Return the name of a step's row: the array, and the kind of work if it is not a plain measurement."""
    of_kinds = {
        StepKind.MEMBER: " for prediction",
        StepKind.ALONE: " for prediction",
        StepKind.SATURATION: " saturation",
        StepKind.LOOP: f" {step.what}",
        StepKind.INTEGRITY: " integrity",
        StepKind.SEARCH: f" search around {step.what}",
    }
    return f"{step.geometry}{of_kinds.get(step.kind, '')}"


@dataclass(frozen=True, slots=True)
class Prices:
    """Costs of single steps."""

    protocol: Protocol
    spec: Spec
    drive_bytes: int
    tails: Container[Workload] = frozenset()

    def step(self, step: CampaignStep) -> tuple[StepCost, StepCost]:
        """Return the least and the most cost of a step without its preparation."""
        geometry, what = step.geometry, step.what
        if isinstance(what, Rounds):
            return self.loop(geometry, what)
        if step.kind is StepKind.MEASURED and what:
            return self.measurement(geometry, what)
        if step.kind in OF_MEMBERS and what:
            return self.members(step.kind, geometry, what)
        cost = StepCost()
        if step.kind is StepKind.SATURATION and what:
            cost = self.saturation(geometry, what)
        elif step.kind is StepKind.REBUILD and what:
            cost = self.rebuild(geometry, what)
        elif step.kind is StepKind.SEARCH:
            cost = self.search(geometry)
        elif step.kind is StepKind.INTEGRITY:
            cost = self.lives(geometry)
        return cost, cost

    def workloads(self, step: CampaignStep) -> int:
        """Return the number of workloads that a step measures."""
        if isinstance(step.what, Rounds):
            return len(step.what.workloads)
        return self.searched if step.kind is StepKind.SEARCH else int(step.what is not None)

    def preparation(self, preparation: Preparation) -> StepCost:
        """Return the cost of a preparation; members fail at once."""
        if isinstance(preparation, Build):
            return self.build(preparation.geometry, preparation.fill.passes)
        if isinstance(preparation, Precondition):
            return self.precondition(preparation.geometry, preparation.workload)
        if isinstance(preparation, Assemble):
            return StepCost() if preparation.geometry.is_side_by_side else StepCost(BUILD_S)
        if isinstance(preparation, Confirm):
            return self.confirmation(preparation.geometry, preparation.workload)
        return StepCost()

    def build(self, geometry: Geometry, passes: int) -> StepCost:
        """Return the cost of purge, creation and sequential fills."""
        return StepCost(BUILD_S + passes * self.drive_bytes / self._stream, passes * self.drive_bytes * geometry.width)

    def precondition(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of conditioning for the class of ``workload``: the steps that write the protocol's volume."""
        step_s, limit_s = self.protocol.precondition_s, self.protocol.precondition_limit_s
        if not step_s:
            return StepCost()
        writes = fixed_time.conditioning(workload)
        rate = self.host_bytes_per_s(geometry, writes)
        volume = self.protocol.precondition_capacities * self._capacity(geometry)
        steps = max(1, math.ceil(volume / rate / step_s)) if rate else 1
        seconds = min(steps * step_s, max(limit_s, step_s))
        return StepCost(seconds, self._written(geometry, writes, seconds))

    def confirmation(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of the window that confirms the state of an assembled array."""
        if not self.protocol.precondition_s:
            return StepCost()
        seconds = self.protocol.ramp_s + self.protocol.window_s
        return StepCost(seconds + OVERHEAD_S, self._written(geometry, fixed_time.conditioning(workload), seconds))

    def measurement(self, geometry: Geometry, workload: Workload) -> tuple[StepCost, StepCost]:
        """Return the least and the most cost of all repeats without retries; a group-sequential protocol has both."""
        looks, repeats = self.protocol.sequential, self.protocol.repeats

        def lasting(window_s: float) -> StepCost:
            each_s = self.protocol.ramp_s + window_s
            return StepCost(repeats * (each_s + OVERHEAD_S), self._written(geometry, workload, repeats * each_s))

        window_s = self.protocol.window_of(tail=workload in self.tails)
        return lasting(window_s), lasting(looks.limit_s if looks else window_s)

    def members(self, kind: StepKind, geometry: Geometry, workload: Workload) -> tuple[StepCost, StepCost]:
        """Return the cost of one workload on the bare drives: side by side, or on one after another."""
        rule = self.protocol.members
        each_s, times = rule.ramp_s + rule.window_s, geometry.width if kind is StepKind.ALONE else 1
        cost = StepCost(times * (each_s + OVERHEAD_S), self._written(geometry, workload, each_s))
        return cost, cost

    def saturation(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of writing the whole volume at the published rate (a fresh drive is faster), or of the time
        limit.
        """
        rule = self.protocol.saturation
        rate, volume = self.host_bytes_per_s(geometry, workload), rule.capacities * self._capacity(geometry)
        seconds = min(rule.limit_s, volume / rate) if rate else rule.limit_s
        written = min(volume, rate * seconds) if rate else volume
        return StepCost(seconds + OVERHEAD_S, written * _copies(geometry, workload))

    def loop(self, geometry: Geometry, loop: Rounds) -> tuple[StepCost, StepCost]:
        """Return the least and the most cost: one window of the steady-state rule, and all rounds that the protocol
        allows.
        """
        rule = self.protocol.loop
        seconds = len(loop.workloads) * (rule.cell_s + OVERHEAD_S)
        once = StepCost(seconds, sum(self._written(geometry, each, rule.cell_s) for each in loop.workloads))
        least = min(self.protocol.steady.window, rule.max_rounds)
        return once.times(least), once.times(rule.max_rounds)

    def rebuild(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of a rebuild: each replaced member is written once, then all data are read once to check
        them.
        """
        rule = self.protocol.rebuild
        rate = min(self._stream, rule.max_bytes_per_s or math.inf)
        seconds = min(self.drive_bytes / rate, rule.limit_s)
        written = self._written(geometry, workload, seconds) + geometry.missing * self.drive_bytes
        return StepCost(seconds + self.drive_bytes / self._stream + OVERHEAD_S, written)

    def lives(self, geometry: Geometry) -> StepCost:
        """Return the cost of an integrity test: its whole time limit, a tenth of which rebuilds members."""
        seconds = self.protocol.integrity.limit_s
        return StepCost(seconds, 0.1 * seconds * self._stream)

    def host_bytes_per_s(self, geometry: Geometry, workload: Workload) -> float | None:
        """Return bytes per second of reads and writes, by the data sheet; None if it has no value."""
        drives = geometry.width if geometry.is_side_by_side else 1
        if throughput := self.spec.published(Claim.THROUGHPUT, geometry, workload):
            return throughput.value * drives
        iops = self.spec.published(Claim.STEADY_IOPS, geometry, workload)
        expected = iops.value if iops else self.spec.expected_iops(geometry, workload)
        if expected is not None:
            return expected * workload.block_bytes * drives
        if not workload.is_random and not workload.reads and self.spec.product.sequential_write_bytes_per_s:
            return float(self.spec.product.sequential_write_bytes_per_s * geometry.data_drives)
        return None

    @property
    def searched(self) -> int:
        """Number of workloads that fit into the time budget of a search."""
        rule, probing = self.protocol.explore, dimensions.probing(self.protocol)
        return min(rule.workloads, int(rule.budget_s / (dimensions.shortest_s(probing) + OVERHEAD_S)))

    def search(self, geometry: Geometry) -> StepCost:
        """Return the cost of a workload search: its whole budget; half of its I/Os are writes, at most at the
        sequential rate.
        """
        seconds = self.protocol.explore.budget_s
        return StepCost(seconds, 0.5 * seconds * self._stream * geometry.width)

    @property
    def _stream(self) -> float:
        return self.spec.product.sequential_write_bytes_per_s or FILL_BYTES_PER_S

    def _capacity(self, geometry: Geometry) -> float:
        return self.drive_bytes * geometry.data_drives

    def _written(self, geometry: Geometry, workload: Workload, seconds: float) -> float:
        """Return bytes written to the members at the published rate; 0 without a published rate."""
        rate = self.host_bytes_per_s(geometry, workload) if workload.writes else None
        return (rate or 0.0) * (1 - workload.read_fraction) * seconds * _copies(geometry, workload)


def _copies(geometry: Geometry, workload: Workload) -> float:
    """Return bytes written to members for each byte that the host writes."""
    return costs(geometry).writes if workload.is_random else geometry.width / geometry.data_drives
