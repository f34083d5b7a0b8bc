"""A product's data sheet and promises: TOML in, limits out.

Of the promises of a file, the first that matches decides. A claim that a product's file does not mention
at all falls back to ``specs/default.toml``; one that it mentions, but not for this array and workload, is
not promised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual import document
from pytest_ssdqual.qual.claim import Claim, Limit
from pytest_ssdqual.qual.geometry import Geometry, Level, costs, expected_iops
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.workload import Workload

if TYPE_CHECKING:
    from pytest_ssdqual.qual.schema import PromiseTable, SpecDocument

FOLDER = "specs"
DEFAULT = "default"


class SpecError(document.DocumentError):
    """A spec that cannot be used."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Published IOPS of one drive, and the queue depths it was published for."""

    rw: str
    bs: str
    queue_depths: tuple[int, ...]
    iops: int
    source: str


@dataclass(frozen=True, slots=True)
class Promise:
    """One ``[[promise]]``; exactly one of ``bound`` (in the claim's unit) and ``percent_of_spec`` is set."""

    claim: Claim
    level: Level | None
    #: Glob on the workload's id.
    workload: str | None
    bound: float | None
    percent_of_spec: float | None
    #: File and place in it.
    source: str

    def matches(self, claim: Claim, geometry: Geometry, workload: Workload) -> bool:
        return (
            claim is self.claim
            and self.level in (None, geometry.level)
            and (self.workload is None or fnmatchcase(str(workload), self.workload))
        )


@dataclass(frozen=True, slots=True)
class Spec:
    """One product: what is published of it and what is promised."""

    #: The file's name without its ending.
    key: str
    name: str
    #: Globs on the drive's model string.
    models: tuple[str, ...]
    vendor: str
    capacity_bytes: int | None
    source: str
    #: Of one drive, for planning only.
    sequential_write_bytes_per_s: int | None
    #: Rated bytes written over the drive's life.
    endurance_bytes: int | None
    figures: tuple[Figure, ...]
    promises: tuple[Promise, ...]

    def fits(self, model: str) -> bool:
        """Whether this is the data sheet of a drive that calls itself ``model``."""
        return any(fnmatchcase(model.strip(), pattern) for pattern in self.models)

    def figure(self, rw: str, bs: str, queue_depth: int) -> Figure | None:
        """What is published for one drive, at exactly this depth: a figure at 32 says nothing about 8."""
        for each in self.figures:
            if (each.rw, each.bs) == (rw, bs) and queue_depth in each.queue_depths:
                return each
        return None

    def expected_iops(self, geometry: Geometry, workload: Workload) -> float | None:
        """The published figures carried over to an array by ``geometry.expected_iops``.

        None when one that is needed is not published at the workload's size and depth, and for sequential
        workloads. Parity writes need the read figure too, because the members are read first.
        """
        needed = _needed(geometry, workload)
        found = {rw: self.figure(rw, workload.bs, workload.qd_per_drive) for rw in needed}
        if not needed or None in found.values():
            return None
        reads, writes = found.get("randread"), found.get("randwrite")
        # The rate of a direction without any I/O is multiplied by zero in the law.
        read_iops, write_iops = (each.iops if each else 1.0 for each in (reads, writes))
        return expected_iops(geometry, workload.read_fraction, read_iops, write_iops)

    def limit(self, claim: Claim | str, geometry: Geometry, workload: Workload) -> Limit | None:
        """Where the claim is broken for this array and workload; None when nothing is promised.

        ``why_no_limit`` says why. ValueError for a claim that does not exist.
        """
        claim = Claim(claim)
        promise = self._promise(claim, geometry, workload)
        if promise is None:
            return None
        if promise.percent_of_spec is None:
            return Limit(claim.direction, promise.bound or 0.0, claim.unit, promise.source)
        expected = self.expected_iops(geometry, workload)
        if expected is None:
            return None
        source = (
            f"{promise.source}: {promise.percent_of_spec:g} % of {format_value(expected, Unit.IOPS)} from {self.key}"
        )
        return Limit(claim.direction, expected * promise.percent_of_spec / 100, claim.unit, source)

    def why_no_limit(self, claim: Claim | str, geometry: Geometry, workload: Workload) -> str:
        """The reason to skip a test when ``limit`` is None, as one sentence."""
        claim = Claim(claim)
        if self._promise(claim, geometry, workload) is None:
            return f"{self.name} promises no {claim.label} for {geometry} {workload}"
        bs, depth = workload.bs, workload.qd_per_drive
        missing = [rw for rw in _needed(geometry, workload) if self.figure(rw, bs, depth) is None] or [workload.rw]
        return (
            f"{self.name} publishes no figure for {' and '.join(missing)} {bs} at queue depth {depth}, "
            f"which {workload} on {geometry} is held to"
        )

    def _promise(self, claim: Claim, geometry: Geometry, workload: Workload) -> Promise | None:
        own = [each for each in self.promises if each.claim is claim]
        if not own and self.key != DEFAULT:
            own = [each for each in default().promises if each.claim is claim]
        return next((each for each in own if each.matches(claim, geometry, workload)), None)


def _needed(geometry: Geometry, workload: Workload) -> tuple[str, ...]:
    """The figures of one drive that the law of the level needs; none for sequential workloads, which have no law."""
    if not workload.is_random:
        return ()
    reads = workload.read_fraction > 0 or costs(geometry).reads > 0
    return tuple(rw for rw, needed in (("randread", reads), ("randwrite", workload.read_fraction < 1)) if needed)


def load(path_or_name: str | Path) -> Spec:
    """Read a spec: the path of a TOML file, or the name of a shipped one. ``SpecError`` with every error."""
    name, content = document.read(path_or_name, FOLDER, SpecError)
    from pytest_ssdqual.qual.schema import SpecDocument

    return _spec(name, document.checked(SpecDocument, name, content, SpecError))


def shipped() -> tuple[str, ...]:
    """Names of the data sheets that come with the package."""
    return document.shipped(FOLDER)


@cache
def default() -> Spec:
    """The promises for a product without a file of its own."""
    return load(DEFAULT)


def find_by_model(model: str) -> Spec | None:
    """The shipped data sheet of a drive that calls itself ``model``; None if there is none."""
    return next((spec for spec in map(load, shipped()) if spec.fits(model)), None)


def _spec(name: str, content: SpecDocument) -> Spec:
    product = content.product
    return Spec(
        key=name.removesuffix(".toml"),
        name=product.name,
        models=tuple(product.models),
        vendor=product.vendor,
        capacity_bytes=product.capacity,
        source=product.source,
        sequential_write_bytes_per_s=product.sequential_write,
        endurance_bytes=content.endurance.tbw if content.endurance else None,
        figures=tuple(
            Figure(each.rw, each.bs, tuple(each.queue_depths), each.iops, each.source) for each in content.figure
        ),
        promises=tuple(_promises(name, content.promise)),
    )


def _promises(name: str, tables: Iterable[PromiseTable]) -> Iterable[Promise]:
    for index, each in enumerate(tables):
        yield Promise(
            claim=each.claim,
            level=each.level,
            workload=each.workload,
            bound=each.at_least if each.at_most is None else each.at_most,
            percent_of_spec=each.min_percent_of_spec,
            source=f"{name} promise[{index}]",
        )
