"""How a fio process does at this moment, for people who watch: by the kernel's count of its targets.

A shell on the machine under test waits for a line with names and answers with the first line of each one's
``/sys/class/block/*/stat``. All of it is built into the shell, so nothing is started over there however often it is
asked (``bench/live_overhead.py`` measures what it costs). fio's own documents are fetched when they always were, at a
look and at the end, and every verdict is made of them alone: what is seen here is shown and forgotten.

The rule of the module: whatever goes wrong, the figures stop and the measurement goes on.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pytest_ssdqual.qual.progress_events import LoadBegun, News, Now, Steadiness
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine import scripts

if TYPE_CHECKING:
    from pytest_ssdqual.rig.md.mdadm import Array

#: Ends when its standard input does, which is when we do.
ANSWER = scripts.text("block_stats.sh")
#: What the kernel calls a block device; ``!`` stands for the slash in names of some controllers.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9!:._-]{0,62}", re.ASCII)
#: Counters of the kernel, Documentation/block/stat.rst: sectors read and sectors written are of 512 bytes, whatever
#: the drive's are.
SECTORS_READ, SECTORS_WRITTEN, SECTOR_BYTES = 2, 6, 512
#: Without an answer for so long there are no figures; after so long it is asked again, over a new connection if the
#: old one was lost.
ANSWER_S, RETRY_S = 5.0, 60.0
#: No more are asked for: 24 drives every 3 s, so that it stays below 0.1 % of one CPU over there.
DEVICES_A_SECOND = 8
PHASES = {"run": "measure", "saturation": "saturate"}


class Talk(Protocol):
    """A process that answers lines."""

    def ask(self, text: str, answers: int, deadline_s: float) -> list[str] | None:
        """That many lines, or None if it does not answer in time, or not any more."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Course:
    """Where a process stands among rounds: ``before`` it so many, at most ``most`` in all."""

    before: int = 0
    most: int = 0
    #: How long one lasts, after this ramp; 0: the whole process is one.
    round_s: float = 0.0
    ramp_s: float = 0.0
    #: There will be that many, not fewer.
    exact: bool = False

    def at(self, seconds: float) -> tuple[int, int]:
        """The round that it is now, counted from 1, and the most that there can be; 0 if there are none."""
        if not self.most:
            return 0, 0
        passed = int((seconds - self.ramp_s) / self.round_s) if self.round_s and seconds > self.ramp_s else 0
        return min(self.before + passed + 1, self.most), self.most


@dataclass(frozen=True, slots=True)
class Count:
    """Bytes that a device was asked for since it appeared."""

    read: int
    written: int


def parse(line: str) -> Count | None:
    """One line of a ``stat`` file; None for anything else."""
    words = line.split()
    if len(words) <= SECTORS_WRITTEN or not all(word.isascii() and word.isdecimal() for word in words[:7]):
        return None
    if any(len(word) > 20 for word in words[:7]):
        return None
    return Count(int(words[SECTORS_READ]) * SECTOR_BYTES, int(words[SECTORS_WRITTEN]) * SECTOR_BYTES)


def rates(before: Sequence[Count], after: Sequence[Count], seconds: float, block_bytes: float) -> tuple[float, ...]:
    """IOPS of each device. By bytes, because the kernel splits large I/Os and counts the pieces."""
    moved = (
        max(0, now.read - was.read) + max(0, now.written - was.written) for was, now in zip(before, after, strict=True)
    )
    return tuple(each / block_bytes / seconds for each in moved)


@dataclass(slots=True)
class Live:
    """Tells those who watch a station. ``tell`` may be called from another thread than the one that measures."""

    tell: Callable[[News], None]
    #: Starts what answers ``ANSWER``; None: nobody can, and there are no figures of this moment.
    talk: Callable[[Sequence[str]], Talk] | None
    #: Between two glances. Nobody looks more often.
    period_s: float
    #: Of the process that comes next.
    course: Course = field(default_factory=Course)
    clock: Callable[[], float] = time.monotonic
    _current: Course = field(default_factory=Course)
    _talking: Talk | None = None
    _written: int = 0

    @contextmanager
    def watching(self, load: LoadBegun, names: Sequence[str], block_bytes: float) -> Iterator[None]:
        """Glance at the devices of these names from now on, until the block is left."""
        self._current, self.course = self.course, Course()
        at, most = self._current.at(0.0)
        self.tell(replace(load, round=at, rounds=most, exact=self._current.exact))
        # Before fio begins, so that nothing is started while it runs.
        first = self._counts(names) if all(map(NAME.fullmatch, names)) else None
        if first is None:
            yield
            return
        ended = threading.Event()
        work = threading.Thread(
            target=self._glance, args=(names, block_bytes, first, ended), name="ssdqual-glance", daemon=True
        )
        work.start()
        try:
            yield
        finally:
            ended.set()
            work.join(ANSWER_S)

    def turn(self, course: Course) -> None:
        """Of the process under way: it has come to another round."""
        self._current = course

    def close(self) -> None:
        """Let go of what answers."""
        talking, self._talking = self._talking, None
        if talking:
            talking.close()

    def _glance(self, names: Sequence[str], block_bytes: float, first: Sequence[Count], ended: threading.Event) -> None:
        began = before_s = self.clock()
        period_s = max(self.period_s, len(names) / DEVICES_A_SECOND)
        before, written_before, pause_s = first, self._written, period_s
        written_first = sum(each.written for each in first)
        while not ended.wait(pause_s):
            now, now_s = self._counts(names), self.clock()
            if now is None:
                pause_s = max(RETRY_S, period_s)
                continue
            self._written = written_before + max(0, sum(each.written for each in now) - written_first)
            found = rates(before, now, max(now_s - before_s, 1e-3), block_bytes)
            course = self._current
            at, most = course.at(now_s - began)
            self.tell(Now(round(now_s - began, 3), found, self._written, at, most, course.exact))
            before, before_s, pause_s = now, now_s, period_s

    def _counts(self, names: Sequence[str]) -> list[Count] | None:
        if self.talk is None:
            return None
        with contextlib.suppress(Exception):  # what only watches must not end what measures
            self._talking = self._talking or self.talk(["sh", "-c", ANSWER])
            lines = self._talking.ask(" ".join(names), len(names), ANSWER_S)
            if lines is not None:
                found = [parse(line) for line in lines]
                return [each for each in found if each] if all(found) else None
        with contextlib.suppress(Exception):
            self.close()
        self._talking = None
        return None


@contextmanager
def watched(
    live: Live | None, array: Array, workload: Workload | None, kind: str, block_bytes: float
) -> Iterator[None]:
    """A fio process of this ``kind`` on ``array``, if anybody watches."""
    if live is None:
        yield
        return
    side_by_side = array.geometry.is_side_by_side
    names = [each.kname for each in array.members] if side_by_side else [array.kname]
    devices = tuple(each.serial or each.identity for each in array.members) if side_by_side else (str(array.geometry),)
    phase = PHASES.get(kind, kind.rpartition("-")[0] or kind)
    load = LoadBegun(phase, str(array.geometry), str(workload or ""), devices)
    with live.watching(load, names, block_bytes):
        yield


def judged(live: Live | None, reached: bool, told: str, brief: str = "") -> None:
    """Tell what a detector found, if anybody watches."""
    if live:
        live.tell(Steadiness(reached, told, brief))


def found(live: Live | None, state: SteadyState) -> None:
    """Tell how far a window is from the steady-state rule, if anybody watches."""
    judged(
        live, state.reached, state.describe(), f"{'steady' if state.reached else 'not steady yet'}: {state.nearest()}"
    )


def expect(live: Live | None, course: Course) -> None:
    """Say where the process that comes next stands."""
    if live:
        live.course = course


def turned(live: Live | None, course: Course) -> None:
    """Say where the process that runs has come to."""
    if live:
        live.turn(course)
