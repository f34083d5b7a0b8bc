"""Record of a workload search: its probes, and the results of its suspects."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ssdqual.qual.explore.search import ProbedFigures
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry


@frozen
class ProbeRecord:
    """One probe."""

    #: Id of the workload.
    workload: str
    look: ProbedFigures
    seconds: float
    #: The worst verdict as a sentence; empty if nothing was judged.
    verdict: str
    trouble: tuple[str, ...]
    #: Promises that a short probe cannot judge.
    unseen: tuple[str, ...]


@frozen
class SuspectRecord:
    """A workload whose probe looked broken, and its second measurement."""

    workload: str
    claim: str
    #: Serial number; empty for an array.
    drive: str
    is_simplest: bool
    confirmed: bool
    cleared: bool
    verdict: str
    #: Name in the run folder; empty without one.
    job_file: str


@frozen
class SearchRecord:
    """``searched``: a search that has ended."""

    geometry: Geometry
    #: Id of the workload that it began with.
    plain: str
    #: Names of the dimensions and their values.
    space: Mapping[str, tuple[object, ...]]
    seed: str
    #: Ids of earlier findings.
    began_with: tuple[str, ...]
    seconds: float
    budget_s: float
    confirming_s: float
    probed: tuple[ProbeRecord, ...]
    suspects: tuple[SuspectRecord, ...]
    sentence: str
