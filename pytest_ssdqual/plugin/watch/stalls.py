"""Detects stalls: a step of a bay in which nothing was measured for longer than expected; pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_ssdqual.qual.progress_events import BayProgress, News, Now
from pytest_ssdqual.qual.units import format_clock, format_duration

#: A step without live statistics, such as a purge, may take this many times its planned time.
LATE = 2.0
#: A step whose time is unknown may take this many times the limit.
UNPLANNED = 4.0


@dataclass(slots=True)
class StallDetector:
    """Observes progress events, and knows which bays make no progress."""

    #: Seconds without progress, while fio runs with live statistics.
    limit_s: float
    #: The state of each bay and the time of its last sign of progress; infinite once a stall was reported.
    _bays: dict[str, tuple[BayProgress, float]] = field(default_factory=dict)

    def take(self, event: News, before: BayProgress, bay: BayProgress, at_s: float) -> None:
        """Take a progress event of a bay and its states before and after it."""
        _, last_s = self._bays.get(bay.name, (bay, at_s))
        self._bays[bay.name] = (bay, at_s if _is_progress(event, before) else last_s)

    def stalled(self, now_s: float) -> Iterator[tuple[str, str]]:
        """Yield the name of each bay that stalls, and a sentence; each stall once."""
        for name, (bay, last_s) in list(self._bays.items()):
            if bay.step and now_s - last_s >= self._allowed_s(bay):
                self._bays[name] = (bay, math.inf)
                yield name, _sentence(bay, now_s - last_s)

    def _allowed_s(self, bay: BayProgress) -> float:
        """Return how long a bay may show no progress: the limit, or longer in a step without live statistics."""
        if bay.now is not None:
            return self.limit_s
        planned_s = _planned_s(bay)
        return max(self.limit_s, LATE * planned_s) if planned_s else UNPLANNED * self.limit_s


def _is_progress(event: News, before: BayProgress) -> bool:
    """Return True unless the event says that the load does nothing."""
    return not isinstance(event, Now) or event.together > 0 or event.bytes_written > before.bytes_written


def _planned_s(bay: BayProgress) -> float:
    """Return the planned time of the step; 0 if it is unknown."""
    return bay.step.expected_s if bay.step and math.isfinite(bay.step.expected_s) else 0.0


def _sentence(bay: BayProgress, quiet_s: float) -> str:
    what = "no I/O was measured" if bay.now is not None else "no progress was reported"
    planned_s = _planned_s(bay)
    planned = f" (planned: {format_clock(planned_s)})" if planned_s > 0 else ""
    return f"{bay.step.what if bay.step else ''}{planned}: {what} for {format_duration(quiet_s)}"
