"""Each figure in all bays that have it: what a table shows of it, and what it says of the bays as a sample; pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.detect import outliers
from pytest_ssdqual.qual.detect.outliers import Outlying, Spread
from pytest_ssdqual.qual.stats import latency
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.evidence.part import Finding
from pytest_ssdqual.report.fleet.view import FigureKey, Seen
from pytest_ssdqual.report.view.labels import label, sorting, span

#: Of the share of bays that keep a promise: 95 %, two-sided.
TAIL = 0.025
#: The worse the sooner.
SEVERITY = (Finding.FAIL, Finding.INCONCLUSIVE, Finding.PASS, Finding.OBSERVED)


@dataclass(frozen=True, slots=True)
class Row:
    """A figure by bay; those of bays that were lost or never begun are missing, and so are theirs that have none."""

    key: FigureKey
    cells: dict[str, Evidence]

    @property
    def first(self) -> Evidence:
        return next(iter(self.cells.values()))

    @property
    def claim(self) -> str:
        group = f" ({self.key.key.group})" if self.key.key.group else ""
        return label(self.key.key.claim) + group

    @property
    def array(self) -> str:
        """Drives side by side may be of another number in each bay."""
        names = self.key.key.geometries
        return span(names) if names else ""

    @property
    def workload(self) -> str:
        names = self.key.key.workloads
        return span(names) if names else ""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.claim, self.array, self.workload)))

    @property
    def limit(self) -> str:
        """That of all bays, or that they have different ones."""
        found = {each.bound for each in self.cells.values()}
        return found.pop() if len(found) == 1 else "not the same"

    @property
    def is_promised(self) -> bool:
        return any(each.is_promised for each in self.cells.values())

    @property
    def outcome(self) -> Finding:
        """The worst."""
        return min((each.outcome for each in self.cells.values()), key=SEVERITY.index)

    @property
    def worst(self) -> str:
        """The bay that is closest to breaking it, or breaks it most; nothing if nothing is promised."""
        if not self.is_promised:
            return ""
        return min(self.cells, key=lambda name: (SEVERITY.index(self.cells[name].outcome), _margin(self.cells[name])))

    def bays(self, outcome: Finding) -> tuple[str, ...]:
        return tuple(name for name, each in self.cells.items() if each.outcome is outcome)

    @property
    def values(self) -> list[float]:
        """What can be reckoned with."""
        return [self.cells[name].value for name in self.counted]

    @property
    def counted(self) -> list[str]:
        return [name for name, each in self.cells.items() if math.isfinite(each.value)]

    def spread(self) -> Spread | None:
        return outliers.spread(self.values) if self.values else None

    def standing_out(self) -> tuple[str, Outlying] | None:
        """The bay, if one does."""
        found = outliers.standing_out(self.values, [_ends(self.cells[name]) for name in self.counted])
        return (self.counted[found.index], found) if found else None

    def share(self) -> tuple[int, int, int, float, float] | None:
        """Of bays in which it is promised: kept, undecided, all, and the ends of the share that keeps it.

        An undecided one may be either: the lower end takes it for broken, the upper one for kept.
        """
        of = sum(each.is_promised for each in self.cells.values())
        if not of:
            return None
        kept, undecided = (len(self.bays(outcome)) for outcome in (Finding.PASS, Finding.INCONCLUSIVE))
        low, _ = latency.interval(kept, of, TAIL)
        _, high = latency.interval(kept + undecided, of, TAIL)
        return kept, undecided, of, low, high


def rows(seen: Seen) -> tuple[Row, ...]:
    """Every figure, those that are broken first, then in the order of claims, arrays and workloads."""
    found: dict[FigureKey, dict[str, Evidence]] = {}
    for bay in seen.begun:
        for key, evidence in bay.figures.items():
            found.setdefault(key, {})[bay.name] = evidence
    return tuple(sorted((Row(key, cells) for key, cells in found.items()), key=_order))


def promised(found: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in found if row.is_promised)


def observed(found: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(row for row in found if not row.is_promised)


def _order(row: Row) -> tuple[object, ...]:
    """A record may name no array at all; such a one comes last."""
    named = bool(row.first.geometries)
    return SEVERITY.index(row.outcome), not named, sorting(row.first) if named else row.key.key.claim, row.key


def _margin(evidence: Evidence) -> float:
    found = evidence.margin_percent
    return math.inf if found is None or math.isnan(found) else found


def _ends(evidence: Evidence) -> tuple[float, float]:
    return (
        -math.inf if evidence.low is None else evidence.low,
        math.inf if evidence.high is None else evidence.high,
    )
