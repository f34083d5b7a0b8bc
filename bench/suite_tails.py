"""Slow I/Os in a whole suite by the protocol ``acceptance``: stalls of one drive, and p99, on simulated drives.

    python bench/suite_tails.py [--runs 20] [--models sata] [--protocol FILE] [--out FILE.md]

``suites/raid5`` of eight drives with the figures of real ones, 10 % above the limits of all IOPS. Judged
besides are the spread of the maximum latency over time (at most 10 times the usual one, ten times an
hour) on the narrowest and the widest array at QD 8, and p99 at QD 8 on all. Every drive's slowest I/O of
ten seconds is Pareto-distributed; an array's is that of its members. More stalls are those of one drive:
of the first, which every array has, or of the last, which only the widest has. Slow I/Os come in
clusters of a second or two, a minute apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from drive_kinds import REAL
from simulated_suite import DRIVES, MODELS, WIDTHS, Drawn, Suite, default_matrix
from visited_points import Experiment

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.interval import Spell
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.stats.visits import Point
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import Outcome

P99 = Limit(Direction.AT_MOST, 10e6, Unit.NANOSECONDS, "bench")
SPREAD = Limit(Direction.AT_MOST, 10.0, Unit.RATIO, "bench", 10.0)
#: Latency of usual I/Os, of slow ones, the least maximum of a drive in ten seconds, and a stall: ns.
FAST_NS, SLOW_NS, USUAL_NS, STALL_NS = 1_000_000, 20_000_000, 3_000_000, 200_000_000
SPELL_S, MARGIN = 10.0, 0.1


@dataclass(frozen=True, slots=True)
class Tail:
    """How slow the drives of a run are."""

    name: str
    #: Shape of Pareto's law of a drive's maxima of ten seconds; real ones have 25 (10…128).
    shape: float = 25.0
    #: Stalls of one drive in an hour under load, and its number.
    stalls: float = 0.0
    drive: int = 0
    #: Share of I/Os beyond the limit of p99, and the same from an hour after the first cell on.
    slow: float = 0.0025
    later: float | None = None
    #: Whether all claims are promised, and which are not kept.
    broken: frozenset[Claim] = frozenset()

    def spells(self, point: Point, rng: np.random.Generator, seconds: float, written: float) -> tuple[Spell, ...]:
        """Return the spells of a cell."""
        width, count = point[0].width, round(seconds / SPELL_S)
        maxima = USUAL_NS * (1 - rng.random((count, width))) ** (-1 / self.shape)
        maxima = maxima.max(axis=1)
        if self.drive < width:
            stalled = rng.random(count) < -np.expm1(-self.stalls * SPELL_S / 3600)
            maxima = np.where(stalled, np.maximum(maxima, STALL_NS), maxima)
        return tuple(
            Spell.of(5.0 + number * SPELL_S, SPELL_S, round(written / count), _middle(each))
            for number, each in enumerate(maxima.tolist())
        )

    def latency(
        self, at_s: float, seconds: float, ios: int, rng: np.random.Generator, slowest_ns: int
    ) -> LatencyHistogram:
        """Return the latencies of a cell, whose slow I/Os are in a cluster every 45 s."""
        clusters = seconds / 45
        share = self.slow if self.later is None or at_s < 3600 else self.later
        slow = min(ios // 2, round(share * ios * rng.gamma(clusters, 1 / clusters)))
        bins = {_middle(FAST_NS): ios - slow - 1, _middle(SLOW_NS): slow}
        bins[slowest_ns] = bins.get(slowest_ns, 0) + 1
        return LatencyHistogram.from_bins({each: count for each, count in bins.items() if count})


def _middle(latency_ns: float) -> int:
    bucket = bucket_of(int(latency_ns))
    return (bucket.low_ns + bucket.high_ns) // 2


SPREAD_BROKEN, P99_BROKEN = frozenset({Claim.LATENCY_SPREAD_OVER_TIME}), frozenset({Claim.P99_LATENCY})
TAILS = (
    Tail("faultless, as real drives"),
    Tail("faultless, Pareto 4", shape=4.0),
    Tail("faultless, one stall an hour of one drive", stalls=1.0),
    Tail("20 stalls an hour of a drive of every array", stalls=20.0, broken=SPREAD_BROKEN),
    Tail("20 stalls an hour of a drive of the widest only", stalls=20.0, drive=DRIVES - 1, broken=SPREAD_BROKEN),
    Tail("60 stalls an hour of a drive of the widest only", stalls=60.0, drive=DRIVES - 1, broken=SPREAD_BROKEN),
    Tail("slow I/Os 0.5 %", slow=0.005),
    Tail("slow I/Os 1.4 %", slow=0.014, broken=P99_BROKEN),
    Tail("slow I/Os 0.25 %, 2 % after an hour", later=0.02, broken=P99_BROKEN),
)


def limits(point: Point) -> Mapping[Claim, Limit]:
    """Return the limits of slow I/Os: at QD 8, the spread at both ends of the sweep."""
    geometry, workload = point
    if workload.qd_per_drive != 8:
        return {}
    is_end = geometry.width in (WIDTHS[0], WIDTHS[-1])
    return {Claim.P99_LATENCY: P99} | ({Claim.LATENCY_SPREAD_OVER_TIME: SPREAD} if is_end else {})


@dataclass(frozen=True, slots=True)
class Ran:
    """One simulated run."""

    hours: float
    outcomes: Mapping[Claim, Sequence[Outcome]]


def run(suite: Suite, tail: Tail, number: int) -> Ran:
    """Simulate one run on drives with the figures of real ones."""
    rng = np.random.default_rng(number)
    drawn = Drawn.of(suite, tuple(REAL)[number % 2], rng, in_lockstep=False)
    rule = suite.protocol.visits
    assert rule

    def rates(point: Point, at_s: float) -> list[float]:
        return [(1 + MARGIN) * each for each in drawn.arrays.cell(point, at_s, rule.ramp_s, rule.cell_s)]

    def tails(point: Point, at_s: float, ios: int) -> tuple[LatencyHistogram, tuple[Spell, ...]]:
        spells = tail.spells(point, rng, rule.cell_s, 4096.0 * ios)
        return tail.latency(at_s, rule.cell_s, ios, rng, max(each.max_ns for each in spells)), spells

    experiment = Experiment(suite.points, suite.protocol, rates, rng, limits=limits, tails=tails)
    experiment.run()
    found: dict[Claim, list[Outcome]] = {}
    for point in suite.points:
        for claim in limits(point):
            found.setdefault(claim, []).append(experiment.outcome(point, claim))
    return Ran((drawn.before_s + experiment.now_s) / 3600, found)


def lines(suite: Suite, runs: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| drives | hours | spread: passed / failed, % | p99: passed / failed, % | runs with a failure, all pass, % |"
    yield "|---|---|---|---|---|"
    for tail in TAILS:
        found = [run(suite, tail, number) for number in range(runs)]
        hours = [each.hours for each in found]
        claims = " | ".join(_of(found, claim) for claim in (Claim.LATENCY_SPREAD_OVER_TIME, Claim.P99_LATENCY))
        every = [[one for outcomes in each.outcomes.values() for one in outcomes] for each in found]
        failed = 100 * fmean(Outcome.FAIL in each for each in every)
        green = 100 * fmean(set(each) == {Outcome.PASS} for each in every)
        yield f"| {tail.name} | {fmean(hours):.1f} ({max(hours):.1f}) | {claims} | {failed:.0f}, {green:.0f} |"


def _of(found: Sequence[Ran], claim: Claim) -> str:
    outcomes = [one for each in found for one in each.outcomes[claim]]
    passed, failed = (100 * outcomes.count(each) / len(outcomes) for each in (Outcome.PASS, Outcome.FAIL))
    return f"{passed:.1f} / {failed:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", default="sata", help=f"of {', '.join(MODELS)} (%(default)s)")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--protocol", default="acceptance", help="name or file of one with visits (%(default)s)")
    parser.add_argument("--out", type=Path, help="Markdown file, besides standard output")
    given = parser.parse_args()
    text = ""
    for model in given.models.split(","):
        suite = Suite("raid5", default_matrix(), MODELS[model], protocol.load(given.protocol))
        text += "\n".join((f"### {suite.model.name}", "", *lines(suite, given.runs), ""))
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
