"""How often a promise of a quantile, p99 at most X, is judged wrongly: on simulated tails that come in clusters.

    python bench/quantile_power.py [--runs 400] [--ratios 0.5,0.7,…] [--jobs N] [--out FILE.md]

p99 is at most X exactly when at most 1 % of the I/Os are slower than X. A drive is known by its true share of them,
in units of that 1 %: below 1 the promise is kept. Slow I/Os come in collections of garbage, so that millions of I/Os
share a dozen events: an interval from the number of I/Os is far too narrow, one from blocks of time is not.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

import numpy as np
from drive_kinds import Series, events
from stopping_rules import Ending, cells

from pytest_ssdqual.qual.protocol import SequentialRule, VerdictRule
from pytest_ssdqual.qual.verdict import Outcome

#: Share of I/Os that may be slower than the limit.
ALLOWED = 0.01
RATIOS = (0.5, 0.7, 0.85, 1.0, 1.18, 1.4, 2.0)
IOPS = 5000.0
FIXED_S = 600
SECONDS = 4 * 3600
#: Runs that one process does at a time.
CHUNK = 50


@dataclass(frozen=True, slots=True)
class Tail:
    """What a drive did, second by second."""

    slow: Series
    ios: Series


def tail(rng: np.random.Generator, ratio: float, seconds: int) -> Tail:
    """Collections of garbage every 30…80 s, of very different lengths, in which I/Os are slow and fewer.

    Of the other I/Os a tenth of the allowed share is slow, too. Exactly ``ratio`` × 1 % in the long run.
    """
    period_s, length_s, depth = rng.uniform(30, 80), rng.uniform(3, 6), rng.uniform(0.1, 0.4)
    # Gamma: coefficient of variation 0.5.
    busy = events(
        rng,
        seconds,
        lambda count: (period_s - length_s) * rng.uniform(0.6, 1.4, count),
        lambda count: length_s / 4 * rng.gamma(4, size=count),
        period_s,
    )
    share = length_s / period_s
    ios = 1 - depth * busy
    background = 0.1 * ALLOWED * ratio
    inside = (ratio * ALLOWED * (1 - depth * share) - background * (1 - share)) / share
    return Tail(rng.poisson(IOPS * (background * (1 - busy) + inside * busy)).astype(float), IOPS * ios)


def point(seen: Tail) -> Ending:
    """p99 of ten minutes, held against the limit."""
    share = seen.slow[:FIXED_S].sum() / seen.ios[:FIXED_S].sum()
    return Ending(Outcome.PASS if share <= ALLOWED else Outcome.FAIL, FIXED_S)


def binomial(seen: Tail) -> Ending:
    """The interval of Clopper and Pearson, 95 %, as if the I/Os of ten minutes were independent of each other."""
    from scipy.stats import binomtest

    slow, ios = round(seen.slow[:FIXED_S].sum()), round(seen.ios[:FIXED_S].sum())
    interval = binomtest(slow, ios).proportion_ci(0.95)
    return Ending(_decided(float(interval.low), float(interval.high)), FIXED_S)


def ours(rule: SequentialRule, verdict: VerdictRule) -> Callable[[Tail], Ending]:
    """Slow I/Os by I/Os of blocks of time, at the looks of our sequential rule; the tail is settled from the start."""
    from pytest_ssdqual.qual import blocks, sequential
    from pytest_ssdqual.qual.look import Look

    times = sequential.look_times(rule)
    look = Look(1, len(times), sequential.level(rule, verdict.confidence), 0.0, 0, rule.slowest_s, rule.pause_s)
    near = ALLOWED * verdict.indifference_percent / 100

    def judge(seen: Tail) -> Ending:
        for look_s in times:
            length = int(look_s) // blocks.COUNT
            upto = length * blocks.COUNT
            slow, ios = (cells(series[:upto], length).tolist() for series in (seen.slow, seen.ios))
            found = blocks.bounds(slow, ios, float(upto), look)
            outcome = _decided(found.low, found.high)
            if outcome is not Outcome.INCONCLUSIVE or max(found.high - ALLOWED, ALLOWED - found.low) <= near:
                return Ending(outcome, look_s)
        return Ending(Outcome.INCONCLUSIVE, times[-1])

    return judge


def _decided(low: float, high: float) -> Outcome:
    if high <= ALLOWED:
        return Outcome.PASS
    return Outcome.FAIL if low > ALLOWED else Outcome.INCONCLUSIVE


def simulate(seed: int, ratio: float, runs: range) -> tuple[float, list[tuple[Ending, ...]]]:
    """Some drives of one ratio, every rule on each of them."""
    rules = _rules()
    drives = (tail(np.random.default_rng([seed, run]), ratio, SECONDS) for run in runs)
    return ratio, [tuple(rule(seen) for rule in rules.values()) for seen in drives]


def _rules() -> Mapping[str, Callable[[Tail], Ending]]:
    sequential = ours(SequentialRule(), VerdictRule())
    return {"10 min, p99 compared": point, "10 min, binomial interval": binomial, "sequential (ours)": sequential}


def table(found: Mapping[float, list[tuple[Ending, ...]]]) -> str:
    """Markdown: pass / fail / inconclusive per cent and mean minutes of every rule, by the true share."""
    names = tuple(_rules())
    lines = [
        f"Per cent of {min(map(len, found.values())):,} runs: pass / fail / inconclusive, mean minutes.",
        "",
        f"| true share slower than X, in units of {100 * ALLOWED:g} % | {' | '.join(names)} |",
        f"|{' --- |' * (len(names) + 1)}",
    ]
    for ratio, drives in found.items():
        fields = []
        for endings in zip(*drives, strict=True):
            shares = (100 * sum(each.outcome is outcome for each in endings) / len(endings) for outcome in Outcome)
            minutes = fmean(each.seconds for each in endings) / 60
            fields.append(f"{' / '.join(f'{share:.1f}' for share in shares)}, {minutes:.0f}′")
        lines.append(f"| {ratio:.2f} | {' | '.join(fields)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=400, help="simulated drives of each true share")
    parser.add_argument(
        "--ratios", default=",".join(map(str, RATIOS)), help="true shares in units of 1 %% (%(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    ratios = tuple(map(float, given.ratios.split(",")))
    tasks = product(ratios, (range(first, min(first + CHUNK, given.runs)) for first in range(0, given.runs, CHUNK)))
    found: dict[float, list[tuple[Ending, ...]]] = {ratio: [] for ratio in ratios}
    with Pool(given.jobs) as pool:
        for ratio, endings in pool.starmap(partial(simulate, given.seed), tasks):
            found[ratio].extend(endings)
    text = table(found)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
