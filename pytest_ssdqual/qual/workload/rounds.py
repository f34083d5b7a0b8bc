"""Rounds of many workloads, repeated until the tracked figures are steady, and stimuli that follow them once.

The method of the SNIA PTS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.protocol_rules import SteadyRule
from pytest_ssdqual.qual.stats import steady_state as steady
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.qual.workload.workload import Workload

#: Figures that one round gives of a workload; quantiles would need more I/Os than a round has.
FIGURES: Mapping[Claim, Callable[[Run], float]] = {
    Claim.STEADY_IOPS: lambda run: run.iops,
    Claim.READ_IOPS: lambda run: run.read_iops,
    Claim.WRITE_IOPS: lambda run: run.write_iops,
    Claim.THROUGHPUT: lambda run: run.bytes_per_s,
    # Without I/O there is no latency; the rule then finds the series unsteady, because its average is zero.
    Claim.MEAN_LATENCY: lambda run: run.mean_latency_ns if run.latency else 0.0,
}

#: One round: a run of each workload, in the loop's order.
Round = tuple[Run, ...]
#: Most batches into which the parts of a stimulus are pooled for its intervals, because neighbours are correlated.
BATCHES = 20


@frozen
class Tracked:
    """A figure that has to be steady: a claim of one workload of the loop (``steady_iops``, ``throughput``, …)."""

    #: One of the loop's workloads.
    workload: Workload
    #: Name of the claim in specs; one of ``FIGURES``.
    claim: str

    def __post_init__(self) -> None:
        if self.claim not in FIGURES:
            raise ValueError(f"{self.claim} cannot be tracked from round to round; choose one of {', '.join(FIGURES)}")

    def figure(self, run: Run) -> float:
        """Value in one round, in the claim's unit."""
        return FIGURES[Claim(self.claim)](run)


@frozen
class Stimulus:
    """A workload that runs once."""

    workload: Workload
    #: Its length: so many times that of a cell.
    cells: int
    #: Parts of equal length of which the course is recorded; of a workload with pauses each is a process of its own.
    parts: int

    def __post_init__(self) -> None:
        if self.cells < 1 or self.parts < 1:
            raise ValueError(f"a stimulus has cells and parts, not {self.cells} and {self.parts}")

    def processes(self, cell_s: float) -> int:
        """Number of processes: one, or one for each part of a workload with pauses that has room for a burst."""
        return min(self.parts, max(1, self.workload.bursts(self.cells * cell_s)))


@frozen
class Rounds:
    """One round: these workloads in this order, on a target that was purged and filled with ``fill_bs``."""

    #: Name in test ids and records.
    name: str
    #: Each of them once; none for stimuli alone.
    workloads: tuple[Workload, ...]
    #: Figures that must be steady before the rounds end; at least one, if there are workloads.
    tracked: tuple[Tracked, ...]
    #: Transfer size of the sequential fill: ``128k``.
    fill_bs: str
    #: Fills of the target before the first round.
    fill_passes: int = 2
    #: Writes before the workloads of each round, which are checked, and are no part of the result.
    pre_write: Workload | None = None
    #: Their length: so many times that of a cell.
    pre_write_cells: int = 0
    #: What runs once, in this order, when the rounds are steady; each of these workloads once, and in no round.
    after: tuple[Stimulus, ...] = ()

    def __post_init__(self) -> None:
        if not self.measured or len(set(self.measured)) < len(self.measured):
            raise ValueError(f"{self.name} needs workloads, each of them once")
        tracked = {each.workload for each in self.tracked}
        if bool(tracked) != bool(self.workloads) or not tracked <= set(self.workloads):
            raise ValueError(f"{self.name} needs something to be tracked, of workloads of its own")
        if (self.pre_write is not None and not self.pre_write.writes) or self.pre_write_cells < 0:
            raise ValueError(f"what {self.name} writes before each round is {self.pre_write}: it has to write")
        if (self.pre_write is None) != (self.pre_write_cells == 0):
            raise ValueError(f"{self.name} needs both pre_write and pre_write_cells, or neither")

    @property
    def measured(self) -> tuple[Workload, ...]:
        """All workloads that have a result, in order."""
        return (*self.workloads, *(each.workload for each in self.after))

    @property
    def processes(self) -> tuple[tuple[Workload, int], ...]:
        """Workloads that a round runs, in order, each with its length in cells."""
        before = ((self.pre_write, self.pre_write_cells),) if self.pre_write else ()
        return (*before, *((each, 1) for each in self.workloads))

    @property
    def cells(self) -> int:
        """Length of a round in cells."""
        return sum(cells for _, cells in self.processes)

    def __str__(self) -> str:
        return self.name


def settled(loop: Rounds, rounds: Sequence[Round], rule: SteadyRule) -> tuple[SteadyState, ...] | None:
    """States of all tracked figures if all are steady in the last window of ``rounds``; else None.

    For drives side by side each drive has to be steady: one state for each tracked figure and drive, in that order.
    """
    found = states(loop, rounds, rule)
    return found if found and all(each.reached for each in found) else None


def states(loop: Rounds, rounds: Sequence[Round], rule: SteadyRule) -> tuple[SteadyState, ...]:
    """States in the last window of ``rounds``, in the order of ``settled``, steady or not; empty before one window."""
    if len(rounds) < rule.window:
        return ()
    window = rounds[-rule.window :]
    return tuple(steady.judge(values, rule) for each in loop.tracked for _, values in _followed(loop, each, window))


@frozen
class Recovery:
    """The return of a stimulus to the level of an earlier workload of the loop."""

    workload: Workload
    earlier: Workload
    #: Bytes per second of all drives together.
    level: float
    #: Seconds until the end of the first part at that level; None if it never was.
    seconds: float | None

    def __str__(self) -> str:
        level = format_value(self.level, Unit.BYTES_PER_SECOND)
        level = f"back at the level of {self.earlier}, {level}"
        found = f"never {level}" if self.seconds is None else f"{level}, after {format_duration(self.seconds)}"
        return f"stimulus {self.workload} was {found}"


@dataclass(frozen=True, slots=True, repr=False)
class RoundsResult:
    """All rounds of a loop on one array, and the window that counts; true if a steady state was reached."""

    geometry: Geometry
    loop: Rounds
    #: Runs of one round each.
    rounds: tuple[Round, ...]
    rule: SteadyRule = field(default_factory=SteadyRule)
    #: The processes of each stimulus; none without a steady state.
    after: tuple[tuple[Run, ...], ...] = ()

    def __post_init__(self) -> None:
        found = [{run.workload for run in runs} for runs in self.after]
        if found and found != [{each.workload} for each in self.loop.after]:
            raise ValueError(f"after {self.loop} came other stimuli than the loop's, or in another order")
        for runs in self.rounds:
            if tuple(run.workload for run in runs) != self.loop.workloads:
                raise ValueError(f"a round of {self.loop} has other workloads than the loop, or another order")

    def __bool__(self) -> bool:
        return self.reached

    def __repr__(self) -> str:
        """One sentence, which ``assert ssd_rounds`` shows."""
        about = f"{self.loop} on {self.geometry}"
        if not self.loop.tracked:
            return f"<{about}: {len(self.after)} stimuli>"
        if self.reached:
            return f"<{about}: steady after {self.window[-1] + 1} rounds>"
        found = states(self.loop, self.rounds, self.rule)
        followed = [each for each in self.loop.tracked for _ in _followed(self.loop, each, self.rounds[:1])]
        unsteady = [
            f"{Claim(tracked.claim).label} of {tracked.workload} is {state.describe(Claim(tracked.claim).unit)}"
            for tracked, state in zip(followed, found, strict=False)
            if not state.reached
        ]
        return f"<{about}: no steady state in {len(self.rounds)} rounds{''.join(f'; {each}' for each in unsteady)}>"

    @property
    def reached(self) -> bool:
        """Return whether all tracked figures were steady in one window; stimuli alone need not be steady."""
        return not self.loop.tracked or any(
            settled(self.loop, self.rounds[:end], self.rule) for end in range(len(self.rounds) + 1)
        )

    @property
    def window(self) -> tuple[int, ...]:
        """Indices of the rounds that count: the first window in which all was steady, else the last window.

        None of stimuli alone. ``TooFew`` with fewer rounds than a window.
        """
        if not self.loop.tracked:
            return ()
        size = self.rule.window
        if len(self.rounds) < size:
            raise TooFew(f"{self.loop} needs {size} rounds, there are {len(self.rounds)}")
        ends = range(size, len(self.rounds) + 1)
        end = next((end for end in ends if settled(self.loop, self.rounds[:end], self.rule)), len(self.rounds))
        return tuple(range(end - size, end))

    @property
    def steady(self) -> tuple[SteadyState, ...]:
        """States in the window, for each tracked figure (and drive side by side)."""
        return states(self.loop, [self.rounds[index] for index in self.window], self.rule)

    def measured(self, workload: Workload) -> Measured:
        """The window's rounds of one workload, judged together, or a stimulus in batches.

        ValueError if it is not one of the loop's. ``TooFew`` for a stimulus that did not run.
        """
        if workload not in self.loop.measured:
            raise ValueError(f"{workload} is not among the workloads of {self.loop}")
        if workload not in self.loop.workloads:
            if not self.after:
                raise TooFew(repr(self).strip("<>"))
            runs = next(each for each in self.after if each[0].workload == workload)
            batches = max(each for each in range(1, BATCHES + 1) if runs[0].rounds % each == 0)
            return Measured(tuple(replace(run, rounds=batches) for run in runs))
        cell = self.loop.workloads.index(workload)
        return Measured(tuple(self.rounds[index][cell] for index in self.window))

    def recoveries(self) -> tuple[Recovery, ...]:
        """Return when the stimuli that repeat an earlier workload of the loop were back at its level.

        A workload repeats another one if only their names differ. The level is the mean throughput of the earlier one,
        of the rounds in the window or of the first such stimulus; back is the first part within half of the range that
        a steady state may have.
        """
        levels = {_unnamed(each): self.measured(each).runs for each in self.loop.workloads} if self.after else {}
        found = list[Recovery]()
        for runs in self.after:
            workload = runs[0].workload
            if before := levels.get(_unnamed(workload)):
                level = fmean(run.bytes_per_s for run in before)
                found.append(Recovery(workload, before[0].workload, level, _back_after(runs, level, self.rule)))
            levels.setdefault(_unnamed(workload), runs)
        return tuple(found)

    def determination(self) -> tuple[dict[str, object], ...]:
        """Steady-state determination data that the SNIA test specification requires, as plain data.

        One entry for each tracked figure (and each drive side by side), in the claim's base unit. Rounds count from 1,
        and the line is value = ``slope`` × round + ``intercept``.
        """
        window = self.window
        numbers = [index + 1 for index in window]
        rounds = [self.rounds[index] for index in window]
        followed = [(each, member) for each in self.loop.tracked for member, _ in _followed(self.loop, each, rounds)]
        return tuple(
            {
                "workload": str(tracked.workload),
                "claim": str(tracked.claim),
                "unit": Claim(tracked.claim).unit.value,
                "member": member,
                "reached": state.reached,
                "rounds": numbers,
                "values": list(state.values),
                "average": state.average,
                "range_allowed": state.range_allowed,
                "range_measured": state.range_measured,
                "slope_excursion_allowed": state.slope_allowed,
                "slope_excursion_measured": state.slope_excursion,
                "slope": state.slope_per_round,
                "intercept": state.intercept(numbers[0]),
                "correlation": state.correlation,
            }
            for (tracked, member), state in zip(followed, self.steady, strict=True)
        )


def _back_after(runs: Sequence[Run], level: float, rule: SteadyRule) -> float | None:
    near = level * rule.range_percent / 200
    course = Measured(tuple(runs)).round_rates(lambda interval: interval.read_bytes + interval.write_bytes)
    at = next((index for index, rate in enumerate(course) if abs(rate - level) <= near), None)
    return None if at is None else (at + 1) * runs[0].window_s / runs[0].rounds


def _unnamed(workload: Workload) -> Workload:
    return replace(workload, name="")


def _followed(loop: Rounds, tracked: Tracked, rounds: Sequence[Round]) -> list[tuple[str, list[float]]]:
    """The tracked figure over rounds: of each drive side by side by its serial, or of the array."""
    cell = loop.workloads.index(tracked.workload)
    columns = zip(*(runs[cell].of_members() for runs in rounds), strict=True)
    return [(column[0].drive, [tracked.figure(run) for run in column]) for column in columns]
