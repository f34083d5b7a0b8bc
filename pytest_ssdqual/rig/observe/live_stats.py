"""Live statistics of a fio process, for people who watch: from the kernel's counters of its targets.

A shell on the machine under test waits for a line with names and answers with the first line of each one's
``/sys/class/block/*/stat``. It uses builtins only, so no process is started there at a query. fio's own documents are
fetched independently at the end, and every verdict is computed from them alone: live statistics are shown and
discarded.

If anything fails, the statistics stop and the measurement goes on.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import Traffic
from pytest_ssdqual.qual.progress_events import BytesWritten, LoadBegun, News, Now, Steadiness
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.observe.device_counters import traffic

#: The script exits on EOF of its standard input, hence also when this process dies.
ANSWER = scripts.text("block_stats.sh")
#: A kernel name of a block device; ``!`` stands for the slash in names of some controllers.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9!:._-]{0,62}", re.ASCII)
#: Seconds without an answer after which there are no statistics, and until the next query, over a new connection if
#: the old one was lost.
ANSWER_S, RETRY_S = 5.0, 60.0
#: Limit of the query rate: 24 drives every 3 s, which takes less than 0.1 % of one CPU of the machine under test.
DEVICES_A_SECOND = 8
#: Seconds between two counts of what the drives have written, during a load.
WRITTEN_S = 10.0
PHASES = {"run": "measure", "saturation": "saturate"}


class LineServer(Protocol):
    """A process that answers lines."""

    def ask(self, text: str, answers: int, deadline_s: float) -> list[str] | None:
        """Send a line and return that many lines, or None if they do not arrive in time or the process has ended."""

    def close(self) -> None: ...


@frozen
class Course:
    """Position of a process among rounds: ``before`` it that many, at most ``most`` in all."""

    before: int = 0
    most: int = 0
    #: Seconds of one round, after this ramp; 0: the whole process is one.
    round_s: float = 0.0
    ramp_s: float = 0.0
    #: True if there will be exactly that many.
    exact: bool = False

    def at(self, seconds: float) -> tuple[int, int]:
        """Return the number of the current round, counted from 1, and the maximum; 0 if there are none."""
        if not self.most:
            return 0, 0
        passed = int((seconds - self.ramp_s) / self.round_s) if self.round_s and seconds > self.ramp_s else 0
        return min(self.before + passed + 1, self.most), self.most


def parse(line: str) -> Traffic | None:
    """Parse one line of a ``stat`` file; None for anything else."""
    with contextlib.suppress(ValueError):
        return traffic(line)
    return None


def rates(before: Sequence[Traffic], after: Sequence[Traffic], seconds: float, block_bytes: float) -> tuple[float, ...]:
    """IOPS of each device, computed from bytes, because the kernel splits large I/Os and counts the pieces."""
    moved = (
        max(0, now.read_bytes - was.read_bytes) + max(0, now.write_bytes - was.write_bytes)
        for was, now in zip(before, after, strict=True)
    )
    return tuple(bytes_moved / block_bytes / seconds for bytes_moved in moved)


@dataclass(slots=True)
class DriveWrites:
    """Bytes written to the drives of a load since it began; a drive may be gone for a while."""

    names: Sequence[str]
    written: int = 0
    #: Last counts, by name.
    _last: dict[str, Traffic] = field(default_factory=dict)

    def add(self, counts: Sequence[Traffic | None]) -> None:
        """Take the counts of all drives, in the order of the names."""
        for name, now in zip(self.names, counts, strict=True):
            if now is None:
                continue
            was = self._last.get(name, now)
            self.written += max(0, now.write_bytes - was.write_bytes)  # a drive that is back counts from zero
            self._last[name] = now


@dataclass(slots=True)
class Live:
    """Sends live statistics to observers. Another thread than the measuring one may call ``report``."""

    report: Callable[[News], None]
    #: Starts the process that answers ``ANSWER``; None: there are no live statistics.
    line_process: Callable[[Sequence[str]], LineServer] | None
    #: Seconds between two queries.
    period_s: float
    #: Position of the next process.
    course: Course = field(default_factory=Course)
    clock: Callable[[], float] = time.monotonic
    _current: Course = field(default_factory=Course)
    _running: LineServer | None = None
    _written: int = 0

    @contextmanager
    def watching(
        self, load: LoadBegun, names: Sequence[str], block_bytes: float, drives: Sequence[str] = ()
    ) -> Iterator[None]:
        """Query the devices of these names until the block ends; ``drives`` are below them, or they are drives."""
        self._current, self.course = self.course, Course()
        round_number, most = self._current.at(0.0)
        self.report(replace(load, round=round_number, rounds=most, exact=self._current.exact))
        writes = DriveWrites(drives or names)
        # Before fio starts, so that no process is started while it runs.
        first = self._counts(names) if all(map(NAME.fullmatch, (*names, *writes.names))) else None
        if first is None:
            yield
            return
        if drives:
            self._count(writes)
        else:
            writes.add(first)
        ended = threading.Event()
        work = threading.Thread(
            target=self._sample, args=(names, block_bytes, first, writes, ended), name="ssdqual-live-stats", daemon=True
        )
        work.start()
        try:
            yield
        finally:
            ended.set()
            work.join(ANSWER_S)
            # Most loads of a short protocol end between two samples.
            if not work.is_alive():
                self._count(writes)
                self._written += writes.written
                self.report(BytesWritten(self._written))

    def close(self) -> None:
        """End the process that answers."""
        talking, self._running = self._running, None
        if talking:
            talking.close()

    def _sample(
        self,
        names: Sequence[str],
        block_bytes: float,
        before: Sequence[Traffic],
        writes: DriveWrites,
        ended: threading.Event,
    ) -> None:
        began = before_s = counted_s = self.clock()
        period_s = pause_s = max(self.period_s, len(names) / DEVICES_A_SECOND)
        while not ended.wait(pause_s):
            now, now_s = self._counts(names), self.clock()
            if now is None:
                pause_s = max(RETRY_S, period_s)
                continue
            if names == writes.names:
                writes.add(now)
            elif now_s - counted_s >= max(WRITTEN_S, len(writes.names) / DEVICES_A_SECOND):
                self._count(writes)
                counted_s = now_s
            device_rates = rates(before, now, max(now_s - before_s, 1e-3), block_bytes)
            course, written = self._current, self._written + writes.written
            round_number, most = course.at(now_s - began)
            self.report(Now(round(now_s - began, 3), device_rates, written, round_number, most, course.exact))
            before, before_s, pause_s = now, now_s, period_s

    def _count(self, writes: DriveWrites) -> None:
        """Count what is written to the drives; without an answer it is counted the next time."""
        if (counts := self._answered(writes.names)) is not None:
            writes.add(counts)

    def _counts(self, names: Sequence[str]) -> list[Traffic] | None:
        """Return the counts of all devices; None if one of them has none."""
        counts = self._answered(names)
        return [count for count in counts if count] if counts and all(counts) else None

    def _answered(self, names: Sequence[str]) -> list[Traffic | None] | None:
        if self.line_process is None:
            return None
        with contextlib.suppress(Exception):  # an observer's error must not end the measurement
            self._running = self._running or self.line_process(["sh", "-c", ANSWER])
            lines = self._running.ask(" ".join(names), len(names), ANSWER_S)
            if lines is not None:
                return [parse(line) for line in lines]
        with contextlib.suppress(Exception):
            self.close()
        self._running = None
        return None


@contextmanager
def watched(
    live: Live | None, array: Array, workload: Workload | None, kind: str, block_bytes: float
) -> Iterator[None]:
    """Watch a fio process of this ``kind`` on ``array``, if there are observers."""
    if live is None:
        yield
        return
    side_by_side = array.geometry.is_side_by_side
    names = [member.kname for member in array.members] if side_by_side else [array.kname]
    devices = tuple(member.name for member in array.members) if side_by_side else (str(array.geometry),)
    phase = PHASES.get(kind, kind.rpartition("-")[0] or kind)
    load = LoadBegun(phase, str(array.geometry), str(workload or ""), devices)
    below = () if side_by_side else [member.kname for member in array.members]
    with live.watching(load, names, block_bytes, below):
        yield


def send_steadiness(live: Live | None, reached: bool, sentence: str, brief: str = "") -> None:
    """Send a detector's result to the observers, if there are any."""
    if live:
        live.report(Steadiness(reached, sentence, brief))


def send_state(live: Live | None, state: SteadyState) -> None:
    """Send the distance of a window from the steady-state rule to the observers, if there are any."""
    send_steadiness(
        live, state.reached, state.describe(), f"{'steady' if state.reached else 'not steady yet'}: {state.nearest()}"
    )


def expect(live: Live | None, course: Course) -> None:
    """Set the position of the next process."""
    if live:
        live.course = course
