"""What a machine under test can be asked to do, and the ways in which it can let us down.

The rule of the room: everything done to a machine goes through ``Machine``, has a deadline, is an argv
list, and is told to the transcript. Nothing here knows pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


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
    """The rig, not the product, is at fault: a JUnit ``<error>``, never a verdict on a drive."""


class MachineLost(RigError):
    """The machine under test cannot be reached any more; nothing else can be measured on it."""


class CommandFailed(RigError):
    """A command ended with a status that means it did not do its work."""

    def __init__(self, message: str, completed: Completed) -> None:
        super().__init__(message)
        self.completed = completed


class DeadlineExceeded(RigError):
    """A command was ended by us because it took too long."""


class DriveRefused(RigError):
    """The guard found a reason not to destroy a drive."""


class LeaseTaken(RigError):
    """Another run holds a drive of this set."""


class InvalidMeasurement(RigError):
    """Numbers were collected, but they must not be used to judge the product."""


#: Told of every finished command, in order.
Observer = Callable[[Completed], None]


class Tethered(Protocol):
    """A process on the machine under test that cannot outlive this one.

    It and all that it started are ended (gently, then TERM, then KILL) when it is cut, when the channel to it closes,
    or when this process has been silent for too long.
    """

    def wait(self, deadline_s: float) -> Completed:
        """Until it ends by itself; ``DeadlineExceeded`` after ending it otherwise."""
        ...

    def alive(self) -> bool: ...

    def read_line(self, deadline_s: float) -> str:
        """The next line of its standard output; empty when it has ended."""
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

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float = 60.0,
        check: bool = True,
        stdin: bytes | None = None,
    ) -> Completed:
        """Run as root and wait.

        With ``check``, a non-zero status raises ``CommandFailed`` with the command's own last words;
        always ``DeadlineExceeded`` past the deadline, ``MachineLost`` if the machine is gone.
        """
        ...

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT") -> Tethered:
        """Start a long-lived process as root, tied to the life of this one; ``first_signal`` is how to end it."""
        ...

    def close(self) -> None: ...
