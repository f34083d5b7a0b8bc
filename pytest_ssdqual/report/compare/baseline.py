"""A baseline: an earlier run whose figures are the 100 % of promises, and the conditions under which it may be used.

Its measurements are rebuilt from fio's output and judged by the same code as those of this run, so that nothing differs
but the drives. A measurement that cannot be proven to be the recorded one is treated as missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pytest_ssdqual.qual.measured.judgeable import J
from pytest_ssdqual.qual.spec.claims import Scope
from pytest_ssdqual.qual.stats.estimate import CannotJudge
from pytest_ssdqual.qual.workload.rounds import RoundsResult
from pytest_ssdqual.report.fleet.folder import called
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.resume.resume import FIXED, NOTED, Present, changes, other_text
from pytest_ssdqual.report.run_folder import checksums, safe_files
from pytest_ssdqual.report.run_folder.journal import RECORDS
from pytest_ssdqual.report.run_folder.manifest import Manifest
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.rig.drives.topology import Drive, is_same_firmware
from pytest_ssdqual.rig.resume.checkpoint import ResultKey

#: Number of rebuilt measurements in the cache; tests about one measurement follow each other.
KEPT = 8


class NoBaseline(ValueError):
    """The run cannot be a baseline; each line of the message is one reason."""


class Missing(CannotJudge):
    """The baseline has no such figure; the message says why."""


@dataclass(slots=True)
class Baseline:
    """An earlier run."""

    folder: Path
    manifest: Manifest
    memory: Recollection
    #: Digest of the records, as they are now.
    sha256: str
    #: Reason why a recorded measurement cannot be used.
    damaged: dict[ResultKey, str] = field(default_factory=dict)
    _rebuilt: dict[ResultKey, object] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Baseline:
        """Read a run folder; ``NoBaseline`` if it has no measurement."""
        try:
            safe_files.require_ours(folder)
            records = tuple(read_records(folder))
            digest = hashlib.sha256((folder / RECORDS).read_bytes()).hexdigest()
            manifest = Manifest.read(folder)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise NoBaseline(f"{folder} cannot be a baseline: {why}") from error
        damaged: dict[ResultKey, str] = {}
        memory = Recollection.of(folder, records, sums=checksums.read(folder), forgotten=damaged.__setitem__)
        if not manifest.bays or not len(memory):
            raise NoBaseline(f"{folder} cannot be a baseline: it has no measurement that can be read")
        return cls(folder, manifest, memory, digest, damaged)

    @property
    def name(self) -> str:
        """Name of the run folder."""
        return called(self.folder)

    def to_record(self) -> dict[str, str]:
        """Return the entry of the manifest."""
        return {"run": self.name, "sha256": self.sha256}

    def refusals(self, now: Present) -> list[str]:
        """Return the reasons why a run with these means must not be compared with it, a sentence each."""
        was = self.manifest.protocol
        found = [
            # Another name for the same text is no difference.
            *(f"{each}, so it was measured in another way" for each in other_text("protocol", was, now.protocol)),
            *_other_models(self._drives, now.drives),
        ]
        return [f"{self.name} cannot be the baseline: {each}" for each in found]

    def remarks(self, now: Present) -> tuple[str, ...]:
        """Return what else than the product may cause a difference, and what the baseline lacks."""
        found = [f"the baseline is {self.name}, {len(self.memory)} measurements, SHA-256 {self.sha256[:12]}…"]
        facts = self.manifest.bays[0].facts
        if now.facts:
            found += changes({"machine_id": "machine", **FIXED, **NOTED}, facts, now.facts)
        then, today = ({drive.identity for drive in drives} for drives in (self._drives, now.drives))
        if then != today:
            new = len(today - then)
            are = "is" if new == 1 else "are"
            found.append(f"{len(then & today)} of its {len(then)} drives are in this run; {new} {are} new")
        compared = {"firmware": "firmware", "size": "size in bytes", "block": "logical block in bytes"}
        if _is_same_firmware(self._drives, now.drives):
            del compared["firmware"]
        found += changes(compared, *map(_facts, (self._drives, now.drives)))
        found += [f"its {key.geometry} {key.what} cannot be used: {why}" for key, why in self.damaged.items()]
        return (found[0], *(f"baseline: {each}" for each in found[1:]))

    def like(self, judged: J, loop: RoundsResult | None = None) -> J:
        """Return the same measurement of the baseline; with ``loop`` that of the same cell of its rounds.

        ``Missing`` if it has none, or one of another workload with the same name.
        """
        return judged.counterpart(self._same if loop is None else partial(self._cell, loop))

    def _cell(self, loop: RoundsResult, one: J) -> J:
        if one.kind is not Scope.RUN:
            return self._same(one)
        found = self._recall(ResultKey("loop", loop.geometry, str(loop.loop)))
        if not isinstance(found, RoundsResult) or found.loop != loop.loop or not found:
            raise Missing(f"in the baseline {self.name} the loop {loop.loop} was another one, or not steady")
        return self._alike(found.measured(one.subject.workload), one)

    def _same(self, one: J) -> J:
        kind = "measured" if one.kind is Scope.RUN else one.kind.value
        return self._alike(self._recall(ResultKey(kind, one.subject.geometry, str(one.subject.workload))), one)

    def _alike(self, found: object, one: J) -> J:
        if not isinstance(found, type(one)) or found.subject.workload != one.subject.workload:
            raise Missing(f"in the baseline {self.name} another workload is called {one.subject.workload}")
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
        """Number of drives."""
        return len(self._drives)

    @property
    def identities(self) -> tuple[str, ...]:
        """Identities of the drives."""
        return tuple(each.identity for each in self._drives)

    @property
    def _drives(self) -> tuple[Drive, ...]:
        return self.manifest.bays[0].drives


def _other_models(then: Sequence[Drive], now: Sequence[Drive]) -> list[str]:
    old, new = ({drive.model for drive in drives} for drives in (then, now))
    if old == new:
        return []
    names = [", ".join(sorted(model or "unknown" for model in models)) for models in (new, old)]
    return [f"these drives are {names[0]} and its were {names[1]}; ssdqual compare shows two products side by side"]


def _is_same_firmware(then: Sequence[Drive], now: Sequence[Drive]) -> bool:
    """Return whether each revision of either side may be one of the other side."""
    old, new = ({drive.firmware for drive in drives} for drives in (then, now))
    return all(any(is_same_firmware(one, other) for other in new) for one in old) and all(
        any(is_same_firmware(one, other) for other in old) for one in new
    )


def _facts(drives: Sequence[Drive]) -> Mapping[str, str]:
    """Return facts of the drives whose change is reported, each value once."""
    values = {
        "firmware": {drive.firmware or "" for drive in drives},
        "size": {str(drive.size_bytes) for drive in drives},
        "block": {str(drive.logical_block_bytes) for drive in drives},
    }
    return {name: ", ".join(sorted(filter(None, each))) for name, each in values.items()}
