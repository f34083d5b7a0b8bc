"""What is being done now, for people who wait for hours: a line that changes on a terminal, one a minute elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

from pytest_ssdqual.qual import printable
from pytest_ssdqual.qual.units import format_duration

#: Redrawing costs CPU of the machine that may be the one under test.
TERMINAL_PERIOD_S, PLAIN_PERIOD_S = 1.0, 60.0
ERASE = "\r\x1b[2K"


class Stream(Protocol):
    """What of a text file is needed."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that takes time: ``raid5x4: fill``."""

    what: str
    #: 0 if nobody knows.
    expected_s: float
    began_s: float
    #: What has been seen of it so far: ``round 3, 41,200 IOPS``.
    detail: str = ""


def line(step: Step, now_s: float, left_s: float | None, width: int | None) -> str:
    """One line; cut to ``width`` if given. ``left_s`` is what remains of the whole run."""
    elapsed_s = max(0.0, now_s - step.began_s)
    text = f"ssdqual: {step.what} {_clock(elapsed_s)}"
    if step.expected_s > 0:
        text += f" of {_clock(step.expected_s)}"
    if step.detail:
        text += f", {step.detail}"
    if left_s is not None:
        text += f", about {format_duration(max(1.0, round(left_s)))} left in all"
    text = printable.line(text)
    return text if width is None or len(text) < width else f"{text[: width - 2]}…"


@dataclass(slots=True)
class Progress:
    """Call it with each new step, as ``rig.station`` does; enter it to have it redrawn while a step lasts.

    ``stream`` must be the real terminal, as pytest captures ``sys.stdout``. ``fresh_line`` is called before the first
    character of a status line is written, so that pytest's own line of dots can be ended first.
    """

    stream: Stream
    terminal: bool
    width: int = 80
    #: Of the whole run, if it was planned.
    total_s: float | None = None
    fresh_line: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    _step: Step | None = None
    _done_s: float = 0.0
    _written_s: float | None = None
    _on_screen: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __call__(self, what: str, expected_s: float) -> None:
        """A new step; the one before has ended."""
        with self._lock:
            now = self.clock()
            if self._step:
                # As planned, not as it turned out: only so does the sum of all steps stay the plan's.
                self._done_s += self._step.expected_s or now - self._step.began_s
            self._step = Step(what, expected_s, now)
            self._draw(now)

    def detail(self, text: str) -> None:
        """What has been seen of this step so far; shown when the line is next drawn."""
        with self._lock:
            if self._step:
                self._step = replace(self._step, detail=text)
                self._draw(self.clock())

    def looked(self, text: str, more_s: float) -> None:
        """A line to stay, about a look at this step, which goes on for so much longer than it was planned."""
        with self._lock:
            if self.total_s is not None:
                self.total_s += more_s
            if self._step:
                self._step = replace(self._step, expected_s=self._step.expected_s + more_s)
            if not self._on_screen:
                self.fresh_line()
            self._put(f"{ERASE if self._on_screen else ''}ssdqual: {text}\n")
            self._on_screen = False
            self._written_s = self.clock()

    def tick(self) -> None:
        """Draw again if it is time to."""
        with self._lock:
            self._draw(self.clock())

    def clear(self) -> None:
        """Take the line off the terminal, so that others can write; the next tick brings it back."""
        with self._lock:
            if self._on_screen:
                self._put(ERASE)
                self._on_screen = False

    def idle(self) -> None:
        """Nothing is being done: no line until the next step."""
        self.clear()
        with self._lock:
            if self._step:
                self._done_s += self._step.expected_s
            self._step = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._tick_on, name="ssdqual-progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join(timeout=5)
        self.idle()

    def _tick_on(self) -> None:
        while not self._ended.wait(self._rest_s()):
            self.tick()

    @property
    def _period_s(self) -> float:
        return TERMINAL_PERIOD_S if self.terminal else PLAIN_PERIOD_S

    def _rest_s(self) -> float:
        """Until it is time to draw again; a new step is drawn by whoever tells it."""
        with self._lock:
            if self._step is None or self._written_s is None:
                return self._period_s
            left_s = self._written_s + self._period_s - self.clock()
        # What is just due is waited for a little, and not asked for again and again.
        return min(self._period_s, max(self._period_s / 20, left_s))

    def _draw(self, now_s: float) -> None:
        # Whoever waited for exactly that long is not early by a rounding.
        early = self._written_s is not None and now_s - self._written_s < 0.999 * self._period_s
        if self._step is None or early:
            return
        self._written_s = now_s
        text = line(self._step, now_s, self._left_s(now_s), self.width if self.terminal else None)
        if not self._on_screen:
            self.fresh_line()
        self._put(f"{ERASE}{text}" if self.terminal else f"{text}\n")
        self._on_screen = self.terminal

    def _put(self, text: str) -> None:
        # A terminal that went away (a closed pipe, a lost ssh connection) must not end a run of hours.
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()

    def _left_s(self, now_s: float) -> float | None:
        if self.total_s is None or self._step is None:
            return None
        elapsed_s = now_s - self._step.began_s
        of_step_s = min(elapsed_s, self._step.expected_s) if self._step.expected_s else elapsed_s
        return max(0.0, self.total_s - self._done_s - of_step_s)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
