"""What the kernel said of the array, its drives and their controllers while a verdict's figures were measured.

The rule of the module: silence, a log that nobody could read, and a record that has no word of it are three things.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.environment import KernelLog, kernel_log
from pytest_ssdqual.qual.strict_json import conforming
from pytest_ssdqual.report.run_folder.reader import RunReader
from pytest_ssdqual.rig.observe.kernel_log import LINE_CHARACTERS

#: Lines of one verdict, of all its measurements together: as many as of one.
MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Said:
    """While one fio process ran."""

    #: The raw file that it wrote.
    raw: str
    lines: tuple[str, ...]
    #: How many more there were.
    more: int
    lost: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """See the module; of one verdict."""

    #: Of the measurements in which something was said, or may have been.
    said: tuple[Said, ...]
    #: How many measurements nothing was said in, the log could not be read in, and there is no record of.
    silent: int
    unread: int
    unknown: int


def logs(story: RunReader) -> Mapping[str, KernelLog | None]:
    """By raw file; None where the log could not be read. What a damaged record says is left out."""
    found: dict[str, KernelLog | None] = {}
    for record in story.of("surroundings"):
        try:
            raw, noted = str(record.facts["raw"]), record.facts["kernel"]
            found[raw] = None if noted is None else conforming(kernel_log(noted))  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return found


def during(known: Mapping[str, KernelLog | None], raw: Sequence[str]) -> Kernel:
    """Of the measurements that wrote these files; ``known`` is of ``logs``."""
    measured = [name for name in raw if not name.endswith((".fio", ".history"))]
    heard = {name: known[name] for name in measured if name in known}
    said, left = [], MOST_LINES
    for name, log in heard.items():
        if log and (log.lines or log.more or log.lost):
            lines = tuple(safe_text.line(each.describe(), LINE_CHARACTERS) for each in log.lines[:left])
            left -= len(lines)
            said.append(Said(name, lines, max(0, log.more) + len(log.lines) - len(lines), log.lost))
    unread = sum(log is None for log in heard.values())
    return Kernel(tuple(said), len(heard) - len(said) - unread, unread, len(measured) - len(heard))
