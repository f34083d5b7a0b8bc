"""Hours, drive writes and error rates of whole suites by the protocol ``acceptance``, on simulated drives.

    python bench/suite_hours.py [--suites raid5,intel_s3500] [--models sata,nvme] [--runs 10] [--kinds flat,slowgc]
                                [--only +5%,+10%] [--protocol FILE] [--jobs 2] [--quick]

Eight drives, RAID 5 of 3 to 8 of them; the rule and the conditioning are the product's
(``visited_points``, ``conditioned_series``), the clock is the plan's arithmetic. Judged are the steady
IOPS of each point, and slope and deviation of each sweep. Every kind of drive is drawn with phases of
its own and in lockstep. True rates are so far above the limits of all points; in two scenarios one
point is 2 % below its limit, steadily or ±15 % from cell to cell, and all others 10 % above.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
from drive_kinds import HARD, KINDS, LATE, REAL, USUAL
from simulated_suite import MATRICES, MODELS, Drawn, Suite
from visited_points import Experiment

from pytest_ssdqual.qual.spec import protocol
from pytest_ssdqual.qual.stats.visits import Point
from pytest_ssdqual.qual.verdict.verdict import Outcome

#: Margins of all points, as shares of their limits.
BELOW, ABOVE = (-0.05, -0.02, 0.0), (0.02, 0.05, 0.1, 0.2)
ODD = ("one steady at -2 %", "one flapping at -2 %")
ODD_FACTOR, OTHERS, FLAPS = 0.98, 0.1, 0.15


@dataclass(frozen=True, slots=True)
class Scenario:
    """True rates of a run's points."""

    name: str
    margin: float
    #: Of one point at random, if that has another rate: its factor, and how much it flaps.
    odd: tuple[float, float] | None = None

    def factor(self, point: Point, odd: Point, rng: np.random.Generator) -> float:
        """Return the rate of a point's cell as a share of its limit."""
        if self.odd is None or point != odd:
            return 1 + self.margin
        factor, flaps = self.odd
        return float(factor * (1 + flaps * rng.choice((-1, 1))))


SCENARIOS = (
    *(Scenario(f"{each:+.0%}", each) for each in (*BELOW, *ABOVE)),
    Scenario(ODD[0], OTHERS, (ODD_FACTOR, 0.0)),
    Scenario(ODD[1], OTHERS, (ODD_FACTOR, FLAPS)),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """One simulated run of a suite."""

    suite: str
    kind: str
    in_lockstep: bool
    scenario: str
    hours: float
    conditioned_hours: float
    drive_writes: float
    #: Outcomes of the IOPS of all points, or of the odd one.
    outcomes: tuple[Outcome, ...]
    sweeps: tuple[Outcome, ...]

    @property
    def is_green(self) -> bool:
        return {*self.outcomes, *self.sweeps} == {Outcome.PASS}


def runs(suite: Suite, scenarios: Sequence[Scenario], task: tuple[str, bool, int]) -> list[Ran]:
    """Simulate all scenarios on the same drives: of a kind, in lockstep or not, and with a number."""
    kind, in_lockstep, number = task
    seed = [number, zlib.crc32(kind.encode()), in_lockstep]
    drawn = Drawn.of(suite, kind, np.random.default_rng(seed), in_lockstep=in_lockstep)
    return [run(suite, drawn, scenario, task, np.random.default_rng([*seed, 1])) for scenario in scenarios]


def run(suite: Suite, drawn: Drawn, scenario: Scenario, task: tuple[str, bool, int], rng: np.random.Generator) -> Ran:
    """Simulate one run."""
    rule = suite.protocol.visits
    assert rule
    odd = suite.points[int(rng.integers(len(suite.points)))]

    def rates(point: Point, at_s: float) -> list[float]:
        factor = scenario.factor(point, odd, rng)
        return [factor * each for each in drawn.arrays.cell(point, at_s, rule.ramp_s, rule.cell_s)]

    experiment = Experiment(suite.points, suite.protocol, rates, rng)
    outcomes = experiment.run()
    kind, in_lockstep, _ = task
    written = drawn.written + experiment.written_s / suite.model.capacity_s
    return Ran(
        suite.name,
        kind,
        in_lockstep,
        scenario.name,
        (drawn.before_s + experiment.now_s) / 3600,
        drawn.conditioned.seconds / 3600,
        written,
        (outcomes[odd],) if scenario.odd else tuple(outcomes.values()),
        tuple(experiment.sweep_outcomes().values()),
    )


#: Kinds, and whether drives are in lockstep (None: both), of each group of the tables.
GROUPS: dict[str, tuple[Iterable[str], bool | None]] = {
    "real-like": (REAL, None),
    "own phases": ({**REAL, **USUAL, **HARD}, False),
    "six usual": (USUAL, None),
    "hard": (HARD, None),
    "late": (LATE, None),
}


def of_group(ran: Iterable[Ran], group: str) -> list[Ran]:
    kinds, in_lockstep = GROUPS[group]
    return [each for each in ran if each.kind in kinds and in_lockstep in (None, each.in_lockstep)]


def by_kind(ran: Iterable[Ran], value: Callable[[Sequence[Ran]], float]) -> tuple[float, float, str]:
    """Return the mean of a value over kinds of drives, its largest one, and of which kind."""
    groups: dict[str, list[Ran]] = {}
    for each in ran:
        groups.setdefault(f"{each.kind}{', lockstep' if each.in_lockstep else ''}", []).append(each)
    values = {kind: value(each) for kind, each in groups.items()}
    worst = max(values, key=values.__getitem__)
    return fmean(values.values()), values[worst], worst


def hours(ran: Sequence[Ran]) -> float:
    return fmean(each.hours for each in ran)


def percent(ran: Sequence[Ran], outcome: Outcome, *, of_sweeps: bool = False) -> float:
    """Return the share of claims with this outcome."""
    outcomes = [one for each in ran for one in (each.sweeps if of_sweeps else each.outcomes)]
    return 100 * outcomes.count(outcome) / len(outcomes)


HEAD = (
    "% of claims", "kinds", "accepted (worst kind)", "rejected (worst kind)", "undecided (worst kind)",
    "sweeps not passed, rejected", "runs not green",
)  # fmt: skip


def tables(ran: Sequence[Ran], scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Yield the lines of the tables of one suite."""
    names = [each.name for each in scenarios]
    yield "| hours: mean (worst kind) | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for group in GROUPS:
        cells = [_hours([each for each in of_group(ran, group) if each.scenario == name]) for name in names]
        yield f"| {group} | {' | '.join(cells)} |"
    yield ""
    yield f"| {' | '.join(HEAD)} |"
    yield "|---" * len(HEAD) + "|"
    for name in names:
        for group in GROUPS:
            found = [each for each in of_group(ran, group) if each.scenario == name]
            if found:
                yield f"| {name} | {group} | {' | '.join(_rates(found))} |"
    yield ""
    writes, worst, kind = by_kind(ran, lambda some: fmean(each.drive_writes for each in some))
    yield f"Drive writes {writes:.1f} (worst {worst:.1f}, {kind})."
    hours_of, worst, kind = by_kind(ran, lambda some: fmean(each.conditioned_hours for each in some))
    yield f"Conditioning {hours_of:.1f} h (worst {worst:.1f}, {kind})."


def _hours(ran: Sequence[Ran]) -> str:
    if not ran:
        return "-"
    mean, worst, kind = by_kind(ran, hours)
    return f"{mean:.1f} ({worst:.1f} {kind})"


def _rates(ran: Sequence[Ran]) -> Iterator[str]:
    for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE):
        mean, worst, kind = by_kind(ran, partial(percent, outcome=outcome))
        yield f"{mean:.2f} ({worst:.1f} {kind})" if worst else "0"
    failed, passed = (percent(ran, each, of_sweeps=True) for each in (Outcome.FAIL, Outcome.PASS))
    yield f"{100 - passed:.1f}, {failed:.2f}"
    yield f"{100 * (1 - fmean(each.is_green for each in ran)):.1f}"


def simulated(suite: Suite, scenarios: Sequence[Scenario], given: argparse.Namespace) -> list[Ran]:
    """Simulate all kinds of drives."""
    kinds = given.kinds.split(",")
    tasks = [(kind, lockstep, number) for number in range(given.runs) for kind in kinds for lockstep in (False, True)]
    work = partial(runs, suite, scenarios)
    if given.jobs == 1:
        return [each for task in tasks for each in work(task)]
    with ProcessPoolExecutor(given.jobs) as workers:
        return [each for found in workers.map(work, tasks, chunksize=4) for each in found]


def suites(given: argparse.Namespace) -> Iterator[Suite]:
    settings = protocol.load(given.protocol)
    for name in given.suites.split(","):
        for model in given.models.split(","):
            yield Suite(name, MATRICES[name](), MODELS[model], settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--suites", default="raid5", help=f"of {', '.join(MATRICES)} (%(default)s)")
    parser.add_argument("--models", default="sata", help=f"of {', '.join(MODELS)} (%(default)s)")
    parser.add_argument("--kinds", default=",".join(KINDS), help="(%(default)s)")
    parser.add_argument(
        "--only", help=f"of the scenarios {', '.join(each.name for each in SCENARIOS)}".replace("%", "%%")
    )
    parser.add_argument("--runs", type=int, default=10, help="of each kind, own phases and in lockstep (%(default)s)")
    parser.add_argument("--protocol", default="acceptance", help="name or file of one with visits (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="two kinds, one run: seconds")
    parser.add_argument("--out", type=Path, help="Markdown file, besides standard output")
    given = parser.parse_args()
    if given.quick:
        given.kinds, given.runs = "real,flat", 1
    scenarios = [each for each in SCENARIOS if not given.only or each.name in given.only.split(",")]
    lines = []
    for suite in suites(given):
        begun_s = time.monotonic()
        ran = simulated(suite, scenarios, given)
        lines += [
            f"### {suite.name}, {suite.model.name}, {given.runs} runs of each kind",
            "",
            *tables(ran, scenarios),
            "",
        ]
        print(f"{suite.name}: {time.monotonic() - begun_s:.0f} s", file=sys.stderr)
    text = "\n".join(lines)
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
