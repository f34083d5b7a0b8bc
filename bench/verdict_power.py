"""Error rates and durations of stopping rules on simulated drives: bad drives accepted, good ones rejected.

    python bench/verdict_power.py [--runs 2000] [--only flat,slowgc] [--rules ours,fixed] [--out DIR]

Every rule sees the same drives. The limit is 95 % of a promise of 1; a drive's true mean in the long run is known
(``drive_kinds``). ``--kinds FILE.py`` judges the rules by kinds of drives of one's own: a module with a mapping
``KINDS`` of names to functions (``drive_kinds.Kind``). Writes a CSV file, a Markdown table and plots, and checks our
rule against its goals. Needs the dependency group ``bench`` for the plots.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, product
from multiprocessing import Pool
from pathlib import Path
from textwrap import indent

import numpy as np
import power_goals
import power_plots
import power_table
from drive_kinds import KINDS, WITHOUT_GATE, Kind
from power_table import Cell
from stopping_rules import TITLES, Rule, longest_s, rules

from pytest_ssdqual.qual.spec import protocol

LIMIT = 0.95
#: Of the true mean from the limit, in per cent of the limit.
DISTANCES = (-10.0, -5.0, -2.0, 0.0, 2.0, 5.0, 10.0)
#: Runs that one process does at a time.
CHUNK = 50


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """The simulations to run."""

    kinds: tuple[str, ...]
    means: tuple[float, ...]
    rules: tuple[str, ...]
    runs: int
    seed: int
    #: Module with the kinds; None: ``drive_kinds``.
    kinds_file: Path | None = None
    #: Protocol of the product's rule; None: the defaults.
    protocol: str | None = None
    #: Load before any rule begins, with no pause in between, as conditioning is.
    burn_in_s: int = 0


@dataclass(frozen=True, slots=True)
class PowerTask:
    kind: str
    mean: float
    runs: range


def kinds_of(path: Path | None) -> Mapping[str, Kind]:
    """Kinds of drives: ours, or those of a module of one's own. ValueError when it has none."""
    if path is None:
        return {**KINDS, **WITHOUT_GATE}
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up there.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    kinds: Mapping[str, Kind] = getattr(module, "KINDS", {})
    if not kinds:
        raise ValueError(f"{path} has no KINDS: a mapping of names to functions (random generator, mean, seconds)")
    return kinds


@lru_cache(maxsize=1)
def _ready(plan: PowerPlan) -> tuple[Mapping[str, Kind], dict[str, Rule], int]:
    # Once in every process: functions made by functions cannot be sent to it.
    settings = protocol.load(plan.protocol) if plan.protocol else None
    return kinds_of(plan.kinds_file), rules(plan.rules, settings), plan.burn_in_s + longest_s(settings)


def simulate(plan: PowerPlan, task: PowerTask) -> list[Cell]:
    """Simulate runs of one kind at one mean, with every rule on the same drives."""
    kinds, all_rules, seconds = _ready(plan)
    kind = kinds[task.kind]
    drives = (
        kind(np.random.default_rng([plan.seed, zlib.crc32(task.kind.encode()), run]), task.mean, seconds)
        for run in task.runs
    )
    endings = [[rule(series[plan.burn_in_s :], LIMIT) for rule in all_rules.values()] for series in drives]
    return [
        Cell(
            kind=task.kind,
            distance_percent=round(100 * (task.mean / LIMIT - 1), 6),
            rule=name,
            outcomes=tuple(ending.outcome for ending in of_rule),
            minutes=tuple(ending.seconds / 60 for ending in of_rule),
        )
        for name, of_rule in zip(all_rules, zip(*endings, strict=True), strict=True)
    ]


def run(plan: PowerPlan, jobs: int) -> list[Cell]:
    """Return all cells, by kind, from the worst drive to the best."""
    chunks = [range(first, min(first + CHUNK, plan.runs)) for first in range(0, plan.runs, CHUNK)]
    tasks = [PowerTask(*each) for each in product(plan.kinds, plan.means, chunks)]
    parts: list[list[Cell]] = []
    start_s = time.monotonic()
    with Pool(jobs) as pool:
        for part in pool.imap(partial(simulate, plan), tasks):
            parts.append(part)
            _progress(len(parts), len(tasks), time.monotonic() - start_s)
    # Tasks come back in order: the chunks of one cell are neighbours.
    return [
        joined
        for first in range(0, len(parts), len(chunks))
        for joined in map(_joined, zip(*parts[first : first + len(chunks)], strict=True))
    ]


def _joined(parts: tuple[Cell, ...]) -> Cell:
    first = parts[0]
    return Cell(
        first.kind,
        first.distance_percent,
        first.rule,
        tuple(chain.from_iterable(part.outcomes for part in parts)),
        tuple(chain.from_iterable(part.minutes for part in parts)),
    )


def _progress(done: int, of: int, seconds: float) -> None:
    if sys.stderr.isatty() or done * 10 // of != (done - 1) * 10 // of:
        end = "\r" if sys.stderr.isatty() and done < of else "\n"
        left_s = seconds / done * (of - done)
        print(
            f"{100 * done / of:3.0f} %, {seconds:4.0f} s, {left_s:4.0f} s to go", end=end, file=sys.stderr, flush=True
        )


def _given() -> tuple[PowerPlan, int, Path]:
    """Parse the command line: the plan, the number of processes, and the folder of results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=2000, help="simulated drives of each kind at each mean")
    parser.add_argument("--kinds", type=Path, metavar="FILE", help="Python module with a mapping KINDS of one's own")
    parser.add_argument("--only", metavar="KIND,…", help=f"of {', '.join((*KINDS, *WITHOUT_GATE))}, or of one's own")
    parser.add_argument("--rules", metavar="RULE,…", default=",".join(TITLES), help="of %(default)s")
    parser.add_argument("--means", metavar="MEAN,…", help=f"true means in units of the promise; the limit is {LIMIT}")
    parser.add_argument(
        "--protocol", help="protocol with the settings of the product's rule; default: the built-in ones"
    )
    parser.add_argument("--burn-in", type=float, default=0, metavar="MINUTES", help="load before any rule begins")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("verdict-power"), help="folder for results (%(default)s)")
    given = parser.parse_args()
    usual = KINDS if given.kinds is None else kinds_of(given.kinds)
    plan = PowerPlan(
        kinds=tuple(given.only.split(",")) if given.only else tuple(usual),
        means=tuple(map(float, given.means.split(","))) if given.means else _means(),
        rules=tuple(given.rules.split(",")),
        runs=given.runs,
        seed=given.seed,
        kinds_file=given.kinds,
        protocol=given.protocol,
        burn_in_s=round(60 * given.burn_in),
    )
    for names, known in ((plan.kinds, kinds_of(plan.kinds_file)), (plan.rules, TITLES)):
        if unknown := [name for name in names if name not in known]:
            parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    return plan, given.jobs, given.out


def main() -> None:
    plan, jobs, folder = _given()
    folder.mkdir(parents=True, exist_ok=True)
    cells = run(plan, jobs)
    power_table.write_csv(folder / "power.csv", cells)
    power_plots.draw(folder, cells)
    parts = [power_table.markdown(cells)]
    if "ours" in plan.rules:
        parts.append(f"Goals of {TITLES['ours']}:\n\n{indent(power_goals.report(cells, 'ours'), '    ')}\n")
    parts.append(f"Seed {plan.seed}, {plan.burn_in_s / 60:g} min of load before each rule begins, not counted.\n")
    text = "\n".join(parts)
    (folder / "power.md").write_text(text, encoding="utf-8")
    print(text)


def _means() -> tuple[float, ...]:
    return tuple(LIMIT * (1 + distance / 100) for distance in DISTANCES)


if __name__ == "__main__":
    main()
