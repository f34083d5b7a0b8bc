"""An array that was never there, member by member, with a volatile cache; and ways in which it may lose data.

It is told about blocks, members and power; of levels it knows only how many members it has, as every member holds all
data. ``Bugs`` are what the search has to find.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.reference_model import MOST_BYTES
from pytest_ssdqual.qual.integrity.stamp import Stamp, filled
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES, StepSequence
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.integrity.target import PowerCutOutcome, TargetLayout
from pytest_ssdqual.rig.machine.machine import RigError

ATOM = 512
CHUNK = 8 * UNIT_BYTES


@dataclass(frozen=True)
class Bugs:
    """What is wrong with it; nothing by default."""

    #: Every write of so large transfers to the second half of the array is acknowledged, and not done.
    lost_writes: int = 0
    #: A member that is re-added keeps what it had when it was removed.
    stale_re_add: bool = False
    #: A member is believed to be rebuilt when half of it is.
    half_rebuilt: bool = False
    #: A flush does nothing.
    flush_ignored: bool = False
    #: A power cut leaves half of an atomic unit new, half of it old.
    torn_atom: bool = False
    #: A discard takes one unit more at its end.
    long_trim: bool = False
    #: A restart loses the last write.
    forgetful_restart: bool = False
    #: Transfers of 16 KiB to the first region land 4 KiB further on.
    misplaced: bool = False
    #: A write reaches all members but the last.
    one_copy_stale: bool = False
    #: A wider array has lost its first unit.
    short_growth: bool = False
    #: A power cut under writes, with members missing, takes a unit that was not written.
    write_hole: bool = False
    #: What is read differs once, and not when it is read again.
    two_answers: bool = False
    #: A broken rig: this step raises.
    broken: str = ""


@dataclass
class SimulatedBody:
    """A ``target.IntegrityTarget``."""

    bugs: Bugs = field(default_factory=Bugs)
    drives: int = 4
    can: Abilities = field(default_factory=lambda: Abilities(trim=True, power_cut=True))
    size_bytes: int = 32 * CHUNK
    regions: int = 6
    #: Of a stripe; a region is one and a unit more.
    chunk: int = CHUNK
    #: How often an array was built.
    built: int = 0
    closed: bool = False
    geometry: Geometry = field(default=Geometry.parse("raid1x2"))
    #: What each drive holds.
    held: dict[int, bytearray] = field(default_factory=dict)
    #: What the media hold that has reached them, as far as it differs: atom → old content.
    cache: dict[int, bytes] = field(default_factory=dict)
    #: Members with all data, and those that are being rebuilt.
    whole: list[int] = field(default_factory=list)
    filling: list[int] = field(default_factory=list)
    idle: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311

    def build(self, history: StepSequence) -> TargetLayout:
        self._may_break("build")
        self.built += 1
        self.geometry, width = history.geometry, history.geometry.width
        self.chance = random.Random(1)  # noqa: S311
        stripe = self.chunk * (1 if self.geometry.level is RaidLevel.RAID1 else self.geometry.data_drives)
        self.size_bytes = 6 * self.regions * stripe // UNIT_BYTES * UNIT_BYTES
        self.held = {number: bytearray(self.size_bytes) for number in range(1, width + 1)}
        self.whole, self.filling, self.idle, self.failed = list(range(1, width + 1)), [], [], []
        self.cache.clear()
        each = min(stripe, MOST_BYTES) + UNIT_BYTES
        return TargetLayout(
            self.size_bytes, each, self.regions, ATOM, stripe if self.geometry.has_parity else 0, self.drives
        )

    def abilities(self, level: RaidLevel) -> Abilities:
        return self.can

    def write(self, history: int, stretches: Sequence[Stretch], *, flush: bool) -> None:
        self._may_break("write")
        for each in stretches:
            lost = each.block_bytes == self.bugs.lost_writes and each.offset_bytes > self.size_bytes // 2
            if not lost:
                for at, data in _transfers(history, each):
                    away = UNIT_BYTES if self.bugs.misplaced and each.block_bytes == 4 * UNIT_BYTES and at == 0 else 0
                    self._put(at + away, data, cached=not flush or self.bugs.flush_ignored)
        if flush and not self.bugs.flush_ignored:
            self.cache.clear()

    def differs(self, history: int, stretches: Sequence[Stretch]) -> bool:
        if self.bugs.two_answers:
            return True
        return any(
            self.read(each.offset_bytes, each.size_bytes) != b"".join(data for _, data in _transfers(history, each))
            for each in stretches
        )

    def read(self, offset_bytes: int, size_bytes: int) -> bytes:
        self._may_break("read")
        # Members take turns, as those of a mirror do.
        self.chance.shuffle(self.whole)
        return bytes(self.held[self.whole[0]][offset_bytes : offset_bytes + size_bytes])

    def trim(self, offset_bytes: int, size_bytes: int) -> None:
        size_bytes += UNIT_BYTES if self.bugs.long_trim else 0
        for at in range(offset_bytes, min(offset_bytes + size_bytes, self.size_bytes), ATOM):
            self._put(at, bytes(ATOM))

    def fail(self, drive: int) -> None:
        (self.whole if drive in self.whole else self.filling).remove(drive)
        self.failed.append(drive)
        if self.idle:
            self._fill(self.idle.pop())

    def remove(self, drive: int) -> None:
        self.failed.remove(drive)

    def re_add(self, drive: int) -> None:
        if self.bugs.stale_re_add:
            self.whole.append(drive)
        else:
            self._fill(drive)

    def add(self, drive: int) -> None:
        if len(self.whole) + len(self.filling) < self.geometry.width:
            self._fill(drive)
        else:
            self.idle.append(drive)

    def settle(self, missing: int) -> None:
        self._may_break("settle")
        self.whole += self.filling
        self.filling.clear()
        if missing != self.geometry.width - len(self.whole):
            raise RigError(f"{missing} members should be missing, {len(self.whole)} are there")

    def compare(self, *, repair: bool) -> int:
        first, *others = (self.held[number] for number in sorted(self.whole))
        if all(first == other for other in others):
            return 0
        wrong = [
            at
            for at in range(0, self.size_bytes, ATOM)
            if any(first[at : at + ATOM] != o[at : at + ATOM] for o in others)
        ]
        if repair:
            for other in others:
                other[:] = first
        return len(wrong)

    def restart(self, members: Sequence[int]) -> None:
        self._require(members)
        if self.bugs.forgetful_restart:
            self._lose_cache(everything=True)
        self.failed.clear()

    def grow(self, drive: int) -> int:
        self.geometry = Geometry(self.geometry.level, self.geometry.width + 1)
        self._fill(drive)
        if self.geometry.has_parity:
            for data in self.held.values():
                data += bytes(self.size_bytes // 2)
            self.size_bytes += self.size_bytes // 2
            self.settle(0)
        if self.bugs.short_growth:
            for number in self.whole:
                self.held[number][:UNIT_BYTES] = bytes(UNIT_BYTES)
        return self.size_bytes

    def cut(self, members: Sequence[int], missing: int, history: int, over: Stretch | None) -> PowerCutOutcome:
        self._require(members)
        acknowledged = None
        if over:
            acknowledged = over.generation + 1
            for generation in (over.generation, acknowledged):
                done = Stretch(over.offset_bytes, over.size_bytes, generation, over.block_bytes)
                self.write(history, [done], flush=True)
            last = Stretch(over.offset_bytes, over.size_bytes, acknowledged + 1, over.block_bytes)
            for at, data in _transfers(history, last):
                if self.chance.random() < 0.5:
                    self._put(at, data)
        dirty = bool(over and missing and self.geometry.has_parity)
        self._lose_cache(everything=False)
        if dirty and over and self.bugs.write_hole:
            at = over.offset_bytes + over.size_bytes
            for number in (*self.whole, *self.filling):
                self.held[number][at : at + ATOM] = bytes(ATOM)
        self.failed.clear()
        return PowerCutOutcome(acknowledged, dirty)

    def close(self) -> None:
        self.closed = True

    def _put(self, at: int, data: bytes, *, cached: bool = True) -> None:
        before = bytes(self.held[self.whole[0]][at : at + len(data)])
        for start in range(0, len(data) if cached else 0, ATOM):
            self.cache.setdefault(at + start, before[start : start + ATOM])
        members = (*self.whole, *self.filling)
        for number in members[:-1] if self.bugs.one_copy_stale and len(members) > 1 else members:
            self.held[number][at : at + len(data)] = data

    def _lose_cache(self, *, everything: bool) -> None:
        """Any part of what was not flushed is old again."""
        for at, old in sorted(self.cache.items()):
            if everything or self.chance.random() < 0.5:
                count = ATOM // 2 if self.bugs.torn_atom else ATOM
                for number in (*self.whole, *self.filling):
                    self.held[number][at : at + count] = old[:count]
        self.cache.clear()

    def _fill(self, drive: int) -> None:
        """At once; it is believed only when somebody has waited for it."""
        source = self.held[self.whole[0]]
        count = len(source) // 2 if self.bugs.half_rebuilt else len(source)
        self.held[drive] = bytearray(source[:count]) + bytearray(len(source) - count)
        self.filling.append(drive)

    def _require(self, members: Sequence[int]) -> None:
        if sorted(members) != sorted((*self.whole, *self.filling, *self.idle)):
            raise RigError(f"an array of {members} is to be assembled, it has {self.whole} and {self.filling}")

    def _may_break(self, what: str) -> None:
        if self.bugs.broken == what:
            raise RigError(f"{what} failed on the simulated machine")


def _transfers(history: int, each: Stretch) -> list[tuple[int, bytes]]:
    return [
        (at, filled(Stamp(history, each.generation, at), each.block_bytes))
        for at in range(each.offset_bytes, each.offset_bytes + each.size_bytes, each.block_bytes)
    ]
