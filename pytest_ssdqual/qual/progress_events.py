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

#: Weight of a plan of fixed durations in the pace: as if so much had been done exactly as planned. An array of seconds
#: shows little.
PRIOR_S = 60.0


@dataclass(frozen=True, slots=True)
class Planned:
    """Expected duration of the plan."""

    seconds: float
    #: What the plan knows the begin of: arrays by their ids (``raid5x4``), in the order in which they are built, and
    #: measurements by the names of their steps (``raid5x4: randread_4k_qd8``).
    arrays: tuple[str, ...] = ()
    #: Begin of each, in seconds since the first.
    starts_s: tuple[float, ...] = ()
    #: The printed plan, from a process that cannot print it.
    lines: tuple[str, ...] = ()
    #: Weight of the plan in the pace, in seconds; see ``PRIOR_S``.
    prior_s: float = PRIOR_S
    #: Expected duration of each measurement, in the order of ``measured``.
    lengths_s: tuple[float, ...] = ()
    #: The measurements whose duration is only expected, by the names of their steps.
    measured: tuple[str, ...] = ()

    @property
    def starts(self) -> dict[str, float]:
        """Begin of each array, by its id, and of each measurement, by the name of its step."""
        return dict(zip(self.arrays, self.starts_s, strict=False))

    def length_s(self, what: str) -> float:
        """Expected duration of a measurement; 0 if it is fixed."""
        return dict(zip(self.measured, self.lengths_s, strict=False)).get(what, 0.0)


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that takes time has begun: ``raid5x4: fill``."""

    what: str
    #: Expected duration; 0 if unknown.
    expected_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Looked:
    """Result of an interim analysis, and the time by which it extends the measurement beyond the plan."""

    sentence: str
    more_s: float = 0.0


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class BytesWritten:
    """Bytes that all loads wrote to the drives since the session began, parity and copies included; a load has ended.

    They are those of the plan, so zeroing and other purges do not count.
    """

    bytes_written: int


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Result of the steady-state rule, or of the last look."""

    reached: bool
    #: A sentence.
    sentence: str
    #: Short form for a line: ``not steady yet: range 34.0 % (20 % allowed)``; "" if there is none.
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing is done until the next ``Begun``."""


#: Limits of the pace. An array that ended early by an error says nothing about the others.
LEAST_PACE, MOST_PACE = 0.8, 5.0


def array_of(what: str) -> str:
    """Id of the array of a step or a plan row, with all its members: ``raid5x4`` for ``raid5x4-1failed: fill``."""
    return re.split("[ :-]", what, maxsplit=1)[0]


News = Planned | Begun | Looked | LoadBegun | Now | BytesWritten | Steadiness | Idle
#: The kinds of events, by the names of their classes.
KINDS: dict[str, type[News]] = {each.__name__: each for each in get_args(News)}


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """A step that takes time: ``raid5x4: fill``."""

    what: str
    #: 0 if unknown.
    expected_s: float
    began_s: float


@dataclass(frozen=True, slots=True)
class BayProgress:
    """State of a bay, reduced from its progress events."""

    #: Shown only if there are several bays.
    name: str = ""
    #: None if no step is running.
    step: ProgressStep | None = None
    #: The whole run, if it was planned.
    plan: Planned | None = None
    #: Arrays and planned measurements that have been started, and the time of the first start.
    begun: tuple[str, ...] = ()
    began_s: float = 0.0
    #: Time that all before the last planned begin took, over its planned time; see ``PRIOR_S``.
    pace: float = 1.0
    #: Planned time of all finished steps.
    done_s: float = 0.0
    #: Time added to the plan.
    added_s: float = 0.0
    #: True once a step has started.
    has_worked: bool = False
    load: LoadBegun | None = None
    now: Now | None = None
    steadiness: Steadiness | None = None
    #: Bytes written since the start of the run, as last reported.
    bytes_written: int = 0

    def after(self, news: News, at_s: float) -> BayProgress:
        """Return the state after an event."""
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
            case Looked(_, more_s):
                step = self.step and replace(self.step, expected_s=self.step.expected_s + more_s)
                return replace(self, step=step, added_s=self.added_s + more_s)
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
        """Return the time left of the whole run, at the pace of the arrays and measurements that are finished.

        0 if it is overdue, None if it is unknown or no step is running.
        """
        if self.plan is None or not math.isfinite(self.plan.seconds) or self.step is None:
            return None
        elapsed_s = now_s - self.step.began_s
        if length_s := self.plan.length_s(self.step.what):
            # What the plan expects of the step, or more if its next look is later than that.
            rest_s = max(0.0, max(self.pace * length_s, self.step.expected_s) - elapsed_s)
            return self.pace * max(0.0, self.plan.seconds - self.done_s - length_s) + rest_s
        of_step_s = min(elapsed_s, self.step.expected_s) if self.step.expected_s else elapsed_s
        return self.pace * max(0.0, self.plan.seconds + self.added_s - self.done_s - of_step_s)

    def share_done(self, now_s: float) -> float | None:
        """Return the share of the whole run's time that has passed; None if that is unknown."""
        left_s, elapsed_s = self.left_s(now_s), now_s - self.began_s
        return elapsed_s / (elapsed_s + left_s) if left_s and self.begun and elapsed_s > 0 else None

    def _ended(self, took_s: float) -> BayProgress:
        # The planned time, not the actual one, so that the sum of all steps stays that of the plan.
        planned_s = self.plan.length_s(self.step.what) if self.plan and self.step else 0.0
        done_s = self.done_s + ((planned_s or self.step.expected_s or took_s) if self.step else 0.0)
        return replace(self, step=None, done_s=done_s, load=None, now=None)

    def _on_plan_at(self, what: str, at_s: float) -> BayProgress:
        """Where an array or a planned measurement begins, count all planned time before it as done, also that of steps
        that failed.

        There, and nowhere else, the plan knows how long everything before should have taken; so the pace is known.
        """
        starts = self.plan.starts if self.plan else {}
        place = what if what in starts else array_of(what)
        if place in self.begun or place not in starts:
            return self
        began_s, first = (self.began_s, self.begun[0]) if self.begun else (at_s, place)
        prior_s = self.plan.prior_s if self.plan else PRIOR_S
        pace = (at_s - began_s + prior_s) / (max(0.0, starts[place] - starts[first]) + prior_s)
        pace = min(max(pace, LEAST_PACE), MOST_PACE)
        begun = (*self.begun, place)
        return replace(self, done_s=starts[place], added_s=0.0, begun=begun, began_s=began_s, pace=pace)


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
