"""Data-sheet values of a product: published quantities of one drive, or of an array of them, under a workload.

A data sheet publishes one or two maxima of random I/O, nearly never at the depth of an array's members. Then the drives
are held to these figures, the anchors, at the sheet's own conditions, and the array to what its drives do by their own
curves, if they met their anchors: the chain of promises sheet → drive → array (`raid.member_curve`,
`raid.prediction`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, PlainValidator, PrivateAttr, model_validator

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import ONE_DRIVE, Geometry
from pytest_ssdqual.qual.spec.claims import (
    OF_COUNTERS,
    OF_LATENCY,
    Claim,
    Published,
    Scope,
    require_factor,
    require_meant,
)
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.toml import LATENCY, NUMBER, RATE, Depth, Name, Strict, read_bound, text_like
from pytest_ssdqual.qual.units import Unit, format_size, parse_size
from pytest_ssdqual.qual.workload.workload import PATTERNS, Workload

ParsedT = TypeVar("ParsedT")

#: Keys of a published figure, by claim: the quantities of one measurement of one array.
QUANTITIES = {
    claim: "iops" if claim is Claim.STEADY_IOPS else claim.value
    for claim in Claim
    if claim.scope in (Scope.RUN, Scope.SATURATION) and claim not in {*OF_COUNTERS, Claim.RATE_KEPT}
}
#: Workload ids of profiles, which have a name instead of pattern and size.
PROFILE = re.compile(
    r"(?P<name>[a-z][a-z0-9]*)(?:_zipf\d+)?(?:_zoned[\dx_]+\d)?(?:_off\d+[kmg]?)?(?:_gap\d+[kmg]?)?(?:_reg\d+)?"
    r"(?:_align\d+[kmg]?)?(?:_sync)?(?:_fsync\d+)?(?:_comp\d+)?(?:_dedup\d+)?(?:_x\d+)?(?:_s\d+)?_(?:t\d+x)?qd\d+"
)
#: Conditions under which a figure is judged whose source states none, by access pattern. Random rates are maxima of a
#: deep queue: 512 outstanding of eight jobs, since one job's CPU is the bound above half a million IOPS. SATA and SAS
#: drives queue less and have ``SHALLOW_CONDITIONS``. A latency without conditions is that of one I/O at a time.
DEFAULT_CONDITIONS = {"randread": "t8xqd64", "randwrite": "t8xqd64", "read": "qd32", "write": "qd32"}
DEFAULT_LATENCY_CONDITIONS = "qd1"
SHALLOW_CONDITIONS = "qd32"
SHALLOW = frozenset({DriveClass.SATA, DriveClass.SAS})
#: Latencies of the same I/Os, of which a sheet states none below one before it. A mean above the 99th percentile is
#: possible, but takes one I/O in a hundred that lasts about a hundred times as long as the others.
ASCENDING = (
    (
        Claim.P50_LATENCY,
        Claim.P90_LATENCY,
        Claim.P95_LATENCY,
        Claim.P99_LATENCY,
        Claim.P99_9_LATENCY,
        Claim.P99_99_LATENCY,
        Claim.P99_999_LATENCY,
        Claim.MAX_LATENCY,
    ),
    (Claim.MEAN_LATENCY, Claim.P99_LATENCY),
)


def _quantity(unit: Unit) -> Callable[[object], float]:
    def read(given: object) -> float:
        return require_meant(given, read_bound(given, unit), unit)

    return read


def _factor(given: object) -> float:
    return require_factor(given, read_bound(given, Unit.RATIO))


def workload_id(given: str) -> str:
    """The canonical spelling of a workload's id; a profile's id, which is only a name, is unchanged."""
    profile = PROFILE.fullmatch(given)
    return given if profile and profile["name"] not in PATTERNS else str(Workload.parse(given))


def _whole_array(given: str) -> Geometry:
    array = Geometry.parse(given)
    if array.missing or (array.is_side_by_side and array.width > 1):
        raise ValueError(f"{given!r} must be one drive or one whole array; write e.g. raid5x4")
    return array


def _list_of(parse: Callable[[str], ParsedT]) -> Callable[[object], tuple[ParsedT, ...]]:
    """Build a parser for one text or a list of texts."""

    def read(given: object) -> tuple[ParsedT, ...]:
        given = given if isinstance(given, list) else [given]
        texts = [each for each in given if isinstance(each, str)]
        if not texts or texts != given:
            raise ValueError(f"{given!r} should be text in quotes, or a list of texts")
        return tuple(map(parse, texts))

    return read


def _each_of(*keys: str) -> list[JsonValue]:
    return [{"required": [key]} for key in keys]


_ONE_OR_MORE = str | Annotated[list[str], Field(min_length=1)]
_IOPS_TEXT = Annotated[float, Field(gt=0)] | text_like(rf"{NUMBER}[iI][oO][pP][sS]\s*$", "75,000 IOPS")
_RATIO_TEXT = Annotated[float, Field(gt=0)] | text_like(rf"{NUMBER}[xX×]?\s*$", "1.5")
_Texts = tuple[str, ...] | None
_Sizes = Annotated[
    _Texts, BeforeValidator(_list_of(lambda text: format_size(parse_size(text))), json_schema_input_type=_ONE_OR_MORE)
]
_Workloads = Annotated[_Texts, BeforeValidator(_list_of(workload_id), json_schema_input_type=_ONE_OR_MORE)]
_Arrays = Annotated[
    tuple[Geometry, ...] | None, PlainValidator(_list_of(_whole_array), json_schema_input_type=_ONE_OR_MORE)
]
_Iops = Annotated[float | None, BeforeValidator(_quantity(Unit.IOPS), json_schema_input_type=_IOPS_TEXT)]
_Latency = Annotated[
    float | None, BeforeValidator(_quantity(Unit.NANOSECONDS), json_schema_input_type=text_like(LATENCY, "1.4 ms"))
]
_Rate = Annotated[
    float | None, BeforeValidator(_quantity(Unit.BYTES_PER_SECOND), json_schema_input_type=text_like(RATE, "2300 MB/s"))
]
_Ratio = Annotated[float | None, BeforeValidator(_quantity(Unit.RATIO), json_schema_input_type=_RATIO_TEXT)]
_Factor = Annotated[float | None, BeforeValidator(_factor, json_schema_input_type=_RATIO_TEXT)]


class DataSheetValue(Strict):
    """One ``[[figure]]`` of a spec file: for one drive or for arrays of it; either workload, or rw, bs and
    queue_depths, or rw, bs and conditions.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["workload"], "not": {"anyOf": _each_of("rw", "bs", "queue_depths", "conditions")}},
                {
                    "required": ["rw", "bs", "queue_depths"],
                    "not": {"anyOf": _each_of("workload", "array", "conditions")},
                },
                {
                    "required": ["rw", "bs", "conditions"],
                    "not": {"anyOf": _each_of("workload", "array", "queue_depths")},
                },
            ],
            "anyOf": _each_of(*QUANTITIES.values()),
        }
    )

    rw: Literal["randread", "randwrite", "read", "write"] | None = None
    """Access pattern, for one drive"""
    bs: Annotated[_Sizes, Field(examples=["4k", ["4k", "8k"]])] = None
    """Transfer size, or a list of sizes"""
    queue_depths: Annotated[list[Depth] | None, Field(min_length=1, examples=[[32]])] = None
    """I/Os outstanding at the drive for which this is published"""
    conditions: Literal["unpublished"] | None = None
    """The source states no queue depth: judged approximately, under the program's conditions"""
    workload: Annotated[_Workloads, Field(examples=["randrw70_4k_qd8", "randread_4k_t1xqd16", "webserver_qd8"])] = None
    """Id of a workload, or list of ids, instead of rw, bs and queue_depths"""
    array: Annotated[_Arrays, Field(examples=["raid10x8"])] = None
    """With workload: array, or list of arrays; left out: one drive"""
    iops: _Iops = None
    """Reads and writes per second, steady"""
    read_iops: _Iops = None
    """Reads per second of a mix"""
    write_iops: _Iops = None
    """Writes per second of a mix"""
    throughput: _Rate = None
    """Bytes per second, reads and writes"""
    mean_latency: _Latency = None
    """Mean of reads and writes"""
    read_mean_latency: _Latency = None
    """Mean of the reads of a mix"""
    write_mean_latency: _Latency = None
    """Mean of the writes of a mix"""
    p50_latency: _Latency = None
    """Median latency"""
    p90_latency: _Latency = None
    """90 % of I/Os are as fast"""
    p95_latency: _Latency = None
    """95 % of I/Os are as fast"""
    p99_latency: _Latency = None
    """99 % of I/Os are as fast"""
    p99_9_latency: Annotated[_Latency, Field(alias="p99.9_latency")] = None
    """99.9 % of I/Os are as fast"""
    p99_99_latency: Annotated[_Latency, Field(alias="p99.99_latency")] = None
    """99.99 % of I/Os are as fast"""
    p99_999_latency: Annotated[_Latency, Field(alias="p99.999_latency")] = None
    """99.999 % of I/Os are as fast"""
    max_latency: _Latency = None
    """Slowest I/O"""
    latency_spread_over_time: _Ratio = None
    """Worst maximum of the rounds over their median"""
    worst_second: _Ratio = None
    """Slowest second over the mean"""
    slowest_second: _Rate = None
    """Bytes per second of the slowest second"""
    fastest_second: _Rate = None
    """Bytes per second of the fastest second"""
    fastest_to_slowest_second: _Ratio = None
    """Fastest over slowest second"""
    fresh_iops: _Iops = None
    """From the purged state"""
    settled_iops: _Iops = None
    """After the write cliff"""
    fresh_to_steady: _Factor = None
    """Fresh over settled IOPS"""
    cliff_after: _Ratio = None
    """User capacities written before the cliff"""
    source: Name
    """Where it is published"""
    approximate: bool = False
    """The source says "about", or can be read in two ways"""
    bound: bool = False
    """The source says "over" or "less than": promises in per cent allow nothing beside it"""
    #: Class of the product, which the figure's table does not contain.
    _drive_class: DriveClass | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        depths = self.queue_depths if self.conditions is None else self.conditions
        short = (self.rw, self.bs, depths)
        if self.workload is None and None in short:
            raise ValueError("needs either workload, or rw, bs and queue_depths, or unpublished conditions")
        if self.workload is not None and short != (None, None, None):
            raise ValueError("has rw, bs or queue_depths besides workload, which says all of that")
        if self.array is not None and self.workload is None:
            raise ValueError("rw, bs and queue_depths describe one drive; with array write workload")
        if None not in (self.conditions, self.queue_depths):
            raise ValueError("has queue_depths, so its conditions are published; leave conditions out")
        if self.bound and (self.approximate or self.conditions):
            raise ValueError("is a bound, which neither is approximate nor has unpublished conditions")
        if not self.quantities:
            raise ValueError("publishes nothing; write e.g. iops, throughput or mean_latency")
        if self.conditions and len({claim in OF_LATENCY for claim in self.quantities}) > 1:
            raise ValueError("has rates and latencies, which are not measured under the same conditions; write two")
        return self

    @property
    def arrays(self) -> tuple[Geometry, ...]:
        return self.array or (ONE_DRIVE,)

    @cached_property
    def quantities(self) -> Mapping[Claim, float]:
        """The published quantities, in base units."""
        given = {claim: getattr(self, key.replace(".", "_")) for claim, key in QUANTITIES.items()}
        return {claim: float(value) for claim, value in given.items() if value is not None}

    @cached_property
    def workloads(self) -> tuple[str, ...]:
        """Ids of all workloads that it covers: the id of a profile does not contain its definition."""
        if self.workload is not None:
            return self.workload
        if self.conditions:
            return tuple(f"{self.rw}_{bs}_{self.default_conditions}" for bs in self.bs or ())
        return tuple(
            str(Workload(self.rw or "", bs, depth)) for bs in self.bs or () for depth in self.queue_depths or ()
        )

    @property
    def default_conditions(self) -> str:
        """The program's conditions, as in a workload's id, for a figure whose own are unpublished."""
        of_latency = not OF_LATENCY.isdisjoint(self.quantities)
        if of_latency:
            return DEFAULT_LATENCY_CONDITIONS
        return SHALLOW_CONDITIONS if self._drive_class in SHALLOW else DEFAULT_CONDITIONS[self.rw or ""]

    def on(self, drive_class: DriveClass | None) -> Self:
        """Return this figure of a drive of this class, on which the program's conditions depend."""
        copy = self.model_copy()
        copy._drive_class = drive_class
        return copy

    def of(self, claim: Claim, array: Geometry, workload: str) -> Published | None:
        """Return the published quantity of ``claim`` for exactly this array and workload; None if there is none."""
        if array not in self.arrays or workload not in self.workloads:
            return None
        found = self.quantities.get(claim)
        if found is None:
            return None
        if self.conditions:
            source = f"{self.source}; conditions unpublished, judged approximately at {self.default_conditions}"
            return Published(found, claim.unit, source, approximate=True)
        return Published(found, claim.unit, self.source, self.approximate, self.bound)

    def places(self) -> Iterator[tuple[Geometry, str, Claim]]:
        """Yield every array, workload and claim that it publishes."""
        for array in self.arrays:
            for workload in self.workloads:
                for claim in self.quantities:
                    yield array, workload, claim


def find(figures: Iterable[DataSheetValue], claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
    """Find the published quantity of exactly this array and workload; None for arrays with members missing.

    Drives side by side are each one drive. There ``randread_4k_t4xqd8`` also matches ``randread_4k_qd32``: a drive
    knows only the number of I/Os outstanding.
    """
    array = geometry.target
    names = [str(workload)]
    if array == ONE_DRIVE and not workload.has_streams:
        names.append(str(_of_one_job(workload)))
    found = (each.of(claim, array, name) for name in names for each in figures)
    return next((each for each in found if each is not None), None)


def contradictions(figures: Iterable[DataSheetValue]) -> list[str]:
    """One error for each quantity that is published twice, and for each latency that is out of ``ASCENDING``."""
    known: dict[tuple[Geometry, str], dict[Claim, tuple[float, int]]] = {}
    errors = []
    for index, figure in enumerate(figures):
        for array, workload, claim in figure.places():
            stated = known.setdefault((array, workload), {})
            _, first = stated.setdefault(claim, (figure.quantities[claim], index))
            if first != index:
                errors.append(f"figure[{index}]: figure[{first}] already has the {claim.label} of {array} {workload}")
    for (array, workload), stated in known.items():
        for lower, upper in descents({claim: value for claim, (value, _) in stated.items()}):
            errors.append(
                f"figure[{stated[upper][1]}]: the {upper.label} of {array} {workload} is below its {lower.label}"
            )
    return errors


def descents(stated: Mapping[Claim, float]) -> Iterator[tuple[Claim, Claim]]:
    """Yield the neighbours in ``ASCENDING`` of which the second is below the first."""
    for lower, upper in chain.from_iterable(pairwise(filter(stated.get, order)) for order in ASCENDING):
        if stated[upper] < stated[lower]:
            yield lower, upper


@lru_cache(maxsize=4096)  # a workload checks itself, and a plan of all suites asks for each of them a hundred times
def _of_one_job(workload: Workload) -> Workload:
    depth = round(workload.depth_per_member(1))
    return replace(workload, qd_per_drive=depth, threads=None, streams_per_drive=1)


@frozen
class FigureKind:
    """A kind of figure of one drive: an access pattern, and the claims of which any is a figure of this kind."""

    #: ``randread``, ``randwrite``, ``randrw``, ``read`` or ``write``.
    rw: str
    claims: frozenset[Claim]
    #: In a sentence: ``IOPS of random reads``.
    label: str

    @property
    def name(self) -> str:
        """Name in test ids: ``randread_iops``."""
        return f"{self.rw}_{'latency' if self.claims == OF_LATENCY else self.claim.removeprefix('steady_')}"

    @property
    def claim(self) -> Claim:
        """A claim of this kind."""
        return min(self.claims)

    def covers(self, figure: DataSheetValue) -> bool:
        """Return whether ``figure`` is of this kind, at any transfer size and queue depth."""
        pattern = re.compile(rf"{self.rw}\d*_")
        return (
            ONE_DRIVE in figure.arrays
            and not self.claims.isdisjoint(figure.quantities)
            and any(pattern.match(workload) for workload in figure.workloads)
        )


#: In the order of a data sheet.
USUAL_FIGURES = (
    FigureKind("read", frozenset({Claim.THROUGHPUT}), "throughput of sequential reads"),
    FigureKind("write", frozenset({Claim.THROUGHPUT}), "throughput of sequential writes"),
    FigureKind("randread", frozenset({Claim.STEADY_IOPS}), "IOPS of random reads"),
    FigureKind("randwrite", frozenset({Claim.STEADY_IOPS}), "IOPS of random writes"),
    FigureKind("randrw", frozenset({Claim.STEADY_IOPS}), "IOPS of a random mix"),
    FigureKind("randread", OF_LATENCY, "latency of random reads"),
    FigureKind("randwrite", OF_LATENCY, "latency of random writes"),
)


def missing_kinds(figures: Iterable[DataSheetValue]) -> tuple[FigureKind, ...]:
    """Return the usual kinds of which no figure is published for one drive."""
    known = tuple(figures)
    return tuple(kind for kind in USUAL_FIGURES if not any(map(kind.covers, known)))


@frozen
class Anchor:
    """A published rate of one drive, and the workload at which it is judged."""

    workload: Workload
    published: Published


@frozen
class ChainedPromise:
    """A promise in per cent of a sheet, for an array whose depth the sheet does not state."""

    percent: float
    #: File of the promise, and the place in it.
    place: str
    #: Name of the sheet.
    sheet: str
    #: One for each kind of I/O that the array's members do.
    anchors: tuple[Anchor, ...]


def anchors(figures: Sequence[DataSheetValue], kinds: Iterable[str], bs: str) -> tuple[Anchor, ...]:
    """Return the anchor of each kind of I/O (``randread``, ``randwrite``); empty if the sheet lacks one of them.

    It is the highest published rate of one drive with the size that is nearest to ``bs``.
    """
    size = Workload("randread", bs, 1).block_bytes
    found = [_anchor(figures, kind, size) for kind in kinds]
    return tuple(anchor for anchor in found if anchor) if None not in found else ()


def _anchor(figures: Sequence[DataSheetValue], kind: str, size: float) -> Anchor | None:
    published = [anchor for anchor in of_one_drive(figures) if anchor.workload.rw == kind]
    if not published:
        return None
    distances = {anchor: abs(math.log(anchor.workload.block_bytes / size)) for anchor in published}
    nearest = min(distances.values())
    return max(
        (anchor for anchor in published if distances[anchor] == nearest), key=lambda anchor: anchor.published.value
    )


def of_one_drive(figures: Sequence[DataSheetValue]) -> Iterator[Anchor]:
    """Yield the published rates of one drive under uniform random I/O of one size."""
    for figure in figures:
        for array, name, claim in figure.places():
            if array != ONE_DRIVE or claim is not Claim.STEADY_IOPS:
                continue
            workload = _uniform(name)
            published = figure.of(claim, array, name)
            if workload and published:
                yield Anchor(workload, published)


def _uniform(name: str) -> Workload | None:
    """Return the workload if it is uniform random I/O of one size; None otherwise, and for a profile."""
    try:
        workload = Workload.parse(name)
    except ValueError:
        return None
    is_uniform = workload.is_random and workload.is_usual and not workload.has_streams and len(workload.sizes) == 1
    return workload if is_uniform and workload.rw in ("randread", "randwrite") else None
