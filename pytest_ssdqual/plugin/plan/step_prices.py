"""Prices of the steps of a plan: time and bytes written, from the protocol and the data sheet.

Fixed times are the protocol's. What ends when something is known or steady is simulated (``durations``).
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from pytest_ssdqual.plugin.plan import durations, rates
from pytest_ssdqual.plugin.plan.durations import Durations, Sample
from pytest_ssdqual.plugin.plan.stopping import Promises
from pytest_ssdqual.qual.explore import dimensions
from pytest_ssdqual.qual.forecast.duration import SteadySteps, Turns
from pytest_ssdqual.qual.raid.geometry import Geometry, costs, expected_iops
from pytest_ssdqual.qual.spec.claims import OF_RARE_EVENTS, TIMES_PER_HOUR, Claim
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import DEFAULT, Spec
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.units import format_capacity, format_duration
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import (
    OF_MEMBERS,
    Assemble,
    Build,
    CampaignStep,
    Confirm,
    Precondition,
    Preparation,
    StepKind,
)
from pytest_ssdqual.rig.md import resync
from pytest_ssdqual.rig.measure import precondition

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


NOTHING = StepCost()


@dataclass(frozen=True, slots=True)
class StepPrice:
    """Cost of a step, and how it varies."""

    expected: StepCost = NOTHING
    #: At most; the expected cost unless the step goes on until something is known or steady.
    most: StepCost = NOTHING
    #: Duration in each simulated run; empty if it does not vary.
    seconds: Sample = ()

    @classmethod
    def fixed(cls, cost: StepCost) -> StepPrice:
        """The price of a step that does not vary."""
        return cls(cost, cost)

    @classmethod
    def varying(cls, least: StepCost, beyond_s: Sample, bytes_per_s: float, most: StepCost | None = None) -> StepPrice:
        """The price of a step that takes ``beyond_s`` longer than ``least``, and writes so much in that time."""
        mean_s = fmean(beyond_s)
        expected = least + StepCost(mean_s, mean_s * bytes_per_s)
        is_fixed = len(set(beyond_s)) == 1
        seconds = () if is_fixed else tuple(least.seconds + each for each in beyond_s)
        return cls(expected, most or expected, seconds)

    @property
    def sample(self) -> Sample:
        """Duration in each simulated run."""
        return self.seconds or (self.expected.seconds,) * durations.RUNS


@dataclass(frozen=True, slots=True)
class Prices:
    """Costs of single steps."""

    protocol: Protocol
    spec: Spec
    drive_bytes: int
    tails: Container[Workload] = frozenset()
    durations: Durations | None = None
    #: By when, after the ramp, a budget ends sequential measurements.
    ends_s: Mapping[tuple[Geometry, Workload], float] = field(default_factory=dict)
    #: What was assumed because nothing is published, a sentence each.
    assumptions: dict[str, None] = field(default_factory=dict)
    #: What the protocol leaves too little time for at the published rates, a sentence each.
    too_short: dict[str, str] = field(default_factory=dict)

    def step(self, step: CampaignStep, loaded_s: float = 0.0, workloads: int = 1) -> StepPrice:
        """Return the price of a step without its preparation.

        Its drives were so long under load of its class, and so many workloads may take turns with it, itself included.
        """
        geometry, what = step.geometry, step.what
        if isinstance(what, Rounds):
            return self.loop(geometry, what)
        if step.kind is StepKind.MEASURED and what:
            if self.in_turn(workloads):
                return self.in_rounds(geometry, what, workloads)
            return self.measurement(geometry, what, loaded_s)
        cost = StepCost()
        if step.kind in OF_MEMBERS and what:
            cost = self.members(step.kind, geometry, what)
        elif step.kind is StepKind.SATURATION and what:
            cost = self.saturation(geometry, what)
        elif step.kind is StepKind.REBUILD and what:
            cost = self.rebuild(geometry, what)
        elif step.kind is StepKind.SEARCH:
            cost = self.search(geometry)
        elif step.kind is StepKind.INTEGRITY:
            cost = self.lives(geometry)
        return StepPrice.fixed(cost)

    def in_turn(self, workloads: int) -> bool:
        """Return whether so many workloads of an array take turns."""
        rule = self.protocol.interleave
        return rule is not None and workloads >= rule.workloads

    def workloads(self, step: CampaignStep) -> int:
        """Return the number of workloads that a step measures."""
        if isinstance(step.what, Rounds):
            return len(step.what.measured)
        return self.searched if step.kind is StepKind.SEARCH else int(step.what is not None)

    def preparation(self, preparation: Preparation) -> StepPrice:
        """Return the price of a preparation; members fail at once."""
        if isinstance(preparation, Build):
            return StepPrice.fixed(self.build(preparation.geometry, preparation.fill.passes))
        if isinstance(preparation, Precondition):
            return self.precondition(preparation.geometry, preparation.workload)
        if isinstance(preparation, Assemble):
            return StepPrice.fixed(StepCost(0.0 if preparation.geometry.is_side_by_side else BUILD_S))
        if isinstance(preparation, Confirm):
            return StepPrice.fixed(self.confirmation(preparation.geometry, preparation.workload))
        return StepPrice()

    def build(self, geometry: Geometry, passes: int) -> StepCost:
        """Return the cost of purge, creation and sequential fills."""
        return StepCost(BUILD_S + passes * self.drive_bytes / self._stream, passes * self.drive_bytes * geometry.width)

    def precondition(self, geometry: Geometry, workload: Workload) -> StepPrice:
        """Return the price of conditioning for the class of ``workload``: the steps that write the protocol's volume,
        and those until a settled drive is found steady.
        """
        protocol = self.protocol
        step_s, limit_s = protocol.precondition_s, protocol.precondition_limit_s
        if not step_s:
            return StepPrice()
        writes = precondition.conditioning(workload)
        rate = self.host_bytes_per_s(geometry, writes)
        volume = protocol.precondition_capacities * self._capacity(geometry)
        if volume and not rate:
            rate = self._assumed_bytes_per_s(geometry, writes)
        least = max(1, math.ceil(volume / rate / step_s)) if rate else 1
        seconds = min(least * step_s, max(limit_s, step_s))
        if least * step_s > max(limit_s, step_s):
            takes, allowed = format_duration(least * step_s), format_duration(limit_s)
            self.too_short[f"precondition {writes}"] = (
                f"conditioning with {writes} is expected to end in errors: {protocol.precondition_capacities:g} × the "
                f"capacity of {geometry} takes {takes} and the protocol allows {allowed}; raise precondition.limit or "
                "lower precondition.capacities"
            )
        most = min(durations.MOST_STEPS, max(1, math.ceil(limit_s / step_s) - least + 1))
        per_step = max(1, round(step_s / protocol.round_s))
        found = SteadySteps(protocol.steady, step_s / per_step, step_s / per_step, per_step, most, _targets(geometry))
        # The last step that the volume needs is the first that may be steady.
        fewest = math.ceil(protocol.steady.window / per_step) if least > 1 else 1
        beyond = tuple(max(0, steps - fewest) * step_s for steps in self._steps(found))
        return StepPrice.varying(
            StepCost(seconds, self.written(geometry, writes, seconds)), beyond, self.written(geometry, writes, 1.0)
        )

    def confirmation(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of the window that confirms the state of an assembled array."""
        if not self.protocol.precondition_s:
            return StepCost()
        seconds = self.protocol.ramp_s + self.protocol.window_s
        return StepCost(seconds + OVERHEAD_S, self.written(geometry, precondition.conditioning(workload), seconds))

    def measurement(self, geometry: Geometry, workload: Workload, loaded_s: float = 0.0) -> StepPrice:
        """Return the price of all repeats of a measurement: until decided, or in windows until each is steady."""
        protocol, looks, repeats = self.protocol, self.protocol.sequential, self.protocol.repeats
        per_s = self.written(geometry, workload, 1.0)

        def lasting(window_s: float) -> StepCost:
            each_s = protocol.ramp_s + window_s
            return StepCost(repeats * (each_s + OVERHEAD_S), self.written(geometry, workload, repeats * each_s))

        if looks and self.durations:
            end_s = self.ends_s.get((geometry, workload), looks.limit_s)
            beyond = tuple(
                min(each, end_s) - looks.first_s
                for each in self.durations.sequential(geometry, workload, looks, loaded_s)
            )
            return StepPrice.varying(lasting(looks.first_s), beyond, per_s, lasting(end_s))
        window_s = protocol.window_of(tail=workload in self.tails)
        rounds = protocol.steady.window
        found = SteadySteps(
            protocol.steady, window_s / rounds, window_s / rounds, rounds, protocol.attempts, _targets(geometry)
        )
        each_s = protocol.ramp_s + window_s + OVERHEAD_S
        beyond = durations.summed(
            tuple((attempts - 1) * each_s for attempts in self._steps(found)) for _ in range(repeats)
        )
        return StepPrice.varying(lasting(window_s), beyond, per_s)

    def in_rounds(self, geometry: Geometry, workload: Workload, workloads: int) -> StepPrice:
        """Return the price of a workload that takes turns with others, until it is decided.

        ValueError if nothing takes turns by the protocol.
        """
        simulated = self.durations or Durations(Promises(self.spec, self.protocol, {}))
        turns = Turns(self.protocol, simulated.promises.family, workloads, OVERHEAD_S)
        rule, every_s = turns.rule, turns.every_s
        written = self.written(geometry, workload, every_s - OVERHEAD_S)
        rounds = simulated.rounds(geometry, workload, turns)

        def lasting(count: int) -> StepCost:
            return StepCost(count * every_s, count * written)

        beyond = tuple((each - rule.first) * every_s for each in rounds)
        return StepPrice.varying(lasting(rule.first), beyond, written / every_s, lasting(rule.rounds))

    def members(self, kind: StepKind, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of one workload on the bare drives: side by side, or on one after another."""
        rule = self.protocol.members
        each_s, times = rule.ramp_s + rule.window_s, geometry.width if kind is StepKind.ALONE else 1
        return StepCost(times * (each_s + OVERHEAD_S), self.written(geometry, workload, each_s))

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
        rule, most = self.protocol.loop, max(self.protocol.loop.max_rounds, self.protocol.steady.window)
        self._note_short_cells(geometry, loop)
        lengths_s = [(workload, cells * rule.cell_s) for workload, cells in loop.processes]
        round_s = sum(each_s + OVERHEAD_S for _, each_s in lengths_s)
        once = StepCost(round_s, sum(self.written(geometry, each, each_s) for each, each_s in lengths_s))
        once_after = self._stimuli(geometry, loop)
        if not loop.tracked:
            return StepPrice.fixed(once_after)
        figures = len(loop.tracked) * _targets(geometry)
        found = SteadySteps(self.protocol.steady, rule.cell_s, round_s, 1, most, figures)
        rounds = self._steps(found)
        least = min(self.protocol.steady.window, most)
        beyond = tuple((each - least) * round_s for each in rounds)
        per_s = once.bytes_written / round_s
        return StepPrice.varying(once.times(least) + once_after, beyond, per_s, once.times(most) + once_after)

    def _stimuli(self, geometry: Geometry, loop: Rounds) -> StepCost:
        """Return the cost of what follows the rounds."""
        cost = NOTHING
        for each in loop.after:
            cell_s = self.protocol.loop.cell_s
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

    def rebuild(self, geometry: Geometry, workload: Workload) -> StepCost:
        """Return the cost of a rebuild: each replaced member is written once, then all members are read once to check
        them, both at most at md's limit.
        """
        rule = self.protocol.rebuild
        rate = min(self._stream, rule.max_bytes_per_s or resync.USUAL_MOST_BYTES_PER_S)
        if self.drive_bytes / rate > rule.limit_s:
            self.too_short["rebuild"] = (
                f"rebuilds will end in errors: {format_capacity(self.drive_bytes)} of a member take "
                f"{format_duration(self.drive_bytes / rate)} and the protocol allows {format_duration(rule.limit_s)}; "
                "raise rebuild.max_rate or rebuild.limit"
            )
        seconds = min(self.drive_bytes / rate, rule.limit_s)
        written = self.written(geometry, workload, seconds) + geometry.missing * self.drive_bytes
        return StepCost(seconds + self.drive_bytes / rate + OVERHEAD_S, written)

    def lives(self, geometry: Geometry) -> StepCost:
        """Return the cost of an integrity test: its whole time limit, a tenth of which rebuilds members."""
        seconds = self.protocol.integrity.limit_s
        return StepCost(seconds, 0.1 * seconds * self._stream)

    def host_bytes_per_s(self, geometry: Geometry, workload: Workload) -> float | None:
        """Return bytes per second of reads and writes, by the data sheet, at the nearest depth that it has; None if it
        has no value.
        """
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
        self._note_short_probes(geometry)
        return StepCost(seconds, 0.5 * seconds * self._stream * geometry.width)

    def _note_short_probes(self, geometry: Geometry) -> None:
        """Note the promises about rare events that a probe is too short to pass."""
        probing = dimensions.probing(self.protocol)
        probe_s = dimensions.longest_s(probing) - probing.ramp_s
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

    def _steps(self, asked: SteadySteps) -> tuple[int, ...]:
        return self.durations.steps(asked) if self.durations else (1,)

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
        rate = self.host_bytes_per_s(geometry, workload) if workload.writes else None
        return (rate or 0.0) * (1 - workload.read_fraction) * seconds * _copies(geometry, workload)


def _copies(geometry: Geometry, workload: Workload) -> float:
    """Return bytes written to members for each byte that the host writes."""
    return costs(geometry).writes if workload.is_random else geometry.width / geometry.data_drives


def _targets(geometry: Geometry) -> int:
    """Return the number of series that have to be steady: of each drive side by side, or of the array."""
    return geometry.width if geometry.is_side_by_side else 1
