"""One fio process on the machine under test: start it, wait, fetch its output, and remove its files."""

from __future__ import annotations

import gzip
import io
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.fio import acceptance, engine_limits
from pytest_ssdqual.rig.fio.jobs import ExpectedResult, Job
from pytest_ssdqual.rig.fio.output import MOST_DOCUMENTS, FioResult, StatusReader, parse
from pytest_ssdqual.rig.machine import run_files, scripts
from pytest_ssdqual.rig.machine.machine import (
    Completed,
    DeadlineExceeded,
    InvalidMeasurement,
    Machine,
    RigError,
    Tethered,
    ask,
)

#: Seconds for fio's own start and end, on an emulated or busy machine.
OVERHEAD_S = 90.0
#: Seconds from the signal to its end: outstanding I/O has to complete first.
END_S = 60.0
FETCH_S = 300.0
#: fio's exit status if a job could not be started, or ended with an error.
FAILED = 1, 2
#: A watched process in which no I/O has ended for so long is ended: a device does not respond. Seconds between two
#: readings of its output, each of which gives the memory of what was read back to the machine.
STALLED_S, WATCH_EVERY_S = 1800.0, 300.0
#: Pack the output. The file is removed only after its arrival, so the command can be repeated over another connection.
FETCH = 'gzip -1 -c "$1"'
#: Fetch the rest of a file that was read before; fetch the bytes written since the last read.
FETCH_REST, READ_NEW = map(scripts.text, ("fetch_rest.sh", "fetch_new.sh"))
#: Limit of fio's output: a status of 24 drives every 5 s for five hours has 2 GB. Zeroes pack a thousandfold, so a
#: file that is not fio's must not occupy the controller for ever.
UNPACKED_BYTES = 4 << 30
#: Limit of the unpacked output in memory.
PIECE_BYTES = 1 << 20


def unpacked(packed: bytes) -> Iterator[bytes]:
    """Unpack gzip data of one or several members, piece by piece.

    ``RigError`` if they are damaged or larger than any output of fio.
    """
    size_bytes = 0
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            while piece := file.read(PIECE_BYTES):
                size_bytes += len(piece)
                if size_bytes > UNPACKED_BYTES:
                    most = f"{UNPACKED_BYTES >> 30} GiB"
                    raise RigError(f"the output of fio has more than {most}, which no output of fio has")
                yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise RigError(f"the output of fio arrived damaged: {error}") from error


@frozen
class FinishedProcess:
    """A fio process that ended, and its output file; ``packed`` is gzip, as it arrived."""

    completed: Completed
    #: The whole output, in as many gzip members as there were reads.
    packed: bytes

    def pieces(self) -> Iterator[bytes]:
        """The whole output, see ``unpacked``."""
        return unpacked(self.packed)

    def accepted(self, expectation: ExpectedResult) -> FioResult:
        """Return the result; raises as ``acceptance.accept``."""
        return acceptance.accept(self.pieces(), self.completed.status, self.completed.errors, expectation)

    def totals(self, expectation: ExpectedResult) -> FioResult:
        """Return the counts of the whole process; raises as ``acceptance.accept_totals``."""
        return acceptance.accept_totals(self.pieces(), self.completed.status, self.completed.errors, expectation)

    @property
    def messages(self) -> tuple[str, ...]:
        """All messages of fio, in its output and on standard error."""
        return acceptance.messages(self.pieces(), self.completed.errors)

    @property
    def errno(self) -> int:
        """The first failed job's errno; 0 if none failed, or if the output is not whole."""
        try:
            return parse(self.pieces()).error
        except InvalidMeasurement:
            return 0


@dataclass(slots=True)
class RunningProcess:
    """A running fio process; see ``start``."""

    machine: Machine
    tether: Tethered
    path: str
    #: The output that was read so far; BytesIO returns it without a copy.
    _packed: io.BytesIO = field(default_factory=io.BytesIO)
    _read_bytes: int = 0

    def read_new(self) -> Iterator[bytes]:
        """Read the bytes written since the last call; while fio runs, it writes every status document at once.

        Nevertheless the last one may be cut off. Exhaust the iterator before the next call. Raises as ``Machine.run``.
        """
        argv = ["sh", "-c", READ_NEW, "fetch", self.path, str(self._read_bytes)]
        packed = self.machine.run(argv, deadline_s=FETCH_S, repeatable=True).stdout
        self._packed.write(packed)
        for piece in unpacked(packed):
            self._read_bytes += len(piece)
            yield piece

    def wait(self, seconds: float, *, is_watched: bool = False) -> FinishedProcess:
        """Wait until it ends by itself, which should take about ``seconds``; ``DeadlineExceeded`` if it does not.

        With ``is_watched`` also if none of its I/Os has ended for ``STALLED_S``.
        """
        deadline_s, began = seconds * 1.25 + OVERHEAD_S, time.monotonic()
        if is_watched:
            self._watch(deadline_s)
        return self._finished(self.tether.wait(max(0.0, deadline_s - (time.monotonic() - began))))

    def _watch(self, deadline_s: float) -> None:
        """Read the output until the process has ended, or until the deadline; ``DeadlineExceeded`` if it stalls."""
        reader = StatusReader(MOST_DOCUMENTS)
        began = moved = time.monotonic()
        ended_ios = 0
        while (left_s := deadline_s - (time.monotonic() - began)) > 0 and self.tether.rest(min(WATCH_EVERY_S, left_s)):
            for piece in self.read_new():
                reader.feed(piece)
            if reader.ended_ios > ended_ios:
                ended_ios, moved = reader.ended_ios, time.monotonic()
            elif time.monotonic() - moved >= STALLED_S:
                raise DeadlineExceeded(f"none of fio's I/Os ended for {format_duration(STALLED_S)}, so fio was ended")

    def end(self) -> FinishedProcess:
        """End it now, gently: its output has the results so far."""
        return self._finished(self.tether.cut(END_S))

    def _finished(self, completed: Completed) -> FinishedProcess:
        has_read = self._packed.tell() > 0
        script = [FETCH_REST, "fetch", self.path, str(self._read_bytes)] if has_read else [FETCH, "fetch", self.path]
        fetched = scripts.answer(self.machine, *script, deadline_s=FETCH_S)
        ask(self.machine, ["rm", "-f", self.path])
        completed = self._with_limits(completed)
        packed = fetched.stdout if fetched.status == 0 else gzip.compress(b"")
        if not has_read:
            return FinishedProcess(completed, packed)
        self._packed.write(packed)
        return FinishedProcess(completed, self._packed.getvalue())

    def _with_limits(self, completed: Completed) -> Completed:
        """Add the limits that may have ended fio to its messages, if it reports that it failed."""
        if completed.status not in FAILED:
            return completed
        limits = scripts.answer(self.machine, engine_limits.SCRIPT)
        return replace(completed, stderr=limits.stdout + completed.stderr)


@contextmanager
def start(machine: Machine, job: Job) -> Iterator[RunningProcess]:
    """Start ``job``, tethered: fio ends if this process ends, is interrupted or loses the machine.

    On an error in the block, fio is ended and its file removed.
    """
    path = run_files.path(machine, "fio")
    tether = machine.tether(job.argv(path))
    try:
        yield RunningProcess(machine, tether, path)
    except BaseException:
        with suppress(RigError):  # the original error is more informative
            tether.cut()
            machine.run(["rm", "-f", path], check=False)
        raise


def run(machine: Machine, job: Job, seconds: float, *, is_watched: bool = False) -> FinishedProcess:
    """Run ``job``, which should take about ``seconds``, and fetch its output; for ``is_watched`` see ``wait``.

    ``acceptance.accept`` decides whether the numbers are valid; this raises only if the machine or the process fails
    altogether.
    """
    with start(machine, job) as running:
        return running.wait(seconds, is_watched=is_watched)
