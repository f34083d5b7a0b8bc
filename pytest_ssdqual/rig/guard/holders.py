"""Owners of drives on the machine under test: the notes they write beside their locks, and reports of them.

Locks are tested without being taken. Times are those of the machine under test, because the clocks of two controllers
may differ. A note is another run's unverified statement, and is reported as such.
"""

from __future__ import annotations

import getpass
import json
import math
import os
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine

#: Exit status of ``flock`` when another process holds the lock (EX_TEMPFAIL).
CONFLICT = 75
#: Part of the name of a drive's second lock file. Work that must finish locks it itself, so that the lock outlives the
#: run and its lease. File names of identities never contain this character, see ``lease``.
UNFINISHED = "~unfinished"
#: Script that lists the owners of locks: those of drives, or of all work on this machine that must finish.
HELD = scripts.text("lock_holders.sh")
#: The most drives named in a sentence.
MOST_NAMED = 8
#: The longest text that is quoted from a note.
WORD_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Note:
    """What the owner of a lock writes for other runs to read."""

    who: str
    pid: int
    #: Name of its run folder; empty if there is none.
    run: str = ""
    #: How long it plans to hold the drives; None if unknown.
    planned_s: float | None = None
    #: The work that must finish, if that is what holds the drive, and the kernel's name of the drive.
    work: str = ""
    kname: str = ""

    @classmethod
    def of_this_process(cls, run: str = "", planned_s: float | None = None, work: str = "", kname: str = "") -> Note:
        """The note of this process."""
        return cls(f"{getpass.getuser()}@{socket.gethostname()}", os.getpid(), run, planned_s, work, kname)

    def to_line(self) -> str:
        facts = {"who": self.who, "pid": self.pid, "run": self.run, "planned_s": self.planned_s}
        facts |= {"work": self.work, "kname": self.kname}
        return json.dumps({name: value for name, value in facts.items() if value not in ("", None)})


@dataclass(frozen=True, slots=True)
class Holder:
    """Another run or process that holds drives."""

    #: Identities of drives.
    drives: tuple[str, ...]
    #: User, host, process and run, according to its note.
    who: str
    #: How long it has held the first of the drives, in seconds.
    age_s: float
    planned_s: float | None = None
    #: The work that must finish, according to its note.
    work: str = ""

    def __str__(self) -> str:
        named = ", ".join(safe_text.line(each, WORD_CHARACTERS) for each in self.drives[:MOST_NAMED])
        more = len(self.drives) - MOST_NAMED
        drives = f"{named}{f' and {more} more' if more > 0 else ''}"
        if self.work:
            age = format_duration(max(1.0, self.age_s))
            return f"{drives}: {self.work}, begun by {self.who}, goes on for {age} now{self._expected()}"
        return f"{drives}: held by {self.who} for {format_duration(max(1.0, self.age_s))}{self._expected()}"

    def _expected(self) -> str:
        if self.planned_s is None:
            return ""
        left_s = self.planned_s - self.age_s
        if left_s > 0:
            return f", by its plan for about {format_duration(left_s)} more"
        return f", {format_duration(max(1.0, -left_s))} longer than it had planned"


def ask(machine: Machine, files: Mapping[str, str]) -> tuple[Holder, ...]:
    """Other owners of these drives; asking does not prevent another process from taking a lock.

    ``files`` maps a lock file to the drive's identity.
    """
    return _holders((files.get(file, file), age_s, note) for file, age_s, note in _asked(machine, files))


def under_way(machine: Machine, directory: str, knames: Collection[str]) -> tuple[Holder, ...]:
    """Unfinished work on drives of these names that must not be interrupted.

    Ask before anything is read from a drive: a drive that erases itself answers only when it is done.
    """
    found = [(_kname(note), age_s, note) for _, age_s, note in _asked(machine, [directory])]
    return _holders((f"/dev/{kname}", age_s, note) for kname, age_s, note in found if kname in knames)


def _asked(machine: Machine, files: Iterable[str]) -> Iterator[tuple[str, float, str]]:
    text = machine.run(["sh", "-c", HELD, "held", UNFINISHED, *files]).text
    for line in text.removesuffix("\n").split("\n") if text else ():
        file, _, rest = line.partition("\t")
        age, _, note = rest.partition("\t")
        yield file, _seconds(age), note


def _holders(held: Iterable[tuple[str, float, str]]) -> tuple[Holder, ...]:
    """One ``Holder`` for all locks with the same note, from the drive, the age and the note of each lock."""
    drives_by_note: dict[tuple[str, float | None, str], list[tuple[str, float]]] = {}
    for drive, age_s, note in held:
        drives_by_note.setdefault(_read(note), []).append((drive, age_s))
    return tuple(
        Holder(tuple(name for name, _ in drives), who, max(age_s for _, age_s in drives), planned_s, work)
        for (who, planned_s, work), drives in drives_by_note.items()
    )


def told(holders: Sequence[Holder], machine: str) -> str:
    """One sentence that reports all owners."""
    return f"another run holds drives on {machine}: " + "; ".join(map(str, holders))


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def _kname(note: str) -> str:
    try:
        return str(json.loads(note)["kname"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def _read(note: str) -> tuple[str, float | None, str]:
    """Owner, planned duration and work of a note; of a text that is no note, the text itself."""
    try:
        noted = json.loads(note)
        who, pid, run = noted["who"], noted["pid"], noted.get("run", "")
        planned_s, work = noted.get("planned_s"), noted.get("work", "")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return safe_text.line(note.strip(), WORD_CHARACTERS) or "an unknown process", None, ""
    is_number = isinstance(planned_s, int | float) and math.isfinite(planned_s) and planned_s >= 0
    run = f", run {run}" if run else ""
    work = safe_text.line(str(work), WORD_CHARACTERS) if work else ""
    return safe_text.line(f"{who}, process {pid}{run}", WORD_CHARACTERS), float(planned_s) if is_number else None, work
