"""Spec of a product: data sheet and promises; TOML in, limits out.

The first promise of a file that matches decides, except for one in per cent of a figure that is not published, which
gives way to the next. A claim that a product's file does not mention at all falls back to ``specs/default.toml``; one
that it mentions, but not for this array and workload, is not promised. pydantic validates the tables of a spec file
into `Product`, `DataSheetValue` and `Promise`, of which a `Spec` is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.inspection.limits import NEW, InspectionTable
from pytest_ssdqual.qual.lots.lot import LotTable
from pytest_ssdqual.qual.lots.sampling_plan import Plan
from pytest_ssdqual.qual.raid import law
from pytest_ssdqual.qual.raid.geometry import ONE_DRIVE, Geometry, costs, expected_iops
from pytest_ssdqual.qual.raid.law import Striping
from pytest_ssdqual.qual.spec import datasheet, toml
from pytest_ssdqual.qual.spec.claims import (
    OF_GROWTH,
    OF_HEAT,
    OF_RARE_EVENTS,
    TIMES_PER_HOUR,
    Accountable,
    Claim,
    Limit,
    Published,
    Scope,
)
from pytest_ssdqual.qual.spec.datasheet import ChainedPromise, DataSheetValue
from pytest_ssdqual.qual.spec.drive_class import DriveClass
from pytest_ssdqual.qual.spec.health_limits import ORDINARY, HealthTable
from pytest_ssdqual.qual.spec.promises import Promise, Relation
from pytest_ssdqual.qual.spec.toml import TABLE, Name, PowerOfTwo, Size, Strict, Throughput
from pytest_ssdqual.qual.units import Unit, parse_size
from pytest_ssdqual.qual.workload.workload import Workload

FOLDER = "specs"
DEFAULT = "default"


class Product(Strict):
    """Table ``product``: identity of the product."""

    name: Name
    """As verdicts and reports name it"""
    models: Annotated[list[Name], Field(examples=[["ACME-9*"]])]
    """Globs on the drive's model string; empty: only chosen by name"""
    vendor: str = ""
    """Who makes it"""
    capacity_bytes: Annotated[Size | None, Field(alias="capacity")] = None
    """Of one drive, decimal as on its label"""
    drive_class: Annotated[DriveClass | None, Field(alias="class", strict=False)] = None
    """Interface; for a drive that does not report its own"""
    source: str = ""
    """What these facts are taken from"""
    sequential_write_bytes_per_s: Annotated[Throughput | None, Field(alias="sequential_write")] = None
    """Of one drive; only used to plan how long a fill takes"""
    indirection_unit: PowerOfTwo | None = None
    """What the drive maps at a time; random conditioning writes are as large"""
    subject: Annotated[Accountable, Field(strict=False)] = Accountable.DRIVE
    """What is accepted: the drives, or the system of drives, md and host"""
    drives: Annotated[int | None, Field(ge=1, le=10_000)] = None
    """How many of them a bay has; with more or fewer no run begins"""
    power_loss_protection: bool = False
    """Writes that were acknowledged survive a power cut, also without a flush"""


class EnduranceTable(Strict):
    """Table ``endurance``: the rated bytes written."""

    tbw: Annotated[Size, Field(examples=["3,500 TB"])]
    """Rated bytes written over the drive's life"""


class SpecDocument(Strict):
    """A spec file: a product's data sheet and promises."""

    product: Product
    figure: list[DataSheetValue] = Field(default_factory=list)
    """What is published"""
    endurance: EnduranceTable | None = None
    lot: LotTable | None = None
    """What a sample of drives decides about"""
    inspection: InspectionTable | None = None
    """What the receiving inspection compares drives with"""
    health: HealthTable = ORDINARY
    """How far error counters of a drive may rise during a run"""
    promise: list[Annotated[Promise, TABLE]] = Field(default_factory=list)
    """What is promised; the first that matches decides"""


@frozen
class Spec:
    """One product: its published quantities and its promises."""

    #: The file's name without its ending.
    key: str
    product: Product
    #: Rated bytes written over the drive's life.
    endurance_bytes: int | None
    figures: tuple[DataSheetValue, ...]
    promises: tuple[Promise, ...]
    #: Plan by which a sample of drives decides about its lot; None if none was agreed.
    lot: Plan | None = None
    #: Limits of the receiving inspection; those of a new drive of this model and capacity if the file has none.
    inspection: InspectionTable = NEW
    #: Class of the drives in question: as they report it, else the product's.
    drive_class: DriveClass | None = None
    #: Least size of writes that the drives in question prefer, by their own account; None if none states one.
    preferred_write_bytes: int | None = None
    #: Limits of what may get worse during a run.
    health: HealthTable = ORDINARY
    #: How md distributes the addresses of the run's arrays: the laws of levels depend on it.
    striping: Striping = field(default_factory=Striping)

    @property
    def name(self) -> str:
        return self.product.name

    @property
    def unit_bytes(self) -> int | None:
        """What the drives map at a time, by the sheet; no more than the writes that they prefer. None if unknown."""
        if self.product.indirection_unit is None:
            return None
        stated = parse_size(self.product.indirection_unit)
        return min(stated, self.preferred_write_bytes or stated)

    def on(self, striping: Striping) -> Self:
        """Return the spec as it is judged by on arrays that are striped so."""
        return replace(self, striping=striping)

    @property
    def title(self) -> str:
        """Name with the class of the drives: ``default promises (NVMe Gen4)``."""
        return f"{self.name} ({self.drive_class.label})" if self.drive_class else self.name

    def of(self, drive: str) -> Spec:
        """Return the spec of one drive of the run, by its serial number."""
        return self

    @property
    def different(self) -> tuple[Spec, ...]:
        """The sheets of the drives, each once."""
        return (self,)

    @property
    def assignment(self) -> str:
        """Each sheet with the serial numbers of its drives; empty if all drives have the same one."""
        return ""

    def fits(self, model: str) -> bool:
        """Return whether this is the data sheet of a drive with this model string."""
        return any(fnmatchcase(model.strip(), pattern) for pattern in self.product.models)

    def published(self, claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
        """Published quantity of exactly this array and workload; None if there is none.

        For drives side by side that of one drive. Arrays with members missing have none.
        """
        return datasheet.find(self.figures, claim, geometry, workload)

    def expected_iops(self, geometry: Geometry, workload: Workload) -> float | None:
        """IOPS of an array by ``geometry.expected_iops`` from the published figures of one drive; for drives side by
        side, of each.

        None if a needed figure is not published at the workload's size and depth, and where no law holds
        (``law.objection``). Parity writes need the read figure too, because members are read first.
        """
        array = geometry.target
        if law.objection(array, workload, self.striping):
            return None
        found = {rw: self._of_one_drive(rw, array, workload) for rw in _needed(array, workload)}
        if None in found.values():
            return None
        # The cost model multiplies the rate of an unused direction by zero.
        reads, writes = (each.value if (each := found.get(rw)) else 1.0 for rw in ("randread", "randwrite"))
        return expected_iops(array, workload.read_fraction, reads, writes)

    def limit(self, claim: Claim, geometry: Geometry, workload: Workload) -> Limit | None:
        """Limit of the claim for this array and workload; None if none is promised in numbers.

        Then ``relation`` may give it in terms of another workload or of an earlier run; if it does not,
        ``why_no_limit`` gives the reason.
        """
        promise = self.deciding(claim, geometry, workload)
        if promise is None or promise.relation:
            return None
        if self.no_law(claim, (geometry,), workload):
            return None
        bound, source = promise.bound or 0.0, promise.place
        if promise.percent_of_spec is not None:
            stated = self._stated(claim, geometry, workload)
            if stated is None:
                return None
            percent = 100.0 if stated.is_bound else promise.percent_of_spec
            bound = stated.value * percent / 100
            source = f"{promise.place}: {percent:g} % of {stated} from {self.key} ({stated.source})"
        return Limit(claim.direction, bound, claim.unit, source, self.times_per_hour(claim, geometry, workload))

    def chained(self, claim: Claim, geometry: Geometry, workload: Workload) -> ChainedPromise | None:
        """Return the promise of an array's steady IOPS in per cent of a sheet that does not state its depth.

        None for other claims, for bare drives, where ``limit`` has one, where no law holds, and if the sheet publishes
        no rate of one drive for a kind of I/O that the members do.
        """
        if claim is not Claim.STEADY_IOPS or geometry.is_side_by_side:
            return None
        promise = self.deciding(claim, geometry, workload)
        if promise is None or promise.percent_of_spec is None or self._stated(claim, geometry, workload):
            return None
        if law.objection(geometry, workload, self.striping):
            return None
        found = datasheet.anchors(self.figures, _needed(geometry, workload), workload.bs)
        return ChainedPromise(promise.percent_of_spec, promise.place, self.key, found) if found else None

    def subject(self, claim: Claim, geometry: Geometry, workload: Workload) -> Accountable:
        """Return what a broken promise blames: the promise's own subject, else the product's."""
        if claim.is_of_system:
            return Accountable.SYSTEM
        promise = self.deciding(claim, geometry, workload)
        return (promise and promise.subject) or self.product.subject

    def no_law(self, claim: Claim, geometries: Sequence[Geometry], workload: Workload) -> str:
        """Return why a claim beside the law of the level has no limit here; "" if it has one, and for other claims.

        Such are growth and what arrays are predicted to do. Limits in per cent of the sheet depend on the law, too:
        ``limit`` has none of them where no law holds.
        """
        if claim in OF_GROWTH:
            return law.growth_objection(geometries, workload, self.striping)
        if claim.scope is Scope.PREDICTED:
            return law.objection(geometries[0], workload, self.striping)
        return ""

    def lacks_figure(self, claim: Claim, geometry: Geometry, workload: Workload) -> bool:
        """Return whether the limit of a claim is in per cent of a figure that the sheet does not have.

        What is chained to other figures of the sheet does not lack it.
        """
        promise = self.deciding(claim, geometry, workload)
        if promise is None or promise.percent_of_spec is None:
            return False
        place = claim, geometry, workload
        return self._stated(*place) is None and self.chained(*place) is None

    def times_per_hour(self, claim: Claim, geometry: Geometry, workload: Workload) -> float | None:
        """Times an hour that the limit of a claim about rare events may be exceeded; None for other claims."""
        if claim not in OF_RARE_EVENTS:
            return None
        promise = self.deciding(claim, geometry, workload)
        return (promise and promise.times_per_hour) or TIMES_PER_HOUR

    def is_promised(self, claim: Claim, geometry: Geometry, workload: Workload) -> bool:
        """Return whether there is a promise: in numbers, in terms of another workload, or of a baseline."""
        where = claim, geometry, workload
        return any((self.limit(*where), self.relation(*where)))

    def relation(self, claim: Claim, geometry: Geometry, workload: Workload) -> Relation | None:
        """Limit in per cent of another workload's quantity on the same array or of the baseline, if promised so."""
        # A plan asks for thousands; to find the deciding promise takes the figures of the sheet.
        related = (each for each in self.promises_of(claim) if each.relation)
        if not any(each.matches(claim, geometry, workload, self.drive_class) for each in related):
            return None
        promise = self.deciding(claim, geometry, workload)
        return promise.relation if promise else None

    def promises_heat(self, geometry: Geometry, workload: Workload) -> bool:
        """Return whether a temperature or a time of throttling is promised: then heat is the product's behaviour."""
        return any(self.deciding(claim, geometry, workload) for claim in OF_HEAT)

    def references(self, geometry: Geometry, workload: Workload) -> tuple[Workload, ...]:
        """Other workloads that have to be measured to judge the claims about this one, each once."""
        claims = (claim for claim in Claim if claim.scope is Scope.RUN)
        related = (self.relation(claim, geometry, workload) for claim in claims)
        return tuple(dict.fromkeys(each.reference for each in related if each and each.reference))

    def why_no_limit(self, claim: Claim, geometry: Geometry, workload: Workload) -> str:
        """Reason to skip a test if ``limit`` is None, as one sentence."""
        where = claim, geometry, workload, self.drive_class
        of_one_job = (each for each in self.promises_of(claim) if each.leaves_out_jobs(workload))
        left_out = next((each for each in of_one_job if replace(each, workload=None).matches(*where)), None)
        words = "is about one job of that depth; to include several, name them, as in '*_t*xqd8' or '*_s*_qd8'"
        jobs = f"; {left_out.workload!r} ({left_out.place}) {words}" if left_out else ""
        return f"{self._why_no_limit(claim, geometry, workload)}{jobs}"

    def _why_no_limit(self, claim: Claim, geometry: Geometry, workload: Workload) -> str:
        promise = self.deciding(claim, geometry, workload)
        if promise is None:
            return f"{self.name} promises no {claim.label} for {geometry} {workload}"
        if relation := promise.relation:
            how = f"relative to {relation.reference}" if relation.reference else "in per cent of a baseline"
            return f"{self.name} promises the {claim.label} of {workload} only {how}"
        if no_law := self.no_law(claim, (geometry,), workload):
            return no_law
        array = geometry.target
        no_law = law.objection(array, workload, self.striping) if claim is Claim.STEADY_IOPS else ""
        if no_law and array != ONE_DRIVE:
            return (
                f"{self.name} publishes no {claim.label} of {workload} on {geometry}, and {no_law}; the drives alone "
                "are held to their sheet by suites/drive and suites/datasheet"
            )
        if claim is Claim.STEADY_IOPS and not no_law:
            depth = workload.depth_per_member(array.width)
            needed = _needed(array, workload)
            missing = [rw for rw in needed if self._of_one_drive(rw, array, workload) is None]
            return (
                f"{self.name} publishes no figure for {' and '.join(missing)} {workload.bs} at queue depth {depth:g}, "
                f"which {workload} on {geometry} is held to"
            )
        return f"{self.name} publishes no {claim.label} of {workload} on {geometry}"

    def maximum(self, workload: Workload) -> float | None:
        """Published IOPS of one drive under random I/O of the size and mix of ``workload``, in time; None without.

        Of drives with different sheets the least: they are measured side by side.
        """
        reads = workload.read_fraction
        shares = {rw: share for rw, share in (("randread", reads), ("randwrite", 1 - reads)) if share}
        sheets = [sheet.figures for sheet in self.different]
        found = [datasheet.anchors(figures, shares, workload.bs) for figures in sheets]
        is_known = all(each and {anchor.workload.bs for anchor in each} == {workload.bs} for each in found)
        if not is_known:
            return None
        return min(
            1 / sum(share / anchor.published.value for share, anchor in zip(shares.values(), each, strict=True))
            for each in found
        )

    def doubts(self) -> Iterator[str]:
        """Yield published 4k random I/O of one drive that is below the floor of its class, a sentence each.

        For an unknown class it is the floor of SATA drives.
        """
        floors = replace(default(), drive_class=self.drive_class or DriveClass.SATA)
        for rate in datasheet.of_one_drive(self.figures):
            workload = rate.workload
            usual = Workload(workload.rw, "4k", 8 if workload.depth_per_member(1) >= 8 else 1)
            floor = floors.limit(Claim.STEADY_IOPS, ONE_DRIVE, usual)
            if floor and workload.bs == usual.bs and rate.published.value < floor.bound:
                yield f"{workload}: {rate.published} published, but any drive of the class does {floor} of {usual}"

    @property
    def own_claims(self) -> frozenset[Claim]:
        """The claims that this spec itself promises; none of the promises for any drive."""
        return frozenset(each.claim for each in self.promises if self.key != DEFAULT)

    def promises_of(self, claim: Claim) -> tuple[Promise, ...]:
        """Return the promises of a claim: the file's own, else the default ones."""
        own = tuple(each for each in self.promises if each.claim is claim)
        if not own and self.key != DEFAULT:
            return tuple(each for each in default().promises if each.claim is claim)
        return own

    def deciding(self, claim: Claim, geometry: Geometry, workload: Workload) -> Promise | None:
        """Return the promise that decides about a claim of an array and a workload; None if there is none."""
        own = self.promises_of(claim)
        matching = [each for each in own if each.matches(claim, geometry, workload, self.drive_class)]
        # In per cent of a figure that is not published a promise is empty; one in numbers after it still holds.
        usable = (each for each in matching if each.percent_of_spec is None or self._stated(claim, geometry, workload))
        return next(usable, matching[0] if matching else None)

    def _stated(self, claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
        """What a percentage of the spec refers to: the published quantity, else what the level's cost model gives; of
        a rebuild its bound.
        """
        if claim.scope is Scope.REBUILD:
            return self._rebuild_bound(claim)
        return self.published(claim, geometry, workload) or self._by_law(claim, geometry, workload)

    def _rebuild_bound(self, claim: Claim) -> Published | None:
        """Bytes per second that md's speed limit, and a member's sequential writes, allow a rebuild; or its time."""
        of_md, of_member = self.striping.rebuild_bytes_per_s, self.product.sequential_write_bytes_per_s
        is_of_member = of_member is not None and of_member < of_md
        source = "a member's sequential writes" if is_of_member else "md's speed limit"
        rate, size = min(of_md, of_member or of_md), self.product.capacity_bytes
        if claim is Claim.REBUILD_RATE:
            return Published(rate, Unit.BYTES_PER_SECOND, source, is_of_member)
        return Published(size / rate, Unit.SECONDS, f"a whole member at {source}", is_of_member) if size else None

    def _of_one_drive(self, rw: str, array: Geometry, workload: Workload) -> Published | None:
        """Published IOPS of one drive at each member's depth: a figure at depth 32 does not apply at 8.

        Nor does one whose depth is unpublished: the program's conditions are of that drive alone.
        """
        depth = workload.depth_per_member(array.width)
        if depth != int(depth):
            return None
        known = (each for each in self.figures if each.conditions is None)
        return datasheet.find(known, Claim.STEADY_IOPS, ONE_DRIVE, Workload(rw, workload.bs, int(depth)))

    def _by_law(self, claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
        iops = self.expected_iops(geometry, workload) if claim is Claim.STEADY_IOPS else None
        if iops is None:
            return None
        array = geometry.target
        used = (self._of_one_drive(rw, array, workload) for rw in _needed(array, workload))
        approximate = any(each.approximate for each in used if each)
        return Published(iops, Unit.IOPS, f"one drive's figures, by the law of {geometry}", approximate)


def _needed(array: Geometry, workload: Workload) -> tuple[str, ...]:
    """Figures of one drive that the level's cost model needs."""
    reads = workload.read_fraction > 0 or costs(array).reads_for_write > 0
    return tuple(rw for rw, needed in (("randread", reads), ("randwrite", workload.read_fraction < 1)) if needed)


def load(path_or_name: str | Path) -> Spec:
    """Read a spec: the path of a TOML file, or the name of a shipped one. ``DocumentError`` with every error."""
    name, content = toml.read(path_or_name, FOLDER)

    return _spec(name, toml.checked(SpecDocument.model_validate, name, content))


def json_schema() -> dict[str, object]:
    """JSON Schema of a spec file, for editors and other tools; ``load`` checks what the schema cannot express."""
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


@cache
def _shipped() -> tuple[Spec, ...]:
    return tuple(map(load, shipped()))


def find_by_model(model: str) -> Spec | None:
    """The shipped data sheet of a drive with this model string; None if there is none."""
    return next((spec for spec in _shipped() if spec.fits(model)), None)


def _spec(name: str, content: SpecDocument) -> Spec:
    product = content.product
    figures = tuple(figure.on(product.drive_class) for figure in content.figure)
    if errors := datasheet.contradictions(figures):
        raise toml.DocumentError(name, errors)
    return Spec(
        key=name.removesuffix(".toml"),
        product=product,
        endurance_bytes=content.endurance.tbw if content.endurance else None,
        figures=figures,
        promises=tuple(replace(each, source=f"{name} promise[{index}]") for index, each in enumerate(content.promise)),
        lot=content.lot.plan() if content.lot else None,
        inspection=_inspection(content),
        drive_class=product.drive_class,
        health=content.health,
    )


def _inspection(content: SpecDocument) -> InspectionTable:
    """Return the limits of the inspection; model and capacity are the product's unless the table has others."""
    own, product = content.inspection or NEW, content.product
    update = {
        "models": own.models or product.models,
        "capacity_bytes": own.capacity_bytes or product.capacity_bytes,
    }
    return own.model_copy(update=update)
