"""Error rates and cost of workloads that take turns, on the kinds of ``drive_kinds`` and ``held_out_kinds``.

    python bench/interleaved_rounds.py [--kinds flat,slowgc] [--workloads 4,12] [--drives 60] [--out FILE.md]

Every drive is conditioned for two hours before. Its rate is 5 and 2 % below the limit, on it, and 2, 5, 10 and 20 %
above. The rule is the product's; all workloads of a drive follow one series of IOPS, each at its own times. What one
workload does to the next is not simulated.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import drive_kinds
import held_out_kinds
import numpy as np
import stopping_rules
from drive_kinds import Series

from pytest_ssdqual.plugin.plan import step_prices
from pytest_ssdqual.qual.measured.run import SPELL_S, Run
from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.spec.claims import Claim, Direction, Limit
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import InterleaveRule
from pytest_ssdqual.qual.stats import group_sequential, interleaving
from pytest_ssdqual.qual.stats.group_sequential import Question
from pytest_ssdqual.qual.stats.interleaving import Cell
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.verdict.multiplicity import ALONE, ErrorControl
from pytest_ssdqual.qual.verdict.verdict import Outcome

#: Kinds of drives by which rules were chosen, and those that were held out.
KINDS = {**drive_kinds.KINDS, **held_out_kinds.KINDS}
LIMIT_IOPS = 10_000.0
#: True rates over the limit.
FACTORS = (0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.2)
#: Conditioning of bare drives before a measurement, seconds.
CONDITIONED_S = 7200


@dataclass(frozen=True, slots=True)
class EndedRounds:
    """Outcome of one workload, and its rounds."""

    outcome: Outcome
    rounds: int


def cells_of(
    rates: Series, workloads: int, rule: InterleaveRule, every_s: int, rng: np.random.Generator
) -> list[list[Cell]]:
    """Return the cells of all workloads on a drive of these IOPS per second, in random order in each round."""
    found: list[list[Cell]] = [[] for _ in range(workloads)]
    for index in range(rule.rounds):
        for slot, workload in enumerate(rng.permutation(workloads)):
            begin = (index * workloads + slot) * every_s + round(rule.ramp_s)
            found[workload].append(Cell(_run(rates[begin : begin + round(rule.cell_s)]), None, None))
    return found


def _run(rates: Series) -> Run:
    intervals = stopping_rules.reported(np.asarray([rates.mean()]), len(rates))
    run = stopping_rules.run_of(intervals, float(len(rates)))
    return Run(run.workload, run.geometry, run.members, intervals, 0.0, run.window_s, 1, "", spell_length_s=SPELL_S)


def judged(
    cells: Sequence[Sequence[Cell]], asked: int, question: Question, settings: Protocol, family: ErrorControl = ALONE,
    every_s: int = 0,
) -> EndedRounds:  # fmt: skip
    """Return the outcome of workload number ``asked`` by the product's rule."""
    rule = settings.interleave
    assert rule
    found, number = Outcome.INCONCLUSIVE, rule.rounds
    for number in interleaving.looks(rule):
        span_s = float(number * len(cells) * every_s)
        if span_s < rule.span_s and number < rule.rounds:
            continue
        until = [each[:number] for each in cells]
        measured = interleaving.among(until[asked], until, settings, span_s)
        found = stopping_rules.outcome(measured, question, settings.verdict, family)
        if group_sequential.decide(measured, question, settings.sequential, settings.verdict, family):
            break
    return EndedRounds(found, number)


@dataclass(frozen=True, slots=True)
class KindRow:
    """Outcomes of all drives of one kind, by factor."""

    kind: str
    workloads: int
    ended: dict[float, list[EndedRounds]]

    def cells(self) -> Iterator[str]:
        """Yield the cells of the row: accepted and rejected in per cent, and mean rounds."""
        yield from (self.kind, str(self.workloads))
        for factor in FACTORS:
            ended = self.ended[factor]
            share = {each: sum(one.outcome is each for one in ended) / len(ended) for each in Outcome}
            rounds = sum(each.rounds for each in ended) / len(ended)
            yield f"{100 * share[Outcome.PASS]:.0f} / {100 * share[Outcome.FAIL]:.0f} / {rounds:.0f}"


def simulated(kind: str, workloads: int, drives: int, settings: Protocol, seed: int) -> KindRow:
    """Return the outcomes of a few workloads of each drive."""
    rule, ended = settings.interleave, {each: list[EndedRounds]() for each in FACTORS}
    assert rule
    every_s = round(rule.ramp_s + rule.cell_s + step_prices.OVERHEAD_S)
    limit = Limit(Direction.AT_LEAST, LIMIT_IOPS, Unit.IOPS, "bench")
    for number in range(drives):
        rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), number])
        series = KINDS[kind](rng, 1.0, CONDITIONED_S + rule.rounds * workloads * every_s)[CONDITIONED_S:]
        for factor in FACTORS:
            cells = cells_of(series * factor * LIMIT_IOPS, workloads, rule, every_s, np.random.default_rng(number))
            question = Question({Claim.STEADY_IOPS: limit})
            ended[factor].append(judged(cells, number % workloads, question, settings, ALONE, every_s))
    return KindRow(kind, workloads, ended)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kinds", default=",".join(KINDS), help="(%(default)s)")
    parser.add_argument("--workloads", default="12", help="that take turns (%(default)s)")
    parser.add_argument("--drives", type=int, default=60, help="of each kind (%(default)s)")
    parser.add_argument("--protocol", default="interleaved")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help="Markdown file, besides standard output")
    given = parser.parse_args()
    settings = protocol.load(given.protocol)
    head = ("kind", "workloads", *(f"{100 * each - 100:+.0f} %" for each in FACTORS))
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for workloads in map(int, given.workloads.split(",")):
        for kind in given.kinds.split(","):
            row = simulated(kind, workloads, given.drives, settings, given.seed)
            lines.append(f"| {' | '.join(row.cells())} |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join([*lines, "", "Accepted / rejected, per cent, and mean number of rounds."]) + "\n"
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
