"""Subject of a run: drives, machine, protocol, spec, arrays, health, environment, files; tables for pages; pure.

What is missing is left out or shown as unknown; a damaged folder never raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.environment import LEVELS, EnvironmentRecord
from pytest_ssdqual.qual.names import counted, named
from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.run_folder.manifest import HealthRecord, Manifest
from pytest_ssdqual.report.run_folder.reader import Record, RunReader
from pytest_ssdqual.report.view.tables import Table, TableRow, bounded
from pytest_ssdqual.rig.fio.load import LoadRecord
from pytest_ssdqual.rig.observe.kernel_log import LINE_CHARACTERS

#: Maximum number of rows of a table without a natural limit.
MOST_ROWS = 100
RECORDS = "records.jsonl has them"
#: Drives or models that a sentence names, and maximum length of a model.
MOST_NAMED, MODEL_CHARACTERS = 4, 60
#: Shown where no number of drives was given.
NOT_EXPECTED = "not checked, as --ssd-expect was not given"
#: Column heads of a drive's health by the names in records.
HEALTH = {
    "passed": "self-assessment passed",
    "temperature_c": "temperature, °C",
    "percentage_used": "endurance used, %",
    "critical_warning": "critical warning",
    "media_errors": "media errors",
    "power_on_hours": "power-on hours",
    "data_written_bytes": "data written",
}


def drives(manifest: Manifest, untested: Callable[[str], str] = lambda identity: "") -> Table:
    """Return every drive of every machine.

    ``untested`` returns for the identity of a drive that it was not tested, or nothing.
    """
    sheets = {name: sheet for bay in manifest.bays for name, sheet in bay.sheets.items()}
    rows: list[TableRow] = [
        (
            drive.name,
            drive.model or "unknown model",
            drive.firmware or "unknown",
            format_capacity(drive.size_bytes),
            drive.path,
            untested(drive.identity) or sheets.get(drive.identity, "unknown") if sheets else "",
        )
        for drive in manifest.drives
    ]
    columns = ("Serial number", "Model", "Firmware", "Capacity", "Name", "Judged by")
    return Table(columns, tuple(rows), "Drives").used()


def load_of_fio(story: RunReader) -> str:
    """Return the load of all measurements as a phrase, with its reason; empty if it was not chosen."""
    found = (filter(None, (each.sentence, each.load.why)) for each in story.contents(LoadRecord, "load"))
    return "; ".join(next(found, ()))


def health(story: RunReader) -> Table:
    """Return the health of every drive before and after; a figure that did not change is shown once."""
    seen: dict[str, tuple[HealthRecord, HealthRecord]] = {}
    for reading in story.contents(HealthRecord, "health"):
        first, _ = seen.get(reading.drive, (reading, reading))
        seen[reading.drive] = first, reading
    names = story.manifest.serials
    rows: list[TableRow] = [
        (names.get(drive, drive), *(_change(*readings, name) for name in HEALTH)) for drive, readings in seen.items()
    ]
    rows += [(drive.name, *("not read",) * len(HEALTH)) for drive in story.manifest.drives if not drive.has_health]
    return Table(("Drive", *HEALTH.values()), tuple(rows), "Health of the drives, before → after")


def arrays(story: RunReader) -> Table:
    """Return the arrays as they were created."""
    rows = [_array(record) for record in story.of("array_created")]
    columns = ("Array", "Members", "Size", "Consistency", "Purge", "Settings")
    return bounded(columns, rows, f"Arrays: {len(rows):,}", MOST_ROWS, RECORDS)


def environment_checks(story: RunReader) -> Table:
    """Return the worst figure of each validity check over the run, and the number of objections."""
    figures: dict[str, list[float]] = {}
    unknown: Counter[str] = Counter()
    objections: Counter[str] = Counter()
    for record in story.contents(EnvironmentRecord, "environment"):
        for name, value in record.checks.items():
            if value is not None:
                figures.setdefault(name, []).append(value)
        unknown.update(record.unknown)
        objections.update(record.objections)
    rows: list[TableRow] = [
        (name.replace("_", " "), f"{min(found):,.4g}", f"{max(found):,.4g}", f"{len(found):,}", f"{unknown[name]:,}")
        for name, found in figures.items()
    ]
    rows += [(name.replace("_", " "), "", "", "0", f"{unknown[name]:,}") for name in unknown if name not in figures]
    rows += [
        (f"objection: {objection}", "", "", f"{number:,}", "")
        for objection, number in objections.most_common(MOST_ROWS)
    ]
    columns = ("Check of each measurement", "Least", "Most", "Known", "Unknown")
    return Table(columns, tuple(rows), "Environment")


def kernel_messages(story: RunReader) -> Table:
    """Return the kernel's messages during all measurements, the gravest first, equal ones once."""
    severities: dict[str, int] = {}
    during: dict[str, list[str]] = {}
    for record in story.contents(EnvironmentRecord, "environment"):
        where = " ".join(filter(None, (str(record.geometry), record.workload, record.fio)))
        for line in record.kernel.lines if record.kernel else ():
            during.setdefault(line.text, []).append(where)
            # Where only dmesg could be read, a message has no severity.
            level = len(LEVELS) if line.level is None else min(line.level, len(LEVELS))
            severities[line.text] = min(level, severities.get(line.text, level))
    rows: list[TableRow] = [
        (
            (*LEVELS, "other")[severities[said]],
            safe_text.line(said, LINE_CHARACTERS),
            f"{len(during[said]):,}",
            during[said][0],
        )
        for said in sorted(during, key=lambda said: severities[said])
    ]
    columns = ("Severity", "Message", "Number", "First during")
    return bounded(columns, rows, f"Kernel messages during the measurements: {len(rows):,}", MOST_ROWS, RECORDS)


def files(names: Sequence[tuple[str, int]]) -> Table:
    """Return raw files (name, bytes) by folder, and the names of the first of them."""
    folders: dict[str, list[int]] = {}
    for name, size in names:
        folders.setdefault(name.rpartition("/")[0] or ".", []).append(size)
    rows: list[TableRow] = [
        (f"{folder}/ ({counted(len(sizes), 'file')})", format_capacity(sum(sizes)))
        for folder, sizes in sorted(folders.items())
    ]
    listed = [(name, format_capacity(size)) for name, size in names if not name.startswith("transcript/")]
    return bounded(("File", "Size"), [*rows, *listed], "Files", 200, "SHA256SUMS in the run folder lists them all")


def named_drives(serial_numbers: Sequence[str]) -> str:
    """Return ``drive S1``, or ``drives S1, S2 and 9 more``."""
    kind = "drive" if len(serial_numbers) == 1 else "drives"
    return f"{kind} {named(serial_numbers, MOST_NAMED)}"


def identity(manifest: Manifest, folder: Path) -> str:
    """Return the identity of a run, equal for copies; without a manifest the folder.

    Runs of a bay have the same name in every fleet; the start distinguishes them.
    """
    return f"{manifest.run_id} {manifest.started}" if manifest.run_id else str(folder.resolve())


def kinds(manifest: Manifest) -> str:
    """Return ``8 × INTEL SSDSC2BB480G4``, the drives by their model."""
    models = Counter(drive.model or "unknown model" for drive in manifest.drives)
    shown = [f"{count} × {safe_text.line(model, MODEL_CHARACTERS)}" for model, count in models.items()]
    more = sum(list(models.values())[MOST_NAMED:])
    return " + ".join([*shown[:MOST_NAMED], *([f"{more} of other models"] if more else [])]) or "unknown drives"


def moment(value: object) -> datetime | None:
    """Return a time of a record (ISO 8601), in UTC if it names no zone; None if it cannot be read."""
    try:
        found = datetime.fromisoformat(str(value))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def purges(record: Record) -> str:
    """Return how the members of an ``array_created`` record were purged, ``8 × NVMe Format``; empty if none was."""
    drives = record.fact("purge", dict[str, dict[str, object]], {}).values()
    methods = Counter(f"{drive.get('method')}{', left data' if drive.get('left') else ''}" for drive in drives)
    return "; ".join(f"{number} × {method}" for method, number in methods.items())


def _array(record: Record) -> TableRow:
    geometry, consistency = (record.fact(name, str, "") for name in ("geometry", "consistency"))
    size_bytes, settings = record.fact("size_bytes", int, None), record.fact("settings", dict[str, object], {})
    return (
        geometry,
        f"{len(record.fact('members', tuple[str, ...], ()))}",
        "unknown" if size_bytes is None else format_capacity(size_bytes),
        consistency,
        purges(record),
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()),
    )


def _change(first: HealthRecord, last: HealthRecord, name: str) -> str:
    before, after = (_figure(name, getattr(reading, name)) for reading in (first, last))
    return before if before == after else f"{before} → {after}"


def _figure(name: str, value: int | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format_capacity(value) if name.endswith("_bytes") else str(value)
