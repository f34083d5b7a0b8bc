"""Goals of the group-sequential rule on simulated drives, and their check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from power_table import Cell, Cells, Share, picked

from pytest_ssdqual.qual.verdict.verdict import Outcome

#: Value of a goal's figure, its standard error, and the kind of drive.
Found = tuple[float, float, str]


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure that must be at most ``most``."""

    name: str
    most: float
    unit: str
    find: Callable[[Cells], Found | None]

    def check(self, cells: Cells) -> str:
        """Return one line: the goal, the value, and the result."""
        found = self.find(cells)
        if found is None:
            return f"not measured  {self.name} ≤ {self.most:g} {self.unit}"
        value, error, of = found
        met = "met        " if value <= self.most else "NOT MET    "
        return f"{met}  {self.name} ≤ {self.most:g} {self.unit}: {value:.2f} ± {error:.2f} {self.unit}{of}"


def _at(*wanted: float) -> Callable[[float], bool]:
    return lambda distance: any(abs(distance - each) < 1e-6 for each in wanted)


def worst(share: Callable[[Cell], Share | None], where: Callable[[float], bool]) -> Callable[[Cells], Found | None]:
    """Return a figure: the largest share over kinds and distances."""

    def find(cells: Cells) -> Found | None:
        shares = [(found, cell) for cell in picked(cells, where=where) if (found := share(cell))]
        if not shares:
            return None
        largest, cell = max(shares, key=lambda each: each[0].percent)
        return largest.percent, largest.error_percent, f" ({cell.kind} at {cell.distance_percent:+g} %)"

    return find


def minutes(kind: str, *where: float) -> Callable[[Cells], Found | None]:
    """Mean minutes on one kind of drive, of the distance where they are longest."""

    def find(cells: Cells) -> Found | None:
        here = picked(cells, kind=kind, where=_at(*where))
        if not here:
            return None
        longest = max(here, key=lambda cell: cell.mean_minutes)
        return longest.mean_minutes, longest.minutes_error, f" (at {longest.distance_percent:+g} %)"

    return find


def undecided(where: Sequence[float], kind: str | None = None) -> Callable[[Cells], Found | None]:
    """Mean share of inconclusive runs over kinds, of the distance where it is larger."""

    def find(cells: Cells) -> Found | None:
        found = []
        for distance in where:
            shares = [cell.share(Outcome.INCONCLUSIVE) for cell in picked(cells, kind=kind, where=_at(distance))]
            if shares:
                error = sum(share.error_percent**2 for share in shares) ** 0.5 / len(shares)
                found.append((fmean(share.percent for share in shares), error, f" (at {distance:+g} %)"))
        return max(found, default=None)

    return find


GOALS = (
    Goal("false accepts at the limit, worst kind", 5, "%", worst(lambda cell: cell.false_accept, _at(0))),
    Goal(
        "false accepts 2 % and more below it, worst kind",
        2,
        "%",
        worst(lambda cell: cell.false_accept, lambda distance: distance < -2 + 1e-6),
    ),
    Goal(
        "false rejects 2 % and more above it, worst kind",
        1,
        "%",
        worst(lambda cell: cell.false_reject, lambda distance: distance > 2 - 1e-6),
    ),
    Goal("mean time on flat at ±10 %", 12, "min", minutes("flat", -10, 10)),
    Goal("mean time on flat at ±5 %", 25, "min", minutes("flat", -5, 5)),
    Goal("mean time on flat at ±2 %", 55, "min", minutes("flat", -2, 2)),
    Goal("inconclusive on flat at ±2 %", 20, "%", undecided((-2, 2), "flat")),
    Goal("inconclusive at ±2 %, mean of all kinds", 20, "%", undecided((-2, 2))),
)


def report(cells: Cells, rule: str) -> str:
    """Return one line for each goal, from one rule's cells."""
    mine = picked(cells, rule)
    return "\n".join(goal.check(mine) for goal in GOALS)
