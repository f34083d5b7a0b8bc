"""The table of ``ssdqual export``: one row for each measured figure, in the long format; pure.

A verdict has a row for its figure (``part`` is ``whole``), one for each of its drives or workloads (``drive``,
``point``), and one for each figure beside it (``beside``), such as the mean latency next to the IOPS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from datetime import datetime

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.claims import Claim, Direction
from pytest_ssdqual.qual.units import Unit
from pytest_ssdqual.report.evidence.evidence import INSPECTED, About, Evidence, Figures, Part
from pytest_ssdqual.report.run_folder.reader import Judged
from pytest_ssdqual.report.run_summary.run_view import RunView, shown

#: Figures of a part that are its value and its limit, not figures of their own.
VALUE, LOW, HIGH, LIMIT = "value", "low", "high", "limit"
#: Units of figures by the end of their names, the longest first.
SUFFIXES = {
    "_bytes_per_s": Unit.BYTES_PER_SECOND.value,
    "_percent": Unit.PERCENT.value,
    "_per_hour": "1/h",
    "_bytes": "B",
    "iops": Unit.IOPS.value,
    "_c": Unit.CELSIUS.value,
    "_ns": Unit.NANOSECONDS.value,
    "_s": Unit.SECONDS.value,
}


#: Units of readings of the inspection; the others are numbers without one, or no numbers.
UNITS = {"power_on_hours": "h", "written": "B", "capacity": "B", "wear": "%", "spare": "%", "temperature": "°C"}
DIRECTIONS = {"≤": Direction.AT_MOST.value, "≥": Direction.AT_LEAST.value}


@frozen
class FigureRow:
    """A row; its fields are the columns, whose names are no keywords of SQL.

    Numbers are in the base unit that ``unit`` names; None is unknown.
    """

    run: str
    started: datetime
    #: ``fit``, ``not fit``, ``undecided`` or ``no verdict``, as that of an interrupted run.
    run_verdict: str
    machine: str
    #: Of the drive, or of all drives of the run.
    model: str
    firmware: str
    protocol: str
    acceptance: bool
    spec: str
    test: str
    claim: str
    about: str
    #: Name of the workload set or the loop.
    group_name: str
    #: All arrays, ``raid5x3 raid5x4``; all workloads.
    geometry: str
    workload: str
    #: ``whole``, ``drive``, ``point`` or ``beside``.
    part: str
    #: Name of the figure: the claim, or that of a figure beside it.
    figure: str
    #: Serial number, if the row is about one drive; of the whole the worst of drives side by side.
    drive: str
    #: Device name of an inspected drive.
    path: str
    value: float | None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    n: int | None = None
    unit: str = ""
    #: ``at_least`` or ``at_most``.
    direction: str = ""
    limit_value: float | None = None
    verdict: str = ""
    margin_percent: float | None = None
    published: float | None = None
    cause: str = ""
    #: Serial numbers of the drives that are the cause, separated by blanks.
    cause_drives: str = ""
    sentence: str = ""
    #: Purge, fill and conditioning of the drives.
    history: str = ""


COLUMNS = tuple(each.name for each in fields(FigureRow))


def rows(runs: Iterable[RunView]) -> Iterator[FigureRow]:
    """Yield the rows of all runs, in their order."""
    for run in runs:
        known = {drive.serial: (shown(drive.model), shown(drive.firmware)) for drive in run.manifest.drives}
        for judged in run.judged:
            whole = _whole(run, judged)
            yield whole
            yield from _beside(whole, judged.figures)
            for part in judged.members:
                model, firmware = known.get(part.name, (whole.model, whole.firmware))
                drive = replace(whole, drive=part.name, path=part.path, model=model, firmware=firmware)
                yield from _parts(drive, judged, part, "drive")
            for part in judged.points:
                yield from _parts(replace(whole, workload=part.name), judged, part, "point")


def _whole(run: RunView, judged: Judged) -> FigureRow:
    return FigureRow(
        run=run.name,
        started=run.started,
        run_verdict=run.verdict.fitness.value,
        machine=run.machine,
        model=run.models,
        firmware=run.firmware,
        protocol=judged.protocol,
        acceptance=judged.acceptance,
        spec=run.document("spec"),
        test=judged.test,
        claim=judged.claim,
        about=judged.about.value,
        group_name=judged.group,
        geometry=" ".join(judged.geometries),
        workload=" ".join(judged.workloads),
        part="whole",
        figure="deviating_drives" if judged.is_inspection else judged.claim,
        drive=judged.worst,
        path="",
        value=judged.value,
        low=judged.low,
        high=judged.high,
        confidence=judged.confidence,
        n=judged.n,
        unit=judged.unit.value,
        direction=judged.direction.value if judged.is_promised else "",
        limit_value=judged.limit,
        verdict=judged.outcome.value,
        margin_percent=judged.margin_percent,
        published=judged.published.value if judged.published else None,
        cause=judged.cause.culprit.value if judged.cause else "",
        cause_drives=" ".join(judged.cause.drives) if judged.cause else "",
        sentence=judged.sentence,
        history=run.history,
    )


def _beside(row: FigureRow, figures: Figures) -> Iterator[FigureRow]:
    """Yield figures that nothing is promised of: only what names the measurement stays of the row."""
    for name, value in figures.items():
        if value is not None and name not in (VALUE, LOW, HIGH, LIMIT):
            yield replace(_bare(row), part="beside", figure=name, value=float(value), unit=unit_of(name))


def _parts(row: FigureRow, whole: Evidence, part: Part, kind: str) -> Iterator[FigureRow]:
    value = part.figures.get(VALUE)
    if value is not None or part.outcome:
        figure, unit, direction, limit = _of_parts(row, whole, part)
        yield replace(
            _bare(row), part=kind, figure=figure, value=value, low=part.figures.get(LOW), high=part.figures.get(HIGH),
            unit=unit, direction=direction, limit_value=part.figures.get(LIMIT, limit),
            verdict=part.outcome.value if part.outcome else "", sentence=part.reading,
        )  # fmt: skip
    for each in _beside(row, part.figures):
        yield replace(each, part=kind)


def _of_parts(row: FigureRow, whole: Evidence, part: Part) -> tuple[str, str, str, float | None]:
    """Return figure, unit, direction and limit of the parts: those of the whole, unless that counts drives."""
    if whole.about is About.LOT and whole.group in set(Claim):
        claim = Claim(whole.group)
        return claim.value, (whole.unit_of_parts or claim.unit).value, claim.direction.value, None
    if whole.is_inspection:
        name = whole.claim.removeprefix(INSPECTED)
        return name, UNITS.get(name, ""), DIRECTIONS.get(part.bound[:1], ""), None
    return whole.claim, whole.unit.value, row.direction, whole.limit


def _bare(row: FigureRow) -> FigureRow:
    """Return the row without what is true of the figure of its verdict only."""
    return FigureRow(**{name: getattr(row, name) for name in COLUMNS[: COLUMNS.index("low")]})


def unit_of(name: str) -> str:
    """Return the unit at the end of a figure's name; empty for a number without one."""
    return next((unit for suffix, unit in SUFFIXES.items() if name.endswith(suffix)), "")
