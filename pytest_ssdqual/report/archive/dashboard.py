"""View of the dashboard: products, broken promises, margins, drives and runs of many run folders; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.report.archive.runs import ArchivedDrive, ArchivedRun, shown
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding


@dataclass(frozen=True, slots=True, order=True)
class ModelFirmware:
    """A model with a revision of its firmware, as runs have tested it."""

    model: str
    firmware: str

    def __str__(self) -> str:
        return f"{self.model}, {self.firmware}"


@dataclass(frozen=True, slots=True)
class ProductHistory:
    """All runs of a product, by their start; at least one."""

    product: ModelFirmware
    runs: tuple[ArchivedRun, ...]

    def count(self, word: str) -> int:
        return sum(run.view.verdict.word == word for run in self.runs)

    @property
    def drives(self) -> int:
        return len({drive.name for run in self.runs for drive in run.drives})


@dataclass(frozen=True, slots=True)
class MarginPoint:
    """The verdict of a claim that is closest to its limit, or misses it most, in one run."""

    run: ArchivedRun
    evidence: Evidence

    @property
    def percent(self) -> float:
        return self.evidence.margin_percent if self.evidence.margin_percent is not None else math.inf


@dataclass(frozen=True, slots=True)
class DriveHistory:
    """All runs of one drive, by their start; at least one."""

    serial: str
    runs: tuple[ArchivedRun, ...]
    last: ArchivedDrive
    #: Broken promises that it is the attributed cause of.
    blamed: int

    @property
    def firmware(self) -> str:
        """Revisions in the order of time: ``A1, B2``."""
        seen = [drive.firmware for run in self.runs for drive in run.drives if drive.name == self.last.name]
        return " → ".join(dict.fromkeys(seen))

    def health(self, name: str) -> float | None:
        """Return a figure of its last health reading that has one."""
        for run in reversed(self.runs):
            value = getattr(run.health.get(self.last.identity), name, None)
            if value is not None:
                return float(value)
        return None


def products(runs: Sequence[ArchivedRun]) -> tuple[ProductHistory, ...]:
    """Return the products in the order of their names."""
    found: dict[ModelFirmware, list[ArchivedRun]] = {}
    for run in runs:
        found.setdefault(product_of(run), []).append(run)
    return tuple(ProductHistory(product, tuple(found[product])) for product in sorted(found))


def product_of(run: ArchivedRun) -> ModelFirmware:
    return ModelFirmware(run.models, run.firmware)


def drives(runs: Sequence[ArchivedRun]) -> tuple[DriveHistory, ...]:
    """Return the drives: those that are blamed most first, then the most tested.

    Two makers may use the same serial number, so the model is a part of a drive's name.
    """
    of_drive: dict[tuple[str, str], list[ArchivedRun]] = {}
    last: dict[tuple[str, str], ArchivedDrive] = {}
    blamed: Counter[tuple[str, str]] = Counter()
    for run in runs:
        causes = [each.cause for each in _broken(run) if each.cause and each.cause.culprit.is_drive]
        guilty = Counter(shown(serial) for cause in causes for serial in cause.drives)
        for drive in run.drives:
            of_drive.setdefault(drive.name, []).append(run)
            last[drive.name] = drive
            blamed[drive.name] += guilty[drive.serial]
    found = [DriveHistory(name[0], tuple(of_drive[name]), last[name], blamed[name]) for name in of_drive]
    return tuple(sorted(found, key=lambda each: (-each.blamed, -len(each.runs), each.serial)))


def margins(runs: Sequence[ArchivedRun]) -> dict[str, tuple[MarginPoint, ...]]:
    """Return the worst margin of each promised claim in each run; claims with the least margin first."""
    found: dict[str, list[MarginPoint]] = {}
    for run in runs:
        worst: dict[str, MarginPoint] = {}
        for judged in run.view.judged:
            point = MarginPoint(run, judged.evidence)
            if judged.evidence.is_promised:
                known = worst.get(judged.evidence.claim)
                worst[judged.evidence.claim] = point if known is None else min(known, point, key=_percent)
        for claim, point in worst.items():
            found.setdefault(claim, []).append(point)
    ordered = sorted(found, key=lambda claim: (min(map(_percent, found[claim])), claim))
    return {claim: tuple(found[claim]) for claim in ordered}


def _percent(point: MarginPoint) -> float:
    return point.percent


def outcomes(history: ProductHistory) -> dict[str, Counter[Finding]]:
    """Return the outcomes of each promised claim, in the order of the claims."""
    known = [claim.value for claim in Claim]
    found: dict[str, Counter[Finding]] = {}
    for run in history.runs:
        for judged in run.view.judged:
            if judged.evidence.is_promised:
                found.setdefault(judged.evidence.claim, Counter())[judged.evidence.outcome] += 1
    return dict(sorted(found.items(), key=lambda each: known.index(each[0]) if each[0] in known else len(known)))


def causes(runs: Iterable[ArchivedRun]) -> Counter[str]:
    """Return the number of broken promises by their attributed cause."""
    return Counter(each.cause.subject for run in runs for each in _broken(run) if each.cause)


def _broken(run: ArchivedRun) -> Iterator[Evidence]:
    return (each.evidence for each in run.view.judged if each.evidence.is_broken)


def period(runs: Sequence[ArchivedRun]) -> tuple[datetime, datetime] | None:
    """Return the starts of the first and the last run."""
    return (runs[0].started, runs[-1].started) if runs else None
