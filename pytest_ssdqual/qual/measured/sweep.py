"""Several measurements that are judged together, or with a reference.

A `Sweep` is over widths of a level, a `Curve` over workloads; references are drives alone, md's ceiling, and what the
members of an array can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import ClassVar, Self

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.judgeable import Find, Judgeable, Subject
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.workload.workload import Workload


@frozen
class SeveralMeasured(Judgeable):
    """One or more measurements, in their order; drives side by side are compared in a single measurement only."""

    measurements: tuple[Measured, ...]

    def __post_init__(self) -> None:
        if not self.measurements:
            raise ValueError("nothing was measured")

    def __iter__(self) -> Iterator[Measured]:
        return iter(self.measurements)

    def __len__(self) -> int:
        return len(self.measurements)

    def __getitem__(self, index: int) -> Measured:
        return self.measurements[index]

    @property
    def subject(self) -> Subject:
        geometries = tuple(dict.fromkeys(each.geometry for each in self))
        return Subject(geometries, tuple(dict.fromkeys(each.workload for each in self)))

    @property
    def drive(self) -> str:
        return self.measurements[0].drive

    def raw_files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(raw for each in self for raw in each.raw_files()))

    def counterpart(self, find: Find) -> Self:
        return replace(self, measurements=tuple(map(find, self.measurements)))


@frozen
class Sweep(SeveralMeasured):
    """The same workload on several widths of a level, narrowest first."""

    kind: ClassVar[Scope] = Scope.SWEEP
    #: IOPS of arrays of equal drives, by prediction; empty if not all widths have one.
    expected: Mapping[Geometry, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        SeveralMeasured.__post_init__(self)
        object.__setattr__(self, "measurements", tuple(sorted(self.measurements, key=lambda each: each.geometry)))


@frozen
class Curve(SeveralMeasured):
    """Several workloads on one array or drive, in the order of their set: queue depths, mixes, alignments."""

    kind: ClassVar[Scope] = Scope.CURVE

    def of_drives(self) -> tuple[Curve, ...]:
        """Return a curve of each drive side by side that is in all measurements; of an array only its own."""
        by_drive = [{each.drive: each for each in measured.members()} for measured in self]
        common = [drive for drive in by_drive[0] if all(drive in each for each in by_drive)]
        return tuple(Curve(tuple(each[drive] for each in by_drive)) for drive in common)


@frozen
class DrivesAlone:
    """One workload on each of several drives alone, while the others are idle; at least one, in their order."""

    measurements: tuple[Measured, ...]

    def __post_init__(self) -> None:
        if not self.measurements:
            raise ValueError("no drive was measured alone")

    @property
    def workload(self) -> Workload:
        return self.measurements[0].workload

    def shares(self, together: Measured) -> dict[str, float]:
        """Return the IOPS of each drive side by side over those alone, by serial number."""
        alone = {each.drive: each.iops for each in self.measurements}
        return {each.drive: each.iops / alone[each.drive] for each in together.members() if alone.get(each.drive)}


@frozen
class Ceiling:
    """IOPS of one workload on an array of memory devices, on the host of the drives: what md and the host can do."""

    geometry: Geometry
    workload: str
    #: The block driver below md: ``null_blk``, ``brd`` or ``zram``; "" if nothing could be measured.
    driver: str
    #: None if unknown.
    iops: float | None
    #: Reason why ``iops`` is None.
    unknown: str = ""
    #: The boot of the machine that it was measured in; another one may have another kernel or other settings. Empty if
    #: unknown.
    boot_id: str = ""
    #: The whole workload, as two may have one name; None if unknown.
    asked: Workload | None = None


@frozen
class PredictedRun(Judgeable):
    """One workload on one array, and the prediction from the curves of its members."""

    measured: Measured
    #: IOPS, by ``raid.prediction``.
    predicted: Estimate
    #: IOPS of one bare drive, the median of the members, under the same workload; None for a mix, which members see as
    #: another one.
    one_drive: Estimate | None = None

    kind: ClassVar[Scope] = Scope.PREDICTED

    @property
    def subject(self) -> Subject:
        return self.measured.subject

    @property
    def drive(self) -> str:
        return self.measured.drive

    @property
    def has_stopping_rule(self) -> bool:
        return self.measured.has_stopping_rule

    def raw_files(self) -> tuple[str, ...]:
        return self.measured.raw_files()

    def counterpart(self, find: Find) -> Self:
        return replace(self, measured=find(self.measured))
