"""The shape of protocol files, for pydantic. Imported only when a document is read: pydantic is slow to load."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from pytest_ssdqual.qual.schema import BlockSize, Percent, Seconds, Strict, Throughput
from pytest_ssdqual.qual.units import parse_size


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
    repeats: Annotated[int, Field(ge=1, le=1000)]
    attempts: Annotated[int, Field(ge=1, le=1000)]


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


class ProtocolDocument(Strict):
    acceptance: bool
    purge: Literal["format", "discard"] = "format"
    fill: FillTable
    precondition: PreconditionTable
    measure: MeasureTable
    steady: SteadyTable = SteadyTable()
    array: ArrayTable = ArrayTable()
    loop: LoopTable = LoopTable()
    saturation: SaturationTable = SaturationTable()
    rebuild: RebuildTable = RebuildTable()

    @model_validator(mode="after")
    def _rounds_of_a_second(self) -> Self:
        # fio reports once a second; shorter rounds would be a share of one report.
        if self.measure.window / self.steady.window < 1:
            raise ValueError(
                f"measure.window ({self.measure.window:g} s) is cut into {self.steady.window} rounds "
                "(steady.window); each must last at least 1 s"
            )
        return self
