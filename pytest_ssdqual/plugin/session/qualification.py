"""What one bay's run qualifies, and how: drives, spec, protocol and options, fixed before tests are collected."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_ssdqual.plugin.bay.bay import Bay
from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.session.resume import ResumedRun, budget_s
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.notification import without_secrets
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.spec import Spec
from pytest_ssdqual.report.compare.baseline import Baseline
from pytest_ssdqual.report.resume.resume import Present
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.manifest import BayEntry, Document, ExpectedDrives, Manifest, Session, describe
from pytest_ssdqual.report.terminal.summary import Header
from pytest_ssdqual.rig.machine.machine import utc_now
from pytest_ssdqual.rig.resume.checkpoint import EarlierResults


@frozen
class Qualification:
    """The settings of one bay's run; ``state.BayRun`` has its state."""

    #: The options.
    settings: Settings
    protocol: Protocol
    spec: Spec
    bay: Bay
    #: None in a run that only collects and writes nothing.
    journal: Journal | None
    #: The run that this session resumes.
    resumed: ResumedRun | None
    #: The earlier run that promises may be in per cent of.
    baseline: Baseline | None
    #: Name of the bay in a run of several; empty in a run of one.
    name: str
    #: Path or shipped name of each sheet that the spec consists of.
    sources: tuple[str, ...]
    #: Number of drives that the bay must have; None if only a pattern determined it.
    expected: ExpectedDrives | None = None

    @property
    def memory(self) -> EarlierResults:
        """Measurements of earlier sessions."""
        return self.resumed.memory if self.resumed else EarlierResults()

    @property
    def present(self) -> Present:
        """Facts that measurements of this session depend on."""
        return Present(self.bay.machine, self.bay.facts, self.bay.drives, *self.documents, self.defaults)

    @property
    def documents(self) -> tuple[Document, Document]:
        """The current texts of the spec and the protocol."""
        texts = [(source, toml.text(source, specs.FOLDER)) for source in self.sources]
        whole = texts[0][1] if len(texts) == 1 else "\n".join(f"# ---- {source}\n{text}" for source, text in texts)
        protocol = toml.text(self.settings.protocol, protocols.FOLDER)
        return Document(self.spec.key, whole), Document(self.protocol.name, protocol)

    @property
    def defaults(self) -> Document | None:
        """The promises of the package, for claims that the spec does not mention; None if they are the spec."""
        if self.spec.key == specs.DEFAULT:
            return None
        return Document(specs.DEFAULT, toml.text(specs.DEFAULT, specs.FOLDER))

    @property
    def acceptance(self) -> bool:
        """True if the protocol is for acceptance."""
        return self.protocol.acceptance

    @property
    def budget_s(self) -> float | None:
        """Seconds that the run may take in all of its sessions; None without a budget."""
        return budget_s(self.settings, self.resumed)

    @property
    def header(self) -> Header:
        """Data of the header: the drives, the protocol, the spec and the run folder."""
        return Header(
            models=tuple(drive.model for drive in self.bay.drives),
            machine=self.bay.machine,
            protocol=self.protocol.name,
            acceptance=self.acceptance,
            spec=self.spec.title,
            run_folder=self.journal.path if self.journal else None,
            remarks=self.bay.remarks,
            expected=describe(self.expected),
        )

    @property
    def sheets(self) -> Mapping[str, str]:
        """Key of each drive's sheet, with the class of the drive, by the drive's identity."""
        own = {drive.identity: self.spec.of(drive.name) for drive in self.bay.drives}
        return {
            identity: f"{spec.key} ({spec.drive_class.label})" if spec.drive_class else spec.key
            for identity, spec in own.items()
        }

    @property
    def without_sheet(self) -> tuple[str, ...]:
        """Models of the drives that are judged by the promises for any drive, each once."""
        own = ((drive, self.spec.of(drive.name)) for drive in self.bay.drives)
        return tuple(dict.fromkeys(drive.model or "unknown" for drive, spec in own if spec.key == specs.DEFAULT))

    def manifest(self, journal: Journal, extra: Mapping[str, str]) -> Manifest:
        """Return the manifest of a run that begins; ``extra`` are facts of the hook ``pytest_ssdqual_facts``."""
        bay = self.bay
        spec, protocol = self.documents
        started = utc_now()
        return Manifest(
            run_id=journal.path.name,
            started=started,
            spec=spec,
            protocol=protocol,
            acceptance=self.acceptance,
            bays=(BayEntry(bay.machine, {**bay.facts, **extra}, tuple(bay.drives), self.sheets),),
            sessions=(Session(without_secrets(sys.argv), started),),
            remarks=bay.remarks,
            baseline=self.baseline.to_record() if self.baseline else None,
            expected=self.expected,
            budget_s=self.budget_s,
            defaults=self.defaults,
            without_sheet=self.without_sheet,
            required_claims=self.settings.required_claims,
        )

    def to_worker(self, glance_s: float) -> dict[str, Any]:
        """Return what an xdist worker needs beyond its command line, as plain types.

        ``glance_s`` is the period of live statistics.
        """
        journal = str(self.journal.path) if self.journal else ""
        baseline = str(self.baseline.folder) if self.baseline else ""
        known = {"journal": journal, "resumed": bool(self.resumed), "baseline": baseline, "name": self.name}
        known |= {"run_root": str(self.settings.run_root), "protocol": self.settings.protocol, "glance_s": glance_s}
        known |= {"specs": list(self.sources), "is_lab": self.settings.devices.lab is not None}
        return {"bay": plain(replace(self.bay, switch=None)), **known}
