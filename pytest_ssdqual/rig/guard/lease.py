"""One holder per drive, for as long as the holder lives, kept on the machine under test.

A scheduler cannot guarantee that two runs, perhaps of two controllers, do not meet on one drive; ``flock`` there
can. All locks of a set are held by one process at the end of a tether: when we die, however, it ends and the
locks are free. Drives are named by WWN or serial, never by /dev/sdX, which is given out anew at every boot.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard import holders
from pytest_ssdqual.rig.guard.holders import CONFLICT, UNFINISHED, Note
from pytest_ssdqual.rig.machine import run_files, scripts
from pytest_ssdqual.rig.machine.keeper import DIRECTORY
from pytest_ssdqual.rig.machine.machine import LeaseTaken, Machine, MustFinish, RigError, Tethered

HOLDER = scripts.text("lease.sh")
#: Between two looks of somebody who waits.
LOOK_EVERY_S = 5.0
#: A lock that was held when we wanted it and is not when we ask was somebody's who asked, too, or has just been freed.
AT_ONCE, AT_ONCE_S = 10, 0.3


@dataclass(frozen=True, slots=True)
class Terms:
    """What others are told of a lease, and how long it is waited for."""

    note: Note = field(default_factory=Note.ours)
    #: For drives that somebody else holds, in seconds.
    wait_s: float = 0.0
    #: How drives are called in sentences, by identity; their identity if nothing is said.
    names: Mapping[str, str] = field(default_factory=dict)
    #: Told once of each holder that is waited for, a sentence and how long it is waited at most.
    waiting: Callable[[str, float], None] = lambda told, wait_s: None


class LeaseLost(RigError):
    """The lease ended under us: nothing may be written any more."""


class Lease:
    """All drives of a set, or none; held from construction until ``release``."""

    def __init__(self, machine: Machine, identities: Iterable[str], terms: Terms | None = None) -> None:
        """Take the lease, and wait for it if ``terms`` say so.

        Raises ``LeaseTaken`` naming each drive that is held, by whom and for how long.
        """
        terms = terms or Terms()
        patience = _Patience.of(machine, identities, terms)
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
        """Let go; harmless if it is gone already."""
        self._holder.cut()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def await_free(machine: Machine, identities: Iterable[str], terms: Terms, began: float | None = None) -> bool:
    """Whether somebody held one of the drives, and let it go while we waited; the lease is not taken.

    ``began``: since when it has been waited for them already, by ``time.monotonic()``. ``LeaseTaken`` as ``Lease``.
    """
    patience = _Patience.of(machine, identities, terms)
    patience.began = patience.began if began is None else began
    waited = False
    while found := holders.ask(machine, patience.files):
        patience.wait_for(found)
        waited = True
    return waited


def await_finished(machine: Machine, knames: Collection[str], terms: Terms, began: float | None = None) -> bool:
    """As ``await_free``, of work on these drives that must finish; for drives that cannot be surveyed meanwhile."""
    patience = _Patience(machine, {}, terms)
    patience.began = patience.began if began is None else began
    waited = False
    while found := holders.under_way(machine, DIRECTORY, knames):
        patience.wait_for(found)
        waited = True
    return waited


@dataclass(slots=True)
class _Patience:
    """How long somebody who wants drives waits for those who have them."""

    machine: Machine
    #: By lock file the name of the drive.
    files: Mapping[str, str]
    terms: Terms
    began: float = field(default_factory=time.monotonic)
    _told: str = ""
    _unexplained: int = 0

    @classmethod
    def of(cls, machine: Machine, identities: Iterable[str], terms: Terms) -> _Patience:
        files = {file: terms.names.get(identity, identity) for file, identity in _by_file(identities).items()}
        return cls(machine, files, terms)

    def use(self) -> None:
        """After an attempt that somebody was in the way of."""
        if found := holders.ask(self.machine, self.files):
            self.wait_for(found)
            return
        self._unexplained += 1
        if self._unexplained > AT_ONCE:
            raise LeaseTaken(f"others hold drives on {self.machine.name} again and again, for a moment each; try again")
        time.sleep(AT_ONCE_S)

    def wait_for(self, found: tuple[holders.Holder, ...]) -> None:
        """A while; ``LeaseTaken`` when the time is over."""
        wait_s = self.terms.wait_s
        left_s = wait_s - (time.monotonic() - self.began)
        sentence = holders.told(found, self.machine.name)
        if left_s <= 0:
            raise LeaseTaken(
                f"{sentence}, after waiting {format_duration(wait_s)} for them"
                if wait_s
                else f"{sentence}; --ssd-wait=DURATION waits for them"
            )
        who = "; ".join(each.who for each in found)
        if who != self._told:
            self._told = who
            self.terms.waiting(sentence, left_s)
        time.sleep(min(LOOK_EVERY_S, left_s))


def _take(machine: Machine, files: tuple[str, ...], note: Note) -> Tethered | None:
    """Whoever holds the locks for us; None if somebody else has one of them."""
    argv = holder_argv(files, note.to_line(), run_files.lock(machine))
    holder = machine.tether(argv, first_signal="TERM", announces=True)
    if holder.read_line(60.0).strip() == "held":
        return holder
    done = holder.cut()
    if done.status == CONFLICT:
        return None
    raise RigError(f"cannot take the lease on {machine.name}: {done.errors.strip() or done.status}")


def lock_files(identities: Iterable[str]) -> tuple[str, ...]:
    """One file per drive, sorted, so that two runs that want overlapping sets cannot deadlock."""
    return tuple(_by_file(identities))


def must_finish(drive: Drive, what: str, *, expected_s: float | None = None, caution: str = "") -> MustFinish:
    """Work on a leased drive that nothing may cut short; until it has ended no other run gets the drive."""
    (file,) = lock_files([drive.identity])
    work = f"{what}, {caution}" if caution else what
    note = Note.ours(planned_s=expected_s, work=work, kname=drive.kname).to_line()
    lock = f"{file.removesuffix('.lock')}{UNFINISHED}.lock"
    return MustFinish(f"{what} of {drive.describe()}", lock, note, expected_s, caution)


def _by_file(identities: Iterable[str]) -> dict[str, str]:
    return dict(sorted((f"{DIRECTORY}/{_file_name(name)}.lock", name) for name in identities))


def _file_name(identity: str) -> str:
    """The identity where it can be a file's name; otherwise what can, and a digest: no two drives share a lock."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", identity)[:100]
    return plain if plain == identity else f"{plain}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def holder_argv(files: Iterable[str], who: str, of_run: str) -> list[str]:
    """One process that holds the lock on every file: each ``flock`` becomes the next one by exec (--no-fork).

    ``of_run`` is locked as well, shared: it only says that the run lives.
    """
    files = tuple(files)
    flock = ("flock", "--no-fork", "--nonblock", "--conflict-exit-code", str(CONFLICT))
    locks = [*flock, "--shared", of_run, *(part for file in files for part in (*flock, file))]
    return [*locks, "sh", "-c", HOLDER, "lease", UNFINISHED, who, *files]
