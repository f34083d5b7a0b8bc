"""Prices of the steps of a plan: time and bytes written, from the protocol and the data sheet.

A price is a range: the least that a step takes, and the most that the protocol lets it take. Nothing is simulated.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import field

from pytest_ssdqual.plugin.plan import rates
from pytest_ssdqual.qual.explore import dimensions
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry, costs, expected_iops
from pytest_ssdqual.qual.spec.claims import OF_RARE_EVENTS, TIMES_PER_HOUR, Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import Fill, PartialFill, VisitRule
from pytest_ssdqual.qual.spec.spec import DEFAULT, Spec
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.units import format_capacity, format_duration
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.trace import REPLAYS
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import (
    OF_MEMBERS,
    Assemble,
    Build,
    CampaignStep,
    Precondition,
    Preparation,
    Refresh,
    StepKind,
)
from pytest_ssdqual.rig.measure import precondition

#: Per measurement: starting fio and checking the array before and after (3.5 s in the lab under
#: emulation). Per array: purge, creation and stop.
OVERHEAD_S, BUILD_S = 3.5, 20.0
#: Rate of a search for stamps on one drive, by one process (measured: 0.6 GB/s of checksums and comparisons).
SCAN_BYTES_PER_S = 600e6
#: Of one power cut of drives: until all data are read back, and of its writes, which rarely reach the sequential rate.
POWER_CUT_S, WRITES_S = 60.0, 2.0
#: Fill rate without a data sheet value: a slow SATA SSD, bytes per second and drive.
FILL_BYTES_PER_S = 200e6


@frozen
class StepCost:
    """Time of a step, and bytes written to the members, with parity and copies."""

    seconds: float = 0.0
    bytes_written: float = 0.0

    def __add__(self, other: StepCost) -> StepCost:
        return StepCost(self.seconds + other.seconds, self.bytes_written + other.bytes_written)

    def times(self, count: float) -> StepCost:
        return StepCost(self.seconds * count, self.bytes_written * count)


NOTHING = StepCost()


@frozen
class StepPrice:
    """Least and most cost of a step."""

    least: StepCost = NOTHING
    most: StepCost = NOTHING

    @classmethod
    def fixed(cls, cost: StepCost) -> StepPrice:
        """The price of a step that does not vary."""
        return cls(cost, cost)

    @classmethod
    def of(cls, cost: StepCost, *, is_least: bool) -> StepPrice:
        """The price of what is always done, or at most."""
        return cls(cost if is_least else NOTHING, cost)

    def __add__(self, other: StepPrice) -> StepPrice:
        return StepPrice(self.least + other.least, self.most + other.most)


FREE = StepPrice()


@frozen
class Prices:
    """Costs of single steps."""

    protocol: Protocol
    spec: Spec
    drive_bytes: int
    #: Workloads whose percentiles are judged: by protocols of fixed times, their windows may be longer.
    tails: Container[Workload] = frozenset()
    #: What was assumed because nothing is published, a sentence each.
    assumptions: dict[str, None] = field(default_factory=dict)
    #: What the protocol leaves too little time for at the published rates, a sentence each.
    too_short: dict[str, str] = field(default_factory=dict)
    #: What would take days, and end in errors at the published rates, a sentence each: no such run begins.
    impossible: dict[str, str] = field(default_factory=dict)
    _known: dict[CampaignStep | Preparation, StepPrice] = field(default_factory=dict)
    _rates: dict[tuple[Geometry, Workload], float | None] = field(default_factory=dict)

    def of(self, what: CampaignStep | Preparation) -> StepPrice:
        """Return the price of a preparation, or of a step without its preparation and its later visits."""
        if what not in self._known:
            priced = self._step(what) if isinstance(what, CampaignStep) else self._preparation(what)
            self._known[what] = StepPrice.fixed(priced) if isinstance(priced, StepCost) else priced
        return self._known[what]

    def _step(self, step: CampaignStep) -> StepPrice | StepCost:
        geometry, what = step.geometry, step.what
        if isinstance(what, Rounds):
            return self.loop(geometry, what)
        if step.kind is StepKind.INTEGRITY:
            if geometry.is_side_by_side:
                cuts = StepCost(POWER_CUT_S, WRITES_S * self._stream * geometry.width)
                return cuts.times(self.protocol.integrity.power_cuts)
            return self.lives()
        if step.kind is StepKind.SEARCH:
            return self.search(geometry)
        if step.kind is StepKind.READ_BACK:
            return StepCost(self.drive_bytes / self._stream)
        if step.kind is StepKind.ERASURE:
            return StepCost(self.drive_bytes / min(self._stream, SCAN_BYTES_PER_S))
        if what is None:
            return FREE
        if step.kind is StepKind.MEASURED:
            return self.measurement(geometry, what)
        if step.kind in OF_MEMBERS:
            return self.members(step.kind, geometry, what)
        if step.kind is StepKind.SATURATION:
            return self.saturation(geometry, what)
        if step.kind is StepKind.REBUILD:
            return self.rebuild(geometry, what)
        return FREE

    def workloads(self, step: CampaignStep) -> int:
        """Return the number of workloads that a step measures."""
        if isinstance(step.what, Rounds):
            return len(step.what.measured)
        return self.searched if step.kind is StepKind.SEARCH else int(step.what is not None)

    def _preparation(self, preparation: Preparation) -> StepPrice | StepCost:
        """Return the price of a preparation; members fail at once."""
        geometry = preparation.geometry
        if isinstance(preparation, Build):
            return self.build(geometry, preparation.fill)
        if isinstance(preparation, Precondition):
            return self.precondition(geometry, preparation.workload)
        if isinstance(preparation, Assemble):
            return StepCost(0.0 if geometry.is_side_by_side else BUILD_S)
        if isinstance(preparation, Refresh):
            return self.refresh(geometry, preparation.workload)
        return FREE

    def build(self, geometry: Geometry, fill: Fill) -> StepCost:
        """Return the cost of purge, creation and sequential fills."""
        share = fill.region_percent / 100 if isinstance(fill, PartialFill) else 1.0
        per_drive = fill.passes * self.drive_bytes * share
        return StepCost(BUILD_S + per_drive / self._stream, per_drive * geometry.width)

    def precondition(self, geometry: Geometry, workload: Workload) -> StepPrice:
        """Return the price of conditioning for the pattern of ``workload``.

        At least the steps that write the protocol's volume, at most those until conditioning is given up.
        """
        protocol = self.protocol
        if not protocol.precondition.step_s:
            return FREE
        size_bytes = self.drive_bytes if geometry.is_side_by_side else self._capacity(geometry)
        limit_s = max(protocol.precondition.limit_of(size_bytes), protocol.precondition.step_s)
        writes = precondition.conditioning(workload, self.spec.unit_bytes)
        capacity, rate = self._capacity(geometry), self._rate_of_conditioning(geometry, writes)
        least_capacities = precondition.least_capacities(protocol.precondition.capacities, writes)
        least_s = self._steps_s(least_capacities * capacity / rate)
        most_s = limit_s
        if limit_capacities := protocol.precondition.limit_capacities:
            most_capacities = max(limit_capacities, least_capacities)
            most_s = min(limit_s, self._steps_s(most_capacities * capacity / rate))
        if least_s > limit_s:
            self._note_short_conditioning(geometry, writes, least_s, limit_s)
        assumed_per_s = 0.0 if math.isinf(rate) or not geometry.is_side_by_side else rate
        per_s = self.written(geometry, writes, 1.0) or assumed_per_s
        return StepPrice(*(StepCost(each_s, per_s * each_s) for each_s in (min(least_s, limit_s), most_s)))

    def _steps_s(self, seconds: float) -> float:
        """Return the time of the whole steps of conditioning, one at least, that take these seconds."""
        step_s = self.protocol.precondition.step_s
        return step_s * max(1, math.ceil(seconds / step_s - 1e-9))

    def _rate_of_conditioning(self, geometry: Geometry, writes: Workload) -> float:
        """Return bytes of the host per second."""
        if rate := self.host_bytes_per_s(geometry, writes):
            return rate
        if self.protocol.precondition.capacities:
            return self._assumed_bytes_per_s(geometry, writes)
        return math.inf

    def _note_short_conditioning(self, geometry: Geometry, writes: Workload, least_s: float, limit_s: float) -> None:
        takes, allowed = format_duration(least_s), format_duration(limit_s)
        notes = self.impossible if self.host_bytes_per_s(geometry, writes) else self.too_short
        notes[f"precondition {writes}"] = (
            f"conditioning with {writes} is expected to end in errors: {self.protocol.precondition.capacities:g} × the "
            f"capacity of {geometry} takes {takes} and the protocol allows {allowed}; raise precondition.limit or "
            "lower precondition.capacities"
        )

    def refresh(self, bare: Geometry, workload: Workload) -> StepCost:
        """Return the cost of the writes to all bare drives before an array is assembled of them.

        Drives that had lost their rate take longer; how many do is unknown before.
        """
        seconds = self.protocol.visits.refresh_s if self.protocol.visits else 0.0
        if not seconds:
            return NOTHING
        writes = precondition.conditioning(workload, self.spec.unit_bytes)
        return StepCost(seconds + OVERHEAD_S, self.written(bare, writes, seconds))

    def measurement(self, geometry: Geometry, workload: Workload) -> StepPrice:
        """Return the price of a measurement: the cells of its first visit, or all repeats of its window.

        A window that is not steady is measured again, as often as the protocol allows.
        """
        protocol = self.protocol
        if replay := workload.replay:
            written = replay.bytes_written * _targets(geometry) * _copies(geometry, workload)
            return StepPrice.fixed(StepCost(replay.due_s + OVERHEAD_S, written).times(REPLAYS))
        if protocol.visits and not workload.burst_s:
            return StepPrice.fixed(self._cells(geometry, workload, protocol.visits, 0))
        window_s = protocol.window_of(tail=workload in self.tails)
        all_repeats = self._processes(geometry, workload, protocol.measure.ramp_s + window_s, protocol.measure.repeats)
        return StepPrice(all_repeats, all_repeats.times(protocol.measure.attempts))

    def _cells(self, geometry: Geometry, workload: Workload, rule: VisitRule, number: int) -> StepCost:
        """Return the cost of the cells of visit ``number``."""
        return self._processes(geometry, workload, rule.ramp_s + rule.cell_s, rule.cells[number])

    def later_visit(
        self, bare: Geometry, steps: Sequence[CampaignStep], rule: VisitRule, number: int
    ) -> tuple[StepCost, StepCost]:
        """Return the costs of visit ``number``, counted from 0, of the array of ``steps``: preparation and cells."""
        geometry, workloads = steps[0].geometry, [each.what for each in steps if isinstance(each.what, Workload)]
        prepared = self.of(Assemble(geometry)).least
        if self.protocol.conditions_drives:
            prepared += self.of(Refresh(bare, workloads[0])).least
        measured = NOTHING
        for workload in workloads:
            measured += self._cells(geometry, workload, rule, number)
        return prepared, measured

    def _processes(self, geometry: Geometry, workload: Workload, seconds: float, count: int) -> StepCost:
        """Return the cost of so many processes of fio, each so long."""
        return StepCost(count * (seconds + OVERHEAD_S), self.written(geometry, workload, count * seconds))

    def members(self, kind: StepKind, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of one workload on the bare drives: side by side, or on one after another."""
        rule = self.protocol.members
        processes = geometry.width if kind is StepKind.ALONE else 1
        return self._processes(geometry, workload, rule.ramp_s + rule.window_s, processes)

    def saturation(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of writing the whole volume at the published rate (a fresh drive is faster), or of the time
        limit.
        """
        rule = self.protocol.saturation
        rate, volume = self.host_bytes_per_s(geometry, workload), rule.capacities * self._capacity(geometry)
        seconds = min(rule.limit_s, volume / rate) if rate else rule.limit_s
        written = min(volume, rate * seconds) if rate else volume
        return StepCost(seconds + OVERHEAD_S, written * _copies(geometry, workload))

    def loop(self, geometry: Geometry, loop: Rounds) -> StepPrice:
        """Return the price of rounds until the tracked figures are steady, or until the protocol's last round."""
        rule, window = self.protocol.loop, self.protocol.steady.window
        self._note_short_cells(geometry, loop)
        once = NOTHING
        for workload, cells in loop.processes:
            once += self._processes(geometry, workload, cells * rule.cell_s, 1)
        once_after = self._stimuli(geometry, loop)
        if not loop.tracked:
            return StepPrice.fixed(once_after)
        most = max(rule.max_rounds, window)
        return StepPrice(once.times(min(window, most)) + once_after, once.times(most) + once_after)

    def _stimuli(self, geometry: Geometry, loop: Rounds) -> StepCost:
        """Return the cost of what follows the rounds."""
        cost, cell_s = NOTHING, self.protocol.loop.cell_s
        for each in loop.after:
            seconds, processes = each.cells * cell_s, each.processes(cell_s)
            written = self.written(geometry, each.workload, seconds * each.workload.busy_share)
            cost += StepCost(seconds + processes * OVERHEAD_S, written)
        return cost

    def _note_short_cells(self, geometry: Geometry, loop: Rounds) -> None:
        """Note it if a cell of the loop is expected to have fewer I/Os than a round needs: it would be an error."""
        cell_s, bound = self.protocol.loop.cell_s, rates.most_bytes_per_s(self.spec)
        of_a_target = [
            (rate / each.block_bytes / _targets(geometry), each)
            for each in loop.workloads
            if (rate := self.host_bytes_per_s(geometry, each) or (bound or 0.0) * geometry.width)
        ]
        slowest, workload = min(of_a_target, key=lambda each: each[0], default=(math.inf, None))
        if slowest * cell_s < checks.FEWEST_IOS_A_ROUND:
            self.too_short[loop.name] = (
                f"{loop} will end in errors: in a cell of {cell_s:g} s {workload} is expected to do "
                f"{slowest * cell_s:,.0f} I/Os, {checks.FEWEST_IOS_A_ROUND} are needed; raise loop.cell of the "
                f"protocol to {math.ceil(checks.FEWEST_IOS_A_ROUND / slowest)} s"
            )

    def rebuild(self, geometry: Geometry, workload: Workload) -> StepPrice:
        """Return the price of a rebuild: each replaced member is written once, at least at md's limit and at most until
        it is given up; then all members are read once to check them.
        """
        copy_s = self.drive_bytes / min(self._stream, self.protocol.striping.rebuild_bytes_per_s)
        allowed_s = self.protocol.rebuild.allowed_s(copy_s)
        if copy_s > allowed_s:
            self.too_short["rebuild"] = (
                f"rebuilds will end in errors: {format_capacity(self.drive_bytes)} of a member take "
                f"{format_duration(copy_s)} and the protocol allows {format_duration(allowed_s)}; "
                "raise rebuild.max_rate or rebuild.limit"
            )
        seconds = min(copy_s, allowed_s), allowed_s
        written = (self.written(geometry, workload, each_s) + geometry.missing * self.drive_bytes for each_s in seconds)
        return StepPrice(*map(StepCost, (each_s + copy_s + OVERHEAD_S for each_s in seconds), written))

    def lives(self) -> StepCost:
        """Return the cost of an integrity test: its whole time limit, a tenth of which rebuilds members."""
        seconds = self.protocol.integrity.limit_s
        return StepCost(seconds, 0.1 * seconds * self._stream)

    @property
    def searched(self) -> int:
        """Number of workloads that fit into the time budget of a search."""
        rule, probing = self.protocol.explore, dimensions.probing(self.protocol)
        return min(rule.workloads, int(rule.budget_s / (dimensions.probe_s(probing) + OVERHEAD_S)))

    def search(self, geometry: Geometry) -> StepCost:
        """Return the cost of a workload search: its whole budget; half of its I/Os are writes, at most at the
        sequential rate.
        """
        seconds = self.protocol.explore.budget_s
        self._note_short_probes(geometry)
        return StepCost(seconds, 0.5 * seconds * self._stream * geometry.width)

    def _note_short_probes(self, geometry: Geometry) -> None:
        """Note the promises about rare events that a probe is too short to pass."""
        probe_s = dimensions.probing(self.protocol).measure.window_s
        for each in self.spec.promises if self.spec.key != DEFAULT else ():
            if each.claim not in OF_RARE_EVENTS or each.level not in (None, geometry.level):
                continue
            needed_s = latency.shortest_s(each.times_per_hour or TIMES_PER_HOUR, self.protocol.verdict.confidence)
            if needed_s > probe_s:
                needed = format_duration(math.ceil(needed_s))
                self.too_short[f"search {each.claim}"] = (
                    f"searches may break but never pass {each.claim.label}: that takes {needed} of observation and a "
                    f"probe has {format_duration(probe_s)}; raise explore.measurement of the protocol, or promise "
                    "something else about the same workloads"
                )

    def host_bytes_per_s(self, geometry: Geometry, workload: Workload) -> float | None:
        """Return bytes per second of reads and writes, by the data sheet, at the nearest depth that it has; None if it
        has no value.
        """
        key = geometry, workload
        if key not in self._rates:
            self._rates[key] = self._published_bytes_per_s(geometry, workload)
        return self._rates[key]

    def _published_bytes_per_s(self, geometry: Geometry, workload: Workload) -> float | None:
        drives = geometry.width if geometry.is_side_by_side else 1
        if throughput := self.spec.published(Claim.THROUGHPUT, geometry, workload):
            return throughput.value * drives
        iops = self.spec.published(Claim.STEADY_IOPS, geometry, workload)
        expected = iops.value if iops else self.spec.expected_iops(geometry, workload)
        if expected is not None:
            return expected * workload.block_bytes * drives
        if not workload.is_random and not workload.reads and self.spec.product.sequential_write_bytes_per_s:
            return float(self.spec.product.sequential_write_bytes_per_s * geometry.data_drives)
        near = rates.nearest(self.spec, geometry, workload)
        return near * workload.block_bytes * drives if near and workload.block_bytes else None

    def _assumed_bytes_per_s(self, geometry: Geometry, writes: Workload) -> float:
        """Return bytes per second of conditioning writes if the sheet has no rate at all."""
        if not writes.is_random:
            return self._stream * geometry.data_drives
        iops = rates.assumed_writes(self.spec)
        self.assumptions[f"{iops:,.0f} random writes per second of a drive, for conditioning: none is published"] = None
        law = expected_iops(geometry, 0.0, 10 * iops, iops) if not geometry.is_side_by_side else iops * geometry.width
        return law * 4096

    @property
    def _stream(self) -> float:
        return self.spec.product.sequential_write_bytes_per_s or FILL_BYTES_PER_S

    def _capacity(self, geometry: Geometry) -> float:
        return self.drive_bytes * geometry.data_drives

    def written(self, geometry: Geometry, workload: Workload, seconds: float) -> float:
        """Return bytes written to the members at the published rate; 0 without a published rate."""
        workload = workload.writer
        rate = self.host_bytes_per_s(geometry, workload) if workload.writes else None
        return (rate or 0.0) * (1 - workload.read_fraction) * seconds * _copies(geometry, workload)


def _copies(geometry: Geometry, workload: Workload) -> float:
    """Return bytes written to members for each byte that the host writes."""
    return float(costs(geometry).writes_for_write) if workload.is_random else geometry.width / geometry.data_drives


def _targets(geometry: Geometry) -> int:
    """Return the number of series that have to be steady: of each drive side by side, or of the array."""
    return geometry.width if geometry.is_side_by_side else 1
