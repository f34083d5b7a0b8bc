"""How long a sequential measurement, or the rounds of a loop, will take: the program's own rules on simulated drives.

The rules are `group_sequential.at_look` and `decide`, and `steady_state.judge`. The drives are settled ones
(``simulated_drive``) whose figures are known: each by a factor better than its limit, the margin. Results depend on the
arguments only, and are cached, because the hundred measurements of a suite have few different margins.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from pytest_ssdqual.qual.forecast import simulated_drive
from pytest_ssdqual.qual.forecast.simulated_drive import SimulatedDrive
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.interval import Interval, Spell
from pytest_ssdqual.qual.measured.run import SPELL_S, Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import OF_LATENCY, TIMES_PER_HOUR, Claim, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import InterleaveRule, SequentialRule, SteadyRule, VerdictRule
from pytest_ssdqual.qual.stats import batch_means, excursions, group_sequential, interleaving, steady_state
from pytest_ssdqual.qual.stats.group_sequential import Question, Side
from pytest_ssdqual.qual.stats.interleaving import Cell
from pytest_ssdqual.qual.stats.shared_evidence import Excursion, SharedEvidence
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.workload.workload import Workload

#: Simulated drives of each kind for measurements, which take a look each, and for steps; the seed of all of them.
DRIVES, OF_STEPS, SEED = 10, 40, 140
#: True rate of a simulated drive: counts are whole, and quantiles need I/Os.
IOPS = 10_000.0
#: I/Os slower than x times a latency are x to this power times fewer.
TAIL = 2.0
#: The same of the slowest I/O of a spell; 3 gives a spread over time of 2.6.
OF_SPELLS = 3.0
#: Workloads that take turns in a simulation; their scatter is pooled.
MOST_SIMULATED = 6
#: Seconds after which nothing of what a drive did before is left.
APART_S = 1200.0
#: Buckets of fio of an ordinary I/O and of the quantile in question, nanoseconds.
ORDINARY_NS, LIMIT_NS = 1_003_520, 1e8
READS, TARGET = Workload("randread", "4k", 1), Geometry(RaidLevel.RAID0, 2)
NOTHING = LatencyHistogram()
#: The quantile of each claim about one that is simulated.
QUANTILES = {
    Claim.P90_LATENCY: 0.9,
    Claim.P95_LATENCY: 0.95,
    Claim.P99_LATENCY: 0.99,
    Claim.P99_9_LATENCY: 0.999,
    Claim.P99_99_LATENCY: 0.9999,
    Claim.P99_999_LATENCY: 0.99999,
}
#: Claims about the slowest I/Os that are simulated; of others only the time of observation counts.
OF_SLOWEST = (Claim.MAX_LATENCY, Claim.LATENCY_SPREAD_OVER_TIME)


@dataclass(frozen=True, slots=True)
class Asked:
    """One of the things that a measurement has to decide."""

    #: ``STEADY_IOPS`` for any rate or mean; None for IOPS to a precision.
    claim: Claim | None = None
    #: The figure over its limit, or its inverse if less is better: above 1 the promise is kept.
    margin: float = 1.0
    #: For ``LATENCY_SPREAD_OVER_TIME``: the limit, and for it and ``MAX_LATENCY`` how often it may be exceeded.
    bound: float = 1.0
    per_hour: float = TIMES_PER_HOUR
    #: Precision of IOPS in per cent, without a claim; see ``Question``.
    precision_percent: float = 1.0
    precision_side: Side = Side.BOTH

    @property
    def nearness(self) -> float:
        """Sort key: what is decided last comes first."""
        return 0.0 if self.claim is None else abs(math.log(self.margin))


#: Whatever is asked about a rate: the simulated I/Os are the same for every margin.
RATE = Asked()


@dataclass(frozen=True, slots=True)
class Judging:
    """The settings of a protocol that decide how long a sequential measurement takes."""

    looks: SequentialRule
    verdict: VerdictRule
    family: ErrorControl = ALONE
    #: Seconds of load before a measurement, and whether its conditioning has shown the drives' pauses and rhythms.
    loaded_s: float = 0.0
    is_shown: bool = False


def durations(judging: Judging, asked: Iterable[Asked], kind: str) -> tuple[float, ...]:
    """Seconds after the ramp until all of ``asked`` is decided, of each simulated drive of a kind."""
    return _durations(judging, tuple(sorted(set(asked), key=lambda each: (each.nearness, str(each)))), kind)


@lru_cache(maxsize=1024)
def _durations(judging: Judging, asked: tuple[Asked, ...], kind: str) -> tuple[float, ...]:
    times = group_sequential.look_times(judging.looks)
    return tuple(
        next(
            (
                seconds
                for look, seconds in enumerate(times[:-1], 1)
                if all(_is_decided(judging, each, kind, number, look) for each in asked)
            ),
            times[-1],
        )
        for number in range(DRIVES)
    )


@lru_cache(maxsize=200_000)
def _is_decided(judging: Judging, asked: Asked, kind: str, number: int, look: int) -> bool:
    rule = judging.looks
    if asked.claim in OF_SLOWEST and group_sequential.look_times(rule)[look - 1] < rule.observe_s:
        return False  # as ``decide`` does before its last look, which is not asked about
    measured = _measured(judging, _simulated(asked), kind, number, look)
    return bool(group_sequential.decide(measured, _question(asked), rule, judging.verdict, judging.family))


def _simulated(asked: Asked) -> Asked:
    """Return what the simulated I/Os depend on: of a claim without latencies only that it is about a rate."""
    return asked if asked.claim in QUANTILES or asked.claim in OF_SLOWEST else RATE


def _question(asked: Asked) -> Question:
    precision = asked.precision_percent if asked.claim is None else None
    return Question(_limits(asked), precision, asked.precision_side, is_observed=asked.claim in OF_SLOWEST)


@lru_cache(maxsize=1024)  # 20 kB each; of a rate a plan asks with many margins
def _measured(judging: Judging, asked: Asked, kind: str, number: int, look: int) -> Measured:
    """Return what a simulated drive has done up to a look; ``asked`` decides the latencies, `RATE` stands for none."""
    rule = judging.looks
    seconds = group_sequential.look_times(rule)[look - 1]
    shared = SharedEvidence(judging.loaded_s, _shown(kind, number, judging) if judging.is_shown else ())
    run = _run(kind, number, seconds, asked, rule)
    return Measured((group_sequential.at_look(run, look, rule, judging.verdict.confidence, shared),))


@lru_cache(maxsize=1024)
def _shown(kind: str, number: int, judging: Judging) -> tuple[Excursion, ...]:
    """Return what a conditioning of a simulated drive has shown: its series is as long as the longest measurement."""
    import numpy as np

    rule = judging.looks
    count = round(rule.limit_s / simulated_drive.STEP_S)
    step_s = rule.limit_s / count
    rates = np.asarray(_drive(kind, number, rule.limit_s).between(np.linspace(0.0, rule.limit_s, count + 1))[0])
    return excursions.of_series(rates.tolist(), step_s, rule, judging.verdict.confidence)


@lru_cache(maxsize=1024)
def _drive(kind: str, number: int, seconds: float) -> SimulatedDrive:
    return simulated_drive.drive(kind, SEED, number, seconds)


def _limits(asked: Asked) -> dict[Claim, Limit]:
    claim = asked.claim
    if claim is None:
        return {}
    bound = IOPS / asked.margin
    if claim is Claim.LATENCY_SPREAD_OVER_TIME:
        bound = asked.bound
    elif claim in OF_LATENCY:
        bound = LIMIT_NS
    elif claim is not Claim.STEADY_IOPS:
        raise ValueError(f"{claim.label} is not simulated")
    return {claim: Limit(claim.direction, bound, claim.unit, "simulated", asked.per_hour)}


@lru_cache(maxsize=32)  # up to half a megabyte each; drives are asked about one by one
def _whole_spells(kind: str, number: int, asked: Asked, rule: SequentialRule) -> tuple[Spell, ...]:
    """Return the spells of the longest measurement, which begins with those of a shorter one."""
    drive, limit_s = _drive(kind, number, rule.limit_s), float(rule.limit_s)
    return _spells(drive, limit_s, asked, group_sequential.spell_s(rule))


def _run(kind: str, number: int, seconds: float, asked: Asked, rule: SequentialRule) -> Run:
    """Return the first ``seconds`` of a drive, one report for each block."""
    import numpy as np

    drive = _drive(kind, number, rule.limit_s)
    edges = np.linspace(0.0, seconds, batch_means.COUNT + 1)
    done, slow = (each.tolist() for each in drive.between(edges))
    block_s = seconds / batch_means.COUNT
    intervals = []
    for index, (ios, slower) in enumerate(zip(done, slow, strict=True)):
        count = round(IOPS * ios)
        latency = _latency(count, IOPS * slower, asked)
        intervals.append(Interval(index * block_s, block_s, count, 0, 4096 * count, 0, latency, NOTHING))
    spells = _whole_spells(kind, number, asked, rule)[: int(seconds / group_sequential.spell_s(rule))]
    return Run(READS, TARGET, ("simulated",), tuple(intervals), 0.0, seconds, batch_means.COUNT, "", reports=spells)


def _latency(count: int, slow_seconds_ios: float, asked: Asked) -> LatencyHistogram:
    """Latencies of a block: ordinary ones, those around the quantile, and those beyond the limit."""
    if asked.claim not in QUANTILES:
        return LatencyHistogram.from_bins({ORDINARY_NS: count}) if asked.claim is Claim.MAX_LATENCY else NOTHING
    beyond = 1 - QUANTILES[asked.claim]
    slower = min(count, round(beyond * asked.margin**-TAIL * slow_seconds_ios))
    around = min(count - slower, round(beyond * slow_seconds_ios))
    bins = {
        ORDINARY_NS: count - slower - around,
        _bucket(LIMIT_NS / asked.margin): around,
        _bucket(2 * LIMIT_NS): slower,
    }
    return LatencyHistogram.from_bins(bins)


@lru_cache(maxsize=64)
def _bucket(ns: float) -> int:
    """Return a latency in the middle of fio's bucket."""
    found = bucket_of(int(ns))
    return (found.low_ns + found.high_ns) // 2


def _spells(
    drive: SimulatedDrive, seconds: float, asked: Asked, spell_s: float, begin_s: float = 0.0
) -> tuple[Spell, ...]:
    """Return the slowest I/O of each spell, Pareto-distributed, with the return level that the margin implies."""
    if asked.claim not in OF_SLOWEST:
        return ()
    # The level that is exceeded so many times an hour, in units of the lowest maximum and of the median one.
    rarity = 3600 / spell_s / asked.per_hour
    exponent, unit_ns = OF_SPELLS, LIMIT_NS / asked.margin / rarity ** (1 / OF_SPELLS)
    if asked.claim is Claim.LATENCY_SPREAD_OVER_TIME:
        exponent, unit_ns = math.log(rarity / 2) / math.log(max(1.01, asked.bound / asked.margin)), LIMIT_NS
    first = int(begin_s / spell_s)
    maxima = unit_ns * (1 - drive.ranks[first : first + int(seconds / spell_s)]) ** (-1 / exponent)
    return tuple(
        Spell(index * spell_s, spell_s, int(each), 0.0, IOPS, IOPS, IOPS) for index, each in enumerate(maxima.tolist())
    )


@dataclass(frozen=True, slots=True)
class Turns:
    """What decides how many rounds workloads take that take turns: their protocol, number and the claims of a run."""

    protocol: Protocol
    family: ErrorControl
    #: Workloads that take turns, and the time between two cells, seconds.
    workloads: int
    overhead_s: float

    @property
    def every_s(self) -> float:
        """Time from one cell to the next, seconds."""
        return self.rule.ramp_s + self.rule.cell_s + self.overhead_s

    @property
    def rule(self) -> InterleaveRule:
        """Rule of the protocol; ValueError if nothing takes turns by it."""
        if self.protocol.interleave is None:
            raise ValueError(f"by the protocol {self.protocol.name} workloads do not take turns")
        return self.protocol.interleave


def rounds(turns: Turns, asked: Iterable[Asked], kind: str) -> tuple[int, ...]:
    """Number of rounds until all of ``asked`` is decided, of each simulated drive of a kind."""
    wanted, rule = sorted(set(asked), key=lambda each: (each.nearness, str(each))), turns.rule
    round_s = turns.workloads * turns.every_s
    numbers = [each for each in interleaving.looks(rule) if each * round_s >= rule.span_s]
    return tuple(
        next(
            (each for each in numbers[:-1] if all(_is_decided_in(turns, one, kind, drive, each) for one in wanted)),
            rule.rounds,
        )
        for drive in range(DRIVES)
    )


@lru_cache(maxsize=200_000)
def _is_decided_in(turns: Turns, asked: Asked, kind: str, number: int, rounds: int) -> bool:
    protocol, cells = turns.protocol, _cells(turns, _simulated(asked), kind, number)
    span_s = rounds * turns.workloads * turns.every_s
    found = interleaving.among(cells[0][:rounds], [each[:rounds] for each in cells], protocol, span_s)
    return bool(group_sequential.decide(found, _question(asked), protocol.sequential, protocol.verdict, turns.family))


@lru_cache(maxsize=256)
def _cells(turns: Turns, asked: Asked, kind: str, number: int) -> tuple[tuple[Cell, ...], ...]:
    """Return the cells of a few workloads on one drive; of the first, with the latencies that ``asked`` is about."""
    import numpy as np

    rule, count = turns.rule, min(turns.workloads, MOST_SIMULATED)
    drive = _drive(kind, number, (rule.rounds * turns.workloads + 1) * turns.every_s)
    rng = np.random.default_rng([SEED, number])
    found: list[list[Cell]] = [[] for _ in range(count)]
    for index in range(rule.rounds):
        for cells, slot in zip(found, rng.permutation(turns.workloads)[:count], strict=True):
            begin_s = float(index * turns.workloads + slot) * turns.every_s
            about = asked if cells is found[0] else RATE
            cells.append(Cell(_cell(drive, begin_s, about, rule.cell_s), None, None))
    return tuple(map(tuple, found))


def _cell(drive: SimulatedDrive, begin_s: float, asked: Asked, cell_s: float) -> Run:
    import numpy as np

    done, slow = (float(each[0]) for each in drive.between(np.asarray((begin_s, begin_s + cell_s))))
    count = round(IOPS * done)
    interval = Interval(0.0, cell_s, count, 0, 4096 * count, 0, _latency(count, IOPS * slow, asked), NOTHING)
    spells = _spells(drive, cell_s, asked, SPELL_S, begin_s)
    return Run(
        READS, TARGET, ("simulated",), (interval,), 0.0, cell_s, 1, "", reports=spells, spell_length_s=SPELL_S
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SteadySteps:
    """Load in steps until figures are steady: conditioning, windows that are repeated, or rounds of many workloads."""

    rule: SteadyRule
    #: Length of a round, and the time from the beginning of one to that of the next, seconds.
    round_s: float
    every_s: float
    #: Rounds of a step; steadiness is judged after each step.
    rounds: int
    #: Most steps.
    most: int
    #: Figures that have to be steady at once: of each drive side by side, and each that is tracked.
    figures: int = 1


@lru_cache(maxsize=256)
def steps(asked: SteadySteps, kind: str) -> tuple[int, ...]:
    """Number of steps until all is steady, at least one and at most ``asked.most``, of each simulated drive of a kind.

    Rounds that are too short for the simulation are steady at once.
    """
    first = max(1, math.ceil(asked.rule.window / asked.rounds))
    if asked.round_s < 2 * simulated_drive.STEP_S or first >= asked.most:
        return (min(first, max(1, asked.most)),)
    drives, rng = _steady(replace(asked, figures=1), kind), random.Random(SEED)  # noqa: S311
    several = ([drives[int(rng.random() * OF_STEPS)] for _ in range(asked.figures)] for _ in range(OF_STEPS))
    return tuple(
        next((done for done in range(first, asked.most) if all(each[done] for each in figures)), asked.most)
        for figures in (several if asked.figures > 1 else ([each] for each in drives))
    )


@lru_cache(maxsize=256)
def _steady(asked: SteadySteps, kind: str) -> tuple[tuple[bool, ...], ...]:
    """Return whether one figure is steady after each number of steps, for each simulated drive."""
    import numpy as np

    # Rounds far apart have nothing to do with each other, however far.
    starts = min(asked.every_s, max(asked.round_s, APART_S)) * np.arange(asked.rounds * asked.most)
    edges, size = np.column_stack((starts, starts + asked.round_s)).ravel(), asked.rule.window
    found = []
    for number in range(OF_STEPS):
        drive = simulated_drive.drive(kind, SEED, number, edges[-1])
        rounds = drive.between(edges)[0][::2].tolist()
        ends = (done * asked.rounds for done in range(asked.most))
        found.append(
            tuple(end >= size and steady_state.judge(rounds[end - size : end], asked.rule).reached for end in ends)
        )
    return tuple(found)
