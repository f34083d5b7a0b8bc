"""One promise of a spec: which claim, for which arrays and workloads, and how its limit is given."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Scope
from pytest_ssdqual.qual.verdict.baseline import BaselineLimit
from pytest_ssdqual.qual.workload.workload import Workload

#: What an array can be when it is measured (``Geometry.state``).
STATES = ("healthy", "degraded", "rebuilding")


@dataclass(frozen=True, slots=True)
class Relation:
    """A limit in per cent of the same quantity of another workload on the same array."""

    reference: Workload
    direction: Direction
    percent: float
    #: File and place in it.
    source: str

    def __str__(self) -> str:
        return f"{self.direction.replace('_', ' ')} {self.percent:g} % of {self.reference}"


@dataclass(frozen=True, slots=True)
class Promise:
    """One ``[[promise]]``; its limit is a ``bound``, or ``percent_of_spec`` or ``percent_of_baseline``."""

    claim: Claim
    #: Of arrays; None: any.
    level: RaidLevel | None
    #: Members; None: any number.
    width: int | None
    state: str
    #: Glob on the workload's id.
    workload: str | None
    #: In the claim's unit; with ``relative_to`` per cent of the other workload's.
    bound: float | None
    percent_of_spec: float | None
    relative_to: Workload | None
    #: File and place in it.
    source: str
    #: Per cent of what an earlier run measured.
    percent_of_baseline: float | None = None
    #: Of a claim about rare events: how often an hour its limit may be exceeded. None: ``claim.TIMES_PER_HOUR``.
    times_per_hour: float | None = None

    def matches(self, claim: Claim, geometry: Geometry, workload: Workload) -> bool:
        """Whether this promise is about the claim, array and workload; no workload is compared with itself."""
        return (
            claim is self.claim
            and self.level in (None, geometry.level)
            and self.width in (None, geometry.width)
            # A rebuild has no other state, however its array is named.
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
