"""Manifests of which a test says only what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.report.run_folder.journal import read_document
from pytest_ssdqual.report.run_folder.manifest import Document, Manifest
from pytest_ssdqual.rig.drives.topology import Drive

WHOLE = Manifest(
    run_id="20260101T000000Z-1",
    started="2026-01-01T00:00:00+00:00",
    spec=Document("acme", "# a sheet"),
    protocol=Document("snia", "# a protocol"),
    acceptance=True,
    bays=(),
    sessions=(),
    ended="2026-01-01T01:00:00+00:00",
    exit_status=0,
)
DRIVE = plain(Drive("/dev/sdx", "sdx", None, None, None, None, 480 * 10**9, 512, 4096, False, "nvme"))


def whole(said: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a manifest with these fields."""
    found: dict[str, Any] = {**WHOLE.to_record(), **said}
    ends = {name: found[name] for name in ("started", "ended", "exit_status")}
    session = {"command_line": [], "versions": found.pop("versions", {}), "differences": [], **ends}
    found["sessions"] = [{**session, **each} for each in found["sessions"] or [{}]]
    for name in ("spec", "protocol"):
        found[name] = found[name] and {"sha256": "", "text": "", **found[name]}
    judged = {"hardware_tests": 0, "judged": 0, "in_error": 0, "nothing_judged": "", "not_run": 0}
    found["judged"] = found["judged"] and judged | found["judged"]
    found["bays"] = [
        {"facts": {}, "sheets": {}, "machine": "", **bay, "drives": list(_drives(bay))} for bay in found["bays"]
    ]
    return found


def manifest(**said: Any) -> Manifest:  # noqa: ANN401 (JSON)
    """The same as it is read."""
    return read_document(Manifest, Path("manifest.json"), whole(said))


def _drives(bay: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The drives of a bay, each named by its identity where it has no serial number."""
    for drive in bay.get("drives", ()):
        fields = dict(drive)
        identity = fields.pop("identity", None)
        yield {**DRIVE, "wwn": identity if identity != fields.get("serial") else None, **fields}
