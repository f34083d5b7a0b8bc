"""Which steps are possible in which state of an array, and what they make of it. Pure: nothing is looked at.

What md does by itself and in its own time (a spare that is rebuilt) is only known to be over when somebody waited for
it; until then such a member is counted as missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pytest_ssdqual.qual.integrity.steps import (
    Add,
    CheckArray,
    Cut,
    Fail,
    Grow,
    Read,
    ReAdd,
    RebuildMember,
    Remove,
    Repair,
    Restart,
    Step,
    StepSequence,
    Trim,
    Write,
)
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel

#: What mdadm can make wider by a drive without a new layout.
GROWING = (RaidLevel.RAID1, RaidLevel.RAID5, RaidLevel.RAID6)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the machine and the protocol allow."""

    #: The array takes discards.
    trim: bool = False
    #: There is somebody to cut the power.
    power_cut: bool = False
    #: Also where RAID 5 and 6 do not promise to survive it: under writes while members are missing.
    write_hole: bool = False


@dataclass(frozen=True, slots=True)
class ArrayLife:
    """One state."""

    geometry: Geometry
    bitmap: bool
    #: Drives that the run was given: 1 to this.
    drives: int
    #: How many regions there are, and bytes of each.
    regions: int
    region_bytes: int
    abilities: Abilities = field(default_factory=Abilities)
    #: Members that have all data.
    whole: frozenset[int] = frozenset()
    #: Members that are being rebuilt, and spares that wait.
    filling: frozenset[int] = frozenset()
    idle: frozenset[int] = frozenset()
    #: Failed, and not yet removed.
    failed: frozenset[int] = frozenset()
    #: Failed or removed, and what was written since is in the bitmap.
    remembered: frozenset[int] = frozenset()

    @classmethod
    def begin(
        cls, geometry: Geometry, bitmap: str, drives: int, regions: int, region_bytes: int, abilities: Abilities
    ) -> ArrayLife:
        """Just built, of the first drives."""
        whole = frozenset(range(1, geometry.width + 1))
        return cls(geometry, bitmap == "internal", drives, regions, region_bytes, abilities, whole)

    @property
    def level(self) -> RaidLevel:
        return self.geometry.level

    @property
    def free(self) -> frozenset[int]:
        """Drives that are not in the array."""
        return frozenset(range(1, self.drives + 1)) - self.whole - self.filling - self.idle - self.failed

    @property
    def lacking(self) -> int:
        """Members whose data are not all there."""
        return self.geometry.width - len(self.whole)

    @property
    def members(self) -> frozenset[int]:
        """All that an assembly needs: without those that failed."""
        return self.whole | self.filling | self.idle

    def objection(self, step: Step) -> str:
        """Why the step is not possible now, as half a sentence; empty if it is."""
        match step:
            case Write(region, block_bytes) | Cut(int(region), block_bytes) if self._misses(region, block_bytes):
                return self._misses(region, block_bytes)
            case Trim(region):
                return "the array takes no discards" if not self.abilities.trim else self._misses(region, 0)
            case Cut(region):
                return self._against_cut(region)
            case Fail() | Remove() | ReAdd() | Add() | Grow():
                return self._against_member(step)
            case RebuildMember():
                return "" if self.filling else "nothing is being rebuilt"
            case CheckArray() | Repair():
                return self._against_check()
        return ""

    def after(self, step: Step) -> ArrayLife:
        """The state that a possible step leaves; ``ValueError`` for an impossible one."""
        if why := self.objection(step):
            raise ValueError(f"{step}: {why}")
        match step:
            case Fail(drive):
                return self._lost(drive)
            case Remove(drive):
                return replace(self, failed=self.failed - {drive})
            case ReAdd(drive):
                return replace(self, filling=self.filling | {drive}, remembered=self.remembered - {drive})
            case Add(drive):
                return self._given(drive)
            case RebuildMember():
                return replace(self, whole=self.whole | self.filling, filling=frozenset())
            case Restart() | Cut():
                return replace(self, failed=frozenset())
            case Grow(drive):
                return self._grown(drive)
        return self

    def _misses(self, region: int, block_bytes: int) -> str:
        if region >= self.regions:
            return f"there are regions 0 to {self.regions - 1}"
        if block_bytes > self.region_bytes:
            return f"a region has {self.region_bytes} bytes"
        return ""

    def _against_cut(self, region: int | None) -> str:
        if not self.abilities.power_cut:
            return "nobody can cut the power of this machine: see the hook pytest_ssdqual_power_cut"
        if self.geometry.has_parity and self.lacking and region is not None and not self.abilities.write_hole:
            return f"a {self.level} that lacks a member does not promise to survive it: see integrity.write_hole"
        return ""

    def _against_member(self, step: Fail | Remove | ReAdd | Add | Grow) -> str:
        if FACTS[self.level].may_lose(self.geometry.width) == 0:
            return f"{self.level} cannot lose or be given a member"
        if not 1 <= step.drive <= self.drives:
            return f"there are drives 1 to {self.drives}"
        match step:
            case Fail(drive) if drive in self.whole:
                enough = self.lacking < FACTS[self.level].may_lose(self.geometry.width)
                return "" if enough else f"{self.geometry} cannot lose another member"
            case Fail(drive):
                return "" if drive in self.filling else f"drive {drive} is no member"
            case Remove(drive):
                return "" if drive in self.failed else f"drive {drive} has not failed"
            case ReAdd(drive) if drive not in self.remembered or drive not in self.free:
                return f"drive {drive} cannot be the member that it was"
            case Add(drive) if drive not in self.free:
                return f"drive {drive} is in the array"
            case Add() if self.idle:
                return "there is a spare"
            case Grow(drive):
                return self._against_growth(drive)
        return ""

    def _against_growth(self, drive: int) -> str:
        if self.level not in GROWING:
            return f"{self.level} cannot grow by a drive"
        if self.lacking or self.idle or self.failed:
            return "only a whole array without spares can grow"
        return "" if drive in self.free else f"drive {drive} is in the array"

    def _against_check(self) -> str:
        if FACTS[self.level].may_lose(self.geometry.width) == 0:
            return f"{self.level} has nothing to compare"
        return "members are missing" if self.lacking else ""

    def _lost(self, drive: int) -> ArrayLife:
        """A spare takes its place at once; with one, the bitmap is cleared sooner or later."""
        taken = frozenset(sorted(self.idle)[:1])
        remembered = self.remembered | {drive} if self.bitmap and drive in self.whole and not taken else frozenset()
        return replace(
            self,
            whole=self.whole - {drive},
            filling=(self.filling - {drive}) | taken,
            idle=self.idle - taken,
            failed=self.failed | {drive},
            remembered=remembered if not taken else frozenset(),
        )

    def _given(self, drive: int) -> ArrayLife:
        if len(self.whole) + len(self.filling) < self.geometry.width:
            return replace(self, filling=self.filling | {drive}, remembered=frozenset())
        return replace(self, idle=self.idle | {drive}, remembered=self.remembered - {drive})

    def _grown(self, drive: int) -> ArrayLife:
        wider = replace(self, geometry=Geometry(self.level, self.geometry.width + 1), remembered=frozenset())
        if self.level is RaidLevel.RAID1:
            return replace(wider, filling=self.filling | {drive})
        return replace(wider, whole=self.whole | {drive}, regions=self.regions + 2)


def possible(history: StepSequence, begin: ArrayLife) -> StepSequence:
    """Without the steps that are not possible where they stand: what is left of a history that was cut up."""
    life, kept = begin, []
    for step in history.steps:
        if not life.objection(step):
            life = life.after(step)
            kept.append(step)
    return replace(history, steps=tuple(kept))


__all__ = ["Abilities", "ArrayLife", "Read", "possible"]
