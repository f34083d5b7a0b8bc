"""Exclusive lease of drives by ``flock`` on the machine under test: one owner per drive, for as long as it lives.

A scheduler cannot guarantee that two runs, perhaps of two controllers, do not use the same drive; ``flock`` on the
machine under test can. One supervised process holds all locks of a set: however the controller's process dies, that
process ends and the locks are free. Drives are named by WWN and serial, never by /dev/sdX, which may change at each
boot. Each name of a drive has a lock file (``Drive.all_names``), because two runs may know one drive by different
names.

Each owner writes a note beside its locks, and other runs report the owner from that note. Locks are tested without
being taken. Times are those of the machine under test, because the clocks of two controllers may differ. A note is
another run's unverified statement, and is reported as such.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine import run_files, scripts
from pytest_ssdqual.rig.machine.machine import LeaseTaken, Machine, MustFinish, RigError, Tethered, own_name
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY

#: Exit status of ``flock`` when another process holds the lock (EX_TEMPFAIL).
CONFLICT = 75
#: Part of the name of a drive's second lock file. Work that must finish locks it itself, so that the lock outlives the
#: run and its lease. File names of identities never contain this character, see ``lease``.
UNFINISHED = "~unfinished"
#: Script that lists the owners of locks: those of drives, or of all work on this machine that must finish.
HELD = scripts.text("lock_holders.sh")
#: The most drives named in a sentence.
MOST_NAMED = 8
#: The longest plan that is believed; an integer may be larger than any float.
LONGEST_PLAN_S = 1e9
#: The longest text that is quoted from a note.
WORD_CHARACTERS = 120

HOLDER = scripts.text("lease.sh")
#: Polling interval while waiting for drives.
LOOK_EVERY_S = 5.0
#: flock failed but no process holds the lock now: another run probed at the same moment, or has just released it.
#: Retry this many times, at this interval.
AT_ONCE, AT_ONCE_S = 10, 0.3


@frozen
class Note:
    """Note of a lock's owner for other runs."""

    who: str
    pid: int
    #: Name of its run folder; empty if there is none.
    run: str = ""
    #: Seconds for which it plans to hold the drives; None if unknown.
    planned_s: float | None = None
    #: The work that must finish, if that is what holds the drive, and the kernel's name of the drive.
    work: str = ""
    kname: str = ""

    @classmethod
    def of_this_process(cls, run: str = "", planned_s: float | None = None, work: str = "", kname: str = "") -> Note:
        """The note of this process."""
        return cls(own_name(), os.getpid(), run, planned_s, work, kname)

    def to_line(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value not in ("", None)})


@frozen
class Holder:
    """Another run or process that holds drives."""

    #: Drives, as messages call them.
    drives: tuple[str, ...]
    #: User, host, process and run, according to its note.
    who: str
    #: Seconds for which it has held the first of the drives.
    age_s: float
    planned_s: float | None = None
    #: The work that must finish, according to its note.
    work: str = ""

    def __str__(self) -> str:
        named = ", ".join(safe_text.line(drive, WORD_CHARACTERS) for drive in self.drives[:MOST_NAMED])
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

    ``files`` maps a lock file to the drive's name in messages.
    """
    return _holders((files.get(file, file), age_s, note) for file, age_s, note in _asked(machine, files))


def under_way(machine: Machine, directory: str, knames: Collection[str]) -> tuple[Holder, ...]:
    """Unfinished work on drives of these names that must not be interrupted.

    Ask before anything is read from a drive: a drive that erases itself answers only when it is done.
    """
    works = [(str(_noted(note).get("kname")), age_s, note) for _, age_s, note in _asked(machine, [directory])]
    return _holders((f"/dev/{kname}", age_s, note) for kname, age_s, note in works if kname in knames)


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
        Holder(
            tuple(dict.fromkeys(name for name, _ in drives)), who, max(age_s for _, age_s in drives), planned_s, work
        )
        for (who, planned_s, work), drives in drives_by_note.items()
    )


def describe_owners(holders: Sequence[Holder], machine: str) -> str:
    """One sentence that reports all owners."""
    return f"another run holds drives on {machine}: " + "; ".join(map(str, holders))


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return 0.0


def _noted(note: str) -> Mapping[str, Any]:
    """What a note says; nothing of a text that is no note."""
    try:
        noted = json.loads(note)
    except (ValueError, RecursionError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _read(note: str) -> tuple[str, float | None, str]:
    """Owner, planned duration and work of a note; of a text that is no note, the text itself."""
    noted = _noted(note)
    if not {"who", "pid"} <= noted.keys():
        return safe_text.line(note.strip(), WORD_CHARACTERS) or "an unknown process", None, ""
    planned_s, work = noted.get("planned_s"), noted.get("work", "")
    run = f", run {noted['run']}" if noted.get("run") else ""
    who = safe_text.line(f"{noted['who']}, process {noted['pid']}{run}", WORD_CHARACTERS)
    if not isinstance(planned_s, int | float) or not 0 <= planned_s <= LONGEST_PLAN_S:
        planned_s = None
    return who, planned_s, safe_text.line(str(work), WORD_CHARACTERS) if work else ""


@frozen
class Terms:
    """Note of a lease for other runs, and the time to wait for a lease."""

    note: Note = field(default_factory=Note.of_this_process)
    #: Seconds to wait for drives that another run holds.
    wait_s: float = 0.0
    #: Called once for each owner that the run waits for, with a sentence and the longest wait in seconds.
    waiting: Callable[[str, float], None] = lambda sentence, wait_s: None


class LeaseLost(RigError):
    """The lease ended during the run: nothing may be written any more."""


class Lease:
    """All drives of a set, or none; held from construction until ``release``."""

    def __init__(self, machine: Machine, names: Mapping[str, str], terms: Terms | None = None) -> None:
        """Take the lease, and wait for it if ``terms`` say so. ``names`` are those of ``names_of``.

        Raises ``LeaseTaken`` with each drive that another run holds, its owner and for how long.
        """
        terms = terms or Terms()
        patience = _Patience.of(machine, names, terms)
        self._machine = machine
        machine.run(["mkdir", "-p", "-m", "0700", DIRECTORY])
        while (holder := _take(machine, tuple(patience.files), terms.note)) is None:
            patience.use()
        self._holder: Tethered = holder

    def require(self) -> None:
        """Raise ``LeaseLost`` unless the lease is held now."""
        if not self._holder.alive():
            raise LeaseLost(f"the lease on {self._machine.name} was lost: something ended its holder")

    def release(self) -> None:
        """Release the locks; harmless if they are free already."""
        self._holder.cut()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def names_of(drives: Iterable[Drive]) -> dict[str, str]:
    """Every name of every drive, with what a message calls the drive: path and serial, as a WWN says little."""
    return {
        name: f"{drive.path} ({drive.serial})" if drive.serial else drive.path
        for drive in drives
        for name in sorted(drive.all_names)
    }


def await_free(machine: Machine, names: Mapping[str, str], terms: Terms, began: float | None = None) -> bool:
    """Wait until no other run holds one of the drives, and return whether one did; does not take the lease.

    ``names`` are those of ``names_of``. ``began``: when the waiting began, by ``time.monotonic()``, if before this
    call. Raises ``LeaseTaken`` as ``Lease``.
    """
    patience = _Patience.of(machine, names, terms)
    return patience.outlast(lambda: ask(machine, patience.files), began)


def await_finished(machine: Machine, knames: Collection[str], terms: Terms, began: float | None = None) -> bool:
    """``await_free`` for work on these drives that must finish; such drives cannot be surveyed meanwhile."""
    return _Patience(machine, {}, terms).outlast(lambda: under_way(machine, DIRECTORY, knames), began)


@dataclass(slots=True)
class _Patience:
    """Waits for the owners of drives, as long as the terms allow."""

    machine: Machine
    #: Name of the drive, by lock file.
    files: Mapping[str, str]
    terms: Terms
    began: float = field(default_factory=time.monotonic)
    _reported: str = ""
    _unexplained: int = 0

    @classmethod
    def of(cls, machine: Machine, names: Mapping[str, str], terms: Terms) -> _Patience:
        return cls(machine, {file: names[name] for file, name in _by_file(names).items()}, terms)

    def use(self) -> None:
        """Wait after a failed attempt to take the lease."""
        if owners := ask(self.machine, self.files):
            self.wait_for(owners)
            return
        self._unexplained += 1
        if self._unexplained > AT_ONCE:
            raise LeaseTaken(f"others hold drives on {self.machine.name} again and again, for a moment each; try again")
        time.sleep(AT_ONCE_S)

    def outlast(self, ask_owners: Callable[[], tuple[Holder, ...]], began: float | None) -> bool:
        """Wait until there are no owners; return whether there were any."""
        self.began = self.began if began is None else began
        waited = False
        while owners := ask_owners():
            self.wait_for(owners)
            waited = True
        return waited

    def wait_for(self, owners: tuple[Holder, ...]) -> None:
        """Report the owners and sleep for one polling interval; ``LeaseTaken`` when the time is over."""
        wait_s = self.terms.wait_s
        left_s = wait_s - (time.monotonic() - self.began)
        sentence = describe_owners(owners, self.machine.name)
        if left_s <= 0:
            raise LeaseTaken(
                f"{sentence}, after waiting {format_duration(wait_s)} for them"
                if wait_s
                else f"{sentence}; --ssd-wait=DURATION waits for them"
            )
        who = "; ".join(owner.who for owner in owners)
        if who != self._reported:
            self._reported = who
            self.terms.waiting(sentence, left_s)
        time.sleep(min(LOOK_EVERY_S, left_s))


def _take(machine: Machine, files: tuple[str, ...], note: Note) -> Tethered | None:
    """Start the process that holds the locks for this run; None if another process holds one of them."""
    argv = holder_argv(files, note.to_line(), run_files.lock(machine))
    holder = machine.tether(argv, first_signal="TERM", announces=True)
    if holder.read_line(60.0).strip() == "held":
        return holder
    done = holder.cut()
    if done.status == CONFLICT:
        return None
    raise RigError(f"cannot take the lease on {machine.name}: {done.errors.strip() or done.status}")


def lock_files(names: Iterable[str]) -> tuple[str, ...]:
    """One file per name, sorted, so that two runs that want overlapping sets cannot deadlock."""
    return tuple(_by_file(names))


def must_finish(drive: Drive, what: str, *, expected_s: float | None = None, caution: str = "") -> MustFinish:
    """Work on a leased drive that must not be interrupted; no other run gets the drive until it has ended."""
    work = f"{what}, {caution}" if caution else what
    note = Note.of_this_process(planned_s=expected_s, work=work, kname=drive.kname).to_line()
    locks = tuple(f"{file.removesuffix('.lock')}{UNFINISHED}.lock" for file in lock_files(drive.all_names))
    return MustFinish(f"{what} of {drive.describe()}", locks, note, expected_s, caution)


def _by_file(names: Iterable[str]) -> dict[str, str]:
    return dict(sorted((f"{DIRECTORY}/{_file_name(name)}.lock", name) for name in names))


def _file_name(name: str) -> str:
    """The name if it is a valid file name; otherwise its valid characters and a digest, so names stay unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)[:100]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def holder_argv(files: Iterable[str], who: str, of_run: str) -> list[str]:
    """Command of one process that holds the lock on every file: each ``flock`` execs the next one (--no-fork).

    ``of_run`` is locked as well, shared: that lock only shows that the run is alive.
    """
    files = tuple(files)
    flock = ("flock", "--no-fork", "--nonblock", "--conflict-exit-code", str(CONFLICT))
    locks = [*flock, "--shared", of_run, *(part for file in files for part in (*flock, file))]
    return [*locks, "sh", "-c", HOLDER, "lease", UNFINISHED, who, *files]
