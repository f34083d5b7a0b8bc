"""The machine under test as a protocol, and the errors that it can cause.

Every effect on a machine goes through ``Machine``, has a deadline, is an argv list, and is recorded in the transcript.
Nothing here knows pytest.
"""

from __future__ import annotations

import getpass
import os
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Protocol

from pytest_ssdqual.qual import numbers, safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.units import format_duration

#: Limit of one line of a message: a drive may be refused for many reasons.
SENTENCE_CHARACTERS = 4000


def utc_now() -> str:
    """The current time in UTC, ISO 8601, to the millisecond, as every record of this program has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def own_name() -> str:
    """Return user and host of this process, for notes that other runs read."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # any user id of a container has no entry; KeyError before Python 3.13
        user = f"uid {os.getuid()}"
    return f"{user}@{platform.node()}"


@frozen
class Completed:
    """One command that ended, for any reason; an entry of the transcript."""

    argv: tuple[str, ...]
    status: int
    stdout: bytes
    stderr: bytes
    #: UTC, ISO 8601.
    started: str
    elapsed_s: float

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 stay visible as escapes."""
        return self.stdout.decode("utf-8", "backslashreplace")

    @property
    def errors(self) -> str:
        return self.stderr.decode("utf-8", "backslashreplace")


class RigError(Exception):
    """The rig, not the product, is at fault: a JUnit ``<error>``, never a verdict on a drive.

    The message may quote output of a tool, a drive or another machine; ``str`` of it is printable in any case.
    """

    #: Nothing else can be measured or recorded after it.
    ends_run: ClassVar[bool] = False

    def __str__(self) -> str:
        return safe_text.lines(super().__str__(), SENTENCE_CHARACTERS)


def spelled(argv: Sequence[str]) -> list[str]:
    """Return the words of a command, if the kernel accepts them.

    ``RigError`` for a NUL, which ends a word for the kernel, and for surrogates, which have no bytes. Both may occur in
    output of another machine.
    """
    for word in argv:
        try:
            if "\0" not in word:
                os.fsencode(word)
                continue
        except UnicodeEncodeError:
            pass
        raise RigError(f"{argv[0]} cannot be given {safe_text.line(word, 80)!r}: no command can have such a word")
    return list(argv)


class Unforeseen(RigError):
    """Unexpected error while an array was built, conditioned or measured; ``__cause__`` is the original error."""


class UnforeseenAgain(RigError):
    """The same unexpected error for the second time; the run builds and measures nothing more."""

    ends_run = True


class MachineLost(RigError):
    """The machine under test cannot be reached any more; nothing else can be measured on it."""

    ends_run = True


class CommandFailed(RigError):
    """A command ended with a status that means it did not do its work."""

    def __init__(self, message: str, completed: Completed) -> None:
        super().__init__(message)
        self.completed = completed


def counts(done: Completed) -> list[int]:
    """Parse an answer that consists of counts only; ``CommandFailed`` for any other."""
    try:
        return list(map(numbers.count, done.text.split()))
    except ValueError:
        answer = safe_text.line(done.text, 80)
        raise CommandFailed(f"{done.argv[0]} answered {answer!r} instead of counts", done) from None


def count(done: Completed) -> int:
    """Parse an answer that is one count; ``CommandFailed`` for any other."""
    found = counts(done)
    if len(found) != 1:
        raise CommandFailed(f"{done.argv[0]} answered {safe_text.line(done.text, 80)!r} instead of a count", done)
    return found[0]


class DeadlineExceeded(RigError):
    """This program ended a command because it took too long."""


@frozen
class MustFinish:
    """Work on a drive that must not be interrupted: nothing of this program ends it, whatever becomes of this run."""

    #: ``ATA Security Erase of /dev/sdb (…)``.
    what: str
    #: Files on the machine that are locked as long as the work goes on, and the text that other runs read in them.
    locks: tuple[str, ...]
    note: str
    #: Duration that the drive reports; None: it reports none.
    expected_s: float | None = None
    #: What must not happen to the drive meanwhile; empty if nothing is harmful.
    caution: str = ""

    def goes_on(self, machine: str, elapsed_s: float) -> str:
        """Return the sentence for the user of a run that ends before this work does."""
        sentence = f"{self.what} continues on {machine}, for {format_duration(max(1.0, elapsed_s))} so far"
        if self.expected_s is not None:
            sentence += f"; the drive says that it takes {format_duration(self.expected_s)}"
        return f"{sentence}; {self.caution}" if self.caution else sentence


class StillRunning(RigError):
    """This run no longer waits for work that must finish; the work goes on by itself."""


class DriveRefused(RigError):
    """The guard found a reason not to destroy a drive."""


class DriveSilent(DriveRefused):
    """A drive does not answer. It may do so later, so the next test that needs it tries again."""


class LeaseTaken(RigError):
    """Another run holds a drive of this set."""


class InvalidMeasurement(RigError):
    """Numbers were collected, but they must not be used to judge the product."""


class Disturbed(InvalidMeasurement):
    """Something beside the product disturbed the measurement. The next attempt is not affected."""


class ClockSet(Disturbed):
    """The machine's clock was set meanwhile."""


class CheckRan(Disturbed):
    """A check of the array's redundancy, which cron or a timer began, ran meanwhile; the next attempt ends it."""


#: Is called for every finished command, in order.
Observer = Callable[[Completed], None]


class Tethered(Protocol):
    """A process on the machine under test that cannot outlive this one, but survives a lost connection for a while.

    It and all its descendants are ended (gently, then TERM, then KILL) when it is cut, when this process ends or
    sends no heartbeat for too long, and, unless a connection can be re-established, when the channel to it closes.
    """

    def wait(self, deadline_s: float) -> Completed:
        """Wait for its end; ``DeadlineExceeded`` after ending it, ``MachineLost`` if its outcome is unknown."""

    def alive(self) -> bool:
        """Return True if it runs, as far as is known."""

    def rest(self, seconds: float) -> bool:
        """Wait so many seconds, or until it ends; return True if it still runs."""

    def read_line(self, deadline_s: float) -> str:
        """Return the next line of its standard output; empty when it has ended.

        Lines are available only when it has ended, except the first one of a process that ``announces``.
        """

    def cut(self, deadline_s: float = 30.0) -> Completed:
        """End it, gently first, and wait until all its processes have ended."""


class Machine(Protocol):
    """A Linux machine with drives: this one, one behind OpenSSH, or the lab's."""

    @property
    def name(self) -> str:
        """The machine's name in messages: ``localhost``, ``root@dut7``, ``lab``."""

    @property
    def token(self) -> str:
        """Unique hexadecimal digits of this connection, in the names of its files on the machine."""

    @property
    def generation(self) -> int:
        """Number of reconnections after a loss."""

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float = 60.0,
        check: bool = True,
        stdin: bytes | None = None,
        repeatable: bool = False,
        must_finish: MustFinish | None = None,
    ) -> Completed:
        """Run as root and wait.

        With ``check``, a non-zero status raises ``CommandFailed`` with the last line that the command printed;
        ``DeadlineExceeded`` past the deadline and ``MachineLost`` if the machine is gone, in any case. A ``repeatable``
        command is run again if the connection was lost meanwhile: only one that changes nothing, or repeats the same
        change. A command that ``must_finish`` goes on to its own end in any case: the deadline is for waiting only, and
        ``StillRunning`` is raised if this run ends before it.
        """

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT", announces: bool = False) -> Tethered:
        """Start a long-lived process as root, tied to the life of this one.

        ``first_signal`` ends it; ``announces``: it will write a line as soon as it is ready.
        """

    def leave_unfinished(self) -> None:
        """Wait no longer for commands that must finish: where they are awaited, ``StillRunning`` is raised."""


def ask(machine: Machine, argv: Sequence[str], deadline_s: float = 60.0) -> Completed:
    """Run a command that changes nothing, or repeats the same change; any status is an answer."""
    return machine.run(argv, check=False, deadline_s=deadline_s, repeatable=True)
