"""How drives are conditioned and for how long they are measured."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.units import parse_size

if TYPE_CHECKING:
    from pytest_ssdqual.qual.spec.protocol_schema import CommonDocument, IntegrityTable

FOLDER = "protocols"
#: How often a sequential measurement is tried: once more than needed, should the rig do wrong.
SEQUENTIAL_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class SteadyRule:
    """The SNIA PTS steady-state rule (SSS PTS 2.0.2): over the last ``window`` rounds

    max - min <= ``range_percent`` of the average, and the rise or fall of the least-squares line inside
    the window <= ``slope_percent`` of the average.
    """

    window: int = 5
    range_percent: float = 20.0
    slope_percent: float = 10.0


@dataclass(frozen=True, slots=True)
class ArraySettings:
    """md settings that change performance; all are recorded with every run."""

    chunk: str = "64k"
    bitmap: str = "none"
    stripe_cache_pages: int = 4096
    #: Kernel threads for RAID 5 and 6; 0: one per CPU of the machine.
    group_threads: int = 0
    #: Of RAID 5 and 6.
    raid5_layout: str = "left-symmetric"
    raid10_layout: str = "n2"


@dataclass(frozen=True, slots=True)
class LoopRule:
    """Rounds of many workloads, one after the other (SNIA PTS): each ``cell_s`` long, until steady."""

    cell_s: float = 60.0
    max_rounds: int = 25


@dataclass(frozen=True, slots=True)
class SaturationRule:
    """Writes from the purged state: until this many user capacities are written or ``limit_s`` is over."""

    capacities: float = 4.0
    limit_s: float = 6 * 3600.0
    #: Length of one point of the curve.
    sample_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RebuildRule:
    """A rebuild under load. Rates are md's ``sync_speed_min`` and ``sync_speed_max``; None: the kernel's own."""

    limit_s: float = 24 * 3600.0
    min_bytes_per_s: int | None = None
    max_bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class ExploreRule:
    """A search for a workload that breaks a promise; see ``qual.explore.dimensions``."""

    #: Of the drives' time, search and shrinking together, on each array and for each class of workloads.
    budget_s: float = 4 * 3600.0
    #: Of one workload, without the ramp: its window, or in a sequential protocol its last look. None: the protocol's
    #: own window up to a minute, or twice the first look.
    measurement_s: float | None = None
    #: At most so many different workloads.
    workloads: int = 200
    #: How many suspects may be measured a second time, by the protocol itself, until one is confirmed; beyond the
    #: budget.
    confirmations: int = 3


@dataclass(frozen=True, slots=True)
class IntegrityRule:
    """Lives of an array that its data must survive: how many are searched, and how long."""

    histories: int = 20
    #: Of each history.
    steps: int = 40
    #: Drive time of the search on one array; when something was found, as much again to make its history shorter.
    limit_s: float = 4 * 3600.0
    #: Of the array that are written, pairs of neighbours from its first byte to its last.
    regions: int = 16
    #: What the array uses of each member: a rebuild takes as long as this is large.
    member_bytes: int = 4 << 30
    #: Within which the drives tear no write when the power fails: their ``logical`` or ``physical`` block.
    atomic: str = "logical"
    #: Also cut the power under writes to a RAID 5 or 6 that lacks a member, which by itself does not survive that.
    write_hole: bool = False


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """How sure a verdict has to be."""

    #: Two-sided, of the interval that a promise is judged by.
    confidence: float = 0.95
    #: An interval that lies within this of the limit, on both sides of it, is as good as on the limit: nobody needs
    #: to know which side, and no more time is spent on it.
    indifference_percent: float = 1.0
    #: What is done about many claims being judged in one run: ``none`` or ``bonferroni`` (of failures only).
    family: str = "none"


@dataclass(frozen=True, slots=True)
class SequentialRule:
    """Measure until the verdict is certain: looks at ``first_s``, then each ``growth`` times later, up to ``limit_s``.

    Times count from the end of the ramp.
    """

    first_s: float = 420.0
    growth: float = 1.1
    limit_s: float = 5 * 3600.0
    #: How often fio reports.
    report_s: int = 5
    #: Half width of the interval of IOPS, in percent, at which a figure that no limit decides is known well enough.
    precision_percent: float = 1.0
    #: The slowest that a drive is expected to do anything: within 1.6 times as long every rhythm of garbage collection
    #: has shown itself, and transients with up to twice this time constant are looked for.
    slowest_s: float = 2100.0
    #: How long a plateau, of a cache or of spare blocks, may last: until then figures far from their limit are not
    #: believed.
    plateau_s: float = 2100.0
    #: How long the slowest I/Os and seconds are observed at least, wherever something is judged by them.
    observe_s: float = 2100.0
    #: Work that a drive may lose in one pause for garbage collection that a short stretch has not shown yet, in
    #: seconds of its full speed.
    pause_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way of conditioning and measuring. Times are seconds, passes are whole user areas."""

    name: str
    #: Whether a verdict reached this way may be used to accept or reject a product.
    acceptance: bool
    #: Sequential write passes over the whole user area before anything is measured.
    fill_passes: int
    fill_bs: str
    #: 100 % write before the first workload of a class (random, sequential), in steps of this length…
    precondition_s: float
    #: …until steady, and never longer than this in all.
    precondition_limit_s: float
    #: Head of every measurement that is run but not counted.
    ramp_s: float
    #: What is counted, cut into ``steady.window`` rounds of equal length. Of a sequential protocol its first look;
    #: there only conditioning is judged by it.
    window_s: float
    #: How often each workload is measured; the repeats are judged together.
    repeats: int
    #: How often one measurement may be tried until its window is steady.
    attempts: int
    #: The same where a percentile of ``claim.OF_TAIL`` is asked for; None: ``window_s``.
    tail_window_s: float | None = None
    #: How members are purged before an array is built: ``format`` (NVMe Format where it reaches only the drive
    #: itself, else discard) or ``discard`` (of the whole range).
    purge: str = "format"
    #: User capacities that are written before the array may be found steady (STEC: past the raw capacity).
    precondition_capacities: float = 0.0
    steady: SteadyRule = field(default_factory=SteadyRule)
    array: ArraySettings = field(default_factory=ArraySettings)
    loop: LoopRule = field(default_factory=LoopRule)
    saturation: SaturationRule = field(default_factory=SaturationRule)
    rebuild: RebuildRule = field(default_factory=RebuildRule)
    integrity: IntegrityRule = field(default_factory=IntegrityRule)
    explore: ExploreRule = field(default_factory=ExploreRule)
    verdict: VerdictRule = field(default_factory=VerdictRule)
    #: None: every measurement takes the same time, ``window_s``.
    sequential: SequentialRule | None = None

    @property
    def round_s(self) -> float:
        """Length of one round of the steady-state window."""
        return self.window_s / self.steady.window

    def window_of(self, *, tail: bool) -> float:
        """What is counted of a measurement, in seconds; ``tail``: whether a percentile of its tail is asked for."""
        return self.tail_window_s if tail and self.tail_window_s is not None else self.window_s


class ProtocolError(toml.DocumentError):
    """A protocol that cannot be used."""


def load(path_or_name: str | Path) -> Protocol:
    """Read a protocol: the path of a TOML file, or the name of a shipped one. ``ProtocolError`` with every error."""
    name, content = toml.read(path_or_name, FOLDER, ProtocolError)
    from pytest_ssdqual.qual.spec.protocol_schema import ProtocolDocument, SequentialDocument

    if "sequential" in content:
        read = toml.checked(SequentialDocument, name, content, ProtocolError)
        rule, ramp_s = read.sequential, read.measure.ramp
        looks = SequentialRule(
            first_s=rule.first,
            growth=rule.growth,
            limit_s=rule.limit,
            report_s=int(rule.report),
            precision_percent=rule.precision,
            slowest_s=rule.slowest,
            plateau_s=rule.plateau,
            observe_s=rule.observe,
            pause_s=rule.pause,
        )
        found = _protocol(name, read, (ramp_s, rule.first, 1, SEQUENTIAL_ATTEMPTS), looks)
        return replace(found, tail_window_s=min(rule.limit, max(rule.first, rule.observe)))
    fixed = toml.checked(ProtocolDocument, name, content, ProtocolError)
    times = fixed.measure
    found = _protocol(name, fixed, (times.ramp, times.window, times.repeats, times.attempts), None)
    return replace(found, tail_window_s=times.tail_window)


def _protocol(
    name: str, read: CommonDocument, measure: tuple[float, float, int, int], sequential: SequentialRule | None
) -> Protocol:
    ramp_s, window_s, repeats, attempts = measure
    verdict, explore = read.verdict, read.explore
    return Protocol(
        name=name.removesuffix(".toml"),
        acceptance=read.acceptance,
        fill_passes=read.fill.passes,
        fill_bs=read.fill.bs,
        precondition_s=read.precondition.step,
        precondition_limit_s=read.precondition.limit,
        precondition_capacities=read.precondition.capacities,
        ramp_s=ramp_s,
        window_s=window_s,
        repeats=repeats,
        attempts=attempts,
        purge=read.purge,
        steady=SteadyRule(read.steady.window, read.steady.range_percent, read.steady.slope_percent),
        array=ArraySettings(**read.array.model_dump()),
        loop=LoopRule(read.loop.cell, read.loop.max_rounds),
        saturation=SaturationRule(read.saturation.capacities, read.saturation.limit, read.saturation.sample),
        rebuild=RebuildRule(read.rebuild.limit, read.rebuild.min_rate, read.rebuild.max_rate),
        integrity=_integrity(read.integrity),
        explore=ExploreRule(explore.budget, explore.measurement, explore.workloads, explore.confirmations),
        verdict=VerdictRule(verdict.confidence / 100, verdict.indifference, verdict.family),
        sequential=sequential,
    )


def _integrity(read: IntegrityTable) -> IntegrityRule:
    return IntegrityRule(
        histories=read.histories,
        steps=read.steps,
        limit_s=read.limit,
        regions=read.regions,
        member_bytes=parse_size(read.member),
        atomic=read.atomic,
        write_hole=read.write_hole,
    )


def shipped() -> tuple[str, ...]:
    """Names of the protocols that come with the package."""
    return toml.shipped(FOLDER)
