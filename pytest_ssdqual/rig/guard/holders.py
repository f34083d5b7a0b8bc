"""Who holds drives of a machine under test: what holders write beside their locks, and what others are told of it.

Locks are asked for without taking them. Times are the machine's own, as the clocks of two controllers may differ; what
a note says is somebody else's word, and is shown as such.
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

#: What our ``flock`` answers when somebody else holds the lock (EX_TEMPFAIL).
CONFLICT = 75
#: What a drive's second lock file has in its name. Work that must finish locks it itself, so that the lock outlives the
#: run and its lease. No identity is written with this character, see ``lease``.
UNFINISHED = "~unfinished"
#: The holders of locks, of drives or of all work of this machine that must finish.
HELD = scripts.text("lock_holders.sh")
#: Drives named in a sentence.
MOST_NAMED = 8
#: Of another's word.
WORD_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Note:
    """What a holder leaves for others to read."""

    who: str
    pid: int
    #: Name of its run folder; empty if there is none.
    run: str = ""
    #: How long it means to hold the drives; None: it does not know.
    planned_s: float | None = None
    #: The work that must finish, if that is what holds the drive, and the kernel's name of the drive.
    work: str = ""
    kname: str = ""

    @classmethod
    def ours(cls, run: str = "", planned_s: float | None = None, work: str = "", kname: str = "") -> Note:
        """Of this process."""
        return cls(f"{getpass.getuser()}@{socket.gethostname()}", os.getpid(), run, planned_s, work, kname)

    def to_line(self) -> str:
        facts = {"who": self.who, "pid": self.pid, "run": self.run, "planned_s": self.planned_s}
        facts |= {"work": self.work, "kname": self.kname}
        return json.dumps({name: value for name, value in facts.items() if value not in ("", None)})


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody else, and what they hold."""

    #: Identities of drives.
    drives: tuple[str, ...]
    #: As they say.
    who: str
    #: For how long they have held the first of them, in seconds.
    age_s: float
    planned_s: float | None = None
    #: The work that must finish, as they say.
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
    """Who else holds which of these drives, by the files of their locks; nobody is kept from taking them by asking.

    ``files`` maps a lock file to the drive's identity.
    """
    return _holders((files.get(file, file), age_s, said) for file, age_s, said in _asked(machine, files))


def under_way(machine: Machine, directory: str, knames: Collection[str]) -> tuple[Holder, ...]:
    """Work on drives of these names that must finish and still goes on.

    It is asked for before anything is read from a drive: a drive that erases itself answers only when it is done.
    """
    found = [(_kname(said), age_s, said) for _, age_s, said in _asked(machine, [directory])]
    return _holders((f"/dev/{kname}", age_s, said) for kname, age_s, said in found if kname in knames)


def _asked(machine: Machine, files: Iterable[str]) -> Iterator[tuple[str, float, str]]:
    text = machine.run(["sh", "-c", HELD, "held", UNFINISHED, *files]).text
    for line in text.removesuffix("\n").split("\n") if text else ():
        file, _, rest = line.partition("\t")
        age, _, said = rest.partition("\t")
        yield file, _seconds(age), said


def _holders(held: Iterable[tuple[str, float, str]]) -> tuple[Holder, ...]:
    """From the drive, the age and the note of each lock: what one holder has is one."""
    found: dict[tuple[str, float | None, str], list[tuple[str, float]]] = {}
    for drive, age_s, said in held:
        found.setdefault(_read(said), []).append((drive, age_s))
    return tuple(
        Holder(tuple(name for name, _ in drives), who, max(age_s for _, age_s in drives), planned_s, work)
        for (who, planned_s, work), drives in found.items()
    )


def told(holders: Sequence[Holder], machine: str) -> str:
    """One sentence of all of them."""
    return f"another run holds drives on {machine}: " + "; ".join(map(str, holders))


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def _kname(said: str) -> str:
    try:
        return str(json.loads(said)["kname"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def _read(said: str) -> tuple[str, float | None, str]:
    """Who, for how long they mean to, and what work it is; of anything that is no note of ours, what it says."""
    try:
        noted = json.loads(said)
        who, pid, run = noted["who"], noted["pid"], noted.get("run", "")
        planned_s, work = noted.get("planned_s"), noted.get("work", "")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return safe_text.line(said.strip(), WORD_CHARACTERS) or "somebody who does not say who", None, ""
    is_number = isinstance(planned_s, int | float) and math.isfinite(planned_s) and planned_s >= 0
    run = f", run {run}" if run else ""
    work = safe_text.line(str(work), WORD_CHARACTERS) if work else ""
    return safe_text.line(f"{who}, process {pid}{run}", WORD_CHARACTERS), float(planned_s) if is_number else None, work
