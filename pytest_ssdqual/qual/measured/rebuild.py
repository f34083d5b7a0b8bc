"""A rebuild under load: its duration, the load's measurement, and whether the data survived."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.judgeable import Judgeable, Subject
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit


@dataclass(frozen=True, slots=True, repr=False)
class Intact:
    """Integrity of an array's data after its rebuild: true if intact; its ``repr`` is the sentence for a test."""

    geometry: Geometry
    mismatches: int
    damage: str

    def __bool__(self) -> bool:
        return not self.mismatches and not self.damage

    def __repr__(self) -> str:
        about = f"data of {self.geometry.healthy} after {self.geometry.missing} of its members was rebuilt"
        if self:
            return f"{about}: INTACT, all read back as written and all members agree"
        found = [f"md's check found {self.mismatches:,} mismatches"] if self.mismatches else []
        return f"{about}: DAMAGED, {'; '.join([*found, self.damage] if self.damage else found)}"


@frozen
class Rebuild(Judgeable):
    """One rebuild: members failed, removed and added again; ``geometry`` is the rebuilding one
    (``raid5x4-1rebuilding``).
    """

    geometry: Geometry
    #: From the addition of the members until md was idle.
    seconds: float
    #: Bytes written to each replaced member.
    bytes_per_member: int
    #: Measurement of the load; its window lies within the rebuild.
    foreground: Measured
    #: md's mismatch count after a check of the whole array; 0 is right.
    mismatches: int
    #: Description of data that did not read back as written; "" if all data are intact.
    damage: str = ""
    #: Polling interval of md's state: either end of the rebuild may have been detected this late.
    resolution_s: float = 1.0

    kind: ClassVar[Scope] = Scope.REBUILD

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.resolution_s < 0 or self.bytes_per_member < 0 or self.mismatches < 0:
            raise ValueError(f"not a rebuild: {self.bytes_per_member} bytes in {self.seconds} s")

    @property
    def subject(self) -> Subject:
        return Subject((self.geometry,), (self.foreground.workload,))

    def raw_files(self) -> tuple[str, ...]:
        return self.foreground.raw_files()

    def summary(self) -> dict[str, Any]:
        """Return the journal record, in base units."""
        return {
            "geometry": self.geometry,
            "workload": str(self.foreground.workload),
            "seconds": self.seconds,
            "resolution_s": self.resolution_s,
            "bytes_per_member": self.bytes_per_member,
            "rate_bytes_per_s": self.rate_bytes_per_s,
            "mismatches": self.mismatches,
            "damage": self.damage,
            "intact": bool(self.intact),
            "foreground": self.foreground.summary(),
        }

    @property
    def rate_bytes_per_s(self) -> float:
        """Bytes per second of each replaced member."""
        return self.bytes_per_member / self.seconds

    @property
    def intact(self) -> Intact:
        return Intact(self.geometry, self.mismatches, self.damage)

    def time(self) -> Estimate:
        """Duration of the rebuild. One reading: the interval is the clock's resolution, not the variation between
        rebuilds.
        """
        low, high = max(0.0, self.seconds - self.resolution_s), self.seconds + self.resolution_s
        return Estimate(self.seconds, low, high, 1, Unit.SECONDS, is_reading=True)

    def rate(self) -> Estimate:
        """Bytes per second of each replaced member; one reading, like ``time``."""
        time = self.time()
        high = self.bytes_per_member / time.low if time.low else math.inf
        low = self.bytes_per_member / time.high
        return Estimate(self.rate_bytes_per_s, low, high, 1, Unit.BYTES_PER_SECOND, is_reading=True)
