"""What is being done now, for people who wait for hours: a line a bay that changes on a terminal, or one a minute.

Of more bays than there is room for, the last line says how many they are and when they will be done.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.progress_events import Begun, Idle, Looked, News
from pytest_ssdqual.report.terminal.bay_line import Bay, line, others

#: Redrawing costs CPU of the machine that may be the one under test.
TERMINAL_PERIOD_S, PLAIN_PERIOD_S = 1.0, 60.0
#: A line a minute says how it does now: a minute's cell of a loop would end without ever having been looked at.
PLAIN_GLANCE_S = 10.0
#: Bays told of where nothing is erased: a log of a hundred lines a minute is read by nobody.
PLAIN_LINES = 12
ERASE, UP = "\r\x1b[2K", "\x1b[1A\x1b[2K"


class Stream(Protocol):
    """What of a text file is needed."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


@dataclass(slots=True)
class Progress:
    """``take`` news of bays; enter it to have their lines redrawn while steps last.

    ``stream`` must be the real terminal, as pytest captures ``sys.stdout``. ``fresh_line`` is called before the first
    character of a status line is written, so that pytest's own line of dots can be ended first. Where news have to be
    fetched, ``poll`` does it, every ``poll_s`` or before each line.
    """

    stream: Stream
    terminal: bool
    #: Asked before each drawing: a window may have been made narrower, and a line that wraps cannot be erased.
    width: Callable[[], int] = lambda: 80
    #: What scrolled off the top could not be erased either.
    height: Callable[[], int] = lambda: 24
    fresh_line: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    poll: Callable[[], None] | None = None
    poll_s: float | None = None
    _bays: dict[str, Bay] = field(default_factory=dict)
    _written_s: float | None = None
    #: Lines that stand on the terminal now.
    _on_screen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __call__(self, what: str, expected_s: float) -> None:
        """A new step of the only bay; the one before has ended."""
        self.take(Begun(what, expected_s))

    def looked(self, text: str, more_s: float) -> None:
        """A line to stay, about a look at this step, which goes on for so much longer than it was planned."""
        self.take(Looked(text, more_s))

    def take(self, news: News, name: str = "", at_s: float | None = None) -> None:
        """News of the bay of this name, which happened at ``at_s`` by ``clock``; drawn if it is time to."""
        with self._lock:
            now_s = self.clock()
            bay = self._bays.get(name, Bay(name))
            self._bays[name] = bay.after(news, now_s if at_s is None else at_s)
            if isinstance(news, Looked):
                self._tell(news, now_s)
            else:
                self._draw(now_s)

    def tick(self) -> None:
        """Fetch what is new, and draw again if it is time to."""
        if self.poll:
            self.poll()
        with self._lock:
            self._draw(self.clock())

    def clear(self) -> None:
        """Take the lines off the terminal, so that others can write; the next tick brings them back."""
        with self._lock:
            if self._on_screen:
                self._put(self._erased())
                self._on_screen = 0

    def idle(self) -> None:
        """Nothing is being done: no line until the next step."""
        self.clear()
        with self._lock:
            now_s = self.clock()
            self._bays = {name: bay.after(Idle(), now_s) for name, bay in self._bays.items()}

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

    @property
    def period_s(self) -> float:
        """Between two drawings: nothing that is shown need be known more often."""
        return TERMINAL_PERIOD_S if self.terminal else PLAIN_PERIOD_S

    @property
    def glance_s(self) -> float:
        """How old figures may be."""
        return TERMINAL_PERIOD_S if self.terminal else PLAIN_GLANCE_S

    def _tick_on(self) -> None:
        while not self._ended.wait(self._rest_s()):
            self.tick()

    def _rest_s(self) -> float:
        """Until it is time to draw or fetch again; a new step is drawn by whoever tells it."""
        period_s = min(self.period_s, self.poll_s or self.period_s)
        with self._lock:
            if self._written_s is None or not self._busy():
                return period_s
            left_s = self._written_s + self.period_s - self.clock()
        # What is just due is waited for a little, and not asked for again and again.
        return min(period_s, max(period_s / 20, left_s))

    def _busy(self) -> list[Bay]:
        return [bay for _, bay in sorted(self._bays.items()) if bay.step]

    def _draw(self, now_s: float) -> None:
        # Whoever waited for exactly that long is not early by a rounding.
        early = self._written_s is not None and now_s - self._written_s < 0.999 * self.period_s
        busy = self._busy()
        if not busy or early:
            return
        self._written_s = now_s
        width = self.width() if self.terminal else None
        # Of xdist's workers only some have a bay.
        several = sum(bay.has_worked for bay in self._bays.values()) > 1
        most = max(2, self.height() - 2) if self.terminal else PLAIN_LINES
        first = busy if len(busy) <= most else busy[: most - 1]
        shown = [line(bay if several else replace(bay, name=""), now_s, bay.left_s(now_s), width) for bay in first]
        if len(first) < len(busy):
            shown.append(others(busy[len(first) :], now_s, width))
        if not self._on_screen:
            self.fresh_line()
        text = "\n".join(shown)
        self._put(f"{self._erased()}{text}" if self.terminal else f"{text}\n")
        self._on_screen = len(shown) if self.terminal else 0

    def _tell(self, news: Looked, now_s: float) -> None:
        if not self._on_screen:
            self.fresh_line()
        self._put(f"{self._erased() if self._on_screen else ''}ssdqual: {safe_text.line(news.told)}\n")
        self._on_screen = 0
        self._written_s = now_s

    def _erased(self) -> str:
        return ERASE + UP * max(0, self._on_screen - 1)

    def _put(self, text: str) -> None:
        # A terminal that went away (a closed pipe, a lost ssh connection) must not end a run of hours.
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()
