"""Forecasts the cost of a plan by arithmetic: time, bytes written and array builds.

    time = cells × (cell + ramp + overhead) + visits × (assembly + refresh) + volume ÷ rate

A forecast is a range. The least is what the plan takes if the first look, after two visits, decides
every point, and conditioning ends with the least volume; the most is what the protocol allows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.plugin.plan.step_prices import FREE, Prices, StepPrice
from pytest_ssdqual.qual.progress_events import array_of
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import AS_FOUND, VisitRule
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.terminal.plan import PlannedArray, PrintedPlan
from pytest_ssdqual.rig.campaign.campaign_plan import (
    CampaignPlan,
    CampaignStep,
    Preparation,
    StepKind,
)

#: What flash maps at a time at least, and at most in any drive sold. Drives that map 4 KiB prefer writes of 128 and
#: 256 KiB, too (PM9D3a, 7450), so what they prefer shows no unit.
PAGE_BYTES, LARGEST_UNIT_BYTES = 4096, 65536


def predict(
    steps: Sequence[CampaignStep],
    protocol: Protocol,
    spec: Spec,
    drives: int,
    drive_bytes: int,
    tails: Container[Workload] = frozenset(),
) -> PrintedPlan:
    """Return the plan with its costs, in the order of execution.

    ``tails``: the workloads with tests of percentiles.
    """
    prices = Prices(protocol, spec, drive_bytes, tails)
    priced = PricedPlan.of(CampaignPlan.of(steps, protocol), prices)
    visits = protocol.visits if priced.has_visits else None
    return PrintedPlan(
        tuple(priced.rows.values()),
        drives=drives,
        protocol=protocol.name,
        acceptance=protocol.acceptance,
        write_cache="" if protocol.write_cache == AS_FOUND else protocol.write_cache,
        endurance_bytes=spec.endurance_bytes,
        drive_bytes=drive_bytes,
        least_visits=visits.before_first_look if visits else 0,
        most_visits=len(visits.cells) if visits else 0,
        assumptions=tuple(prices.assumptions),
        too_short=tuple(prices.too_short.values()),
        impossible=tuple(prices.impossible.values()),
        unit=_of_unit(spec, (step.what for step in steps)),
        starts=tuple(priced.starts),
        longest_s=priced.longest_s,
    )


def _of_unit(spec: Spec, measured: Iterable[object]) -> str:
    """Return what the drives map at a time, if that is more than 4 KiB or may be."""
    unit, preferred = spec.unit_bytes or 0, spec.preferred_write_bytes or 0
    if not spec.product.indirection_unit and PAGE_BYTES < preferred <= LARGEST_UNIT_BYTES:
        return (
            f"the drives prefer writes of {preferred / 1024:g} KiB; whether they map as much at a time is unknown: if "
            "so, say it in the sheet (product.indirection_unit), and conditioning takes less"
        )
    if unit <= PAGE_BYTES:
        return ""
    sizes = [each.smallest_bytes for each in measured if isinstance(each, Workload) and each.is_random and each.writes]
    least = min(sizes, default=unit)
    own = f"; a random write of {least / 1024:g} KiB is a load of its own, which flash amplifies {unit / least:g} times"
    conditioned = f"the drives map {unit / 1024:g} KiB at a time, and random conditioning writes are as large"
    return conditioned + own * (least < unit)


@dataclass(slots=True)
class PricedPlan:
    """The prices of all steps of a plan, in its order."""

    plan: CampaignPlan
    prices: Prices
    rows: dict[str, PlannedArray] = field(default_factory=dict)
    #: Id of each array as often as it is built, the bare drives included, and its begin in seconds.
    starts: list[tuple[str, float]] = field(default_factory=list)
    #: Least time of all until now.
    seconds: float = 0.0
    #: Most time of each step with its preparations, and of each experiment by its access pattern.
    _most_s: dict[object, float] = field(default_factory=dict)
    #: The experiment of each of its steps.
    _experiments: dict[CampaignStep, tuple[CampaignStep, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: CampaignPlan, prices: Prices) -> PricedPlan:
        priced = cls(plan, prices)
        for preparations, step in plan.prepared():
            experiment = priced._experiment(step)
            for each in preparations:
                priced._charge(step, each.geometry, _name_of(each, step), prepared=prices.of(each))
            priced._charge(step, step.geometry, _name(step), measured=prices.of(step), workloads=prices.workloads(step))
            if experiment and step == experiment[-1] and prices.protocol.visits:
                priced._visit_again(experiment, prices.protocol.visits)
        return priced

    @property
    def has_visits(self) -> bool:
        return bool(self._experiments)

    @property
    def longest_s(self) -> float:
        """Most time of the longest step or experiment: as long may the test wait that asks for it."""
        return max(self._most_s.values(), default=0.0)

    def _experiment(self, step: CampaignStep) -> tuple[CampaignStep, ...]:
        if step not in self._experiments:
            experiment = self.plan.experiment(step)
            self._experiments.update(dict.fromkeys(experiment, experiment))
        return self._experiments.get(step, ())

    def _visit_again(self, experiment: Sequence[CampaignStep], rule: VisitRule) -> None:
        """Add the visits after the first one, in which the order of arrays is reversed every other time."""
        by_array: dict[Geometry, list[CampaignStep]] = {}
        for step in experiment:
            by_array.setdefault(step.geometry, []).append(step)
        for number in range(1, len(rule.cells)):
            arrays = list(by_array) if number % 2 == 0 else list(reversed(by_array))
            for geometry in arrays:
                self._later_visit(by_array[geometry], rule, number)

    def _later_visit(self, steps: Sequence[CampaignStep], rule: VisitRule, number: int) -> None:
        first, is_least = steps[0], number < rule.before_first_look
        bare = self.plan.drives or first.geometry
        prepared, measured = (
            StepPrice.of(cost, is_least=is_least) for cost in self.prices.later_visit(bare, steps, rule, number)
        )
        self._charge(first, bare, _name(first), prepared=prepared, begins=is_least)
        self._charge(first, first.geometry, _name(first), measured=measured, begins=is_least)

    def _charge(
        self, step: CampaignStep, geometry: Geometry, name: str, *,
        prepared: StepPrice = FREE, measured: StepPrice = FREE, workloads: int = 0, begins: bool = True,
    ) -> None:  # fmt: skip
        """Add prices to a row of the plan, and let their time pass; ``begins``: the array is built now."""
        array = array_of(str(geometry))
        if begins and array not in [begun for begun, _ in self.starts[-1:]]:
            self.starts.append((array, self.seconds))
        row, price = self.rows.get(name, PlannedArray(name)), prepared + measured
        self.rows[name] = PlannedArray(
            name,
            row.workloads + workloads,
            row.condition_s + prepared.least.seconds,
            row.measure_s + measured.least.seconds,
            row.bytes_written + price.least.bytes_written,
            row.most_s + price.most.seconds,
            row.most_bytes + price.most.bytes_written,
        )
        self.seconds += price.least.seconds
        together = step.pattern if self._experiment(step) else step
        self._most_s[together] = self._most_s.get(together, 0.0) + price.most.seconds


def _name_of(preparation: Preparation, step: CampaignStep) -> str:
    """Return the name of the row of a preparation: the step's, or one of its own for drives that arrays share."""
    if preparation.geometry.is_side_by_side and not step.geometry.is_side_by_side:
        return f"{preparation.geometry} conditioning"
    return _name(step)


def _name(step: CampaignStep) -> str:
    """Return the name of a step's row: the array, and the kind of work if it is not a plain measurement."""
    of_kinds = {
        StepKind.MEMBER: " as reference",
        StepKind.ALONE: " as reference",
        StepKind.SATURATION: " saturation",
        StepKind.LOOP: f" {step.what}",
        StepKind.INTEGRITY: " power cuts" if step.geometry.is_side_by_side else " integrity",
        StepKind.DISCARD: " discards",
        StepKind.ERASURE: " erasure",
        StepKind.READ_BACK: " read back",
        StepKind.SEARCH: f" search around {step.what}",
    }
    return f"{step.geometry}{of_kinds.get(step.kind, '')}"
