"""Evidence about an array that did less than a promise demands: what its members can do, and what was above them.

Numbers only; `attribution` decides from them. A number that is not known is None, never one that would pass as good.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pytest_ssdqual.qual.measured.ceiling import Ceiling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class MemberEvidence:
    """One member of the array."""

    #: Serial number.
    drive: str
    #: IOPS by its own curve at the array's load, over those of the median member; None without a curve.
    speed: float | None = None
    #: IOPS in the array over those of its curve at the depth that it had there; None if either is unknown.
    delivered: float | None = None
    #: Mean outstanding I/Os in the array, and as predicted.
    depth: float | None = None
    predicted_depth: float | None = None
    #: Mean wait of an I/O in the array, nanoseconds.
    wait_ns: float | None = None
    #: IOPS with all drives side by side over those of the drive alone; None if not measured.
    together: float | None = None


@dataclass(frozen=True, slots=True)
class HostEvidence:
    """Host and md during the measurement; shares of 1."""

    #: All CPUs together.
    cpu_busy: float | None = None
    #: The busiest CPU in the kernel.
    kernel_busy: float | None = None
    #: The busiest of md's threads, of one CPU.
    md_thread_busy: float | None = None
    #: CPU time of fio's jobs, of one CPU each.
    jobs_busy: float | None = None
    #: Share of the time in which a task waited for a CPU (PSI, some).
    cpu_pressure: float | None = None
    #: IOPS that fio can submit without any device.
    fio_iops: float | None = None


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One measurement that did less than ``needed``."""

    geometry: Geometry
    measured: Estimate
    #: IOPS that the promise demands.
    needed: float
    #: IOPS of an array of exactly these members; None with the reason.
    predicted: Estimate | None = None
    why_not: str = ""
    #: Predicted IOPS if the named drives were like the median of the others.
    replaced: Callable[[Collection[str]], float] | None = None
    members: tuple[MemberEvidence, ...] = ()
    host: HostEvidence = HostEvidence()
    ceiling: Ceiling | None = None
    #: Objections about I/O of other programs; empty if there was none.
    foreign: tuple[str, ...] = ()

    @property
    def efficiency(self) -> float | None:
        """Measured over predicted IOPS."""
        return self.measured.value / self.predicted.value if self.predicted else None

    @property
    def depth_share(self) -> float | None:
        """I/Os outstanding at all members over those predicted; low if I/Os wait above the drives."""
        known = [(each.depth, each.predicted_depth) for each in self.members if each.depth and each.predicted_depth]
        if not known or len(known) < len(self.members):
            return None
        return sum(depth for depth, _ in known) / sum(predicted for _, predicted in known)
