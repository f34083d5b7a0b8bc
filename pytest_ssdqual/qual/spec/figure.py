"""What is published of a product: quantities of one drive, or of an array of them, under a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pytest_ssdqual.qual.raid.geometry import Geometry, Level
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.units import Unit, format_value
from pytest_ssdqual.qual.workload.workload import Workload

#: An array of one, and each of several side by side.
ONE_DRIVE = Geometry(Level.DRIVE, 1)


@dataclass(frozen=True, slots=True)
class Published:
    """One published quantity; ``str()`` is ``75,000 IOPS`` or ``about 110,000 IOPS``."""

    #: In base units.
    value: float
    unit: Unit
    #: Where it is published.
    source: str
    #: The source says "about", "close to" or less, or can be read in two ways.
    approximate: bool = False

    def __str__(self) -> str:
        return f"{'about ' if self.approximate else ''}{format_value(self.value, self.unit)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One ``[[figure]]``: what is published for each of these arrays under each of these workloads."""

    arrays: tuple[Geometry, ...]
    #: Ids. Not workloads: what a profile consists of is not in its id.
    workloads: tuple[str, ...]
    #: In base units.
    quantities: tuple[tuple[Claim, float], ...]
    source: str
    approximate: bool = False

    def of(self, claim: Claim, array: Geometry, workload: str) -> Published | None:
        """The quantity behind ``claim``, if this figure has it for exactly this array and workload."""
        if array not in self.arrays or workload not in self.workloads:
            return None
        found = dict(self.quantities).get(claim)
        return None if found is None else Published(found, claim.unit, self.source, self.approximate)

    def places(self) -> Iterator[tuple[Geometry, str, Claim]]:
        """Everything that it says something about."""
        for array in self.arrays:
            for workload in self.workloads:
                for claim, _ in self.quantities:
                    yield array, workload, claim


def find(figures: Iterable[Figure], claim: Claim, geometry: Geometry, workload: Workload) -> Published | None:
    """What is published of exactly this array and workload; no figure is of arrays with members missing.

    Drives side by side are each one drive. There, ``randread_4k_t4xqd8`` is also found as ``randread_4k_qd32``: all
    that a drive knows of its load is how many I/Os are waiting.
    """
    array = ONE_DRIVE if geometry.is_side_by_side else geometry
    names = [str(workload)]
    if array == ONE_DRIVE and not workload.has_streams:
        names.append(str(_of_one_job(workload)))
    found = (each.of(claim, array, name) for name in names for each in figures)
    return next((each for each in found if each is not None), None)


def repeated(figures: Iterable[Figure]) -> list[str]:
    """A sentence for each quantity that is published twice, with the place in the file: which of them would count?"""
    first: dict[tuple[Geometry, str, Claim], int] = {}
    errors = []
    for index, figure in enumerate(figures):
        for place in figure.places():
            array, workload, claim = place
            if first.setdefault(place, index) != index:
                earlier = f"figure[{first[place]}]"
                errors.append(f"figure[{index}]: {earlier} already has the {claim.label} of {array} {workload}")
    return errors


def _of_one_job(workload: Workload) -> Workload:
    depth = round(workload.depth_per_member(1))
    return replace(workload, qd_per_drive=depth, threads=None, streams_per_drive=1)
