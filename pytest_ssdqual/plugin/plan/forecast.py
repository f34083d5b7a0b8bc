"""Forecasts the cost of a plan: time, bytes written and array builds, from the prices of its steps.

The range of a plan is that of the sum of all steps in each simulated run, not the sum of their ranges.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.plugin.plan import durations
from pytest_ssdqual.plugin.plan.durations import Durations, Earlier, Sample
from pytest_ssdqual.plugin.plan.planned_load import PlannedLoad
from pytest_ssdqual.plugin.plan.step_prices import NOTHING, Prices, StepCost, StepPrice
from pytest_ssdqual.plugin.plan.stopping import Promises
from pytest_ssdqual.plugin.plan.stored_durations import Stored
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import AS_FOUND
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan
from pytest_ssdqual.rig.campaign.campaign_plan import (
    CampaignPlan,
    CampaignStep,
    Confirm,
    Precondition,
    Preparation,
    StepKind,
    control,
)
from pytest_ssdqual.rig.measure import precondition


@dataclass(slots=True)
class CostRow:
    """Costs of the steps that are one row of the printed plan."""

    workloads: int = 0
    condition: StepCost = NOTHING
    measure: StepCost = NOTHING
    most: StepCost = NOTHING
    is_loop: bool = False

    def add(self, step: StepPrice) -> None:
        """Add a step without its preparation."""
        self.measure, self.most = self.measure + step.expected, self.most + step.most

    def printed(self, name: str) -> PlannedArray:
        return PlannedArray(
            geometry=name,
            workloads=self.workloads,
            condition_s=self.condition.seconds,
            measure_s=self.measure.seconds,
            bytes_written=int(self.condition.bytes_written + self.measure.bytes_written),
            more_s=self.most.seconds - self.measure.seconds,
            more_bytes=int(self.most.bytes_written - self.measure.bytes_written),
            is_loop=self.is_loop,
        )


def predict(
    steps: Sequence[CampaignStep],
    protocol: Protocol,
    spec: Spec,
    drives: int,
    drive_bytes: int,
    tails: Container[Workload] = frozenset(),
    promises: Promises | None = None,
    earlier: Earlier = durations.no_baseline,
    ends_s: Mapping[tuple[Geometry, Workload], float] | None = None,
    stored: Stored | None = None,
) -> PrintedPlan:
    """Return the plan with its costs, in the order of execution.

    ``tails``: the workloads with tests of percentiles. ``promises``: what sequential measurements have to decide; None:
    nothing but IOPS. ``earlier``: figures of a baseline. ``ends_s``: by when, after the ramp, a budget ends them.
    ``stored``: durations that were simulated before; new ones are added.
    """
    simulated = Durations(promises or Promises(spec, protocol, {}), earlier, {} if stored is None else stored)
    prices = Prices(protocol, spec, drive_bytes, tails, simulated, ends_s or {})
    found = PricedPlan.of(CampaignPlan.of(steps, protocol), prices)
    looks, runs = protocol.sequential, durations.summed(found.samples)
    turns = protocol.interleave if found.takes_turns else None
    return PrintedPlan(
        tuple(row.printed(name) for name, row in found.rows.items()),
        drives=drives,
        protocol=protocol.name,
        acceptance=protocol.acceptance,
        write_cache="" if protocol.write_cache == AS_FOUND else protocol.write_cache,
        endurance_bytes=spec.endurance_bytes,
        drive_bytes=drive_bytes,
        most_rounds=protocol.loop.max_rounds if any(row.is_loop for row in found.rows.values()) else 0,
        first_s=min(looks.first_s, turns.first * turns.cell_s if turns else math.inf) if looks else 0.0,
        limit_s=looks.limit_s if looks else 0.0,
        cell_s=turns.cell_s if turns else 0.0,
        low_s=durations.quantile(runs, durations.LOW),
        high_s=durations.quantile(runs, durations.HIGH),
        ninety_s=durations.quantile(runs, 0.9),
        assumptions=(*simulated.assumptions(), *prices.assumptions),
        too_short=tuple(prices.too_short.values()),
        measurements=tuple(found.measurements) if looks else (),
        longest_s=found.longest_s,
    )


@dataclass(slots=True)
class PricedPlan:
    """The prices of all steps of a plan, in its order."""

    rows: dict[str, CostRow] = field(default_factory=dict)
    #: Of each step and preparation.
    samples: list[Sample] = field(default_factory=list)
    #: Name of each measurement as a step, its expected begin and duration in seconds.
    measurements: list[tuple[str, float, float]] = field(default_factory=list)
    #: Duration of each step and preparation.
    sample_of: dict[CampaignStep | Preparation, Sample] = field(default_factory=dict)
    #: Expected duration of the longest step, with its preparation; of workloads that take turns: of all of them.
    longest_s: float = 0.0
    #: Workloads of an array take turns.
    takes_turns: bool = False
    _has_control: bool = False
    _load: PlannedLoad = field(default_factory=PlannedLoad)

    @classmethod
    def of(cls, plan: CampaignPlan, prices: Prices) -> PricedPlan:
        found = cls()
        for preparations, step in plan.prepared():
            prepared_s = 0.0
            for each in preparations:
                price = found._priced(each, prices.preparation(each))
                prepared_s += price.expected.seconds
                found._row(_name_of(each, step)).condition += price.expected
            row, begin_s = found._row(_name(step)), found._load.now_s
            loaded_s = found._load.loaded_s(step.what) if isinstance(step.what, Workload) else 0.0
            turns = (step, *plan.alike(step))
            together = len(turns) if prices.in_turn(len(turns)) else 1
            if together > 1:
                found.takes_turns = True
                found._add_control(turns, prices, row, loaded_s)
            price = found._priced(step, prices.step(step, loaded_s, len(turns)))
            found.longest_s = max(found.longest_s, prepared_s + together * price.expected.seconds)
            row.add(price)
            row.workloads += prices.workloads(step)
            row.is_loop = step.kind is StepKind.LOOP
            if step.kind is StepKind.MEASURED:
                found.measurements.append((f"{step.geometry}: {step.what}", begin_s, price.expected.seconds))
        return found

    def _row(self, name: str) -> CostRow:
        return self.rows.setdefault(name, CostRow())

    def _add_control(self, turns: Sequence[CampaignStep], prices: Prices, row: CostRow, loaded_s: float) -> None:
        """Add the measurement without a pause that the first rounds of workloads that write need."""
        chosen = control(each.what for each in turns if isinstance(each.what, Workload))
        if chosen and not self._has_control:
            self._has_control = True
            price = prices.measurement(turns[0].geometry, chosen, loaded_s)
            row.add(price)
            self.samples.append(price.sample)
            self._load.load(chosen, price.expected.seconds)

    def _priced(self, what: CampaignStep | Preparation, price: StepPrice) -> StepPrice:
        sample, seconds = price.sample, price.expected.seconds
        self.samples.append(sample)
        self.sample_of.setdefault(what, sample)
        if workload := loading(what):
            self._load.load(workload, seconds)
        else:
            self._load.passed(seconds)
        return price


def loading(what: CampaignStep | Preparation) -> Workload | None:
    """Return the load of a step or a preparation that the campaign's ledger records; None if it records none."""
    if isinstance(what, Precondition | Confirm):
        return precondition.conditioning(what.workload)
    if isinstance(what, CampaignStep) and what.kind is StepKind.MEASURED and isinstance(what.what, Workload):
        return what.what
    return None


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
