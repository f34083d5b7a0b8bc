"""Error rates of verdicts on a quantile, p99 at most X, on simulated tails that come in clusters.

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
from itertools import product, repeat
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

import numpy as np
import stopping_rules
from drive_kinds import Series, events
from stopping_rules import Ending, cells

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats.group_sequential import Question
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.verdict import Outcome

#: Share of I/Os that may be slower than the limit.
ALLOWED = 0.01
RATIOS = (0.5, 0.7, 0.85, 1.0, 1.18, 1.4, 2.0)
IOPS = 5000.0
FIXED_S = 600
SECONDS = 4 * 3600
#: What fio would print for I/Os below the limit, and for those above it.
FAST_NS, LIMIT_NS, SLOW_NS = 1_003_520, 10_000_000, 50_069_504
#: Runs that one process does at a time.
CHUNK = 50


@dataclass(frozen=True, slots=True)
class TailLaw:
    """Results of a simulated drive, second by second."""

    slow: Series
    ios: Series


def tail(rng: np.random.Generator, ratio: float, seconds: int) -> TailLaw:
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
    return TailLaw(rng.poisson(IOPS * (background * (1 - busy) + inside * busy)).astype(float), IOPS * ios)


def point(seen: TailLaw) -> Ending:
    """Compare p99 of ten minutes with the limit."""
    share = seen.slow[:FIXED_S].sum() / seen.ios[:FIXED_S].sum()
    return Ending(Outcome.PASS if share <= ALLOWED else Outcome.FAIL, FIXED_S)


def binomial(seen: TailLaw) -> Ending:
    """Judge by the 95 % Clopper-Pearson interval, as if the I/Os of ten minutes were independent."""
    from scipy.stats import binomtest

    slow, ios = round(seen.slow[:FIXED_S].sum()), round(seen.ios[:FIXED_S].sum())
    interval = binomtest(slow, ios).proportion_ci(0.95)
    return Ending(_decided(float(interval.low), float(interval.high)), FIXED_S)


def ours(rule: SequentialRule, verdict: VerdictRule) -> Callable[[TailLaw], Ending]:
    """Return the group-sequential rule: the product's code on simulated fio reports."""
    question = Question({Claim.P99_LATENCY: Limit(Direction.AT_MOST, float(LIMIT_NS), Unit.NANOSECONDS, "bench")})
    step_s = rule.report_s

    def judge(seen: TailLaw) -> Ending:
        slow, ios = (cells(series, step_s) * step_s for series in (seen.slow, seen.ios))
        return stopping_rules.judged(
            [*map(_interval, range(len(ios)), slow, ios, repeat(step_s))], question, rule, verdict
        )

    return judge


def _interval(index: int, slow: float, ios: float, step_s: float) -> Interval:
    slower, total = round(slow), round(ios)
    bins = {FAST_NS: total - slower, SLOW_NS: slower}
    latency = LatencyHistogram.from_bins({ns: count for ns, count in bins.items() if count})
    return Interval(index * step_s, step_s, total, 0, 4096 * total, 0, latency, stopping_rules.NOTHING)


def _decided(low: float, high: float) -> Outcome:
    if high <= ALLOWED:
        return Outcome.PASS
    return Outcome.FAIL if low > ALLOWED else Outcome.INCONCLUSIVE


def simulate(seed: int, ratio: float, runs: range) -> tuple[float, list[tuple[Ending, ...]]]:
    """Simulate drives of one ratio, and apply every rule to each of them."""
    rules = _rules()
    drives = (tail(np.random.default_rng([seed, run]), ratio, SECONDS) for run in runs)
    return ratio, [tuple(rule(seen) for rule in rules.values()) for seen in drives]


def _rules() -> Mapping[str, Callable[[TailLaw], Ending]]:
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
