"""One workload on each of several drives alone, while the others are idle."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class DrivesAlone:
    """One measurement for each drive, in the order of the drives; at least one."""

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
