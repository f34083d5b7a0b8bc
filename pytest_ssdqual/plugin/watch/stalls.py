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
class BayActivity:
    """State of a bay, and the time of its last sign of progress."""

    bay: BayProgress
    last_s: float
    #: The stall that began then was reported.
    is_reported: bool = False


@dataclass(slots=True)
class StallDetector:
    """Observes progress events, and knows which bays make no progress."""

    #: Seconds without progress, while fio runs with live statistics.
    limit_s: float
    _bays: dict[str, BayActivity] = field(default_factory=dict)

    def take(self, event: News, bay: BayProgress, at_s: float) -> None:
        """Take a progress event of a bay and its state after it."""
        known = self._bays.get(bay.name)
        if known is None or is_progress(event, known.bay):
            self._bays[bay.name] = BayActivity(bay, at_s)
        else:
            known.bay = bay

    def stalled(self, now_s: float) -> Iterator[tuple[str, str]]:
        """Yield the name of each bay that stalls, and a sentence; each stall once."""
        for name, each in list(self._bays.items()):
            quiet_s = now_s - each.last_s
            if each.bay.step is None or each.is_reported or quiet_s < self.allowed_s(each.bay):
                continue
            each.is_reported = True
            yield name, _sentence(each.bay, quiet_s)

    def allowed_s(self, bay: BayProgress) -> float:
        """Return how long a bay may show no progress: the limit, or longer in a step without live statistics."""
        if bay.now is not None or bay.step is None:
            return self.limit_s
        expected_s = bay.step.expected_s
        if not (expected_s > 0 and math.isfinite(expected_s)):
            return UNPLANNED * self.limit_s
        return max(self.limit_s, LATE * expected_s)


def is_progress(event: News, before: BayProgress) -> bool:
    """Return True unless the event says that the load does nothing."""
    return not isinstance(event, Now) or event.together > 0 or event.bytes_written > before.bytes_written


def _sentence(bay: BayProgress, quiet_s: float) -> str:
    step = bay.step
    if step is None:
        return ""
    planned = (
        f" (planned: {format_clock(step.expected_s)})" if step.expected_s > 0 and math.isfinite(step.expected_s) else ""
    )
    what = "no I/O was measured" if bay.now is not None else "no progress was reported"
    return f"{step.what}{planned}: {what} for {format_duration(quiet_s)}"
