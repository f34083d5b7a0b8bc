"""Run folders as runs leave them, made of figures that a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import About, Finding, Part, of_observation
from pytest_ssdqual.report.run_folder.journal import SCHEMA
from pytest_ssdqual.report.run_folder.manifest import BayEntry, Document, Manifest, Session
from pytest_ssdqual.rig.drives.topology import Drive

READS = Workload("randread", "4k", 8)


def append(folder: Path, **line: object) -> None:
    """Add a line to the records of a run."""
    head = {"schema": SCHEMA, "time": "2026-03-01T12:30:00Z", "writer": "main"}
    with (folder / "records.jsonl").open("a") as file:
        file.write(json.dumps({**head, **line}) + "\n")


@dataclass(frozen=True)
class KeptMeasurement:
    """One figure of a run; its interval is ``half_percent`` to either side."""

    value: float
    claim: Claim = Claim.STEADY_IOPS
    geometry: str = "raid5x4"
    workload: Workload = READS
    half_percent: float = 1.0
    n: int = 10
    is_reading: bool = False
    #: Of drives side by side.
    drives: Mapping[str, float] = field(default_factory=dict)
    #: Interval of each of them, to either side; None without ends.
    drives_percent: float | None = None
    #: The value is in per cent of that of this workload.
    relative_to: str = ""
    #: The claim of a lot's drives, which the value counts, and what was decided about it.
    lot: str = ""
    outcome: Finding = Finding.OBSERVED

    def record(self) -> dict[str, object]:
        half = abs(self.value) * self.half_percent / 100
        estimate = Estimate(
            self.value, self.value - half, self.value + half, self.n, self.claim.unit, is_reading=self.is_reading
        )
        subject = Subject((Geometry.parse(self.geometry),), (self.workload,))
        found = replace(of_observation(self.claim, subject, estimate), protocol="quick")
        parts = tuple(Part(name, self._drive(each), Finding.OBSERVED) for name, each in self.drives.items())
        found = replace(found, members=parts)
        if self.outcome is not Finding.OBSERVED:
            found = replace(found, outcome=self.outcome, limit=4.0, source="acme", margin_percent=0.0)
        if self.relative_to:
            found = replace(found, unit=Unit.PERCENT, relative_to=self.relative_to)
        if self.lot:
            found = replace(found, about=About.LOT, group=self.lot)
        return {"test": f"t.py::{self.claim}[{subject}]", **plain(found)}

    def _drive(self, value: float) -> dict[str, float | None]:
        half = None if self.drives_percent is None else value * self.drives_percent / 100
        return {"value": value, "low": half and value - half, "high": half and value + half}


@dataclass(frozen=True)
class Kept:
    """A run."""

    figures: Sequence[KeptMeasurement]
    started: str = "2026-03-01T12:00:00.000+00:00"
    model: str = "ACME 9"
    firmware: str = "A1"
    protocol: str = "fill = 1\n"
    facts: Mapping[str, str] = field(default_factory=lambda: {"machine_id": "m1", "fio": "3.33", "kernel": "6.1"})
    serials: Sequence[str] = ("S1", "S2", "S3", "S4")
    #: Instead of what the workload itself says.
    asked: Mapping[str, object] = field(default_factory=dict)

    def keep(self, folder: Path) -> Path:
        folder.mkdir(parents=True, mode=0o700)
        lines: list[dict[str, object]] = [{"kind": "run_started", "machine": "host"}]
        for each in self.figures:
            asked = {**plain(each.workload), **self.asked}
            lines.append(
                {"kind": "measured", "geometry": each.geometry, "workload": str(each.workload), "asked": asked}
            )
            lines.append({"kind": "observation", **each.record()})
        head = {"schema": SCHEMA, "time": self.started, "writer": "main"}
        text = "".join(json.dumps({**head, **line}, separators=(",", ":")) + "\n" for line in lines)
        (folder / "records.jsonl").write_text(text)
        (folder / "manifest.json").write_text(json.dumps(self.manifest(folder.name).to_record()))
        return folder

    def manifest(self, name: str) -> Manifest:
        drives = tuple(self._drive(serial) for serial in self.serials)
        return Manifest(
            run_id=name, started=self.started, sessions=(Session(("pytest",), self.started),),
            spec=Document("acme", "spec"), protocol=Document("quick", self.protocol), acceptance=False,
            bays=(BayEntry("host", dict(self.facts), drives, {}),),
        )  # fmt: skip

    def _drive(self, serial: str) -> Drive:
        return Drive(
            f"/dev/{serial}", serial, self.model, serial, None, self.firmware, 480_000_000_000, 512, 4096, False,
            "nvme", revision=self.firmware,
        )  # fmt: skip
