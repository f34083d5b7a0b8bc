"""One figure over all runs of a folder, in the order in which they were begun: what it did, and what that proves.

Runs of different drives, or measured in different ways, are no series: what a change is looked for in are the runs that
have the model and the protocol of the last one. The others are shown beside them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.detect.trend import Drift, drift
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.compare.circumstances import document, firmware_of, machine_of, model_of
from pytest_ssdqual.report.compare.compare import ComparedFigure, ComparedRun, FigureKey
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.journal import RECORDS
from pytest_ssdqual.report.view.labels import label

#: Figures that are named when several fit.
NAMED = 5


class NoFigure(ValueError):
    """No figure, or more than one, fits what was asked for; the sentence says what there is."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Globs; None: any."""

    claim: str | None = None
    workload: str | None = None
    geometry: str | None = None
    model: str | None = None
    firmware: str | None = None
    bay: str | None = None

    def fits(self, key: FigureKey) -> bool:
        """Whether the figure is one of those asked for; several workloads or arrays are named as tables name them."""
        pairs = ((key.claim, self.claim), (key.workload, self.workload), (key.geometry, self.geometry))
        return all(_fits(*each) for each in pairs)

    def fits_run(self, run: ComparedRun) -> bool:
        pairs = ((model_of(run), self.model), (firmware_of(run), self.firmware), (_bay_of(run), self.bay))
        return all(_fits(*each) for each in pairs)


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """The figure of one run."""

    run: str
    #: When it was begun.
    time: datetime
    figure: ComparedFigure
    model: str
    firmware: str
    protocol: str
    machine: str
    #: Whether it is one of the runs in which a change is looked for.
    counts: bool = True


@dataclass(frozen=True, slots=True)
class FigureHistory:
    """What there is to tell of one figure."""

    key: FigureKey
    unit: Unit
    #: In the order of time.
    points: tuple[HistoryPoint, ...]
    drift: Drift
    #: A sentence for each folder that was passed over.
    passed_over: tuple[str, ...]
    #: Runs that fit and have no such figure.
    without: int

    @property
    def name(self) -> str:
        """As headings have it."""
        group = f" ({self.key.group})" if self.key.group else ""
        return f"{label(self.key.claim)} of {self.key.geometry} {self.key.workload}{group}"

    @property
    def series(self) -> tuple[HistoryPoint, ...]:
        """The points in which a change is looked for."""
        return tuple(each for each in self.points if each.counts)


def read(folder: Path, choice: Choice) -> FigureHistory:
    """All runs below ``folder``; ``NoFigure`` if not exactly one figure fits, ``OSError`` if there is no folder."""
    if not folder.is_dir():
        raise NotADirectoryError(20, "no folder to look for runs in", str(folder))
    runs, passed_over = _runs(folder, choice)
    key = _chosen(runs, choice)
    points = sorted(_points(runs, key), key=lambda point: (point.time, point.run))
    last = points[-1]
    series = [_same(point, last) for point in points]
    told = tuple(_counted(point, counts) for point, counts in zip(points, series, strict=True))
    figures = [point.figure.estimate.value for point in told if point.counts]
    return FigureHistory(
        key, last.figure.estimate.unit, told, drift(figures), tuple(passed_over), len(runs) - len(points)
    )


def _runs(folder: Path, choice: Choice) -> tuple[list[ComparedRun], list[str]]:
    """Those that fit, each once, and why others are passed over: a merged fleet has copies of runs."""
    runs: dict[str, ComparedRun] = {}
    passed_over = []
    for path in _folders(folder):
        found = _read(path)
        if isinstance(found, str):
            passed_over.append(found)
        elif choice.fits_run(found) and (twin := runs.setdefault(found.identity, found)) is not found:
            passed_over.append(f"{found.name} is passed over: it is the same run as {twin.name}")
    return list(runs.values()), passed_over


def _folders(folder: Path) -> Iterator[Path]:
    """Run folders, however deep; what begins with a dot is none, and links are not followed."""
    for at, below, names in os.walk(folder):
        if RECORDS in names:
            below.clear()
            yield Path(at)
        below[:] = sorted(name for name in below if not name.startswith("."))


def _read(folder: Path) -> ComparedRun | str:
    """The run, or why it is passed over."""
    name = fleet.called(folder)
    try:
        run = ComparedRun.read(folder)
    except OSError as error:
        return f"{name} is passed over: {safe_text.line(error.strerror or str(error))}"
    if not run.figures:
        return f"{name} is passed over: no verdict in it can be read"
    if not run.manifest:
        return f"{name} is passed over: its manifest.json is missing or damaged, so nobody knows what was tested"
    if _time(run) is None:
        return f"{name} is passed over: when it was begun is not said"
    return run


def _chosen(runs: Sequence[ComparedRun], choice: Choice) -> FigureKey:
    found = Counter(key for run in runs for key in run.figures if choice.fits(key))
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise NoFigure(f"of {len(runs)} runs that fit none has such a figure")
    named = ", ".join(_named(key) for key, _ in found.most_common(NAMED))
    more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    raise NoFigure(f"{len(found):,} figures fit: {named}{more}; say which with --claim, --workload and --geometry")


def _named(key: FigureKey) -> str:
    return f"{key.claim} of {key.geometry} {key.workload}{f' ({key.group})' if key.group else ''}"


def _points(runs: Iterable[ComparedRun], key: FigureKey) -> Iterator[HistoryPoint]:
    for run in runs:
        time, figure = _time(run), run.figures.get(key)
        if time and figure:
            facts = (model_of(run), firmware_of(run), document(run, "protocol"), machine_of(run))
            yield HistoryPoint(run.name, time, figure, *facts)


def _same(point: HistoryPoint, last: HistoryPoint) -> bool:
    """Whether it is of the product, and was measured in the way, of the last one."""
    same = (point.model, point.protocol, point.figure.estimate.unit)
    # A figure of nothing has no place on a scale of ratios.
    return point.figure.estimate.value > 0 and same == (last.model, last.protocol, last.figure.estimate.unit)


def _counted(point: HistoryPoint, counts: bool) -> HistoryPoint:
    facts = (point.model, point.firmware, point.protocol, point.machine)
    return HistoryPoint(point.run, point.time, point.figure, *facts, counts=counts)


def _time(run: ComparedRun) -> datetime | None:
    try:
        found = datetime.fromisoformat(run.started)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _bay_of(run: ComparedRun) -> str:
    """The name of its bay; empty if it was a run of one machine."""
    folder = run.folder.resolve()
    return folder.name if fleet.fleet_of(folder.parent) else ""


def _fits(text: str, glob: str | None) -> bool:
    return glob is None or fnmatchcase(text, glob)
