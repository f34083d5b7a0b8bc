"""A point that was not measured: the prediction of one workload on one array, accepted by the agreement of others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pytest_ssdqual.qual.measured.judgeable import Find, Judgeable, Subject
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.screening import Agreement
from pytest_ssdqual.qual.spec.claims import Claim, Scope
from pytest_ssdqual.qual.stats.estimate import Estimate, NotApplicable
from pytest_ssdqual.qual.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class ScreenedRun:
    """One workload on one array, by prediction; there are no I/Os, no rounds and no files."""

    geometry: Geometry
    workload: Workload
    #: Predicted, with the tolerance of the agreement in its interval.
    predicted: Estimate
    agreement: Agreement

    kind: ClassVar[Scope] = Scope.RUN
    drive: ClassVar[str] = ""
    look: ClassVar[None] = None
    has_stopping_rule: ClassVar[bool] = False

    @property
    def subject(self) -> Subject:
        return Subject((self.geometry,), (self.workload,))

    def members(self) -> tuple[Self, ...]:
        return (self,)

    def raw_files(self) -> tuple[str, ...]:
        return ()

    def counterpart(self, find: Find) -> Self:
        """Raise ``NotApplicable``: a prediction is compared with no other run."""
        raise NotApplicable(f"{self.subject} was not measured, only predicted")


def agreement_of(judged: Judgeable) -> Agreement | None:
    """Return the agreement that stands for points without a measurement; None if all of them were measured."""
    return judged.agreement if isinstance(judged, ScreenedRun | Sweep) else None


def predicted_arrays(judged: Judgeable) -> tuple[Geometry, ...]:
    """Return the arrays that were not measured."""
    if isinstance(judged, ScreenedRun):
        return (judged.geometry,)
    return tuple(sorted(judged.predicted)) if isinstance(judged, Sweep) else ()


#: Claims that follow from predicted IOPS.
OF_IOPS = frozenset({Claim.STEADY_IOPS, Claim.READ_IOPS, Claim.WRITE_IOPS, Claim.THROUGHPUT, Claim.MEAN_LATENCY})


def figure(claim: Claim, geometry: Geometry, workload: Workload, iops: Estimate) -> Estimate:
    """Return the figure of a claim that follows from ``iops``; ``NotApplicable`` if it does not follow.

    The mean latency is that of Little's law: a constant number of I/Os is outstanding.
    """
    if claim is Claim.MEAN_LATENCY:
        outstanding = 1e9 * workload.outstanding(geometry.width)
        if iops.low <= 0:
            raise NotApplicable(f"the prediction for {geometry} {workload} has no lower end")
        value, low, high = (outstanding / each for each in (iops.value, iops.high, iops.low))
        return replace(iops, value=value, low=low, high=high, unit=claim.unit)
    factors = {
        Claim.STEADY_IOPS: 1.0,
        Claim.READ_IOPS: workload.read_fraction,
        Claim.WRITE_IOPS: 1 - workload.read_fraction,
        Claim.THROUGHPUT: workload.block_bytes,
    }
    factor = factors.get(claim)
    if not factor:
        raise NotApplicable(f"{claim.label} of {geometry} {workload} does not follow from IOPS")
    return replace(iops, value=factor * iops.value, low=factor * iops.low, high=factor * iops.high, unit=claim.unit)
