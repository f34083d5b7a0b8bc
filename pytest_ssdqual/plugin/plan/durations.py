"""How long each step of a plan takes in many simulated runs: the protocol's own stopping rules on simulated drives.

The margin of a measurement is that of the baseline, or else of the data sheet; where neither has the value, the
simulated runs differ in the margin. All steps of a simulated run are on drives of one kind, so what makes one step long
makes all of them long.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from pytest_ssdqual.plugin.plan import stored_durations
from pytest_ssdqual.plugin.plan.planned_load import counted_s
from pytest_ssdqual.plugin.plan.stopping import Promises
from pytest_ssdqual.plugin.plan.stored_durations import Stored
from pytest_ssdqual.qual.forecast import duration, simulated_drive
from pytest_ssdqual.qual.forecast.duration import Asked, Judging, SteadySteps, Turns
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import OF_EXTREMES, OF_LATENCY, Claim, Direction, Limit, Scope
from pytest_ssdqual.qual.spec.protocol_rules import SequentialRule
from pytest_ssdqual.qual.workload.workload import Workload

#: Simulated runs; each fifth has drives of one kind, and each quarter of these one assumption.
RUNS = 300
#: Simulated drives of a run: its measurements resemble each other, because they are on the same drives.
ALIKE = 3
#: Quantiles of simulated runs that the printed range has: a little more than 90 %, because no simulated drive is the
#: real one (``bench/suite_hours.py``; D181).
LOW, HIGH = 0.03, 0.97
#: Margins where neither a sheet nor a baseline has the value, from near the limit to where a verdict takes no less
#: time; a quarter of the simulated runs has each. Limits of tails leave twice to four times what is published.
LATENCY_MARGINS, OTHER_MARGINS = (1.4, 2.0, 2.8, 4.0), (1.05, 1.1, 1.2, 1.4)
#: Number of different assumptions.
ASSUMPTIONS = len(LATENCY_MARGINS)
#: Margins of simulations: beyond them a verdict takes no less time.
LEAST_MARGIN, MOST_MARGIN = 0.5, 4.0
#: Most steps of a conditioning that are simulated.
MOST_STEPS = 20

#: IOPS of a measurement in an earlier run; None if there is none.
Earlier = Callable[[Geometry, Workload], float | None]
#: Seconds of a step in each simulated run.
Sample = tuple[float, ...]


def no_baseline(geometry: Geometry, workload: Workload) -> float | None:
    """Return None: there is no earlier run."""
    return None


@dataclass(slots=True)
class Durations:
    """Simulated durations of the steps of one plan."""

    promises: Promises
    earlier: Earlier = no_baseline
    #: What was simulated before.
    stored: Stored = field(default_factory=dict)
    #: Limits of which no figure is known.
    assumed: dict[tuple[Claim, Geometry, Workload], tuple[float, ...]] = field(default_factory=dict)
    _random: random.Random = field(default_factory=lambda: random.Random(duration.SEED))  # noqa: S311
    #: The simulated drives of each run, as shares of their number.
    _alike: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        self._alike = tuple(tuple(self._random.random() for _ in range(ALIKE)) for _ in range(RUNS))

    def sequential(
        self, geometry: Geometry, workload: Workload, looks: SequentialRule, loaded_s: float = 0.0
    ) -> Sample:
        """Return seconds after the ramp of a sequential measurement, in each simulated run.

        ``loaded_s``: how long its drives were under load of its class before.
        """
        promises = self.promises
        is_known = promises.protocol.conditions_drives
        judging = Judging(
            looks, promises.protocol.verdict, promises.family, counted_s(loaded_s, looks),
            is_shown=is_known and workload.writes,
        )  # fmt: skip
        asked = [self.asked(geometry, workload, looks, number) for number in range(ASSUMPTIONS)]
        return self._drawn(lambda kind, number: self.of_kind(judging, asked[number], kind), _figures(geometry))

    def rounds(self, geometry: Geometry, workload: Workload, turns: Turns) -> Sample:
        """Return the rounds of a workload that takes turns with others, in each simulated run."""
        looks = turns.protocol.sequential
        if looks is None:
            raise ValueError(f"by the protocol {turns.protocol.name} workloads do not take turns")
        asked = [self.asked(geometry, workload, looks, number) for number in range(ASSUMPTIONS)]

        def of_kind(kind: str, number: int) -> tuple[float, ...]:
            wanted = asked[number]
            return self._stored(turns, wanted, kind, lambda: map(float, duration.rounds(turns, wanted, kind)))

        return self._drawn(of_kind)

    def of_kind(self, judging: Judging, asked: frozenset[Asked], kind: str) -> tuple[float, ...]:
        """Return seconds after the ramp on each simulated drive of a kind."""
        return self._stored(judging, asked, kind, lambda: duration.durations(judging, asked, kind))

    def _stored(
        self, by: Judging | Turns, asked: frozenset[Asked], kind: str, simulate: Callable[[], Iterable[float]]
    ) -> tuple[float, ...]:
        key = stored_durations.key_of(by, sorted(map(repr, asked)), kind)
        if key not in self.stored:
            self.stored[key] = tuple(simulate())
        return self.stored[key]

    def steps(self, asked: SteadySteps) -> tuple[int, ...]:
        """Return the number of steps until steady, in each simulated run."""
        return tuple(map(int, self._drawn(lambda kind, _: duration.steps(asked, kind))))

    def assumptions(self) -> Iterator[str]:
        """Yield what was assumed because no figure is known, a sentence for each range of margins."""
        for margins in sorted(set(self.assumed.values())):
            found = {claim.label: None for (claim, _, _), each in self.assumed.items() if each == margins}
            least, most = margins[0], margins[-1]
            better = f"{least:g} to {most:g} times" if most >= 2 else f"{100 * least - 100:.0f} to {most - 1:.0%}"
            count = sum(each == margins for each in self.assumed.values())
            yield (
                f"{' and '.join(found)} {better} better than {'its limit' if count == 1 else 'their limits'}, as no "
                f"figure is known ({count} limit{'s' if count > 1 else ''})"
            )

    def asked(self, geometry: Geometry, workload: Workload, looks: SequentialRule, number: int = 0) -> frozenset[Asked]:
        """Return what a measurement has to decide, each with its margin; ``number`` is that of the assumption."""
        question = self.promises.question(geometry, workload)
        found = {self._asked(claim, limit, geometry, workload, number) for claim, limit in question.limits.items()}
        if question.precision_percent is not None or not found:
            percent = question.precision_percent or looks.precision_percent
            found.add(Asked(precision_percent=percent, precision_side=question.precision_side))
        if question.is_observed and not any(each.claim in duration.OF_SLOWEST for each in found):
            found.add(Asked(Claim.MAX_LATENCY, MOST_MARGIN))
        return frozenset(found)

    def _asked(self, claim: Claim, limit: Limit, geometry: Geometry, workload: Workload, number: int) -> Asked:
        margin = self._margin(claim, limit, geometry, workload, number)
        if claim in duration.QUANTILES:
            return Asked(claim, margin)
        if claim in duration.OF_SLOWEST:
            bound = limit.bound if claim is Claim.LATENCY_SPREAD_OVER_TIME else 1.0
            return Asked(claim, margin, bound, *([limit.times_per_hour] if limit.times_per_hour else ()))
        if claim in OF_EXTREMES:
            return Asked(Claim.MAX_LATENCY, MOST_MARGIN)
        # At a constant queue depth, mean latencies are as precise as rates (Little's law); medians nearly so.
        return Asked(Claim.STEADY_IOPS, margin)

    def _margin(self, claim: Claim, limit: Limit, geometry: Geometry, workload: Workload, number: int) -> float:
        figure = self._figure(claim, geometry, workload)
        if figure is None:
            assumed = LATENCY_MARGINS if claim in OF_LATENCY | OF_EXTREMES else OTHER_MARGINS
            self.assumed[claim, geometry, workload] = assumed
            return assumed[number]
        margin = figure / limit.bound if limit.direction is Direction.AT_LEAST else limit.bound / figure
        return min(max(round(margin, 3), LEAST_MARGIN), MOST_MARGIN)

    def _figure(self, claim: Claim, geometry: Geometry, workload: Workload) -> float | None:
        """Return what the figure will be, by the baseline or else by the data sheet; None if neither says."""
        if claim.scope is Scope.MEMBERS:
            return None
        if claim is Claim.STEADY_IOPS and (before := self.earlier(geometry, workload)):
            return before
        spec = self.promises.spec
        published = spec.published(claim, geometry, workload)
        if published is None and claim is Claim.STEADY_IOPS:
            return spec.expected_iops(geometry, workload)
        return published.value if published else None

    def _drawn(self, of_kind: Callable[[str, int], tuple[float, ...]], figures: int = 1) -> Sample:
        """Draw one duration for each simulated run: of drives side by side, that of the slowest to be decided.

        ``of_kind`` returns the durations on drives of a kind, by the number of the assumption.
        """
        pools = [of_kind(kind, number) for number in range(ASSUMPTIONS) for kind in simulated_drive.KINDS]
        if all(len(set(pool)) == 1 for pool in pools) and len(set(map(max, pools))) == 1:
            return (pools[0][0],) * RUNS
        draw = self._random.random
        return tuple(
            max(pool[int(alike[int(draw() * ALIKE)] * len(pool))] for _ in range(figures))
            for pool, alike in ((pools[run % len(pools)], self._alike[run]) for run in range(RUNS))
        )


def quantile(values: Sample, share: float) -> float:
    """Return the value that this share of ``values`` does not exceed."""
    return sorted(values)[min(len(values) - 1, max(0, math.ceil(share * len(values)) - 1))]


def summed(samples: Iterable[Sample]) -> Sample:
    """Return the sum of samples in each simulated run."""
    total = [0.0] * RUNS
    for sample in samples:
        total = [one + other for one, other in zip(total, sample, strict=True)]
    return tuple(total)


def _figures(geometry: Geometry) -> int:
    return geometry.width if geometry.is_side_by_side else 1
