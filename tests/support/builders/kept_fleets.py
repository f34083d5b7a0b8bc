"""Run folders with promises as bays leave them, sealed, and fleets of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ssdqual.qual.measured.judgeable import Subject
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.claims import Claim, Limit
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.verdict.verdict import judge
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.evidence.evidence import Evidence, of_verdict
from pytest_ssdqual.report.fleet import folder as fleets
from pytest_ssdqual.report.fleet.folder import FleetBay
from pytest_ssdqual.report.run_folder import checksums
from support.builders.kept_runs import READS, Kept, append
from support.builders.manifests import whole


@dataclass(frozen=True)
class KeptPromise:
    """A figure that is held against a limit; its interval is ``half_percent`` to either side."""

    value: float
    bound: float = 10_000
    claim: Claim = Claim.STEADY_IOPS
    geometry: str = "raid5x4"
    workload: Workload = READS
    half_percent: float = 1.0

    def evidence(self) -> Evidence:
        half = self.value * self.half_percent / 100
        estimate = Estimate(self.value, self.value - half, self.value + half, 10, self.claim.unit)
        subject = Subject((Geometry.parse(self.geometry),), (self.workload,))
        limit = Limit(self.claim.direction, self.bound, self.claim.unit, "acme.toml promise[1]")
        return replace(of_verdict(judge(self.claim, subject, estimate, limit)), protocol="snia", acceptance=True)


@dataclass(frozen=True)
class KeptBay:
    """A run of one bay that ended."""

    name: str
    promises: Sequence[KeptPromise]
    errors: Sequence[str] = ()
    started: str = "2026-03-01T12:00:00.000+00:00"
    ended: str | None = "2026-03-01T13:00:00.000+00:00"
    serials: Sequence[str] = ()
    protocol: str = "fill = 1\n"
    acceptance: bool = True
    #: Instead of what a manifest has.
    changed: Mapping[str, object] | None = None
    facts: Mapping[str, str] | None = None

    def keep(self, folder: Path) -> Path:
        """The folder, sealed as a run leaves it."""
        serials = self.serials or [f"{self.name}-{number}" for number in (1, 2)]
        facts = self.facts or {"machine_id": self.name, "fio": "3.33", "kernel": "6.1"}
        kept = Kept([], started=self.started, serials=serials, protocol=self.protocol, facts=facts)
        kept.keep(folder)
        lines = [{"kind": "verdict", "test": self._test(each), **plain(each.evidence())} for each in self.promises]
        lines += [{"kind": "error", "test": f"s/test_a.py::test_b[{self.name}-x]", "message": e} for e in self.errors]
        for line in lines:
            append(folder, time=self.started, **line)
        manifest = replace(kept.manifest(folder.name), acceptance=self.acceptance).to_record()
        status = 1 if self.errors or not all(each.evidence().outcome == "pass" for each in self.promises) else 0
        session = {**manifest["sessions"][0], "ended": self.ended, "exit_status": status}  # type: ignore[index]
        manifest["bays"][0]["machine"] = f"root@{self.name}"  # type: ignore[index]
        manifest |= {"ended": self.ended, "exit_status": status, "sessions": [session], **(self.changed or {})}
        (folder / "manifest.json").write_text(json.dumps(whole(manifest)))
        (folder / "fio").mkdir(exist_ok=True)
        (folder / "fio" / "run.json.gz").write_bytes(b"fio")
        (folder / "SHA256SUMS").write_bytes(checksums.text(folder))
        return folder

    def _test(self, promise: KeptPromise) -> str:
        return f"suites/test_it.py::test_{promise.claim}[{self.name}-{promise.geometry}-{promise.workload}]"


def keep_fleet(root: Path, bays: Sequence[KeptBay], *never: FleetBay, ended: bool = True) -> Path:
    """A fleet folder with these bays, and others that were never begun."""
    asked = [FleetBay(bay.name, fleets.folder_of(bay.name), f"root@{bay.name}", {"rack": "A"}) for bay in bays]
    made = fleets.create(root, "3f9a2c77", [*asked, *never])
    for bay in bays:
        bay.keep(made.path / "bays" / bay.name)
    if ended:
        fleets.write(fleets.closed(made, "2026-03-01T13:00:00.000+00:00", 0))
    return made.path
