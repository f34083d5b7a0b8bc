"""What a run writes of itself when it begins: the spec, the protocol and the manifest."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.spec import spec as specs
from pytest_ssdqual.qual.spec import toml
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.manifest import BayEntry, Document, DriveEntry, Manifest
from pytest_ssdqual.rig.machine.machine import utc_now

if TYPE_CHECKING:
    from pytest_ssdqual.plugin.session.state import Qualification


def manifest(run: Qualification, journal: Journal, extra: Mapping[str, str]) -> Manifest:
    """Of a run that begins; ``extra`` are facts that others have found out."""
    bay = run.bay
    spec, protocol = documents(run)
    return Manifest(
        run_id=journal.path.name,
        command_line=tuple(sys.argv),
        started=utc_now(),
        spec=spec,
        protocol=protocol,
        acceptance=run.acceptance,
        bays=(BayEntry(bay.machine, {**bay.facts, **extra}, [DriveEntry(drive) for drive in bay.drives]),),
        remarks=bay.remarks,
        baseline=run.baseline.to_record() if run.baseline else None,
        expected=run.expected,
    )


def documents(run: Qualification) -> tuple[Document, Document]:
    """The spec and the protocol, as they are now."""
    spec = Document(run.spec.key, toml.text(run.spec_source, specs.FOLDER))
    return spec, Document(run.protocol.name, toml.text(run.settings.protocol, protocols.FOLDER))
