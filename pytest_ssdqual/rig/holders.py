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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual import printable
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.machine import Machine

#: What our ``flock`` answers when somebody else holds the lock (EX_TEMPFAIL).
CONFLICT = 75
#: Of each lock file that somebody holds: its name, the seconds since the holder wrote into it, and what. A shared lock
#: can be had by several who ask at once, but not while the drive is held; what else may be wrong with the file is told
#: to whoever takes the lease.
HELD = (
    "for f; do "
    f'[ -f "$f" ] || continue; flock --shared --nonblock --conflict-exit-code {CONFLICT} "$f" true; '
    f"[ $? -eq {CONFLICT} ] || continue; "
    'age=$(($(date +%s) - $(stat -c %Y "$f"))); '
    'printf "%s\\t%s\\t%s\\n" "$f" "$age" "$(head -c 2000 "$f" | tr "\\n\\t" "  ")"; '
    "done"
)
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

    @classmethod
    def ours(cls, run: str = "", planned_s: float | None = None) -> Note:
        """Of this process."""
        return cls(f"{getpass.getuser()}@{socket.gethostname()}", os.getpid(), run, planned_s)

    def to_line(self) -> str:
        facts = {"who": self.who, "pid": self.pid, "run": self.run, "planned_s": self.planned_s}
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

    def __str__(self) -> str:
        named = ", ".join(printable.line(each, WORD_CHARACTERS) for each in self.drives[:MOST_NAMED])
        more = len(self.drives) - MOST_NAMED
        drives = f"{named}{f' and {more} more' if more > 0 else ''}"
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
    text = machine.run(["sh", "-c", HELD, "held", *files]).text
    found: dict[tuple[str, float | None], list[tuple[str, float]]] = {}
    for line in text.removesuffix("\n").split("\n") if text else ():
        file, _, rest = line.partition("\t")
        age, _, said = rest.partition("\t")
        who, planned_s = _read(said)
        found.setdefault((who, planned_s), []).append((files.get(file, file), _seconds(age)))
    return tuple(
        Holder(tuple(name for name, _ in held), who, max(age for _, age in held), planned_s)
        for (who, planned_s), held in found.items()
    )


def told(holders: Sequence[Holder], machine: str) -> str:
    """One sentence of all of them."""
    return f"another run holds drives on {machine}: " + "; ".join(map(str, holders))


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def _read(said: str) -> tuple[str, float | None]:
    """Who, and for how long they mean to; of anything that is no note of ours, what it says."""
    try:
        noted = json.loads(said)
        who, pid, run = noted["who"], noted["pid"], noted.get("run", "")
        planned_s = noted.get("planned_s")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return printable.line(said.strip(), WORD_CHARACTERS) or "somebody who does not say who", None
    is_number = isinstance(planned_s, int | float) and math.isfinite(planned_s) and planned_s >= 0
    run = f", run {run}" if run else ""
    return printable.line(f"{who}, process {pid}{run}", WORD_CHARACTERS), float(planned_s) if is_number else None
