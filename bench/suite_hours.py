"""Hours, drive writes and error rates of whole suites by each protocol, and whether forecasts hold.

    python bench/suite_hours.py [--suites raid5,raid6,raid0,drive] [--models sata,nvme] [--protocols sequential,intel]
                                [--margins 2,5,10,20] [--runs 40] [--pool 5] [--out FILE.md]

The plan is that of the shipped suite for eight drives, the stopping rule and the forecast are the product's. Data
sheets publish what is ``margin`` above the limit. Good drives do exactly that; bad ones are as far below the limit.
What is fixed (fills, volumes of conditioning, bare drives) is the plan's own arithmetic in both, forecast and run.
Fixed protocols judge rates only; tails and spreads are simulated for sequential ones.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import suite_plans
from interleaved_rounds import KINDS
from suite_plans import DRIVES, Model
from suite_runs import SETTLED, Pools, Simulation, SuiteRun

from pytest_ssdqual.qual.verdict.verdict import Outcome
from pytest_ssdqual.report.terminal.plan import PrintedPlan

#: Wanted share of runs inside the range of their forecast.
GOAL = 0.9


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """Results of one suite, model, protocol and margin."""

    suite: str
    model: Model
    protocol: str
    margin: float
    forecast: PrintedPlan
    good: Sequence[SuiteRun]
    bad: Sequence[SuiteRun]

    @property
    def inside(self) -> float:
        """Share of good runs whose duration is inside the range of the forecast."""
        plan = self.forecast
        return fmean(plan.low_s - 1 <= each.seconds <= plan.high_s + 1 for each in self.good)

    def cells(self) -> Iterator[str]:
        """Yield the cells of the row."""
        plan, hour = self.forecast, 3600
        yield from (self.suite, self.model.name, self.protocol, f"{100 * self.margin:g} %")
        yield f"{plan.seconds / hour:.0f} ({plan.low_s / hour:.0f} to {plan.high_s / hour:.0f})"
        yield f"{fmean(each.seconds for each in self.good) / hour:.0f}"
        yield f"{self.inside:.0%}"
        yield f"{fmean(each.bytes_written for each in self.good) / DRIVES / self.model.drive_bytes:.1f}"
        accepted = f"{_share(self.bad, Outcome.PASS):.2f} / {fmean(map(_all_pass, self.bad)):.0%}" if self.bad else "-"
        yield accepted
        rejected = fmean(Outcome.FAIL in each.outcomes for each in self.good)
        yield f"{_share(self.good, Outcome.FAIL):.2f} / {rejected:.0%}"
        yield f"{_share(self.good, Outcome.INCONCLUSIVE):.1f} / {1 - fmean(map(_all_pass, self.good)):.0%}"


HEAD = (
    "suite", "drives", "protocol", "margin", "forecast, h (nine of ten)", "simulated, h", "inside", "drive writes",
    "false accepts, % of claims / of runs", "false rejects, % / of runs", "inconclusive, % / good runs not green",
)  # fmt: skip


def _share(runs: Sequence[SuiteRun], outcome: Outcome) -> float:
    """Per cent of all claims about rates that have this outcome."""
    outcomes = [each for run in runs for each in run.outcomes]
    return 100 * outcomes.count(outcome) / len(outcomes) if outcomes else 0.0


def _all_pass(run: SuiteRun) -> bool:
    return bool(run.outcomes) and set(run.outcomes) == {Outcome.PASS}


def simulated(given: argparse.Namespace) -> Iterator[SuiteRow]:
    """Yield the rows, as they are done."""
    pools = Pools(given.pool, given.seed, tuple(given.kinds.split(",")))
    models, protocols = suite_plans.models(), suite_plans.protocols()
    for suite in given.suites.split(","):
        for name in given.protocols.split(","):
            plan = suite_plans.of_suite(suite)
            for margin in (float(each) / 100 for each in given.margins.split(",")):
                for model in given.models.split(","):
                    one = Simulation.of(plan, models[model], protocols[name], margin, pools)
                    rng = np.random.default_rng([given.seed, len(suite), int(1000 * margin)])
                    good = [one.run(1 + margin, rng) for _ in range(given.runs)]
                    bad = [one.run(1 - margin, rng) for _ in range(given.runs if given.bad else 0)]
                    yield SuiteRow(suite, models[model], name, margin, one.forecast(), good, bad or good[:0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suites", default="raid5,raid6,raid0,drive", help="of suites/, or raid0 (%(default)s)")
    parser.add_argument("--models", default="sata,nvme")
    parser.add_argument("--protocols", default=",".join(suite_plans.protocols()), help="of %(default)s")
    parser.add_argument("--margins", default="2,5,10,20", help="per cent (%(default)s)")
    parser.add_argument("--runs", type=int, default=40, help="runs of good drives, and of bad ones, in each row")
    parser.add_argument("--pool", type=int, default=5, help="simulated measurements of each kind of drive")
    parser.add_argument("--kinds", default=",".join(SETTLED), help=f"of {', '.join(KINDS)} (%(default)s)")
    parser.add_argument("--only-good", dest="bad", action="store_false", help="no bad drives: no false accepts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="Markdown file, besides standard output")
    given = parser.parse_args()
    start_s, rows, lines = time.monotonic(), list[SuiteRow](), [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    for row in simulated(given):
        rows.append(row)
        lines.append(f"| {' | '.join(row.cells())} |")
        print(f"{time.monotonic() - start_s:4.0f} s  {lines[-1]}", file=sys.stderr, flush=True)
    held = fmean(row.inside for row in rows)
    verdict = "met" if held >= GOAL else "MISSED"
    lines += ["", f"Inside the forecast's range: {held:.1%} of runs (goal {GOAL:.0%}: {verdict}). Seed {given.seed}."]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
