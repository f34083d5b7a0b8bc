"""One interim analysis (look) at a sequential measurement: how much of it counts, and how sure its intervals have to
be.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """One of the planned looks; the run that it belongs to is cut into blocks of equal length, all of them after the
    ramp.
    """

    #: Counted from 1.
    number: int
    #: How many there can be at most.
    of: int
    #: Two-sided confidence of an interval at this look, so that those of all looks hold together at the protocol's.
    level: float
    #: Head of the series that the truncation rule takes for warm-up, seconds after the ramp. Means leave it out; what
    #: extremes and quantiles are read from is the whole series.
    warmup_s: float
    #: Blocks at the beginning that means ignore altogether.
    left_out: int = 0
    #: Blocks behind those that are warm-up, too: they only show whether a trend goes on.
    head: int = 0
    #: See ``SequentialRule``.
    slowest_s: float = 2100.0
    pause_s: float = 60.0
    #: Length of the spells of which the slowest I/O and the slowest second are known, seconds.
    spell_s: float = 10.0
