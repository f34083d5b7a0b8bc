"""Binds a command to the drives that were checked: it runs on those, or not at all.

Between the check of a drive and the command that destroys it, another drive may take its place: pulled and plugged, or
renamed. So three steps precede the command, in the process that becomes it. First, the node is opened and stays open:
meanwhile the kernel gives neither its number nor its name to another device (measured, docs/decisions.md D42). Then the
device behind that number is compared with the checked drive, by serial, WWN and size, or with the checked array, by its
UUID and size. Then the command is executed, and inherits the open descriptor.

``alone`` opens with O_EXCL, for commands that do not do so themselves (fio, nvme-cli, hdparm): as long as they run, no
process can mount the drive, build on it or swap to it, and if one already does, they do not start. Other commands
(mdadm, wipefs) open the drive exclusively themselves, which only one process can: they are bound ``beside``. blkdiscard
does so since util-linux 2.36; an older one is bound ``alone``, which is decided on the machine under test (``itself``).

The scripts are ``scripts/fence*``; names of drives reach them as positional parameters only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, DriveRefused, Machine, MustFinish

#: Exit status of the scripts for a drive that is in use or not the checked one; no bound command uses it (EX_PROTOCOL).
REFUSED = 76
BUSY = "Device or resource busy"

BOUND, PERL_HOLD, PYTHON_HOLD, CHECK = map(
    scripts.text, ("fence.sh", "fence_open.pl", "fence_open.py", "fence_check.sh")
)


@frozen
class Checked:
    """The properties that a device must have for a command to run on it; an array has a UUID alone."""

    path: str
    size_bytes: int
    serial: str = ""
    wwn: str = ""
    #: md's, as mdadm writes it.
    uuid: str = ""

    @property
    def words(self) -> list[str]:
        """Parameters of fence_check.sh. A serial number may be any text, so a UUID takes the place of the WWN."""
        return [self.path, str(self.size_bytes), self.serial, f"MD_UUID={self.uuid}" if self.uuid else self.wwn]

    @classmethod
    def of(cls, drive: Drive) -> Checked:
        """The properties of a drive as the guard read them."""
        return cls(drive.path, drive.size_bytes, _raw(drive.serial or ""), _raw(drive.wwn or ""))


def bound(argv: Sequence[str], devices: Sequence[Checked], *, alone: bool) -> tuple[str, ...]:
    """Return a command that runs ``argv`` if all ``devices`` are the checked ones, else exits with ``REFUSED``.

    With ``alone``, no other process may have a device open exclusively; while the command runs, none can.
    """
    mode = "itself" if argv[0] == "blkdiscard" else "beside"
    if alone:
        mode = "alone"
    words = [word for device in devices for word in device.words]
    return ("sh", "-c", BOUND, "bound", PERL_HOLD, PYTHON_HOLD, CHECK, mode, str(len(devices)), *words, *argv)


def refusal(done: Completed) -> str:
    """Return the reason why a bound command was not run; empty if it was."""
    return done.errors.strip().rpartition("\n")[2] if done.status == REFUSED else ""


def run(
    machine: Machine,
    argv: Sequence[str],
    drives: Sequence[Drive],
    *,
    alone: bool,
    deadline_s: float,
    check: bool = True,
    repeatable: bool = False,
    must_finish: MustFinish | None = None,
) -> Completed:
    """Run ``argv`` bound to ``drives``.

    ``DriveRefused`` if they are not the checked drives, or in use; other errors as for ``Machine.run``.
    """
    command = bound(argv, [Checked.of(drive) for drive in drives], alone=alone)
    done = machine.run(command, deadline_s=deadline_s, check=False, repeatable=repeatable, must_finish=must_finish)
    if reason := refusal(done):
        raise DriveRefused(refusal_sentence(reason, drives))
    if check and done.status:
        raise CommandFailed(f"{argv[0]} on {machine.name} failed: {last_words(done)}", done)
    return done


def _raw(name: str) -> str:
    """A name as the drive reports it: the inverse of ``safe_text.name``, if that did not shorten it."""

    def character(match: re.Match[str]) -> str:
        code = int(match[1] or match[2] or match[3], 16)
        return chr(code + 0xDC00 if match[1] and code >= 0x80 else code)

    return re.sub(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})", character, name)


def refusal_sentence(reason: str, drives: Sequence[Drive]) -> str:
    """A ``refusal`` with the drive's full description."""
    for drive in drives:
        if reason == f"{drive.path}: {BUSY}":
            return f"{drive.describe()} is in use: it could not be opened exclusively"
        if reason.startswith((f"{drive.path} ", f"{drive.path}:")):
            return drive.describe() + reason.removeprefix(drive.path)
    return reason
