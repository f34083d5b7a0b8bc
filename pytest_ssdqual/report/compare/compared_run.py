"""A run prepared for comparison: each figure once, and the circumstances.

A run folder may be damaged or foreign. What cannot be read is counted and never guessed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim, Direction
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew
from pytest_ssdqual.qual.verdict import multiplicity, ratio
from pytest_ssdqual.qual.verdict.multiplicity import Widening
from pytest_ssdqual.report.evidence.evidence import About, Evidence
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.manifest import HealthRecord, Manifest
from pytest_ssdqual.report.run_folder.reader import Record, RunReader
from pytest_ssdqual.report.run_summary import run_view
from pytest_ssdqual.report.run_summary.overview import overview
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.tables import span
from pytest_ssdqual.rig.fio.load import LoadRecord

#: Several drives side by side, however many: of a lot it is the drive that is compared.
DRIVES = "drive"
#: Of a drive's part in evidence: the figure of that drive. Of claims about the drives' likeness there is none.
VALUE, LOW, HIGH = "value", "low", "high"
#: Records that something is taken from.
KINDS = ("run_started", "measured", "load", *run_view.KINDS)


@dataclass(frozen=True, slots=True, order=True)
class FigureKey:
    """Identity of a figure, equal in every run that has it; all text, as in the records."""

    claim: str
    #: ``drive`` of drives side by side.
    geometries: tuple[str, ...]
    workloads: tuple[str, ...]
    #: Evidence about a loop's cell is not that about a plain run of the same workload.
    about: str
    group: str

    @property
    def geometry(self) -> str:
        return span(self.geometries)

    @property
    def workload(self) -> str:
        return span(self.workloads)

    @property
    def place(self) -> str:
        """The figure without its claim."""
        return f"{self.geometry} {self.workload}{f' ({self.group})' if self.group else ''}"

    @property
    def record(self) -> dict[str, object]:
        return {**plain(self), "geometry": self.geometry, "workload": self.workload}


@frozen
class ComparedFigure:
    """A figure of a run."""

    #: Of drives side by side that of the typical one, whose interval is about the drives.
    estimate: Estimate
    direction: Direction
    #: Of drives side by side, by serial number.
    drives: Mapping[str, float]
    outcome: str
    #: That of the drive that is reported, or of the array.
    reported: Estimate
    #: ``reported`` for shares of its error rate.
    wider: tuple[Widening, ...]
    #: Of drives side by side: that of each drive whose interval has an end, by serial number.
    alone: Mapping[str, Estimate]
    #: What is 100 % of a relative figure; empty for all others.
    percent_of: str
    #: True for a count that a verdict is about: drives of a lot or an inspection, errors. It is no estimate.
    is_counted: bool

    def at(self, share: float) -> Estimate:
        """Return the estimate with an interval for this share of the error rate."""
        if not self.drives:
            return multiplicity.at(self.estimate, self.wider, share)
        return ratio.typical(self.drives.values(), self.estimate.unit, ConfidenceLevel(self.estimate.confidence, share))

    def of_one(self, share: float) -> Estimate:
        """Return the estimate of one of several drives side by side, from its rounds; else as ``at``."""
        return multiplicity.at(self.reported, self.wider, share)

    def of_drive(self, serial: str) -> ComparedFigure:
        """Return the figure of one of several drives; ``KeyError`` without an interval of that drive.

        Its interval widens with the share of the error rate as that of the drive that is reported, which has as many
        rounds.
        """
        own = self.alone[serial]
        wider = multiplicity.rescaled(self.reported, self.wider, own)
        return replace(self, estimate=own, drives={}, wider=wider, reported=own, alone={})


@frozen
class ComparedRun:
    """A run with its figures and circumstances."""

    #: Its folder's name, as it is printed; of a bay with that of its fleet.
    name: str
    folder: Path
    manifest: Manifest
    #: UTC, ISO 8601; when its first record was written, if the manifest does not say.
    started: str
    figures: Mapping[FigureKey, ComparedFigure]
    #: Definitions of workloads, by id, as JSON; what a profile consists of is not in its id.
    asked: Mapping[str, str]
    #: Health figures, by drive: how much the drives had been used when the run began.
    health: Mapping[str, HealthRecord]
    #: Records that could not be read, see ``RunReader.unreadable``.
    unreadable: int
    #: Engine and jobs of fio as a phrase; empty if they were not recorded.
    load: str = ""
    #: States of the drives' write caches as a phrase; empty if they were not recorded.
    write_caches: str = ""
    #: The run's verdict, of a pass with its coverage.
    verdict: str = ""
    #: A sentence for each reason against the drives or the run.
    causes: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """Identity of the run, equal for copies."""
        return subject.identity(self.manifest, self.folder)

    @property
    def has_ended(self) -> bool:
        """True if the run was complete: not running, killed or interrupted."""
        return bool(self.manifest.ended) and self.manifest.exit_status in (0, 1)

    @classmethod
    def read(cls, folder: Path) -> ComparedRun:
        """Read a run folder; ``OSError`` without records."""
        story = RunReader.read(folder, *KINDS)
        view = run_view.RunView.of(story)
        figures: list[tuple[Evidence, ComparedFigure]] = []
        unreadable = story.unreadable
        for judged in story.judged:
            try:
                figures.append((judged, _figure(judged)))
            except ValueError:
                unreadable += 1
        first = story.records[0].time if story.records else ""
        return cls(
            name=fleet.called(folder),
            folder=folder,
            manifest=story.manifest,
            started=safe_text.line(story.manifest.started or first),
            figures=_by_key(figures),
            asked=_asked(story.of("measured")),
            health=_health(story),
            unreadable=unreadable,
            load=next((each.sentence for each in story.contents(LoadRecord, "load")), ""),
            write_caches=view.write_caches,
            verdict=view.verdict.headline,
            causes=tuple(each.sentence for each in overview(view).causes),
        )


def key_of(evidence: Evidence) -> FigureKey:
    """Return the identity of the figure of this evidence."""
    geometries = evidence.geometries
    if _of_drives(evidence):
        geometries = (DRIVES,)
    return FigureKey(evidence.claim, geometries, evidence.workloads, evidence.about.value, evidence.group)


def _by_key(found: Iterable[tuple[Evidence, ComparedFigure]]) -> dict[FigureKey, ComparedFigure]:
    """Return the figures by their keys; of several numbers of drives side by side the most are ``DRIVES``."""
    figures: dict[FigureKey, ComparedFigure] = {}
    geometries: dict[FigureKey, tuple[str, ...]] = {}
    for evidence, figure in sorted(found, key=lambda each: len(each[1].drives)):
        key = key_of(evidence)
        if geometries.setdefault(key, evidence.geometries) != evidence.geometries:
            figures[replace(key, geometries=geometries[key])] = figures[key]
            geometries[key] = evidence.geometries
        figures[key] = figure
    return figures


def _of_drives(evidence: Evidence) -> dict[str, float]:
    """Return each drive's own figure, of drives side by side that were judged one by one."""
    return {part.name: value for part in evidence.members if (value := part.figures.get(VALUE)) is not None}


def _is_of_drives(evidence: Evidence) -> bool:
    """Return whether the drives' figures are of the claim: a lot, an inspection and a drive's health count drives."""
    return evidence.about is not About.LOT and evidence.claim in set(Claim)


def _figure(evidence: Evidence) -> ComparedFigure:
    """Return a figure; ValueError if its interval does not contain it."""
    drives = _of_drives(evidence) if _is_of_drives(evidence) else {}
    reported = estimate = Estimate(
        value=evidence.value,
        low=evidence.ends[0],
        high=evidence.ends[1],
        n=evidence.n,
        unit=evidence.unit,
        is_reading=evidence.is_reading,
        confidence=evidence.confidence,
        basis=evidence.basis,
    )
    if drives:
        try:
            estimate = ratio.typical(drives.values(), evidence.unit, ConfidenceLevel(evidence.confidence))
        except TooFew:
            drives = {}
    return ComparedFigure(
        estimate, evidence.direction, drives, evidence.outcome.value, reported, evidence.wider,
        _alone(evidence, reported) if drives else {}, evidence.percent_of, not _is_of_drives(evidence),
    )  # fmt: skip


def _alone(evidence: Evidence, reported: Estimate) -> dict[str, Estimate]:
    """Return the estimate of each drive whose interval has an end; ValueError if it does not contain the figure.

    None of readings: those of two runs differ anyway, and a rack has thousands of drives' readings.
    """
    found: dict[str, Estimate] = {}
    if reported.is_reading:
        return found
    for part in evidence.members:
        value, low, high = (part.figures.get(name) for name in (VALUE, LOW, HIGH))
        if value is not None and (low is not None or high is not None):
            ends = -math.inf if low is None else low, math.inf if high is None else high
            found[part.name] = replace(reported, value=value, low=ends[0], high=ends[1])
    return found


def _asked(measured: Iterable[Record]) -> dict[str, str]:
    return {
        str(record.facts.get("workload")): json.dumps(record.facts["asked"], sort_keys=True)
        for record in measured
        if record.facts.get("asked")
    }


def _health(story: RunReader) -> dict[str, HealthRecord]:
    """Return the first reading of the drives' health."""
    readings = reversed([*story.contents(HealthRecord, "health")])
    return {each.drive: each for each in readings if each.when == "before"}
