"""What was tested, on what, with what, and how it was measured: tables of the manifest and the records; pure.

The rule of the module: what is missing is left out or said to be unknown; nothing of a damaged folder raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pytest_ssdqual.qual.units import format_capacity
from pytest_ssdqual.report.run_folder import expectation
from pytest_ssdqual.report.run_folder.reader import Record, RunReader
from pytest_ssdqual.report.view.tables import PageRow, PageTable, bounded

#: Rows of a table that a run can make as long as it likes.
MOST_ROWS = 100
RECORDS = "records.jsonl has them"
#: Of a drive's health, by the names in records.
HEALTH = {
    "passed": "passed its own test",
    "temperature_c": "temperature, °C",
    "percentage_used": "life used, %",
    "critical_warning": "critical warning",
    "media_errors": "media errors",
    "power_on_hours": "hours in use",
    "data_written_bytes": "written to it",
}


def expected(story: RunReader) -> str:
    """Return the expected number of drives as a phrase; empty for runs of versions without that key."""
    found = expectation.of_record(story.manifest.get("expected"))
    return expectation.describe(found) if "expected" in story.manifest else ""


def drives(story: RunReader) -> PageTable:
    """Every drive of every machine."""
    rows: list[PageRow] = [
        (
            text(drive, "serial") or text(drive, "identity"),
            text(drive, "model") or "unknown model",
            text(drive, "firmware") or "not told",
            _capacity(drive.get("size_bytes")),
            text(drive, "path"),
        )
        for bay in tables(story.manifest.get("bays"))
        for drive in tables(bay.get("drives"))
    ]
    return PageTable("Drives", ("Serial number", "Model", "Firmware", "Capacity", "Name"), tuple(rows))


def means(story: RunReader) -> PageTable:
    """Machine, protocol, spec, versions, sessions."""
    return PageTable("Means", ("What", "Which"), tuple(_means(story)))


def _means(story: RunReader) -> Iterator[PageRow]:
    manifest = story.manifest
    for name in ("protocol", "spec"):
        document = table(manifest.get(name))
        if document:
            yield name, f"{text(document, 'name')} (SHA-256 {text(document, 'sha256')[:16]}…)"
    for bay in tables(manifest.get("bays")):
        yield "machine", text(bay, "machine")
        for name, value in table(bay.get("facts")).items():
            yield name.replace("_", " "), str(value)
    yield "run", text(manifest, "run_id")
    sessions = tables(manifest.get("sessions")) or [manifest]
    for session in sessions:
        ended = text(session, "ended") or "not ended by itself"
        yield "session", f"{text(session, 'started')} to {ended}, exit status {session.get('exit_status')}"
        yield "command line", " ".join(map(str, texts(session.get("command_line"))))
        for difference in texts(session.get("differences")):
            yield "different then", difference
    for name, value in table(manifest.get("versions")).items():
        yield name, str(value)


def health(story: RunReader) -> PageTable:
    """Of every drive, before and after; what did not change is one figure."""
    seen: dict[str, dict[str, Record]] = {}
    for record in story.of("health"):
        when = seen.setdefault(str(record.facts.get("drive")), {})
        when["before"] = when.get("before", record)
        when["after"] = record
    names = {
        text(drive, "identity"): text(drive, "serial")
        for bay in tables(story.manifest.get("bays"))
        for drive in tables(bay.get("drives"))
    }
    rows: list[PageRow] = [
        (names.get(drive) or drive, *(_change(when, name) for name in HEALTH)) for drive, when in seen.items()
    ]
    return PageTable("Health of the drives, before → after", ("Drive", *HEALTH.values()), tuple(rows))


def worsened(story: RunReader) -> tuple[str, ...]:
    """What got worse than use explains, a sentence each."""
    return tuple(
        f"{record.facts.get('name')}: {finding}"
        for record in story.of("drive_worsened")
        for finding in texts(record.facts.get("findings"))
    )


def arrays(story: RunReader) -> PageTable:
    """As they were created."""
    rows = [_array(record) for record in story.of("array_created")]
    columns = ("Array", "Members", "Size", "Consistency", "Purge", "Settings")
    return bounded(f"Arrays: {len(rows):,}", columns, rows, MOST_ROWS, RECORDS)


def surroundings(story: RunReader) -> PageTable:
    """The worst of each check over the whole run, and how often there was an objection."""
    figures: dict[str, list[float]] = {}
    unknown: Counter[str] = Counter()
    objections: Counter[str] = Counter()
    for record in story.of("surroundings"):
        for name, value in table(record.facts.get("checks")).items():
            if isinstance(value, int | float):
                figures.setdefault(name, []).append(value)
        unknown.update(texts(record.facts.get("unknown")))
        objections.update(texts(record.facts.get("objections")))
    rows: list[PageRow] = [
        (name.replace("_", " "), f"{min(found):,.4g}", f"{max(found):,.4g}", f"{len(found):,}", f"{unknown[name]:,}")
        for name, found in figures.items()
    ]
    rows += [(name.replace("_", " "), "", "", "0", f"{unknown[name]:,}") for name in unknown if name not in figures]
    rows += [(f"objection: {said}", "", "", f"{number:,}", "") for said, number in objections.most_common(MOST_ROWS)]
    columns = ("Looked at around every measurement", "Least", "Most", "Known", "Unknown")
    return PageTable("Surroundings", columns, tuple(rows))


def documents(story: RunReader) -> tuple[tuple[str, str], ...]:
    """Titles and whole texts of protocol and spec, as they were used."""
    found = ((name, table(story.manifest.get(name))) for name in ("protocol", "spec"))
    return tuple((f"The {name} {text(each, 'name')}", text(each, "text")) for name, each in found if each)


def files(names: Sequence[tuple[str, int]]) -> PageTable:
    """Raw files (name, bytes), by folder, and the names of the first of them."""
    folders: dict[str, list[int]] = {}
    for name, size in names:
        folders.setdefault(name.rpartition("/")[0] or ".", []).append(size)
    rows: list[PageRow] = [
        (f"{folder}/ ({len(sizes):,} {'file' if len(sizes) == 1 else 'files'})", format_capacity(sum(sizes)))
        for folder, sizes in sorted(folders.items())
    ]
    listed = [(name, format_capacity(size)) for name, size in names if not name.startswith("transcript/")]
    return bounded("Files", ("File", "Size"), [*rows, *listed], 200, "SHA256SUMS in the run folder lists them all")


def table(value: object) -> Mapping[str, object]:
    """A JSON object, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def tables(value: object) -> list[Mapping[str, object]]:
    """A list of JSON objects; whatever else is in it is left out."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def text(record: Mapping[str, object], name: str) -> str:
    """Empty for what is missing or null."""
    found = record.get(name)
    return "" if found is None else str(found)


def _capacity(value: object) -> str:
    known = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return format_capacity(value) if known else "unknown"  # type: ignore[arg-type]


def _array(record: Record) -> PageRow:
    facts = record.facts
    purges = Counter(
        text(each, "method") if isinstance(each, Mapping) else str(each) for each in table(facts.get("purge")).values()
    )
    return (
        text(facts, "geometry"),
        f"{len(texts(facts.get('members')))}",
        _capacity(facts.get("size_bytes")),
        text(facts, "consistency"),
        "; ".join(f"{number} × {method}" for method, number in purges.items()),
        ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in table(facts.get("settings")).items()),
    )


def _change(when: Mapping[str, Record], name: str) -> str:
    before, after = (_figure(name, when[each].facts.get(name)) for each in ("before", "after"))
    return before if before == after else f"{before} → {after}"


def _figure(name: str, value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _capacity(value) if name.endswith("_bytes") else str(value)
