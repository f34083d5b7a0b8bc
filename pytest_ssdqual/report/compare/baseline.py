"""An earlier run as the 100 % of promises: which figures it has, and whether they may be held against at all.

The rule of the module: its measurements are rebuilt from fio's own output and judged by the same code as those of now,
so that nothing differs but the drives. What cannot be proven to be what was measured is not there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.qual.workload.rounds import LoopResult
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.fleet.folder import called
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.resume.resume import FIXED, TOLD, Present
from pytest_ssdqual.report.run_folder import checksums, safe_files
from pytest_ssdqual.report.run_folder.journal import MANIFEST, RECORDS
from pytest_ssdqual.report.run_folder.manifest import Document, Manifest
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.resume.checkpoint import ResultKey

#: Measurements that are kept rebuilt; tests about one measurement follow each other.
KEPT = 8


class NoBaseline(ValueError):
    """A run cannot be held against; each line of the message is a sentence that says why."""


class Missing(CannotJudge):
    """The baseline has no such figure; the sentence says why."""


@dataclass(slots=True)
class Baseline:
    """An earlier run."""

    folder: Path
    manifest: Manifest
    memory: Recollection
    #: Of its records, as they are now.
    sha256: str
    #: Why what has a record is not there, by measurement.
    damaged: dict[ResultKey, str] = field(default_factory=dict)
    _rebuilt: dict[ResultKey, object] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Baseline:
        """``NoBaseline`` if it is no run of ours that has measured anything."""
        try:
            safe_files.require_ours(folder)
            records = tuple(read_records(folder))
            digest = hashlib.sha256((folder / RECORDS).read_bytes()).hexdigest()
            manifest = Manifest.from_record(strict_json.table(strict_json.read_json((folder / MANIFEST).read_bytes())))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise NoBaseline(f"{folder} cannot be a baseline: {why}") from error
        damaged: dict[ResultKey, str] = {}
        memory = Recollection.of(folder, records, sums=checksums.read(folder), forgotten=damaged.__setitem__)
        if not manifest.bays or not len(memory):
            raise NoBaseline(f"{folder} cannot be a baseline: nothing that it measured is left")
        return cls(folder, manifest, memory, digest, damaged)

    @property
    def name(self) -> str:
        """Of its folder."""
        return called(self.folder)

    def to_record(self) -> dict[str, str]:
        """For the manifest of the run that is judged by it."""
        return {"run": self.name, "sha256": self.sha256}

    def refusals(self, now: Present) -> list[str]:
        """Why nothing of it may be held against a run with these means, a sentence each."""
        found = [
            *_other_text("protocol", self.manifest.protocol, now.protocol),
            *_other_models(self._drives, now.drives),
        ]
        return [f"{self.name} cannot be the baseline: {each}" for each in found]

    def remarks(self, now: Present) -> tuple[str, ...]:
        """What must be known of it: what else than the product may make its figures differ, and what it lacks."""
        found = [f"the baseline is {self.name}, {len(self.memory)} measurements, SHA-256 {self.sha256[:12]}…"]
        facts = self.manifest.bays[0].facts
        if now.facts:
            found += _changes({"machine_id": "machine", **FIXED, **TOLD}, facts, now.facts)
        then, today = ({drive.identity for drive in drives} for drives in (self._drives, now.drives))
        if then != today:
            found.append(f"of its {len(then)} drives {len(then & today)} are here, and {len(today - then)} others")
        found += _changes(
            {"firmware": "firmware", "size": "size in bytes", "block": "logical block in bytes"},
            *map(_facts, (self._drives, now.drives)),
        )
        found += [f"its {key.geometry} {key.what} cannot be used: {why}" for key, why in self.damaged.items()]
        return (found[0], *(f"baseline: {each}" for each in found[1:]))

    def like(self, judged: object, loop: LoopResult | None = None) -> object:
        """The same of the baseline: a measurement (with ``loop`` its cell), several, a saturation, a rebuild.

        ``Missing`` if it has none, or one of another workload of the same name.
        """
        if isinstance(judged, Measured) and loop is not None:
            found = self._recall(ResultKey("loop", loop.geometry, str(loop.loop)))
            if not isinstance(found, LoopResult) or found.loop != loop.loop or not found:
                raise Missing(f"in the baseline {self.name} the loop {loop.loop} was another one, or not steady")
            return found.measured(judged.workload)
        if isinstance(judged, Measured):
            return self._same("measured", judged)
        if isinstance(judged, Saturation):
            return self._same("saturation", judged)
        if isinstance(judged, Rebuild):
            return self._same("rebuild", judged)
        if isinstance(judged, Sequence):
            return [self.like(each, loop) for each in judged]
        raise TypeError(f"nothing like a {type(judged).__name__} is in a run folder")

    def _same(self, kind: str, judged: Measured | Saturation | Rebuild) -> object:
        workload = _workload(judged)
        found = self._recall(ResultKey(kind, judged.geometry, str(workload)))
        if not isinstance(found, Measured | Saturation | Rebuild) or _workload(found) != workload:
            raise Missing(f"in the baseline {self.name} another workload is called {workload}")
        return found

    def _recall(self, key: ResultKey) -> object:
        if key not in self._rebuilt:
            found = self.memory.recall(key)
            if found is None:
                why = f": {self.damaged[key]}" if key in self.damaged else ""
                raise Missing(f"the baseline {self.name} has no measurement of {key.geometry} {key.what}{why}")
            while len(self._rebuilt) >= KEPT:
                del self._rebuilt[next(iter(self._rebuilt))]
            self._rebuilt[key] = found
        return self._rebuilt[key]

    @property
    def drives(self) -> int:
        """Number of its drives."""
        return len(self._drives)

    @property
    def identities(self) -> tuple[str, ...]:
        """Identities of its drives."""
        return tuple(each.identity for each in self._drives)

    @property
    def _drives(self) -> tuple[Drive, ...]:
        return tuple(entry.drive for entry in self.manifest.bays[0].drives)


def _workload(measured: Measured | Saturation | Rebuild) -> Workload:
    """Of a rebuild what ran meanwhile."""
    return measured.foreground.workload if isinstance(measured, Rebuild) else measured.workload


def _other_text(called: str, then: Document, now: Document) -> list[str]:
    """Another name of the same text is the same."""
    for number, (old, new) in enumerate(zip_longest(then.text.splitlines(), now.text.splitlines()), 1):
        if old != new:
            said, was = ("missing" if line is None else f'"{line.strip()}"' for line in (new, old))
            return [f"line {number} of the {called} is {said} now and was {was}, so it was measured in another way"]
    return []


def _other_models(then: Sequence[Drive], now: Sequence[Drive]) -> list[str]:
    old, new = ({drive.model for drive in drives} for drives in (then, now))
    if old == new:
        return []
    names = [", ".join(sorted(model or "unknown" for model in models)) for models in (new, old)]
    return [f"these drives are {names[0]} and its were {names[1]}; ssdqual compare shows two products side by side"]


def _facts(drives: Sequence[Drive]) -> Mapping[str, str]:
    """What of the drives is told if it differs, each value once."""
    values = {
        "firmware": {drive.firmware or "" for drive in drives},
        "size": {str(drive.size_bytes) for drive in drives},
        "block": {str(drive.logical_block_bytes) for drive in drives},
    }
    return {name: ", ".join(sorted(filter(None, each))) for name, each in values.items()}


def _changes(names: Mapping[str, str], then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"the {called} is {now.get(name) or 'unknown'} now and was {then.get(name) or 'unknown'}"
        for name, called in names.items()
        if (then.get(name) or "") != (now.get(name) or "")
    ]
