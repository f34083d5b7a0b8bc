"""The machine under test as a protocol, and the errors that it can cause.

Every effect on a machine goes through ``Machine``, has a deadline, is an argv list, and is recorded in the transcript.
Nothing here knows pytest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import format_duration

#: Of one line of a sentence: a drive may be refused for many reasons.
SENTENCE_CHARACTERS = 4000


def utc_now() -> str:
    """This moment in UTC, ISO 8601, to the millisecond: how every record of ours tells the time."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Completed:
    """One command that ended, for whatever reason; what the transcript keeps."""

    argv: tuple[str, ...]
    status: int
    stdout: bytes
    stderr: bytes
    #: UTC, ISO 8601.
    started: str
    elapsed_s: float

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are kept visible, not lost."""
        return self.stdout.decode("utf-8", "backslashreplace")

    @property
    def errors(self) -> str:
        return self.stderr.decode("utf-8", "backslashreplace")


class RigError(Exception):
    """The rig, not the product, is at fault: a JUnit ``<error>``, never a verdict on a drive.

    Its sentence may quote what a tool, a drive or another machine has said; ``str`` of it is printable in any case.
    """

    def __str__(self) -> str:
        return safe_text.lines(super().__str__(), SENTENCE_CHARACTERS)


def spelled(argv: Sequence[str]) -> list[str]:
    """The words of a command, if they can be given to one at all.

    ``RigError`` for a NUL, which ends a word for the kernel, and for halves of characters, which are no bytes. Both may
    be in what a machine told us.
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


class MachineLost(RigError):
    """The machine under test cannot be reached any more; nothing else can be measured on it."""


class CommandFailed(RigError):
    """A command ended with a status that means it did not do its work."""

    def __init__(self, message: str, completed: Completed) -> None:
        super().__init__(message)
        self.completed = completed


def counts(done: Completed) -> list[int]:
    """The words of an answer that is nothing but counts; ``CommandFailed`` for any other."""
    words = done.text.split()
    if not all(word.isascii() and word.isdecimal() and len(word) < 21 for word in words):
        raise CommandFailed(f"{done.argv[0]} answered {safe_text.line(done.text, 80)!r} instead of counts", done)
    return list(map(int, words))


def count(done: Completed) -> int:
    """The one count that is an answer; ``CommandFailed`` for any other answer."""
    found = counts(done)
    if len(found) != 1:
        raise CommandFailed(f"{done.argv[0]} answered {safe_text.line(done.text, 80)!r} instead of a count", done)
    return found[0]


class DeadlineExceeded(RigError):
    """A command was ended by us because it took too long."""


@dataclass(frozen=True, slots=True)
class MustFinish:
    """Work on a drive that must not be cut short: nothing of this program ends it, whatever becomes of this run."""

    #: ``ATA Security Erase of /dev/sdb (…)``.
    what: str
    #: A file on the machine that is locked as long as it goes on, and what other runs read there.
    lock: str
    note: str
    #: How long the drive says that it takes; None: it does not say.
    expected_s: float | None = None
    #: What must not happen to the drive meanwhile; empty if nothing does harm.
    caution: str = ""

    def goes_on(self, machine: str, elapsed_s: float) -> str:
        """The sentence for the user of a run that ends before this does."""
        sentence = f"{self.what} goes on on {machine}, for {format_duration(max(1.0, elapsed_s))} so far"
        if self.expected_s is not None:
            sentence += f"; the drive says that it takes {format_duration(self.expected_s)}"
        return f"{sentence}; {self.caution}" if self.caution else sentence


class StillRunning(RigError):
    """This run no longer waits for work that must finish; the work goes on by itself."""


class DriveRefused(RigError):
    """The guard found a reason not to destroy a drive."""


class LeaseTaken(RigError):
    """Another run holds a drive of this set."""


class InvalidMeasurement(RigError):
    """Numbers were collected, but they must not be used to judge the product."""


class ClockSet(InvalidMeasurement):
    """Because the machine's clock was set meanwhile. That passes: the next attempt can be as good as any."""


#: Told of every finished command, in order.
Observer = Callable[[Completed], None]


class Tethered(Protocol):
    """A process on the machine under test that cannot outlive this one, but a lost connection for a while.

    It and all that it started are ended (gently, then TERM, then KILL) when it is cut, when this process ends or has
    been silent for too long, and, unless a connection can be made anew, when the channel to it closes.
    """

    def wait(self, deadline_s: float) -> Completed:
        """Until it ends by itself; ``DeadlineExceeded`` after ending it otherwise, ``MachineLost`` if nobody knows."""
        ...

    def alive(self) -> bool:
        """Whether it runs, as far as is known."""
        ...

    def rest(self, seconds: float) -> bool:
        """Wait so long, or until it ends; whether it still runs."""
        ...

    def read_line(self, deadline_s: float) -> str:
        """The next line of its standard output; empty when it has ended.

        All but the first one of a tether that ``announces`` are there only when it has ended.
        """
        ...

    def cut(self, deadline_s: float = 30.0) -> Completed:
        """End it, gently first, and wait until its whole group is gone."""
        ...


class Machine(Protocol):
    """A Linux machine with drives: this one, one behind OpenSSH, or the lab's."""

    @property
    def name(self) -> str:
        """How messages name it: ``localhost``, ``root@dut7``, ``lab``."""
        ...

    @property
    def token(self) -> str:
        """What this connection's files on the machine have in their names: hexadecimal digits, its own."""
        ...

    @property
    def generation(self) -> int:
        """How often the connection to it was lost and made anew."""
        ...

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

        With ``check``, a non-zero status raises ``CommandFailed`` with the command's own last words;
        always ``DeadlineExceeded`` past the deadline, ``MachineLost`` if the machine is gone. What is ``repeatable``
        is run again if the connection was lost meanwhile: only what changes nothing, or the same thing again.
        A command that ``must_finish`` goes on to its own end in any case: the deadline is for waiting only, and
        ``StillRunning`` is raised if this run ends before it.
        """
        ...

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT", announces: bool = False) -> Tethered:
        """Start a long-lived process as root, tied to the life of this one.

        ``first_signal`` is how to end it; ``announces``: it will write a line as soon as it is ready.
        """
        ...

    def unfinished(self) -> tuple[str, ...]:
        """A sentence for each command that must finish and still goes on."""
        ...

    def close(self) -> None: ...
