"""What a bound on transients by earlier measurements of the same drives could save, and how tight it can be.

    python bench/seen_transients.py [--kinds flat,fastgc] [--count 20] [--sets 12] [--margin 10] [--runs 4]

The first table has what ``--count`` measurements of drives without any transient admit of one: the height at its
beginning that the product's fit finds, in per cent of the mean. A bound by exchangeability is the largest of them, and
the next measurement's transient is inside with probability n / (n + 1); its errors are not even counted in the first
column. The second table has the hours of the 32 points of ``suites/raid5`` by ``sequential``, and the same if it were
known from the first second on that there is no transient: no evidence can save more.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from statistics import fmean
from unittest import mock

import numpy as np
import suite_plans
from drive_kinds import KINDS, Series
from stopping_rules import cells
from suite_runs import Pools, Simulation

from pytest_ssdqual.qual.stats import batch_means

#: Lengths of the measurements, and time constants of transients, minutes.
LENGTHS, TIME_CONSTANTS = (39, 70, 120), (21, 35, 70)
#: One-sided 95 % of a normal distribution.
ONE_SIDED = 1.645


def fitted(series: Series, tau_s: float) -> tuple[float, float]:
    """Return the height of a fitted transient at its beginning and its standard error, as shares of the mean."""
    block_s = len(series) // batch_means.COUNT
    blocks = cells(series, block_s)[: batch_means.COUNT]
    tau, size = tau_s / (len(blocks) * block_s), len(blocks) // batch_means.MEANS
    shape = np.exp(-(np.arange(len(blocks)) + 0.5) / len(blocks) / tau)
    end, error, _ = batch_means._ends(1.0, blocks / blocks.mean() - 1, tau, size)[0]
    mean, power = float(shape.mean()), float(shape.var())
    return (1 - end) / mean, error / math.sqrt(1 + mean**2 / power) / math.sqrt(power)


def admitted(kind: str, count: int, sets: int, minutes: int, tau: int) -> tuple[float, float]:
    """Return the largest height of ``count`` measurements, and of their upper ends; means of ``sets``, in per cent."""
    largest, upper = [], []
    for number in range(sets):
        rng = np.random.default_rng([number, minutes])
        found = [fitted(KINDS[kind](rng, 1.0, 60 * minutes), 60.0 * tau) for _ in range(count)]
        largest.append(max(abs(height) for height, _ in found))
        upper.append(max(abs(height) + ONE_SIDED * error for height, error in found))
    return 100 * fmean(largest), 100 * fmean(upper)


def heights(kinds: list[str], count: int, sets: int) -> Iterator[str]:
    """Yield the lines of the first table."""
    yield "| kind | minutes of each | " + " | ".join(f"time constant {tau} min" for tau in TIME_CONSTANTS) + " |"
    yield "|---|---|" + "---|" * len(TIME_CONSTANTS)
    for kind in kinds:
        for minutes in LENGTHS:
            found = (admitted(kind, count, sets, minutes, tau) for tau in TIME_CONSTANTS)
            yield f"| {kind} | {minutes} | " + " | ".join(f"{one:.1f} (upper {high:.1f})" for one, high in found) + " |"


def without(value: float, off: Series, longest: float, size: int) -> list[tuple[float, float, bool]]:
    """Fit no transient, in place of ``batch_means._ends``."""
    return []


def hours(kind: str, margin: float, runs: int) -> float:
    """Return the mean hours of good runs of the suite, preparations included."""
    plan, model = suite_plans.of_suite("raid5"), suite_plans.models()["sata"]
    protocol = suite_plans.protocols()["sequential"]
    simulation, rng = Simulation.of(plan, model, protocol, margin, Pools(5, 1, (kind,))), np.random.default_rng(3)
    return fmean(simulation.run(1 + margin, rng).seconds for _ in range(runs)) / 3600


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--kinds", default="flat,fastgc")
    parser.add_argument("--count", type=int, default=20, help="measurements that a bound comes from (%(default)s)")
    parser.add_argument("--sets", type=int, default=12, help="sets of so many measurements (%(default)s)")
    parser.add_argument("--margin", type=float, default=10.0, help="above the limits, per cent (%(default)s)")
    parser.add_argument("--runs", type=int, default=4, help="runs of the suite (%(default)s)")
    asked = parser.parse_args()
    for line in heights(asked.kinds.split(","), asked.count, asked.sets):
        print(line, flush=True)
    print("\n| kind | hours | without transients |\n|---|---|---|")
    for kind in asked.kinds.split(","):
        usual = hours(kind, asked.margin / 100, asked.runs)
        with mock.patch.object(batch_means, "_ends", without):
            least = hours(kind, asked.margin / 100, asked.runs)
        print(f"| {kind} | {usual:.1f} | {least:.1f} |", flush=True)


if __name__ == "__main__":
    main()
