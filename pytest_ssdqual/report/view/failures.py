"""Context of a failed promise: the command that repeats it, members, related measurements, kernel log, files; pure.

Kernel messages about an array, its drives and their controllers during the measurements of a verdict.

No message, a log that could not be read, and a record without a log are three different cases.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import EnvironmentRecord, KernelLog, ProcessEnvironment
from pytest_ssdqual.qual.measured.result_records import MeasuredRecord
from pytest_ssdqual.qual.measured.run import RunRecord
from pytest_ssdqual.report.evidence.evidence import Evidence, Finding
from pytest_ssdqual.report.run_folder.reader import Judged, RunReader
from pytest_ssdqual.report.view import commands, witnesses
from pytest_ssdqual.report.view.commands import Repeat, ShownCommand
from pytest_ssdqual.report.view.tables import Table
from pytest_ssdqual.rig.observe.kernel_log import LINE_CHARACTERS

#: Maximum number of lines of a verdict, over all its measurements.
MOST_LINES = 40
#: Maximum number of failures with this context; further ones are rows of a table.
MOST = 40
#: Maximum number of commands (a sweep has one for each width) and raw files of a verdict.
MOST_COMMANDS, MOST_FILES = 3, 24
#: Kinds of records of measurements.
MEASURED = ("measured", "explored", "explored_longer", "confirmed")


@frozen
class KernelMessages:
    """Kernel messages during one fio process."""

    #: Raw file of the process.
    raw: str
    lines: tuple[str, ...]
    #: Number of further lines.
    more: int
    lost: bool


@frozen
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


@frozen
class Failure:
    """A failed promise with its context."""

    #: An HTML id.
    key: str
    judged: Judged
    repeat: Repeat
    #: Names and texts of files by which a search or an integrity test can be repeated.
    scripts: tuple[tuple[str, str], ...]
    #: What was observed in the first measurement, and of it the I/O at each member.
    seen: ProcessEnvironment | None
    members: Table | None
    kernel: KernelDuring
    #: The first raw files, and the number of further ones.
    raw: tuple[str, ...]
    more_raw: int

    @property
    def cause(self) -> str:
        """What is the cause; empty if none was attributed."""
        found = self.judged.cause
        return found.subject if found else ""


def failures(story: RunReader, judged: Sequence[Judged], ran: Sequence[ShownCommand]) -> Iterator[Failure]:
    """Yield the first ``MOST`` failed promises in the order in which they were judged; ``ran`` are all commands."""
    # Record of the fio process that wrote a raw file, the first record that names it, and the kernel log of that time.
    runs, mentions, logs = dict(_runs(story)), commands.mentions(story), kernel_logs(story)
    # Device names change with every boot.
    drives = {drive.path: drive.name for drive in story.manifest.drives}
    broken = [each for each in judged if each.outcome is Finding.FAIL and not each.is_inspection]
    for number, each in enumerate(broken[:MOST], 1):
        raw = each.raw
        run = next((runs[name] for name in raw if name in runs), None)
        yield Failure(
            key=f"failure-{number}",
            judged=each,
            repeat=commands.of(ran, [mentions.get(name) for name in raw[:MOST_COMMANDS]], drives),
            scripts=tuple(_scripts(story.folder, raw)),
            seen=run,
            members=witnesses.members(run) if run else None,
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


def observed_with(story: RunReader, evidence: Evidence, drives: Sequence[str]) -> RunRecord | None:
    """Return the measurement on the widest array behind a verdict that has these drives as members; None without one.

    The drives are serial numbers.
    """
    runs = [
        run
        for measured in story.contents(MeasuredRecord, *MEASURED)
        for run in measured.runs
        if run.raw in evidence.raw and run.seen and {drive.name for drive in run.seen.drives}.issuperset(drives)
    ]
    return max(runs, key=lambda run: run.geometry.width, default=None)


def _runs(story: RunReader) -> Iterator[tuple[str, ProcessEnvironment]]:
    for measured in story.contents(MeasuredRecord, *MEASURED):
        yield from ((run.raw, run.seen) for run in measured.runs if run.seen)
