"""What a run tells, in the form in which it is held against another: each figure once, and the circumstances.

The rule of the module: a run folder may be old, damaged or somebody else's. What cannot be read is counted, and never
guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.spec.claims import Direction
from pytest_ssdqual.qual.stats.estimate import ConfidenceLevel, Estimate, TooFew
from pytest_ssdqual.qual.verdict import multiplicity, ratio
from pytest_ssdqual.qual.verdict.multiplicity import Widening
from pytest_ssdqual.report.evidence.evidence import Evidence, unbounded
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.reader import Record, RunReader

#: Several drives side by side, however many: of a lot it is the drive that is compared.
DRIVES = "drive"
#: Of a drive's part in evidence: the figure of that drive. Of claims about the drives' likeness there is none.
VALUE = "value"
#: Records that something is taken from.
KINDS = ("run_started", "verdict", "observation", "measured", "health")


@dataclass(frozen=True, slots=True, order=True)
class FigureKey:
    """What a figure is of; the same in every run that has it. All of it is text, as it is in the records."""

    claim: str
    #: As tables name them: ``raid5x4``, ``raid5x3…x8``; ``drive`` of drives side by side.
    geometries: tuple[str, ...]
    workloads: tuple[str, ...]
    #: Evidence about a loop's cell is not that about a plain run of the same workload.
    about: str
    group: str

    @property
    def geometry(self) -> str:
        return self.geometries[0] if len(self.geometries) == 1 else f"{self.geometries[0]}…{self.geometries[-1]}"

    @property
    def workload(self) -> str:
        return self.workloads[0] if len(self.workloads) == 1 else f"{self.workloads[0]}…{self.workloads[-1]}"


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of one run."""

    #: Of drives side by side that of the typical one, whose interval is about the drives.
    estimate: Estimate
    direction: Direction
    #: Of drives side by side, by serial number.
    drives: Mapping[str, float]
    outcome: str
    published: float | None
    test: str
    #: Of one drive, or of the array: the estimate for shares of its error rate.
    wider: tuple[Widening, ...] = ()
    #: Of drives side by side: that of the one that was told, which ``wider`` is of.
    told: Estimate | None = None

    def at(self, share: float) -> Estimate:
        """The estimate, if only this share of its error rate may be spent on its interval."""
        if not self.drives:
            return multiplicity.at(self.estimate, self.wider, share)
        return ratio.typical(self.drives.values(), self.estimate.unit, ConfidenceLevel(self.estimate.confidence, share))

    def of_one(self, share: float) -> Estimate:
        """Of drives side by side that of one drive, whose interval is about its rounds; else as ``at``."""
        return multiplicity.at(self.told or self.estimate, self.wider, share)


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run."""

    #: Its folder's name, as it is printed; of a bay with that of its fleet.
    name: str
    folder: Path
    manifest: Mapping[str, object]
    #: UTC, ISO 8601; when its first record was written, if the manifest does not say.
    started: str
    figures: Mapping[FigureKey, ComparedFigure]
    #: Definitions of workloads, by id, as JSON; what a profile consists of is not in its id.
    asked: Mapping[str, str]
    #: Health figures, by drive: how much the drives had been used when the run began.
    health: Mapping[str, Mapping[str, object]]
    #: Verdicts that could not be read.
    unreadable: int

    @property
    def identity(self) -> str:
        """The same of a folder and its copies; of a run without a manifest its folder.

        A bay's run may be called as its bay is, in every fleet: when it was begun tells them apart.
        """
        run_id = self.manifest.get("run_id")
        return f"{run_id} {self.manifest.get('started')}" if run_id else str(self.folder.resolve())

    @property
    def has_ended(self) -> bool:
        """Whether all that was planned had its turn: not of a run that goes on, was killed or was interrupted."""
        return bool(self.manifest.get("ended")) and self.manifest.get("exit_status") in (0, 1)

    @classmethod
    def read(cls, folder: Path) -> ComparedRun:
        """``OSError`` if the folder has no records."""
        story = RunReader.read(folder, *KINDS)
        figures: dict[FigureKey, ComparedFigure] = {}
        unreadable = story.unreadable()
        for judged in story.evidence():
            try:
                figures[key_of(judged.evidence)] = _figure(judged.evidence, judged.test)
            except ValueError:
                unreadable += 1
        first = story.records[0].time if story.records else ""
        return cls(
            name=fleet.called(folder),
            folder=folder,
            manifest=story.manifest,
            started=safe_text.line(str(story.manifest.get("started") or first)),
            figures=figures,
            asked=_asked(story.of("measured")),
            health=_health(story.of("health")),
            unreadable=unreadable,
        )


def key_of(evidence: Evidence) -> FigureKey:
    """What the figure of this evidence is compared by."""
    geometries = evidence.geometries
    if _of_drives(evidence):
        geometries = (DRIVES,)
    return FigureKey(evidence.claim, geometries, evidence.workloads, evidence.about.value, evidence.group)


def _of_drives(evidence: Evidence) -> dict[str, float]:
    """Each drive's own figure, of drives side by side that are judged one by one."""
    return {part.name: value for part in evidence.members if (value := part.figure(VALUE)) is not None}


def _figure(evidence: Evidence, test: str) -> ComparedFigure:
    """ValueError if the interval does not hold its figure."""
    drives = _of_drives(evidence)
    told = estimate = Estimate(
        value=evidence.value,
        low=-unbounded(None) if evidence.low is None else evidence.low,
        high=unbounded(evidence.high),
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
    published = evidence.published.value if evidence.published else None
    return ComparedFigure(
        estimate, evidence.direction, drives, evidence.outcome.value, published, test, evidence.wider,
        told if drives else None,
    )  # fmt: skip


def _asked(measured: Iterable[Record]) -> dict[str, str]:
    return {
        str(record.facts.get("workload")): json.dumps(record.facts["asked"], sort_keys=True)
        for record in measured
        if record.facts.get("asked")
    }


def _health(noted: Iterable[Record]) -> dict[str, Mapping[str, object]]:
    """As it was first read."""
    found: dict[str, Mapping[str, object]] = {}
    for record in noted:
        if record.facts.get("when") == "before":
            found.setdefault(str(record.facts.get("drive")), record.facts)
    return found
