"""History of a run's drives: purge, fill, conditioning, and the order of the visits; pure.

A steady rate depends on it: see ``qual.stats.throughput``. What is damaged is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_ssdqual.qual.detect.outliers import of_others
from pytest_ssdqual.qual.names import counted
from pytest_ssdqual.qual.units import Unit, format_duration, format_value
from pytest_ssdqual.report.run_folder.reader import Record, RunReader
from pytest_ssdqual.report.view import subject
from pytest_ssdqual.report.view.tables import Table, bounded

#: Kinds of records of what was done before the measurements.
BEFORE = ("array_created", "filled", "conditioned")
MOST_ROWS = 100
#: Fewest capacities that are shown as a number.
LEAST_SHOWN = 0.01
#: Share of the median of its siblings below which a settled drive is uneven: equal drives should not differ from each
#: other by more than a steady one may from itself (SNIA PTS), as of `member_spread`.
UNEVEN = 0.8
#: Kind of the measurement that cells of visits belong to.
MEASURED = "measured"
#: Characters of a time up to its minute: ``2026-11-21T12:00``.
MINUTE = 16


@dataclass(slots=True)
class Event:
    """One step of the history."""

    record: Record
    name: str
    what: str
    #: User capacities that it wrote, ``1.5``, of drives side by side the least; empty if they are not counted.
    capacities: str = ""
    #: Of a visit: its cells by workload, and the seconds of writes to all bare drives before it.
    cells: Counter[str] = field(default_factory=Counter)
    refreshed_s: float = 0.0

    @property
    def row(self) -> tuple[str, ...]:
        time = self.record.time[:MINUTE].replace("T", " ")
        return time, self.name, self.record.fact("geometry", str, ""), self._what(), self.capacities

    def _what(self) -> str:
        if not self.cells:
            return self.what
        cells = f"{counted(self.cells.total(), 'cell')} of {counted(len(self.cells), 'workload')}"
        if not self.refreshed_s:
            return cells
        return f"{cells}, after {format_duration(self.refreshed_s)} of writes to the bare drives"


def table(story: RunReader) -> Table:
    """Return the history as a table, in order of time."""
    rows = [event.row for event in (*_before(story), *_visits(story))]
    columns = ("Time", "Step", "Drives or array", "What", "Capacities written")
    where = "records.jsonl has them"
    return bounded(columns, rows, "History of the drives since their purge", MOST_ROWS, where)


def phrase(story: RunReader) -> str:
    """Return purge, fill and conditioning as a phrase; empty without any."""
    steps = [f"{event.name}: {event.what}{_written(event)}" for event in _before(story)]
    return "; ".join(dict.fromkeys(steps))


def uneven(story: RunReader) -> dict[str, str]:
    """Return by serial number a sentence for each drive that wrote far less than its siblings of the same model once it
    had settled.

    Conditioning by a protocol for acceptance lasts hours, and a cell a minute: what slows down under a load that goes
    on shows it only here. Empty for other protocols, by which drives need not settle.
    """
    if not story.manifest.acceptance:
        return {}
    models = {drive.name: drive.model for drive in story.manifest.drives}
    latest: dict[str, dict[str, float]] = {}  # a resumed run may have conditioned them again
    for record in story.of("conditioned"):
        if rates := record.fact("rates", dict[str, float], {}):
            latest[record.fact("workload", str, "")] = rates
    sentences: dict[str, str] = {}
    for workload, rates in latest.items():
        for model in set(models.values()):
            alike = {serial: rate for serial, rate in rates.items() if models.get(serial) == model}
            sentences |= _behind(alike, workload)
    return sentences


def _behind(rates: Mapping[str, float], workload: str) -> dict[str, str]:
    if len(rates) < 2:
        return {}
    beside = zip(rates.items(), of_others(list(rates.values())), strict=True)
    return {
        serial: f"Drive {serial} had settled at {format_value(rate, Unit.IOPS)} of {workload}, {rate / others:.0%} of "
        "what its siblings did, and what is measured for a minute need not show that."
        for (serial, rate), others in beside
        if rate < UNEVEN * others
    }


def _written(event: Event) -> str:
    if not event.capacities:
        return ""
    return f", {event.capacities} {'capacity' if event.capacities == '1' else 'capacities'}"


def _before(story: RunReader) -> Iterator[Event]:
    for record in story.of(*BEFORE):
        if record.kind == "filled":
            yield Event(record, "fill", f"sequential, {record.fact('bs', str, '')}", _counted(record, "passes"))
        elif record.kind == "conditioned":
            yield Event(record, "conditioning", record.fact("workload", str, ""), _counted(record, "capacities"))
        elif purged := subject.purges(record):
            yield Event(record, "purge", purged)


def _visits(story: RunReader) -> Iterator[Event]:
    """Yield each visit of an array, in the order of their first cells."""
    visits: dict[tuple[str, float], Event] = {}
    refreshed_s = 0.0
    for record in story.of("refreshed", "cell"):
        if record.kind == "refreshed":
            refreshed_s = record.fact("seconds", float, 0.0)
            continue
        number = record.fact("visit", float, None)
        if number is None or record.facts.get("of") != MEASURED:
            continue  # damaged, or of a search on drives of its own
        place = record.fact("geometry", str, ""), number
        if place not in visits:
            visits[place] = Event(record, f"visit {number + 1:g}", "", refreshed_s=refreshed_s)
            refreshed_s = 0.0
        visits[place].cells[record.fact("workload", str, "")] += 1
    yield from visits.values()


def _counted(record: Record, name: str) -> str:
    """Return capacities with two decimals at most; empty if they are not known."""
    number = record.fact(name, float, None)
    if number is None:
        return ""
    return f"{number:.2f}".rstrip("0").rstrip(".") if number >= LEAST_SHOWN else f"< {LEAST_SHOWN}"
