"""The reference model: what may be read where, by what was acknowledged, flushed, discarded and cut off.

What a host may rely on (the semantics are stated in docs/integrity.md):

* an acknowledged write is what is read from then on, whatever happens to members, as long as the power stays on;
* when the power is cut, what was flushed after it was acknowledged is still there. What was not flushed, or was being
  written at that moment, is old or new in each atomic unit of the drives, never a mixture inside of one;
* what was discarded may hold anything until it is written again.

Where on an array something is written: pairs of regions side by side, from its first byte to its last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.qual.integrity.stamp import Imprint
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol import ArraySettings
from pytest_ssdqual.qual.units import parse_size

#: A region is a stripe and one unit, so that the border between two neighbours lies inside a stripe; of wide arrays
#: with large chunks not more than this.
MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of the array that is written as a whole."""

    number: int
    offset_bytes: int
    size_bytes: int

    @property
    def end_bytes(self) -> int:
        return self.offset_bytes + self.size_bytes

    def written(self, block_bytes: int) -> int:
        """How many of its bytes whole transfers of this size overwrite; the rest at its end stays as it was."""
        return self.size_bytes // block_bytes * block_bytes


def stripe_bytes(geometry: Geometry, settings: ArraySettings) -> int:
    """User data of one stripe; of a mirror, which has none, of a chunk."""
    data = 1 if geometry.level is RaidLevel.RAID1 else geometry.data_drives
    return parse_size(settings.chunk) * data


def region_bytes(geometry: Geometry, settings: ArraySettings) -> int:
    """Size of every region of an array."""
    return min(stripe_bytes(geometry, settings), MOST_BYTES) + UNIT_BYTES


def spread(size_bytes: int, each_bytes: int, count: int, begin_bytes: int = 0) -> tuple[Region, ...]:
    """Up to ``count`` regions in pairs of neighbours, evenly from ``begin_bytes`` to the last byte of
    ``size_bytes``.

    Fewer where there is not enough room; ``ValueError`` where there is none for one pair.
    """
    room = size_bytes - begin_bytes
    pairs = min(count // 2, room // (2 * each_bytes))
    if pairs < 1:
        raise ValueError(f"{room} bytes have no room for two regions of {each_bytes}")
    last = room // UNIT_BYTES * UNIT_BYTES - 2 * each_bytes
    starts = [begin_bytes + last * pair // max(1, pairs - 1) // UNIT_BYTES * UNIT_BYTES for pair in range(pairs)]
    return tuple(
        Region(2 * pair + half, start + half * each_bytes, each_bytes)
        for pair, start in enumerate(starts)
        for half in (0, 1)
    )


def behind(known: Sequence[Region], size_bytes: int) -> tuple[Region, ...]:
    """Two more, at the new end of an array that has grown to ``size_bytes``; ``ValueError`` if they do not fit."""
    each = known[0].size_bytes
    start = size_bytes // UNIT_BYTES * UNIT_BYTES - 2 * each
    if start < max(region.end_bytes for region in known):
        raise ValueError(f"the array has grown to {size_bytes} bytes only")
    return tuple(Region(len(known) + half, start + half * each, each) for half in (0, 1))


#: Generations that are set aside for one power cut: so many times at most a region is overwritten meanwhile.
PASSES = 1 << 16

#: Generations; None: anything at all.
Allowed = frozenset[int] | None


class MismatchKind(StrEnum):
    """What is wrong with a block."""

    STALE = "it holds an earlier write"
    AHEAD = "it holds a later write than it may"
    MIXED = "it holds a mixture of writes within one atomic unit"
    ELSEWHERE = "it holds what was written to another place"
    FOREIGN = "it holds data of another history"
    GARBAGE = "it holds nothing that was ever written"
    UNREADABLE = "it cannot be read"
    DISAGREE = "copies or parity do not agree"
    WRITE_HOLE = "the write hole has lost data"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One atomic unit that does not hold what it must; or, without an offset, something about the whole array."""

    kind: MismatchKind
    #: In the array; None: not a block.
    offset_bytes: int | None = None
    found: str = ""
    expected: str = ""
    #: Whether it was flushed and not being written: then nothing excuses it.
    settled: bool = True


@dataclass(slots=True)
class StampedUnit:
    """What one unit of 4 KiB may hold now, and what it may hold if the power is cut now."""

    now: Allowed = None
    durable: Allowed = None


@dataclass(frozen=True, slots=True)
class Torn:
    """A region that was overwritten again and again when the power was cut; pass after pass, each flushed."""

    first: int
    #: The last pass that was told to be written and flushed before the cut; None: none was.
    acknowledged: int | None
    block_bytes: int


@dataclass(slots=True)
class ReferenceModel:
    """The model of one history."""

    history: int
    #: The drives' promise: what is written at once within this is never torn by a power cut.
    atom_bytes: int
    #: User data of a stripe, if it has parity; else 0.
    stripe_bytes: int = 0
    regions: list[Region] = field(default_factory=list)
    _units: dict[int, list[StampedUnit]] = field(default_factory=dict)
    _torn: dict[int, Torn] = field(default_factory=dict)
    #: Ends of ranges of generations, and the size of the transfers that they were written with.
    _blocks: list[tuple[int, int]] = field(default_factory=list)
    _in_flight: set[int] = field(default_factory=set)
    #: Stripes whose parity may have been wrong when it was needed.
    _holes: set[int] = field(default_factory=set)

    def add(self, regions: Iterable[Region]) -> None:
        """Regions that hold anything yet."""
        for region in regions:
            self.regions.append(region)
            self._units[region.number] = [StampedUnit() for _ in range(region.size_bytes // UNIT_BYTES)]

    def begin(self, block_bytes: int, passes: int = 1) -> int:
        """The generation of a write that begins now; the first of so many."""
        first = self._blocks[-1][0] if self._blocks else 1
        self._blocks.append((first + passes, block_bytes))
        return first

    def wrote(self, region: Region, generation: int, *, flushed: bool) -> None:
        """A write of ``begin`` was acknowledged, in whole transfers."""
        for unit in self._written(region, self.block_bytes(generation)):
            unit.now = frozenset((generation,))
            unit.durable = None if unit.durable is None else unit.durable | unit.now
        if flushed:
            self.flush()

    def flush(self) -> None:
        """All that was acknowledged survives from now on."""
        for units in self._units.values():
            for unit in units:
                unit.durable = unit.now

    def trimmed(self, region: Region) -> None:
        """It may hold anything."""
        for unit in self._units[region.number]:
            unit.now = unit.durable = None

    @property
    def has_trimmed(self) -> bool:
        """Whether something may hold anything, and copies of it need not agree."""
        return any(unit.now is None for units in self._units.values() for unit in units)

    def cut(self, region: Region | None = None, torn: Torn | None = None) -> None:
        """The power was cut; while ``region`` was overwritten, if one is given."""
        if torn and torn.acknowledged is not None:
            self.flush()
        self._in_flight = {at for _, at, unit in self._all() if unit.durable is None or unit.durable != unit.now}
        for units in self._units.values():
            for unit in units:
                unit.now = unit.durable
        if region and torn:
            self._torn[region.number] = torn
            count = region.written(torn.block_bytes) // UNIT_BYTES
            self._in_flight |= {region.offset_bytes + index * UNIT_BYTES for index in range(count)}

    def started_dirty(self) -> None:
        """After the cut, members were missing and parity had to be believed as it was: the write hole (md(4))."""
        if self.stripe_bytes:
            self._holes |= {at // self.stripe_bytes for at in self._in_flight}

    def certain(self, region: Region) -> tuple[tuple[int, int, int], ...]:
        """Offset, size and generation of the stretches that may hold only one thing, of whole transfers."""
        if region.number in self._torn:
            return ()
        found: list[tuple[int, int, int]] = []
        for index, unit in enumerate(self._units[region.number]):
            if unit.now is not None and len(unit.now) == 1:
                (generation,) = unit.now
                at = region.offset_bytes + index * UNIT_BYTES
                if found and found[-1][2] == generation and sum(found[-1][:2]) == at:
                    found[-1] = (found[-1][0], found[-1][1] + UNIT_BYTES, generation)
                else:
                    found.append((at, UNIT_BYTES, generation))
        return tuple(each for each in found if self._is_whole(region, each))

    def judge(self, region: Region, data: bytes) -> Iterator[Mismatch]:
        """What is wrong with what was read of a region.

        From then on what was read is what must be read: an array that has settled may not change its mind.
        """
        if len(data) != region.size_bytes:
            yield Mismatch(
                MismatchKind.UNREADABLE, region.offset_bytes, f"{len(data)} of {region.size_bytes} bytes were read"
            )
            return
        torn = self._torn.pop(region.number, None)
        if torn:
            self._resolve(region, torn, data)
        for index, unit in enumerate(self._units[region.number]):
            at = index * UNIT_BYTES
            yield from self._judge_unit(region.offset_bytes + at, unit, data[at : at + UNIT_BYTES])

    def _judge_unit(self, offset: int, unit: StampedUnit, data: bytes) -> Iterator[Mismatch]:
        if unit.now is None:
            return
        whole = Imprint.of_cell(data[: stamp.CELL_BYTES])
        if whole and unit.now == {whole.generation} and data == self._right(offset, whole.generation):
            return  # as nearly all are
        seen: set[int] = set()
        for at in range(0, UNIT_BYTES, self.atom_bytes):
            found = self._judge_atom(offset + at, unit.now, data[at : at + self.atom_bytes])
            if isinstance(found, int):
                seen.add(found)
                continue
            hole = self.stripe_bytes and offset // self.stripe_bytes in self._holes
            if hole and offset in self._in_flight:
                unit.now = unit.durable = None  # nobody promised it; what it is now may be anything
                return
            expected = _generations(unit.now)
            kind, said = found
            yield Mismatch(
                MismatchKind.WRITE_HOLE if hole else kind, offset + at, said, expected, offset not in self._in_flight
            )
        if seen and len(unit.now) > 1:  # only a power cut leaves more than one, and then it is over
            unit.now = unit.durable = frozenset(seen)

    def _judge_atom(self, offset: int, allowed: frozenset[int], atom: bytes) -> int | tuple[MismatchKind, str]:
        """The generation that it holds, or what is wrong with it."""
        different = stamp.cells(atom)
        read = [Imprint.of_cell(cell) for cell in sorted(different)]
        if len(read) > 1:
            if all(each and each.history == self.history for each in read):
                return MismatchKind.MIXED, "generations " + ", ".join(str(each.generation) for each in read if each)
            return MismatchKind.GARBAGE, f"{len(read)} different patterns of 16 bytes"
        (each,) = read
        if each is None:
            (cell,) = different
            return MismatchKind.GARBAGE, f"bytes {cell.hex()}" if any(cell) else "zeroes"
        said = f"generation {each.generation}"
        if each.history != self.history:
            return MismatchKind.FOREIGN, f"{said} of history {each.history}"
        if each.offset_bytes != self._place(offset, each.generation):
            return MismatchKind.ELSEWHERE, f"{said} of byte {each.offset_bytes}"
        if each.generation in allowed:
            return each.generation
        return (MismatchKind.STALE if each.generation < max(allowed) else MismatchKind.AHEAD), said

    def _resolve(self, region: Region, torn: Torn, data: bytes) -> None:
        """Each pass was flushed before the next began: one that is seen proves that the one before it is complete."""
        count = region.written(torn.block_bytes)
        cells = (Imprint.of_cell(data[at : at + 16]) for at in range(0, count, self.atom_bytes))
        passes = range(torn.first, torn.first + PASSES)
        seen = [each.generation for each in cells if each and each.history == self.history]
        last = max((each for each in seen if each in passes), default=None)
        for unit in self._written(region, torn.block_bytes):
            unit.now = unit.durable = _after_cut(torn, last, unit.durable)

    def _right(self, offset: int, generation: int) -> bytes:
        """A whole unit of this generation."""
        return stamp.filled(Imprint(self.history, generation, self._place(offset, generation)), UNIT_BYTES)

    def _place(self, offset: int, generation: int) -> int:
        """Where the transfer began that an atomic unit was written with; regions are written from their start on."""
        region = next(each for each in self.regions if each.offset_bytes <= offset < each.end_bytes)
        size = self.block_bytes(generation)
        return region.offset_bytes + (offset - region.offset_bytes) // size * size

    def block_bytes(self, generation: int) -> int:
        """Of the transfers that a generation was written with."""
        # Of a generation that never was, anything.
        return next((size for end, size in self._blocks if generation < end), UNIT_BYTES)

    def _written(self, region: Region, block_bytes: int) -> Sequence[StampedUnit]:
        return self._units[region.number][: region.written(block_bytes) // UNIT_BYTES]

    def _is_whole(self, region: Region, stretch: tuple[int, int, int]) -> bool:
        offset, size, generation = stretch
        block = self.block_bytes(generation)
        return (offset - region.offset_bytes) % block == 0 and size % block == 0

    def _all(self) -> Iterator[tuple[Region, int, StampedUnit]]:
        for region in self.regions:
            for index, unit in enumerate(self._units[region.number]):
                yield region, region.offset_bytes + index * UNIT_BYTES, unit


def _after_cut(torn: Torn, last: int | None, before: Allowed) -> Allowed:
    """What a unit may hold that was overwritten pass after pass, if ``last`` is the latest pass seen anywhere."""
    if last is None and torn.acknowledged is None:
        return before
    newest = max(each for each in (last, torn.acknowledged) if each is not None)
    known = max(torn.acknowledged or 0, newest - 1)
    if known >= torn.first:
        return frozenset((known, newest))
    return None if before is None else before | {newest}


def _generations(allowed: frozenset[int]) -> str:
    return f"generation {' or '.join(map(str, sorted(allowed)))}"
