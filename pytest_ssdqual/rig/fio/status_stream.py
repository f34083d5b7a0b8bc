"""Splits fio's growing output file into status documents and lines of text, and reads the documents. Pure.

The file comes from the machine under test: whatever differs from the format of fio 3.33 and 3.42 raises ``OddShape``,
instead of an arbitrary Python error later.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, packed_buckets
from pytest_ssdqual.qual.strict_json import DECODER
from pytest_ssdqual.rig.fio import intervals
from pytest_ssdqual.rig.fio.intervals import Counters, IoDirection, Snapshot
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

#: Documents begin and end alone at the left margin; everything between them is text of fio.
#: A pattern for the end took as long as parsing the document itself (0.9 ms of 190 kB, CPython 3.11).
#: A line of text that a worker did not end may be in front of it.
DOCUMENT = re.compile(r'^\{|\{(?=\n  "fio version")', re.MULTILINE)
END = "\n}"
#: A document of a drive with 500 bins takes 60 kB, of 24 side by side 3 MB. Anything longer than this is neither a
#: document nor a line of text: reading stops.
LONGEST = 32 << 20
#: First characters that lines of text do not have.
OF_JSON = ("", " ", "{", "}")

Piece = dict[str, Any] | str
#: Name that ``jobs`` gives to the first section of each of several drives; fio names the group by it.
DRIVE = re.compile(r"drive-(\d{1,9})(?:-\w+)*", re.ASCII)
WAYS = ("read", "write")
#: fio's buckets end at 17 s; its counters have 64 bits.
LARGEST_COUNT = 2**63


class Splitter:
    """Bytes in, whole documents and lines out; an incomplete one waits for its rest."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._text = ""
        self._position = 0
        self._count = 0
        #: The reason why reading has stopped; empty if it has not.
        self._damage = ""

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield the pieces that these bytes complete, in order; exhaust it before the next call.

        At most ``LONGEST`` and these bytes are held; after a longer piece, reading stops.
        """
        if self._damage:
            return
        text = self._text + self._decoder.decode(data)
        position = 0
        while match := DOCUMENT.search(text, position):
            yield from _lines(text[position : match.start()])
            position = match.start()
            end = _end(text, position)
            if end is None:
                break  # it is incomplete
            try:
                document, position = _decoded(text, position, end)
            except (ValueError, RecursionError):
                break  # it is incomplete or damaged: ``require_end`` reports that
            self._count += 1
            yield document
        else:
            complete = text.rfind("\n") + 1
            if text.endswith("{\n", 0, complete):  # a document may begin there
                complete = text.rfind("\n", 0, complete - 1) + 1
            complete = max(position, complete)
            yield from _lines(text[position:complete])
            position = complete
        self._position += position
        self._text = text[position:]
        if len(self._text) > LONGEST:
            self._damage, self._text = f"it goes on for more than {LONGEST >> 20} MiB without an end", ""

    @property
    def rest(self) -> tuple[str, ...]:
        """Lines of text in the incomplete rest."""
        return tuple(line for line in _lines(self._text) if line[:1] not in OF_JSON)

    def require_end(self) -> None:
        """``InvalidMeasurement`` if a document is damaged, cut off or endless."""
        whole = f"after {self._count} whole documents"
        if self._damage:
            raise InvalidMeasurement(f"fio's output is damaged {whole}: {self._damage}")
        if match := DOCUMENT.search(self._text):
            try:
                DECODER.raw_decode(self._text, match.start())
            except (ValueError, RecursionError) as error:
                position = f"{whole}, at byte {self._position + getattr(error, 'pos', match.start())}"
                raise InvalidMeasurement(
                    f"fio's output is damaged or cut off {position} of {self._position + len(self._text)}; is its file "
                    "system full?"
                ) from error


def _end(text: str, position: int) -> int | None:
    """Possible end of the document that begins here: with its first line, or with the next brace at the margin."""
    line_end = text.find("\n", position)
    if line_end < 0:
        line_end = len(text)
    if text.find("}", position, line_end) >= 0:
        return line_end
    brace = text.find(END, line_end)
    return brace + len(END) if brace >= 0 else None


def _decoded(text: str, position: int, end: int) -> tuple[dict[str, Any], int]:
    """Parse the document that begins here; return it and its end, which should be ``end``; raises as ``DECODER``.

    pydantic's JSON parser takes half the time of Python's (0.53 and 1.01 ms of 190 kB), but needs to know the end, and
    does not accept all that Python's accepts; Python's parser decides about what it refuses.
    """
    from pydantic_core import from_json

    try:
        return from_json(text[position:end], allow_inf_nan=False), end
    except ValueError:  # not exactly one document
        return DECODER.raw_decode(text, position)


def _lines(text: str) -> list[str]:
    return [safe_text.line(line) for line in text.splitlines() if line.strip()]


class OddShape(ValueError):
    """A document is not one of fio's; the sentence says what is wrong."""


@frozen
class Ended:
    """Values that only the last document of a process provides."""

    #: errno of the first job that failed, or 0.
    error: int
    #: Its I/O engine; empty if no job names one.
    engine: str
    #: CPU time of a job, share of one core, mean of the jobs.
    jobs_busy: float


def snapshot(document: Mapping[str, object]) -> Snapshot:
    """Return the counters and clocks of a document."""
    jobs = _jobs(document)
    return Snapshot(
        printed_ms=_count(document, "timestamp_ms"),
        asked_ms=max(_count(_table(job, way), "runtime") for job in jobs for way in WAYS),
        parts=_parts(jobs),
    )


def ended(document: Mapping[str, object]) -> Ended:
    """Return the values of the last document."""
    jobs = _jobs(document)
    return Ended(
        error=next(filter(None, (_whole(job, "error") for job in jobs)), 0),
        engine=_engine(document, jobs),
        jobs_busy=sum(_number(job, "usr_cpu") + _number(job, "sys_cpu") for job in jobs) / len(jobs) / 100,
    )


def _engine(document: Mapping[str, object], jobs: Sequence[Mapping[str, object]]) -> str:
    """Return the engine that options of jobs name; those that all have in common are in a table of their own."""
    options = (*(job.get("job options") for job in jobs), document.get("global options"))
    engines = (table["ioengine"] for table in options if isinstance(table, dict) and "ioengine" in table)
    return safe_text.line(str(next(engines, "")), 40)


def version(document: Mapping[str, object]) -> str:
    """Version as fio prints it, ``fio-3.33``."""
    return safe_text.line(str(document.get("fio version", "an unknown fio")), 80)


def _jobs(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    jobs = document.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise OddShape("it has no jobs")
    return jobs


def _parts(jobs: Sequence[Mapping[str, object]]) -> tuple[Counters, ...]:
    """Counters of each of several drives side by side; otherwise of all jobs together."""
    counters = [Counters(*(_direction(_table(job, way)) for way in WAYS)) for job in jobs]
    drives = [DRIVE.fullmatch(str(job.get("jobname", ""))) for job in jobs]
    numbers = [int(drive[1]) for drive in drives if drive]
    if numbers and numbers == list(range(len(jobs))):
        return tuple(counters)
    return (
        Counters(
            intervals.summed([part.read for part in counters]), intervals.summed([part.write for part in counters])
        ),
    )


def _direction(way: Mapping[str, object]) -> IoDirection:
    return IoDirection(
        ios=_count(way, "total_ios"),
        bytes=_count(way, "io_bytes"),
        latency=_histogram(_table(way, "lat_ns")),
    )


def _histogram(latency: Mapping[str, object]) -> LatencyHistogram:
    # fio omits "bins" for a direction without I/O.
    bins = _table(latency, "bins") if "bins" in latency else {}
    try:
        if set(map(type, bins.values())) == {int} and (buckets := _buckets(tuple(bins))):
            return LatencyHistogram.in_buckets(buckets, cast("list[int]", list(bins.values())))
        return LatencyHistogram.from_bins({int(value_ns): strict_json.count(bins, value_ns) for value_ns in bins})
    except ValueError as error:
        raise OddShape(f"its bins are malformed: {error}") from error


# One entry for each direction of 32 drives. 19 of 20 documents have the same buckets as the one before: those are
# parsed and stored once.
@lru_cache(maxsize=64)
def _buckets(names: tuple[str, ...]) -> bytes | None:
    """Pack bucket limits; None unless they rise, as fio's do."""
    try:
        return packed_buckets(map(int, names))
    except ValueError:
        return None


def _table(record: Mapping[str, object], name: str) -> Mapping[str, object]:
    table = record.get(name)
    if not isinstance(table, dict):
        raise OddShape(f"{name} is missing")
    return table


def _count(record: Mapping[str, object], name: str) -> int:
    number = strict_json.whole(record.get(name), LARGEST_COUNT)
    if number is None:
        raise OddShape(f"{name} is no count")
    return number


def _whole(record: Mapping[str, object], name: str) -> int:
    """A whole number of either sign: errno is negative in places."""
    number = record.get(name)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > LARGEST_COUNT:
        raise OddShape(f"{name} is no number")
    return number


def _number(record: Mapping[str, object], name: str) -> float:
    try:
        return strict_json.number(record.get(name))
    except ValueError:
        raise OddShape(f"{name} is no number") from None
