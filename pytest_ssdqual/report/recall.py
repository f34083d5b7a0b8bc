"""Measurements rebuilt from their records and fio's own output, so that a resumed run need not make them again.

The rule of the module: what it gives back equals what was measured, histograms, intervals and all; what cannot be
proven to is not given back. So fio's output is read again and its figures are held against the record.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ssdqual.qual.geometry import Geometry
from pytest_ssdqual.qual.look import Look
from pytest_ssdqual.qual.loop import Loop, LoopResult
from pytest_ssdqual.qual.measurement import Measured, Run
from pytest_ssdqual.qual.protocol import SteadyRule
from pytest_ssdqual.qual.rebuild import Rebuild
from pytest_ssdqual.qual.saturation import Saturation
from pytest_ssdqual.qual.seen import Seen
from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.report.inheritance import inheritance
from pytest_ssdqual.report.records import Record, read_records
from pytest_ssdqual.rig.fio import output
from pytest_ssdqual.rig.fio.output import Reader
from pytest_ssdqual.rig.machine import InvalidMeasurement
from pytest_ssdqual.rig.memory import Inheritance, Key

#: Figures of a run's record that its output must give again, to the last bit.
FIGURES = ("ios", "iops", "bytes_per_s", "mean_latency_ns", "max_latency_ns", "counted_s", "round_iops")


#: fio's output is read in pieces: that of hours is gigabytes when it is unpacked.
PIECE_BYTES = 1 << 20


class Forgotten(ValueError):
    """A measurement cannot be rebuilt; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """fio's output files of a run folder, and the digests they had when they were written."""

    folder: Path
    digests: Mapping[str, str] = field(default_factory=dict)

    def require(self, raw: str) -> bytes:
        """The file, as packed as it is; ``Forgotten`` if it is missing or not what was written."""
        try:
            packed = (self.folder / raw).read_bytes()
        except OSError as error:
            raise Forgotten(f"{raw} cannot be read: {error.strerror or error}") from error
        digest = self.digests.get(raw)
        if digest is not None and hashlib.sha256(packed).hexdigest() != digest:
            raise Forgotten(f"{raw} is not the file that was written (its SHA-256 differs)")
        return packed

    def run(self, noted: Mapping[str, Any], workload: Workload) -> Run:
        """The run with this summary, as fio's output tells it; ``Forgotten`` if they do not agree."""
        raw = str(noted["raw"])
        look = Look(**noted["look"]) if "look" in noted else None
        reader = Reader(output.MOST_DOCUMENTS if look else None)
        try:
            with gzip.open(io.BytesIO(self.require(raw))) as file:
                while data := file.read(PIECE_BYTES):
                    reader.feed(data)
            read = reader.whole()
        except (OSError, EOFError, zlib.error, InvalidMeasurement) as error:
            raise Forgotten(f"{raw} is damaged: {error}") from error
        geometry = Geometry.parse(noted["geometry"])
        return Run(
            workload=workload,
            geometry=geometry,
            members=tuple(noted["members"]),
            intervals=read.intervals,
            ramp_s=noted["ramp_s"],
            window_s=noted["window_s"],
            rounds=len(noted["round_iops"]),
            raw=raw,
            seen=Seen.from_record(seen) if (seen := noted.get("seen")) else None,
            parts=read.parts if geometry.is_side_by_side else (),
            look=look,
        )


#: A record and the files it names → the value; ``KeyError``, ``TypeError`` or ``ValueError`` if it cannot be.
Builder = Callable[[Mapping[str, Any], Shelf], object]


def _measured(facts: Mapping[str, Any], shelf: Shelf) -> Measured:
    workload = Workload.from_record(facts["asked"])
    return Measured(tuple(_agreeing(shelf.run(noted, workload).condensed(), noted) for noted in facts["runs"]))


def _saturation(facts: Mapping[str, Any], shelf: Shelf) -> Saturation:
    noted = facts["run"]
    run = _agreeing(shelf.run(noted, Workload.from_record(facts["asked"])), noted)
    return Saturation(run, facts["capacity_bytes"], SteadyRule(**facts["rule"]), facts["gate_capacities"])


def _loop(facts: Mapping[str, Any], shelf: Shelf) -> LoopResult:
    loop = Loop.from_record(facts["asked"])
    rounds = tuple(
        tuple(
            _agreeing(shelf.run(noted, workload).condensed(), noted)
            for noted, workload in zip(cells, loop.workloads, strict=True)
        )
        for cells in facts["rounds"]
    )
    return LoopResult(Geometry.parse(facts["geometry"]), loop, rounds, SteadyRule(**facts["rule"]))


def _rebuild(facts: Mapping[str, Any], shelf: Shelf) -> Rebuild:
    return Rebuild(
        geometry=Geometry.parse(facts["geometry"]),
        seconds=facts["seconds"],
        bytes_per_member=facts["bytes_per_member"],
        foreground=_measured({**facts["foreground"], "asked": facts["asked"]}, shelf),
        mismatches=facts["mismatches"],
        damage=facts["damage"],
        resolution_s=facts["resolution_s"],
    )


def _agreeing(run: Run, noted: Mapping[str, Any]) -> Run:
    """``run``, if its figures are those of the record: they were made by the same arithmetic of the same numbers."""
    found = run.summary()
    if any(found[name] != noted[name] for name in FIGURES):
        raise Forgotten(f"{run.raw} gives {found['iops']} IOPS where {noted['iops']} were noted")
    return run


BUILDERS: Mapping[str, tuple[str, Builder]] = {
    "measured": ("workload", _measured),
    "saturation": ("workload", _saturation),
    "loop": ("loop", _loop),
    "rebuild": ("workload", _rebuild),
}


@dataclass(slots=True)
class Recollection:
    """A ``Memory`` of the measurements that a run folder had when this was made."""

    shelf: Shelf
    #: Told of each measurement that has to be made again although there is a record of it, and why.
    forgotten: Callable[[Key, str], None] = lambda key, why: None
    _noted: dict[Key, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        folder: Path,
        records: Sequence[Record],
        *,
        sums: Mapping[str, str],
        forgotten: Callable[[Key, str], None] = lambda key, why: None,
    ) -> Recollection:
        """From its events; ``sums`` are digests of its files where they are known, ``forgotten`` as the field.

        Every file is read once, now: what is damaged is told, and planned to be measured again.
        """
        digests = {str(each.facts["raw"]): str(each.facts["sha256"]) for each in records if each.kind == "ran"}
        memory = cls(Shelf(folder, {**sums, **digests}), forgotten)
        memory._noted = {key: dict(each.facts) for each in records for key in _keys(each)}
        for key, facts in list(memory._noted.items()):
            try:
                for raw in _raws(facts):
                    memory.shelf.require(raw)
            except Forgotten as error:
                memory._forget(key, str(error))
        return memory

    def __len__(self) -> int:
        """How many measurements it has."""
        return len(self._noted)

    def has(self, key: Key) -> bool:
        """See ``Memory.has``."""
        return key in self._noted

    def recall(self, key: Key) -> object | None:
        """See ``Memory.recall``; what turns out to be damaged is told and forgotten."""
        if key not in self._noted:
            return None
        _, build = BUILDERS[key.kind]
        try:
            return build(self._noted[key], self.shelf)
        except (KeyError, TypeError, ValueError) as error:
            self._forget(key, str(error) if isinstance(error, ValueError) else f"its record is damaged: {error!r}")
            return None

    def inheritance(self) -> Inheritance | None:
        """See ``Memory.inheritance``; as the records are now: what was left running was stopped since."""
        return inheritance(read_records(self.shelf.folder))

    def _forget(self, key: Key, why: str) -> None:
        del self._noted[key]
        self.forgotten(key, why)


def _keys(record: Record) -> Iterable[Key]:
    """The measurement that a record is about, if it is about one."""
    if record.kind in BUILDERS:
        name, _ = BUILDERS[record.kind]
        try:
            yield Key(record.kind, Geometry.parse(str(record.facts["geometry"])), str(record.facts[name]))
        except (KeyError, ValueError):
            return


def _raws(plain: object) -> Iterable[str]:
    """Every file that a record names, however deep."""
    if isinstance(plain, Mapping):
        for name, value in plain.items():
            if name == "raw" and isinstance(value, str):
                yield value
            else:
                yield from _raws(value)
    elif isinstance(plain, list):
        for value in plain:
            yield from _raws(value)
