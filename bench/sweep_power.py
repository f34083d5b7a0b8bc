"""Error rates and drive time of sweeps over widths on simulated arrays, by the product's stopping rule.

    python bench/sweep_power.py [--runs 20] [--kinds flat,slowgc] [--deviations 0,5,15] [--precise]

RAID 5 of 8 to 3 drives under random writes, widest first, after two hours of conditioning. The IOPS of each array are
its effective drives times those of a new drive of one kind (``drive_kinds``); all widths above three lack the same
share of them. ``scaling_slope`` has to be at least 0.9 and ``scaling_deviation`` at most 10 %, as by the default sheet.
With ``--precise`` every width is measured to the protocol's precision instead.
"""

from __future__ import annotations

import argparse
import itertools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np
from drive_kinds import KINDS, Series
from interleaved_rounds import CONDITIONED_S
from stopping_rules import cells, reported, run_of
from suite_runs import SETTLED

from pytest_ssdqual.plugin.plan.stopping import Promises
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry, effective_drives
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats import excursions, group_sequential
from pytest_ssdqual.qual.stats.group_sequential import Question
from pytest_ssdqual.qual.stats.shared_evidence import SharedEvidence
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all
from pytest_ssdqual.qual.workload.workload import Workload

WIDTHS = tuple(Geometry.parse(f"raid5x{width}") for width in (8, 7, 6, 5, 4, 3))
WRITES = Workload("randwrite", "4k", 8)
CLAIMS = frozenset((Claim.SCALING_SLOPE, Claim.SCALING_DEVIATION))
#: IOPS of one drive: high enough that counting I/Os adds no noise.
DRIVE_IOPS = 10_000.0
PROTOCOL = protocol.load("sequential")


@dataclass(frozen=True, slots=True)
class SweepEnd:
    """Outcomes of slope and deviation, and the minutes of each width in the order of measurement."""

    outcomes: tuple[Outcome, ...]
    minutes: tuple[float, ...]


@dataclass(slots=True)
class SimulatedSweep:
    """One sweep of arrays of one kind of drive."""

    kind: str
    #: Share of the IOPS that all widths but the narrowest lack.
    lacking: float
    number: int
    known: dict[Geometry, Measured] = field(default_factory=dict)

    def run(self, is_precise: bool) -> SweepEnd:
        """Measure all widths and judge the sweep."""
        promises = Promises(
            spec.load("default"), PROTOCOL, {(each, WRITES): CLAIMS for each in WIDTHS},
            known=lambda geometry, _: self.known.get(geometry),
        )  # fmt: skip
        minutes = [self._measure(each, promises, is_precise) / 60 for each in WIDTHS]
        rule, sweep, outcomes = PROTOCOL.verdict, Sweep(tuple(self.known.values())), list[Outcome]()
        for claim in sorted(CLAIMS):
            limit = promises.spec.limit(claim, WIDTHS[0], WRITES)
            assert limit
            (verdict,) = judge_all(claim, sweep, limit, rule.confidence, rule.indifference_percent)
            outcomes.append(verdict.outcome)
        return SweepEnd(tuple(outcomes), tuple(minutes))

    def _measure(self, geometry: Geometry, promises: Promises, is_precise: bool) -> float:
        looks, rule = PROTOCOL.sequential, PROTOCOL.verdict
        assert looks
        series = self._series(geometry, CONDITIONED_S + int(looks.limit_s) + looks.report_s)
        before = cells(series[:CONDITIONED_S], looks.report_s).tolist()
        shared = SharedEvidence(CONDITIONED_S, excursions.of_series(before, looks.report_s, looks, rule.confidence))
        intervals = reported(cells(series[CONDITIONED_S:], looks.report_s), looks.report_s)
        precise = Question(precision_percent=looks.precision_percent)
        for number, seconds in enumerate(group_sequential.look_times(looks), 1):
            seen = tuple(itertools.takewhile(lambda each: each.end_s <= seconds + 0.5, intervals))  # noqa: B023
            drives = tuple(f"S{index}" for index in range(geometry.width))
            run = replace(run_of(seen, seconds), workload=WRITES, geometry=geometry, members=drives)
            found = group_sequential.at_look(run, number, looks, rule.confidence, shared)
            measured = Measured((found.condensed(),))
            done = group_sequential.decide(measured, precise, looks, rule) if is_precise else promises(measured)
            if done or seconds >= looks.limit_s:
                self.known[geometry] = measured
                return seconds
        raise AssertionError("the last look ends a measurement")

    def _series(self, geometry: Geometry, seconds: int) -> Series:
        rng = np.random.default_rng([zlib.crc32(self.kind.encode()), self.number, geometry.width])
        lacking = self.lacking if geometry != WIDTHS[-1] else 0.0
        return KINDS[self.kind](rng, DRIVE_IOPS * effective_drives(geometry, 0.0) * (1 - lacking), seconds)


def row(kind: str, deviation: float, ends: Sequence[SweepEnd]) -> str:
    """Return a line of the table: outcomes in per cent, and minutes."""
    shares = (
        " / ".join(f"{100 * fmean(each.outcomes[index] is outcome for each in ends):.0f}" for outcome in Outcome)
        for index in range(len(CLAIMS))
    )
    widths = (fmean(each.minutes[index] for each in ends) for index in range(len(WIDTHS)))
    whole = fmean(sum(each.minutes) for each in ends)
    by_width = " ".join(f"{minutes:.0f}" for minutes in widths)
    return f"| {kind} | {deviation:g} % | {' | '.join(shares)} | {whole:.0f} | {by_width} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--kinds", default=",".join(SETTLED))
    parser.add_argument("--deviations", default="0,5,15")
    parser.add_argument("--precise", action="store_true")
    options = parser.parse_args()
    shares = " / ".join(each.name.lower() for each in Outcome)
    names = " | ".join(f"{claim.label}: {shares}" for claim in sorted(CLAIMS))
    print(f"| kind | lacking | {names} | minutes | by width |\n|---|---|---|---|---|---|")
    for kind in options.kinds.split(","):
        for deviation in map(float, options.deviations.split(",")):
            sweeps = (SimulatedSweep(kind, deviation / 100, number) for number in range(options.runs))
            print(row(kind, deviation, [each.run(options.precise) for each in sweeps]), flush=True)


if __name__ == "__main__":
    main()
