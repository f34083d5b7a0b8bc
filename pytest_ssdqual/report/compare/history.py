"""History of one figure over all runs of a folder, by start: the trend, and what it proves.

Runs of other drives, or measured in another way, are no series: only runs with the model and the protocol of the last
one are tested for a change. The others are shown beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_ssdqual.qual.detect.trend import Drift, drift
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.archive.runs import Skipped, once
from pytest_ssdqual.report.compare.circumstances import document, firmware_of, machine_of, model_of, revisions
from pytest_ssdqual.report.compare.compared_run import ComparedFigure, ComparedRun, FigureKey
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.run_folder.find import folders_below
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.tables import label

#: Maximum number of figures named in a message.
NAMED = 5


class NoFigure(ValueError):
    """No figure or more than one matches the selection; the message lists them."""


#: Globs of a figure and of runs by name (``claim``, ``workload``, ``geometry``, ``model``, ``firmware``, ``bay``); None
#: matches any. Several workloads or arrays have the name that tables use.
Choice = Mapping[str, str | None]


def _fits(choice: Choice, **facts: str) -> bool:
    globs = {name: choice.get(name) for name in facts}
    return all(glob is None or fnmatchcase(facts[name], glob) for name, glob in globs.items())


@frozen
class HistoryPoint:
    """The figure of one run."""

    run: str
    #: Start of the run.
    time: datetime
    figure: ComparedFigure
    model: str
    firmware: str
    protocol: str
    machine: str
    #: Verdict of the whole run.
    verdict: str = ""
    #: Definitions of the figure's workloads, by id.
    asked: Mapping[str, str] = field(default_factory=dict)
    #: Reason why the run is not tested for a change; empty if it is.
    apart: str = ""

    @property
    def counts(self) -> bool:
        """True if the run is tested for a change."""
        return not self.apart


@frozen
class FigureHistory:
    """History of one figure."""

    key: FigureKey
    unit: Unit
    #: Points in the order of time.
    points: tuple[HistoryPoint, ...]
    drift: Drift
    #: A sentence for each skipped folder.
    passed_over: tuple[str, ...]
    #: Number of matching runs without the figure.
    without: int

    @property
    def name(self) -> str:
        """Name for headings."""
        return f"{label(self.key.claim)} of {self.key.place}"

    @property
    def series(self) -> tuple[HistoryPoint, ...]:
        """The points that are tested for a change."""
        return tuple(each for each in self.points if each.counts)


def read(folder: Path, choice: Choice) -> FigureHistory:
    """Read all runs below ``folder``; ``NoFigure`` if not exactly one figure matches, ``OSError`` without a folder."""
    if not folder.is_dir():
        raise NotADirectoryError(20, "not a folder of runs", str(folder))
    runs, passed_over = once(folders_below(folder), lambda each: _read(each, choice))
    if not runs:
        raise NoFigure(_without_runs(folder, passed_over))
    key = _chosen(runs, choice)
    points = sorted(_points(runs, key), key=lambda point: (point.time, point.run))
    last = points[-1]
    counted = tuple(replace(point, apart=_apart(point, last)) for point in points)
    figures = [point.figure.estimate.value for point in counted if point.counts]
    return FigureHistory(
        key, last.figure.estimate.unit, counted, drift(figures), tuple(passed_over), len(runs) - len(points)
    )


def _without_runs(folder: Path, passed_over: Sequence[str]) -> str:
    """Return why no run of a folder can be shown."""
    if passed_over:
        return f"no run in {folder} can be shown: {named(passed_over, NAMED)}"
    if any(folders_below(folder)):
        return f"no run in {folder} matches --model, --firmware and --bay"
    return f"{folder} has no run folder in it: name the folder that holds run folders"


def _read(folder: Path, choice: Choice) -> ComparedRun | None:
    """Return the run; None if it was not chosen."""
    run = ComparedRun.read(folder)
    if not run.figures:
        raise Skipped("it has no readable verdict")
    if not run.manifest.is_readable:
        raise Skipped("its manifest.json is missing or damaged, so its subject is unknown")
    if subject.moment(run.started) is None:
        raise Skipped("its start is unknown")
    is_chosen = _fits(choice, model=model_of(run), firmware=firmware_of(run), bay=_bay_of(run))
    return run if is_chosen else None


def _chosen(runs: Sequence[ComparedRun], choice: Choice) -> FigureKey:
    keys = Counter(key for run in runs for key in run.figures)
    facts = {key: {"claim": key.claim, "workload": key.workload, "geometry": key.geometry} for key in keys}
    found = Counter({key: count for key, count in keys.items() if _fits(choice, **facts[key])})
    if len(found) == 1:
        return next(iter(found))
    if not found:
        raise NoFigure(f"none of {len(runs)} matching runs has such a figure")
    figures = named([f"{key.claim} of {key.place}" for key, _ in found.most_common()], NAMED)
    raise NoFigure(f"{len(found):,} figures match: {figures}; select one with --claim, --workload and --geometry")


def _points(runs: Sequence[ComparedRun], key: FigureKey) -> Iterator[HistoryPoint]:
    known = revisions(runs)
    for run in runs:
        time, figure = subject.moment(run.started), run.figures.get(key)
        if time and figure:
            facts = (model_of(run), firmware_of(run, known), document(run, "protocol"), machine_of(run))
            asked = {each: run.asked[each] for each in key.workloads if each in run.asked}
            yield HistoryPoint(run.name, time, figure, *facts, run.verdict, asked)


def _apart(point: HistoryPoint, last: HistoryPoint) -> str:
    """Return why a point is not in one series with the last one; empty if it is."""
    if (point.model, point.protocol) != (last.model, last.protocol):
        return "another product or protocol"
    one, other = point.figure, last.figure
    if one.estimate.unit is not other.estimate.unit:
        return "another unit"
    if one.percent_of != other.percent_of:
        return "another reference of its percentage"
    if one.estimate.basis != other.estimate.basis:
        return "another condition"
    if any(point.asked.get(each, asked) != asked for each, asked in last.asked.items()):
        return "another definition of the workload"
    return "" if point.figure.estimate.value > 0 else "not above zero, so without a ratio"


def _bay_of(run: ComparedRun) -> str:
    """Return the name of the bay; empty for a run of one machine."""
    folder = run.folder.resolve()
    return folder.name if fleet.fleet_of(folder.parent) else ""
