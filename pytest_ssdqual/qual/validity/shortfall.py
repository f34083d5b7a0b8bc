"""Evidence about an array that did less than a promise demands: what its members can do, and what was above them.

Of a latency, bare members make percentiles by prediction, and rare slow I/Os by counting. Numbers only; `attribution`
decides from them. A number that is not known is None, never one that would pass as good.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from statistics import fmean, median
from types import MappingProxyType

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import DeviceQueue, ProcessEnvironment, format_list
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.measured.sweep import Ceiling
from pytest_ssdqual.qual.raid import member_curve
from pytest_ssdqual.qual.raid import prediction as prediction_of
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.raid.member_curve import CurvePoint, MemberCurve
from pytest_ssdqual.qual.raid.prediction import PredictedMember, Prediction
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.validity import other_users

#: Deepest quantile that a simulation of 3,000 I/Os finds: 30 of them are beyond it.
DEEPEST = 0.99
#: Fewest slow I/Os, and fewest spells with one, of all bare members together that say how often they come.
FEWEST_IOS, FEWEST_SPELLS = 10, 2

#: Predicts the array with the named drives replaced by median ones.
Replace = Callable[[Collection[str]], Prediction]


@frozen
class MemberEvidence:
    """One member of the array."""

    #: Serial number.
    drive: str
    #: IOPS by its own curve at the array's load, over those of the median member; None without a curve.
    speed: float | None = None
    #: IOPS in the array over those of its curve at the depth that it had there, both as in the prediction: a depth that
    #: varies costs a few per cent. None if either is unknown.
    delivered: float | None = None
    #: Mean outstanding I/Os in the array, and as predicted.
    depth: float | None = None
    predicted_depth: float | None = None
    #: Mean wait of an I/O in the array, nanoseconds.
    wait_ns: float | None = None
    #: IOPS with all drives side by side over those of the drive alone; None if not measured.
    together: float | None = None
    #: What it did in the array; None if the kernel does not count.
    queue: DeviceQueue | None = None


@frozen
class HostEvidence:
    """Host and md during the measurement; shares of 1."""

    #: All CPUs together.
    cpu_busy: float | None = None
    #: The busiest of md's threads, of one CPU.
    md_thread_busy: float | None = None
    #: CPUs that md's workers of RAID 5 and 6 used, over the number of workers of one NUMA node.
    md_workers_busy: float | None = None
    #: CPU time of fio's jobs, of one CPU each.
    jobs_busy: float | None = None
    #: Share of the time in which a task waited for a CPU (PSI, some).
    cpu_pressure: float | None = None
    #: Mean share of md's stripe cache in use; None if the level has none.
    stripe_cache: float | None = None
    #: CPUs that serve the members' interrupts, in the kernel's list format, if they are less than half of all CPUs; and
    #: the share of the time that the busiest of these was busy.
    interrupt_cpus: str = ""
    interrupts_busy: float | None = None
    #: NUMA nodes of the members; empty if unknown.
    numa_nodes: tuple[int, ...] = ()
    #: IOPS that fio can submit without any device.
    fio_iops: float | None = None


@frozen
class LatencyEvidence:
    """A latency above its limit, and what the members' own latencies make of it."""

    measured_ns: float
    limit_ns: float
    #: The same figure of an array of exactly these members; None if it cannot be predicted.
    alone_ns: float | None = None
    #: Of a promise about rare slow I/Os: how often the bare members were slower than the limit, over how often the
    #: array may be; None if it is about others, or if they were not measured for long enough.
    often: float | None = None
    is_rare: bool = False
    #: The same figure of each bare member over that of the median member, by serial number.
    own: Mapping[str, float] = field(default_factory=dict)
    #: ``alone_ns`` or ``often`` if the named drives were like the median of the others.
    replaced: Callable[[Collection[str]], float] | None = None


@frozen
class Shortfall:
    """One measurement that did less than ``needed``."""

    geometry: Geometry
    measured: Estimate
    #: IOPS that the promise demands; None if it is about something that follows from no IOPS.
    needed: float | None
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
    #: I/Os outstanding at all members over the most that the workload can have there; None if that is not known.
    at_drives: float | None = None
    #: None if the promise is not about latency.
    latency: LatencyEvidence | None = None

    @property
    def efficiency(self) -> float | None:
        """Measured over predicted IOPS."""
        return self.measured.value / self.predicted.value if self.predicted else None

    @property
    def delivered(self) -> float | None:
        """What the median member delivered of its own curve; None if not known of all."""
        known = [each.delivered for each in self.members if each.delivered is not None]
        return median(known) if known and len(known) == len(self.members) else None

    @property
    def depth_share(self) -> float | None:
        """I/Os outstanding at all members over those predicted; low if I/Os wait above the drives."""
        known = [(each.depth, each.predicted_depth) for each in self.members if each.depth and each.predicted_depth]
        if not known or len(known) < len(self.members):
            return None
        return sum(depth for depth, _ in known) / sum(predicted for _, predicted in known)


def of_run(
    run: Run,
    measured: Estimate,
    needed: float | None,
    prediction: Prediction | None,
    curves: Sequence[MemberCurve] = (),
    together: Mapping[str, float] = MappingProxyType({}),
) -> Shortfall:
    """Collect the evidence of one measurement.

    ``curves`` are those of the members at the mix of member I/Os, in order; ``together`` has the IOPS of drives side by
    side over those alone, by serial number.
    """
    seen = run.seen
    queues = {drive.name: drive.queue for drive in seen.drives} if seen else {}
    expected = {each.drive: each for each in prediction.members} if prediction else {}
    by_drive = {curve.drive: curve for curve in curves}
    depth = median(each.depth for each in expected.values()) if expected else 0.0
    speeds = prediction_of.speeds(curves, depth) if curves and depth else {}
    present = run.members[: run.geometry.width - run.geometry.missing]
    return Shortfall(
        geometry=run.geometry,
        measured=measured,
        needed=needed,
        predicted=prediction.iops if prediction else None,
        members=tuple(
            MemberEvidence(
                drive,
                speed=speeds.get(drive),
                delivered=_delivered(queues.get(drive), by_drive.get(drive), expected.get(drive)),
                depth=queue.mean_depth if (queue := queues.get(drive)) else None,
                predicted_depth=expected[drive].depth if drive in expected else None,
                wait_ns=queue.wait_ns if queue else None,
                together=together.get(drive),
                queue=queues.get(drive),
            )
            for drive in present
        ),
        host=host(seen) if seen else HostEvidence(),
        foreign=tuple(objection for check in other_users.foreign_io(run) for objection in check.objections)
        if seen
        else (),
        at_drives=_at_drives(run, [queues.get(drive) for drive in present]),
    )


def _at_drives(run: Run, queues: Sequence[DeviceQueue | None]) -> float | None:
    """Share of the possible outstanding I/Os that was at the members; None if that is not known.

    md merges sequential I/Os. Writes of parity arrays have phases of different size (one read, then two writes, in a
    RAID 5 of three), so drives that are the bound have half of the possible ones: 41 % in the lab. A rebuild's own I/Os
    count, too, which can only hide that I/Os wait above the drives.
    """
    known = [queue.mean_depth for queue in queues if queue]
    has_phases = run.geometry.has_parity and run.workload.writes
    if len(known) < len(queues) or not known or not run.workload.is_random or has_phases:
        return None
    return sum(known) / member_curve.outstanding_at_members(run.geometry, run.workload)


def _delivered(queue: DeviceQueue | None, curve: MemberCurve | None, expected: PredictedMember | None) -> float | None:
    if queue is None or curve is None or queue.mean_depth <= 0:
        return None
    as_predicted = expected.iops / curve.iops(expected.depth) if expected and expected.depth > 0 else 1.0
    return queue.iops / curve.iops(queue.mean_depth) / as_predicted


def host(seen: ProcessEnvironment) -> HostEvidence:
    """Return the evidence about the host and md of one fio process."""
    array = seen.array
    serving = frozenset[int]().union(*(drive.placement.cpus for drive in seen.drives if drive.placement))
    uses = seen.cpu.each if seen.cpu else ()
    busy = [use.busy for use in uses if use.number in serving]
    few = busy and 2 * len(busy) < len(uses)
    nodes = {drive.placement.numa_node for drive in seen.drives if drive.placement}
    return HostEvidence(
        cpu_busy=seen.cpu.busy if seen.cpu else None,
        md_thread_busy=array.md_thread_busy if array else None,
        md_workers_busy=array.md_workers_busy / array.md_workers
        if array and array.md_workers and array.md_workers_busy is not None
        else None,
        jobs_busy=seen.jobs_busy,
        cpu_pressure=seen.cpu_pressure,
        stripe_cache=array.stripe_cache.share if array and array.stripe_cache else None,
        interrupt_cpus=format_list(serving) if few else "",
        interrupts_busy=max(busy) if few else None,
        numa_nodes=tuple(sorted(node for node in nodes if node is not None)),
    )


@frozen
class Rate:
    """How often I/Os may be slower than a limit: a share of all I/Os, or a number of spells an hour."""

    promised: float
    is_of_spells: bool

    def at(self, point: CurvePoint, limit_ns: float) -> tuple[int, float]:
        """Return how many I/Os or spells of a bare drive were slower, and the rate of these."""
        if self.is_of_spells:
            slow, of = sum(each > limit_ns for each in point.slowest_ns), len(point.slowest_ns) * point.spell_s / 3600
        else:
            slow, of = point.latency.count_above(limit_ns), float(point.latency.total)
        return slow, slow / of if of else 0.0


def of_quantile(
    evidence: LatencyEvidence, prediction: Prediction, curves: Sequence[MemberCurve], q: float, again: Replace
) -> LatencyEvidence:
    """Return the evidence with the quantile as predicted, at most ``DEEPEST``.

    Not of rate-limited drives: they serve a budget, and the simulated queues in front of them vary far more than real
    ones (2.5 times the p99 latency of even throttled drives).
    """
    own = {
        curve.drive: point.latency.quantile(q).value_ns for curve, point in _points(prediction, curves) if point.latency
    }
    if any(curve.is_rate_limited for curve in curves):
        return replace(evidence, own=_relative(own))
    alone_ns = prediction.quantile_ns(q)
    return replace(
        evidence, alone_ns=alone_ns, own=_relative(own), replaced=lambda drives: again(drives).quantile_ns(q)
    )


def of_mean(
    evidence: LatencyEvidence, prediction: Prediction, curves: Sequence[MemberCurve], is_read: bool, again: Replace
) -> LatencyEvidence:
    """Return the evidence with the mean latency of reads or of writes, as predicted."""

    def mean_ns(found: Prediction) -> float:
        return fmean(found.read_latencies_ns if is_read else found.write_latencies_ns)

    own = {
        curve.drive: 1e9 * point.depth / point.iops.value * fmean(shape)
        for curve, point in _points(prediction, curves)
        if (shape := point.reads if is_read else point.writes)
    }
    return replace(
        evidence, alone_ns=mean_ns(prediction), own=_relative(own), replaced=lambda drives: mean_ns(again(drives))
    )


def of_rare(
    evidence: LatencyEvidence, prediction: Prediction, curves: Sequence[MemberCurve], rate: Rate
) -> LatencyEvidence:
    """Return the evidence with how often bare members were slower than the limit, at the depths of the array.

    Rare slow I/Os of several members hardly coincide, so each delays another I/O of the array: their rates add up.
    """
    counted = {
        curve.drive: rate.at(point, evidence.limit_ns)
        for curve, point in _points(prediction, curves)
    }  # fmt: skip
    slow, fewest = sum(number for number, _ in counted.values()), FEWEST_SPELLS if rate.is_of_spells else FEWEST_IOS
    evidence = replace(evidence, is_rare=True)
    # Of the array's I/Os, those that have one at this member.
    weights = {
        each.drive: 1.0 if rate.is_of_spells else each.iops / prediction.iops.value for each in prediction.members
    }
    own = {drive: weights[drive] * found / rate.promised for drive, (_, found) in counted.items()}
    expected = _seen(curves, prediction, rate)
    if slow < fewest and expected < fewest:
        return evidence

    def replaced(drives: Collection[str]) -> float:
        others = [often for drive, often in own.items() if drive not in drives]
        usual = median(others) if others else 0.0
        return sum(usual if drive in drives else often for drive, often in own.items())

    usual = median(own.values())
    stands_out = {drive: often / usual if usual else float(often > 0) * 1e3 for drive, often in own.items()}
    return replace(evidence, often=sum(own.values()), own=stands_out, replaced=replaced)


def _seen(curves: Sequence[MemberCurve], prediction: Prediction, rate: Rate) -> float:
    """Return how many slow I/Os or spells the bare members would have shown if they were as frequent as promised."""
    points = [point for _, point in _points(prediction, curves)]
    if rate.is_of_spells:
        # The promise is about the array; each member may have its part of it.
        return rate.promised * sum(len(each.slowest_ns) * each.spell_s for each in points) / 3600 / max(1, len(points))
    ios = sum(each.iops for each in prediction.members) / prediction.iops.value
    return rate.promised * sum(each.latency.total for each in points if each.latency) / ios


def _points(prediction: Prediction, curves: Sequence[MemberCurve]) -> list[tuple[MemberCurve, CurvePoint]]:
    """Return each member's curve with its point nearest to the depth that the median member has in the array."""
    depth = max(1.0, median(each.depth for each in prediction.members))
    return [(curve, curve.nearest(depth)) for curve in curves]


def _relative(own: Mapping[str, float]) -> Mapping[str, float]:
    usual = median(own.values()) if own else 0.0
    return {drive: value / usual for drive, value in own.items()} if usual else {}
