"""The shape of protocol files, for pydantic. Imported only when a document is read: pydantic is slow to load."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from pytest_ssdqual.qual.explore.dimensions import LONGEST_PROBE_S
from pytest_ssdqual.qual.spec.protocol import ExploreRule, IntegrityRule, SequentialRule
from pytest_ssdqual.qual.spec.schema import BlockSize, Percent, Percentage, Seconds, Strict, Throughput
from pytest_ssdqual.qual.units import format_size, parse_size

_LOOKS, _EXPLORE, _LIVES = SequentialRule(), ExploreRule(), IntegrityRule()
#: Of what an array is to use of each member: room for all regions of the widest stripes.
LEAST_MEMBER_BYTES = 16 << 20
#: Below this many reports at the first look an interval would be a guess.
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
    """Of a protocol with the table ``sequential``."""

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
    """Of a search for a workload that breaks a promise."""

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
    """What a protocol says however long it measures."""

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
        # fio reports once a second; shorter rounds would be a share of one report.
        if window_s / self.steady.window < 1:
            raise ValueError(
                f"{what} ({window_s:g} s) is cut into {self.steady.window} rounds "
                "(steady.window); each must last at least 1 s"
            )


class ProtocolDocument(CommonDocument):
    """Every measurement takes the same time."""

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
    """A measurement takes until its verdict is certain."""

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
