"""Comparison of all data of bare drives with what was written to them; pure.

Every transfer of the fill repeats a stamp of 16 bytes (`stamp`): a number that only this fill has, and the offset of
the transfer on the drive. So a block that was lost, that an earlier fill wrote, or that belongs to another place of a
drive whose capacity is smaller than it says, differs from what must be read. The same pass shows parts that are read
slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, pairwise
from statistics import median

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.stamp import CELL_BYTES, Stamp, filled
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.units import Unit, format_capacity, format_value

#: Drives that the sentence describes; the evidence has all.
MOST_DESCRIBED = 3
#: Equal parts of a drive whose rates are compared, and the share of the median rate below which one is slow. A host
#: that pauses is slow once; a part counts that is slow again when it is read by itself, beside a part of median rate.
PARTS, LEAST_SHARE = 64, 0.5


class WrongKind(StrEnum):
    """Kind of wrong data; ``unstable``: a second read was correct, or there was none."""

    ZEROES = "zeroes"
    ELSEWHERE = "elsewhere"
    EARLIER = "earlier"
    DAMAGED = "damaged"
    UNSTABLE = "unstable"


@frozen
class WrongBlock:
    """The first block of a drive that was read and is not what was written."""

    kind: WrongKind
    #: Offset on the drive of the first wrong byte; of the whole transfer if it is ``unstable``.
    offset_bytes: int
    #: Offset on the drive of the transfer that wrote these data; None unless they are of another place.
    belongs_to_bytes: int | None = None
    #: Number of wrong bytes in the transfer.
    wrong_bytes: int = 0

    def __str__(self) -> str:
        """Return ``byte 31,457,280 has data of the transfer to byte 10,485,760``."""
        at = f"byte {self.offset_bytes:,}"
        if self.belongs_to_bytes is not None:
            return f"{at} has data of the transfer to byte {self.belongs_to_bytes:,}"
        if self.kind is WrongKind.ZEROES:
            return f"{at} reads as zero"
        if self.kind is WrongKind.EARLIER:
            return f"{at} has data of an earlier fill"
        if self.kind is WrongKind.UNSTABLE:
            return f"the transfer at {at} was wrong in one of two reads"
        return f"{self.wrong_bytes:,} byte{'s are' if self.wrong_bytes > 1 else ' is'} wrong from {at} on"


def examine(data: bytes, written: Stamp) -> WrongBlock:
    """Return what is wrong with a transfer that was read again; ``written`` is its stamp.

    ``data`` is as long as the transfer, a multiple of 16 bytes.
    """
    right = filled(written, len(data))
    wrong = [index for index, (read, wanted) in enumerate(zip(data, right, strict=True)) if read != wanted]
    if not wrong:
        return WrongBlock(WrongKind.UNSTABLE, written.offset_bytes)
    first, count = wrong[0], len(wrong)
    offset_bytes = written.offset_bytes + first
    begin = first // CELL_BYTES * CELL_BYTES
    cell = data[begin : begin + CELL_BYTES]
    if not any(cell):
        return WrongBlock(WrongKind.ZEROES, offset_bytes, wrong_bytes=count)
    stamp = Stamp.of_cell(cell)
    # A flipped bit makes another stamp of one cell; a block that was written has the same one again.
    if stamp is None or data[begin + CELL_BYTES : begin + 2 * CELL_BYTES] != cell:
        return WrongBlock(WrongKind.DAMAGED, offset_bytes, wrong_bytes=count)
    offset_bytes = written.offset_bytes + begin
    if (stamp.history, stamp.generation) != (written.history, written.generation):
        return WrongBlock(WrongKind.EARLIER, offset_bytes, wrong_bytes=count)
    return WrongBlock(WrongKind.ELSEWHERE, offset_bytes, stamp.offset_bytes, count)


@frozen
class SlowZone:
    """A part of a drive that was read at a fraction of the usual rate, twice."""

    offset_bytes: int
    size_bytes: int
    #: Of the second read, when the other drives were idle.
    bytes_per_s: float
    #: Of a part of median rate that was read directly afterwards.
    usual_bytes_per_s: float

    def __str__(self) -> str:
        """Return ``7.5 GB from byte 240,052,469,760 on are read at 51 MB/s, a median part at 512 MB/s``."""
        slow, usual = (format_value(rate, Unit.BYTES_PER_SECOND) for rate in (self.bytes_per_s, self.usual_bytes_per_s))
        size = format_capacity(self.size_bytes)
        return f"{size} from byte {self.offset_bytes:,} on are read at {slow}, a median part at {usual}"


def rates(intervals: Sequence[Interval], size_bytes: int) -> tuple[float, ...]:
    """Return the bytes per second of ``PARTS`` equal parts of a drive, which was read from its begin to its end.

    Empty if there are fewer reports than parts.
    """
    last = max((number for number, interval in enumerate(intervals) if interval.read_bytes), default=-1)
    # The reports of a drive go on until the slowest one beside it is done.
    course = intervals[: last + 1]
    if len(course) < PARTS:
        return ()
    from numpy import interp

    read_bytes = [0, *accumulate(interval.read_bytes for interval in course)]
    seconds = [0.0, *accumulate(interval.seconds for interval in course)]
    borders = [size_bytes * number / PARTS for number in range(PARTS + 1)]
    passed_s = interp(borders, read_bytes, seconds)
    return tuple(size_bytes / PARTS / max(float(end - begin), 1e-9) for begin, end in pairwise(passed_s))


def slow_parts(of_parts: Sequence[float]) -> list[int]:
    """Return the parts that are read at less than ``LEAST_SHARE`` of the median rate, by number, the slowest first."""
    usual = median(of_parts) if of_parts else 0.0
    return sorted(
        (number for number, rate in enumerate(of_parts) if rate < LEAST_SHARE * usual), key=of_parts.__getitem__
    )


def median_part(of_parts: Sequence[float]) -> int:
    """Return the number of a part of median rate."""
    return sorted(range(len(of_parts)), key=of_parts.__getitem__)[len(of_parts) // 2]


@frozen
class DriveReadBack:
    """Result of one drive."""

    serial: str
    #: Bytes of the drive that were written, and read until the first wrong transfer.
    size_bytes: int
    read_bytes: int
    wrong: WrongBlock | None = None
    slow: tuple[SlowZone, ...] = ()
    #: Median rate of its parts; None if they were not compared.
    usual_bytes_per_s: float | None = None
    #: Bytes of the drive that another program wrote or discarded since the fill, as far as the kernel counts them.
    foreign_bytes: int = 0

    @property
    def doubt(self) -> str:
        """Why a wrong block is no evidence against the drive; empty if it is, or if there is none."""
        if self.wrong and self.foreign_bytes:
            return f"another program wrote or discarded {self.foreign_bytes:,} bytes since the fill; {self.wrong}"
        return str(self.wrong) if self.wrong and self.wrong.kind is WrongKind.UNSTABLE else ""

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings about the drive, one clause each."""
        return (*((str(self.wrong),) if self.wrong and not self.doubt else ()), *map(str, self.slow))


@dataclass(frozen=True, slots=True, repr=False)
class ReadBack:
    """All data of drives side by side, read and compared; true if there is no finding and no doubt about any drive."""

    geometry: Geometry
    seconds: float
    drives: tuple[DriveReadBack, ...]
    #: Name of fio's stored output.
    raw: str = ""

    def __bool__(self) -> bool:
        return not any(drive.findings or drive.wrong for drive in self.drives)

    def __repr__(self) -> str:
        about = f"data of {self.geometry}"
        right = [drive for drive in self.drives if not (drive.findings or drive.wrong)]
        returned = f"{counted(len(right), 'drive')} returned all {_capacities(right)} as written" if right else ""
        faulty = [drive for drive in self.drives if drive.findings]
        if not faulty:
            return f"{about}: {returned or 'undecided'}"
        clauses = [f"drive {drive.serial}: {'; '.join(drive.findings)}" for drive in faulty[:MOST_DESCRIBED]]
        if len(faulty) > MOST_DESCRIBED:
            clauses.append(f"and {len(faulty) - MOST_DESCRIBED} more")
        doubts = [f"nothing is decided about {drive.serial}: {drive.doubt}" for drive in self.drives if drive.doubt]
        others = "; ".join(filter(None, (*doubts[:MOST_DESCRIBED], returned)))
        of_others = f" ({others})" if others else ""
        return f"{about}: {counted(len(faulty), 'drive')} with findings: {'; '.join(clauses)}{of_others}"


def _capacities(drives: Sequence[DriveReadBack]) -> str:
    sizes = sorted({drive.size_bytes for drive in drives})
    smallest, largest = format_capacity(sizes[0]), format_capacity(sizes[-1])
    return smallest if smallest == largest else f"{smallest} to {largest}"
