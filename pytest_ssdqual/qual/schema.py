"""The shape of spec and protocol files, for pydantic. Imported only when a document is read: pydantic is slow to load.

Everything arrives here as text with units and leaves as numbers in base units; nothing that reaches a
command line later (sizes, bitmap) keeps the user's spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from pytest_ssdqual.qual.claim import Claim
from pytest_ssdqual.qual.geometry import Level
from pytest_ssdqual.qual.units import (
    Unit,
    format_size,
    parse_duration,
    parse_latency,
    parse_number,
    parse_size,
    parse_throughput,
)


def _text(parse: Callable[[str], float]) -> Callable[[object], float]:
    """A parser that also says what it wants when the file has a bare number."""

    def read(given: object) -> float:
        if not isinstance(given, str):
            raise ValueError(f"{given!r} needs a unit, as text in quotes")  # noqa: TRY004  pydantic collects ValueErrors
        return parse(given)

    return read


def _one_spelling(text: str) -> str:
    return format_size(parse_size(text))


def _named(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


def parse_bound(text: str, unit: Unit) -> float:
    """A limit in base units: ``1.4 ms`` → 1_400_000, ``11,500 IOPS``, ``5 %``, ``1.5`` or ``1.5 x`` for ratios."""
    if unit is Unit.NANOSECONDS:
        return parse_latency(text)
    names, example = {
        Unit.IOPS: (("iops",), '"11,500 IOPS"'),
        Unit.PERCENT: (("%",), '"5 %"'),
        Unit.RATIO: (("", "x", "×"), '"1.5"'),
        Unit.BYTES_PER_SECOND: (("b/s",), '"450 MB/s"'),
    }[unit]
    try:
        number, name = parse_number(text)
    except ValueError:
        number, name = None, ""
    if number is None or name.lower() not in names or not number > 0:
        kind = {Unit.IOPS: "number of IOPS", Unit.PERCENT: "percentage", Unit.RATIO: "ratio"}.get(unit, "rate")
        raise ValueError(f'"{text}" is not a {kind} above zero; write e.g. {example}')
    return float(number)


Size = Annotated[int, BeforeValidator(_text(parse_size))]
BlockSize = Annotated[str, AfterValidator(_one_spelling)]
Seconds = Annotated[float, BeforeValidator(_text(parse_duration))]
Throughput = Annotated[int, BeforeValidator(_text(parse_throughput))]
Name = Annotated[str, AfterValidator(_named)]
Depth = Annotated[int, Field(ge=1, le=65536)]
Percent = Annotated[float, Field(gt=0, le=1000)]


class Strict(BaseModel):
    """Unknown keys are errors, and ``true`` is no number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ProductTable(Strict):
    name: Name
    models: list[Name]
    vendor: str = ""
    capacity: Size | None = None
    source: str = ""
    sequential_write: Throughput | None = None


class FigureTable(Strict):
    rw: Literal["randread", "randwrite"]
    bs: BlockSize
    queue_depths: Annotated[list[Depth], Field(min_length=1)]
    iops: Annotated[int, Field(gt=0)]
    source: Name


class EnduranceTable(Strict):
    tbw: Size


class PromiseTable(Strict):
    # Order matters: the bounds are read in the unit of the claim, which has to be known by then.
    claim: Annotated[Claim, Field(strict=False)]
    level: Annotated[Level | None, Field(strict=False)] = None
    workload: Name | None = None
    at_least: float | None = None
    at_most: float | None = None
    min_percent_of_spec: Percent | None = None

    @field_validator("at_least", "at_most", mode="before")
    @classmethod
    def _in_the_unit_of_the_claim(cls, given: object, info: ValidationInfo) -> object:
        claim = info.data.get("claim")
        if claim is None:
            return 1.0  # the claim's own error is enough
        if info.field_name != claim.direction:
            raise ValueError(f"{claim} is judged by {claim.direction}")
        if claim.unit is Unit.RATIO and isinstance(given, int | float) and not isinstance(given, bool):
            given = str(given)
        return _text(lambda text: parse_bound(text, claim.unit))(given)

    @field_validator("min_percent_of_spec", mode="after")
    @classmethod
    def _of_a_figure(cls, given: float | None, info: ValidationInfo) -> float | None:
        claim = info.data.get("claim")
        if given is not None and claim not in (None, Claim.STEADY_IOPS):
            raise ValueError(f"only {Claim.STEADY_IOPS} can be given in percent of a published figure, not {claim}")
        return given

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        given = [each for each in (self.at_least, self.at_most, self.min_percent_of_spec) if each is not None]
        if len(given) != 1:
            also = " or min_percent_of_spec" if self.claim is Claim.STEADY_IOPS else ""
            raise ValueError(f"{self.claim} needs exactly one limit: {self.claim.direction}{also}")
        return self


class SpecDocument(Strict):
    product: ProductTable
    figure: list[FigureTable] = Field(default_factory=list)
    endurance: EnduranceTable | None = None
    promise: list[PromiseTable] = Field(default_factory=list)


class FillTable(Strict):
    passes: Annotated[int, Field(ge=0, le=100)]
    bs: BlockSize


class PreconditionTable(Strict):
    step: Annotated[Seconds, Field(gt=0)]
    limit: Annotated[Seconds, Field(gt=0)]

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

    @field_validator("chunk")
    @classmethod
    def _power_of_two(cls, chunk: str) -> str:
        size = parse_size(chunk)
        if size < 4096 or size & (size - 1):
            raise ValueError(f'"{chunk}" is not a power of two of at least 4k')
        return chunk


class ProtocolDocument(Strict):
    acceptance: bool
    purge: Literal["format", "discard"] = "format"
    fill: FillTable
    precondition: PreconditionTable
    measure: MeasureTable
    steady: SteadyTable = SteadyTable()
    array: ArrayTable = ArrayTable()

    @model_validator(mode="after")
    def _rounds_of_a_second(self) -> Self:
        # fio reports once a second; shorter rounds would be a share of one report.
        if self.measure.window / self.steady.window < 1:
            raise ValueError(
                f"measure.window ({self.measure.window:g} s) is cut into {self.steady.window} rounds "
                "(steady.window); each must last at least 1 s"
            )
        return self
