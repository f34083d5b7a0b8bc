"""A promise in per cent of what an earlier run measured, and the two figures behind such a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class BaselineLimit:
    """A limit in per cent of the same figure of the baseline."""

    direction: Direction
    percent: float
    #: File and place in it.
    source: str

    def __str__(self) -> str:
        return f"{self.direction.replace('_', ' ')} {self.percent:g} % of the baseline"


@dataclass(frozen=True, slots=True)
class BaselineReference:
    """What a figure in per cent was made of: the one of now, and the one of the baseline that is its 100 %."""

    #: Name of the baseline's run folder.
    run: str
    #: Of its ``records.jsonl``.
    sha256: str
    now: Estimate
    then: Estimate
    #: Serial number, when the baseline's is another drive than the verdict's.
    drive: str = ""

    def __str__(self) -> str:
        """As sentences have it behind the percentage."""
        by = f" by its median drive {self.drive}" if self.drive else ""
        return f"the baseline, {self.now} now against {self.then} in run {self.run}{by}"
