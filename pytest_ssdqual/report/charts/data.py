"""Data of charts: recorded measurements and their verdicts by array and workload, and fio's output read again; pure."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.result_records import MeasuredRecord, RebuildRecord, SaturationRecord
from pytest_ssdqual.qual.measured.run import Run, RunRecord, Visited
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.estimate import TooFew
from pytest_ssdqual.qual.stats.intervals import Basis
from pytest_ssdqual.qual.units import Unit, format_range
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.drawing.chart import Pair
from pytest_ssdqual.report.evidence.evidence import Evidence
from pytest_ssdqual.report.resume import rebuild_measurements
from pytest_ssdqual.report.resume.rebuild_measurements import DAMAGED, Shelf
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader

#: Kinds of records that sum up a measurement; a rebuild's is that of the load beside it.
KINDS = ("measured", "rebuild")

#: Figure of an interval; None if it has none.
FigureOf = Callable[[Interval], float | None]
T = TypeVar("T")
RecordT = TypeVar("RecordT")


@dataclass(frozen=True, slots=True, eq=False)
class NotedMeasurement:
    """Record of the measurement of a workload on an array; each is a key of its own."""

    geometry: Geometry
    workload: Workload
    iops: float
    runs: tuple[RunRecord, ...]
    #: If the runs are cells of visits.
    visited: Visited | None

    @property
    def drives(self) -> int:
        return drives_of(self.runs[0].members, self.geometry)

    @property
    def mean_latency_ns(self) -> float | None:
        known = [(run.ios, run.mean_latency_ns) for run in self.runs if run.mean_latency_ns is not None]
        ios = sum(each for each, _ in known)
        return sum(each * mean for each, mean in known) / ios if ios else None

    @property
    def rate(self) -> float:
        """IOPS of one target: of the array, or of the average drive."""
        return self.iops / self.drives

    @property
    def basis(self) -> Basis:
        """Basis of its intervals at 95 %, as of verdicts."""
        return Basis(repeats=1 if self.visited else len(self.runs), visited=self.visited)

    def interval(self) -> tuple[float, float] | None:
        """Interval of ``rate`` as in verdicts (95 %, from the rounds of all repeats); None with too few rounds."""
        lengths = [run.window_s / len(run.round_iops) for run in self.runs for _ in run.round_iops]
        rates = (rate for run in self.runs for rate in run.round_iops)
        try:
            counts = [rate * length for rate, length in zip(rates, lengths, strict=True)]
            found = self.basis.bounds(counts, lengths, are_rates=True)
        except (TooFew, ValueError, ArithmeticError):
            return None
        return max(0.0, found.low) / self.drives, found.high / self.drives


@dataclass(frozen=True)
class Notes:
    """Measurements and verdicts of a run. ``cached_property`` needs a ``__dict__``, hence no slots."""

    story: RunReader
    judged: tuple[Judged, ...]
    #: By array and workload.
    by_place: Mapping[tuple[str, str], NotedMeasurement]

    @classmethod
    def of(cls, story: RunReader) -> Notes:
        """Return all measurements and verdicts."""
        # Of a measurement that was made again the last counts, as its verdict does.
        noted = {(str(measured.geometry), str(measured.workload)): measured for measured in _recorded(story)}
        return cls(story, story.judged, noted)

    def about(self, judged: Judged) -> Notes:
        """Return those of one verdict only."""
        noted = {
            (geometry, workload): measured
            for (geometry, workload), measured in self.by_place.items()
            if geometry in judged.geometries and workload in judged.workloads
        }
        return replace(self, judged=(judged,), by_place=noted)

    @property
    def measured(self) -> tuple[NotedMeasurement, ...]:
        return tuple(self.by_place.values())

    def at(self, geometry: str, workload: str) -> NotedMeasurement | None:
        return self.by_place.get((geometry, workload))

    def verdicts(self, claim: str, geometry: str, workload: str) -> tuple[Evidence, ...]:
        """Return the verdicts on a workload on an array under this claim."""
        return self._single.get((claim, geometry, workload), ())

    def verdict(self, claim: str, geometry: str, workload: str) -> Evidence | None:
        """Return the verdict; of several the one with a limit."""
        verdicts = sorted(self.verdicts(claim, geometry, workload), key=lambda evidence: not evidence.is_promised)
        return verdicts[0] if verdicts else None

    @cached_property
    def _single(self) -> dict[tuple[str, str, str], tuple[Evidence, ...]]:
        verdicts: dict[tuple[str, str, str], tuple[Evidence, ...]] = {}
        for evidence in self.judged:
            if len(evidence.geometries) == len(evidence.workloads) == 1:
                place = (evidence.claim, evidence.geometry, evidence.workload)
                verdicts[place] = (*verdicts.get(place, ()), evidence)
        return verdicts

    def of_claims(self, *claims: str) -> Iterator[Judged]:
        """Return all verdicts and observations of these claims, in order."""
        return (each for each in self.judged if each.claim in claims)

    def within(self, cells: Sequence[NotedMeasurement], *claims: str) -> list[Evidence]:
        """Return the verdicts of these claims that are on these measurements only."""
        workloads = {str(cell.workload) for cell in cells}
        arrays = {str(cell.geometry) for cell in cells}
        return [
            evidence
            for evidence in self.of_claims(*claims)
            if workloads.issuperset(evidence.workloads) and arrays.issuperset(evidence.geometries)
        ]


def family(workload: Workload) -> Workload:
    """Return the workload at depth 1, which curves over depths and sweeps over arrays share."""
    return replace(workload, qd_per_drive=1)


def family_name(workload: Workload) -> str:
    """Return ``random 70 % reads 4k``, ``webserver``, ``sequential writes 128k, 4 threads``."""
    how = "" if workload.threads is None else f", {workload.threads} thread{'s' * (workload.threads > 1)}"
    if workload.name:
        return f"{workload.name}{how}"
    more = "" if workload.offset == "0" else f" shifted by {workload.offset}"
    more += f" ({workload.beside})" if workload.beside else ""
    return f"{'random' if workload.is_random else 'sequential'} {mix_name(workload)} {workload.bs}{more}{how}"


def mix_name(workload: Workload) -> str:
    if workload.has_streams:
        return "reads beside writes"
    if workload.rw == "trimwrite":
        return "discards and writes"
    share = round(100 * workload.read_fraction)
    return {100: "reads", 0: "writes"}.get(share, f"{share} % reads")


def readable(records: Iterable[RecordT], read: Callable[[RecordT], T]) -> Iterator[T]:
    """Yield what is computed from each record; odd ones, such as without a round, are left out."""
    for record in records:
        try:
            yield read(record)
        except DAMAGED:
            continue


def drives_of(members: Sequence[object], geometry: Geometry) -> int:
    """Return the number of targets by which rates are divided; drives side by side are several."""
    return max(1, len(members)) if geometry.is_side_by_side else 1


def per_drive(geometry: str, words: str = ", average drive") -> str:
    """Return what a label adds if figures of drives side by side are those of the average drive."""
    return words if geometry.startswith("drive") else ""


def interval_words(ends: tuple[float, float] | None) -> str:
    """Return an interval of IOPS for a table; empty without one."""
    return format_range(*ends, Unit.IOPS) if ends else ""


def _recorded(story: RunReader) -> Iterator[NotedMeasurement]:
    """Yield the measurements of a run, in order; damaged ones are left out."""
    for record in story.of(*KINDS):
        with contextlib.suppress(ValueError):
            noted: RebuildRecord | MeasuredRecord
            if record.kind == "rebuild":
                noted = record.content(RebuildRecord)
                runs = noted.foreground
            else:
                noted = record.content(MeasuredRecord)
                runs = noted.summary
            if runs.runs:
                yield NotedMeasurement(noted.geometry, noted.asked, runs.iops, runs.runs, runs.visited)


#: Packed; a minute of one drive is 0.1 MB, a day of 24 drives gigabytes, and a page does not wait for that.
MOST_PACKED_BYTES = 8 << 20


def runs_of(folder: Path, noted: NotedMeasurement) -> tuple[Run, ...]:
    """Return every repeat from fio's output; empty unless all can be read, in which case records have the rounds."""
    return read_runs(folder, noted.runs, noted.workload)


def read_runs(folder: Path, records: Iterable[RunRecord], workload: Workload) -> tuple[Run, ...]:
    """Return ``runs_of`` of records of one workload."""
    shelf = Shelf(folder)
    try:
        return tuple(shelf.run(run, workload) for run in records if _fits(shelf, run.raw))
    except DAMAGED:
        return ()


def _fits(shelf: Shelf, raw: str) -> bool:
    """Return True; ``ValueError`` if the output is too large or missing."""
    with shelf.require(raw) as packed:
        if os.fstat(packed.fileno()).st_size > MOST_PACKED_BYTES:
            raise ValueError(f"{raw} is too large")
    return True


def saturation_of(folder: Path, noted: SaturationRecord) -> Saturation | None:
    """Return a recorded saturation with every member's curve; None as ``runs_of``."""
    shelf = Shelf(folder)
    try:
        return rebuild_measurements.saturation(noted, shelf) if _fits(shelf, noted.run.raw) else None
    except DAMAGED:
        return None


def series(run: Run, figure: FigureOf) -> list[Pair]:
    """Return the figure of every counted interval by its end in seconds from the start of the window."""
    counted = run.counted
    figures = [(interval.end_s - counted[0].start_s, figure(interval)) for interval in counted]
    return [(end_s, value) for end_s, value in figures if value is not None]


def of_latency(
    figure: Callable[[LatencyHistogram], float], latency: Callable[[Interval], LatencyHistogram] = attrgetter("latency")
) -> FigureOf:
    """Return what gives the figure of an interval's latencies; None of one without I/Os."""

    def value(interval: Interval) -> float | None:
        latencies = latency(interval)
        return figure(latencies) if latencies else None

    return value


def per_second(count: Callable[[Interval], float]) -> FigureOf:
    """Return what gives the rate of an interval; None of one without length."""
    return lambda interval: count(interval) / interval.seconds if interval.seconds else None


slowest_ns, mean_ns = (of_latency(attrgetter(name)) for name in ("max_ns", "mean_ns"))
rate = per_second(lambda interval: interval.ios)
bytes_rate = per_second(lambda interval: interval.read_bytes + interval.write_bytes)


def by_visit(cells: Sequence[list[Pair]], visited: Visited, cell_s: float) -> list[list[Pair]]:
    """Return one series a visit, its cells of ``cell_s`` one behind the other.

    The time is that of observation, with as much as a cell between two visits.
    """
    visits, begin_s, remaining = list[list[Pair]](), 0.0, iter(cells)
    for count in visited.cells:
        visits.append([])
        for cell in islice(remaining, count):
            visits[-1] += ((begin_s + at_s, value) for at_s, value in cell)
            begin_s += cell_s
        begin_s += cell_s
    return visits


def courses(
    folder: Path, noted: NotedMeasurement, figure: FigureOf, of_round: Callable[[RunRecord], Iterable[float | None]],
    most_runs: int,
) -> list[list[Pair]]:  # fmt: skip
    """Return a figure over the time of the first repeats, or of all visits.

    It is that of every interval of fio's output, or else of every round of the records.
    """
    most = None if noted.visited else most_runs
    found = [series(run, figure) for run in runs_of(folder, noted)[:most]] or [
        noted_rounds(noted, of_round(run)) for run in noted.runs[:most]
    ]
    return by_visit(found, noted.visited, noted.runs[0].window_s) if noted.visited else found


def noted_rounds(noted: NotedMeasurement, figures: Iterable[float | None]) -> list[Pair]:
    """Return the same from a record: its rounds, each at its end."""
    values = list(figures)
    length_s = noted.runs[0].window_s / len(values) if values else 0.0
    return [((index + 1) * length_s, value) for index, value in enumerate(values) if value is not None]
