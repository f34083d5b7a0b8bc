"""A measurement of an array beside what an array of exactly its members can do."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Self

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.judgeable import Find, Subject
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.stats.estimate import Estimate


@frozen
class PredictedRun:
    """One workload on one array, and the prediction from the curves of its members."""

    measured: Measured
    #: IOPS, by ``raid.prediction``.
    predicted: Estimate
    #: IOPS of one bare drive, the median of the members, under the same workload; None for a mix, which members see as
    #: another one.
    one_drive: Estimate | None = None

    kind: ClassVar[Scope] = Scope.PREDICTED

    @property
    def subject(self) -> Subject:
        return self.measured.subject

    @property
    def drive(self) -> str:
        return self.measured.drive

    @property
    def has_stopping_rule(self) -> bool:
        return self.measured.has_stopping_rule

    def members(self) -> tuple[Self, ...]:
        return (self,)

    def raw_files(self) -> tuple[str, ...]:
        return self.measured.raw_files()

    def counterpart(self, find: Find) -> Self:
        return replace(self, measured=find(self.measured))
