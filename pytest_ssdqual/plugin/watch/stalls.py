"""Stalls: a step of a bay in which nothing was measured for longer than expected; pure."""

from __future__ import annotations

import math

from pytest_ssdqual.qual.progress_events import BayProgress
from pytest_ssdqual.qual.units import format_clock, format_duration

#: A step without live statistics, such as a purge, may take this many times its planned time.
LATE = 2.0
#: A step whose time is unknown may take this many times the limit.
UNPLANNED = 4.0


def stall(bay: BayProgress, limit_s: float, now_s: float) -> str:
    """Return a sentence if the bay has made no progress for too long; empty otherwise.

    That is ``limit_s`` while fio runs with live statistics, and longer in a step without them.
    """
    if bay.step is None:
        return ""
    planned_s = bay.step.expected_s if math.isfinite(bay.step.expected_s) else 0.0
    planned = f" (planned: {format_clock(planned_s)})" if planned_s > 0 else ""
    what = "no I/O was measured"
    allowed_s = limit_s
    if bay.now is None:
        what = "no progress was reported"
        allowed_s = max(limit_s, LATE * planned_s) if planned_s > 0 else UNPLANNED * limit_s
    quiet_s = now_s - bay.active_s
    return f"{bay.step.what}{planned}: {what} for {format_duration(quiet_s)}" if quiet_s >= allowed_s else ""
