"""What a run of the program has left: its folder, JUnit's file and what it said."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from junitparser import JUnitXml, Properties, TestCase

from pytest_ssdqual.report.run_folder import transcript
from pytest_ssdqual.report.run_folder.reader import Record, read_records


@dataclass(frozen=True, slots=True)
class Folder:
    """A run folder."""

    path: Path

    def records(self, kind: str, since: int = 0) -> list[Record]:
        """Of one kind, without the first lines: those of earlier sessions."""
        return [record for record in islice(read_records(self.path), since, None) if record.kind == kind]

    @property
    def is_readable(self) -> bool:
        """Whether every line of the journal is a whole record."""
        return (self.path / "records.jsonl").read_bytes().count(b"\n") == len(list(read_records(self.path)))

    def transcript(self) -> list[dict[str, object]]:
        return list(transcript.read(self.path))

    def commands(self, *prefix: str) -> list[dict[str, object]]:
        """Transcribed commands that begin so."""

        def begins(line: dict[str, object]) -> bool:
            argv = line["argv"]
            return isinstance(argv, list) and tuple(argv[: len(prefix)]) == prefix

        return [line for line in self.transcript() if begins(line)]

    def manifest(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.path / "manifest.json").read_text())
        return read

    def is_sealed(self) -> bool:
        """Whether ``sha256sum`` finds every file as it was when the run ended."""
        argv = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
        return subprocess.run(argv, cwd=self.path, capture_output=True, check=False).returncode == 0


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended."""

    status: int
    #: Standard output and error, as a CI's log shows them.
    output: str
    junit: Path
    root: Path
    #: Lines that were in the journal before, if the run was resumed.
    since: int = 0

    @property
    def folder(self) -> Folder:
        """The newest run folder."""
        return Folder(max(self.root.iterdir()))

    def records(self, kind: str) -> list[Record]:
        """Of this session."""
        return self.folder.records(kind, self.since)

    def cases(self) -> dict[str, TestCase]:
        """JUnit's testcases by name; the file must be well-formed."""
        return {case.name: case for suite in JUnitXml.fromfile(str(self.junit)) for case in suite}

    def properties(self, name: str) -> dict[str, str]:
        """Of one testcase."""
        found = self.cases()[name].iterchildren(Properties)  # type: ignore[no-untyped-call]
        return {each.name: each.value for properties in found for each in properties}

    def results(self) -> dict[str, list[str]]:
        """Of each testcase, what it has: ``failure: sentence``, ``error: …``, ``skipped: …``; nothing if it passed."""
        return {
            name: [f"{result._tag}: {result.message}" for result in case.result] for name, case in self.cases().items()
        }
