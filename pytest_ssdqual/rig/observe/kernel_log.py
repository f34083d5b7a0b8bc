"""What the kernel says between two looks about an array, its drives, and what they hang on.

The rule of the module: what counts is found by its names, and the names are those of the directories in sysfs from a
drive up to the bus; none is guessed. A name counts where it stands alone: ``sda`` is not ``sdaa``, ``ata3.00`` not
``ata3.01``. Messages are told apart by the kernel's own numbers (``/dev/kmsg``, Documentation/ABI/testing/dev-kmsg), or
by their time stamps where only ``dmesg`` may be read; the log is a ring, so they cannot be counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.measured.environment import KernelLine, KernelLog
from pytest_ssdqual.rig.machine import scripts

#: Of a line: a message with an address, a command and its sense data has 150 characters.
LINE_CHARACTERS = 240
#: What stands for the log's end before anything was read, and for a log that could not be read.
FIRST, UNREAD = "new", "-"
#: As sysfs spells devices; a ``+`` before it: above the controller, so other drives may hang on it, too.
NAME = re.compile(r"\+?[\w.:!/-]{1,64}", re.ASCII)
#: k and the number of the last message, or t and its time stamp.
MARK = re.compile(r"k\d{1,18}|t\d{1,12}\.\d{1,9}", re.ASCII)
SAID = re.compile(r"(?P<level>[0-7-]) (?P<s>\d{1,12}\.\d{6}) (?P<text>.*)", re.ASCII | re.DOTALL)

#: Functions of ``environment.SCRIPT``, and the program that they give to awk.
SCRIPT, PICK = map(scripts.text, ("kernel_log.sh", "kernel_log.awk"))


@dataclass(frozen=True, slots=True)
class Heard:
    """The kernel's log at one look, as far as it concerns the array and its drives."""

    #: Where it ended.
    mark: str
    #: Since the earlier look; empty at the first one.
    log: KernelLog


def parse(said: str, lines: Iterable[str]) -> Heard:
    """The section of an answer: the words of its first line, and its lines. ``ValueError`` if it is none."""
    mark, _, counts = said.partition(" ")
    more, _, lost = counts.partition(" ")
    if not MARK.fullmatch(mark) or not re.fullmatch(r"\d{1,18}", more, re.ASCII) or lost not in ("0", "1"):
        raise ValueError(f"{safe_text.line(said, 40)!r} tells nothing of the kernel's log")
    return Heard(mark, KernelLog(tuple(map(_line, lines)), int(more), lost == "1"))


def names(words: Iterable[str]) -> tuple[str, ...]:
    """What was named, each once, as messages spell it; sysfs has ``!`` for the slash of some controllers' names."""
    return tuple(dict.fromkeys(word.replace("!", "/") for word in words if NAME.fullmatch(word)))


def syncs(log: KernelLog, kname: str) -> tuple[str, ...]:
    """What md began to do with the array of this kernel name by itself: resyncs, checks, recoveries."""
    began = re.compile(rf"md: .* of RAID array {re.escape(kname)}")
    return tuple(each.describe() for each in log.lines if began.fullmatch(each.text))


def between(first: Heard | None, last: Heard | None) -> KernelLog | None:
    """What was said meanwhile; None if it could not be read at both looks."""
    return last.log if first and last else None


def parameters(first: Heard | None, known: Sequence[str], *, is_first: bool) -> list[str]:
    """What a look's script wants to know of the earlier one: where that ended, and whose messages count."""
    mark = FIRST if is_first else first.mark if first else UNREAD
    return [mark, " ".join(known)]


def _line(text: str) -> KernelLine:
    found = SAID.fullmatch(text)
    if not found:
        raise ValueError(f"{safe_text.line(text, 40)!r} is no line of the kernel's log")
    level = None if found["level"] == "-" else int(found["level"])
    return KernelLine(float(found["s"]), level, safe_text.line(found["text"], LINE_CHARACTERS))
