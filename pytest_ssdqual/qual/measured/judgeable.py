"""The base of everything that a claim can be judged on, the subject of a verdict, and drives that it is without.

`Measured`, `PredictedRun`, `Sweep`, `Curve`, `Saturation` and `Rebuild` are `Judgeable`. The estimators, the evidence
and the baseline use nothing else of them; a claim's scope names the kind that it is judged on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol, Self, TypeVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.workload.workload import Workload


@frozen
class Subject:
    """The subject of a verdict: one array under one workload, several of either, or one drive of several."""

    geometries: tuple[Geometry, ...]
    workloads: tuple[Workload, ...]
    #: Serial number, if the verdict is about only this one of the drives side by side.
    drive: str = ""

    def __post_init__(self) -> None:
        if not self.geometries or not self.workloads:
            raise ValueError("a verdict needs an array and a workload")

    def __str__(self) -> str:
        arrays = _span(self.geometries)
        return f"{f'drive {self.drive} ({arrays})' if self.drive else arrays} {_span(self.workloads)}"

    @property
    def geometry(self) -> Geometry:
        """The array by which a spec has its promise: the widest."""
        return max(self.geometries)

    @property
    def workload(self) -> Workload:
        """The workload by which a spec has its promise: the first."""
        return self.workloads[0]


class Judgeable(ABC):
    """A measurement, or several that are judged together."""

    __slots__ = ()

    #: Scope of the claims that are judged on it; of drives side by side also ``Scope.MEMBERS``.
    kind: ClassVar[Scope]

    @property
    @abstractmethod
    def subject(self) -> Subject:
        """All its arrays and workloads; of a rebuild the load during it."""

    @property
    def drive(self) -> str:
        """Serial number, if it is of one drive that is judged alone; else ""."""
        return ""

    @property
    def has_stopping_rule(self) -> bool:
        """Return whether it lasted until its claims were decided; False if the protocol fixes its length."""
        return False

    def members(self) -> tuple[Self, ...]:
        """Return the same of each drive side by side; only itself if there is nothing to divide."""
        return (self,)

    @abstractmethod
    def raw_files(self) -> tuple[str, ...]:
        """Return the names of fio's outputs in the run folder, each once."""

    def counterpart(self, find: Find) -> Self:
        """Return the same measurement of another run, in which ``find`` finds each process's result."""
        return find(self)


J = TypeVar("J", bound=Judgeable)


class Find(Protocol):
    """Finds the same measurement in another run."""

    def __call__(self, one: J, /) -> J: ...


def _span(items: tuple[object, ...]) -> str:
    """Return the only item, or the first and the last of many: the sentence has to stay short."""
    return str(items[0]) if len(items) == 1 else f"{items[0]}…{items[-1]}"


#: Drives named in a sentence.
MOST_NAMED = 5


@frozen
class LeftOutDrive:
    """A drive that was to be measured and has no figure."""

    serial: str
    #: Index among the drives of the run, in the order in which they were given.
    place: int
    #: A clause without a subject: ``failed in test_iops.py::test_iops``.
    why: str
    #: True if it failed under the load, which is a verdict of its own; False if nothing is known about it.
    failed: bool

    def __str__(self) -> str:
        return f"{self.serial} ({self.why})"


def describe_left_out(drives: Sequence[LeftOutDrive], of: int) -> str:
    """Return a clause that names the drives that are left out of ``of``; empty if there are none."""
    if not drives:
        return ""
    is_or_are = "is" if len(drives) == 1 else "are"
    return f"{len(drives)} of {of} drives {is_or_are} left out: {named(drives, MOST_NAMED)}"
