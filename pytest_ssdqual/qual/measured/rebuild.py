"""A rebuild under load: how long it took, what the load saw of it, and whether the data survived."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit


@dataclass(frozen=True, slots=True, repr=False)
class Intact:
    """Whether an array's data survived its rebuild: true if so, and its ``repr`` is the sentence for a test."""

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


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Members failed, removed and given back; ``geometry`` is the rebuilding one (``raid5x4-1rebuilding``)."""

    geometry: Geometry
    #: From the moment the members were added until md was idle.
    seconds: float
    #: Written to each replaced member.
    bytes_per_member: int
    #: The load that ran meanwhile; its window lies within the rebuild.
    foreground: Measured
    #: md's count after a check of the whole array; 0 is right.
    mismatches: int
    #: What did not read back as it was written, in words; empty: all data are intact.
    damage: str = ""
    #: How often md was asked: by so much either end of the rebuild may have been seen late.
    resolution_s: float = 1.0

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.resolution_s < 0 or self.bytes_per_member < 0 or self.mismatches < 0:
            raise ValueError(f"this is no rebuild: {self.bytes_per_member} bytes in {self.seconds} s")

    @property
    def rate_bytes_per_s(self) -> float:
        """Of each replaced member."""
        return self.bytes_per_member / self.seconds

    @property
    def intact(self) -> Intact:
        return Intact(self.geometry, self.mismatches, self.damage)

    def time(self) -> Estimate:
        """How long it took. One observation: the interval is the clock's resolution, not what another would take."""
        low, high = max(0.0, self.seconds - self.resolution_s), self.seconds + self.resolution_s
        return Estimate(self.seconds, low, high, 1, Unit.SECONDS, is_reading=True)

    def rate(self) -> Estimate:
        """Bytes per second of each replaced member; one observation, as ``time``."""
        time = self.time()
        high = self.bytes_per_member / time.low if time.low else math.inf
        low = self.bytes_per_member / time.high
        return Estimate(self.rate_bytes_per_s, low, high, 1, Unit.BYTES_PER_SECOND, is_reading=True)

    def summary(self) -> dict[str, object]:
        """Plain data in base units, for the record of a run."""
        return {
            "geometry": str(self.geometry),
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
