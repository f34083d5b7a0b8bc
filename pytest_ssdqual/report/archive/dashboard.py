"""Queries of the dashboard over runs and the rows of their promises: products, margins, causes and drives; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.archive.figure_table import FigureRow
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.run_summary.run_view import RunDrive, RunView, shown
from pytest_ssdqual.report.view import subject

#: Model and firmware, as runs have tested them.
Product = tuple[str, str]


def products(runs: Iterable[RunView]) -> dict[Product, list[RunView]]:
    """Return the runs of each product, in the order of the products' names."""
    runs_of: dict[Product, list[RunView]] = {}
    for run in runs:
        runs_of.setdefault((run.models, run.firmware), []).append(run)
    return dict(sorted(runs_of.items()))


@dataclass(frozen=True, slots=True)
class DriveHistory:
    """All runs of one drive, by their start; at least one."""

    runs: tuple[RunView, ...]
    last: RunDrive
    #: Broken promises that it is the attributed cause of.
    blamed: int

    @property
    def firmware(self) -> str:
        """Revisions in the order of time: ``A1, B2``."""
        revisions = (drive.firmware for run in self.runs for drive in run.drives if drive.name == self.last.name)
        return " → ".join(dict.fromkeys(revisions))

    def health(self, name: str) -> float | None:
        """Return a figure of its last health reading that has one."""
        readings = (subject.number(run.health.get(self.last.identity, {}).get(name)) for run in reversed(self.runs))
        return next((value for value in readings if value is not None), None)


def drives(runs: Iterable[RunView]) -> list[DriveHistory]:
    """Return the drives: those that are blamed most first, then the most tested.

    Two makers may use the same serial number, so the model is a part of a drive's name.
    """
    of_drive: dict[tuple[str, str], list[RunView]] = {}
    last: dict[tuple[str, str], RunDrive] = {}
    blamed: Counter[tuple[str, str]] = Counter()
    for run in runs:
        causes = [each.cause for each in _broken(run) if each.cause and each.cause.culprit.is_drive]
        guilty = Counter(shown(serial) for cause in causes for serial in cause.drives)
        for drive in run.drives:
            of_drive.setdefault(drive.name, []).append(run)
            last[drive.name] = drive
            blamed[drive.name] += guilty[drive.serial]
    histories = [DriveHistory(tuple(tested), last[name], blamed[name]) for name, tested in of_drive.items()]
    return sorted(histories, key=lambda drive: (-drive.blamed, -len(drive.runs), drive.last.serial))


def margins(promises: Iterable[FigureRow]) -> dict[str, list[FigureRow]]:
    """Return the worst margin of each claim in each run; claims with the least margin first."""
    worst: dict[tuple[str, str], FigureRow] = {}
    for row in promises:
        known = worst.setdefault((row.claim, row.run), row)
        if percent(row) < percent(known):
            worst[row.claim, row.run] = row
    of_claim: dict[str, list[FigureRow]] = {}
    for row in worst.values():
        of_claim.setdefault(row.claim, []).append(row)
    return dict(sorted(of_claim.items(), key=lambda each: (min(map(percent, each[1])), each[0])))


def percent(row: FigureRow) -> float:
    return math.inf if row.margin_percent is None else row.margin_percent


def outcomes(promises: Iterable[FigureRow]) -> Mapping[tuple[str, Product], Counter[str]]:
    """Return the outcomes of each claim of each product, by product and in the order of the claims."""
    known = [claim.value for claim in Claim]
    counts: dict[tuple[str, Product], Counter[str]] = {}
    for row in promises:
        counts.setdefault((row.claim, (row.model, row.firmware)), Counter())[row.verdict] += 1
    ranks = {claim: known.index(claim) if claim in known else len(known) for claim, _ in counts}
    return dict(sorted(counts.items(), key=lambda each: (each[0][1], ranks[each[0][0]])))


def causes(runs: Iterable[RunView]) -> Counter[str]:
    """Return the number of broken promises by their attributed cause."""
    return Counter(each.cause.subject for run in runs for each in _broken(run) if each.cause)


def _broken(run: RunView) -> Iterator[Evidence]:
    return (each.evidence for each in run.judged if each.evidence.is_broken)
