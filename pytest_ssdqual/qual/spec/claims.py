"""Claims: what can be promised of a product, each with its unit, its scope and the good side of its limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Self

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import Unit, format_value

#: Default of the times an hour that a limit on rare events may be exceeded: 35 minutes without an event exclude more,
#: at the confidence of one look of many.
TIMES_PER_HOUR = 10.0
#: Lowest value of what has to be reached, by unit: a drive that does less has failed.
LEAST_MEANT = {Unit.IOPS: 1.0, Unit.BYTES_PER_SECOND: 1e3, Unit.RATIO: 0.01, Unit.COUNT: 1.0}


class Direction(StrEnum):
    AT_LEAST = "at_least"
    AT_MOST = "at_most"


class Accountable(StrEnum):
    """The part of the system that a promise is about: its failure blames only this part."""

    #: The drives; what md, the host or a shared path did is no verdict on them.
    DRIVE = "drive"
    #: The whole system: drives, md and the host.
    SYSTEM = "system"


class Scope(StrEnum):
    """The measurement that a claim is judged on."""

    #: One workload on one array.
    RUN = "run"
    #: One workload on one array, compared with the prediction from its members' own curves.
    PREDICTED = "predicted"
    #: The same workload on several drives side by side.
    MEMBERS = "members"
    #: Drives that are a sample of a lot, judged by the plan of the spec's table ``lot``; no promise has such a claim.
    LOT = "lot"
    #: The same workload on several widths of a level.
    SWEEP = "sweep"
    #: Several workloads on one array.
    CURVE = "curve"
    #: Writes from the purged state until steady.
    SATURATION = "saturation"
    #: A rebuild under load.
    REBUILD = "rebuild"


# The words of the table below.
AT_LEAST, AT_MOST = Direction
RUN, PREDICTED, MEMBERS, LOT, SWEEP, CURVE, SATURATION, REBUILD = Scope
IOPS, NANOSECONDS, BYTES_PER_SECOND, RATIO, PERCENT, SECONDS, COUNT, CELSIUS = Unit


class Claim(StrEnum):
    """A claim, by its name in specs and suites."""

    STEADY_IOPS = "steady_iops", IOPS, AT_LEAST, RUN
    READ_IOPS = "read_iops", IOPS, AT_LEAST, RUN
    WRITE_IOPS = "write_iops", IOPS, AT_LEAST, RUN
    RATE_KEPT = "rate_kept", PERCENT, AT_LEAST, RUN, "share of the asked rate that was done"
    THROUGHPUT = "throughput", BYTES_PER_SECOND, AT_LEAST, RUN
    MEAN_LATENCY = "mean_latency"
    READ_MEAN_LATENCY = "read_mean_latency"
    WRITE_MEAN_LATENCY = "write_mean_latency"
    P50_LATENCY = "p50_latency"
    P90_LATENCY = "p90_latency"
    P95_LATENCY = "p95_latency"
    P99_LATENCY = "p99_latency"
    P99_9_LATENCY = "p99.9_latency"
    P99_99_LATENCY = "p99.99_latency"
    P99_999_LATENCY = "p99.999_latency"
    MAX_LATENCY = "max_latency"
    LATENCY_SPREAD_OVER_TIME = "latency_spread_over_time", RATIO, AT_MOST, RUN
    WORST_SECOND = "worst_second", RATIO, AT_LEAST, RUN, "worst second over the mean"
    SLOWEST_SECOND = "slowest_second", BYTES_PER_SECOND, AT_LEAST, RUN, "bytes per second of the slowest seconds"
    FASTEST_SECOND = "fastest_second", BYTES_PER_SECOND, AT_LEAST, RUN, "bytes per second of the fastest seconds"
    FASTEST_TO_SLOWEST_SECOND = "fastest_to_slowest_second", RATIO, AT_MOST, RUN, "fastest over slowest second"
    WRITE_SPREAD_BETWEEN_MEMBERS = "write_spread_between_members", RATIO, AT_MOST, RUN, "most over least written member"
    SUSTAINED_TEMPERATURE = "sustained_temperature", CELSIUS, AT_MOST, RUN
    THROTTLED_TIME = "throttled_time", PERCENT, AT_MOST, RUN, "time throttled by heat"
    REPLAY_PACE = "replay_pace", RATIO, AT_MOST, RUN, "duration of the replay over that of the trace"
    WRITE_AMPLIFICATION = "write_amplification", RATIO, AT_MOST, RUN
    ARRAY_EFFICIENCY = "array_efficiency", PERCENT, AT_LEAST, PREDICTED
    TIMES_ONE_DRIVE = "times_one_drive", RATIO, AT_LEAST, PREDICTED, "IOPS over those of one bare drive"
    MEMBER_SPREAD = "member_spread", RATIO, AT_LEAST, MEMBERS, "slowest drive over the median of the others"
    LATENCY_SPREAD_BETWEEN_MEMBERS = "latency_spread_between_members", RATIO, AT_MOST, MEMBERS
    CONFORMING_DRIVES = "conforming_drives", COUNT, AT_LEAST, LOT, "conforming drives of a lot's sample"
    QUALITY_INDEX = "quality_index", COUNT, AT_LEAST, LOT, "quality index of a lot"
    LATENCY_SPREAD_BETWEEN_WIDTHS = "latency_spread_between_widths", RATIO, AT_MOST, SWEEP
    LATENCY_GROWTH_BETWEEN_WIDTHS = "latency_growth_between_widths", RATIO, AT_MOST, SWEEP
    SETTINGS_GAIN = "settings_gain", RATIO, AT_MOST, SWEEP, "IOPS of the best md settings over the protocol's"
    SCALING_SLOPE = "scaling_slope", RATIO, AT_LEAST, SWEEP
    SCALING_DEVIATION = "scaling_deviation", PERCENT, AT_MOST, SWEEP
    BATHTUB_DEPTH = (
        "bathtub_depth",
        RATIO,
        AT_LEAST,
        CURVE,
        "worst mix over the line between pure reads and pure writes",
    )
    MIX_RISE = "mix_rise", RATIO, AT_MOST, CURVE, "greatest rise of IOPS from one mix to the next with fewer reads"
    BALANCED_GAIN = "balanced_gain", RATIO, AT_LEAST, CURVE, "best mix of 35 to 65 % reads over the best of all others"
    UNALIGNED_PENALTY = "unaligned_penalty", RATIO, AT_MOST, CURVE, "aligned over unaligned IOPS"
    QD_KNEE = "qd_knee", COUNT, AT_LEAST, CURVE, "I/Os outstanding where IOPS stop growing"
    QD_LATENCY_KNEE = (
        "qd_latency_knee",
        COUNT,
        AT_LEAST,
        CURVE,
        "I/Os outstanding where latency begins to rise in proportion",
    )
    QD_GAIN = "qd_gain", RATIO, AT_LEAST, CURVE, "IOPS of the deepest over the shallowest queue"
    QD_DEPENDENCE = "qd_dependence", RATIO, AT_MOST, CURVE, "most over fewest IOPS of all queue depths"
    NEIGHBOUR_P99 = "neighbour_p99", RATIO, AT_MOST, CURVE, "p99 latency of reads beside writes over that without them"
    NEIGHBOUR_IOPS = "neighbour_iops", RATIO, AT_LEAST, CURVE, "IOPS of reads beside writes over those without them"
    SPARE_GAIN = "spare_gain", RATIO, AT_LEAST, CURVE, "IOPS of writes to a part of the range over those to all of it"
    FRESH_IOPS = "fresh_iops", IOPS, AT_LEAST, SATURATION
    SETTLED_IOPS = "settled_iops", IOPS, AT_LEAST, SATURATION
    FRESH_TO_STEADY = "fresh_to_steady", RATIO, AT_MOST, SATURATION, "fresh over settled IOPS"
    CLIFF_AFTER = "cliff_after", RATIO, AT_LEAST, SATURATION, "drive capacities written before the cliff"
    REBUILD_RATE = "rebuild_rate", BYTES_PER_SECOND, AT_LEAST, REBUILD
    REBUILD_TIME = "rebuild_time", SECONDS, AT_MOST, REBUILD

    unit: Unit
    #: Side of the limit on which the claim is good.
    direction: Direction
    scope: Scope
    #: Name in a sentence: ``p99 latency``.
    label: str

    def __new__(
        cls,
        name: str,
        unit: Unit = NANOSECONDS,
        direction: Direction = AT_MOST,
        scope: Scope = RUN,
        label: str = "",
    ) -> Self:
        """Return the claim of a row; one without a unit is a latency. A label is for what the name does not say."""
        claim = str.__new__(cls, name)
        claim._value_ = name
        claim.unit, claim.direction, claim.scope = unit, direction, scope
        claim.label = label or name.replace("_", " ").replace("iops", "IOPS").replace("qd ", "QD ")
        return claim

    @property
    def is_of_system(self) -> bool:
        """Return whether the claim is about md and the host by its nature, whatever a spec says."""
        return self.scope is Scope.PREDICTED or self is Claim.WRITE_SPREAD_BETWEEN_MEMBERS


#: Percentiles that few I/Os decide; slow I/Os come in bursts, so they take longer to measure than a rate.
OF_TAIL = frozenset(
    {Claim.P99_LATENCY, Claim.P99_9_LATENCY, Claim.P99_99_LATENCY, Claim.P99_999_LATENCY, Claim.NEIGHBOUR_P99}
)

#: Claims about a workload and the same in another situation; of drives side by side each is judged by itself.
OF_PAIRS = frozenset({Claim.NEIGHBOUR_P99, Claim.NEIGHBOUR_IOPS, Claim.SPARE_GAIN})

#: Claims about single seconds: fio has to report every second.
OF_SECONDS = frozenset(
    {Claim.WORST_SECOND, Claim.SLOWEST_SECOND, Claim.FASTEST_SECOND, Claim.FASTEST_TO_SLOWEST_SECOND}
)

#: Claims about rare events: the limit applies to the level that is exceeded at most ``Limit.times_per_hour`` times.
OF_RARE_EVENTS = OF_SECONDS | {Claim.MAX_LATENCY, Claim.LATENCY_SPREAD_OVER_TIME}

#: Claims about the slowest I/O or second of each spell.
OF_EXTREMES = OF_RARE_EVENTS | {Claim.LATENCY_SPREAD_BETWEEN_MEMBERS, Claim.LATENCY_SPREAD_BETWEEN_WIDTHS}

#: Claims about the drives' own sensors and counters. With a promise of one, heat is the product's behaviour and no
#: reason not to judge a measurement.
OF_HEAT = frozenset({Claim.SUSTAINED_TEMPERATURE, Claim.THROTTLED_TIME})

#: Claims that are judged on what the machine and its drives report around a process, or on how long
#: a replay takes; no further visit makes them surer.
OF_COUNTERS = OF_HEAT | {Claim.WRITE_SPREAD_BETWEEN_MEMBERS, Claim.REPLAY_PACE, Claim.WRITE_AMPLIFICATION}

#: Claims that compare an array with its members: drives side by side have none.
OF_ARRAYS = frozenset({Claim.TIMES_ONE_DRIVE, Claim.WRITE_SPREAD_BETWEEN_MEMBERS})

#: Claims about how IOPS grow with the number of drives, beside what the law of the level makes of it.
OF_GROWTH = frozenset({Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION})


#: Claims whose ratio is near one, or a few times one: a limit of ``RATIO_IN_PER_CENT`` was meant in per cent.
NEAR_ONE = frozenset(
    {
        Claim.WORST_SECOND,
        Claim.REPLAY_PACE,
        Claim.WRITE_SPREAD_BETWEEN_MEMBERS,
        Claim.MEMBER_SPREAD,
        Claim.LATENCY_GROWTH_BETWEEN_WIDTHS,
        Claim.SCALING_SLOPE,
        Claim.BATHTUB_DEPTH,
        Claim.MIX_RISE,
        Claim.BALANCED_GAIN,
        Claim.UNALIGNED_PENALTY,
        Claim.NEIGHBOUR_IOPS,
        Claim.SPARE_GAIN,
    }
)
#: Lowest ratio that is refused for such a claim.
RATIO_IN_PER_CENT = 20
#: The same of ``fresh_to_steady``, for a bare number: a drive that settles at less than a hundredth is rare.
FACTOR_IN_PER_CENT = 100
#: Lowest limit of it. A drive hardly gets faster by being full, so a third means that it settles at a third.
LEAST_FACTOR = 0.5

#: Claims about the latency of I/Os; of a saturation it is that of its response times.
OF_LATENCY = frozenset(claim for claim in Claim if claim.unit is Unit.NANOSECONDS)


def require_factor(given: object, factor: float) -> float:
    """Return the value of ``fresh_to_steady``; ``ValueError`` if ``given``, as it is written, was meant in per cent."""
    is_explicit = isinstance(given, str) and given.strip()[-1:].lower() in ("x", "×")
    if factor >= FACTOR_IN_PER_CENT and not is_explicit:
        words = f"write {factor / 100:g} for {factor:g} %, or '{factor:g} x' if it is {factor:g}"
        raise ValueError(f"{Claim.FRESH_TO_STEADY} is a factor: {words}")
    return factor


def require_meant(given: object, value: float, unit: Unit) -> float:
    """Return the value; ``ValueError`` if everything reaches it, as 0.0001 IOPS."""
    least = LEAST_MEANT.get(unit, 0.0)
    if value < least:
        raise ValueError(f"{given} or more is kept by everything: write {format_value(least, unit)} or more")
    return value


@frozen
class Limit:
    """The limit of a claim, in the claim's unit."""

    direction: Direction
    bound: float
    unit: Unit
    #: Origin, for the evidence: ``default.toml promise[3]``.
    source: str
    #: For a claim about rare events, the times an hour that it may be exceeded.
    times_per_hour: float | None = None
    #: Limits of drives by their own sheets, by serial number; empty if all drives have this one.
    own: Mapping[str, Limit] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if not self.bound > 0:
            raise ValueError(f"a limit must be above zero, not {self.bound}")

    def of(self, drive: str) -> Limit | None:
        """Return the limit of one drive; None if its sheet has none. Without a serial number that of all."""
        return self.own.get(drive) if self.own and drive else self

    def __str__(self) -> str:
        return f"{self.direction.replace('_', ' ')} {format_value(self.bound, self.unit)}"


@frozen
class Published:
    """One published quantity; ``str()`` is ``75,000 IOPS`` or ``about 110,000 IOPS``."""

    #: In base units.
    value: float
    unit: Unit
    #: The publication.
    source: str
    #: The source says "about", "close to" or less, or is ambiguous.
    approximate: bool = False
    #: The source says "over" or "less than": a promise of a percentage allows nothing beside it.
    is_bound: bool = False

    def __str__(self) -> str:
        return f"{'about ' if self.approximate else ''}{format_value(self.value, self.unit)}"
