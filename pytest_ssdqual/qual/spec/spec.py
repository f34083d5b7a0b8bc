"""Spec of a product: data sheet and promises; TOML in, limits out.

The first promise of a file that matches decides. A claim that a product's file does not mention at all falls back to
``specs/default.toml``; one that it mentions, but not for this array and workload, is not promised. The ``…Table``
classes are the shape of spec files, for pydantic; `Spec` is the type that the program uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from pytest_ssdqual.qual.lots.lot import LotTable
from pytest_ssdqual.qual.lots.sampling_plan import Plan
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel, costs, expected_iops
from pytest_ssdqual.qual.spec import datasheet, toml
from pytest_ssdqual.qual.spec.claims import OF_RARE_EVENTS, TIMES_PER_HOUR, Claim, Direction, Limit, Scope
from pytest_ssdqual.qual.spec.datasheet import ONE_DRIVE, QUANTITIES, DataSheetValue, FigureTable, Published
from pytest_ssdqual.qual.spec.promises import Promise, Relation
from pytest_ssdqual.qual.spec.toml import Name, Percent, Size, Strict, Throughput, read_bound
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.baseline import BaselineLimit
from pytest_ssdqual.qual.workload.workload import Workload


class ProductTable(Strict):
    """Table ``product``: identity of the product."""

    name: Annotated[Name, Field(description="As verdicts and reports name it")]
    models: Annotated[
        list[Name],
        Field(description="Globs on the drive's model string; empty: only chosen by name", examples=[["ACME-9*"]]),
    ]
    vendor: Annotated[str, Field(description="Who makes it")] = ""
    capacity: Annotated[Size | None, Field(description="Of one drive, decimal as on its label")] = None
    source: Annotated[str, Field(description="What these facts are taken from")] = ""
    sequential_write: Annotated[
        Throughput | None, Field(description="Of one drive; only used to plan how long a fill takes")
    ] = None
    drives: Annotated[
        int | None, Field(ge=1, le=10_000, description="How many of them a bay has; with more or fewer no run begins")
    ] = None


class EnduranceTable(Strict):
    """Table ``endurance``: the rated bytes written."""

    tbw: Annotated[Size, Field(description="Rated bytes written over the drive's life", examples=["3,500 TB"])]


_LIMITS = (
    "at_least",
    "at_most",
    "min_percent_of_spec",
    "max_percent_of_spec",
    "min_percent_of_baseline",
    "max_percent_of_baseline",
)


class PromiseTable(Strict):
    """One ``[[promise]]``: arrays, workloads, and exactly one limit."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": [key]} for key in _LIMITS],
            "dependentSchemas": {"relative_to": {"anyOf": [{"required": [key]} for key in _LIMITS[:2]]}},
        }
    )

    # Order matters: a bound is read in the unit of the claim, or in per cent, which must be validated first.
    claim: Annotated[Claim, Field(strict=False, description="What is promised")]
    level: Annotated[RaidLevel | None, Field(strict=False, description="Of this level only")] = None
    width: Annotated[int | None, Field(ge=1, description="Of arrays with this number of members only")] = None
    state: Annotated[
        Literal["healthy", "degraded", "rebuilding"] | None,
        Field(description="Of arrays in this state only; healthy if left out, of a rebuild's claims rebuilding"),
    ] = None
    workload: Annotated[
        Name | None, Field(description="Glob on the workload's id", examples=["randwrite_*", "*_qd8"])
    ] = None
    relative_to: Annotated[
        str | None,
        Field(
            description="Id of another workload: at_least or at_most is in per cent of its quantity on the same array",
            examples=["randread_4k_qd8"],
        ),
    ] = None
    at_least: Annotated[
        float | None, Field(description="Lower limit in the unit of the claim", examples=["11,500 IOPS", 0.9, "40 %"])
    ] = None
    at_most: Annotated[
        float | None, Field(description="Upper limit in the unit of the claim", examples=["1.4 ms", 7, "10 %", "2 h"])
    ] = None
    min_percent_of_spec: Annotated[
        Percent | None, Field(description="Lower limit in per cent of what the figures give for the array")
    ] = None
    max_percent_of_spec: Annotated[
        Percent | None, Field(description="Upper limit in per cent of the published figure")
    ] = None
    min_percent_of_baseline: Annotated[
        Percent | None, Field(description="Lower limit in per cent of what the run of --ssd-baseline measured")
    ] = None
    max_percent_of_baseline: Annotated[
        Percent | None, Field(description="Upper limit in per cent of what the run of --ssd-baseline measured")
    ] = None
    times_per_hour: Annotated[
        float | None,
        Field(
            gt=0,
            description=f"How often the limit may be exceeded; {TIMES_PER_HOUR:g} if left out. Only of "
            f"{', '.join(sorted(OF_RARE_EVENTS))}",
        ),
    ] = None

    @field_validator("claim", mode="after")
    @classmethod
    def _of_drives(cls, given: Claim) -> Claim:
        if given.scope is Scope.LOT:
            raise ValueError(f"{given} is decided by the plan in the table lot, not by a promise")
        return given

    @field_validator("state", mode="after")
    @classmethod
    def _a_rebuild_rebuilds(cls, given: str | None, info: ValidationInfo) -> str | None:
        claim = info.data.get("claim")
        if claim and claim.scope is Scope.REBUILD and given not in (None, "rebuilding"):
            raise ValueError(f"{claim} is about arrays that are rebuilding, not {given}")
        return given

    @field_validator("relative_to", mode="after")
    @classmethod
    def _another_workload(cls, given: str | None, info: ValidationInfo) -> str | None:
        claim = info.data.get("claim")
        if given is None or claim is None:
            return given
        if claim.scope is not Scope.RUN:
            raise ValueError(f"{claim} is not about one workload, so it cannot be relative to another")
        return str(Workload.parse(given))

    @field_validator("at_least", "at_most", mode="before", json_schema_input_type=float | str)
    @classmethod
    def _in_the_unit_of_the_claim(cls, given: object, info: ValidationInfo) -> object:
        claim = info.data.get("claim")
        if claim is None or "relative_to" not in info.data:
            return 1.0  # that field has its own error
        if info.field_name != claim.direction:
            raise ValueError(f"{claim} is judged by {claim.direction}")
        return read_bound(given, Unit.PERCENT if info.data["relative_to"] else claim.unit)

    @field_validator("min_percent_of_spec", "max_percent_of_spec", mode="after")
    @classmethod
    def _of_a_figure(cls, given: float | None, info: ValidationInfo) -> float | None:
        claim = info.data.get("claim")
        if given is None or claim is None:
            return given
        if claim not in QUANTITIES:
            raise ValueError(f"no figure can be published for {claim}, so nothing is promised in per cent of it")
        if info.field_name != _percent_key(claim):
            raise ValueError(f"{claim} is judged by {claim.direction}: write {_percent_key(claim)}")
        return given

    @field_validator("times_per_hour", mode="after")
    @classmethod
    def _of_rare_events(cls, given: float | None, info: ValidationInfo) -> float | None:
        claim = info.data.get("claim")
        if given is not None and claim and claim not in OF_RARE_EVENTS:
            raise ValueError(f"{claim} is not about rare events: leave times_per_hour out")
        return given

    @field_validator("min_percent_of_baseline", "max_percent_of_baseline", mode="after")
    @classmethod
    def _of_a_run(cls, given: float | None, info: ValidationInfo) -> float | None:
        claim = info.data.get("claim")
        if given is not None and claim and info.field_name != _percent_key(claim, "baseline"):
            raise ValueError(f"{claim} is judged by {claim.direction}: write {_percent_key(claim, 'baseline')}")
        return given

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        given = [key for key in _LIMITS if getattr(self, key) is not None]
        possible = [self.claim.direction.value] + [_percent_key(self.claim)] * (self.claim in QUANTITIES)
        possible.append(_percent_key(self.claim, "baseline"))
        if len(given) != 1:
            raise ValueError(f"{self.claim} needs exactly one limit: {' or '.join(possible)}")
        if self.relative_to is not None and given[0] not in possible[:1]:
            raise ValueError(f"relative_to goes with {possible[0]}, in per cent, not with {given[0]}")
        return self

    @model_validator(mode="after")
    def _of_arrays_that_exist(self) -> Self:
        if self.level is None:
            return self
        facts = FACTS[self.level]
        if self.width is not None and not facts.allows(self.width):
            raise ValueError(f"{self.level} needs {facts.describe_widths()}, not {self.width}")
        if self.state not in (None, "healthy") and not facts.may_lose(self.width or facts.minimum):
            raise ValueError(f"{self.level} has nothing left to measure when a member is missing")
        return self


def _percent_key(claim: Claim, of: str = "spec") -> str:
    return f"{'min' if claim.direction is Direction.AT_LEAST else 'max'}_percent_of_{of}"


class SpecDocument(Strict):
    """A spec file: a product's data sheet and promises."""

    product: ProductTable
    figure: Annotated[list[FigureTable], Field(description="What is published")] = Field(default_factory=list)
    endurance: EnduranceTable | None = None
    lot: Annotated[LotTable | None, Field(description="What a sample of drives decides about")] = None
    promise: Annotated[list[PromiseTable], Field(description="What is promised; the first that matches decides")] = (
        Field(default_factory=list)
    )


if TYPE_CHECKING:
    from pytest_ssdqual.qual.spec.datasheet import FigureTable

    pass

__all__ = [
    "DataSheetValue",
    "Promise",
    "Published",
    "Relation",
    "Spec",
    "SpecError",
    "default",
    "find_by_model",
    "json_schema",
    "load",
    "shipped",
]

FOLDER = "specs"
DEFAULT = "default"


class SpecError(toml.DocumentError):
    """A spec that cannot be used; see ``DocumentError``."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One product: its published quantities and its promises."""

    #: The file's name without its ending.
    key: str
    name: str
    #: Globs on the drive's model string.
    models: tuple[str, ...]
    vendor: str
    capacity_bytes: int | None
    source: str
    #: Sequential write rate of one drive, for planning only.
    sequential_write_bytes_per_s: int | None
    #: Rated bytes written over the drive's life.
    endurance_bytes: int | None
    figures: tuple[DataSheetValue, ...]
    promises: tuple[Promise, ...]
    #: Plan by which a sample of drives decides about its lot; None if none was agreed.
    lot: Plan | None = None
    #: Number of these drives in a bay; None if none was agreed.
    drives: int | None = None

    def fits(self, model: str) -> bool:
        """Return whether this is the data sheet of a drive with this model string."""
        return any(fnmatchcase(model.strip(), pattern) for pattern in self.models)

    def published(self, claim: Claim | str, geometry: Geometry, workload: Workload) -> Published | None:
        """Published quantity of exactly this array and workload; None if there is none.

        For drives side by side that of one drive. Arrays with members missing have none.
        """
        return datasheet.find(self.figures, Claim(claim), geometry, workload)

    def expected_iops(self, geometry: Geometry, workload: Workload) -> float | None:
        """IOPS of an array by ``geometry.expected_iops`` from the published figures of one drive; for drives side by
        side, of each.

        None if a needed figure is not published at the workload's size and depth, and for workloads without a cost
        model: sequential, partly random, unaligned or mixed-size ones, independent streams, rebuilds, and any that is
        not ``Workload.is_usual``. Parity writes need the read figure too, because members are read first.
        """
        array = ONE_DRIVE if geometry.is_side_by_side else geometry
        if not _has_law(array, workload):
            return None
        found = {rw: self._of_one_drive(rw, array, workload) for rw in _needed(array, workload)}
        if None in found.values():
            return None
        # The cost model multiplies the rate of an unused direction by zero.
        reads, writes = (found.get(rw) for rw in ("randread", "randwrite"))
        return expected_iops(array, workload.read_fraction, reads or 1.0, writes or 1.0)

    def limit(self, claim: Claim | str, geometry: Geometry, workload: Workload) -> Limit | None:
        """Limit of the claim for this array and workload; None if none is promised in numbers.

        Then ``relation`` may give it in terms of another workload, ``of_baseline`` in terms of an earlier run; if
        neither does, ``why_no_limit`` gives the reason. ValueError for a claim that does not exist.
        """
        claim = Claim(claim)
        promise = self._promise(claim, geometry, workload)
        if promise is None or promise.relative_to is not None or promise.of_baseline:
            return None
        if promise.percent_of_spec is None:
            per_hour = self.times_per_hour(claim, geometry, workload)
            return Limit(claim.direction, promise.bound or 0.0, claim.unit, promise.source, per_hour)
        stated = self.published(claim, geometry, workload) or self._by_law(claim, geometry, workload)
        if stated is None:
            return None
        source = f"{promise.source}: {promise.percent_of_spec:g} % of {stated} from {self.key} ({stated.source})"
        per_hour = self.times_per_hour(claim, geometry, workload)
        return Limit(claim.direction, stated.value * promise.percent_of_spec / 100, claim.unit, source, per_hour)

    def times_per_hour(self, claim: Claim, geometry: Geometry, workload: Workload) -> float | None:
        """Times an hour that the limit of a claim about rare events may be exceeded; None for other claims."""
        if claim not in OF_RARE_EVENTS:
            return None
        promise = self._promise(claim, geometry, workload)
        return (promise and promise.times_per_hour) or TIMES_PER_HOUR

    def is_promised(self, claim: Claim, geometry: Geometry, workload: Workload) -> bool:
        """Return whether there is a promise: in numbers, in terms of another workload, or of a baseline."""
        where = claim, geometry, workload
        return any((self.limit(*where), self.relation(*where), self.of_baseline(*where)))

    def relation(self, claim: Claim | str, geometry: Geometry, workload: Workload) -> Relation | None:
        """Limit in per cent of another workload's quantity on the same array, if promised so."""
        promise = self._promise(Claim(claim), geometry, workload)
        return promise.relation if promise else None

    def of_baseline(self, claim: Claim | str, geometry: Geometry, workload: Workload) -> BaselineLimit | None:
        """Limit in per cent of what an earlier run measured, if promised so."""
        promise = self._promise(Claim(claim), geometry, workload)
        return promise.of_baseline if promise else None

    def references(self, geometry: Geometry, workload: Workload) -> tuple[Workload, ...]:
        """Other workloads that have to be measured to judge the claims about this one, each once."""
        claims = (claim for claim in Claim if claim.scope is Scope.RUN)
        related = (self.relation(claim, geometry, workload) for claim in claims)
        return tuple(dict.fromkeys(each.reference for each in related if each))

    def why_no_limit(self, claim: Claim | str, geometry: Geometry, workload: Workload) -> str:
        """Reason to skip a test if ``limit`` is None, as one sentence."""
        claim = Claim(claim)
        promise = self._promise(claim, geometry, workload)
        if promise is None:
            return f"{self.name} promises no {claim.label} for {geometry} {workload}"
        if promise.relative_to is not None:
            return f"{self.name} promises the {claim.label} of {workload} only relative to {promise.relative_to}"
        if promise.of_baseline:
            return f"{self.name} promises the {claim.label} of {workload} only in per cent of a baseline"
        array = ONE_DRIVE if geometry.is_side_by_side else geometry
        if claim is Claim.STEADY_IOPS and _has_law(array, workload):
            depth = workload.depth_per_member(array.width)
            needed = _needed(array, workload)
            missing = [rw for rw in needed if self._of_one_drive(rw, array, workload) is None]
            return (
                f"{self.name} publishes no figure for {' and '.join(missing)} {workload.bs} at queue depth {depth:g}, "
                f"which {workload} on {geometry} is held to"
            )
        return f"{self.name} publishes no {claim.label} of {workload} on {geometry}"

    def _promise(self, claim: Claim, geometry: Geometry, workload: Workload) -> Promise | None:
        own = [each for each in self.promises if each.claim is claim]
        if not own and self.key != DEFAULT:
            own = [each for each in default().promises if each.claim is claim]
        return next((each for each in own if each.matches(claim, geometry, workload)), None)

    def _of_one_drive(self, rw: str, array: Geometry, workload: Workload) -> float | None:
        """Published IOPS of one drive at each member's depth: a figure at depth 32 does not apply at 8."""
        depth = workload.depth_per_member(array.width)
        if depth != int(depth):
            return None
        found = self.published(Claim.STEADY_IOPS, ONE_DRIVE, Workload(rw, workload.bs, int(depth)))
        return found.value if found else None

    def _by_law(self, claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
        iops = self.expected_iops(geometry, workload) if claim is Claim.STEADY_IOPS else None
        return None if iops is None else Published(iops, Unit.IOPS, f"one drive's figures, by the law of {geometry}")


def _has_law(array: Geometry, workload: Workload) -> bool:
    """Return whether the cost model applies: every I/O random, of one size, aligned, and the array not rebuilding."""
    plain = workload.is_random and workload.random_percent == 100 and len(workload.sizes) == 1 and workload.is_usual
    return plain and workload.offset_bytes == 0 and not workload.has_streams and not array.rebuilding


def _needed(array: Geometry, workload: Workload) -> tuple[str, ...]:
    """Figures of one drive that the level's cost model needs."""
    reads = workload.read_fraction > 0 or costs(array).reads > 0
    return tuple(rw for rw, needed in (("randread", reads), ("randwrite", workload.read_fraction < 1)) if needed)


def load(path_or_name: str | Path) -> Spec:
    """Read a spec: the path of a TOML file, or the name of a shipped one. ``SpecError`` with every error."""
    name, content = toml.read(path_or_name, FOLDER, SpecError)
    pass

    return _spec(name, toml.checked(SpecDocument, name, content, SpecError))


def json_schema() -> dict[str, object]:
    """JSON Schema of a spec file, for editors and other tools; ``load`` checks what the schema cannot express."""
    pass

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **SpecDocument.model_json_schema(by_alias=True, mode="validation"),
        "title": "pytest-ssdqual spec",
    }


def shipped() -> tuple[str, ...]:
    """Names of the data sheets that come with the package."""
    return toml.shipped(FOLDER)


@cache
def default() -> Spec:
    """The promises for a product without its own file."""
    return load(DEFAULT)


def find_by_model(model: str) -> Spec | None:
    """The shipped data sheet of a drive with this model string; None if there is none."""
    return next((spec for spec in map(load, shipped()) if spec.fits(model)), None)


def _spec(name: str, content: SpecDocument) -> Spec:
    product = content.product
    figures = tuple(map(_figure, content.figure))
    if errors := datasheet.repeated(figures):
        raise SpecError(name, errors)
    return Spec(
        key=name.removesuffix(".toml"),
        name=product.name,
        models=tuple(product.models),
        vendor=product.vendor,
        capacity_bytes=product.capacity,
        source=product.source,
        sequential_write_bytes_per_s=product.sequential_write,
        endurance_bytes=content.endurance.tbw if content.endurance else None,
        figures=figures,
        promises=tuple(_promises(name, content.promise)),
        lot=content.lot.plan() if content.lot else None,
        drives=product.drives,
    )


def _figure(table: FigureTable) -> DataSheetValue:
    arrays = tuple(map(Geometry.parse, table.array)) if table.array else (ONE_DRIVE,)
    return DataSheetValue(arrays, table.workloads(), table.quantities(), table.source, table.approximate)


def _promises(name: str, tables: Iterable[PromiseTable]) -> Iterable[Promise]:
    for index, each in enumerate(tables):
        percent = each.max_percent_of_spec if each.min_percent_of_spec is None else each.min_percent_of_spec
        least, most = each.min_percent_of_baseline, each.max_percent_of_baseline
        yield Promise(
            claim=each.claim,
            level=each.level,
            width=each.width,
            state=each.state or "healthy",
            workload=each.workload,
            bound=each.at_least if each.at_most is None else each.at_most,
            percent_of_spec=percent,
            relative_to=Workload.parse(each.relative_to) if each.relative_to else None,
            source=f"{name} promise[{index}]",
            percent_of_baseline=most if least is None else least,
            times_per_hour=each.times_per_hour,
        )
