"""Temperature of drives over the run, and wear with health before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.drawing import scales
from pytest_ssdqual.report.drawing.chart import Chart, extremes, printable, slug
from pytest_ssdqual.report.drawing.figure import Plate, drawing
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.sections import shortened
from pytest_ssdqual.report.view.tables import Table

#: More drives in one picture cannot be distinguished; the table has all of them.
MOST_DRIVES = 8
#: Of a line, with so many lines in one picture.
MOST_POINTS = 120


@dataclass(slots=True)
class DriveCurve:
    """A drive over the run."""

    #: Seconds since the run began, and degrees.
    seen: list[tuple[float, float]] = field(default_factory=list)
    limit_c: float | None = None
    #: Figures of ``health`` records by when they were taken.
    health: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def written_bytes(self) -> float | None:
        """Bytes written by the host between the readings; None if the drive does not count."""
        found = [self.health.get(when, {}).get("data_written_bytes") for when in ("before", "after")]
        counts = [strict_json.whole(each) for each in found]
        return counts[1] - counts[0] if counts[0] is not None and counts[1] is not None else None


def drives(story: RunReader) -> dict[str, DriveCurve]:
    """Return the drives by name, in order of their first reading."""
    found: dict[str, DriveCurve] = {}
    serials = _serials(story.manifest)
    started: datetime | None = None
    for record in story.records:
        try:
            at = datetime.fromisoformat(record.time)
            started = started or at
            seconds = (at - started).total_seconds()
        except (ValueError, TypeError):  # no time, or one without a zone among others with one
            continue
        if record.kind == "health" and isinstance(name := record.facts.get("drive"), str):
            drive = found.setdefault(serials.get(name, name), DriveCurve())
            when = str(record.facts.get("when"))
            # Each session of a resumed run begins and ends with readings: the run's are the first and the last ones.
            if when != "before" or when not in drive.health:
                drive.health[when] = record.facts
            _note(drive, seconds, record.facts.get("temperature_c"), None)
        elif record.kind == "measured":
            for name, heat in _heats(record.facts):
                _note(
                    found.setdefault(serials.get(name, name), DriveCurve()),
                    seconds,
                    heat.get("temperature_c"),
                    heat.get("limit_c"),
                )
    return found


def _serials(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return serial numbers by identity, as measurements name drives by serial number."""
    found = subject.manifest_drives(manifest)
    return {str(each["identity"]): str(each["serial"]) for each in found if each.get("identity") and each.get("serial")}


def _note(drive: DriveCurve, seconds: float, temperature_c: object, limit_c: object) -> None:
    if isinstance(temperature_c, int | float) and not isinstance(temperature_c, bool):
        drive.seen.append((seconds, float(temperature_c)))
    if isinstance(limit_c, int | float) and not isinstance(limit_c, bool):
        drive.limit_c = min(float(limit_c), drive.limit_c or float(limit_c))


def _heats(facts: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and temperature of every drive of a measurement."""
    try:
        for run in strict_json.array(facts.get("runs")):
            seen = strict_json.table(run).get("seen")
            for each in strict_json.array(strict_json.table(seen).get("drives")) if seen else []:
                heat = strict_json.table(each).get("heat")
                if heat:
                    yield str(strict_json.table(each)["name"]), strict_json.table(heat)
    except (ValueError, KeyError):
        return


def temperatures(story: RunReader) -> Chart | None:
    """Draw a line for each drive; None if no drive has two readings."""
    found = {name: drive for name, drive in drives(story).items() if len(drive.seen) > 1}
    if not found:
        return None
    hottest = sorted(found, key=lambda name: -max(value for _, value in found[name].seen))[:MOST_DRIVES]
    shown = [name for name in found if name in hottest]
    short, most = shortened(list(found)), max(value for name in found for _, value in found[name].seen)
    key, title = slug("temperature"), f"Temperature of {len(found)} drives over the run, at most {most:g} °C"
    with drawing():
        plate = Plate.of(2.8)
        axes = plate.axes("time", "°C")
        for index, name in enumerate(shown):
            seen = sorted(found[name].seen)
            xs, ys = extremes([x for x, _ in seen], [y for _, y in seen], MOST_POINTS)
            tooltips = [f"{printable(name, 40)}: {y:g} °C" for y in ys] if len(xs) <= 20 else ()
            plate.line(axes, xs, ys, index, printable(short[name], 24), tooltips=tooltips, marked=len(xs) <= 20)
        limits = [limit for name in shown if (limit := found[name].limit_c) is not None]
        if limits:
            plate.limit(axes, min(limits), f"promised by the drive: at most {min(limits):g} °C")
        values = [y for name in shown for _, y in found[name].seen] + limits
        axes.set_ylim(min(values) - 5, max(values) + 5)
        unit = scales.seconds(axes, max(x for name in shown for x, _ in found[name].seen))
        axes.set_xlabel(f"time, {unit}")
        svg = plate.svg(key, title, f"One line for each of {len(shown)} drives.")
    left = f" Drawn are the {len(shown)} hottest of {len(found)}." if len(shown) < len(found) else ""
    caption = (
        "As the drives reported around every measurement, from the start of the run. The scale does not begin at zero."
        f"{left}"
    )
    rows = tuple(
        (
            name,
            f"{min(y for _, y in each.seen):g} °C",
            f"{max(y for _, y in each.seen):g} °C",
            "" if each.limit_c is None else f"{each.limit_c:g} °C",
        )
        for name, each in found.items()
    )
    return Chart(key, title, caption, svg, Table(("drive", "coolest", "hottest", "its own limit"), rows))


def wear(story: RunReader) -> Chart | None:
    """Draw host writes of each drive in the run, with health before and after; None if no drive counts."""
    found = {
        name: (drive, written) for name, drive in drives(story).items() if (written := drive.written_bytes) is not None
    }
    if not any(written for _, written in found.values()):
        return None
    short = shortened(list(found))
    key, title = (
        slug("wear"),
        f"Written to {len(found)} drives in this run: {format_capacity(round(sum(w for _, w in found.values())))}",
    )
    with drawing():
        plate = Plate.of(2.6)
        axes = plate.axes("", "written")
        for index, (name, (_, written)) in enumerate(found.items()):
            (bar,) = plate.bars(axes, [index], [written], 0.66, 0)
            if len(found) > 32:
                bar.set(linewidth=0.3)
            plate.add_tooltips(bar, [f"{printable(name, 40)}: {format_capacity(round(written))}"])
        axes.set_ylim(0, max([*(w for _, w in found.values()), 1]) * 1.08)
        axes.yaxis.set_major_formatter(lambda value, _: format_capacity(round(value)) if value else "0")
        scales.places(
            axes, [printable(short[name], 12) if len(found) <= 32 else "" for name in found], steep=len(found) > 8
        )
        svg = plate.svg(key, title, f"One bar for each of {len(found)} drives.")
    caption = "Counted by the drives themselves before and after. The table has their health at both ends."
    return Chart(key, title, caption, svg, _health_table({name: drive for name, (drive, _) in found.items()}))


def _health_table(found: Mapping[str, DriveCurve]) -> Table:
    figures = ("percentage_used", "media_errors", "critical_warning", "power_on_hours")
    columns = ("drive", "written", *(name.replace("_", " ") for name in figures))
    rows = []
    for name, drive in found.items():
        ends = [[drive.health.get(when, {}).get(figure) for when in ("before", "after")] for figure in figures]
        written = drive.written_bytes
        rows.append(
            (name, "" if written is None else format_capacity(round(written)), *(_both(*each) for each in ends))
        )
    return Table(columns, tuple(rows))


def _both(before: object, after: object) -> str:
    tooltips = ["-" if each is None else printable(each, 20) for each in (before, after)]
    return tooltips[0] if tooltips[0] == tooltips[1] else f"{tooltips[0]} → {tooltips[1]}"
