"""Rate of false differences of ``ssdqual compare`` between two runs of the same drives, and its power.

    python bench/false_differences.py [--families 400] [--figures 100] [--jobs N] [--out FILE.md]

A family is two runs of the same simulated drives: for each figure two times five rounds or more, whose speed and tail
vary from round to round, in fio's buckets. The runs do not differ, so every difference found is false; at 95 %
family-wise confidence that may happen in one family of twenty. Then the bench makes the second run slower, and reports
the share of such differences that are found. Rounds may be correlated (AR(1)); Student's interval ignores that, and the
table has the cost.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew
from pytest_ssdqual.qual.stats.intervals import Basis
from pytest_ssdqual.qual.stats.throughput import of_rounds
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict import multiplicity, ratio
from pytest_ssdqual.qual.verdict.multiplicity import BONFERRONI, Widening
from pytest_ssdqual.qual.verdict.ratio import ChangeKind

CLAIMS = ("steady_iops", "mean_latency", "p50_latency", "p90_latency", "p99_latency")
QUANTILES = {"p50_latency": 0.5, "p90_latency": 0.9, "p99_latency": 0.99}
ROUND_S = 1.0
#: Range of latencies with buckets.
FASTEST_NS, SLOWEST_NS = 10_000, 10_000_000_000
#: IOPS and latencies of each round.
Seen = tuple[list[float], list[LatencyHistogram]]
FALSE = (ChangeKind.BETTER, ChangeKind.WORSE)


@dataclass(frozen=True, slots=True)
class Setting:
    """Parameters of all figures in a row of the table."""

    rounds: int = 5
    #: Correlation from round to round.
    depends: float = 0.0
    #: The second run's latencies over the first's; its IOPS are as much lower.
    slower: float = 1.0
    #: No variation from round to round, as of the lab's throttled drives.
    throttled: bool = False

    def __str__(self) -> str:
        words = [f"{self.rounds} rounds"]
        words += [f"correlation {self.depends:g}"] if self.depends else []
        words += ["throttled"] if self.throttled else []
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class SimulatedDrive:
    """A drive under one load: a lognormal body, a tail, and variation from round to round."""

    iops: float
    median_ns: float
    #: Of the logarithm of a latency.
    spread: float
    tail_share: float
    tail_times: float
    #: Standard deviations of the logarithms from round to round.
    level: float
    tail: float

    @classmethod
    def draw(cls, rng: np.random.Generator, *, throttled: bool) -> SimulatedDrive:
        def log(low: float, high: float) -> float:
            return float(math.exp(rng.uniform(math.log(low), math.log(high))))

        return cls(
            iops=log(1200, 30_000), median_ns=log(5e4, 1e7), spread=log(0.002 if throttled else 0.02, 0.4),
            tail_share=log(0.004, 0.1), tail_times=log(3, 20), level=0.0 if throttled else log(0.001, 0.1),
            tail=0.0 if throttled else log(0.02, 0.4),
        )  # fmt: skip


@cache
def edges() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return the lower edges of fio's buckets, and the value that fio prints for each."""
    lows, names, low = [], [], FASTEST_NS
    while low < SLOWEST_NS:
        width = bucket_of(low).high_ns - bucket_of(low).low_ns
        lows.append(float(bucket_of(low).low_ns))
        names.append(bucket_of(low).low_ns + width // 2)
        low = bucket_of(low).high_ns
    return np.array(lows), np.array(names)


def run(rng: np.random.Generator, drive: SimulatedDrive, setting: Setting, slower: float) -> Seen:
    """IOPS and latencies of each round."""
    levels, tails = (_noise(rng, setting) * each for each in (drive.level, drive.tail))
    lows, names = edges()
    rates, found = [], []
    for level, tail in zip(levels, tails, strict=True):
        count = round(drive.iops * ROUND_S * math.exp(-level) / slower + rng.uniform(-0.5, 0.5))
        share = min(0.5, drive.tail_share * math.exp(tail))
        scaled = np.log(lows / (drive.median_ns * slower * math.exp(level))) / drive.spread
        body, slow = ndtr(scaled), ndtr((np.log(lows / (drive.median_ns * slower * drive.tail_times))) / 0.5)
        below = (1 - share) * body + share * slow
        counts = rng.multinomial(count, np.clip(np.diff(below, append=1.0), 0, None) / (1 - below[0]))
        used = np.flatnonzero(counts)
        found.append(LatencyHistogram(zip(names[used].tolist(), counts[used].tolist(), strict=True)))
        rates.append(count / ROUND_S)
    return rates, found


def _noise(rng: np.random.Generator, setting: Setting) -> npt.NDArray[np.float64]:
    """Return noise with variance 1 in every round."""
    noise = rng.standard_normal(setting.rounds)
    for index in range(1, setting.rounds):
        noise[index] = setting.depends * noise[index - 1] + math.sqrt(1 - setting.depends**2) * noise[index]
    return noise


def estimate(claim: str, rates: Sequence[float], rounds: Sequence[LatencyHistogram], share: float) -> Estimate:
    """Return the estimate that a run would record, with this share of the error rate."""
    basis = Basis(ConfidenceLevel(share=share))
    if claim == "steady_iops":
        return of_rounds(rates, ROUND_S, Unit.IOPS, basis.confidence_level)
    if claim == "mean_latency":
        return latency.mean_latency(rounds, basis)
    return latency.quantile_of_rounds(rounds, QUANTILES[claim], basis)


class NotedFigures:
    """The figures of a run folder; rarely used ones are computed on demand."""

    def __init__(self, claim: str, seen: Seen) -> None:
        self._again = partial(estimate, claim, *seen)
        self._estimate = self._again(1.0)

    @cached_property
    def _wider(self) -> tuple[Widening, ...]:
        return multiplicity.of(self._again)

    def at(self, share: float) -> Estimate:
        return multiplicity.at(self._estimate, self._wider if share < 1 else (), share)


def family(seed: int, claim: str, setting: Setting, figures: int, number: int) -> tuple[int, int, int]:
    """Compare one family; return the differences found, those significant alone, and the number of figures."""
    rng = np.random.default_rng([seed, number])
    ratios: list[Callable[[float], Estimate]] = []
    while len(ratios) < figures:
        drive = SimulatedDrive.draw(rng, throttled=setting.throttled)
        try:
            old, new = (NotedFigures(claim, run(rng, drive, setting, slower)) for slower in (1.0, setting.slower))
        except TooFew:
            continue
        ratios.append(partial(_ratio, new, old))
    direction = Direction.AT_LEAST if claim == "steady_iops" else Direction.AT_MOST
    shown = [each.shown for each in ratio.changes(ratios, [direction] * figures, BONFERRONI)]
    return sum(each in FALSE for each in shown), sum(each is not ChangeKind.OPEN for each in shown), figures


def _ratio(new: NotedFigures, old: NotedFigures, share: float) -> Estimate:
    return ratio.ratio(new.at(share), old.at(share))


#: Rows of the tables: no difference, and differences in per cent.
SAME = (
    Setting(), Setting(depends=0.3), Setting(depends=0.6), Setting(rounds=10), Setting(rounds=10, depends=0.6),
    Setting(throttled=True),
)  # fmt: skip
SLOWER = (1.02, 1.03, 1.05, 1.1, 1.2)


def table(found: Mapping[tuple[str, Setting], Sequence[tuple[int, int, int]]]) -> str:
    """Return Markdown: the share of families with a false difference, then the share of true differences found."""
    same = dict.fromkeys(setting for _, setting in found if setting.slower == 1)
    lines = [
        "Families in which a figure is falsely called better or worse, per cent (figures that differ alone):",
        "",
        f"| no difference | {' | '.join(CLAIMS)} |",
        f"|{' --- |' * (len(CLAIMS) + 1)}",
    ]
    for setting in same:
        cells = []
        for claim in CLAIMS:
            families = found.get((claim, setting), ())
            wrong = sum(told > 0 for told, _, _ in families)
            alone, all_of_them = sum(each[1] for each in families), sum(each[2] for each in families)
            cells.append(f"{100 * wrong / len(families):.1f} ({100 * alone / all_of_them:.1f})" if families else "")
        lines.append(f"| {setting} | {' | '.join(cells)} |")
    lines += ["", "Figures that are called worse although among so many, per cent:", ""]
    lines += [f"| slower by | {' | '.join(CLAIMS)} |", f"|{' --- |' * (len(CLAIMS) + 1)}"]
    for setting in dict.fromkeys(setting for _, setting in found if setting.slower != 1):
        cells = []
        for claim in CLAIMS:
            families = found.get((claim, setting), ())
            told, all_of_them = sum(each[0] for each in families), sum(each[2] for each in families)
            cells.append(f"{100 * told / all_of_them:.0f}" if families else "")
        lines.append(f"| {100 * (setting.slower - 1):.0f} %, {setting} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--families", type=int, default=400, help="pairs of runs without a difference, of each row")
    parser.add_argument("--figures", type=int, default=100, help="figures of a pair")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    given = parser.parse_args()
    slower = [replace(setting, slower=each) for setting in (Setting(), Setting(rounds=10)) for each in SLOWER]
    found: dict[tuple[str, Setting], Sequence[tuple[int, int, int]]] = {}
    with Pool(given.jobs) as pool:
        for setting, claim in product((*SAME, *slower), CLAIMS):
            count = given.families if setting.slower == 1 else max(1, given.families // 20)
            found[claim, setting] = pool.map(partial(family, given.seed, claim, setting, given.figures), range(count))
    text = table(found)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
