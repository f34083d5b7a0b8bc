"""Saved findings of workload searches, from run to run: a JSON file for each drive model, firmware and spec.

A finding only determines where a search begins; it judges nothing. An unreadable file counts as none, unless it has
another schema (``OtherSchema``). If findings cannot be saved, the run reports that and continues.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import OtherSchema, document, load
from pytest_ssdqual.rig.machine.machine import utc_now

#: Maximum number of findings; each costs the next search a measurement.
MOST = 20
#: Maximum size of a file.
MOST_BYTES = 1 << 20


@frozen
class SearchSubject:
    """Product and spec that findings are about."""

    model: str
    firmware: str
    #: Name of the spec.
    spec: str

    @property
    def file_name(self) -> str:
        """Readable name, unique for each subject."""
        digest = hashlib.sha256("\0".join((self.model, self.firmware, self.spec)).encode("utf-8", "surrogatepass"))
        readable = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.model} {self.spec}")[:60].strip("-").lower()
        return f"{readable or 'drive'}-{digest.hexdigest()[:16]}.json"


@frozen
class StoredFinding:
    """A workload that failed a promise, and again in the second measurement."""

    workload: Workload
    claim: str
    #: Name of the array.
    geometry: str
    #: True if no simpler neighbour fails.
    is_simplest: bool
    #: Name of the run folder.
    run: str
    time: str = ""


@frozen
class Findings:
    """Content of a file of saved findings, latest first."""

    subject: SearchSubject
    found: tuple[StoredFinding, ...]


@frozen
class Store:
    """A folder of saved findings, created when needed."""

    folder: Path

    def recall(self, subject: SearchSubject) -> tuple[StoredFinding, ...]:
        """Return the findings, latest first; empty if none can be read. ``OtherSchema``."""
        path = self.folder / subject.file_name
        try:
            content = load(Findings, path, MOST_BYTES)
        except OtherSchema:
            raise
        except (OSError, ValueError):
            return ()
        return content.found if content.subject == subject else ()

    def keep(self, subject: SearchSubject, found: StoredFinding) -> None:
        """Save a finding as the latest; ``OSError`` if that fails."""
        known = [each for each in self.recall(subject) if each.workload != found.workload]
        self._write(subject, [replace(found, time=utc_now()), *known][:MOST])

    def forget(self, subject: SearchSubject, workload: Workload) -> None:
        """Remove a workload that passes now; ``OSError`` as ``keep``."""
        known = self.recall(subject)
        if left := [each for each in known if each.workload != workload]:
            self._write(subject, left)
        elif known:
            (self.folder / subject.file_name).unlink(missing_ok=True)

    def _write(self, subject: SearchSubject, found: Sequence[StoredFinding]) -> None:
        if not self.folder.exists():
            safe_files.make_root(self.folder.parent)
            with contextlib.suppress(FileExistsError):
                safe_files.make_folder(self.folder)
        safe_files.require_ours(self.folder)
        content = document(Findings(subject, tuple(found)))
        safe_files.write_whole(self.folder / subject.file_name, content)
