"""Progress of a measurement in rounds: its runs are cells, one of each round, between the cells of other workloads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interleaved:
    """What its confidence intervals need to know besides its cells."""

    #: Rounds until now, each with one cell, and the most that are planned.
    rounds: int
    of: int
    #: Workloads whose scatter is pooled.
    workloads: int
    #: Two-sided confidence of intervals now, so that all planned looks together hold at the protocol's.
    level: float
    #: Standard deviation of the IOPS of a cell, as a share of its workload's mean, pooled over all workloads.
    scatter: float
    #: Degrees of freedom that it is worth beside those of the workload's own cells: the more, the more alike workloads
    #: vary.
    scatter_degrees: float
    #: Change of the IOPS of all workloads from the mean of the rounds to the last one, as a share; 0 unless it is sure.
    drift: float
    #: Time from the beginning of the first round to the end of the last one, seconds.
    span_s: float
    #: Time under load of the same class before the first round, seconds.
    loaded_s: float = 0.0
    #: The same as ``level``, for claims about the slowest I/Os and seconds, which earlier looks do not decide.
    extremes_level: float | None = None

    @property
    def is_last(self) -> bool:
        """Return whether no further round is planned."""
        return self.rounds >= self.of
