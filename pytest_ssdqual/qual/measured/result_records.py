"""Records of results in the journal: reports show them, and a resumed run rebuilds the results from fio's output."""

from __future__ import annotations

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import RunRecord, RunsRecord, Visited
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.workload.rounds import Rounds
from pytest_ssdqual.qual.workload.workload import Workload

#: The runs of several workloads in a row.
RowOfRuns = tuple[RunRecord, ...]


@frozen
class MeasuredRecord:
    """``measured``, ``member``, ``explored``, ``explored_longer`` and ``confirmed``: one workload on one array."""

    geometry: Geometry
    #: Id of the workload.
    workload: str
    asked: Workload
    protocol: str
    acceptance: bool
    iops: float
    runs: tuple[RunRecord, ...]
    visited: Visited | None

    @property
    def summary(self) -> RunsRecord:
        return RunsRecord(self.iops, self.runs, self.visited)


@frozen
class AloneRecord:
    """``alone``: one drive after another, while the others are idle."""

    geometry: Geometry
    workload: str
    asked: Workload
    drives: tuple[RunsRecord, ...]


@frozen
class CellRecord:
    """``cell`` of a measurement in visits."""

    #: Kind of the measurement.
    of: str
    geometry: Geometry
    workload: str
    asked: Workload
    visit: int
    head: float | None
    written_before: float | None
    run: RunRecord


@frozen
class SaturationRecord:
    """``saturation``: writes from the purged state."""

    geometry: Geometry
    workload: str
    asked: Workload
    protocol: str
    acceptance: bool
    #: Of the array, or of all drives side by side.
    capacity_bytes: int
    rule: SteadyRule
    gate_capacities: float
    run: RunRecord


@frozen
class LoopRecord:
    """``loop``: rounds of workloads until steady, and the stimuli after them."""

    geometry: Geometry
    #: Its name.
    loop: str
    asked: Rounds
    protocol: str
    acceptance: bool
    rule: SteadyRule
    reached: bool
    rounds: tuple[RowOfRuns, ...]
    after: tuple[RowOfRuns, ...]
    #: A sentence for each stimulus that repeats another one.
    recoveries: tuple[str, ...]


@frozen
class RebuildRecord:
    """``rebuild``: of an array under a load."""

    geometry: Geometry
    #: Id of the load.
    workload: str
    asked: Workload
    protocol: str
    acceptance: bool
    seconds: float
    resolution_s: float
    bytes_per_member: int
    rate_bytes_per_s: float
    mismatches: int
    damage: str
    intact: bool
    foreground: RunsRecord
    #: Identities of the replaced members.
    members: tuple[str, ...]
    #: md's limits of speed, by the names of their files.
    limits: dict[str, str]
    raw: str
