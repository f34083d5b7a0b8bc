"""What is being done now, for people who wait for hours: a line a bay that changes on a terminal, or one a minute.

Of more bays than there is room for, the last line says how many they are and when they will be done.

One line about one bay: what is done there, how it does now, and how long still; what matters least is cut first.
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
from pytest_ssdqual.qual.progress_events import Begun, Idle, LoadBegun, Looked, News, Now, Planned, Steadiness, array_of
from pytest_ssdqual.qual.units import Unit, format_capacity, format_duration, format_value


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """One thing that takes time: ``raid5x4: fill``."""

    what: str
    #: 0 if nobody knows.
    expected_s: float
    began_s: float


@dataclass(frozen=True, slots=True)
class BayProgress:
    """What is known of a bay now, as the news of it come in."""

    #: Told only where there are several.
    name: str = ""
    #: None: nothing is being done.
    step: ProgressStep | None = None
    #: The whole run, if it was planned.
    plan: Planned | None = None
    #: Arrays on which something was done.
    begun: tuple[str, ...] = ()
    #: Of all steps before, as they were planned.
    done_s: float = 0.0
    #: What came on top of the plan.
    added_s: float = 0.0
    #: Anything was ever begun here.
    has_worked: bool = False
    load: LoadBegun | None = None
    now: Now | None = None
    steadiness: Steadiness | None = None
    #: Since the run began, as far as was told.
    bytes_written: int = 0

    def after(self, news: News, at_s: float) -> BayProgress:
        """The bay when this has come in."""
        match news:
            case Planned():
                return replace(self, plan=news)
            case Begun(what, expected_s):
                ended = self._ended(at_s - self.step.began_s if self.step else 0.0)._on_array_of(what)
                # Steps of one conditioning follow each other, and what was found of the last still holds.
                goes_on = self.step is not None and self.step.what == what
                found = self.steadiness if goes_on else None
                return replace(ended, step=ProgressStep(what, expected_s, at_s), steadiness=found, has_worked=True)
            case Idle():
                return self._ended(0.0)
            case Looked(_, more_s):
                step = self.step and replace(self.step, expected_s=self.step.expected_s + more_s)
                return replace(self, step=step, added_s=self.added_s + more_s)
            case LoadBegun():
                return replace(self, load=news, now=None)
            case Now():
                return replace(self, now=news, bytes_written=max(self.bytes_written, news.bytes_written))
            case Steadiness():
                return replace(self, steadiness=news)
        return self

    def left_s(self, now_s: float) -> float | None:
        """Of the whole run; 0 if it takes longer than planned, None if nobody knows or nothing is being done."""
        if self.plan is None or not math.isfinite(self.plan.seconds) or self.step is None:
            return None
        elapsed_s = now_s - self.step.began_s
        of_step_s = min(elapsed_s, self.step.expected_s) if self.step.expected_s else elapsed_s
        return max(0.0, self.plan.seconds + self.added_s - self.done_s - of_step_s)

    def _ended(self, took_s: float) -> BayProgress:
        # As planned, not as it turned out: only so does the sum of all steps stay the plan's.
        done_s = self.done_s + ((self.step.expected_s or took_s) if self.step else 0.0)
        return replace(self, step=None, done_s=done_s, load=None, now=None)

    def _on_array_of(self, what: str) -> BayProgress:
        """Where an array is begun, what came before is done: also what it would have taken if it had not failed."""
        array, starts = array_of(what), self.plan.starts if self.plan else {}
        if array in self.begun or array not in starts:
            return self
        return replace(self, done_s=starts[array], added_s=0.0, begun=(*self.begun, array))


def line(bay: BayProgress, now_s: float, left_s: float | None, width: int | None) -> str:
    """One line; shorter than ``width`` if that is given. ``left_s`` is what remains of the whole run."""
    if bay.step is None:
        return ""
    parts = [safe_text.line(each) for each in _parts(bay, bay.step, now_s, left_s)]
    # By rank, so that a narrow terminal loses bytes first and the rate last.
    kept = [bool(part) for part in parts]
    for least in (4, 3, 1, 5, 2):
        if width is None or len(_joined(parts, kept)) < width:
            break
        kept[least] = False
    text = _joined(parts, kept)
    return text if width is None or len(text) < width else f"{text[: max(0, width - 2)]}…"


def others(bays: Sequence[BayProgress], now_s: float, width: int | None) -> str:
    """One line about bays for which there is no room; shorter than ``width`` if that is given."""
    longest = max((left for bay in bays if (left := bay.left_s(now_s)) is not None), default=None)
    parts = [f"ssdqual: and {len(bays)} bays more", _remaining(longest)]
    text = _joined(parts, [bool(part) for part in parts])
    return text if width is None or len(text) < width else f"{text[: max(0, width - 2)]}…"


def _parts(bay: BayProgress, step: ProgressStep, now_s: float, left_s: float | None) -> Sequence[str]:
    """What is done, which round, the rate, how steady, the bytes, the time left."""
    name = f" {bay.name}" if bay.name else ""
    now, found = bay.now, bay.steadiness
    return (
        f"ssdqual{name}: {step.what} {passed(max(0.0, now_s - step.began_s), step.expected_s)}",
        _place(bay.now or bay.load),
        format_value(now.together, Unit.IOPS) if now else "",
        (found.brief or ("steady" if found.reached else "not steady yet")) if found else "",
        f"{format_capacity(bay.bytes_written)} written" if bay.bytes_written else "",
        _remaining(left_s),
    )


def passed(elapsed_s: float, expected_s: float) -> str:
    """``1:15 of 12:00``; ``13:00 (planned: 12:00)`` of what takes longer; ``1:15`` where nobody knows how long."""
    if not (expected_s > 0 and math.isfinite(expected_s)):
        return _clock(elapsed_s)
    # At the last second it is not late yet: what follows fio's end takes a moment.
    late = int(elapsed_s) > math.ceil(expected_s)
    return (
        f"{_clock(elapsed_s)} (planned: {_clock(expected_s)})"
        if late
        else f"{_clock(elapsed_s)} of {_clock(expected_s)}"
    )


def _place(told: Now | LoadBegun | None) -> str:
    if told is None or not told.rounds:
        return ""
    return f"round {told.round} of {'' if told.exact else 'at most '}{told.rounds}"


def _remaining(left_s: float | None) -> str:
    if left_s is None:
        return ""
    if left_s <= 0:
        return "longer than planned in all"
    return f"about {format_duration(max(1.0, round(left_s)))} left in all"


def _joined(parts: Sequence[str], kept: Sequence[bool]) -> str:
    return ", ".join(part for part, is_kept in zip(parts, kept, strict=True) if is_kept)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
    _bays: dict[str, BayProgress] = field(default_factory=dict)
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
            bay = self._bays.get(name, BayProgress(name))
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

    def _busy(self) -> list[BayProgress]:
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
