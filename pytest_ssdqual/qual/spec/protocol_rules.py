"""Rules of a protocol: what decides when drives are steady, how long they are measured, and when a claim is decided.

A rule is also the type of its table in a protocol file, see `protocol`. Times are seconds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.law import NEAR, SYNC_SPEED_MAX, Striping
from pytest_ssdqual.qual.spec.toml import BlockSize, Percent, Percentage, PowerOfTwo, Seconds, Throughput, quoted
from pytest_ssdqual.qual.units import format_size, parse_size

#: Place of md's write-intent bitmap.
Bitmap = Literal["none", "internal"]
#: State of the drives' volatile write caches during a run: as they are, or switched where the drive lets it.
WriteCacheRule = Literal["as found", "on", "off"]
AS_FOUND: WriteCacheRule = "as found"
#: Value of a setting that the program chooses by itself.
AUTO: Literal["auto"] = "auto"
#: Least ``integrity.member``: room for all regions of the widest stripes.
LEAST_MEMBER_BYTES = 16 << 20
#: Shortest cell for acceptance, seconds: its first ten are compared with the rest.
LEAST_CELL_S = 20.0
#: Largest drive that is conditioned within ``precondition.limit``; larger ones have so much longer, if volume is the
#: clock. Six capacities by ``acceptance`` are then 139 MB/s: the slowest shipped sheet of a large drive has 164 MB/s.
LIMITED_BYTES = 4e12
Times = Annotated[int, Field(ge=1, le=1000)]
#: User capacities of a drive.
Capacities = Annotated[float, Field(ge=0, le=100)]
#: Cells of a workload in each visit.
CellCounts = Annotated[tuple[Times, ...], Field(strict=False)]


@frozen
class Fill:
    """Sequential passes over the whole user area after a purge; no pass for writes from the fresh state."""

    passes: Annotated[int, Field(ge=0, le=100)]
    bs: BlockSize


@frozen
class PartialFill(Fill):
    """The same of a share of the range, from its beginning; the rest stays purged, as spare for the drive's own use."""

    region_percent: int


@frozen
class PreconditionRule:
    """Writes before the first workload of a class (random, sequential), in steps, until the drives are steady."""

    step_s: Annotated[Seconds, Field(alias="step", gt=0)]
    #: Never longer than this in all, see ``limit_of``.
    limit_s: Annotated[Seconds, Field(alias="limit", gt=0)]
    #: User capacities to write before the array may be found steady (STEC: past the raw capacity).
    capacities: Capacities = 0.0
    #: User capacities after which conditioning is given up; 0 if only the time limit counts.
    limit_capacities: Capacities = 0.0
    #: Steady means that the last half capacity differs from the half before by at most so many per cent; 0 for the rule
    #: ``steady`` over rounds.
    drift_percent: Annotated[float, Field(ge=0, le=50)] = 0.0
    #: ``drives``: the bare drives are filled and conditioned, side by side and once for each class of workloads, and
    #: arrays are assembled of them. ``arrays``: each array is filled and conditioned through md.
    of: Literal["drives", "arrays"] = "arrays"

    def limit_of(self, size_bytes: float) -> float:
        """Return the most seconds of conditioning a drive, or an array, of this size."""
        return self.limit_s * max(1.0, size_bytes / LIMITED_BYTES) if self.drift_percent else self.limit_s

    def validated(self) -> Self:
        """Raise ``ValueError`` for limits that cannot be kept."""
        if self.limit_s < self.step_s:
            raise ValueError(f"the limit ({self.limit_s:g} s) is shorter than one step ({self.step_s:g} s)")
        if self.drift_percent and self.capacities < 1:
            raise ValueError("drift_percent compares two halves of a capacity, so capacities is 1 at least")
        if 0 < self.limit_capacities < self.capacities:
            raise ValueError(
                f"limit_capacities ({self.limit_capacities:g}) is less than capacities ({self.capacities:g})"
            )
        return self


@frozen
class MeasureRule:
    """Length and number of the measurements of a workload."""

    #: Head of every measurement that is not counted.
    ramp_s: Annotated[Seconds, Field(alias="ramp", ge=0)]
    #: Counted time, cut into ``steady.window`` rounds of equal length. In a protocol with visits, that of a cell.
    window_s: Annotated[Seconds, Field(alias="window", gt=0)]
    #: Measurements of each workload; the repeats are judged together.
    repeats: Times
    #: Attempts of one measurement until its window is steady.
    attempts: Times
    #: Counted time if a percentile of ``claims.OF_TAIL`` is judged; None for ``window_s``.
    tail_window_s: Annotated[Annotated[Seconds, Field(gt=0)] | None, Field(alias="tail_window")] = None

    def validated(self) -> Self:
        """Raise ``ValueError`` for a shorter window of the tail."""
        if self.tail_window_s is not None and self.tail_window_s < self.window_s:
            raise ValueError(f"tail_window ({self.tail_window_s:g} s) is shorter than window ({self.window_s:g} s)")
        return self


@frozen
class SteadyRule:
    """The SNIA PTS steady-state rule (SSS PTS 2.0.2) over the last ``window`` rounds.

    max - min <= ``range_percent`` of the average, and the rise or fall of the least-squares line inside the window <=
    ``slope_percent`` of the average.
    """

    window: Annotated[int, Field(ge=3, le=1000)] = 5
    range_percent: Percent = 20.0
    slope_percent: Percent = 10.0


@frozen
class ArraySettings:
    """md settings that change performance; all are recorded with every run."""

    chunk: PowerOfTwo = "64k"
    bitmap: Bitmap = "none"
    stripe_cache_pages: Annotated[int, Field(ge=17, le=32768)] = 4096
    #: Kernel threads for RAID 5 and 6; 0: one per CPU of the machine.
    group_threads: Annotated[int, Field(ge=0, le=1024)] = 0
    #: Layout of RAID 5 and 6.
    raid5_layout: Literal["left-symmetric", "left-asymmetric", "right-symmetric", "right-asymmetric"] = "left-symmetric"
    #: Only layouts with two copies: capacity, scaling and prediction count two.
    raid10_layout: Annotated[str, Field(pattern="^[nfo]2$")] = NEAR

    @property
    def striping(self) -> Striping:
        return Striping(parse_size(self.chunk), self.raid10_layout)

    def of(self, geometry: Geometry) -> Self:
        """Return the settings with those that the array has instead."""
        tuning = geometry.tuning
        return replace(
            self,
            chunk=format_size(tuning.chunk_bytes) if tuning.chunk_bytes else self.chunk,
            stripe_cache_pages=tuning.stripe_cache_pages or self.stripe_cache_pages,
            group_threads=tuning.group_threads or self.group_threads,
        )


@frozen
class LoadRule:
    """How fio puts I/O on the drives.

    ``auto`` is what a short calibration on a drive finds, so that fio is not the bottleneck; in a protocol that is not
    for acceptance it is libaio and one job.
    """

    engine: Literal["auto", "libaio", "io_uring"] = AUTO
    #: Jobs that share the queue depth of random I/O to one drive.
    jobs: Annotated[Annotated[int, Field(ge=1, le=64)] | Literal["auto"], Field(union_mode="left_to_right")] = AUTO
    #: Run the jobs of a drive on the CPUs of its NUMA node.
    numa: bool = True


@frozen
class MemberRule:
    """Measurements of the bare drives before arrays, from which arrays are predicted; none with a window of 0."""

    #: Counted time of each, cut into the rounds of the steady-state rule.
    window_s: Annotated[Seconds, Field(alias="window", ge=0)] = 30.0
    ramp_s: Annotated[Seconds, Field(alias="ramp", ge=0)] = 5.0


@frozen
class LoopRule:
    """Rounds of many workloads in sequence (SNIA PTS), each ``cell_s`` long, until steady."""

    cell_s: Annotated[Seconds, Field(alias="cell", ge=1)] = 60.0
    max_rounds: Annotated[int, Field(ge=3, le=1000)] = 25


@frozen
class SaturationRule:
    """Writes from the purged state, until this many user capacities are written or ``limit_s`` is over."""

    capacities: Annotated[float, Field(gt=0, le=100)] = 4.0
    limit_s: Annotated[Seconds, Field(alias="limit", gt=0)] = 6 * 3600.0
    #: Length of one point of the curve.
    sample_s: Annotated[Seconds, Field(alias="sample", ge=1)] = 60.0

    def validated(self) -> Self:
        """Raise ``ValueError`` without room for a curve."""
        if self.limit_s < 10 * self.sample_s:
            raise ValueError(
                f"the limit ({self.limit_s:g} s) has room for fewer than 10 samples of {self.sample_s:g} s"
            )
        return self


@frozen
class RebuildRule:
    """A rebuild under load. Rates are md's ``sync_speed_min`` (None: the host's) and ``sync_speed_max``."""

    limit_s: Annotated[Annotated[Seconds, Field(gt=0)] | None, Field(alias="limit")] = None
    min_bytes_per_s: Annotated[Annotated[Throughput, Field(gt=0)] | None, Field(alias="min_rate")] = None
    max_bytes_per_s: Annotated[Annotated[Throughput, Field(gt=0)] | None, Field(alias="max_rate")] = None

    def validated(self) -> Self:
        """Raise ``ValueError`` for rates in the wrong order."""
        least, most = self.min_bytes_per_s, self.max_bytes_per_s
        if least and most and most < least:
            raise ValueError(f"max_rate ({most} B/s) is below min_rate ({least} B/s)")
        return self

    @property
    def most_bytes_per_s(self) -> int:
        """The ``sync_speed_max`` of a rebuild: promises rest on it, so it is never the host's."""
        return self.max_bytes_per_s or max(SYNC_SPEED_MAX, self.min_bytes_per_s or 0)

    def allowed_s(self, shortest_s: float = 0.0) -> float:
        """Return the seconds after which a rebuild is given up that takes ``shortest_s`` at md's speed limit.

        Without a limit of the protocol a day, and for large members twelve times the shortest: at the rate that is
        promised by default, a tenth of md's limit, it takes ten times as long.
        """
        return self.limit_s or max(24 * 3600.0, 12 * shortest_s)


@frozen
class ExploreRule:
    """A search for a workload that breaks a promise; see ``qual.explore.dimensions``."""

    #: Drive time of search and shrinking together, for each array and class of workloads.
    budget_s: Annotated[Seconds, Field(alias="budget", gt=0)] = 4 * 3600.0
    #: Time of one workload without the ramp. None for the protocol's own window, up to a minute.
    measurement_s: Annotated[Annotated[Seconds, Field(ge=1)] | None, Field(alias="measurement")] = None
    #: Most different workloads.
    workloads: Annotated[int, Field(ge=1, le=100_000)] = 200
    #: Most suspects that are measured a second time, by the protocol itself, until one is confirmed; not part of the
    #: budget.
    confirmations: Annotated[int, Field(ge=1, le=100)] = 3


def _member_bytes(text: str) -> int:
    size = parse_size(text)
    if size < LEAST_MEMBER_BYTES or size % (1 << 20):
        raise ValueError(f'"{text}" is not a whole number of MiB, at least {format_size(LEAST_MEMBER_BYTES)}')
    return size


@frozen
class IntegrityRule:
    """Integrity test: number and length of the step sequences that an array's data must survive."""

    histories: Annotated[int, Field(ge=1, le=10_000)] = 20
    #: Steps of each history.
    steps: Times = 40
    #: Drive time of the test on one array; as much again to shrink a failing history.
    limit_s: Annotated[Seconds, Field(alias="limit", gt=0)] = 4 * 3600.0
    #: Regions of the array that are written: pairs of neighbours from its first byte to its last.
    regions: Annotated[int, Field(ge=2, le=64)] = 16
    #: Bytes that the array uses of each member; the time of a rebuild is proportional to it.
    member_bytes: Annotated[int, BeforeValidator(quoted(_member_bytes)), Field(alias="member")] = 4 << 30
    #: Unit that the drives never tear when the power fails: their ``logical`` or ``physical`` block.
    atomic: Literal["logical", "physical"] = "logical"
    #: Power cuts of bare drives, by the site's commands: under flushed writes, FUA and neither in turn.
    power_cuts: Times = 30
    #: Also cut the power during writes to a degraded RAID 5 or 6, which need not survive that (write hole).
    write_hole: bool = False


@frozen
class VerdictRule:
    """Confidence and error control of verdicts."""

    #: Two-sided confidence of the interval that a promise is judged by.
    confidence: Annotated[Percentage, Field(ge=50, lt=100), AfterValidator(lambda percent: percent / 100)] = 0.95
    #: Indifference margin: an interval within it on both sides of the limit counts as on the limit, and no more time is
    #: spent on it.
    indifference_percent: Annotated[Percentage, Field(alias="indifference", le=50)] = 1.0
    #: Correction for many claims in one run: ``none`` or ``bonferroni`` (of failures only).
    family: Literal["none", "bonferroni"] = "none"


@frozen
class VisitRule:
    """All points of a run as one experiment: arrays are visited in rounds, hours apart.

    A visit measures so many cells of each workload that is not decided, in random order. The first
    look is after the second visit, or after the only one; then there is one after each visit. See
    ``stats.visits``.
    """

    #: Cells of each workload in each visit; as many visits as there are numbers.
    cells: Annotated[CellCounts, Field(min_length=1, max_length=100)] = (3, 3, 3, 5, 8, 12)
    #: Counted time of a cell, and the ramp before it.
    cell_s: Annotated[Seconds, Field(alias="cell", ge=2)] = 40.0
    ramp_s: Annotated[Seconds, Field(alias="ramp", ge=0)] = 5.0
    #: Writes to all bare drives before each array is assembled of them.
    refresh_s: Annotated[Seconds, Field(alias="refresh", ge=0)] = 180.0
    #: How far a drive may be from the rate at which it settled before an array is assembled of it.
    refresh_percent: Annotated[float, Field(gt=0, le=50)] = 3.0

    def validated(self) -> Self:
        """Raise ``ValueError`` if no interval could be computed."""
        if sum(self.cells) < 2:
            raise ValueError("cells has one cell in all, and an interval needs two")
        return self

    @property
    def before_first_look(self) -> int:
        """Return the number of visits before the first look."""
        return min(2, len(self.cells))
