"""Traces of I/O: read strictly, summarised, and written in one normal form, which is fio's iolog version 3.

A trace holds times, offsets and sizes of reads and writes. Names of devices and files are dropped on reading, so none
of them can reach fio. The normal form begins at time 0, in order of time; its SHA-256 identifies the trace.

In version 2 a ``wait`` is the time in milliseconds since the start, as fio 3.33 replays it; its manual says otherwise.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import Unit, format_capacity, format_duration, format_value
from pytest_ssdqual.qual.workload.workload import Replay, Workload

SECTOR_BYTES = 512
#: Limits of one I/O and of a trace; a trace in memory takes about 200 bytes an I/O.
LARGEST_BYTES, MOST_IOS = 16 << 20, 2_000_000
#: Synchronous jobs of fio that replay a trace together: most I/Os outstanding. SATA drives queue 32.
STREAMS = 32
#: Shortest replay: the end of one of several drives is known to a second. Most I/Os per second: a job of fio sleeps
#: between two I/Os, and is late by up to 0.1 ms (3.33), which is 30 % of a job's pause at this rate.
SHORTEST_S, MOST_PER_S = 30.0, 100_000
#: Replays of a trace, which are judged together: an interval needs their scatter.
REPLAYS = 3
#: The one name of the normal form.
TARGET = "target"
COLUMNS = ("time", "offset", "size", "op")
#: Actions that move no data, and that no replay repeats.
SILENT_ACTIONS = ("add", "open", "close")
DIRECTIONS = {"r": False, "read": False, "w": True, "write": True}
#: Text of blkparse: device, CPU, sequence, time, process, action, kind, sector + sectors.
BLKPARSE = re.compile(
    r"\s*(\d+,\d+)\s+\d+\s+\d+\s+(\d+\.\d+)\s+\d+\s+([A-Z]+)\s+([A-Z]+)(?:\s+(\d+) \+ (\d+))?(?:\s|$)"
)


class TraceIo(NamedTuple):
    """One I/O of a trace; time in microseconds."""

    time_us: int
    offset: int
    size: int
    is_write: bool


class _Refused(ValueError):
    """The reason why a line is left out."""


@frozen
class Trace:
    """Reads and writes in order of time, the first at time 0."""

    #: Lower-case letters and digits.
    name: str
    ios: tuple[TraceIo, ...]
    #: For each reason why lines were left out: their number, and the number of the first.
    refused: dict[str, tuple[int, int]]

    @classmethod
    def read(cls, file_name: str, lines: Iterable[str]) -> Trace:
        """Read an iolog of version 2 or 3, blkparse's text, or CSV with the columns time (s), offset, size (bytes), op.

        ``ValueError`` if it is none of them, or has no usable I/O or too many.
        """
        rows = iter(lines)
        parsed = _format(next(rows, ""), rows)
        ios, refused = list[TraceIo](), dict[str, tuple[int, int]]()
        for number, io in parsed:
            if isinstance(io, _Refused):
                count, first = refused.get(str(io), (0, number))
                refused[str(io)] = (count + 1, first)
            else:
                ios.append(io)
            if len(ios) > MOST_IOS:
                raise ValueError(f"it has more than {MOST_IOS:,} I/Os; cut a part out of it")
        if not ios:
            raise ValueError(f"it has no I/O that can be replayed; {next(iter(refused), 'it is empty')}")
        ios.sort(key=lambda io: io.time_us)
        start_us = ios[0].time_us
        shifted = tuple(io._replace(time_us=io.time_us - start_us) for io in ios)
        stem = re.sub("[^a-z0-9]", "", file_name.rpartition("/")[2].partition(".")[0].lower())[:24]
        return cls(stem if stem[:1].isalpha() else f"trace{stem}", shifted, refused)

    @property
    def span_s(self) -> float:
        return self.ios[-1].time_us / 1e6

    @property
    def extent_bytes(self) -> int:
        """End of the highest I/O."""
        return max(io.offset + io.size for io in self.ios)

    def lines(self) -> Iterator[str]:
        """Yield the normal form."""
        return iolog(self.ios)

    @property
    def sha256(self) -> str:
        return hashlib.sha256("".join(self.lines()).encode()).hexdigest()

    def sentences(self) -> Iterator[str]:
        """Yield the summary: one sentence a line, and one for each reason of refused lines."""
        count, writes = len(self.ios), [io for io in self.ios if io.is_write]
        sizes = Counter(io.size for io in self.ios)
        rate = format_value(count / self.span_s, Unit.IOPS) if self.span_s else "no times"
        per_second = Counter(io.time_us // 1_000_000 for io in self.ios)
        touched = {mib for io in self.ios for mib in range(io.offset >> 20, ((io.offset + io.size - 1) >> 20) + 1)}
        usual = (f"{format_capacity(size)} {ios / count:.0%}" for size, ios in sizes.most_common(5))
        yield f"{self.name}: {count:,} I/Os in {format_duration(self.span_s)}, {1 - len(writes) / count:.1%} reads"
        yield f"rate: {rate}, at most {max(per_second.values()):,} in one second"
        yield f"sizes: {', '.join(usual)}{f', and {len(sizes) - 5} others' if len(sizes) > 5 else ''}"
        yield f"written: {format_capacity(sum(io.size for io in writes))}"
        yield f"footprint: {format_capacity(len(touched) << 20)} in whole MiB, up to byte {self.extent_bytes:,}"
        for reason, (lines, first) in self.refused.items():
            yield f"{lines:,} line{'' if lines == 1 else 's'} left out, the first is line {first:,}: {reason}"

    def workload(self, scale_percent: int) -> Workload:
        """Return the replay at ``scale_percent`` of its rate; ``ValueError`` if fio cannot hold that by itself."""
        writes = [io.size for io in self.ios if io.is_write]
        reads_percent = 100 * (1 - len(writes) / len(self.ios))
        bytes_moved = sum(io.size for io in self.ios)
        unit = math.gcd(*(value for io in self.ios for value in (io.offset, io.size)))
        replay = Replay(self.sha256, scale_percent, len(self.ios), self.span_s, bytes_moved, sum(writes))
        if replay.due_s < SHORTEST_S:
            raise ValueError(
                f"at {scale_percent} % a replay of it lasts {replay.due_s:.1f} s, {SHORTEST_S:g} s are needed"
            )
        if replay.ios / replay.due_s > MOST_PER_S:
            raise ValueError(f"at {scale_percent} % it has more than {MOST_PER_S:,} I/Os per second, too many for fio")
        mixed = 0 < len(writes) < len(self.ios)
        return Workload(
            rw="randrw" if mixed else ("randwrite" if writes else "randread"),
            bs=str(unit),
            qd_per_drive=1,
            read_percent=min(99, max(1, round(reads_percent))) if mixed else None,
            threads=min(STREAMS, len(self.ios)),
            name=self.name,
            replay=replay,
        )


def placed(ios: Iterable[TraceIo], size_bytes: int, begin_bytes: int) -> list[TraceIo]:
    """Return the I/Os inside a range: offsets beyond its size continue at its beginning (modulo, whole pages).

    ``ValueError`` for an I/O that is larger than the range.
    """
    around = size_bytes // 4096 * 4096
    found = []
    for io in ios:
        if io.size > around:
            raise ValueError(f"an I/O of {io.size:,} bytes does not fit into {around:,} bytes")
        found.append(io._replace(offset=begin_bytes + min(io.offset % around, around - io.size)))
    return found


def iolog(ios: Iterable[TraceIo]) -> Iterator[str]:
    """Yield lines of fio's iolog version 3, in microseconds.

    Times are one later: fio takes a time of 0 for none, and would not wait for the next I/O.
    """
    yield f"fio version 3 iolog\n1 {TARGET} add\n1 {TARGET} open\n"
    for io in ios:
        yield f"{io.time_us + 1} {TARGET} {'write' if io.is_write else 'read'} {io.offset} {io.size}\n"


_Parsed = Iterator[tuple[int, TraceIo | _Refused]]


def _format(first: str, rows: Iterator[str]) -> _Parsed:
    """Return the I/Os of the lines behind ``first``, or of all lines."""
    if first.startswith("fio version 3 iolog"):
        return _each(rows, 2, _version_3)
    if first.startswith("fio version 2 iolog"):
        return _each(rows, 2, _Version2())
    columns = [name.strip().lower() for name in first.split(",")]
    if set(COLUMNS) <= set(columns):
        places = [columns.index(name) for name in COLUMNS]
        return _each(rows, 2, lambda line: _of_csv(line, places))
    if BLKPARSE.match(first):
        return _each(chain((first,), rows), 1, _Blkparse())
    raise ValueError(
        "its first line is of no known format: fio's iolog (version 2 or 3), text of blkparse, or CSV with the columns "
        f"{', '.join(COLUMNS)}"
    )


def _each(rows: Iterable[str], number: int, parse: Callable[[str], TraceIo | None]) -> _Parsed:
    for at, line in enumerate(rows, number):
        if not line.strip():
            continue
        try:
            io = parse(line)
        except _Refused as error:
            yield at, error
        except (ValueError, IndexError, OverflowError, csv.Error):
            yield at, _Refused("it has not the fields of its format")
        else:
            if io:
                yield at, io


def _io(time_us: float, offset: str, size: str, direction: str) -> TraceIo:
    """Return an I/O; ``_Refused`` if no drive could do it."""
    if direction.lower() not in DIRECTIONS:
        raise _Refused("only reads and writes are replayed, no flush and no discard")
    io = TraceIo(round(time_us), int(offset), int(size), DIRECTIONS[direction.lower()])
    if io.time_us < 0 or io.offset < 0 or io.offset + io.size >= 1 << 63:
        raise _Refused("a time or an offset is negative, or the offset has more than 63 bits")
    if io.offset % SECTOR_BYTES or io.size % SECTOR_BYTES or not 0 < io.size <= LARGEST_BYTES:
        raise _Refused(f"an I/O is whole sectors of {SECTOR_BYTES} bytes, up to {LARGEST_BYTES >> 20} MiB")
    return io


def _version_3(line: str) -> TraceIo | None:
    words = line.split()
    if len(words) == 3 and words[2] in SILENT_ACTIONS:
        return None
    time_us, _, action, offset, size = words
    return _io(int(time_us), offset, size, action)


class _Version2:
    """Lines of version 2, whose time is that of the last ``wait``."""

    def __init__(self) -> None:
        self.time_us = 0

    def __call__(self, line: str) -> TraceIo | None:
        words = line.split()
        if len(words) == 2 and words[1] in SILENT_ACTIONS:
            return None
        if words[1] == "wait":
            self.time_us = max(self.time_us, 1000 * int(words[2]))
            return None
        _, action, offset, size = words
        return _io(self.time_us, offset, size, action)


def _of_csv(line: str, places: list[int]) -> TraceIo:
    cells = next(csv.reader([line]))
    time_s, offset, size, direction = (cells[place].strip() for place in places)
    return _io(1e6 * float(time_s), offset, size, direction)


class _Blkparse:
    """Lines of blkparse: requests as they were queued, of the first device."""

    def __init__(self) -> None:
        self.device = ""

    def __call__(self, line: str) -> TraceIo | None:
        found = BLKPARSE.match(line)
        if not found:
            raise _Refused("it is no event of blkparse, as its summary")
        device, time_s, action, kind, sector, count = found.groups()
        if action != "Q":
            return None  # the same request later, merged or on its way
        self.device = self.device or device
        if device != self.device:
            raise _Refused(f"a trace is of one device, this is not {self.device}; run blkparse for each")
        direction = "".join(letter for letter in kind if letter in "RWD")
        if count is None or direction not in ("R", "W"):
            raise _Refused("only reads and writes are replayed, no flush and no discard")
        return _io(1e6 * float(time_s), str(512 * int(sector)), str(512 * int(count)), direction)
