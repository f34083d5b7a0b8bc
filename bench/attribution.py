"""Counts how often the attributed cause of a broken promise is the true one, on simulated systems.

    python bench/attribution.py                 # about 25 minutes
    python bench/attribution.py --every 4       # every fourth case, about 6 minutes
    python bench/attribution.py --p99           # promises about the p99 latency

Each case is a system with one culprit (`simulated_system`), a level, a depth and a mix. Its drives are measured first,
side by side and alone, with 1 % noise; the array is predicted from that; then the array is simulated with what is
above it, and its witnesses get 3 % noise. The promise is 95 % of what the same system does without the culprit, 98 or
99 % for small faults, or 110 % of its p99 latency. Where the array keeps it in spite of the culprit, nothing is
attributed. All decisions are those of the package. The last lines count right causes by rule; the confidences of
`RULES` are from there.

The ceilings of md are those of kernel mails: RAID 5 writes of 463,000 IOPS on infinitely fast members, RAID 6 reads of
2 million, two equal arrays of which one does 25 % less on another NUMA node.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from simulated_system import SimulatedRun, SimulatedSystem, Simulation, even_drives

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.sweep import Ceiling
from pytest_ssdqual.qual.raid import member_curve, prediction
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.raid.member_curve import QUANTILES, CurvePoint, MemberCurve
from pytest_ssdqual.qual.raid.prediction import Prediction
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.validity import attribution, latency_attribution
from pytest_ssdqual.qual.validity.attribution import Culprit
from pytest_ssdqual.qual.validity.shortfall import HostEvidence, LatencyEvidence, MemberEvidence, Shortfall, of_quantile
from pytest_ssdqual.qual.workload.workload import Workload

LEVELS = ("raid0x8", "raid1x4", "raid5x8", "raid6x8", "raid10x8", "raid5x4-1failed")
DEPTHS = (1, 8, 32)
MIXES = (("randread", None), ("randwrite", None), ("randrw", 70))
NOISE, WITNESS_NOISE, SPREAD, PROMISE, P99_PROMISE = 0.01, 0.03, 0.01, 0.95, 1.1
IOS = 5000


CALM = HostEvidence(cpu_busy=0.4, jobs_busy=0.3, md_thread_busy=0.2, cpu_pressure=0.02)


@dataclass(frozen=True, slots=True)
class Case:
    """One culprit: what it does to a system whose flawless array does some IOPS, and the accepted answers."""

    name: str
    change: Callable[[SimulatedSystem, float], SimulatedSystem]
    answers: frozenset[Culprit]
    #: The change is there only while the array is measured, not when its drives are.
    later: bool = False
    #: What the host shows: share of all CPUs, of fio's jobs, pressure.
    host: HostEvidence = CALM
    #: Share of what the flawless array does that is promised.
    promise: float = PROMISE
    #: True if the ceiling cannot be measured.
    no_ceiling: bool = False
    #: True if memory devices do not show it: they cause no interrupts, and free a stripe at once.
    hidden: bool = False
    #: Only for levels with parity.
    parity: bool = False
    #: Only for percentiles: IOPS hardly show it.
    tail: bool = False


def _drive(**changes: float) -> Callable[[SimulatedSystem, float], SimulatedSystem]:
    return lambda system, iops: system.with_drive(1, **changes)


def _all_slow(system: SimulatedSystem, iops: float) -> SimulatedSystem:
    drives = tuple(replace(each, slow_reads=1.25, slow_writes=1.25) for each in system.drives)
    return replace(system, drives=drives)


def _two_slow(system: SimulatedSystem, iops: float) -> SimulatedSystem:
    return system.with_drive(0, slow_reads=1.3, slow_writes=1.3).with_drive(2, slow_reads=1.25, slow_writes=1.25)


def _all_stall(system: SimulatedSystem, iops: float) -> SimulatedSystem:
    return replace(system, drives=tuple(replace(each, stalled=0.02, stall_s=3e-3) for each in system.drives))


def _shared_path(system: SimulatedSystem, iops: float) -> SimulatedSystem:
    return replace(system, path_iops=300_000.0, behind=4)


DRIVE, DRIVES = frozenset({Culprit.DRIVE}), frozenset({Culprit.DRIVES})
MD, HOST, PATH = frozenset({Culprit.MD}), frozenset({Culprit.HOST}), frozenset({Culprit.PATH})
MEASUREMENT = frozenset({Culprit.MEASUREMENT})
#: Any answer that accuses no drive.
UNEXPLAINED = frozenset({Culprit.UNEXPLAINED, Culprit.MD, Culprit.HOST})
INTERRUPTS = replace(CALM, interrupt_cpus="0-1", interrupts_busy=0.97)
CACHE = replace(CALM, stripe_cache=0.99)
PRESSED = replace(CALM, cpu_pressure=0.6)
STARVED = HostEvidence(cpu_busy=0.97, jobs_busy=0.5, md_thread_busy=0.3, cpu_pressure=0.8)
FIO_BUSY = HostEvidence(cpu_busy=0.6, jobs_busy=0.97, md_thread_busy=0.2, cpu_pressure=0.05)
HOST_BUSY = HostEvidence(cpu_busy=0.94, jobs_busy=0.4, md_thread_busy=0.5, cpu_pressure=0.2)
CASES = (
    Case("one drive at 93 %", _drive(slow_reads=1.075, slow_writes=1.075), DRIVE, promise=0.99),
    Case("one drive at 70 %", _drive(slow_reads=1.43, slow_writes=1.43), DRIVE),
    Case("one drive slow for reads", _drive(slow_reads=1.4), DRIVE, promise=0.98),
    Case("one drive slow for writes", _drive(slow_writes=1.4), DRIVE, promise=0.98),
    Case("one drive twice as slow from depth 8", _drive(slow_deep=2.0, deep=8), DRIVE),
    Case("two slow drives", _two_slow, DRIVES),
    Case("all drives at 80 %", _all_slow, DRIVES),
    Case("one drive slow only in the array", _drive(slow_reads=1.8, slow_writes=1.8), DRIVE, later=True),
    Case("four drives behind one path", _shared_path, PATH),
    Case("md at 60 %", lambda system, iops: replace(system, md_iops=0.6 * iops), MD),
    Case("md at 60 %, no ceiling", lambda system, iops: replace(system, md_iops=0.6 * iops), MD, no_ceiling=True),
    Case("md at 85 %", lambda system, iops: replace(system, md_iops=0.85 * iops), MD),
    Case("NUMA: 25 % less", lambda system, iops: replace(system, md_iops=0.75 * iops), MD, no_ceiling=True),
    Case("md writes at 463k, reads at 2M", lambda system, iops: replace(system, md_iops=_of_mails(iops)), MD),
    Case("host's CPUs at 60 %", lambda system, iops: replace(system, host_iops=0.6 * iops), HOST, host=HOST_BUSY),
    Case(
        "fio starved by other programs", lambda system, iops: replace(system, fio_iops=0.5 * iops),
        HOST | MEASUREMENT, host=STARVED, no_ceiling=True,
    ),
    Case(
        "fio out of CPU", lambda system, iops: replace(system, fio_iops=0.6 * iops), MEASUREMENT, host=FIO_BUSY,
        no_ceiling=True,
    ),
    Case("another load on one drive", _drive(foreign_iops=250_000.0), MEASUREMENT, later=True),
    Case(
        "interrupts on two busy CPUs", lambda system, iops: replace(system, host_iops=0.6 * iops), HOST,
        host=INTERRUPTS, hidden=True,
    ),
    Case("one drive at 70 %, interrupts on two busy CPUs", _drive(slow_reads=1.43, slow_writes=1.43), DRIVE,
         host=INTERRUPTS, hidden=True),
    Case(
        "full stripe cache", lambda system, iops: replace(system, md_iops=0.6 * iops), MD, host=CACHE, hidden=True,
        parity=True,
    ),
    Case("one drive at 70 % fills the stripe cache", _drive(slow_reads=1.43, slow_writes=1.43), DRIVE, host=CACHE,
         hidden=True, parity=True),
    Case("one drive stalls 3 % of its I/Os", _drive(stalled=0.03, stall_s=3e-3), DRIVE, tail=True),
    Case("all drives stall 2 % of their I/Os", _all_stall, DRIVES, tail=True),
    Case(
        "the host delays 2 % of the I/Os", lambda system, iops: replace(system, delayed=0.02, delay_s=5e-3), HOST,
        host=PRESSED, tail=True,
    ),
    Case(
        "2 % of the I/Os are delayed, and nothing shows it",
        lambda system, iops: replace(system, delayed=0.02, delay_s=5e-3), UNEXPLAINED, tail=True,
    ),
)  # fmt: skip


def _of_mails(iops: float) -> float:
    """Ceilings of kernel mails, where these drives exceed them."""
    return 463_000.0 if iops < 1_000_000 else 2_000_000.0


@dataclass(slots=True)
class Tally:
    right: int = 0
    failed: int = 0
    accused: int = 0
    innocent: int = 0
    acquitted: int = 0
    guilty: int = 0


def noisy(value: float, share: float, draw: random.Random) -> float:
    return value * math.exp(draw.gauss(0, share))


def estimate(value: float) -> Estimate:
    return Estimate(value, value * (1 - 2 * NOISE), value * (1 + 2 * NOISE), 5, Unit.IOPS)


def measure(system: SimulatedSystem, geometry: Geometry, workload: Workload, seed: int) -> SimulatedRun:
    """Simulate one measurement."""
    outstanding = workload.outstanding(1 if geometry.is_side_by_side else geometry.width)
    simulation = Simulation(system, geometry, workload.read_fraction, outstanding, seed)
    ios = max(IOS, 20 * outstanding) * (max(1, geometry.width // 2) if geometry.is_side_by_side else 1)
    return simulation.run(ios)


def shape(latencies: Sequence[float], mean_s: float) -> tuple[float, ...]:
    ordered = sorted(latencies)
    return (
        tuple(ordered[int((index + 0.5) / QUANTILES * len(ordered))] / mean_s for index in range(QUANTILES))
        if ordered
        else ()
    )


def curves(system: SimulatedSystem, geometry: Geometry, workload: Workload, draw: random.Random) -> list[MemberCurve]:
    """Measure all drives side by side, at the member workloads."""
    bare = Geometry(RaidLevel.DRIVE, len(system.drives))
    points: list[list[CurvePoint]] = [[] for _ in system.drives]
    members = member_curve.member_workloads(geometry, workload)
    for each in members:
        run = measure(system, bare, each, draw.randrange(1 << 30))
        for drive, found in enumerate(run.members):
            latencies = found.read_latencies + found.write_latencies
            mean_s = sum(latencies) / len(latencies)
            shapes = shape(found.read_latencies, mean_s), shape(found.write_latencies, mean_s)
            rate = noisy((found.reads + found.writes) / run.seconds, NOISE, draw)
            own = Counter(bucket_of(int(1e9 * latency)).value_ns for latency in latencies)
            point = CurvePoint(each.outstanding(1), estimate(rate), *shapes, LatencyHistogram.from_bins(own))
            points[drive].append(point)
    left = geometry.width - geometry.missing
    mix = members[0].read_fraction
    return [MemberCurve(drive.serial, mix, tuple(found)) for drive, found in zip(system.drives, points, strict=True)][
        :left
    ]


def together(system: SimulatedSystem, draw: random.Random) -> dict[str, float]:
    """Measure each drive alone and all side by side, at depth 32."""
    reference, one = Workload("randread", "4k", 32), Geometry(RaidLevel.DRIVE, 1)
    run = measure(system, Geometry(RaidLevel.DRIVE, len(system.drives)), reference, 5)
    found = {}
    for index, drive in enumerate(system.drives):
        alone = replace(system, drives=(drive,), behind=int(index < system.behind))
        own = measure(alone, one, reference, 7)
        rate = run.members[index].reads / run.seconds
        found[drive.serial] = noisy(rate / own.iops, 1.4 * NOISE, draw)
    return found


def p99_ns(run: SimulatedRun) -> float:
    return 1e9 * sorted(run.latencies)[int(0.99 * len(run.latencies))]


def shortfall(
    case: Case, flawless: SimulatedSystem, geometry: Geometry, workload: Workload, draw: random.Random, *, p99: bool
) -> Shortfall | None:
    """Measure and predict one case; None if the promise holds in spite of the culprit."""
    seed = draw.randrange(1 << 30)
    usual = measure(flawless, geometry, workload, seed)
    broken = case.change(flawless, usual.iops)
    run = measure(broken, geometry, workload, seed)
    measured, needed = estimate(noisy(run.iops, NOISE, draw)), case.promise * usual.iops
    latency = LatencyEvidence(noisy(p99_ns(run), WITNESS_NOISE, draw), P99_PROMISE * p99_ns(usual)) if p99 else None
    if latency.measured_ns <= (1 + WITNESS_NOISE) * latency.limit_ns if latency else measured.high >= needed:
        return None
    bare = replace(flawless if case.later else broken, md_iops=math.inf, host_iops=math.inf, fio_iops=math.inf)
    own = curves(bare, geometry, workload, draw)
    found = prediction.predict(geometry, workload.read_fraction, workload.outstanding(geometry.width), own)
    depth = max(1.0, sorted(each.depth for each in found.members)[len(found.members) // 2])
    speeds = prediction.speeds(own, depth)
    shares = together(bare, draw)
    members = []
    for curve, expected, counted in zip(own, found.members, run.members, strict=False):
        ios, waited_s = counted.reads + counted.writes, counted.read_wait_s + counted.write_wait_s
        mean_depth = noisy(waited_s / run.seconds, WITNESS_NOISE, draw)
        members.append(
            MemberEvidence(
                curve.drive,
                speed=speeds[curve.drive],
                delivered=ios / run.seconds / curve.iops(mean_depth) / (expected.iops / curve.iops(expected.depth)),
                depth=mean_depth,
                predicted_depth=expected.depth,
                wait_ns=noisy(1e9 * waited_s / max(1, ios), WITNESS_NOISE, draw),
                together=shares[curve.drive],
            )
        )
    limit = math.inf if case.hidden else min(broken.md_iops, broken.host_iops)
    ceiling = None
    if not case.no_ceiling:
        reached = limit if math.isfinite(limit) else 20 * usual.iops
        ceiling = Ceiling(geometry, str(workload), "null_blk", noisy(reached, WITNESS_NOISE, draw))
    foreign = ("something else uses a member",) if any(each.foreign for each in run.members) else ()

    def replaced(drives: Collection[str]) -> Prediction:
        chosen = prediction.with_median(own, drives, depth)
        return prediction.predict(geometry, workload.read_fraction, found.outstanding, chosen)

    if latency:
        latency = of_quantile(latency, found, own, 0.99, replaced)
    return Shortfall(
        geometry, measured, None if p99 else needed, found.iops, "", lambda drives: replaced(drives).iops.value,
        tuple(members), case.host, ceiling, foreign, latency=latency,
    )  # fmt: skip


def rule_of(evidence: Shortfall) -> str:
    """Return the name of the rule that decides."""
    rules = latency_attribution.RULES if evidence.latency else attribution.RULES
    return next((rule.__name__ for rule in rules if rule(evidence)), "none")


def changed(before: SimulatedSystem, after: SimulatedSystem) -> Iterator[str]:
    """Yield the serial numbers of the drives that differ."""
    for first, last in zip(before.drives, after.drives, strict=True):
        if first != last:
            yield first.serial


def ratios(found: Shortfall) -> str:
    """Return what the rules compare, to see how close a wrong answer was."""
    asked = found.needed / found.predicted.value if found.needed and found.predicted else math.nan
    return f"[efficiency {found.efficiency or 0:.2f}, needed/predicted {asked:.2f}, depth {found.depth_share or 0:.2f}]"


def cases(repeats: int, *, p99: bool) -> Iterator[tuple[Case, Geometry, Workload, int]]:
    for repeat in range(repeats):
        for case in CASES:
            if case.tail and not p99:
                continue
            for level in LEVELS:
                if case.parity and not Geometry.parse(level).has_parity:
                    continue
                for depth in DEPTHS:
                    for rw, percent in MIXES:
                        yield case, Geometry.parse(level), Workload(rw, "4k", depth, percent), repeat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="take only every N-th system")
    parser.add_argument("--p99", action="store_true", help="promises about the p99 latency")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--wrong", action="store_true", help="print each wrong answer")
    args = parser.parse_args()
    tallies: dict[str, Tally] = {}
    answers: dict[str, Counter[str]] = {}
    rates: dict[tuple[str, Culprit], list[bool]] = {}
    for number, (case, geometry, workload, repeat) in enumerate(cases(args.repeats, p99=args.p99)):
        if args.only not in case.name or number % args.every:
            continue
        draw = random.Random(f"{case.name} {geometry} {workload} {repeat}")  # noqa: S311 (a simulation)
        # Gen 5 drives where md's ceilings are those of the mails: others do not reach them.
        fast = {"dies": 128} if "mails" in case.name else {}
        flawless = SimulatedSystem(even_drives(8, SPREAD, draw.randrange(1 << 30), **fast))
        tally, counted = tallies.setdefault(case.name, Tally()), answers.setdefault(case.name, Counter())
        evidence = shortfall(case, flawless, geometry, workload, draw, p99=args.p99)
        if evidence is None:
            counted["promise kept"] += 1
            continue
        cause = latency_attribution.attribute(evidence) if args.p99 else attribution.attribute(evidence)
        tally.failed += 1
        slow = set(changed(flawless, case.change(flawless, 1e6)))
        is_right = cause.culprit in case.answers and (cause.culprit is not Culprit.DRIVE or set(cause.drives) <= slow)
        tally.right += is_right
        counted[cause.culprit.value] += 1
        of_drives = case.answers <= {Culprit.DRIVE, Culprit.DRIVES}
        rates.setdefault((rule_of(evidence), cause.culprit), []).append(is_right)
        tally.innocent += not of_drives
        tally.accused += cause.culprit.is_drive and (not of_drives or not set(cause.drives) <= slow)
        tally.guilty += of_drives
        tally.acquitted += of_drives and not cause.culprit.is_drive
        if args.wrong and not is_right:
            print(f"{case.name} {geometry} {workload}: {cause} {ratios(evidence)}", flush=True)
    report(tallies, answers)
    for (rule, culprit), found in sorted(rates.items()):
        print(f"{rule:30} {culprit.value:12} right in {sum(found):3} of {len(found):3}")


def report(tallies: dict[str, Tally], answers: dict[str, Counter[str]]) -> None:
    for name, tally in tallies.items():
        share = f"{tally.right / tally.failed:6.1%}" if tally.failed else "     –"
        found = ", ".join(f"{answer} {number}" for answer, number in answers[name].most_common())
        print(f"{name:40} {share} of {tally.failed:3}: {found}")
    failed = sum(each.failed for each in tallies.values())
    right, accused = (sum(getattr(each, name) for each in tallies.values()) for name in ("right", "accused"))
    guilty, acquitted = (sum(getattr(each, name) for each in tallies.values()) for name in ("guilty", "acquitted"))
    print(f"right cause: {right / failed:.1%} of {failed} broken promises (goal 95 %)")
    print(f"drives accused falsely: {accused / failed:.1%} (goal 1 %)")
    print(f"slow drives acquitted: {acquitted / max(1, guilty):.1%} of {guilty} (goal 2 %)")


if __name__ == "__main__":
    main()
