"""Counts wrong screened verdicts on simulated RAID 5 matrices: 96 points of eight drives, predicted and confirmed.

    python bench/screened_matrix.py                  # about 4 minutes
    python bench/screened_matrix.py --held-out       # faults that chose nothing
    python bench/screened_matrix.py --widths 3,8     # fewer widths, for a try

Each system (`simulated_system`) has one fault that the bare drives do not show. Its drives are measured bare, every
point is predicted from them and simulated once; then samples are drawn with many seeds. A promise is a share of what
the flawless system does. All decisions are those of the package, with the values of the shipped protocol. The lines
without "shipped" leave out the extremes of each mix.

A verdict is wrong if a point passes unmeasured that breaks its promise. Where a fault breaks no promise there is
nothing to find, and the columns of wrong verdicts are 0 by construction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from attribution import curves, estimate, measure
from simulated_system import SimulatedSystem, even_drives

from pytest_ssdqual.qual.raid import prediction, screening
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.protocol_rules import ScreenRule
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID

#: Promised shares of what the flawless system does.
SHARES = (0.95, 0.85, 0.75, 0.65)
DRIVES, SPREAD, SEEDS, CONFIDENCE = 8, 0.01, 1000, 0.95

Point = tuple[Geometry, Workload]


@dataclass(frozen=True, slots=True)
class Fault:
    """What arrays suffer and bare drives do not; the argument is the IOPS of the widest array's reads."""

    name: str
    change: Callable[[SimulatedSystem, float], SimulatedSystem]


FAULTS = (
    Fault("none", lambda system, most: system),
    Fault("md at 80 % of the most reads", lambda system, most: replace(system, md_iops=0.8 * most)),
    Fault("md at 50 % of the most reads", lambda system, most: replace(system, md_iops=0.5 * most)),
    Fault("md at 20 % of the most reads", lambda system, most: replace(system, md_iops=0.2 * most)),
    Fault("host at 60 % of the most reads", lambda system, most: replace(system, host_iops=0.6 * most)),
    Fault("drive 8 slow from depth 6 in arrays", lambda system, most: system.with_drive(7, slow_deep=2.0, deep=6)),
    Fault("drive 5 at half speed in arrays", lambda system, most: system.with_drive(4, slow_reads=2, slow_writes=2)),
    Fault("all writes 30 % slower in arrays", lambda system, most: _slow_writes(system)),
)
#: Faults that were fixed before any result of the rule with extremes was known; it was added because of `FAULTS`.
HELD_OUT = (
    Fault("md at 90 % of the most reads", lambda system, most: replace(system, md_iops=0.9 * most)),
    Fault("md at 65 % of the most reads", lambda system, most: replace(system, md_iops=0.65 * most)),
    Fault("fio at 75 % of the most reads", lambda system, most: replace(system, fio_iops=0.75 * most)),
    Fault(
        "path of four drives at 35 % of the most", lambda system, most: replace(system, path_iops=0.35 * most, behind=4)
    ),
    Fault("each I/O delayed by 20 us", lambda system, most: replace(system, delayed=1.0, delay_s=20e-6)),
    Fault("each I/O delayed by 60 us", lambda system, most: replace(system, delayed=1.0, delay_s=60e-6)),
    Fault("2 % of I/Os delayed by 2 ms", lambda system, most: replace(system, delayed=0.02, delay_s=2e-3)),
    Fault(
        "drive 6 stalls in arrays, 1 % by 2 ms", lambda system, most: system.with_drive(5, stalled=0.01, stall_s=2e-3)
    ),
    Fault("drive 8 slow from depth 16 in arrays", lambda system, most: system.with_drive(7, slow_deep=2.0, deep=16)),
    Fault("drive 2 at 80 % in arrays", lambda system, most: system.with_drive(1, slow_reads=1.25, slow_writes=1.25)),
)


def _slow_writes(system: SimulatedSystem) -> SimulatedSystem:
    return replace(system, drives=tuple(replace(each, slow_writes=1.3 * each.slow_writes) for each in system.drives))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run with one seed."""

    measured: int
    #: Points that passed unmeasured although they break their promise.
    wrong: int
    is_accepted: bool


def screen(
    truths: Mapping[Point, float],
    predicted: Mapping[Point, Estimate],
    limits: Mapping[Point, float],
    rule: ScreenRule,
    seed: str,
    *,
    with_extremes: bool,
) -> Outcome:
    """Decide as ``plugin.judging.point_screening`` does."""
    size = screening.sample_size(len(truths), rule.outside_percent, CONFIDENCE)
    drawn = screening.sample({point: f"{point[0]} {point[1]!r}" for point in truths}, size, seed)
    wide = {point: screening.with_tolerance(each, rule.tolerance_percent) for point, each in predicted.items()}
    unsure = [point for point, each in wide.items() if each.low < limits[point]]
    margins = {point: each.value / limits[point] for point, each in predicted.items()}
    wanted = {*drawn, *unsure, *screening.smallest(margins, rule.worst)}
    if with_extremes:
        wanted.update(screening.extremes({point: each.value for point, each in predicted.items()}))
    agree = all(screening.agrees(estimate(truths[point]), predicted[point], rule.tolerance_percent) for point in wanted)
    if not agree:
        return Outcome(len(truths), 0, is_accepted=False)
    wrong = sum(truths[point] < limits[point] for point in truths if point not in wanted)
    return Outcome(len(wanted), wrong, is_accepted=True)


def matrix(system: SimulatedSystem, points: Sequence[Point], seed: int) -> dict[Point, float]:
    """Simulate every point once."""
    return {point: measure(system, *point, seed + number).iops for number, point in enumerate(points)}


def predictions(system: SimulatedSystem, points: Sequence[Point]) -> dict[Point, Estimate]:
    """Predict every point from the bare drives."""
    draw = Random(1)  # noqa: S311 (a simulation)
    return {
        (geometry, workload): prediction.predict(
            geometry, workload.read_fraction, workload.outstanding(geometry.width),
            curves(system, geometry, workload, draw),
        ).iops
        for geometry, workload in points
    }  # fmt: skip


def report(name: str, share: float, found: Sequence[Outcome], broken: int, points: int) -> str:
    with_wrong = fmean(each.wrong > 0 for each in found)
    return (
        f"{name:48} {share:5.0%} {broken:7} {fmean(each.is_accepted for each in found):9.1%} {with_wrong:11.1%} "
        f"{fmean(each.wrong for each in found):8.2f} {fmean(each.measured for each in found):9.0f} of {points}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", default="3,4,5,6,7,8")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--held-out", action="store_true", help="the faults that chose nothing")
    options = parser.parse_args()
    rule = protocol.load("screen").screen or ScreenRule()
    widths = map(int, options.widths.split(","))
    points = [(Geometry(RaidLevel.RAID5, width), workload) for width in widths for workload in INTEL_RAID]
    flawless = SimulatedSystem(even_drives(DRIVES, SPREAD, 3))
    usual, predicted = matrix(flawless, points, 100), predictions(flawless, points)
    errors = [predicted[point].value / usual[point] - 1 for point in points]
    print(f"error of the predictions: {min(errors):+.1%} to {max(errors):+.1%}")
    print(f"{'fault':48} share  broken  accepted  runs wrong   points  measured")
    most = max(usual.values())
    for number, fault in enumerate(HELD_OUT if options.held_out else FAULTS):
        truths = matrix(fault.change(flawless, most), points, 1000 * number + 200)
        for share in SHARES:
            limits = {point: share * each for point, each in usual.items()}
            broken = sum(truths[point] < limits[point] for point in points)
            for with_extremes in (False, True):
                found = [
                    screen(truths, predicted, limits, rule, str(seed), with_extremes=with_extremes)
                    for seed in range(options.seeds)
                ]
                name = f"{fault.name}{', shipped' if with_extremes else ''}"
                print(report(name, share, found, broken, len(points)), flush=True)


if __name__ == "__main__":
    main()
