"""State of an array in an integrity test: which steps are possible, and the state after each.

Arithmetic on values; md is not asked. What md does on its own (the rebuild of a spare) counts as finished only after a
step that waits for it; until then such a member counts as missing.

`shorten` shrinks a failing step sequence: parts are left out while it still fails. Every trial costs drive time. It is
delta debugging (A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28/2, 2002)
that also drops the steps which the state of the array then makes impossible; afterwards the remaining steps are
simplified. Hypothesis' own shrinker needs hundreds of trials, of a second and more each; this needs tens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.steps import (
    BITMAPS,
    UNIT_BYTES,
    Add,
    CheckArray,
    Cut,
    Fail,
    Grow,
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

#: Levels that mdadm can grow by a drive without a new layout.
GROWING = (RaidLevel.RAID1, RaidLevel.RAID5, RaidLevel.RAID6)


@frozen
class Abilities:
    """Abilities of the machine and the protocol."""

    #: The array takes discards.
    trim: bool = False
    #: The power of the machine can be cut.
    power_cut: bool = False
    #: Power cuts also during writes to a degraded RAID 5 or 6, which need not survive them.
    write_hole: bool = False


@frozen
class ArrayLife:
    """State of the array and its members."""

    geometry: Geometry
    bitmap: bool
    #: Number of drives of the run, numbered from 1.
    drives: int
    #: Number of regions, and bytes of each.
    regions: int
    region_bytes: int
    abilities: Abilities = field(default_factory=Abilities)
    #: Members with all data.
    whole: frozenset[int] = frozenset()
    #: Members that are rebuilding, and idle spares.
    filling: frozenset[int] = frozenset()
    idle: frozenset[int] = frozenset()
    #: Failed members that are not yet removed.
    failed: frozenset[int] = frozenset()
    #: Failed or removed members for which the bitmap has everything written since.
    re_addable: frozenset[int] = frozenset()

    @classmethod
    def begin(
        cls, geometry: Geometry, bitmap: str, drives: int, regions: int, region_bytes: int, abilities: Abilities
    ) -> ArrayLife:
        """State of a new array, built of the first drives."""
        whole = frozenset(range(1, geometry.width + 1))
        return cls(geometry, bitmap == "internal", drives, regions, region_bytes, abilities, whole)

    @property
    def level(self) -> RaidLevel:
        return self.geometry.level

    @property
    def free(self) -> frozenset[int]:
        """Drives outside the array."""
        return frozenset(range(1, self.drives + 1)) - self.whole - self.filling - self.idle - self.failed

    @property
    def lacking(self) -> int:
        """Number of members without all data."""
        return self.geometry.width - len(self.whole)

    @property
    def members(self) -> frozenset[int]:
        """Members needed for an assembly: all but the failed ones."""
        return self.whole | self.filling | self.idle

    def objection(self, step: Step) -> str:
        """Reason why the step is not possible now, as half a sentence; "" if it is."""
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
        """State after a possible step; ``ValueError`` for an impossible one."""
        if why := self.objection(step):
            raise ValueError(f"{step}: {why}")
        match step:
            case Fail(drive):
                return self._lost(drive)
            case Remove(drive):
                return replace(self, failed=self.failed - {drive})
            case ReAdd(drive):
                return replace(self, filling=self.filling | {drive}, re_addable=self.re_addable - {drive})
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
            return "the power of this machine cannot be cut: see the hook pytest_ssdqual_power_cut"
        if self.geometry.has_parity and self.lacking and region is not None and not self.abilities.write_hole:
            return f"a {self.level} that lacks a member does not promise to survive it: see integrity.write_hole"
        return ""

    def _against_member(self, step: Fail | Remove | ReAdd | Add | Grow) -> str:
        if FACTS[self.level].may_lose(self.geometry.width) == 0:
            return f"{self.level} cannot lose or be given a member"
        if not 1 <= step.number <= self.drives:
            return f"there are drives 1 to {self.drives}"
        match step:
            case Fail(drive) if drive in self.whole:
                enough = self.lacking < FACTS[self.level].may_lose(self.geometry.width)
                return "" if enough else f"{self.geometry} cannot lose another member"
            case Fail(drive):
                return "" if drive in self.filling else f"drive {drive} is no member"
            case Remove(drive):
                return "" if drive in self.failed else f"drive {drive} has not failed"
            case ReAdd(drive) if drive not in self.re_addable or drive not in self.free:
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
        """State after the loss of a member: a spare takes its place at once, and then md clears the bitmap sooner or
        later.
        """
        taken = frozenset(sorted(self.idle)[:1])
        re_addable = self.re_addable | {drive} if self.bitmap and drive in self.whole and not taken else frozenset()
        return replace(
            self,
            whole=self.whole - {drive},
            filling=(self.filling - {drive}) | taken,
            idle=self.idle - taken,
            failed=self.failed | {drive},
            re_addable=re_addable if not taken else frozenset(),
        )

    def _given(self, drive: int) -> ArrayLife:
        if len(self.whole) + len(self.filling) < self.geometry.width:
            return replace(self, filling=self.filling | {drive}, re_addable=frozenset())
        return replace(self, idle=self.idle | {drive}, re_addable=self.re_addable - {drive})

    def _grown(self, drive: int) -> ArrayLife:
        wider = replace(self, geometry=Geometry(self.level, self.geometry.width + 1), re_addable=frozenset())
        if self.level is RaidLevel.RAID1:
            return replace(wider, filling=self.filling | {drive})
        return replace(wider, whole=self.whole | {drive}, regions=self.regions + 2)


def possible(history: StepSequence, begin: ArrayLife) -> StepSequence:
    """Return the sequence without the steps that are impossible where they stand, such as after parts were cut out."""
    state, steps = begin, []
    for step in history.steps:
        if not state.objection(step):
            state = state.after(step)
            steps.append(step)
    return replace(history, steps=tuple(steps))


#: Runs a step sequence; true if it still fails.
Fails = Callable[[StepSequence], bool]


def shorten(history: StepSequence, begin: ArrayLife, fails: Fails) -> StepSequence:
    """Return the shortest sequence found that fails like this one; the sequence itself if there is none.

    ``fails`` is called once for each trial; it ends the search by returning False for everything.
    """
    asked: dict[StepSequence, bool] = {history: True}

    def again(trial: StepSequence) -> bool:
        if trial not in asked:
            asked[trial] = fails(trial)
        return asked[trial]

    best = history
    while True:
        found = next((trial for trial in _simpler(best, begin) if again(trial)), None)
        if found is None:
            return best
        best = found


def _simpler(history: StepSequence, begin: ArrayLife) -> Iterator[StepSequence]:
    """Yield trials, the greatest gain first; each is at least one step shorter, or simpler in one step."""
    steps, begin = history.steps, replace(begin, bitmap=history.bitmap != BITMAPS[0])
    size = max(1, len(steps) // 2)
    while steps and size:
        # From the end, where steps are most often irrelevant to the finding.
        for start in range(max(0, len(steps) - size), -1, -size):
            yield possible(replace(history, steps=steps[:start] + steps[start + size :]), begin)
            if start and start < size:
                yield possible(replace(history, steps=steps[start:]), begin)
        size //= 2
    without = replace(history, bitmap=BITMAPS[0])
    if begin.bitmap and possible(without, replace(begin, bitmap=False)) == without:
        yield without
    for index, step in enumerate(steps):
        for plain in _plainer(step):
            trial = replace(history, steps=(*steps[:index], plain, *steps[index + 1 :]))
            if possible(trial, begin) == trial:
                yield trial


def _plainer(step: Step) -> Iterator[Step]:
    """Simpler forms of a step, or the same on the first region."""
    match step:
        case Write(region, block_bytes, flushed):
            if not flushed:
                yield Write(region, block_bytes)
            if block_bytes != UNIT_BYTES:
                yield Write(region, UNIT_BYTES, flushed)
            if region:
                yield Write(0, block_bytes, flushed)
        case Trim(region) if region:
            yield Trim(0)
        case Cut(int(region), block_bytes):
            yield Cut()
            if block_bytes != UNIT_BYTES:
                yield Cut(region, UNIT_BYTES)
            if region:
                yield Cut(0, block_bytes)
