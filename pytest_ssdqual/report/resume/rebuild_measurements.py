"""Measurements rebuilt from records and fio's output, so that a resumed run does not repeat them.

A rebuilt measurement equals the original, histograms and intervals included. fio's output is parsed again and compared
with the record; a measurement that differs is measured again.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.explore.search import ProbedFigures, SearchRecord
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.integrity.read_back import ReadBack
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.result_records import (
    AloneRecord,
    CellRecord,
    LoopRecord,
    MeasuredRecord,
    RebuildRecord,
    SaturationRecord,
)
from pytest_ssdqual.qual.measured.run import Measured, Run, RunRecord, RunsRecord
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.measured.sweep import Ceiling, DrivesAlone
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.visits import Cell
from pytest_ssdqual.qual.workload.rounds import RoundsResult
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder import safe_files
from pytest_ssdqual.report.run_folder.journal import read_checkpoint
from pytest_ssdqual.report.run_folder.reader import Record
from pytest_ssdqual.rig.fio import output
from pytest_ssdqual.rig.fio.output import StatusReader
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.resume.checkpoint import Checkpoint, EarlierResults, ResultKey

#: File names of ``Journal.keep``.
NAME = re.compile(r"[a-z]+/[\w,:+=][\w.,:+=-]*", re.ASCII)
#: fio's output is read in pieces, as hours of it unpack to gigabytes.
PIECE_BYTES = 1 << 20
#: fio's output unpacks to 5 to 40 times its size, that of an idle drive to 100 times; a zip bomb to 1,000 times.
MOST_UNPACKED_TIMES = 300


class Forgotten(ValueError):
    """A measurement cannot be rebuilt; the message says why."""


@frozen
class Shelf:
    """fio's output files of a run folder, with the digests of the time when they were written."""

    folder: Path
    digests: Mapping[str, str] = field(default_factory=dict)

    def require(self, raw: str) -> BinaryIO:
        """Return the open, packed file; ``Forgotten`` if it is missing or has changed.

        Only files of the run folder are opened, whatever a record names.
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

    def run(self, noted: RunRecord, workload: Workload) -> Run:
        """Return the run of this record from fio's output; ``Forgotten`` without it."""
        raw, geometry = noted.raw, noted.geometry
        reader = StatusReader()
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
        if workload.burst_s:
            read = output.of_bursts(read, noted.window_s)
        return Run(
            workload=workload,
            geometry=geometry,
            members=noted.members,
            intervals=read.intervals,
            ramp_s=noted.ramp_s,
            window_s=noted.window_s,
            rounds=len(noted.round_iops),
            raw=raw,
            seen=noted.seen,
            parts=output.of_drives(read, geometry),
            spell_length_s=noted.spell_length_s,
        )


#: Exceptions that arithmetic on a damaged record or file may raise.
DAMAGED = (ValueError, TypeError, KeyError, IndexError, ArithmeticError)


def _runs(shelf: Shelf, records: Iterable[RunRecord], workload: Workload) -> tuple[Run, ...]:
    return tuple(_condensed(shelf, each, workload) for each in records)


def _measured(shelf: Shelf, noted: RunsRecord, workload: Workload) -> Measured:
    return Measured(_runs(shelf, noted.runs, workload), noted.visited)


def _cell(noted: CellRecord, shelf: Shelf) -> Cell:
    return Cell(_condensed(shelf, noted.run, noted.asked), noted.visit, noted.head, noted.written_before)


def _alone(noted: AloneRecord, shelf: Shelf) -> DrivesAlone:
    return DrivesAlone(tuple(_measured(shelf, each, noted.asked) for each in noted.drives))


def saturation(noted: SaturationRecord, shelf: Shelf) -> Saturation:
    """Return a saturation with every member's curve; ``ValueError`` without fio's output."""
    run = _agreeing(shelf.run(noted.run, noted.asked), noted.run)
    return Saturation(run, noted.capacity_bytes, noted.rule, noted.gate_capacities)


def _loop(noted: LoopRecord, shelf: Shelf) -> RoundsResult:
    rounds = tuple(
        tuple(_condensed(shelf, run, workload) for run, workload in zip(cells, noted.asked.workloads, strict=True))
        for cells in noted.rounds
    )
    after = tuple(
        _runs(shelf, runs, stimulus.workload) for runs, stimulus in zip(noted.after, noted.asked.after, strict=False)
    )
    return RoundsResult(noted.geometry, noted.asked, rounds, noted.rule, after)


def _rebuild(noted: RebuildRecord, shelf: Shelf) -> Rebuild:
    foreground = _measured(shelf, noted.foreground, noted.asked)
    return Rebuild(
        noted.geometry,
        noted.seconds,
        noted.bytes_per_member,
        foreground,
        noted.mismatches,
        noted.damage,
        noted.resolution_s,
    )


def _read_back(noted: ReadBack, shelf: Shelf) -> ReadBack:
    shelf.require(noted.raw).close()
    return noted


def _condensed(shelf: Shelf, noted: RunRecord, workload: Workload) -> Run:
    return _agreeing(shelf.run(noted, workload).condensed(), noted)


def _agreeing(run: Run, noted: RunRecord) -> Run:
    """Return ``run`` if its record equals the one in the journal, which the same arithmetic computed."""
    if run.record() != noted:
        raise Forgotten(f"{run.raw} gives {run.iops} IOPS where {noted.iops} were noted")
    return run


#: By the kind of a record: the key that names its subject (empty for bare drives), its dataclass, and the function that
#: rebuilds the result.
BUILDERS: Mapping[str, tuple[str, type[Any], Callable[[Any, Shelf], object]]] = {
    **dict.fromkeys(
        ("measured", "member", "explored", "explored_longer", "confirmed"),
        ("workload", MeasuredRecord, lambda noted, shelf: _measured(shelf, noted.summary, noted.asked)),
    ),
    "alone": ("workload", AloneRecord, _alone),
    "ceiling": ("workload", Ceiling, lambda noted, shelf: noted),
    "saturation": ("workload", SaturationRecord, saturation),
    "loop": ("loop", LoopRecord, _loop),
    "rebuild": ("workload", RebuildRecord, _rebuild),
    "read_back": ("", ReadBack, _read_back),
}


@dataclass(slots=True)
class Recollection(EarlierResults):
    """The ``EarlierResults`` of a run folder at the time of its creation."""

    shelf: Shelf
    #: Called with each recorded measurement that must be repeated, and the reason.
    forgotten: Callable[[ResultKey, str], None] = lambda key, why: None
    _noted: dict[ResultKey, Record] = field(default_factory=dict)
    #: Records of cells, in order of time.
    _cells: dict[ResultKey, list[Record]] = field(default_factory=dict)
    #: Keys of the searches that have ended. They are made again, of measurements that are recalled.
    _searched: frozenset[ResultKey] = frozenset()

    @classmethod
    def of(
        cls,
        folder: Path,
        records: Sequence[Record],
        *,
        sums: Mapping[str, str],
        forgotten: Callable[[ResultKey, str], None] = lambda key, why: None,
    ) -> Recollection:
        """Return the measurements of some records; ``sums`` are known digests, ``forgotten`` as the field.

        Every file is read once now; damaged ones are reported, and their measurements are planned again.
        """
        ran = (each.facts for each in records if each.kind == "ran" and {"raw", "sha256"} <= set(each.facts))
        digests = {str(facts["raw"]): str(facts["sha256"]) for facts in ran}
        memory = cls(Shelf(folder, {**sums, **digests}), forgotten)
        for record in records:
            for key in _cells(record):
                memory._cells.setdefault(key, []).append(record)
        memory._searched = frozenset(key for each in records for key in _searches(each))
        memory._noted = {key: each for each in records for key in _keys(each)}
        for key, record in list(memory._noted.items()):
            try:
                for raw in _raws(record.facts):
                    memory.shelf.require(raw).close()
            except Forgotten as error:
                memory._forget(key, str(error))
        return memory

    def __len__(self) -> int:
        """Return the number of measurements of drives and arrays."""
        return sum(key.kind != "ceiling" for key in self._noted)

    def has(self, key: ResultKey) -> bool:
        """See ``EarlierResults.has``."""
        return key in self._noted or key in self._searched

    def recall(self, key: ResultKey) -> object | None:
        """See ``EarlierResults.recall``; a damaged measurement is reported and dropped."""
        if key not in self._noted:
            return None
        _, kind, build = BUILDERS[key.kind]
        try:
            return build(self._noted[key].content(kind), self.shelf)
        except DAMAGED as error:
            self._forget(key, str(error))
            return None

    def cells(self, key: ResultKey) -> Sequence[Cell]:
        """See ``EarlierResults.cells``; damaged ones are reported and dropped.

        After one of the drives side by side was left out, earlier cells are of other drives.
        """
        found: list[Cell] = []
        for record in self._cells.get(key, ()):
            try:
                found.append(_cell(record.content(CellRecord), self.shelf))
            except DAMAGED as error:
                self.forgotten(key, f"one of its cells: {error}")
        return [each for each in found if each.run.members == found[-1].run.members]

    def left_array(self) -> Checkpoint | None:
        """See ``EarlierResults.left_array``; reads the file now, as leftovers may have been stopped since."""
        left = read_checkpoint(self.shelf.folder)
        return left if left and left.is_intact else None

    def _forget(self, key: ResultKey, why: str) -> None:
        del self._noted[key]
        self.forgotten(key, why)


def _cells(record: Record) -> Iterable[ResultKey]:
    """Yield the measurement in visits that a record is a cell of, if any."""
    facts = record.facts
    if record.kind == "cell":
        with suppress(KeyError, ValueError):
            yield ResultKey(str(facts["of"]), Geometry.parse(str(facts["geometry"])), str(facts["workload"]))


def _keys(record: Record) -> Iterable[ResultKey]:
    """Yield the measurement that a record is about, if any."""
    if record.kind in BUILDERS:
        name, *_ = BUILDERS[record.kind]
        try:
            of = str(record.facts[name]) if name else ""
            yield ResultKey(record.kind, Geometry.parse(str(record.facts["geometry"])), of)
        except (KeyError, ValueError):
            return


def _searches(record: Record) -> Iterable[ResultKey]:
    """Yield the search that a record says has ended, if no workload of it has to be probed again."""
    if record.kind != "searched":
        return
    with suppress(ValueError):
        search = record.content(SearchRecord)
        looks = {probe.look for probe in search.probed}
        if looks and ProbedFigures.UNMEASURABLE not in looks:
            yield ResultKey("search", search.geometry, search.plain)


def _raws(noted: object) -> Iterable[str]:
    """Yield every file that a record names, at any depth."""
    if isinstance(noted, Mapping):
        for name, value in noted.items():
            if name == "raw" and isinstance(value, str):
                yield value
            else:
                yield from _raws(value)
    elif isinstance(noted, list):
        for value in noted:
            yield from _raws(value)
