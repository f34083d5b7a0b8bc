"""Reference model of an array's content: what may be read where, after writes, flushes, discards and power cuts.

The semantics that a host may rely on (docs/integrity.md):

- an acknowledged write is what is read from then on, whatever happens to members, while the power stays on;
- after a power cut, everything flushed after its acknowledgement is still there. What was not flushed, or was being
  written at that moment, is old or new in each atomic unit of the drives, never a mixture inside one;
- discarded data is undefined until it is written again.

Written are regions of the array: pairs of neighbours, from its first byte to its last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.qual.integrity.stamp import Stamp
from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES, StepSequence
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import ArraySettings
from pytest_ssdqual.qual.units import parse_size

#: Largest region. A region is a stripe and one unit, so that the border between two neighbours lies inside a stripe;
#: smaller in wide arrays with large chunks.
MOST_BYTES = 4 << 20
#: Generations reserved for one power cut: the most times that a region is overwritten until then.
PASSES = 1 << 16
#: Allowed generations; None for any content.
Allowed = frozenset[int] | None


@frozen
class Region:
    """A part of the array that is written as a whole."""

    number: int
    offset_bytes: int
    size_bytes: int

    @property
    def end_bytes(self) -> int:
        return self.offset_bytes + self.size_bytes

    def written(self, block_bytes: int) -> int:
        """Number of its bytes that whole transfers of this size overwrite; the remainder at its end is unchanged."""
        return self.size_bytes // block_bytes * block_bytes


def stripe_bytes(geometry: Geometry, settings: ArraySettings) -> int:
    """User data of one stripe; for a mirror, which has none, a chunk."""
    data = 1 if geometry.level is RaidLevel.RAID1 else geometry.data_drives
    return parse_size(settings.chunk) * data


def region_bytes(geometry: Geometry, settings: ArraySettings) -> int:
    """Size of every region of an array."""
    return min(stripe_bytes(geometry, settings), MOST_BYTES) + UNIT_BYTES


def spread(size_bytes: int, each_bytes: int, count: int, begin_bytes: int = 0) -> tuple[Region, ...]:
    """Up to ``count`` regions in pairs of neighbours, evenly from ``begin_bytes`` to the last byte of ``size_bytes``.

    Fewer if there is not enough room; ``ValueError`` if there is none for one pair.
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
    """Two more regions at the new end of an array of ``size_bytes`` after growth; ``ValueError`` if they do not fit."""
    each = known[0].size_bytes
    start = size_bytes // UNIT_BYTES * UNIT_BYTES - 2 * each
    if start < max(region.end_bytes for region in known):
        raise ValueError(f"the array has grown to {size_bytes} bytes only")
    return tuple(Region(len(known) + half, start + half * each, each) for half in (0, 1))


class MismatchKind(StrEnum):
    """Kind of a wrong block."""

    STALE = "it holds an earlier write"
    AHEAD = "it holds a later write than it may"
    MIXED = "it holds a mixture of writes within one atomic unit"
    ELSEWHERE = "it holds what was written to another place"
    FOREIGN = "it holds data of another history"
    GARBAGE = "it holds nothing that was ever written"
    UNREADABLE = "it cannot be read"
    DISAGREE = "copies or parity do not agree"
    WRITE_HOLE = "the write hole has lost data"


@frozen
class Mismatch:
    """One atomic unit that does not hold what it must; or, without an offset, a fault of the whole array."""

    kind: MismatchKind
    #: Offset in the array; None if it is not about a block.
    offset_bytes: int | None = None
    found: str = ""
    expected: str = ""
    #: True if it was flushed and not being written, so that a power cut does not excuse it.
    settled: bool = True


@dataclass(slots=True)
class StampedUnit:
    """Allowed content of one unit of 4 KiB now, and after a power cut now."""

    now: Allowed = None
    durable: Allowed = None


@frozen
class Torn:
    """A region that was overwritten repeatedly when the power was cut."""

    first: int
    #: The last pass that was acknowledged and flushed before the cut; None if none was.
    acknowledged: int | None
    block_bytes: int
    #: Each pass was flushed, or need not be; otherwise any of them may be read.
    is_kept: bool = True


@dataclass(slots=True)
class ReferenceModel:
    """The model of one history."""

    history: int
    #: Atomic write unit of the drives: a power cut never tears it.
    atom_bytes: int
    #: User data of a stripe with parity; else 0.
    stripe_bytes: int = 0
    regions: list[Region] = field(default_factory=list)
    _units: dict[int, list[StampedUnit]] = field(default_factory=dict)
    _torn: dict[int, Torn] = field(default_factory=dict)
    #: Ends of ranges of generations, and the transfer size of each.
    _blocks: list[tuple[int, int]] = field(default_factory=list)
    _in_flight: set[int] = field(default_factory=set)
    #: Stripes whose parity may have been stale when it was needed; md keeps it so until it computes parity anew.
    _holes: set[int] = field(default_factory=set)
    #: Units of those stripes that were being written, and not judged or written since: they may hold anything.
    _lost: set[int] = field(default_factory=set)

    def add(self, regions: Iterable[Region]) -> None:
        """Add regions with undefined content."""
        for region in regions:
            self.regions.append(region)
            self._units[region.number] = [StampedUnit() for _ in range(region.size_bytes // UNIT_BYTES)]

    def begin(self, block_bytes: int, passes: int = 1) -> int:
        """Reserve and return the generation of a write that begins now; the first of ``passes``."""
        first = self._blocks[-1][0] if self._blocks else 1
        self._blocks.append((first + passes, block_bytes))
        return first

    def wrote(self, region: Region, generation: int, *, flushed: bool) -> None:
        """Record an acknowledged write of a generation from ``begin``, in whole transfers."""
        block_bytes = self.block_bytes(generation)
        for unit in self._written(region, block_bytes):
            unit.now = frozenset((generation,))
            unit.durable = None if unit.durable is None else unit.durable | unit.now
        end = region.offset_bytes + region.written(block_bytes)
        self._lost.difference_update(range(region.offset_bytes, end, UNIT_BYTES))
        if flushed:
            self.flush()

    def flush(self) -> None:
        """Record a flush: all acknowledged writes are durable."""
        for units in self._units.values():
            for unit in units:
                unit.durable = unit.now

    def trimmed(self, region: Region) -> None:
        """Record a discard: the region's content is undefined."""
        for unit in self._units[region.number]:
            unit.now = unit.durable = None

    @property
    def has_trimmed(self) -> bool:
        """Return whether some content is undefined, so that copies of it need not agree."""
        return any(unit.now is None for units in self._units.values() for unit in units)

    def cut(self, region: Region | None = None, torn: Torn | None = None) -> None:
        """Record a power cut; during the overwriting of ``region``, if one is given."""
        if torn and torn.acknowledged is not None:
            self.flush()
        self._lost = set()
        self._in_flight = {at for _, at, unit in self._all() if unit.durable is None or unit.durable != unit.now}
        for units in self._units.values():
            for unit in units:
                unit.now = unit.durable
        if region and torn:
            self._torn[region.number] = torn
            count = region.written(torn.block_bytes) // UNIT_BYTES
            self._in_flight |= {region.offset_bytes + index * UNIT_BYTES for index in range(count)}

    def started_dirty(self) -> None:
        """Record an assembly after the cut without all members, where stale parity had to be used: the write hole
        (md(4)).
        """
        if self.stripe_bytes:
            self._holes |= {at // self.stripe_bytes for at in self._in_flight}
            self._lost = set(self._in_flight)

    def repaired(self) -> None:
        """Record that parity agrees with the data, in all stripes: after a repair, a reshape, or a check without a
        mismatch.
        """
        self._holes = set()

    @property
    def has_holes(self) -> bool:
        """Return whether parity may disagree with the data."""
        return bool(self._holes)

    def certain(self, region: Region) -> tuple[tuple[int, int, int], ...]:
        """Offset, size and generation of the stretches with only one allowed generation, in whole transfers."""
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
        """Yield the mismatches of what was read of a region.

        The content read becomes the only allowed one: a settled array may not change it.
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
        # Only once: the array has answered, and a power cut that is over does not excuse another answer.
        is_lost = offset in self._lost
        self._lost.discard(offset)
        if unit.now is None:
            return
        whole = Stamp.of_cell(data[: stamp.CELL_BYTES])
        if whole and unit.now == {whole.generation} and data == self._right(offset, whole.generation):
            return  # the common case
        found_generations: set[int] = set()
        for at in range(0, UNIT_BYTES, self.atom_bytes):
            found = self._judge_atom(offset + at, unit.now, data[at : at + self.atom_bytes])
            if isinstance(found, int):
                found_generations.add(found)
                continue
            hole = self.stripe_bytes and offset // self.stripe_bytes in self._holes
            if is_lost:
                unit.now = unit.durable = None  # not guaranteed; its content is undefined from now on
                return
            expected = f"generation {' or '.join(map(str, sorted(unit.now)))}"
            kind, content = found
            yield Mismatch(
                MismatchKind.WRITE_HOLE if hole else kind, offset + at, content, expected, offset not in self._in_flight
            )
        if found_generations and len(unit.now) > 1:  # only a power cut leaves several, and it is now resolved
            unit.now = unit.durable = frozenset(found_generations)

    def _judge_atom(self, offset: int, allowed: frozenset[int], atom: bytes) -> int | tuple[MismatchKind, str]:
        """Return the generation of an atomic unit, or the kind and text of a mismatch."""
        different = stamp.cells(atom)
        read = [Stamp.of_cell(cell) for cell in sorted(different)]
        if len(read) > 1:
            if all(each and each.history == self.history for each in read):
                return MismatchKind.MIXED, "generations " + ", ".join(str(each.generation) for each in read if each)
            return MismatchKind.GARBAGE, f"{len(read)} different patterns of 16 bytes"
        (each,) = read
        if each is None:
            (cell,) = different
            return MismatchKind.GARBAGE, f"bytes {cell.hex()}" if any(cell) else "zeroes"
        content = f"generation {each.generation}"
        if each.history != self.history:
            return MismatchKind.FOREIGN, f"{content} of history {each.history}"
        if each.offset_bytes != self._place(offset, each.generation):
            return MismatchKind.ELSEWHERE, f"{content} of byte {each.offset_bytes}"
        if each.generation in allowed:
            return each.generation
        return (MismatchKind.STALE if each.generation < max(allowed) else MismatchKind.AHEAD), content

    def _resolve(self, region: Region, torn: Torn, data: bytes) -> None:
        """Resolve a torn region: each pass was flushed before the next began, so a pass proves that the previous is
        complete.
        """
        count = region.written(torn.block_bytes)
        cells = (Stamp.of_cell(data[at : at + 16]) for at in range(0, count, self.atom_bytes))
        passes = range(torn.first, torn.first + PASSES)
        generations = [each.generation for each in cells if each and each.history == self.history]
        last = max((each for each in generations if each in passes), default=None)
        written = self._written(region, torn.block_bytes)
        if not torn.is_kept:
            anything = frozenset(range(torn.first, (last or torn.first) + 1))
            for unit in written:
                unit.now = unit.durable = None if unit.durable is None else unit.durable | anything
            return
        for unit in written:
            unit.now = unit.durable = _after_cut(torn, last, unit.durable)

    def older(self, region: Region, generation: int) -> int:
        """Return the number of units of a region that hold an earlier write than this one, as far as was read."""
        return sum(unit.now is not None and min(unit.now) < generation for unit in self._units[region.number])

    def _right(self, offset: int, generation: int) -> bytes:
        """A whole unit of this generation."""
        return stamp.filled(Stamp(self.history, generation, self._place(offset, generation)), UNIT_BYTES)

    def _place(self, offset: int, generation: int) -> int:
        """Offset of the transfer that wrote an atomic unit; regions are written from their start."""
        region = next(each for each in self.regions if each.offset_bytes <= offset < each.end_bytes)
        size = self.block_bytes(generation)
        return region.offset_bytes + (offset - region.offset_bytes) // size * size

    def block_bytes(self, generation: int) -> int:
        """Transfer size of a generation."""
        # The size of an unknown generation is irrelevant.
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
    """Allowed content of a unit that was overwritten repeatedly; ``last`` is the latest pass found in the region."""
    if last is None and torn.acknowledged is None:
        return before
    newest = max(each for each in (last, torn.acknowledged) if each is not None)
    known = max(torn.acknowledged or 0, newest - 1)
    if known >= torn.first:
        return frozenset((known, newest))
    return None if before is None else before | {newest}


@frozen
class Survival:
    """Result of an integrity test; true if no data was lost."""

    geometry: Geometry
    #: Histories and steps that were run, without those of shrinking; and atomic units compared in them.
    histories: int
    steps: int
    compared: int
    atom_bytes: int
    seconds: float
    findings: tuple[Mismatch, ...] = ()
    #: The shortest failing history; None if none failed.
    shortest: StepSequence | None = None
    #: True if the shortest history failed again when repeated; None if it was not repeated.
    happened_again: bool | None = None
    remarks: tuple[str, ...] = ()
    #: Command that reproduces it.
    replay: str = ""
    #: Reason why fewer histories were run than the protocol has.
    cut_short: str = ""

    def __bool__(self) -> bool:
        return not self.findings

    def __repr__(self) -> str:
        """The verdict's sentence."""
        if not self.findings or self.shortest is None:
            return (
                f"all data of {self.geometry} survived {_several(self.histories, 'history', 'histories')} with "
                f"{self.steps:,} steps{self.cut_short and f' ({self.cut_short})'}"
            )
        again = {True: "", None: "", False: " (it did not happen again when that was repeated)"}[self.happened_again]
        replay = f"; replay it with: {self.replay}" if self.replay else ""
        return f"{self.geometry}: {self.what}, after: {self.shortest.in_words}{again}{replay}"

    @property
    def wrong(self) -> int:
        """Number of atomic units that do not hold what they must."""
        return sum(each.offset_bytes is not None for each in self.findings)

    @property
    def what(self) -> str:
        """The finding, as half a sentence."""
        blocks = [each for each in self.findings if each.offset_bytes is not None]
        if not blocks:
            first = self.findings[0]
            return f"{first.kind}: {first.found}" if first.kind is MismatchKind.DISAGREE else first.found
        first = blocks[0]
        kinds = Counter(each.kind for each in blocks)
        settled = "was acknowledged and flushed" if first.settled else "was acknowledged"
        finding = f"{_several(len(blocks), 'block', 'blocks')} of {self.atom_bytes} bytes "
        finding += f"{'does' if len(blocks) == 1 else 'do'} not hold what {settled}"
        if MismatchKind.WRITE_HOLE in kinds:
            finding = f"{MismatchKind.WRITE_HOLE}: {finding} and was not being written when the power failed"
        found = f"{first.found}, expected {first.expected}" if first.expected else first.found
        kind = "" if first.kind is MismatchKind.WRITE_HOLE else f" {first.kind}:"
        return f"{finding}; the first, at byte {first.offset_bytes:,} of the array:{kind} {found}"


def _several(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
