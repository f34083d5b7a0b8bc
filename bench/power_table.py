"""Results of the simulations of ``verdict_power``: error rates and times as tables."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, quantiles

from stopping_rules import TITLES

from pytest_ssdqual.qual.verdict.verdict import Outcome

PERCENT = 100.0


@dataclass(frozen=True, slots=True)
class Share:
    """Runs out of all runs of a cell."""

    count: int
    runs: int

    @property
    def percent(self) -> float:
        return PERCENT * self.count / self.runs

    @property
    def error_percent(self) -> float:
        """Binomial standard error; with one more run of each outcome, because 0 of n does not mean ± 0."""
        share = (self.count + 1) / (self.runs + 2)
        return PERCENT * math.sqrt(share * (1 - share) / self.runs)


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule on one kind of drive at one true mean."""

    kind: str
    #: Of the true mean from the limit, in per cent of the limit; negative: the drive is bad.
    distance_percent: float
    rule: str
    outcomes: tuple[Outcome, ...]
    minutes: tuple[float, ...]

    def share(self, outcome: Outcome) -> Share:
        return Share(self.outcomes.count(outcome), len(self.outcomes))

    @property
    def false_accept(self) -> Share | None:
        """Passes of a drive that is bad or exactly on the limit; None: the drive is good."""
        return self.share(Outcome.PASS) if self.distance_percent <= 0 else None

    @property
    def false_reject(self) -> Share | None:
        """Fails of a drive that is good or exactly on the limit; None: the drive is bad."""
        return self.share(Outcome.FAIL) if self.distance_percent >= 0 else None

    @property
    def mean_minutes(self) -> float:
        return fmean(self.minutes)

    @property
    def minutes_error(self) -> float:
        mean = self.mean_minutes
        return math.sqrt(fmean((each - mean) ** 2 for each in self.minutes) / len(self.minutes))

    @property
    def slow_minutes(self) -> float:
        """The 90th percentile."""
        return quantiles(self.minutes, n=10, method="inclusive")[-1] if len(self.minutes) > 1 else self.minutes[0]


Cells = Sequence[Cell]


def picked(
    cells: Cells,
    rule: str | None = None,
    kind: str | None = None,
    where: Callable[[float], bool] = lambda distance: True,
) -> list[Cell]:
    """Return the cells of a rule and a kind, at distances that ``where`` selects."""
    return [
        cell
        for cell in cells
        if rule in (None, cell.rule) and kind in (None, cell.kind) and where(cell.distance_percent)
    ]


def distinct(values: Iterable[str]) -> list[str]:
    """Return distinct values in their first order."""
    return list(dict.fromkeys(values))


def distances(cells: Cells) -> list[float]:
    """Return distances from the worst drive to the best."""
    return sorted({cell.distance_percent for cell in cells})


def write_csv(path: Path, cells: Cells) -> None:
    """Write one line per cell: per cents and minutes with their standard errors."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        of_outcomes = [f"{outcome}{end}" for outcome in Outcome for end in ("_percent", "_error")]
        of_time = ("mean_minutes", "minutes_error", "p90_minutes")
        writer.writerow(("kind", "distance_percent", "rule", "runs", *of_outcomes, *of_time))
        for cell in cells:
            shares = [cell.share(outcome) for outcome in Outcome]
            figures = [value for share in shares for value in (share.percent, share.error_percent)]
            figures += [cell.mean_minutes, cell.minutes_error, cell.slow_minutes]
            row = [cell.kind, f"{cell.distance_percent:g}", cell.rule, len(cell.outcomes)]
            writer.writerow(row + [f"{figure:.3f}" for figure in figures])


def markdown(cells: Cells) -> str:
    """Every rule at every distance over all kinds (worst kind in brackets); then every kind, rule by rule."""
    names, runs = distinct(cell.rule for cell in cells), min(len(cell.outcomes) for cell in cells)
    kinds = distinct(cell.kind for cell in cells)
    worst_error = Share(runs // 2, runs).error_percent
    parts = [
        f"Per cent of {runs:,} runs of each kind of drive ({', '.join(kinds)}): mean of the kinds (worst kind). "
        f"Standard error of one kind's figure: at most {worst_error:.1f} points. Minutes: mean / 90th percentile.",
        *(_over_kinds(cells, name) for name in names),
        *(_by_kind(cells, name) for name in names),
    ]
    return "\n\n".join(parts) + "\n"


def _over_kinds(cells: Cells, rule: str) -> str:
    rows = []
    for distance in distances(cells):
        here = picked(cells, rule, where=lambda each, distance=distance: each == distance)  # type: ignore[misc]
        minutes = [each for cell in here for each in cell.minutes]
        slow = quantiles(minutes, n=10, method="inclusive")[-1]
        undecided = [cell.share(Outcome.INCONCLUSIVE) for cell in here]
        accepts, rejects = ([cell.false_accept for cell in here], [cell.false_reject for cell in here])
        rows.append(
            (
                _signed(distance),
                _worst(accepts),
                _worst(rejects),
                _worst(undecided),
                f"{fmean(minutes):.0f} / {slow:.0f}",
            )
        )
    return _table(TITLES.get(rule, rule), ("distance", "false accept", "false reject", "inconclusive", "minutes"), rows)


def _by_kind(cells: Cells, rule: str) -> str:
    where = distances(cells)
    rows = []
    for kind in distinct(cell.kind for cell in cells):
        row = [kind]
        for distance in where:
            (cell,) = picked(cells, rule, kind, lambda each, distance=distance: each == distance)  # type: ignore[misc]
            passed, failed = cell.share(Outcome.PASS), cell.share(Outcome.FAIL)
            row.append(f"{passed.percent:.1f} / {failed.percent:.1f}, {cell.mean_minutes:.0f}′")
        rows.append(tuple(row))
    title = f"{TITLES.get(rule, rule)}, by kind: pass / fail %, mean minutes"
    return _table(title, ("kind", *(_signed(each) for each in where)), rows)


def _worst(shares: Sequence[Share | None]) -> str:
    percents = [share.percent for share in shares if share]
    return f"{fmean(percents):.1f} ({max(percents):.1f})" if percents else ""


def _signed(distance: float) -> str:
    return f"{distance:+.3g} %" if distance else "0"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"**{title}**", "", _line(head), _line(["---"] * len(head)), *(_line(row) for row in rows)]
    return "\n".join(lines)


def _line(fields: Sequence[str]) -> str:
    return f"| {' | '.join(fields)} |"
