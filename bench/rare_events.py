"""Error rates of verdicts on the slowest I/Os, and the stalls that they detect, on simulated arrays.

    python bench/rare_events.py [--runs 400] [--jobs N] [--out FILE.md]

A faultless array has stalls that come at random, a few a minute, whose lengths have a heavy tail (Pareto). Its return
levels are known in closed form, so it is known to keep the default promises. A bad one has long stalls besides, so many
an hour, at random or in bursts. Each is judged by the code that judges drives, at the looks of the protocol
``sequential``, among 180 claims.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean

import numpy as np
import stopping_rules
from stopping_rules import Ending, run_of

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram, bucket_of
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.measured.sweep import Sweep
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol, spec
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule, VerdictRule
from pytest_ssdqual.qual.stats import group_sequential
from pytest_ssdqual.qual.stats.group_sequential import Question
from pytest_ssdqual.qual.verdict.multiplicity import ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome, judge_all
from pytest_ssdqual.qual.workload.workload import Workload

#: Stalls a minute of one drive, and the exponents of their lengths: heavy, and less so.
STALLS, SHAPES = 6.0, (2.5, 4.0)
#: Length of the shortest stall, and of what a bad array has besides, nanoseconds.
SHORTEST_NS, BAD_NS = 1e6, 200e6
#: Bad stalls an hour.
RATES = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0)
#: Spells with a bad stall an hour, on the limit and beyond it, if they come in bursts of so many spells each, within
#: 2.4 times as many.
BURST_RATES, BURSTS, SPREAD = (10.0, 15.0), (1, 2, 3, 5, 10), 2.4
#: Claims in all, of them spreads over time, and between widths: more than the 76, 8 and 4 of ``suites/raid5`` on eight
#: drives, so that each claim needs more confidence.
CLAIMS, OVER_TIME, BETWEEN_WIDTHS = 180, 24, 4
#: Spells of a run, and their length.
SPELLS, SPELL_S = 1_800, 10.0
WORKLOAD = Workload("randread", "4k", 8)


@dataclass(frozen=True, slots=True)
class StallTask:
    shape: float
    per_hour: float
    burst: int
    runs: range


def maxima(rng: np.random.Generator, drives: int, shape: float, per_hour: float, burst: int = 1) -> list[int]:
    """Return the slowest I/O of each spell, as fio prints it, with random Pareto-distributed stalls and bad ones."""
    expected = STALLS * drives * SPELL_S / 60
    usual = np.maximum(SHORTEST_NS, SHORTEST_NS * (expected / -np.log(rng.random(SPELLS))) ** (1 / shape))
    bad = np.zeros(SPELLS, bool)
    within = max(burst, int(SPREAD * burst))
    begins = rng.integers(-within, SPELLS, rng.poisson(per_hour / burst * (SPELLS + within) * SPELL_S / 3600))
    for begin in begins:
        hit = begin + rng.choice(within, burst, replace=False) if burst > 1 else np.array([begin])
        bad[hit[(hit >= 0) & (hit < SPELLS)]] = True
    return [bucket_of(_printed(each)).value_ns for each in np.where(bad, np.maximum(usual, BAD_NS), usual)]


def _printed(latency_ns: float) -> int:
    """The middle of fio's bucket: 64 of them to a power of two."""
    shift = max(0, int(latency_ns).bit_length() - 7)
    return ((int(latency_ns) >> shift) << shift) + (1 << shift >> 1)


def reported(slowest: Sequence[int]) -> list[Interval]:
    """Return an interval for each spell, of a thousand usual I/Os and the slowest one."""
    found = []
    for index, each in enumerate(slowest):
        latency = LatencyHistogram.from_bins({_printed(SHORTEST_NS / 2): 1_000, each: 1})
        nothing = stopping_rules.NOTHING
        found.append(Interval(SPELL_S * index, SPELL_S, latency.total, 0, 4096 * latency.total, 0, latency, nothing))
    return found


def promised(claim: Claim) -> tuple[SequentialRule, VerdictRule, Limit]:
    """Return the rules of the protocol ``sequential``, and the default limit of an array of eight drives."""
    ours = protocol.load("sequential")
    limit = spec.default().limit(claim, Geometry.parse("raid5x8"), WORKLOAD)
    if ours.sequential is None or limit is None:
        raise LookupError("the protocol and the default promises have changed")
    return ours.sequential, ours.verdict, limit


def over_time(rng: np.random.Generator, task: StallTask) -> Ending:
    """One claim on one array of eight drives, from the first look to the last."""
    looks, rule, limit = promised(Claim.LATENCY_SPREAD_OVER_TIME)
    question = Question({Claim.LATENCY_SPREAD_OVER_TIME: limit})
    seen = reported(maxima(rng, 8, task.shape, task.per_hour, task.burst))
    return stopping_rules.judged(seen, question, looks, rule, ErrorControl(CLAIMS, rule.family))


def between_widths(rng: np.random.Generator, shape: float) -> Outcome:
    """The claim on an array of three drives and one of eight, each observed for the shortest time."""
    looks, rule, limit = promised(Claim.LATENCY_SPREAD_BETWEEN_WIDTHS)
    times = group_sequential.look_times(looks)
    number = next(index for index, seconds in enumerate(times, 1) if seconds >= looks.observe_s)
    sweep = []
    for width in (3, 8):
        seen = reported(maxima(rng, width, shape, 0.0)[: int(times[number - 1] / SPELL_S)])
        run = group_sequential.at_look(run_of(seen, times[number - 1]), number, looks, rule.confidence)
        sweep.append(Measured((_of_width(run, width),)))
    family = ErrorControl(CLAIMS, "bonferroni")
    claim = Claim.LATENCY_SPREAD_BETWEEN_WIDTHS
    (verdict,) = judge_all(claim, Sweep(tuple(sweep)), limit, rule.confidence, family=family)
    return verdict.outcome


def _of_width(run: Run, width: int) -> Run:
    return replace(run, geometry=Geometry.parse(f"raid5x{width}"), workload=WORKLOAD)


def simulate(seed: int, task: StallTask) -> tuple[StallTask, list[Ending], list[Outcome]]:
    """Some arrays of one kind."""
    kind = seed, int(10 * task.shape), int(10 * task.per_hour), task.burst
    rngs = [np.random.default_rng([*kind, run]) for run in task.runs]
    ends = [over_time(rng, task) for rng in rngs]
    return task, ends, [between_widths(rng, task.shape) for rng in rngs] if not task.per_hour else []


def level(shape: float, per_hour: float) -> float:
    """The true spread over time: the level exceeded so often over the median spell's maximum."""
    return float((np.log(2) * 3600 / SPELL_S / per_hour) ** (1 / shape))


Endings = dict[tuple[float, float, int], list[Ending]]


def table(found: Endings, widths: dict[float, list[Outcome]]) -> str:
    """Markdown: faultless arrays, and what long stalls besides come to."""
    columns = ("stalls", "true spread", "claims failed", "undecided", "suites with a false failure", "minutes")
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for shape in SHAPES:
        ends = found[shape, 0.0, 1]
        share = sum(each.outcome is Outcome.FAIL for each in ends) / len(ends)
        wide = sum(each is Outcome.FAIL for each in widths[shape]) / len(widths[shape])
        suite = 1 - (1 - share) ** OVER_TIME * (1 - wide) ** BETWEEN_WIDTHS
        minutes = sorted(each.seconds / 60 for each in ends)
        open_ = sum(each.outcome is Outcome.INCONCLUSIVE for each in ends) / len(ends)
        lines.append(
            f"| Pareto {shape:g} | {level(shape, 10):.2f} × | {100 * share:.2f} % of {len(ends):,} over time, "
            f"{100 * wide:.2f} % between widths | {100 * open_:.1f} % | {100 * suite:.1f} % | "
            f"{fmean(minutes):.0f} / {minutes[int(0.9 * len(minutes))]:.0f} |"
        )
    head, rule = " | ".join(f"{each:g}" for each in RATES), " --- |" * (len(RATES) + 1)
    lines += ["", f"| long stalls an hour | {head} |", f"|{rule}"]
    of_rate = {rate: found[SHAPES[0], rate, 1] for rate in RATES}
    for outcome in (Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.FAIL):
        shares = (100 * sum(each.outcome is outcome for each in ends) / len(ends) for ends in of_rate.values())
        lines.append(f"| {outcome.value} | {' | '.join(f'{share:.0f} %' for share in shares)} |")
    spent = (fmean(each.seconds / 60 for each in ends) for ends in of_rate.values())
    lines.append(f"| minutes | {' | '.join(f'{each:.0f}' for each in spent)} |")
    head, rule = " | ".join(map(str, BURSTS)), " --- |" * (len(BURSTS) + 1)
    lines += ["", f"| in bursts of | {head} |", f"|{rule}"]
    for rate in BURST_RATES:
        for outcome in (Outcome.PASS, Outcome.FAIL):
            bursts = (found[SHAPES[0], rate, burst] for burst in BURSTS)
            shares = (100 * sum(each.outcome is outcome for each in ends) / len(ends) for ends in bursts)
            lines.append(f"| {outcome.value} at {rate:g} an hour | {' | '.join(f'{each:.0f} %' for each in shares)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--runs", type=int, default=400, help="bad arrays of each kind; ten times as many faultless ones"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where the tables go, too")
    given = parser.parse_args()
    kinds = [(shape, 0.0, 1, 10 * given.runs) for shape in SHAPES]
    kinds += [(SHAPES[0], rate, 1, given.runs) for rate in RATES]
    kinds += [(SHAPES[0], rate, burst, given.runs) for rate in BURST_RATES for burst in BURSTS[1:]]
    tasks = [
        StallTask(shape, rate, burst, range(first, min(first + 20, runs)))
        for shape, rate, burst, runs in kinds
        for first in range(0, runs, 20)
    ]
    found: Endings = {}
    widths: dict[float, list[Outcome]] = {}
    with Pool(given.jobs) as pool:
        for task, ends, wide in pool.imap(partial(simulate, given.seed), tasks):
            found.setdefault((task.shape, task.per_hour, task.burst), []).extend(ends)
            widths.setdefault(task.shape, []).extend(wide)
    text = table(found, widths)
    if given.out:
        given.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
