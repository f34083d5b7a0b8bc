"""Specs of drives with different sheets in one run: each drive by its own, what they have in common by the slowest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import product
from typing import Self, TypeVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.law import Striping
from pytest_ssdqual.qual.spec.claims import Accountable, Claim, Direction, Limit, Published, Scope
from pytest_ssdqual.qual.spec.datasheet import ChainedPromise
from pytest_ssdqual.qual.spec.promises import Relation
from pytest_ssdqual.qual.spec.spec import Product, Spec
from pytest_ssdqual.qual.workload.workload import Workload

FoundT = TypeVar("FoundT")


def _different(specs: Iterable[Spec]) -> tuple[Spec, ...]:
    """Return each spec once."""
    return tuple({(spec.key, spec.drive_class): spec for spec in specs}.values())


@frozen
class CombinedSpec(Spec):
    """The specs of several drives. A claim about drives side by side has a limit of each drive's own; one about an
    array has the limit that the slowest of its members can keep, and none if one of them promises nothing.
    """

    #: By serial number, as verdicts name the drives, in the order of the bay: the first ones are an array's members.
    own: Mapping[str, Spec] = field(default_factory=dict)

    @property
    def different(self) -> tuple[Spec, ...]:
        return _different(self.own.values())

    def _members(self, geometry: Geometry) -> tuple[Spec, ...]:
        """Each spec of the array's members once; of drives side by side those of all drives."""
        return _different([*self.own.values()][: None if geometry.is_side_by_side else geometry.width])

    def on(self, striping: Striping) -> Self:
        own = {drive: spec.on(striping) for drive, spec in self.own.items()}
        return replace(self, striping=striping, own=own)

    def of(self, drive: str) -> Spec:
        return self.own.get(drive, self)

    @property
    def assignment(self) -> str:
        drives = {spec.title: [drive for drive in self.own if self.own[drive] == spec] for spec in self.different}
        return "; ".join(f"{title}: {', '.join(serials)}" for title, serials in drives.items())

    @property
    def title(self) -> str:
        return ", ".join(spec.title for spec in self.different)

    def fits(self, model: str) -> bool:
        return any(spec.fits(model) for spec in self.different)

    def published(self, claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
        """Return the figure of an array of one model; ``of(drive)`` has those of drives side by side."""
        members = () if geometry.is_side_by_side else self._members(geometry)
        return members[0].published(claim, geometry, workload) if len(members) == 1 else None

    def expected_iops(self, geometry: Geometry, workload: Workload) -> float | None:
        found = self._of_all(geometry, lambda spec: spec.expected_iops(geometry, workload))
        return min(found, default=None)

    def limit(self, claim: Claim, geometry: Geometry, workload: Workload) -> Limit | None:
        """Return the limit; of drives side by side with those of the drives in ``own``.

        None also if a sheet promises it here in per cent of another workload or of a baseline.
        """
        if claim.scope is Scope.MEMBERS or any(spec.relation(claim, geometry, workload) for spec in self.different):
            return None
        members = [*self.own.items()][: None if geometry.is_side_by_side else geometry.width]
        limits = {drive: spec.limit(claim, geometry, workload) for drive, spec in members}
        own = {drive: limit for drive, limit in limits.items() if limit is not None}
        if not own or (len(own) < len(limits) and not geometry.is_side_by_side):
            return None
        lowest, highest = (choose(own.values(), key=lambda limit: limit.bound) for choose in (min, max))
        slowest = lowest if claim.direction is Direction.AT_LEAST else highest
        return replace(slowest, own=own) if geometry.is_side_by_side else slowest

    def chained(self, claim: Claim, geometry: Geometry, workload: Workload) -> ChainedPromise | None:
        """Return that of an array of one model; members of several models have no common anchor."""
        members = self._members(geometry)
        return members[0].chained(claim, geometry, workload) if len(members) == 1 else None

    def relation(self, claim: Claim, geometry: Geometry, workload: Workload) -> Relation | None:
        return next(iter(self._of_all(geometry, lambda spec: spec.relation(claim, geometry, workload))), None)

    def promises_heat(self, geometry: Geometry, workload: Workload) -> bool:
        return all(spec.promises_heat(geometry, workload) for spec in self._members(geometry))

    def subject(self, claim: Claim, geometry: Geometry, workload: Workload) -> Accountable:
        found = {spec.subject(claim, geometry, workload) for spec in self._members(geometry)}
        return found.pop() if len(found) == 1 else Accountable.DRIVE

    def lacks_figure(self, claim: Claim, geometry: Geometry, workload: Workload) -> bool:
        return any(spec.lacks_figure(claim, geometry, workload) for spec in self._members(geometry))

    def times_per_hour(self, claim: Claim, geometry: Geometry, workload: Workload) -> float | None:
        found = self._of_all(geometry, lambda spec: spec.times_per_hour(claim, geometry, workload))
        return max(found, default=None)

    def why_no_limit(self, claim: Claim, geometry: Geometry, workload: Workload) -> str:
        if claim.scope is Scope.MEMBERS:
            return "the drives have different sheets, so nothing is promised about how alike they are"
        return next(self._without(claim, geometry, workload)).why_no_limit(claim, geometry, workload)

    def _without(self, claim: Claim, geometry: Geometry, workload: Workload) -> Iterator[Spec]:
        members = self._members(geometry)
        yield from (spec for spec in members if spec.limit(claim, geometry, workload) is None)
        yield from members

    def _of_all(self, geometry: Geometry, ask: Callable[[Spec], FoundT | None]) -> list[FoundT]:
        """Return the answer of the spec of every member; an empty list if one has none."""
        answers = [ask(spec) for spec in self._members(geometry)]
        found = [answer for answer in answers if answer is not None]
        return found if len(found) == len(answers) else []


def _in_per_cent(spec: Spec, claim: Claim) -> list[tuple[object, ...]]:
    """Return what decides where a claim is promised in per cent of another workload or of a baseline, and of which.

    These are the promises of the drives' class, up to the last such one; of the others only what they cover.
    """
    promises, of = spec.promises_of(claim), spec.drive_class
    of_class = [each for each in promises if each.drive_classes is None or of in each.drive_classes]
    while of_class and not of_class[-1].relation:
        of_class.pop()
    return [
        (
            each.level, each.width, each.state, each.workload, each.relative_to, each.relative_to and each.bound,
            each.min_percent_of_baseline, each.max_percent_of_baseline, each.percent_of_spec is None,
        )
        for each in of_class
    ]  # fmt: skip


def combine(own: Mapping[str, Spec]) -> Spec:
    """Return the spec of drives, by serial number: their common one, or one that has each drive's own.

    Raises ``ValueError`` for sheets with promises in per cent of another workload or of a baseline that are not the
    same: such a limit is of all drives.
    """
    specs = _different(own.values())
    if len(specs) == 1:
        return specs[0]
    for spec, claim in product(specs[1:], Claim):
        if _in_per_cent(spec, claim) != _in_per_cent(specs[0], claim):
            raise ValueError(
                f"{specs[0].title} and {spec.title} do not make the same promises of {claim} in per cent of another "
                "workload or of a baseline; test these drives in runs of their own"
            )
    writes = _least(spec.product.sequential_write_bytes_per_s for spec in specs)
    unit_bytes = _least(spec.unit_bytes for spec in specs)
    names = " + ".join(dict.fromkeys(spec.name for spec in specs))
    common = Product(name=names, models=[]).model_copy(
        update={
            "sequential_write_bytes_per_s": writes,
            "indirection_unit": None if unit_bytes is None else str(unit_bytes),
        }
    )
    return CombinedSpec(
        key="+".join(dict.fromkeys(spec.key for spec in specs)),
        product=common,
        endurance_bytes=_least(spec.endurance_bytes for spec in specs),
        figures=tuple(figure for spec in specs for figure in spec.figures),
        promises=(),
        own=dict(own),
    )


def _least(values: Iterable[int | None]) -> int | None:
    """Return the least of the values; None if one is not known."""
    known = list(values)
    return None if None in known else min(value for value in known if value is not None)
