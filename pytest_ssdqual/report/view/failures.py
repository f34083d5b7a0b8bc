"""Context of a failed promise: the command that repeats it, members, related measurements, kernel log, files; pure.

Kernel messages about an array, its drives and their controllers during the measurements of a verdict.

No message, a log that could not be read, and a record without a log are three different cases.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.environment import EnvironmentRecord, KernelLog, ProcessEnvironment
from pytest_ssdqual.qual.measured.result_records import MeasuredRecord
from pytest_ssdqual.qual.units import format_value
from pytest_ssdqual.report.charts.drives import figure_of
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.view import commands, witnesses
from pytest_ssdqual.report.view.commands import Repeat, ShownCommand
from pytest_ssdqual.report.view.tables import Table, TableRow, bounded, parse_geometry, workload_order
from pytest_ssdqual.rig.observe.kernel_log import LINE_CHARACTERS

#: Maximum number of lines of a verdict, over all its measurements.
MOST_LINES = 40
#: Maximum number of failures with this context; further ones are rows of a table.
MOST = 40
#: Maximum number of commands (a sweep has one for each width), members and raw files of a verdict.
MOST_COMMANDS, MOST_MEMBERS, MOST_FILES = 3, 64, 24
COMMON = "records.jsonl has them"
#: Sort key of a width or of a workload.
Order = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class KernelMessages:
    """Kernel messages during one fio process."""

    #: Raw file of the process.
    raw: str
    lines: tuple[str, ...]
    #: Number of further lines.
    more: int
    lost: bool


@dataclass(frozen=True, slots=True)
class KernelDuring:
    """Kernel messages during the measurements of one verdict."""

    #: Measurements with messages, or with messages lost.
    messages: tuple[KernelMessages, ...]
    #: Number of measurements without a message, with an unreadable log, and without a record.
    silent: int
    unread: int
    unknown: int


def kernel_logs(story: RunReader) -> Mapping[str, KernelLog | None]:
    """Return the kernel log by raw file, None if it could not be read."""
    return {record.raw: record.kernel for record in story.contents(EnvironmentRecord, "environment")}


def kernel_during(known: Mapping[str, KernelLog | None], raw: Sequence[str]) -> KernelDuring:
    """Return the messages during the measurements that wrote these files; ``known`` comes from ``kernel_logs``."""
    measured = [name for name in raw if not name.endswith((".fio", ".history"))]
    heard = {name: known[name] for name in measured if name in known}
    messages, left = [], MOST_LINES
    for name, log in heard.items():
        if log and (log.lines or log.more or log.lost):
            lines = tuple(safe_text.line(each.describe(), LINE_CHARACTERS) for each in log.lines[:left])
            left -= len(lines)
            messages.append(KernelMessages(name, lines, max(0, log.more) + len(log.lines) - len(lines), log.lost))
    unread = sum(log is None for log in heard.values())
    return KernelDuring(tuple(messages), len(heard) - len(messages) - unread, unread, len(measured) - len(heard))


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed promise with its context."""

    #: An HTML id.
    key: str
    judged: Judged
    repeat: Repeat
    #: Names and texts of files by which a search or an integrity test can be repeated.
    scripts: tuple[tuple[str, str], ...]
    members: Table | None
    host: Table | None
    figures: Table
    neighbours: Table | None
    kernel: KernelDuring
    #: The first raw files, and the number of further ones.
    raw: tuple[str, ...]
    more_raw: int


def failures(story: RunReader, judged: Sequence[Judged], ran: Sequence[ShownCommand]) -> Iterator[Failure]:
    """Yield the first ``MOST`` failed promises in the order in which they were judged; ``ran`` are all commands."""
    # Record of the fio process that wrote a raw file, the first record that names it, and the kernel log of that time.
    runs, mentions, logs = dict(_runs(story)), commands.mentions(story), kernel_logs(story)
    drives = dict(commands.names(story))
    broken = [each for each in judged if each.evidence.outcome is Finding.FAIL]
    for number, each in enumerate(broken[:MOST], 1):
        raw = each.evidence.raw
        run = next((runs[name] for name in raw if name in runs), None)
        yield Failure(
            key=f"failure-{number}",
            judged=each,
            repeat=commands.of(ran, [mentions.get(name) for name in raw[:MOST_COMMANDS]], drives),
            scripts=tuple(_scripts(story.folder, raw)),
            members=_members(each.evidence) or (witnesses.members(run) if run else None),
            host=witnesses.host(run) if run else None,
            figures=_figures(each.evidence),
            neighbours=_neighbours(each, judged),
            kernel=kernel_during(logs, raw),
            raw=raw[:MOST_FILES],
            more_raw=max(0, len(raw) - MOST_FILES),
        )


def _scripts(folder: Path, raw: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield fio's job files and scripts of integrity steps, which can be run again."""
    for name in raw:
        if name.endswith((".fio", ".history")):
            with contextlib.suppress(OSError, ValueError):
                yield name, commands.file_text(folder, name)


def _runs(story: RunReader) -> Iterator[tuple[str, ProcessEnvironment]]:
    for measured in story.contents(MeasuredRecord, "measured", "explored", "explored_longer", "confirmed"):
        yield from ((run.raw, run.seen) for run in measured.runs if run.seen)


def _figures(evidence: Evidence) -> Table:
    rows: list[TableRow] = [
        ("measured", f"{evidence.measured} ({evidence.interval_in_full})"),
        ("limit", f"{evidence.bound} ({evidence.source})"),
    ]
    if evidence.published:
        published = evidence.published
        about = "about " if published.approximate else ""
        rows.append(("published", f"{about}{format_value(published.value, published.unit)} ({published.source})"))
    rows += [(name, f"{value:,.6g}") for name, value in evidence.figures.items() if value is not None]
    return bounded(("Figure", "Value"), rows, "Figures of this verdict", MOST_MEMBERS, COMMON)


def _members(evidence: Evidence) -> Table | None:
    rows: list[TableRow] = [
        (
            each.name,
            "" if (figure := figure_of(evidence, each)) is None else format_value(*figure),
            each.outcome or "",
            "worst" if each.name == evidence.worst else "",
        )
        for each in evidence.members
    ]
    return bounded(("Drive", "Value", "Outcome", "Remark"), rows, "Each drive", MOST_MEMBERS, COMMON) if rows else None


def _neighbours(judged: Judged, every: Sequence[Judged]) -> Table | None:
    """Return the same claim on the next widths, and for the next workloads on the same array."""
    mine = judged.evidence
    alike = [each.evidence for each in every if each.evidence.claim == mine.claim and each.evidence != mine]
    rows: list[TableRow] = [
        (how, each.sentence, each.outcome)
        for how, place in (("another width", _width), ("another workload", _workload))
        for each in _next_to(mine, alike, place)
    ]
    return Table(("Differs in", "Measurement", "Outcome"), tuple(rows), "Related measurements") if rows else None


def _width(evidence: Evidence) -> tuple[object, Order] | None:
    """Return what other widths have in common, and the width; None for several widths."""
    if len(evidence.geometries) != 1:
        return None
    level, state, width = parse_geometry(evidence.geometries[0])
    return (evidence.workloads, level, state), (width,)


def _workload(evidence: Evidence) -> tuple[object, Order] | None:
    """Return what other workloads have in common, and the order of the workload; None for several workloads."""
    if len(evidence.workloads) != 1:
        return None
    order = workload_order(evidence.workloads[0])
    return (evidence.geometries, order[0]), order


def _next_to(
    mine: Evidence, alike: Sequence[Evidence], place: Callable[[Evidence], tuple[object, Order] | None]
) -> Iterator[Evidence]:
    """Yield the neighbour below and the one above among those that have the same in common."""
    if (here := place(mine)) is None:
        return
    others = {found[1]: each for each in alike if (found := place(each)) and found[0] == here[0]}
    below, above = [each for each in others if each < here[1]], [each for each in others if each > here[1]]
    if below:
        yield others[max(below)]
    if above:
        yield others[min(above)]
