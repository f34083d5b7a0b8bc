"""Progress of a run: a status line for each bay, redrawn on a terminal, or printed once a minute elsewhere.

If there are more bays than lines, the last line has their number and remaining time. A line that is too long for the
terminal loses its least important parts first.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.progress_events import (
    BayProgress,
    Idle,
    LoadBegun,
    Looked,
    News,
    Now,
    Planned,
    ProgressStep,
    RunProgress,
)
from pytest_ssdqual.qual.units import Unit, format_capacity, format_clock, format_value

#: Rounding of the time left, seconds, by the least time that it applies to.
PRECISION = ((3600, 60), (600, 10), (60, 5), (-math.inf, 1))
#: Redrawing costs CPU of the controller, which may be the machine under test.
TERMINAL_PERIOD_S, PLAIN_PERIOD_S = 1.0, 60.0
#: Maximum age of statistics in a line a minute; with older ones a cell of a minute would never be shown.
PLAIN_GLANCE_S = 10.0
#: Maximum number of lines for each update if lines cannot be erased.
PLAIN_LINES = 12
#: Rate of a drive as a share of the fastest one's.
BARS = "▁▂▃▄▅▆▇█"
ERASE, UP = "\r\x1b[2K", "\x1b[1A\x1b[2K"


def line(bay: BayProgress, now_s: float, left_s: float | None, width: int | None) -> str:
    """Return the line of a bay, shorter than ``width``; ``left_s`` is the time left of the whole run."""
    if bay.step is None:
        return ""
    parts = [safe_text.line(each) for each in _parts(bay, bay.step, now_s, left_s)]
    # A narrow terminal loses the bytes first and the rate last.
    kept = [bool(part) for part in parts]
    for least in (4, 3, 1, 5, 2):
        if width is None or len(_joined(parts, kept)) < width:
            break
        kept[least] = False
    return _cut(_joined(parts, kept), width)


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) < width else f"{text[: max(0, width - 2)]}…"


def others(bays: Sequence[BayProgress], now_s: float, width: int | None) -> str:
    """Return one line about bays that do not fit, shorter than ``width``."""
    longest = max((left for bay in bays if (left := bay.left_s(now_s)) is not None), default=None)
    parts = [f"ssdqual: and {len(bays)} bays more", _remaining(longest)]
    return _cut(_joined(parts, [bool(part) for part in parts]), width)


def gauges(bay: BayProgress, width: int | None) -> str:
    """Return a bar for the rate of each drive side by side, and the slowest one; empty without several drives."""
    names, rates = bay.load.devices if bay.load else (), bay.now.iops if bay.now else ()
    if len(rates) < 2 or len(names) != len(rates) or not 0 < max(rates) < math.inf:
        return ""
    slowest, fastest = min(rates), max(rates)
    bars = "".join(BARS[round((len(BARS) - 1) * rate / fastest)] for rate in rates)
    name = safe_text.line(names[rates.index(slowest)])
    return _cut(f"  {bars} slowest {name}: {slowest:,.0f} IOPS, fastest {fastest:,.0f} IOPS", width)


def _parts(bay: BayProgress, step: ProgressStep, now_s: float, left_s: float | None) -> Sequence[str]:
    """Return step, round, rate, steadiness, bytes written and time left."""
    name = f" {bay.name}" if bay.name else ""
    now, steadiness = bay.now, bay.steadiness
    steady = ""
    if steadiness:
        steady = steadiness.brief or ("steady" if steadiness.reached else "not steady yet")
    return (
        f"ssdqual{name}: {step.what} {passed(max(0.0, now_s - step.began_s), step.expected_s)}",
        _place(bay.now or bay.load),
        format_value(now.together, Unit.IOPS) if now else "",
        steady,
        f"{format_capacity(bay.bytes_written)} written" if bay.bytes_written else "",
        _remaining(left_s, bay.share_done(now_s), bay.most_left_s(now_s)),
    )


def passed(elapsed_s: float, expected_s: float) -> str:
    """Return ``1:15 of 12:00``, ``13:00 (planned: 12:00)`` for an overdue step, ``1:15`` without an expectation."""
    if not (expected_s > 0 and math.isfinite(expected_s)):
        return format_clock(elapsed_s)
    # Not overdue in the last second: collecting fio's output takes a moment.
    late = int(elapsed_s) > math.ceil(expected_s)
    return (
        f"{format_clock(elapsed_s)} (planned: {format_clock(expected_s)})"
        if late
        else f"{format_clock(elapsed_s)} of {format_clock(expected_s)}"
    )


def _place(event: Now | LoadBegun | None) -> str:
    if event is None or not event.rounds:
        return ""
    return f"round {event.round} of {'' if event.exact else 'at most '}{event.rounds}"


def _remaining(left_s: float | None, share: float | None = None, most_s: float = 0.0) -> str:
    """Return the time left, at least and at most; ``share`` is that of the run's time that has passed."""
    if left_s is None:
        return ""
    if max(left_s, most_s) <= 0:
        return "longer than planned in all"
    done = f" ({share:.0%} done)" if share is not None else ""
    least, most = _rounded(left_s), _rounded(most_s)
    if left_s <= 0:
        return f"at most {most} left in all"
    return f"{f'{least} to {most}' if most_s > left_s and least != most else f'about {least}'} left in all{done}"


def _rounded(left_s: float) -> str:
    precision_s = next(step_s for least_s, step_s in PRECISION if left_s >= least_s)
    return format_clock(max(1.0, precision_s * round(left_s / precision_s)))


def _joined(parts: Sequence[str], kept: Sequence[bool]) -> str:
    return ", ".join(part for part, is_kept in zip(parts, kept, strict=True) if is_kept)


class Stream(Protocol):
    """The methods of a text file that are needed."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...


@dataclass(slots=True)
class Progress:
    """Status lines of all bays; a context manager that redraws them while steps last.

    ``stream`` must be the real terminal, as pytest captures ``sys.stdout``. ``fresh_line`` is called before the first
    character of a status line, so that pytest's own line of dots can be ended first. ``poll`` fetches events, every
    ``poll_s`` or before each drawing.
    """

    stream: Stream
    terminal: bool
    #: Read before each drawing: the window may have shrunk, and a line that wraps cannot be erased.
    width: Callable[[], int] = lambda: 80
    #: Lines that scrolled off the top cannot be erased either.
    height: Callable[[], int] = lambda: 24
    fresh_line: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    poll: Callable[[], None] | None = None
    poll_s: float | None = None
    #: Show the rate of each drive side by side.
    has_gauges: bool = False
    #: Shared with the other observers of the run.
    state: RunProgress = field(default_factory=RunProgress)
    _written_s: float | None = None
    #: A rate was shown.
    _has_rate: bool = False
    #: Status lines on the terminal now.
    _on_screen: int = 0
    #: True when the session's summary begins.
    _is_over: bool = False
    #: Plans that were printed.
    _plans: list[tuple[str, ...]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.state.observers.append(self._show)

    def take(self, news: News, name: str = "", at_s: float | None = None) -> None:
        """Apply an event of a bay, which happened at ``at_s`` by ``clock``, and redraw if it is due."""
        self.state.take(news, name, self.clock() if at_s is None else at_s)

    def tick(self) -> None:
        """Fetch new events and redraw if it is due."""
        if self.poll:
            self.poll()
        with self.state.lock:
            self._draw(self.clock())

    def clear(self) -> None:
        """Erase the lines so that other output can be written; the next tick draws them again."""
        with self.state.lock:
            if self._on_screen:
                self._put(self._erased())
                self._on_screen = 0

    def say(self, sentence: str) -> None:
        """Print a permanent line."""
        with self.state.lock:
            self._tell(f"ssdqual: {safe_text.line(sentence)}")

    def finish(self) -> None:
        """Erase the lines, and print nothing more."""
        self.clear()
        self._is_over = True

    def idle(self) -> None:
        """Erase the lines until the next step."""
        self.clear()
        with self.state.lock:
            for name in list(self.state.bays):
                self.take(Idle(), name)

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
        """Seconds between two drawings."""
        return TERMINAL_PERIOD_S if self.terminal else PLAIN_PERIOD_S

    @property
    def glance_s(self) -> float:
        """Maximum age of live statistics."""
        return TERMINAL_PERIOD_S if self.terminal else PLAIN_GLANCE_S

    def _show(self, event: News, before: BayProgress, after: BayProgress, at_s: float) -> None:
        if isinstance(event, Looked):
            self.say(event.sentence)
            self._written_s = self.clock()
        elif isinstance(event, Planned) and event.lines and event.lines not in self._plans:
            self._plans.append(event.lines)  # several bays have the same plan
            self._tell("\n".join(safe_text.line(each) for each in event.lines))
        else:
            if isinstance(event, Now) and event.together and not self._has_rate:
                self._has_rate, self._written_s = True, None  # in a log it would come after a minute
            self._draw(self.clock())

    def _tick_on(self) -> None:
        while not self._ended.wait(self._rest_s()):
            self.tick()

    def _rest_s(self) -> float:
        """Return the seconds until the next redraw or poll; a new step redraws immediately."""
        period_s = min(self.period_s, self.poll_s or self.period_s)
        with self.state.lock:
            if self._written_s is None or not self._busy():
                return period_s
            left_s = self._written_s + self.period_s - self.clock()
        # A minimum, so that a redraw that is just due does not cause a busy loop.
        return min(period_s, max(period_s / 20, left_s))

    def _busy(self) -> list[BayProgress]:
        return [bay for _, bay in sorted(self.state.bays.items()) if bay.step]

    def _draw(self, now_s: float) -> None:
        # 0.999: a wait of exactly one period must not be early by rounding.
        early = self._written_s is not None and now_s - self._written_s < 0.999 * self.period_s
        busy = self._busy()
        if not busy or early or self._is_over:
            return
        self._written_s = now_s
        width = self.width() if self.terminal else None
        # Not every xdist worker has a bay.
        several = sum(bay.has_worked for bay in self.state.bays.values()) > 1
        most = max(2, self.height() - 2) if self.terminal else PLAIN_LINES
        first = busy if len(busy) <= most else busy[: most - 1]
        shown = [line(bay if several else replace(bay, name=""), now_s, bay.left_s(now_s), width) for bay in first]
        if len(first) < len(busy):
            shown.append(others(busy[len(first) :], now_s, width))
        elif self.has_gauges and len(busy) == 1 and (drives := gauges(busy[0], width)):
            shown.append(drives)
        if not self._on_screen:
            self.fresh_line()
        text = "\n".join(shown)
        self._put(f"{self._erased()}{text}" if self.terminal else f"{text}\n")
        self._on_screen = len(shown) if self.terminal else 0

    def _tell(self, text: str) -> None:
        if self._is_over:
            return
        if not self._on_screen:
            self.fresh_line()
        self._put(f"{self._erased() if self._on_screen else ''}{text}\n")
        self._on_screen = 0

    def _erased(self) -> str:
        return ERASE + UP * max(0, self._on_screen - 1)

    def _put(self, text: str) -> None:
        # A lost terminal (a closed pipe, a lost ssh connection) must not end a run of hours.
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()
