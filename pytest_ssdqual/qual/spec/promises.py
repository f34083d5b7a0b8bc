"""One promise of a spec: its claim, the arrays and workloads that it is about, and its limit."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Scope
from pytest_ssdqual.qual.verdict.baseline import BaselineLimit
from pytest_ssdqual.qual.workload.workload import Workload

#: States of an array during a measurement (``Geometry.state``).
STATES = ("healthy", "degraded", "rebuilding")


@dataclass(frozen=True, slots=True)
class Relation:
    """A limit in per cent of the same quantity of another workload on the same array."""

    reference: Workload
    direction: Direction
    percent: float
    #: File, and the place in it.
    source: str

    def __str__(self) -> str:
        return f"{self.direction.replace('_', ' ')} {self.percent:g} % of {self.reference}"


@dataclass(frozen=True, slots=True)
class Promise:
    """One ``[[promise]]``; its limit is a ``bound``, ``percent_of_spec`` or ``percent_of_baseline``."""

    claim: Claim
    #: RAID level; None for any.
    level: RaidLevel | None
    #: Number of members; None for any.
    width: int | None
    state: str
    #: Glob on the workload's id.
    workload: str | None
    #: In the claim's unit; with ``relative_to`` in per cent of the other workload's figure.
    bound: float | None
    percent_of_spec: float | None
    relative_to: Workload | None
    #: File, and the place in it.
    source: str
    #: In per cent of the baseline's figure.
    percent_of_baseline: float | None = None
    #: For a claim about rare events, the times an hour that its limit may be exceeded; None for ``TIMES_PER_HOUR``.
    times_per_hour: float | None = None

    def matches(self, claim: Claim, geometry: Geometry, workload: Workload) -> bool:
        """Return whether this promise covers claim, array and workload; a workload is never relative to itself."""
        return (
            claim is self.claim
            and self.level in (None, geometry.level)
            and self.width in (None, geometry.width)
            # A rebuild claim applies to the rebuilding state, whatever the array's id.
            and (claim.scope is Scope.REBUILD or self.state == geometry.state)
            and (self.workload is None or fnmatchcase(str(workload), self.workload))
            and self.relative_to != workload
        )

    @property
    def relation(self) -> Relation | None:
        if self.relative_to is None or self.bound is None:
            return None
        return Relation(self.relative_to, self.claim.direction, self.bound, self.source)

    @property
    def of_baseline(self) -> BaselineLimit | None:
        if self.percent_of_baseline is None:
            return None
        return BaselineLimit(self.claim.direction, self.percent_of_baseline, self.source)
