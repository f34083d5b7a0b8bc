"""Exclusive lease of drives by ``flock`` on the machine under test: one owner per drive, for as long as it lives.

A scheduler cannot guarantee that two runs, perhaps of two controllers, do not use the same drive; ``flock`` on the
machine under test can. One supervised process holds all locks of a set: however the controller's process dies, that
process ends and the locks are free. Drives are named by WWN or serial, never by /dev/sdX, which may change at each
boot.
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
#: Polling interval while waiting for drives.
LOOK_EVERY_S = 5.0
#: flock failed but no process holds the lock now: another run probed at the same moment, or has just released it.
#: Retry this many times, at this interval.
AT_ONCE, AT_ONCE_S = 10, 0.3


@dataclass(frozen=True, slots=True)
class Terms:
    """What a lease reports to other runs, and how long to wait for it."""

    note: Note = field(default_factory=Note.of_this_process)
    #: How long to wait for drives that another run holds, in seconds.
    wait_s: float = 0.0
    #: Names of drives in messages, by identity; the default is the identity itself.
    names: Mapping[str, str] = field(default_factory=dict)
    #: Called once for each owner that the run waits for, with a sentence and the longest wait in seconds.
    waiting: Callable[[str, float], None] = lambda sentence, wait_s: None


class LeaseLost(RigError):
    """The lease ended during the run: nothing may be written any more."""


class Lease:
    """All drives of a set, or none; held from construction until ``release``."""

    def __init__(self, machine: Machine, identities: Iterable[str], terms: Terms | None = None) -> None:
        """Take the lease, and wait for it if ``terms`` say so.

        Raises ``LeaseTaken`` with each drive that another run holds, its owner and for how long.
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
        """Release the locks; harmless if they are free already."""
        self._holder.cut()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def await_free(machine: Machine, identities: Iterable[str], terms: Terms, began: float | None = None) -> bool:
    """Wait until no other run holds one of the drives, and return whether one did; does not take the lease.

    ``began``: when the waiting began, by ``time.monotonic()``, if before this call. Raises ``LeaseTaken`` as ``Lease``.
    """
    patience = _Patience.of(machine, identities, terms)
    patience.began = patience.began if began is None else began
    waited = False
    while owners := holders.ask(machine, patience.files):
        patience.wait_for(owners)
        waited = True
    return waited


def await_finished(machine: Machine, knames: Collection[str], terms: Terms, began: float | None = None) -> bool:
    """``await_free`` for work on these drives that must finish; such drives cannot be surveyed meanwhile."""
    patience = _Patience(machine, {}, terms)
    patience.began = patience.began if began is None else began
    waited = False
    while owners := holders.under_way(machine, DIRECTORY, knames):
        patience.wait_for(owners)
        waited = True
    return waited


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
    def of(cls, machine: Machine, identities: Iterable[str], terms: Terms) -> _Patience:
        files = {file: terms.names.get(identity, identity) for file, identity in _by_file(identities).items()}
        return cls(machine, files, terms)

    def use(self) -> None:
        """Wait after a failed attempt to take the lease."""
        if owners := holders.ask(self.machine, self.files):
            self.wait_for(owners)
            return
        self._unexplained += 1
        if self._unexplained > AT_ONCE:
            raise LeaseTaken(f"others hold drives on {self.machine.name} again and again, for a moment each; try again")
        time.sleep(AT_ONCE_S)

    def wait_for(self, owners: tuple[holders.Holder, ...]) -> None:
        """Report the owners and sleep for one polling interval; ``LeaseTaken`` when the time is over."""
        wait_s = self.terms.wait_s
        left_s = wait_s - (time.monotonic() - self.began)
        sentence = holders.told(owners, self.machine.name)
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


def lock_files(identities: Iterable[str]) -> tuple[str, ...]:
    """One file per drive, sorted, so that two runs that want overlapping sets cannot deadlock."""
    return tuple(_by_file(identities))


def must_finish(drive: Drive, what: str, *, expected_s: float | None = None, caution: str = "") -> MustFinish:
    """Work on a leased drive that must not be interrupted; no other run gets the drive until it has ended."""
    (file,) = lock_files([drive.identity])
    work = f"{what}, {caution}" if caution else what
    note = Note.of_this_process(planned_s=expected_s, work=work, kname=drive.kname).to_line()
    lock = f"{file.removesuffix('.lock')}{UNFINISHED}.lock"
    return MustFinish(f"{what} of {drive.describe()}", lock, note, expected_s, caution)


def _by_file(identities: Iterable[str]) -> dict[str, str]:
    return dict(sorted((f"{DIRECTORY}/{_file_name(name)}.lock", name) for name in identities))


def _file_name(identity: str) -> str:
    """The identity if it is a valid file name; otherwise its valid characters and a digest, so names stay unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", identity)[:100]
    return plain if plain == identity else f"{plain}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def holder_argv(files: Iterable[str], who: str, of_run: str) -> list[str]:
    """Command of one process that holds the lock on every file: each ``flock`` execs the next one (--no-fork).

    ``of_run`` is locked as well, shared: that lock only shows that the run is alive.
    """
    files = tuple(files)
    flock = ("flock", "--no-fork", "--nonblock", "--conflict-exit-code", str(CONFLICT))
    locks = [*flock, "--shared", of_run, *(part for file in files for part in (*flock, file))]
    return [*locks, "sh", "-c", HOLDER, "lease", UNFINISHED, who, *files]
