"""Protocol: how drives are conditioned, and for how long they are measured.

`Protocol` and its rules are the types that the program uses, in seconds and bytes. The ``…Table`` and ``…Document``
classes are the shape of protocol files, for pydantic; `load` converts one into the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.toml import BlockSize, Percent, Percentage, Seconds, Strict, Throughput
from pytest_ssdqual.qual.units import format_size, parse_size

#: Default of ``ExploreRule.measurement_s`` in a protocol of fixed length, at most.
LONGEST_PROBE_S = 60.0


#: Attempts of a sequential measurement: one more than needed, in case the rig fails.
SEQUENTIAL_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class SteadyRule:
    """The SNIA PTS steady-state rule (SSS PTS 2.0.2) over the last ``window`` rounds.

    max - min <= ``range_percent`` of the average, and the rise or fall of the least-squares line inside the window <=
    ``slope_percent`` of the average.
    """

    window: int = 5
    range_percent: float = 20.0
    slope_percent: float = 10.0


@dataclass(frozen=True, slots=True)
class ArraySettings:
    """md settings that change performance; all are recorded with every run."""

    chunk: str = "64k"
    bitmap: str = "none"
    stripe_cache_pages: int = 4096
    #: Kernel threads for RAID 5 and 6; 0: one per CPU of the machine.
    group_threads: int = 0
    #: Layout of RAID 5 and 6.
    raid5_layout: str = "left-symmetric"
    raid10_layout: str = "n2"


@dataclass(frozen=True, slots=True)
class LoopRule:
    """Rounds of many workloads in sequence (SNIA PTS), each ``cell_s`` long, until steady."""

    cell_s: float = 60.0
    max_rounds: int = 25


@dataclass(frozen=True, slots=True)
class SaturationRule:
    """Writes from the purged state, until this many user capacities are written or ``limit_s`` is over."""

    capacities: float = 4.0
    limit_s: float = 6 * 3600.0
    #: Length of one point of the curve.
    sample_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RebuildRule:
    """A rebuild under load. Rates are md's ``sync_speed_min`` and ``sync_speed_max``; None: the kernel's own."""

    limit_s: float = 24 * 3600.0
    min_bytes_per_s: int | None = None
    max_bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class ExploreRule:
    """A search for a workload that breaks a promise; see ``qual.explore.dimensions``."""

    #: Drive time of search and shrinking together, for each array and class of workloads.
    budget_s: float = 4 * 3600.0
    #: Time of one workload without the ramp: its window, or in a sequential protocol its last look. None for the
    #: protocol's own window up to a minute, or twice the first look.
    measurement_s: float | None = None
    #: Most different workloads.
    workloads: int = 200
    #: Most suspects that are measured a second time, by the protocol itself, until one is confirmed; not part of the
    #: budget.
    confirmations: int = 3


@dataclass(frozen=True, slots=True)
class IntegrityRule:
    """Integrity test: number and length of the step sequences that an array's data must survive."""

    histories: int = 20
    #: Steps of each history.
    steps: int = 40
    #: Drive time of the test on one array; as much again to shrink a failing history.
    limit_s: float = 4 * 3600.0
    #: Regions of the array that are written: pairs of neighbours from its first byte to its last.
    regions: int = 16
    #: Bytes that the array uses of each member; the time of a rebuild is proportional to it.
    member_bytes: int = 4 << 30
    #: Unit that the drives never tear when the power fails: their ``logical`` or ``physical`` block.
    atomic: str = "logical"
    #: Also cut the power during writes to a degraded RAID 5 or 6, which need not survive that (write hole).
    write_hole: bool = False


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """Confidence and error control of verdicts."""

    #: Two-sided confidence of the interval that a promise is judged by.
    confidence: float = 0.95
    #: Indifference margin: an interval within it on both sides of the limit counts as on the limit, and no more time is
    #: spent on it.
    indifference_percent: float = 1.0
    #: Correction for many claims in one run: ``none`` or ``bonferroni`` (of failures only).
    family: str = "none"


@dataclass(frozen=True, slots=True)
class SequentialRule:
    """Group-sequential measurement: looks at ``first_s``, then each ``growth`` times later, up to ``limit_s``.

    Times count from the end of the ramp.
    """

    first_s: float = 420.0
    growth: float = 1.1
    limit_s: float = 5 * 3600.0
    #: Interval between fio's reports.
    report_s: int = 5
    #: Half width of the interval of IOPS, in per cent, at which a figure without a limit is precise enough.
    precision_percent: float = 1.0
    #: Slowest expected period of a drive: within 1.6 times this every period of garbage collection has occurred, and
    #: transients with up to twice this time constant are fitted.
    slowest_s: float = 2100.0
    #: Longest plateau, of a cache or of spare blocks: until then figures far from their limit are not accepted.
    plateau_s: float = 2100.0
    #: Minimum observation of the slowest I/Os and seconds, if a claim depends on them.
    observe_s: float = 2100.0
    #: Work lost in one pause for garbage collection that a short series may not contain yet, in seconds of full speed.
    pause_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way of conditioning and measuring. Times are seconds; a pass is the whole user area."""

    name: str
    #: True if its verdicts may be used to accept or reject a product.
    acceptance: bool
    #: Sequential write passes over the whole user area before anything is measured.
    fill_passes: int
    fill_bs: str
    #: Preconditioning: writes before the first workload of a class (random, sequential), in steps of this length…
    precondition_s: float
    #: …until steady, and never longer than this in all.
    precondition_limit_s: float
    #: Ramp: head of every measurement that is not counted.
    ramp_s: float
    #: Counted time, cut into ``steady.window`` rounds of equal length. In a sequential protocol the first look, used
    #: only to judge conditioning.
    window_s: float
    #: Measurements of each workload; the repeats are judged together.
    repeats: int
    #: Attempts of one measurement until its window is steady.
    attempts: int
    #: Counted time if a percentile of ``claims.OF_TAIL`` is judged; None for ``window_s``.
    tail_window_s: float | None = None
    #: Purge of members before an array is built: ``format`` (NVMe Format if it affects only the drive itself, else
    #: discard) or ``discard`` (of the whole range).
    purge: str = "format"
    #: User capacities to write before the array may be found steady (STEC: past the raw capacity).
    precondition_capacities: float = 0.0
    steady: SteadyRule = field(default_factory=SteadyRule)
    array: ArraySettings = field(default_factory=ArraySettings)
    loop: LoopRule = field(default_factory=LoopRule)
    saturation: SaturationRule = field(default_factory=SaturationRule)
    rebuild: RebuildRule = field(default_factory=RebuildRule)
    integrity: IntegrityRule = field(default_factory=IntegrityRule)
    explore: ExploreRule = field(default_factory=ExploreRule)
    verdict: VerdictRule = field(default_factory=VerdictRule)
    #: None if every measurement takes the same time, ``window_s``.
    sequential: SequentialRule | None = None

    @property
    def round_s(self) -> float:
        """Length of one round of the steady-state window."""
        return self.window_s / self.steady.window

    def window_of(self, *, tail: bool) -> float:
        """Counted time of a measurement in seconds; ``tail`` if a percentile of its tail is judged."""
        return self.tail_window_s if tail and self.tail_window_s is not None else self.window_s


_LOOKS, _EXPLORE, _LIVES = SequentialRule(), ExploreRule(), IntegrityRule()
#: Least ``integrity.member``: room for all regions of the widest stripes.
LEAST_MEMBER_BYTES = 16 << 20
#: Fewest reports at the first look; with fewer an interval would be a guess.
FEWEST_REPORTS = 10


class FillTable(Strict):
    passes: Annotated[int, Field(ge=0, le=100)]
    bs: BlockSize


class PreconditionTable(Strict):
    step: Annotated[Seconds, Field(gt=0)]
    limit: Annotated[Seconds, Field(gt=0)]
    capacities: Annotated[float, Field(ge=0, le=100)] = 0.0

    @model_validator(mode="after")
    def _one_step_at_least(self) -> Self:
        if self.limit < self.step:
            raise ValueError(f"the limit ({self.limit:g} s) is shorter than one step ({self.step:g} s)")
        return self


class MeasureTable(Strict):
    ramp: Annotated[Seconds, Field(ge=0)]
    window: Annotated[Seconds, Field(gt=0)]
    tail_window: Annotated[Seconds, Field(gt=0)] | None = None
    repeats: Annotated[int, Field(ge=1, le=1000)]
    attempts: Annotated[int, Field(ge=1, le=1000)]

    @model_validator(mode="after")
    def _longer_for_tails(self) -> Self:
        if self.tail_window is not None and self.tail_window < self.window:
            raise ValueError(f"tail_window ({self.tail_window:g} s) is shorter than window ({self.window:g} s)")
        return self


class RampTable(Strict):
    """Table ``measure`` of a protocol with the table ``sequential``."""

    ramp: Annotated[Seconds, Field(ge=0)]
    window: None = None
    tail_window: None = None
    repeats: None = None
    attempts: None = None

    @field_validator("window", "tail_window", "repeats", "attempts", mode="before")
    @classmethod
    def _left_out(cls, given: object) -> None:
        raise ValueError(
            "is of measurements of a fixed length; the table sequential measures until a verdict is certain, leave it "
            "out"
        )


class VerdictTable(Strict):
    confidence: Annotated[Percentage, Field(ge=50, lt=100)] = 95.0
    indifference: Annotated[Percentage, Field(le=50)] = 1.0
    family: Literal["none", "bonferroni"] = "none"


class SequentialTable(Strict):
    first: Annotated[Seconds, Field(gt=0)] = _LOOKS.first_s
    growth: Annotated[float, Field(ge=1.05, le=10)] = _LOOKS.growth
    limit: Annotated[Seconds, Field(gt=0)] = _LOOKS.limit_s
    report: Annotated[Seconds, Field(ge=1)] = float(_LOOKS.report_s)
    precision: Annotated[Percentage, Field(le=50)] = _LOOKS.precision_percent
    slowest: Annotated[Seconds, Field(gt=0)] = _LOOKS.slowest_s
    plateau: Annotated[Seconds, Field(ge=0)] = _LOOKS.plateau_s
    observe: Annotated[Seconds, Field(ge=0)] = _LOOKS.observe_s
    pause: Annotated[Seconds, Field(ge=0)] = _LOOKS.pause_s

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.limit < self.first:
            raise ValueError(f"the limit ({self.limit:g} s) is before the first look ({self.first:g} s)")
        if self.report != int(self.report):
            raise ValueError(f"fio reports after whole seconds, not every {self.report:g} s")
        if self.first < FEWEST_REPORTS * self.report:
            raise ValueError(
                f"the first look ({self.first:g} s) would see fewer than {FEWEST_REPORTS} reports, one comes every "
                f"{self.report:g} s"
            )
        return self


class SteadyTable(Strict):
    window: Annotated[int, Field(ge=3, le=1000)] = 5
    range_percent: Percent = 20.0
    slope_percent: Percent = 10.0


class ArrayTable(Strict):
    chunk: BlockSize = "64k"
    bitmap: Literal["none", "internal"] = "none"
    stripe_cache_pages: Annotated[int, Field(ge=17, le=32768)] = 4096
    group_threads: Annotated[int, Field(ge=0, le=1024)] = 0
    raid5_layout: Literal["left-symmetric", "left-asymmetric", "right-symmetric", "right-asymmetric"] = "left-symmetric"
    raid10_layout: Annotated[str, Field(pattern="^[nfo][2-9]$")] = "n2"

    @field_validator("chunk")
    @classmethod
    def _power_of_two(cls, chunk: str) -> str:
        size = parse_size(chunk)
        if size < 4096 or size & (size - 1):
            raise ValueError(f'"{chunk}" is not a power of two of at least 4k')
        return chunk


class LoopTable(Strict):
    cell: Annotated[Seconds, Field(ge=1)] = 60.0
    max_rounds: Annotated[int, Field(ge=3, le=1000)] = 25


class SaturationTable(Strict):
    capacities: Annotated[float, Field(gt=0, le=100)] = 4.0
    limit: Annotated[Seconds, Field(gt=0)] = 6 * 3600.0
    sample: Annotated[Seconds, Field(ge=1)] = 60.0

    @model_validator(mode="after")
    def _some_samples(self) -> Self:
        if self.limit < 10 * self.sample:
            raise ValueError(f"the limit ({self.limit:g} s) has room for fewer than 10 samples of {self.sample:g} s")
        return self


class RebuildTable(Strict):
    limit: Annotated[Seconds, Field(gt=0)] = 24 * 3600.0
    min_rate: Annotated[Throughput, Field(gt=0)] | None = None
    max_rate: Annotated[Throughput, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _an_order(self) -> Self:
        if self.min_rate and self.max_rate and self.max_rate < self.min_rate:
            raise ValueError(f"max_rate ({self.max_rate} B/s) is below min_rate ({self.min_rate} B/s)")
        return self


class ExploreTable(Strict):
    """Table ``explore``: the workload search."""

    budget: Annotated[Seconds, Field(gt=0)] = _EXPLORE.budget_s
    measurement: Annotated[Seconds, Field(ge=1)] | None = _EXPLORE.measurement_s
    workloads: Annotated[int, Field(ge=1, le=100_000)] = _EXPLORE.workloads
    confirmations: Annotated[int, Field(ge=1, le=100)] = _EXPLORE.confirmations


class IntegrityTable(Strict):
    histories: Annotated[int, Field(ge=1, le=10_000)] = _LIVES.histories
    steps: Annotated[int, Field(ge=1, le=1000)] = _LIVES.steps
    limit: Annotated[Seconds, Field(gt=0)] = _LIVES.limit_s
    regions: Annotated[int, Field(ge=2, le=64)] = _LIVES.regions
    member: BlockSize = format_size(_LIVES.member_bytes)
    atomic: Literal["logical", "physical"] = "logical"
    write_hole: bool = _LIVES.write_hole

    @field_validator("member")
    @classmethod
    def _room(cls, member: str) -> str:
        if parse_size(member) < LEAST_MEMBER_BYTES or parse_size(member) % (1 << 20):
            raise ValueError(f'"{member}" is not a whole number of MiB, at least {format_size(LEAST_MEMBER_BYTES)}')
        return member


class CommonDocument(Strict):
    """The tables that every protocol has."""

    acceptance: bool
    purge: Literal["format", "discard"] = "format"
    fill: FillTable
    precondition: PreconditionTable
    verdict: VerdictTable = VerdictTable()
    steady: SteadyTable = SteadyTable()
    array: ArrayTable = ArrayTable()
    loop: LoopTable = LoopTable()
    saturation: SaturationTable = SaturationTable()
    rebuild: RebuildTable = RebuildTable()
    integrity: IntegrityTable = IntegrityTable()
    explore: ExploreTable = ExploreTable()

    def _require_budget(self, measurement_s: float) -> None:
        if self.explore.budget < measurement_s:
            raise ValueError(
                f"explore.budget ({self.explore.budget:g} s) is less than one measurement takes ({measurement_s:g} s)"
            )

    def _require_rounds(self, what: str, window_s: float) -> None:
        # fio reports once a second; a shorter round would be a fraction of one report.
        if window_s / self.steady.window < 1:
            raise ValueError(
                f"{what} ({window_s:g} s) is cut into {self.steady.window} rounds "
                "(steady.window); each must last at least 1 s"
            )


class ProtocolDocument(CommonDocument):
    """A protocol in which every measurement takes the same time."""

    measure: MeasureTable

    @model_validator(mode="after")
    def _rounds_of_a_second(self) -> Self:
        self._require_rounds("measure.window", self.measure.window)
        if self.explore.measurement is not None:
            self._require_rounds("explore.measurement", self.explore.measurement)
        window_s = self.explore.measurement or min(self.measure.window, LONGEST_PROBE_S)
        self._require_budget(self.measure.ramp + window_s)
        return self


class SequentialDocument(CommonDocument):
    """A protocol in which a measurement runs until its verdict is certain."""

    measure: RampTable
    sequential: SequentialTable

    @model_validator(mode="after")
    def _rounds_of_a_second(self) -> Self:
        self._require_rounds("sequential.first", self.sequential.first)
        first, measurement = self.sequential.first, self.explore.measurement
        if measurement is not None and measurement < first:
            raise ValueError(f"explore.measurement ({measurement:g} s) is before the first look ({first:g} s)")
        self._require_budget(self.measure.ramp + first)
        return self


if TYPE_CHECKING:
    pass

FOLDER = "protocols"


class ProtocolError(toml.DocumentError):
    """A protocol that cannot be used; see ``DocumentError``."""


def load(path_or_name: str | Path) -> Protocol:
    """Read a protocol: the path of a TOML file, or the name of a shipped one. ``ProtocolError`` with every error."""
    name, content = toml.read(path_or_name, FOLDER, ProtocolError)
    pass

    if "sequential" in content:
        read = toml.checked(SequentialDocument, name, content, ProtocolError)
        rule, ramp_s = read.sequential, read.measure.ramp
        looks = SequentialRule(
            first_s=rule.first,
            growth=rule.growth,
            limit_s=rule.limit,
            report_s=int(rule.report),
            precision_percent=rule.precision,
            slowest_s=rule.slowest,
            plateau_s=rule.plateau,
            observe_s=rule.observe,
            pause_s=rule.pause,
        )
        found = _protocol(name, read, (ramp_s, rule.first, 1, SEQUENTIAL_ATTEMPTS), looks)
        return replace(found, tail_window_s=min(rule.limit, max(rule.first, rule.observe)))
    fixed = toml.checked(ProtocolDocument, name, content, ProtocolError)
    times = fixed.measure
    found = _protocol(name, fixed, (times.ramp, times.window, times.repeats, times.attempts), None)
    return replace(found, tail_window_s=times.tail_window)


def _protocol(
    name: str, read: CommonDocument, measure: tuple[float, float, int, int], sequential: SequentialRule | None
) -> Protocol:
    ramp_s, window_s, repeats, attempts = measure
    verdict, explore = read.verdict, read.explore
    return Protocol(
        name=name.removesuffix(".toml"),
        acceptance=read.acceptance,
        fill_passes=read.fill.passes,
        fill_bs=read.fill.bs,
        precondition_s=read.precondition.step,
        precondition_limit_s=read.precondition.limit,
        precondition_capacities=read.precondition.capacities,
        ramp_s=ramp_s,
        window_s=window_s,
        repeats=repeats,
        attempts=attempts,
        purge=read.purge,
        steady=SteadyRule(read.steady.window, read.steady.range_percent, read.steady.slope_percent),
        array=ArraySettings(**read.array.model_dump()),
        loop=LoopRule(read.loop.cell, read.loop.max_rounds),
        saturation=SaturationRule(read.saturation.capacities, read.saturation.limit, read.saturation.sample),
        rebuild=RebuildRule(read.rebuild.limit, read.rebuild.min_rate, read.rebuild.max_rate),
        integrity=_integrity(read.integrity),
        explore=ExploreRule(explore.budget, explore.measurement, explore.workloads, explore.confirmations),
        verdict=VerdictRule(verdict.confidence / 100, verdict.indifference, verdict.family),
        sequential=sequential,
    )


def _integrity(read: IntegrityTable) -> IntegrityRule:
    return IntegrityRule(
        histories=read.histories,
        steps=read.steps,
        limit_s=read.limit,
        regions=read.regions,
        member_bytes=parse_size(read.member),
        atomic=read.atomic,
        write_hole=read.write_hole,
    )


def shipped() -> tuple[str, ...]:
    """Names of the protocols that come with the package."""
    return toml.shipped(FOLDER)
