"""A look at a measurement under way: what of it counts, and how sure its intervals have to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """One of the planned looks at a sequential measurement."""

    #: Counted from 1.
    number: int
    #: How many there can be at most.
    of: int
    #: Two-sided confidence of an interval at this look, so that those of all looks hold together at the protocol's.
    level: float
    #: Head of the stimulus that was found to be warm-up and is left out, seconds after the ramp.
    warmup_s: float
    #: Blocks at the beginning that are warm-up still: they only show whether a trend goes on.
    head: int = 0
    #: See ``SequentialRule``.
    slowest_s: float = 2100.0
    pause_s: float = 60.0
