"""Measurements rebuilt from their records and fio's own output, so that a resumed run need not make them again.

The rule of the module: what it gives back equals what was measured, histograms, intervals and all; what cannot be
proven to is not given back. So fio's output is read again and its figures are held against the record.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pytest_ssdqual.qual import safe_text, strict_json
from pytest_ssdqual.qual.measured.environment import ProcessEnvironment
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Look, Measured, Run
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import SteadyRule
from pytest_ssdqual.qual.strict_json import conforming
from pytest_ssdqual.qual.workload.rounds import Loop, LoopResult
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.resume.array_state import inheritance
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.reader import Record, read_records
from pytest_ssdqual.rig.fio import output
from pytest_ssdqual.rig.fio.output import StatusReader
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.resume.checkpoint import Inheritance, ResultKey

#: Figures of a run's record that its output must give again, to the last bit.
FIGURES = ("ios", "iops", "bytes_per_s", "mean_latency_ns", "max_latency_ns", "counted_s", "round_iops")


#: What ``Journal.keep`` calls a file.
NAME = re.compile(r"[a-z]+/[\w,:+=][\w.,:+=-]*", re.ASCII)
#: fio's output is read in pieces: that of hours is gigabytes when it is unpacked.
PIECE_BYTES = 1 << 20
#: A file of ours unpacks to 5 to 40 times its size, of an idle drive to 100; a bomb to 1,000.
MOST_UNPACKED_TIMES = 300


class Forgotten(ValueError):
    """A measurement cannot be rebuilt; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """fio's output files of a run folder, and the digests they had when they were written."""

    folder: Path
    digests: Mapping[str, str] = field(default_factory=dict)

    def require(self, raw: str) -> BinaryIO:
        """The file, open and as packed as it is; ``Forgotten`` if it is missing or not what was written.

        A record names files of the run folder and no others, whatever it says.
        """
        if not NAME.fullmatch(raw):
            raise Forgotten(f"{safe_text.line(raw, 80)} is no file of a run folder")
        try:
            folder = self.folder / raw.partition("/")[0]
            if folder.is_symlink():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            file = open(safe_files.open_regular(self.folder / raw), "rb")  # noqa: PTH123, SIM115 (a descriptor, given on)
        except OSError as error:
            raise Forgotten(f"{raw} cannot be read: {error.strerror or error}") from error
        digest = self.digests.get(raw)
        if digest is not None and hashlib.file_digest(file, "sha256").hexdigest() != digest:
            file.close()
            raise Forgotten(f"{raw} is not the file that was written (its SHA-256 differs)")
        file.seek(0)
        return file

    def run(self, noted: Mapping[str, Any], workload: Workload) -> Run:
        """The run with this summary, as fio's output tells it; ``Forgotten`` if they do not agree."""
        raw = str(noted["raw"])
        look = conforming(Look(**noted["look"])) if "look" in noted else None
        reader = StatusReader(output.MOST_DOCUMENTS if look else None)
        try:
            with self.require(raw) as packed, gzip.open(packed) as file:
                most_bytes = PIECE_BYTES + MOST_UNPACKED_TIMES * os.fstat(packed.fileno()).st_size
                while (data := file.read(PIECE_BYTES)) and file.tell() <= most_bytes:
                    reader.feed(data)
            if data:
                raise Forgotten(f"{raw} is no output of fio: it unpacks to over {MOST_UNPACKED_TIMES} times its size")
            read = reader.whole()
        except (OSError, EOFError, zlib.error, InvalidMeasurement) as error:
            raise Forgotten(f"{raw} is damaged: {error}") from error
        geometry = Geometry.parse(noted["geometry"])
        return Run(
            workload=workload,
            geometry=geometry,
            members=tuple(_text(each) for each in strict_json.array(noted["members"])),
            intervals=read.intervals,
            ramp_s=strict_json.number(noted["ramp_s"]),
            window_s=strict_json.number(noted["window_s"]),
            rounds=len(strict_json.array(noted["round_iops"])),
            raw=raw,
            seen=conforming(ProcessEnvironment.from_record(seen)) if (seen := noted.get("seen")) else None,
            parts=read.parts if geometry.is_side_by_side else (),
            reports=read.of_target,
            part_reports=read.reports if geometry.is_side_by_side and read.parts else (),
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
    rule = conforming(SteadyRule(**facts["rule"]))
    return Saturation(
        run, strict_json.count(facts, "capacity_bytes"), rule, strict_json.number(facts["gate_capacities"])
    )


def _loop(facts: Mapping[str, Any], shelf: Shelf) -> LoopResult:
    loop = Loop.from_record(facts["asked"])
    rounds = tuple(
        tuple(
            _agreeing(shelf.run(noted, workload).condensed(), noted)
            for noted, workload in zip(cells, loop.workloads, strict=True)
        )
        for cells in facts["rounds"]
    )
    return LoopResult(Geometry.parse(facts["geometry"]), loop, rounds, conforming(SteadyRule(**facts["rule"])))


def _rebuild(facts: Mapping[str, Any], shelf: Shelf) -> Rebuild:
    return Rebuild(
        geometry=Geometry.parse(facts["geometry"]),
        seconds=strict_json.number(facts["seconds"]),
        bytes_per_member=strict_json.count(facts, "bytes_per_member"),
        foreground=_measured({**facts["foreground"], "asked": facts["asked"]}, shelf),
        mismatches=strict_json.count(facts, "mismatches"),
        damage=safe_text.line(_text(facts["damage"])),
        resolution_s=strict_json.number(facts["resolution_s"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Forgotten("its record is damaged: words are missing")
    return value


def _agreeing(run: Run, noted: Mapping[str, Any]) -> Run:
    """``run``, if its figures are those of the record: they were made by the same arithmetic of the same numbers."""
    found = run.summary()
    if any(found[name] != noted[name] for name in FIGURES):
        raise Forgotten(f"{run.raw} gives {found['iops']} IOPS where {noted['iops']} were noted")
    return run


BUILDERS: Mapping[str, tuple[str, Builder]] = {
    "measured": ("workload", _measured),
    "explored": ("workload", _measured),
    "explored_longer": ("workload", _measured),
    "confirmed": ("workload", _measured),
    "saturation": ("workload", _saturation),
    "loop": ("loop", _loop),
    "rebuild": ("workload", _rebuild),
}


@dataclass(slots=True)
class Recollection:
    """A ``Memory`` of the measurements that a run folder had when this was made."""

    shelf: Shelf
    #: Told of each measurement that has to be made again although there is a record of it, and why.
    forgotten: Callable[[ResultKey, str], None] = lambda key, why: None
    _noted: dict[ResultKey, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        folder: Path,
        records: Sequence[Record],
        *,
        sums: Mapping[str, str],
        forgotten: Callable[[ResultKey, str], None] = lambda key, why: None,
    ) -> Recollection:
        """From its events; ``sums`` are digests of its files where they are known, ``forgotten`` as the field.

        Every file is read once, now: what is damaged is told, and planned to be measured again.
        """
        ran = (each.facts for each in records if each.kind == "ran" and {"raw", "sha256"} <= set(each.facts))
        digests = {str(facts["raw"]): str(facts["sha256"]) for facts in ran}
        memory = cls(Shelf(folder, {**sums, **digests}), forgotten)
        memory._noted = {key: dict(each.facts) for each in records for key in _keys(each)}
        for key, facts in list(memory._noted.items()):
            try:
                for raw in _raws(facts):
                    memory.shelf.require(raw).close()
            except Forgotten as error:
                memory._forget(key, str(error))
        return memory

    def __len__(self) -> int:
        """How many measurements it has."""
        return len(self._noted)

    def has(self, key: ResultKey) -> bool:
        """See ``Memory.has``."""
        return key in self._noted

    def recall(self, key: ResultKey) -> object | None:
        """See ``Memory.recall``; what turns out to be damaged is told and forgotten."""
        if key not in self._noted:
            return None
        _, build = BUILDERS[key.kind]
        try:
            return build(self._noted[key], self.shelf)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
            self._forget(key, str(error) if isinstance(error, ValueError) else f"its record is damaged: {error!r}")
            return None

    def inheritance(self) -> Inheritance | None:
        """See ``Memory.inheritance``; as the records are now: what was left running was stopped since."""
        return inheritance(read_records(self.shelf.folder))

    def _forget(self, key: ResultKey, why: str) -> None:
        del self._noted[key]
        self.forgotten(key, why)


def _keys(record: Record) -> Iterable[ResultKey]:
    """The measurement that a record is about, if it is about one."""
    if record.kind in BUILDERS:
        name, _ = BUILDERS[record.kind]
        try:
            yield ResultKey(record.kind, Geometry.parse(str(record.facts["geometry"])), str(record.facts[name]))
        except (KeyError, ValueError):
            return


def _raws(noted: object) -> Iterable[str]:
    """Every file that a record names, however deep."""
    if isinstance(noted, Mapping):
        for name, value in noted.items():
            if name == "raw" and isinstance(value, str):
                yield value
            else:
                yield from _raws(value)
    elif isinstance(noted, list):
        for value in noted:
            yield from _raws(value)
