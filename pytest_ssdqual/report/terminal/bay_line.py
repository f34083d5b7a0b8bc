"""One line about one bay: what is done there, how it does now, and how long still; what matters least is cut first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.progress_events import Begun, Idle, Load, Looked, News, Now, Planned, Steadiness, array_of
from pytest_ssdqual.qual.units import Unit, format_capacity, format_duration, format_value


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that takes time: ``raid5x4: fill``."""

    what: str
    #: 0 if nobody knows.
    expected_s: float
    began_s: float


@dataclass(frozen=True, slots=True)
class Bay:
    """What is known of a bay now, as the news of it come in."""

    #: Told only where there are several.
    name: str = ""
    #: None: nothing is being done.
    step: Step | None = None
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
    load: Load | None = None
    now: Now | None = None
    steadiness: Steadiness | None = None
    #: Since the run began, as far as was told.
    bytes_written: int = 0

    def after(self, news: News, at_s: float) -> Bay:
        """The bay when this has come in."""
        match news:
            case Planned():
                return replace(self, plan=news)
            case Begun(what, expected_s):
                ended = self._ended(at_s - self.step.began_s if self.step else 0.0)._on_array_of(what)
                # Steps of one conditioning follow each other, and what was found of the last still holds.
                goes_on = self.step is not None and self.step.what == what
                found = self.steadiness if goes_on else None
                return replace(ended, step=Step(what, expected_s, at_s), steadiness=found, has_worked=True)
            case Idle():
                return self._ended(0.0)
            case Looked(_, more_s):
                step = self.step and replace(self.step, expected_s=self.step.expected_s + more_s)
                return replace(self, step=step, added_s=self.added_s + more_s)
            case Load():
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

    def _ended(self, took_s: float) -> Bay:
        # As planned, not as it turned out: only so does the sum of all steps stay the plan's.
        done_s = self.done_s + ((self.step.expected_s or took_s) if self.step else 0.0)
        return replace(self, step=None, done_s=done_s, load=None, now=None)

    def _on_array_of(self, what: str) -> Bay:
        """Where an array is begun, what came before is done: also what it would have taken if it had not failed."""
        array, starts = array_of(what), self.plan.starts if self.plan else {}
        if array in self.begun or array not in starts:
            return self
        return replace(self, done_s=starts[array], added_s=0.0, begun=(*self.begun, array))


def line(bay: Bay, now_s: float, left_s: float | None, width: int | None) -> str:
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


def others(bays: Sequence[Bay], now_s: float, width: int | None) -> str:
    """One line about bays for which there is no room; shorter than ``width`` if that is given."""
    longest = max((left for bay in bays if (left := bay.left_s(now_s)) is not None), default=None)
    parts = [f"ssdqual: and {len(bays)} bays more", _remaining(longest)]
    text = _joined(parts, [bool(part) for part in parts])
    return text if width is None or len(text) < width else f"{text[: max(0, width - 2)]}…"


def _parts(bay: Bay, step: Step, now_s: float, left_s: float | None) -> Sequence[str]:
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


def _place(told: Now | Load | None) -> str:
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
