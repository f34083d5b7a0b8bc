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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import PurePath
from typing import NamedTuple

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.units import format_capacity
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
COLUMNS = {"time", "offset", "size", "op"}
#: Lines of both versions of iolog, and of blkparse: F before the kind is a flush.
IOLOGS = {
    "fio version 3 iolog": re.compile(r"(?P<time>\d+) \S+ (?P<op>\w+)(?: (?P<offset>\d+) (?P<size>\d+))?\s*"),
    "fio version 2 iolog": re.compile(r"\S+ (?P<op>\w+)(?: (?P<offset>\d+) (?P<size>\d+))?\s*"),
}
BLKPARSE = re.compile(
    r"\s*(?P<device>\d+,\d+)\s+\d+\s+\d+\s+(?P<time>\d+\.\d+)\s+\d+\s+(?P<action>[A-Z]+)\s+F?(?P<op>[A-Z])[A-Z]*"
    r"(?:\s+(?P<offset>\d+) \+ (?P<size>\d+))?(?:\s.*)?\s*"
)
#: What moves no data; of blkparse's actions only Q, as requests were queued: the others are the same requests later.
IGNORED = ("add", "open", "close")
DIRECTIONS = {"r": False, "read": False, "w": True, "write": True}
#: The fields of a line; empty if it has not those of its format.
_Fields = Callable[[str], Mapping[str, str]]


class TraceIo(NamedTuple):
    """One I/O of a trace; time in microseconds."""

    time_us: int
    offset: int
    size: int
    is_write: bool


@frozen
class Trace:
    """Reads and writes in order of time, the first at time 0."""

    #: Lower-case letters and digits.
    name: str
    ios: tuple[TraceIo, ...]
    #: Number of the first line that was left out for a reason, and how many were.
    refused: dict[str, tuple[int, int]]

    @classmethod
    def read(cls, file_name: str, lines: Iterable[str]) -> Trace:
        """Read an iolog of version 2 or 3, blkparse's text, or CSV with the columns time (s), offset, size (bytes), op.

        ``ValueError`` if it is none of them, or has no usable I/O or too many.
        """
        ios, refused = list[TraceIo](), dict[str, tuple[int, int]]()
        rows = iter(lines)
        for number, io in _ios(next(rows, ""), rows):
            if isinstance(io, TraceIo):
                ios.append(io)
            else:
                first, count = refused.get(io, (number, 0))
                refused[io] = first, count + 1
            if len(ios) > MOST_IOS:
                raise ValueError(f"it has more than {MOST_IOS:,} I/Os; cut a part out of it")
        if not ios:
            raise ValueError(f"it has no I/O that can be replayed; {next(iter(refused), 'it is empty')}")
        ios.sort(key=lambda io: io.time_us)
        start_us = ios[0].time_us
        name = re.sub("^[^a-z]*|[^a-z0-9]", "", PurePath(file_name).stem.lower())[:24]
        return cls(name or "trace", tuple(io._replace(time_us=io.time_us - start_us) for io in ios), refused)

    @property
    def span_s(self) -> float:
        return self.ios[-1].time_us / 1e6

    def lines(self) -> Iterator[str]:
        """Yield the normal form."""
        return iolog(self.ios)

    @property
    def sha256(self) -> str:
        return hashlib.sha256("".join(self.lines()).encode()).hexdigest()

    def sentences(self) -> Iterator[str]:
        """Yield the summary: one sentence a line, and one for each reason of refused lines."""
        count, sizes = len(self.ios), Counter(io.size for io in self.ios)
        busiest = max(Counter(io.time_us // 1_000_000 for io in self.ios).values())
        mib = {at for io in self.ios for at in range(io.offset >> 20, ((io.offset + io.size - 1) >> 20) + 1)}
        usual = ", ".join(f"{format_capacity(size)} {ios / count:.0%}" for size, ios in sizes.most_common(5))
        reads = sum(not io.is_write for io in self.ios) / count
        yield f"{self.name}: {count:,} I/Os in {self.span_s:,.3f} s, {reads:.1%} reads"
        yield f"rate: {count / max(1.0, self.span_s):,.1f} I/Os per second, at most {busiest:,} in one second"
        yield f"sizes: {len(sizes)}, the most frequent are {usual}"
        yield f"footprint: {len(mib):,} MiB have I/Os, the last of them ends at {max(mib) + 1:,} MiB"
        for reason, (first, count) in self.refused.items():
            yield f"left out: {counted(count, 'line')}, the first is line {first:,}: {reason}"

    def workload(self, scale_percent: int) -> Workload:
        """Return the replay at ``scale_percent`` of its rate; ``ValueError`` if fio cannot hold that by itself."""
        written = [io.size for io in self.ios if io.is_write]
        count, moved = len(self.ios), sum(io.size for io in self.ios)
        replay = Replay(self.sha256, scale_percent, count, self.span_s, moved, sum(written))
        if replay.due_s < SHORTEST_S or count / replay.due_s > MOST_PER_S:
            raise ValueError(
                f"at {scale_percent} % it has {count:,} I/Os in {replay.due_s:.1f} s; a replay takes {SHORTEST_S:g} s "
                f"or more, and has up to {MOST_PER_S:,} I/Os per second"
            )
        is_mixed = 0 < len(written) < count
        of_one_kind = "randwrite" if written else "randread"
        return Workload(
            rw="randrw" if is_mixed else of_one_kind,
            bs=str(math.gcd(*(value for io in self.ios for value in (io.offset, io.size)))),
            qd_per_drive=1,
            read_percent=min(99, max(1, round(100 - 100 * len(written) / count))) if is_mixed else None,
            threads=min(STREAMS, count),
            name=self.name,
            replay=replay,
        )


def placed(ios: Iterable[TraceIo], size_bytes: int, begin_bytes: int) -> list[TraceIo]:
    """Return the I/Os inside a range: offsets beyond its size continue at its beginning (modulo, whole pages).

    ``ValueError`` for an I/O that is larger than the range.
    """
    around = size_bytes // 4096 * 4096
    inside = []
    for io in ios:
        if io.size > around:
            raise ValueError(f"an I/O of {io.size:,} bytes does not fit into {around:,} bytes")
        inside.append(io._replace(offset=begin_bytes + min(io.offset % around, around - io.size)))
    return inside


def iolog(ios: Iterable[TraceIo]) -> Iterator[str]:
    """Yield lines of fio's iolog version 3, in microseconds.

    Times are one later: fio takes a time of 0 for none, and would not wait for the next I/O.
    """
    yield f"fio version 3 iolog\n1 {TARGET} add\n1 {TARGET} open\n"
    for io in ios:
        yield f"{io.time_us + 1} {TARGET} {'write' if io.is_write else 'read'} {io.offset} {io.size}\n"


def _ios(first: str, rows: Iterator[str]) -> Iterator[tuple[int, TraceIo | str]]:
    """Yield each I/O with the number of its line, or the reason why the line is left out."""
    begin, fields_of, us, block = _format(first)
    clock, device = "0", ""
    for number, line in enumerate(rows if begin > 1 else chain((first,), rows), begin):
        fields = fields_of(line)
        op, device = fields.get("op", "").lower(), device or fields.get("device", "")
        if not line.strip() or op in IGNORED or fields.get("action", "Q") != "Q":
            continue
        if op == "wait" and fields.get("offset"):
            clock = fields["offset"] + "000"
        elif fields.get("device", device) != device:
            yield number, f"a trace is of one device, and this is not {device}: run blkparse for each"
        else:
            yield number, _io({"time": clock, **fields}, us, block)


def _format(first: str) -> tuple[int, _Fields, float, int]:
    """Return the first line with an I/O, how to read one, and the units of times (microseconds) and offsets (bytes)."""
    columns = [name.strip().strip('"').strip().lower() for name in first.split(",")]
    if pattern := IOLOGS.get(first.strip()):
        return 2, partial(_matched, pattern), 1.0, 1
    if BLKPARSE.fullmatch(first):
        return 1, partial(_matched, BLKPARSE), 1e6, SECTOR_BYTES
    if set(columns) >= COLUMNS:
        return 2, partial(_of_row, columns), 1e6, 1
    raise ValueError(
        "its first line is of no known format: fio's iolog (version 2 or 3), text of blkparse, or CSV with the columns "
        "time, offset, size, op"
    )


def _matched(pattern: re.Pattern[str], line: str) -> Mapping[str, str]:
    match = pattern.fullmatch(line)
    return match.groupdict() if match else {}


def _of_row(columns: Sequence[str], line: str) -> Mapping[str, str]:
    try:
        return dict(zip(columns, next(csv.reader([line], skipinitialspace=True)), strict=False))
    except csv.Error:
        return {}


def _io(fields: Mapping[str, str], us: float, block: int) -> TraceIo | str:
    """Return an I/O, or the reason why no drive could do it."""
    try:
        op = fields["op"].strip().lower()
        if op not in DIRECTIONS:
            return "only reads and writes are replayed, no flush and no discard"
        offset, size = block * int(fields["offset"]), block * int(fields["size"])
        io = TraceIo(round(us * float(fields["time"])), offset, size, DIRECTIONS[op])
    except (KeyError, TypeError, ValueError, OverflowError):
        return "it has not the fields of its format"
    if min(io.time_us, offset) < 0 or offset >= 1 << 62:
        return "a time or an offset is below 0, or the offset beyond 2^62"
    if offset % SECTOR_BYTES or size % SECTOR_BYTES or not 0 < size <= LARGEST_BYTES:
        return f"an I/O is whole sectors of {SECTOR_BYTES} bytes, up to {LARGEST_BYTES >> 20} MiB"
    return io
