"""Whole runs of a suite on simulated drives: the real plan, the product's stopping rule, and what it decides.

Each outcome of a measurement is one of a pool: the rule on a drive of ``drive_kinds``, with slow I/Os in clusters and
stalls of Pareto lengths. A run draws one kind of drive, and for each measurement an outcome of its kind.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import interleaved_rounds
import numpy as np
import numpy.typing as npt
import stopping_rules
from drive_kinds import Series
from interleaved_rounds import CONDITIONED_S, KINDS, LIMIT_IOPS
from suite_plans import DRIVES, Model, SuitePlan

from pytest_ssdqual.plugin.plan import forecast, step_prices, stopping
from pytest_ssdqual.plugin.plan.order import Steps
from pytest_ssdqual.plugin.plan.planned_load import PlannedLoad, counted_s
from pytest_ssdqual.plugin.plan.step_prices import Prices, StepCost
from pytest_ssdqual.plugin.plan.stopping import Promises
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.qual.stats import excursions, steady_state
from pytest_ssdqual.qual.stats.group_sequential import Question, Side
from pytest_ssdqual.qual.stats.shared_evidence import NOTHING_KNOWN, SharedEvidence
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.terminal.plan import PrintedPlan
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignPlan, CampaignStep, Precondition, Preparation, StepKind
from pytest_ssdqual.rig.measure import precondition

#: Kinds of drives behind a conditioning that reached its volume.
SETTLED = ("flat", "slowgc", "fastgc", "heavy", "drift", "wander")
LIMIT = Limit(Direction.AT_LEAST, LIMIT_IOPS, Unit.IOPS, "bench")
FAST_NS, TAIL_LIMIT_NS, SLOW_NS = 1_003_520, 10_000_000, 50_069_504
#: True share of I/Os beyond the limit of p99, of the allowed 1 %: p99 is at half of its limit if tails fall with the
#: square of the latency.
TAIL_SHARE = 0.25
#: Stalls: the slowest I/O of five seconds is Pareto-distributed, as in ``rare_events``.
STALLS, STALL_NS = 3.0, 60e6
#: Outcomes of a pool that one run draws from: its measurements are on the same drives.
ALIKE = 3
Drives = npt.NDArray[np.int64]
#: Longest conditioning that is simulated, in steps.
MOST_STEPS = 10


@dataclass(frozen=True, slots=True)
class Needs:
    """What a measurement has to decide, without the numbers."""

    has_limit: bool
    precision_percent: float | None
    precision_side: Side
    has_tail: bool
    has_spread: bool
    is_observed: bool
    writes: bool
    #: Load of its class before it, seconds, as ``planned_load.counted_s`` has it.
    loaded_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a measurement: of its rate, or inconclusive if anything was, and its seconds after the ramp."""

    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One simulated run."""

    seconds: float
    bytes_written: float
    #: Of the measurements with a limit of their rate.
    outcomes: tuple[Outcome, ...]


@dataclass(slots=True)
class Pools:
    """Outcomes of measurements, computed when they are first drawn."""

    size: int
    seed: int
    kinds: Sequence[str] = SETTLED
    _found: dict[tuple[object, ...], Ended | int] = field(default_factory=dict)

    def sequential(
        self, protocol: Protocol, needs: Needs, factor: float, family: ErrorControl, kind: str, number: int
    ) -> Ended:
        """Outcome of the group-sequential rule for a drive whose true rate is ``factor`` times its limit."""
        key = ("sequential", protocol.sequential, needs, factor, family, kind, number)
        if key not in self._found:
            self._found[key] = self._judged(protocol, needs, factor, family, kind, number)
        found = self._found[key]
        assert isinstance(found, Ended)
        return found

    def fixed(self, protocol: Protocol, factor: float, family: ErrorControl, kind: str, number: int) -> Ended:
        """Outcome of windows of a fixed length, each repeated until it is steady."""
        key = ("fixed", protocol.name, factor, family, kind, number)
        if key not in self._found:
            each_s = protocol.ramp_s + protocol.window_s
            series = self._series(kind, number, round(protocol.attempts * protocol.repeats * each_s) + 1)
            self._found[key] = _windows(series * factor * LIMIT_IOPS, protocol, family)
        found = self._found[key]
        assert isinstance(found, Ended)
        return found

    def in_rounds(
        self, protocol: Protocol, needs: Needs, factor: float, family: ErrorControl, kind: str, number: int,
        workloads: int,
    ) -> Ended:  # fmt: skip
        """Outcome of a workload that takes turns with others, and the time of its own cells."""
        key = ("rounds", protocol.interleave, protocol.sequential, needs, factor, family, kind, number, workloads)
        if key not in self._found:
            self._found[key] = self._in_rounds(protocol, needs, factor, family, kind, number, workloads)
        found = self._found[key]
        assert isinstance(found, Ended)
        return found

    def steps(self, protocol: Protocol, targets: int, kind: str, number: int) -> int:
        """Steps of conditioning beyond the volume until every target is steady."""
        key = ("steps", protocol.name, targets, kind, number)
        if key not in self._found:
            seconds = round(MOST_STEPS * protocol.precondition_s)
            drives = [self._series(kind, 1000 * number + each, seconds) for each in range(targets)]
            self._found[key] = _steps(drives, protocol)
        found = self._found[key]
        assert isinstance(found, int)
        return found

    def _series(self, kind: str, number: int, seconds: int) -> Series:
        return KINDS[kind](self._random(kind, number), 1.0, seconds)

    def _random(self, kind: str, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(kind.encode()), number])

    def _judged(
        self, protocol: Protocol, needs: Needs, factor: float, family: ErrorControl, kind: str, number: int
    ) -> Ended:
        looks = protocol.sequential
        assert looks
        before_s = CONDITIONED_S if protocol.conditions_drives else 0
        series = self._series(kind, number, before_s + int(looks.limit_s) + looks.report_s)
        shared, rates = NOTHING_KNOWN, series[before_s:] * factor * LIMIT_IOPS
        if before_s:
            shared = SharedEvidence(needs.loaded_s)
        if before_s and needs.writes:
            conditioning = stopping_rules.cells(series[:before_s], looks.report_s).tolist()
            known = excursions.of_series(conditioning, looks.report_s, looks, protocol.verdict.confidence)
            shared = SharedEvidence(needs.loaded_s, known)
        counts = stopping_rules.cells(rates, looks.report_s) * looks.report_s
        intervals = _intervals(counts, looks.report_s, needs, self._random(f"{kind} latency", number))
        found = stopping_rules.judged(intervals, _question(needs), looks, protocol.verdict, family, shared)
        return Ended(found.outcome, found.seconds)

    def _in_rounds(
        self, protocol: Protocol, needs: Needs, factor: float, family: ErrorControl, kind: str, number: int,
        workloads: int,
    ) -> Ended:  # fmt: skip
        rule = protocol.interleave
        assert rule
        every_s = round(rule.ramp_s + rule.cell_s + step_prices.OVERHEAD_S)
        series = self._series(kind, number, CONDITIONED_S + rule.rounds * workloads * every_s)[CONDITIONED_S:]
        cells = interleaved_rounds.cells_of(
            series * factor * LIMIT_IOPS, workloads, rule, every_s, self._random(f"{kind} order", number)
        )
        if needs.has_tail or needs.has_spread:
            rng = self._random(f"{kind} latency", number)
            cells[0] = [replace(each, run=_with_latency(each.run, needs, rng)) for each in cells[0]]
        found = interleaved_rounds.judged(cells, 0, _question(needs), protocol, family, every_s)
        return Ended(found.outcome, found.rounds * every_s)


def _with_latency(cell: Run, needs: Needs, rng: np.random.Generator) -> Run:
    """Return a cell with the latencies of fio's reports of 5 s."""
    (whole,) = cell.intervals
    intervals = _intervals(np.full(round(cell.window_s / 5), 5 * whole.ios / cell.window_s), 5, needs, rng)
    return replace(cell, intervals=tuple(intervals), reports=()).condensed()


def _question(needs: Needs) -> Question:
    """Return what the stopping rule has to decide."""
    limits = {Claim.STEADY_IOPS: LIMIT} if needs.has_limit else {}
    if needs.has_tail:
        limits[Claim.P99_LATENCY] = Limit(Direction.AT_MOST, TAIL_LIMIT_NS, Unit.NANOSECONDS, "bench")
    if needs.has_spread:
        limits[Claim.LATENCY_SPREAD_OVER_TIME] = Limit(Direction.AT_MOST, 10.0, Unit.RATIO, "bench", 10.0)
    return Question(limits, needs.precision_percent, needs.precision_side, is_observed=needs.is_observed)


def _intervals(counts: Series, step_s: float, needs: Needs, rng: np.random.Generator) -> list[Interval]:
    """fio's reports, with latencies if they are asked for: slow I/Os in clusters of a second, one or two a minute."""
    if not (needs.has_tail or needs.has_spread):
        return list(stopping_rules.reported(counts / step_s, step_s))
    clusters = rng.gamma(step_s / 45, 45 / step_s, len(counts))
    slow = np.minimum(counts / 2, 0.01 * TAIL_SHARE * counts * clusters).astype(int).tolist()
    stalls = (STALL_NS * (1 - rng.random(len(counts))) ** (-1 / STALLS)).astype(int).tolist()
    return [
        _interval(index * step_s, step_s, int(count), slower, stall)
        for index, (count, slower, stall) in enumerate(zip(counts.tolist(), slow, stalls, strict=True))
    ]


def _interval(start_s: float, step_s: float, count: int, slower: int, stall_ns: int) -> Interval:
    bucket = bucket_of(stall_ns)
    stall = (bucket.low_ns + bucket.high_ns) // 2
    bins = {FAST_NS: count - slower - 1, SLOW_NS: slower}
    bins[stall] = bins.get(stall, 0) + 1
    latency = LatencyHistogram.from_bins(bins)
    return Interval(start_s, step_s, count, 0, 4096 * count, 0, latency, stopping_rules.NOTHING)


def _windows(rates: Series, protocol: Protocol, family: ErrorControl) -> Ended:
    runs: list[Run] = []
    at_s = attempts = 0
    rounds, window_s = protocol.steady.window, round(protocol.window_s)
    for _ in range(protocol.repeats):
        for _ in range(protocol.attempts):
            attempts += 1
            at_s += round(protocol.ramp_s)
            means = stopping_rules.cells(rates[at_s : at_s + window_s], window_s // rounds)
            at_s += window_s
            if steady_state.judge(means.tolist(), protocol.steady).reached:
                runs.append(_window(means, window_s))
                break
        else:
            return Ended(Outcome.INCONCLUSIVE, at_s + attempts * step_prices.OVERHEAD_S)
    rule = protocol.verdict
    measured = Measured(tuple(runs))
    (verdict,) = judge_all(Claim.STEADY_IOPS, measured, LIMIT, rule.confidence, rule.indifference_percent, family)
    return Ended(verdict.outcome, at_s + attempts * step_prices.OVERHEAD_S)


def _window(means: Series, window_s: int) -> Run:
    intervals = stopping_rules.reported(means, window_s / len(means))
    return replace(stopping_rules.run_of(intervals, window_s), rounds=len(means))


def _steps(drives: Sequence[Series], protocol: Protocol) -> int:
    step_s, size = round(protocol.precondition_s), protocol.steady.window
    round_s = step_s // max(1, round(step_s / protocol.round_s))
    per_step = step_s // round_s
    rounds = [stopping_rules.cells(each, round_s).tolist() for each in drives]
    first = -(-size // per_step)
    for done in range(first, MOST_STEPS):
        end = done * per_step
        if all(steady_state.judge(each[end - size : end], protocol.steady).reached for each in rounds):
            return done
    return MOST_STEPS


@dataclass(frozen=True, slots=True)
class Simulation:
    """Runs of one suite on one model by one protocol, at one margin."""

    model: Model
    protocol: Protocol
    spec: Spec
    promises: Promises
    steps: Steps
    pools: Pools

    @classmethod
    def of(cls, plan: SuitePlan, model: Model, protocol: Protocol, margin: float, pools: Pools) -> Simulation:
        """``margin``: of the published figure from its limit, as a share of the limit."""
        spec = model.at(margin)
        steps = plan.steps(protocol)
        # Suites with about as many claims share their outcomes.
        family = ErrorControl(max(1, round(plan.claims, -2)), protocol.verdict.family)
        return cls(model, protocol, spec, Promises(spec, protocol, plan.asked, family), steps, pools)

    @property
    def prices(self) -> Prices:
        return Prices(self.protocol, self.spec, self.model.drive_bytes)

    def forecast(self) -> PrintedPlan:
        """Return what the product prints before the run."""
        return forecast.predict(
            self.steps, self.protocol, self.spec, DRIVES, self.model.drive_bytes,
            stopping.tails(self.promises.asked, self.spec), self.promises,
        )  # fmt: skip

    def run(self, factor: float, rng: np.random.Generator) -> SuiteRun:
        """Simulate a run on drives whose true rates are ``factor`` times their limits."""
        kind = self.pools.kinds[int(rng.integers(len(self.pools.kinds)))]
        drives = rng.choice(self.pools.size, min(ALIKE, self.pools.size), replace=False)
        total, prices, outcomes, load = StepCost(), self.prices, list[Outcome](), PlannedLoad()

        def passed(what: CampaignStep | Preparation, cost: StepCost) -> StepCost:
            if workload := forecast.loading(what):
                load.load(workload, cost.seconds)
            else:
                load.passed(cost.seconds)
            return cost

        plan, has_control = CampaignPlan.of(self.steps, self.protocol), False
        for preparations, step in plan.prepared():
            for each in preparations:
                cost = prices.preparation(each).expected
                if isinstance(each, Precondition):
                    cost += self._longer(each, kind, drives, rng)
                total += passed(each, cost)
            if step.kind is not StepKind.MEASURED or not isinstance(step.what, Workload):
                total += passed(step, prices.step(step).expected)
                continue
            turns, drawn_by = len(plan.alike(step)) + 1, (drives, rng)
            if prices.in_turn(turns) and step.what.writes and not has_control:
                has_control = True
                alone = self._measured(step, step.what, factor, kind, drawn_by, load.loaded_s(step.what))
                total += passed(step, StepCost(alone.seconds, prices.written(step.geometry, step.what, alone.seconds)))
            ended = self._measured(step, step.what, factor, kind, drawn_by, load.loaded_s(step.what), turns)
            total += passed(step, StepCost(ended.seconds, prices.written(step.geometry, step.what, ended.seconds)))
            if self.promises.question(step.geometry, step.what).limits.keys() & {Claim.STEADY_IOPS}:
                outcomes.append(ended.outcome)
        return SuiteRun(total.seconds, total.bytes_written, tuple(outcomes))

    def _longer(self, step: Precondition, kind: str, drives: Drives, rng: np.random.Generator) -> StepCost:
        """Return the cost of the steps of conditioning after those that the volume needs."""
        protocol, width = self.protocol, step.geometry.width if step.geometry.is_side_by_side else 1
        steps = self.pools.steps(protocol, width, kind, int(rng.choice(drives)))
        seconds = max(0, steps - 1) * protocol.precondition_s
        writes = precondition.conditioning(step.workload)
        return StepCost(seconds, self.prices.written(step.geometry, writes, seconds))

    def _measured(
        self,
        step: CampaignStep,
        workload: Workload,
        factor: float,
        kind: str,
        drawn_by: tuple[Drives, np.random.Generator],
        loaded_s: float,
        workloads: int = 1,
    ) -> Ended:
        """Return the outcome of a measurement, of drives side by side the worst, after the time of the last one.

        So many workloads may take turns with it, itself included.
        """
        geometry = step.geometry
        protocol, question = self.protocol, self.promises.question(geometry, workload)
        width = geometry.width if geometry.is_side_by_side else 1
        drives, rng = drawn_by
        numbers = rng.choice(drives, width).tolist()
        if protocol.sequential:
            needs = Needs(
                has_limit=Claim.STEADY_IOPS in question.limits,
                precision_percent=question.precision_percent,
                precision_side=question.precision_side,
                has_tail=Claim.P99_LATENCY in question.limits,
                has_spread=Claim.LATENCY_SPREAD_OVER_TIME in question.limits,
                is_observed=question.is_observed,
                writes=workload.writes,
                loaded_s=counted_s(loaded_s, protocol.sequential),
            )
            if protocol.interleave and workloads >= protocol.interleave.workloads:
                needs = replace(needs, loaded_s=0.0)
                (number,) = numbers
                return self.pools.in_rounds(protocol, needs, factor, self.promises.family, kind, number, workloads)
            drawn = [
                self.pools.sequential(protocol, needs, factor, self.promises.family, kind, number) for number in numbers
            ]
            more_s = protocol.ramp_s + step_prices.OVERHEAD_S
        else:
            drawn = [self.pools.fixed(protocol, factor, self.promises.family, kind, number) for number in numbers]
            more_s = 0.0
        order = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
        worst = min((each.outcome for each in drawn), key=order.index)
        return Ended(worst, max(each.seconds for each in drawn) + more_s)
