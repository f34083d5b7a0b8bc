"""Progress events of a bay: plan, steps, loads, live rates, steadiness; and their reduction to a state.

For people who watch, never for a verdict: nothing that is judged depends on them. They travel between processes as
JSON, one object each.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import get_args

from pytest_ssdqual.qual.frozen import frozen

#: Weight of a plan of fixed durations in the pace: as if so much had been done exactly as planned. An array of seconds
#: shows little.
PRIOR_S = 60.0
#: Limits of the pace. An array that ended early by an error says nothing about the others.
LEAST_PACE, MOST_PACE = 0.8, 5.0


@frozen
class Planned:
    """Expected duration of the plan: the least."""

    seconds: float
    #: Ids of arrays (``raid5x4``) in the order in which they are built; one that is visited again is there again.
    arrays: tuple[str, ...] = ()
    #: Begin of each, in seconds since the first.
    starts_s: tuple[float, ...] = ()
    #: The printed plan, from a process that cannot print it.
    lines: tuple[str, ...] = ()
    #: The most that the protocol allows; 0 if unknown.
    most_s: float = 0.0

    def start_s(self, array: str, times: int) -> float | None:
        """Return when an array begins that was begun so many times before; None if the plan does not know."""
        starts = [begin_s for name, begin_s in zip(self.arrays, self.starts_s, strict=False) if name == array]
        return starts[times] if times < len(starts) else None


@frozen
class Begun:
    """A step that takes time has begun: ``raid5x4: fill``."""

    what: str
    #: Expected duration; 0 if unknown.
    expected_s: float = 0.0


@frozen
class Looked:
    """Result of a look at a measurement in visits."""

    sentence: str


@frozen
class LoadBegun:
    """A fio process has begun."""

    #: ``measure``, ``precondition``, ``fill``, …
    phase: str
    geometry: str
    workload: str
    #: Devices of the figures: the array, or each of the drives side by side.
    devices: tuple[str, ...]
    #: Round at the beginning; see ``Now``.
    round: int = 0
    rounds: int = 0
    exact: bool = False


@frozen
class Now:
    """Live statistics of the load."""

    #: Seconds since the load began.
    seconds: float
    #: IOPS of each device since the previous event.
    iops: tuple[float, ...]
    #: Bytes written to the drives since the session began, by this load and all before it; see ``BytesWritten``.
    bytes_written: int
    #: Round, counted from 1, and their number (at most, or exactly); 0 without rounds.
    round: int = 0
    rounds: int = 0
    exact: bool = False

    @property
    def together(self) -> float:
        """IOPS of all devices."""
        return sum(self.iops)


@frozen
class BytesWritten:
    """Bytes that all loads wrote to the drives since the session began, parity and copies included; a load has ended.

    They are those of the plan, so zeroing and other purges do not count.
    """

    bytes_written: int


@frozen
class Steadiness:
    """Result of the steady-state rule."""

    reached: bool
    #: A sentence.
    sentence: str
    #: Short form for a line: ``not steady yet: range 34.0 % (20 % allowed)``; "" if there is none.
    brief: str = ""


@frozen
class Idle:
    """Nothing is done until the next ``Begun``."""


def array_of(what: str) -> str:
    """Id of the array of a step or a plan row, with all its members: ``raid5x4`` for ``raid5x4-1failed: fill``."""
    return re.split("[ :-]", what, maxsplit=1)[0]


News = Planned | Begun | Looked | LoadBegun | Now | BytesWritten | Steadiness | Idle
#: The kinds of events, by the names of their classes.
KINDS: dict[str, type[News]] = {each.__name__: each for each in get_args(News)}


@frozen
class ProgressStep:
    """A step that takes time: ``raid5x4: fill``."""

    what: str
    #: 0 if unknown.
    expected_s: float
    began_s: float


@frozen
class BayProgress:
    """State of a bay, reduced from its progress events."""

    #: Shown only if there are several bays.
    name: str = ""
    #: None if no step is running.
    step: ProgressStep | None = None
    #: The whole run, if it was planned.
    plan: Planned | None = None
    #: Arrays of the plan that have been started, as often as they were, and the time of the first start.
    begun: tuple[str, ...] = ()
    began_s: float = 0.0
    #: Time that all before the last planned begin took, over its planned time; see ``PRIOR_S``.
    pace: float = 1.0
    #: Planned time of all finished steps.
    done_s: float = 0.0
    #: True once a step has started.
    has_worked: bool = False
    load: LoadBegun | None = None
    now: Now | None = None
    steadiness: Steadiness | None = None
    #: Bytes written since the start of the run, as last reported.
    bytes_written: int = 0
    #: Time of the last event that does not say that the load does nothing.
    active_s: float = field(default=0.0, compare=False)

    def after(self, news: News, at_s: float) -> BayProgress:
        """Return the state after an event."""
        is_idle = isinstance(news, Now) and not news.together and news.bytes_written <= self.bytes_written
        return replace(self._after(news, at_s), active_s=self.active_s if is_idle else at_s)

    def _after(self, news: News, at_s: float) -> BayProgress:
        match news:
            case Planned():
                return replace(self, plan=news)
            case Begun(what, expected_s):
                ended = self._ended(at_s - self.step.began_s if self.step else 0.0)._on_plan_at(what, at_s)
                # A conditioning consists of several steps; the steadiness of the last one still holds.
                goes_on = self.step is not None and self.step.what == what
                found = self.steadiness if goes_on else None
                return replace(ended, step=ProgressStep(what, expected_s, at_s), steadiness=found, has_worked=True)
            case Idle():
                return self._ended(0.0)
            case LoadBegun():
                return replace(self, load=news, now=None)
            case Now():
                return replace(self, now=news, bytes_written=max(self.bytes_written, news.bytes_written))
            case BytesWritten(bytes_written):
                return replace(self, bytes_written=max(self.bytes_written, bytes_written))
            case Steadiness():
                return replace(self, steadiness=news)
        return self

    def left_s(self, now_s: float) -> float | None:
        """Return the time left of the whole run, at the pace of the arrays that are finished.

        0 if it is overdue, None if it is unknown or no step is running.
        """
        if self.plan is None or not math.isfinite(self.plan.seconds) or self.step is None:
            return None
        elapsed_s = now_s - self.step.began_s
        of_step_s = min(elapsed_s, self.step.expected_s) if self.step.expected_s else elapsed_s
        return self.pace * max(0.0, self.plan.seconds - self.done_s - of_step_s)

    def most_left_s(self, now_s: float) -> float:
        """Return the most time left of the whole run, if everything takes as long as the protocol allows."""
        elapsed_s = now_s - self.began_s if self.begun else 0.0
        return self.pace * self.plan.most_s - elapsed_s if self.plan else 0.0

    def share_done(self, now_s: float) -> float | None:
        """Return the share of the whole run's time that has passed; None if that is unknown."""
        left_s, elapsed_s = self.left_s(now_s), now_s - self.began_s
        return elapsed_s / (elapsed_s + left_s) if left_s and self.begun and elapsed_s > 0 else None

    def _ended(self, took_s: float) -> BayProgress:
        # The planned time, not the actual one, so that the sum of all steps stays that of the plan.
        done_s = self.done_s + ((self.step.expected_s or took_s) if self.step else 0.0)
        return replace(self, step=None, done_s=done_s, load=None, now=None)

    def _on_plan_at(self, what: str, at_s: float) -> BayProgress:
        """Where an array begins, count all planned time before it as done, also that of steps that failed.

        There, and nowhere else, the plan knows how long everything before should have taken; so the pace is known.
        """
        array = array_of(what)
        if self.plan is None or array in self.begun[-1:]:
            return self
        start_s = self.plan.start_s(array, self.begun.count(array))
        if start_s is None:
            return self
        began_s, first = (self.began_s, self.begun[0]) if self.begun else (at_s, array)
        planned_s = max(0.0, start_s - (self.plan.start_s(first, 0) or 0.0))
        pace = (at_s - began_s + PRIOR_S) / (planned_s + PRIOR_S)
        pace = min(max(pace, LEAST_PACE), MOST_PACE)
        return replace(self, done_s=start_s, begun=(*self.begun, array), began_s=began_s, pace=pace)


#: Takes an event, the state of its bay before and after it, and its time.
Observer = Callable[[News, BayProgress, BayProgress, float], None]


@dataclass(slots=True)
class RunProgress:
    """State of all bays, which every observer of a run shows; events may come from any thread."""

    observers: list[Observer] = field(default_factory=list)
    bays: dict[str, BayProgress] = field(default_factory=dict)
    #: Held while an event is applied: observers get events one after another.
    lock: threading.RLock = field(default_factory=threading.RLock)

    def take(self, event: News, name: str, at_s: float) -> None:
        """Apply an event of a bay, which happened at ``at_s`` by the monotonic clock."""
        with self.lock:
            before = self.bays.get(name, BayProgress(name))
            after = self.bays[name] = before.after(event, at_s)
            for observer in self.observers:
                observer(event, before, after, at_s)
