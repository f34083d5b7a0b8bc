"""Limits in per cent of what an earlier run (the baseline) measured, and the two figures behind such a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class BaselineLimit:
    """A limit in per cent of the same figure of the baseline."""

    direction: Direction
    percent: float
    #: File, and the place in it.
    source: str

    def __str__(self) -> str:
        return f"{self.direction.replace('_', ' ')} {self.percent:g} % of the baseline"


@dataclass(frozen=True, slots=True)
class BaselineReference:
    """The two figures behind a percentage of the baseline: this run's, and the baseline's that is the 100 %."""

    #: Name of the baseline's run folder.
    run: str
    #: Checksum of its ``records.jsonl``.
    sha256: str
    now: Estimate
    then: Estimate
    #: Serial number of the baseline's drive, if it is not the verdict's.
    drive: str = ""

    def __str__(self) -> str:
        """Text that follows the percentage in a sentence."""
        by = f" by its median drive {self.drive}" if self.drive else ""
        return f"the baseline, {self.now} now against {self.then} in run {self.run}{by}"
