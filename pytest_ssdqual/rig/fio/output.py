"""fio's output as values: its cumulative status documents become intervals, or an error that names the cause.

The one place for differences between fio's versions. Pure; tested with fio 3.33 and 3.42 (tests/data/fio). fio's exit
status and its ``error`` fields are not sufficient: a killed worker, a refused target and a full disk all end with
status 0 in one version or both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.interval import Interval, merged
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.fio import intervals as counters
from pytest_ssdqual.rig.fio import status_stream
from pytest_ssdqual.rig.fio.intervals import IoDirection, Snapshot
from pytest_ssdqual.rig.fio.status_stream import OddShape, Splitter
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement

#: Limit of the documents that are stored of a fill: a document of a drive with 500 bins takes 9 kB, so those of 24
#: drives take 100 MB.
MOST_DOCUMENTS = 480

#: fio prints a line for each failed job. More lines than this add nothing.
MOST_MESSAGES = 1000
#: A file as a whole, or in pieces: 12 minutes of 24 drives with a status every second are 2 GB.
Output = bytes | Iterable[bytes]


@frozen
class FioResult:
    """One fio process, all jobs together; the sum of ``intervals`` is ``read`` and ``write`` exactly.

    ``parts`` are the same intervals for each of several drives side by side, in the given order: of equal number and at
    equal times, so that ``intervals`` is their sum. With one target there are none.

    ``seconds`` is fio's own run time.
    """

    seconds: float
    intervals: tuple[Interval, ...]
    read: IoDirection
    write: IoDirection
    #: errno of the first failed job, or 0.
    error: int
    #: CPU time of a job, share of one core, mean of the jobs: near 1 they were the bottleneck, not the drives.
    jobs_busy: float
    #: Lines of text between the documents.
    messages: tuple[str, ...]
    parts: tuple[tuple[Interval, ...], ...] = ()
    #: fio's I/O engine; empty if it is unknown.
    engine: str = ""

    @property
    def of_targets(self) -> tuple[tuple[Interval, ...], ...]:
        """The intervals of each target."""
        return self.parts or (self.intervals,)


def of_drives(result: FioResult, geometry: Geometry) -> tuple[tuple[Interval, ...], ...]:
    """Return the intervals of each drive side by side; empty for an array or a single drive."""
    if not geometry.is_side_by_side or geometry.width == 1:
        return ()
    return result.of_targets  # only one of several drives may be left


def of_bursts(result: FioResult, seconds: float) -> FioResult:
    """Return the result of a process with pauses as one interval of the length of all its bursts together.

    fio reports the run time of the longest burst, and the I/Os of all.
    """

    def joined(intervals: Sequence[Interval]) -> tuple[Interval, ...]:
        # Nothing is known of the rates of single seconds.
        return (replace(merged(intervals), start_s=0.0, seconds=seconds, slowest=None, fastest=None),)

    return replace(result, seconds=seconds, intervals=joined(result.intervals), parts=tuple(map(joined, result.parts)))


class StatusReader:
    """Reads fio's output file while it grows; the result so far is available at any time.

    Documents are cumulative, so any may be dropped without loss except of resolution. Beyond ``most`` documents, if
    given, every second one is dropped, and from then on only every second one is stored, and so on: hours take the
    memory of minutes, in intervals of equal length. The result depends on the bytes alone, not on the pieces in which
    they arrived.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._every = 1
        self._splitter = Splitter()
        self._snapshots: list[Snapshot] = []
        self._last: dict[str, Any] = {}
        self._messages: list[str] = []
        self._odd: Exception | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file; never raises, because ``so_far`` and ``whole`` report damage."""
        for piece in self._splitter.feed(data):
            if isinstance(piece, str):
                if len(self._messages) < MOST_MESSAGES:
                    self._messages.append(piece)
            else:
                self._take(piece)

    @property
    def ended_ios(self) -> int:
        """Number of I/Os that had ended by the newest whole document; fio counts those that it began elsewhere."""
        newest = self._snapshots[-1].parts if self._snapshots else ()
        return sum(way.latency.total for part in newest for way in (part.read, part.write))

    @property
    def failure(self) -> tuple[int, str]:
        """The first failed job's errno, or 0, and its engine, by the newest whole document."""
        try:
            ended = status_stream.ended(self._last)
        except ValueError:  # of a document of another shape
            return 0, ""
        return ended.error, ended.engine

    def messages(self) -> tuple[str, ...]:
        """All messages of fio, even behind a damaged document."""
        return (*self._messages, *self._splitter.rest)

    def so_far(self) -> FioResult:
        """Return the result while fio writes; an incomplete document is ignored. Raises as ``whole``."""
        return self._result(self._snapshots)

    def _result(self, snapshots: Sequence[Snapshot]) -> FioResult:
        try:
            if self._odd:
                raise self._odd
            if not snapshots:
                raise InvalidMeasurement(f"fio wrote no result{_quoted(self.messages())}")
            return _result(snapshots, self._last, self.messages())
        except OddShape as error:
            version = status_stream.version(self._last)
            raise InvalidMeasurement(f"the output of {version} has an unknown shape: {error}") from error
        except (ValueError, OverflowError) as error:
            raise InvalidMeasurement(f"fio's counters are not those of one run: {error}") from error

    def whole(self) -> FioResult:
        """Return the result of the whole file after fio has ended.

        ``InvalidMeasurement`` if it contains no document, if a document is cut off or has another shape, if counters
        ran backwards, or if the machine's clock was set meanwhile.
        """
        if not self._odd:
            self._splitter.require_end()
        return self.so_far()

    def totals(self) -> FioResult:
        """As ``whole``, of the last document alone: the counts of the whole process as one interval.

        It does not matter then that the machine's clock was set meanwhile.
        """
        if not self._odd:
            self._splitter.require_end()
        return self._result(self._snapshots[-1:])

    def _take(self, document: dict[str, Any]) -> None:
        """Store a document: always the newest one, of the others one in so many."""
        self._last = document
        stored, number = self._snapshots, len(self._snapshots)
        try:
            snapshot = status_stream.snapshot(document)
            if stored:
                counters.require_growth(stored[-1], snapshot)
        except ValueError as error:  # OddShape is one
            self._odd = self._odd or error
            return
        if number % self._every:
            stored[-1] = stored[-1].without_counters()
        stored.append(snapshot)
        if self._most is not None and number // self._every >= self._most:
            self._every *= 2
            for index, each in enumerate(stored[:-1]):
                if (index + 1) % self._every:
                    stored[index] = each.without_counters()


def read(output: Output, most: int | None = None) -> StatusReader:
    """Return a ``StatusReader`` that has read all of a file."""
    reader = StatusReader(most)
    for piece in (output,) if isinstance(output, bytes) else output:
        reader.feed(piece)
    return reader


def parse(output: Output) -> FioResult:
    """Parse a file written by ``--output-format=json+ --status-interval``: ``StatusReader.whole`` of all of it.

    ``acceptance.check`` decides whether the run is valid.
    """
    return read(output).whole()


def _result(snapshots: Sequence[Snapshot], last: dict[str, Any], messages: Sequence[str]) -> FioResult:
    parts = counters.parts(snapshots)
    ended, final = status_stream.ended(last), snapshots[-1].parts
    return FioResult(
        seconds=snapshots[-1].asked_ms / 1000,
        intervals=parts[0] if len(parts) == 1 else tuple(map(counters.together, zip(*parts, strict=True))),
        read=counters.summed([part.read for part in final]),
        write=counters.summed([part.write for part in final]),
        error=ended.error,
        engine=ended.engine,
        jobs_busy=ended.jobs_busy,
        messages=tuple(messages),
        parts=tuple(parts) if len(parts) > 1 else (),
    )


def _quoted(messages: Sequence[str]) -> str:
    return f": {messages[0].strip()}" if messages else ""
