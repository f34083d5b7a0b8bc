"""Kernel messages between two readings about an array, its drives, and the path from a drive to the bus.

A message counts if it contains a name of a directory in sysfs on the way from a drive up to the bus; no name is
guessed, and a name must stand alone: ``sda`` does not match ``sdaa``, nor ``ata3.00`` ``ata3.01``. Messages are
identified by the kernel's own numbers (``/dev/kmsg``, Documentation/ABI/testing/dev-kmsg), or by their time stamps
where only ``dmesg`` is readable; counting them is not possible, because the log is a ring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import LEVELS, KernelLine, KernelLog
from pytest_ssdqual.qual.validity import fault_signatures
from pytest_ssdqual.rig.machine import scripts

#: Limit of a line: a message with an address, a command and its sense data has 150 characters.
LINE_CHARACTERS = 240
#: Mark of the first reading, and of a log that could not be read.
FIRST, UNREAD = "new", "-"
#: A device's name in sysfs; ``+`` precedes names above the controller, which other drives may share.
NAME = re.compile(r"\+?[\w.:!/-]{1,64}", re.ASCII)
#: Position in the log: k and the number of the last message, or t and its time stamp.
MARK = re.compile(r"k\d{1,18}|t\d{1,12}\.\d{1,9}", re.ASCII)
MESSAGE = re.compile(r"(?P<level>[0-7-]) (?P<s>\d{1,12}\.\d{6}) (?P<text>.*)", re.ASCII | re.DOTALL)

#: Functions of ``environment.SCRIPT``, and the program that they give to awk.
SCRIPT = scripts.text("kernel_log.sh")
#: The text of an awk string has each backslash twice.
PICK = scripts.text("kernel_log.awk").replace(
    "@HOST@", fault_signatures.host_pattern().replace("\\", "\\\\").replace('"', '\\"')
)


@frozen
class KernelLogExcerpt:
    """The kernel's log at one reading, as far as it concerns the array and its drives."""

    #: Position of the log's end.
    mark: str
    #: Messages since the earlier reading; empty at the first one.
    log: KernelLog


def parse(mark_line: str, lines: Iterable[str]) -> KernelLogExcerpt:
    """Parse the section of an answer: the words of its first line, and its lines. ``ValueError`` if it is none."""
    mark, _, counts = mark_line.partition(" ")
    more, _, lost = counts.partition(" ")
    if not MARK.fullmatch(mark) or not re.fullmatch(r"\d{1,18}", more, re.ASCII) or lost not in ("0", "1"):
        raise ValueError(f"{safe_text.line(mark_line, 40)!r} is no mark of the kernel's log")
    return KernelLogExcerpt(mark, KernelLog(tuple(map(_line, lines)), int(more), lost == "1"))


def names(words: Iterable[str]) -> tuple[str, ...]:
    """Names as messages spell them, without duplicates; sysfs has ``!`` for the slash of some controllers' names."""
    return tuple(dict.fromkeys(word.replace("!", "/") for word in words if NAME.fullmatch(word)))


def syncs(log: KernelLog, kname: str) -> tuple[str, ...]:
    """Messages that md started a resync, check or recovery of the array with this kernel name."""
    began = re.compile(rf"md: .* of RAID array {re.escape(kname)}")
    return tuple(message.describe() for message in log.lines if began.fullmatch(message.text))


def between(first: KernelLogExcerpt | None, last: KernelLogExcerpt | None) -> KernelLog | None:
    """Messages between two readings; None if the log could not be read at both."""
    return last.log if first and last else None


def gravest(log: KernelLog, most: int) -> tuple[str, ...]:
    """The ``most`` gravest messages from warning upwards, without time stamps and repeats; where only dmesg could be
    read, no message has a severity, and the first ones are returned.
    """
    grave = (line for line in log.lines if line.level is None or line.level < len(LEVELS))
    by_level = sorted(grave, key=lambda line: len(LEVELS) if line.level is None else line.level)
    return tuple(dict.fromkeys(line.text for line in by_level))[:most]


def parameters(first: KernelLogExcerpt | None, names: Sequence[str], *, is_first: bool) -> list[str]:
    """Parameters of the script of a reading: the mark of the earlier one, and the names that count."""
    mark = first.mark if first else UNREAD
    if is_first:
        mark = FIRST
    return [mark, " ".join(names)]


def _line(text: str) -> KernelLine:
    match = MESSAGE.fullmatch(text)
    if not match:
        raise ValueError(f"{safe_text.line(text, 40)!r} is no line of the kernel's log")
    level = None if match["level"] == "-" else int(match["level"])
    return KernelLine(float(match["s"]), level, safe_text.line(match["text"], LINE_CHARACTERS))
