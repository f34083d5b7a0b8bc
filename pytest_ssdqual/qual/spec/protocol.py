"""Protocol: how drives are conditioned, and for how long they are measured.

`Protocol` and its rules are what the program uses, in seconds and bytes. A rule is also the type of its table in a
protocol file: pydantic validates the table, by the key that a field's ``alias`` gives, into the rule itself. Rules made
by code are not validated.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.toml import TABLE, BlockSize, Percent, Percentage, Seconds, Strict, Throughput, quoted
from pytest_ssdqual.qual.units import format_size, parse_duration, parse_size

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

    window: Annotated[int, Field(ge=3, le=1000)] = 5
    range_percent: Percent = 20.0
    slope_percent: Percent = 10.0


#: Place of md's write-intent bitmap.
Bitmap = Literal["none", "internal"]


def _power_of_two(chunk: str) -> str:
    size = parse_size(chunk)
    if size < 4096 or size & (size - 1):
        raise ValueError(f'"{chunk}" is not a power of two of at least 4k')
    return chunk


@dataclass(frozen=True, slots=True)
class ArraySettings:
    """md settings that change performance; all are recorded with every run."""

    chunk: Annotated[BlockSize, AfterValidator(_power_of_two)] = "64k"
    bitmap: Bitmap = "none"
    stripe_cache_pages: Annotated[int, Field(ge=17, le=32768)] = 4096
    #: Kernel threads for RAID 5 and 6; 0: one per CPU of the machine.
    group_threads: Annotated[int, Field(ge=0, le=1024)] = 0
    #: Layout of RAID 5 and 6.
    raid5_layout: Literal["left-symmetric", "left-asymmetric", "right-symmetric", "right-asymmetric"] = "left-symmetric"
    #: Only layouts with two copies: capacity, scaling and prediction count two.
    raid10_layout: Annotated[str, Field(pattern="^[nfo]2$")] = "n2"


#: State of the drives' volatile write caches during a run: as they are, or switched where the drive lets it.
WriteCacheRule = Literal["as found", "on", "off"]
AS_FOUND: WriteCacheRule = "as found"

#: Value of a setting that the program chooses by itself.
AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True, slots=True)
class LoadRule:
    """How fio puts I/O on the drives.

    ``auto`` is what a short calibration on a drive finds, so that fio is not the bound; in a protocol that is not for
    acceptance it is libaio and one job.
    """

    engine: Literal["auto", "libaio", "io_uring"] = AUTO
    #: Jobs that share the queue depth of random I/O to one drive.
    jobs: Annotated[Annotated[int, Field(ge=1, le=64)] | Literal["auto"], Field(union_mode="left_to_right")] = AUTO
    #: Run the jobs of a drive on the CPUs of its NUMA node.
    numa: bool = True


@dataclass(frozen=True, slots=True)
class MemberRule:
    """Measurements of the bare drives before arrays, from which arrays are predicted; none with a window of 0."""

    #: Counted time of each, cut into the rounds of the steady-state rule.
    window_s: Annotated[Seconds, Field(alias="window", ge=0)] = 30.0
    ramp_s: Annotated[Seconds, Field(alias="ramp", ge=0)] = 5.0


@dataclass(frozen=True, slots=True)
class ScreenRule:
    """Predict, then confirm: of each level only some points are measured, the others are predicted.

    Measured are the points closest to their limits, and a random sample; see ``qual.raid.screening``.
    """

    #: How far a measured figure may be from its prediction.
    tolerance_percent: Annotated[Percentage, Field(alias="tolerance", gt=0, le=50)] = 10.0
    #: The sample is large enough to show that fewer of the points of a level are beyond the tolerance.
    outside_percent: Annotated[Percentage, Field(alias="outside", gt=0, le=90)] = 15.0
    #: Points of each level with the smallest predicted margins, all of which are measured.
    worst: Annotated[int, Field(ge=0, le=10_000)] = 4


@dataclass(frozen=True, slots=True)
class LoopRule:
    """Rounds of many workloads in sequence (SNIA PTS), each ``cell_s`` long, until steady."""

    cell_s: Annotated[Seconds, Field(alias="cell", ge=1)] = 60.0
    max_rounds: Annotated[int, Field(ge=3, le=1000)] = 25


@dataclass(frozen=True, slots=True)
class SaturationRule:
    """Writes from the purged state, until this many user capacities are written or ``limit_s`` is over."""

    capacities: Annotated[float, Field(gt=0, le=100)] = 4.0
    limit_s: Annotated[Seconds, Field(alias="limit", gt=0)] = 6 * 3600.0
    #: Length of one point of the curve.
    sample_s: Annotated[Seconds, Field(alias="sample", ge=1)] = 60.0

    def validated(self) -> Self:
        """Raise ``ValueError`` without room for a curve."""
        if self.limit_s < 10 * self.sample_s:
            raise ValueError(
                f"the limit ({self.limit_s:g} s) has room for fewer than 10 samples of {self.sample_s:g} s"
            )
        return self


@dataclass(frozen=True, slots=True)
class RebuildRule:
    """A rebuild under load. Rates are md's ``sync_speed_min`` and ``sync_speed_max``; None: the kernel's own."""

    limit_s: Annotated[Seconds, Field(alias="limit", gt=0)] = 24 * 3600.0
    min_bytes_per_s: Annotated[Annotated[Throughput, Field(gt=0)] | None, Field(alias="min_rate")] = None
    max_bytes_per_s: Annotated[Annotated[Throughput, Field(gt=0)] | None, Field(alias="max_rate")] = None

    def validated(self) -> Self:
        """Raise ``ValueError`` for rates in the wrong order."""
        least, most = self.min_bytes_per_s, self.max_bytes_per_s
        if least and most and most < least:
            raise ValueError(f"max_rate ({most} B/s) is below min_rate ({least} B/s)")
        return self


@dataclass(frozen=True, slots=True)
class ExploreRule:
    """A search for a workload that breaks a promise; see ``qual.explore.dimensions``."""

    #: Drive time of search and shrinking together, for each array and class of workloads.
    budget_s: Annotated[Seconds, Field(alias="budget", gt=0)] = 4 * 3600.0
    #: Time of one workload without the ramp: its window, or in a sequential protocol its last look. None for the
    #: protocol's own window up to a minute, or twice the first look.
    measurement_s: Annotated[Annotated[Seconds, Field(ge=1)] | None, Field(alias="measurement")] = None
    #: Most different workloads.
    workloads: Annotated[int, Field(ge=1, le=100_000)] = 200
    #: Most suspects that are measured a second time, by the protocol itself, until one is confirmed; not part of the
    #: budget.
    confirmations: Annotated[int, Field(ge=1, le=100)] = 3


#: Least ``integrity.member``: room for all regions of the widest stripes.
LEAST_MEMBER_BYTES = 16 << 20


def _member_bytes(text: str) -> int:
    size = parse_size(text)
    if size < LEAST_MEMBER_BYTES or size % (1 << 20):
        raise ValueError(f'"{text}" is not a whole number of MiB, at least {format_size(LEAST_MEMBER_BYTES)}')
    return size


@dataclass(frozen=True, slots=True)
class IntegrityRule:
    """Integrity test: number and length of the step sequences that an array's data must survive."""

    histories: Annotated[int, Field(ge=1, le=10_000)] = 20
    #: Steps of each history.
    steps: Annotated[int, Field(ge=1, le=1000)] = 40
    #: Drive time of the test on one array; as much again to shrink a failing history.
    limit_s: Annotated[Seconds, Field(alias="limit", gt=0)] = 4 * 3600.0
    #: Regions of the array that are written: pairs of neighbours from its first byte to its last.
    regions: Annotated[int, Field(ge=2, le=64)] = 16
    #: Bytes that the array uses of each member; the time of a rebuild is proportional to it.
    member_bytes: Annotated[int, BeforeValidator(quoted(_member_bytes)), Field(alias="member")] = 4 << 30
    #: Unit that the drives never tear when the power fails: their ``logical`` or ``physical`` block.
    atomic: Literal["logical", "physical"] = "logical"
    #: Also cut the power during writes to a degraded RAID 5 or 6, which need not survive that (write hole).
    write_hole: bool = False


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """Confidence and error control of verdicts."""

    #: Two-sided confidence of the interval that a promise is judged by.
    confidence: Annotated[Percentage, Field(ge=50, lt=100), AfterValidator(lambda percent: percent / 100)] = 0.95
    #: Indifference margin: an interval within it on both sides of the limit counts as on the limit, and no more time is
    #: spent on it.
    indifference_percent: Annotated[Percentage, Field(alias="indifference", le=50)] = 1.0
    #: Correction for many claims in one run: ``none`` or ``bonferroni`` (of failures only).
    family: Literal["none", "bonferroni"] = "none"


#: Fewest reports at the first look; with fewer an interval would be a guess.
FEWEST_REPORTS = 10


def _whole_seconds(text: str) -> int:
    seconds = parse_duration(text)
    if seconds != int(seconds):
        raise ValueError(f"fio reports after whole seconds, not every {seconds:g} s")
    return int(seconds)


@dataclass(frozen=True, slots=True)
class SequentialRule:
    """Group-sequential measurement: looks at ``first_s``, then each ``growth`` times later, up to ``limit_s``.

    Times count from the end of the ramp.
    """

    first_s: Annotated[Seconds, Field(alias="first", gt=0)] = 420.0
    growth: Annotated[float, Field(ge=1.05, le=10)] = 1.1
    limit_s: Annotated[Seconds, Field(alias="limit", gt=0)] = 5 * 3600.0
    #: Interval between fio's reports.
    report_s: Annotated[int, BeforeValidator(quoted(_whole_seconds)), Field(alias="report", ge=1)] = 5
    #: Half width of the interval of IOPS, in per cent, at which a figure without a limit is precise enough.
    precision_percent: Annotated[Percentage, Field(alias="precision", le=50)] = 1.0
    #: Slowest expected period of a drive: within 1.6 times this every period of garbage collection has occurred, and
    #: transients with up to twice this time constant are fitted.
    slowest_s: Annotated[Seconds, Field(alias="slowest", gt=0)] = 2100.0
    #: Longest plateau, of a cache or of spare blocks: until then figures far from their limit are not accepted.
    plateau_s: Annotated[Seconds, Field(alias="plateau", ge=0)] = 2100.0
    #: Minimum observation of the slowest I/Os and seconds, if a claim depends on them.
    observe_s: Annotated[Seconds, Field(alias="observe", ge=0)] = 2100.0
    #: Work lost in one pause for garbage collection that a short series may not contain yet, in seconds of full speed.
    pause_s: Annotated[Seconds, Field(alias="pause", ge=0)] = 60.0

    def validated(self) -> Self:
        """Raise ``ValueError`` unless the first look is before the limit and has enough reports."""
        if self.limit_s < self.first_s:
            raise ValueError(f"the limit ({self.limit_s:g} s) is before the first look ({self.first_s:g} s)")
        if self.first_s < FEWEST_REPORTS * self.report_s:
            raise ValueError(
                f"the first look ({self.first_s:g} s) would see fewer than {FEWEST_REPORTS} reports, one comes every "
                f"{self.report_s:g} s"
            )
        return self


#: Shortest cell for acceptance.
LEAST_CELL_S = 20.0


@dataclass(frozen=True, slots=True)
class InterleaveRule:
    """Workloads of one array take turns: rounds of one cell each, until each is decided; see ``stats.interleaving``.

    Reads and workloads that write have rounds of their own. What has too few workloads for rounds is measured without
    a pause, by ``SequentialRule``.
    """

    #: Counted time of a cell, and the ramp before it.
    cell_s: Annotated[Seconds, Field(alias="cell", ge=2)] = 60.0
    ramp_s: Annotated[Seconds, Field(alias="ramp", ge=0)] = 5.0
    #: Rounds at the first look, the factor to the next one, and the most.
    first: Annotated[int, Field(ge=5, le=1000)] = 6
    growth: Annotated[float, Field(ge=1.05, le=10)] = 1.25
    rounds: Annotated[int, Field(ge=5, le=1000)] = 120
    #: Least time from the first round to a look. Of few workloads the first rounds take minutes, in which levels that
    #: wander hardly move.
    span_s: Annotated[Seconds, Field(alias="span", ge=0)] = 3600.0
    #: Fewest workloads that take turns.
    workloads: Annotated[int, Field(ge=2, le=1000)] = 3

    def validated(self) -> Self:
        """Raise ``ValueError`` unless the first look is before the last round."""
        if self.rounds < self.first:
            raise ValueError(f"the first look is after {self.first} rounds, and there are at most {self.rounds}")
        return self


@dataclass(frozen=True, slots=True)
class Fill:
    """Sequential passes over the whole user area after a purge; no pass for writes from the fresh state."""

    passes: int
    bs: str

    @classmethod
    def of(cls, protocol: Protocol) -> Fill:
        return cls(protocol.fill_passes, protocol.fill_bs)


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
    #: Write caches of the drives; what is switched is restored when the run ends.
    write_cache: WriteCacheRule = AS_FOUND
    #: User capacities to write before the array may be found steady (STEC: past the raw capacity).
    precondition_capacities: float = 0.0
    #: True if the bare drives are filled and conditioned, side by side and once for each class of workloads, and arrays
    #: are assembled of them; False if each array is filled and conditioned through md.
    conditions_drives: bool = False
    steady: SteadyRule = field(default_factory=SteadyRule)
    array: ArraySettings = field(default_factory=ArraySettings)
    load: LoadRule = field(default_factory=LoadRule)
    members: MemberRule = field(default_factory=MemberRule)
    loop: LoopRule = field(default_factory=LoopRule)
    saturation: SaturationRule = field(default_factory=SaturationRule)
    rebuild: RebuildRule = field(default_factory=RebuildRule)
    integrity: IntegrityRule = field(default_factory=IntegrityRule)
    explore: ExploreRule = field(default_factory=ExploreRule)
    verdict: VerdictRule = field(default_factory=VerdictRule)
    #: None if every measurement takes the same time, ``window_s``.
    sequential: SequentialRule | None = None
    #: None if workloads do not take turns; only of a sequential protocol.
    interleave: InterleaveRule | None = None
    #: None if every point is measured.
    screen: ScreenRule | None = None

    @property
    def round_s(self) -> float:
        """Length of one round of the steady-state window."""
        return self.window_s / self.steady.window

    @property
    def of_members(self) -> Protocol:
        """The protocol by which bare drives are measured before arrays: once, for a fixed time."""
        rule, attempts = self.members, max(self.attempts, SEQUENTIAL_ATTEMPTS)
        return replace(
            self, sequential=None, window_s=rule.window_s, tail_window_s=None, ramp_s=rule.ramp_s, repeats=1,
            attempts=attempts,
        )  # fmt: skip

    def window_of(self, *, tail: bool) -> float:
        """Counted time of a measurement in seconds; ``tail`` if a percentile of its tail is judged."""
        return self.tail_window_s if tail and self.tail_window_s is not None else self.window_s


class FillTable(Strict):
    passes: Annotated[int, Field(ge=0, le=100)]
    bs: BlockSize


class PreconditionTable(Strict):
    step: Annotated[Seconds, Field(gt=0)]
    limit: Annotated[Seconds, Field(gt=0)]
    capacities: Annotated[float, Field(ge=0, le=100)] = 0.0
    of: Literal["drives", "arrays"] = "arrays"

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


class CommonDocument(Strict):
    """The tables that every protocol has."""

    acceptance: bool
    purge: Literal["format", "discard"] = "format"
    write_cache: WriteCacheRule = AS_FOUND
    fill: FillTable
    precondition: PreconditionTable
    verdict: Annotated[VerdictRule, TABLE] = VerdictRule()
    steady: Annotated[SteadyRule, TABLE] = SteadyRule()
    array: Annotated[ArraySettings, TABLE] = ArraySettings()
    load: Annotated[LoadRule, TABLE] = LoadRule()
    members: Annotated[MemberRule, TABLE] = MemberRule()
    screen: Annotated[ScreenRule, TABLE] | None = None
    loop: Annotated[LoopRule, TABLE] = LoopRule()
    saturation: Annotated[SaturationRule, TABLE, AfterValidator(SaturationRule.validated)] = SaturationRule()
    rebuild: Annotated[RebuildRule, TABLE, AfterValidator(RebuildRule.validated)] = RebuildRule()
    integrity: Annotated[IntegrityRule, TABLE] = IntegrityRule()
    explore: Annotated[ExploreRule, TABLE] = ExploreRule()

    def _require_budget(self, measurement_s: float) -> None:
        if self.explore.budget_s < measurement_s:
            raise ValueError(
                f"explore.budget ({self.explore.budget_s:g} s) is less than one measurement takes ({measurement_s:g} s)"
            )

    @model_validator(mode="after")
    def _members_in_rounds(self) -> Self:
        if self.members.window_s:
            self._require_rounds("members.window", self.members.window_s)
        elif self.screen:
            raise ValueError("the table screen predicts arrays from bare drives, and members.window is 0")
        return self

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
        if self.explore.measurement_s is not None:
            self._require_rounds("explore.measurement", self.explore.measurement_s)
        window_s = self.explore.measurement_s or min(self.measure.window, LONGEST_PROBE_S)
        self._require_budget(self.measure.ramp + window_s)
        return self


class SequentialDocument(CommonDocument):
    """A protocol in which a measurement runs until its verdict is certain."""

    measure: RampTable
    sequential: Annotated[SequentialRule, TABLE, AfterValidator(SequentialRule.validated)]
    interleave: Annotated[InterleaveRule, TABLE, AfterValidator(InterleaveRule.validated)] | None = None

    @model_validator(mode="after")
    def _all_or_some(self) -> Self:
        if self.interleave and self.screen:
            raise ValueError("the table interleave measures all points of an array, and the table screen only some")
        if self.interleave and self.acceptance and self.interleave.cell_s < LEAST_CELL_S:
            raise ValueError(
                f"interleave.cell ({self.interleave.cell_s:g} s) is {LEAST_CELL_S:g} s at least for acceptance, as its "
                "first seconds are compared with the rest"
            )
        return self

    @model_validator(mode="after")
    def _rounds_of_a_second(self) -> Self:
        self._require_rounds("sequential.first", self.sequential.first_s)
        first, measurement = self.sequential.first_s, self.explore.measurement_s
        if measurement is not None and measurement < first:
            raise ValueError(f"explore.measurement ({measurement:g} s) is before the first look ({first:g} s)")
        self._require_budget(self.measure.ramp + first)
        return self


FOLDER = "protocols"


class ProtocolError(toml.DocumentError):
    """A protocol that cannot be used; see ``DocumentError``."""


def load(path_or_name: str | Path) -> Protocol:
    """Read a protocol: the path of a TOML file, or the name of a shipped one. ``ProtocolError`` with every error."""
    name, content = toml.read(path_or_name, FOLDER, ProtocolError)
    if "sequential" in content:
        looks = toml.checked(SequentialDocument, name, content, ProtocolError)
        rule = looks.sequential
        return replace(
            _protocol(name, looks, (looks.measure.ramp, rule.first_s, 1, SEQUENTIAL_ATTEMPTS)),
            tail_window_s=min(rule.limit_s, max(rule.first_s, rule.observe_s)),
            sequential=rule,
            interleave=looks.interleave,
        )
    fixed = toml.checked(ProtocolDocument, name, content, ProtocolError)
    times = fixed.measure
    found = _protocol(name, fixed, (times.ramp, times.window, times.repeats, times.attempts))
    return replace(found, tail_window_s=times.tail_window)


def _protocol(name: str, read: CommonDocument, measure: tuple[float, float, int, int]) -> Protocol:
    ramp_s, window_s, repeats, attempts = measure
    return Protocol(
        name=name.removesuffix(".toml"),
        acceptance=read.acceptance,
        fill_passes=read.fill.passes,
        fill_bs=read.fill.bs,
        precondition_s=read.precondition.step,
        precondition_limit_s=read.precondition.limit,
        precondition_capacities=read.precondition.capacities,
        conditions_drives=read.precondition.of == "drives",
        ramp_s=ramp_s,
        window_s=window_s,
        repeats=repeats,
        attempts=attempts,
        purge=read.purge,
        write_cache=read.write_cache,
        steady=read.steady,
        array=read.array,
        load=read.load,
        members=read.members,
        screen=read.screen,
        loop=read.loop,
        saturation=read.saturation,
        rebuild=read.rebuild,
        integrity=read.integrity,
        explore=read.explore,
        verdict=read.verdict,
    )


def shipped() -> tuple[str, ...]:
    """Names of the protocols that come with the package."""
    return toml.shipped(FOLDER)
