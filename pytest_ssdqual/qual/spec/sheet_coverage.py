"""The kinds of figures that SSD data sheets usually publish of one drive, and which of them a sheet lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.claims import OF_LATENCY, Claim
from pytest_ssdqual.qual.spec.datasheet import ONE_DRIVE, DataSheetValue


@frozen
class FigureKind:
    """A kind of figure of one drive: an access pattern, and the claims of which any is a figure of this kind."""

    #: ``randread``, ``randwrite``, ``randrw``, ``read`` or ``write``.
    rw: str
    claims: frozenset[Claim]
    #: In a sentence: ``IOPS of random reads``.
    label: str

    @property
    def name(self) -> str:
        """Name in test ids: ``randread_iops``."""
        return f"{self.rw}_{'latency' if self.claims == OF_LATENCY else self.claim.removeprefix('steady_')}"

    @property
    def claim(self) -> Claim:
        """A claim of this kind."""
        return min(self.claims)

    def covers(self, figure: DataSheetValue) -> bool:
        """Return whether ``figure`` is of this kind, at any transfer size and queue depth."""
        pattern = re.compile(rf"{self.rw}\d*_")
        return (
            ONE_DRIVE in figure.arrays
            and not self.claims.isdisjoint(figure.quantities)
            and any(pattern.match(workload) for workload in figure.workloads)
        )


#: In the order of a data sheet.
USUAL_FIGURES = (
    FigureKind("read", frozenset({Claim.THROUGHPUT}), "throughput of sequential reads"),
    FigureKind("write", frozenset({Claim.THROUGHPUT}), "throughput of sequential writes"),
    FigureKind("randread", frozenset({Claim.STEADY_IOPS}), "IOPS of random reads"),
    FigureKind("randwrite", frozenset({Claim.STEADY_IOPS}), "IOPS of random writes"),
    FigureKind("randrw", frozenset({Claim.STEADY_IOPS}), "IOPS of a random mix"),
    FigureKind("randread", OF_LATENCY, "latency of random reads"),
    FigureKind("randwrite", OF_LATENCY, "latency of random writes"),
)


def missing(figures: Iterable[DataSheetValue]) -> tuple[FigureKind, ...]:
    """Return the usual kinds of which no figure is published for one drive."""
    known = tuple(figures)
    return tuple(kind for kind in USUAL_FIGURES if not any(map(kind.covers, known)))
