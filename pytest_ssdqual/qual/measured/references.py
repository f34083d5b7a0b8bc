"""What measurements of arrays are compared with: drives alone, md's ceiling, and what their members can do."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.judgeable import Find, Judgeable, Subject
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.workload.workload import Workload


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
    #: Completion time of the memory devices, nanoseconds.
    completion_ns: int = 0
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
