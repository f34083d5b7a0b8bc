"""Binds a command to the drives that were checked: it runs on those, or not at all.

Between the check of a drive and the command that destroys it, another drive may take its place: pulled and plugged, or
renamed. So three steps precede the command, in the process that becomes it. First, the node is opened and stays open:
meanwhile the kernel gives neither its number nor its name to another device (measured, docs/decisions.md D42). Then the
device behind that number is compared with the checked drive, by serial, WWN and size. Then the command is executed,
and inherits the open descriptor.

``alone`` opens with O_EXCL, for commands that do not do so themselves (fio, nvme-cli, hdparm): as long as they run, no
process can mount the drive, build on it or swap to it, and if one already does, they do not start. Other commands
(mdadm, wipefs) open the drive exclusively themselves, which only one process can: they are bound ``beside``. blkdiscard
does so since util-linux 2.36; an older one is bound ``alone``, which is decided on the machine under test (``itself``).

The scripts are ``scripts/fence*``; names of drives reach them as positional parameters only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, DriveRefused, Machine, MustFinish

#: What the scripts answer when a drive is not what was checked, or taken; commands that are bound do not (EX_PROTOCOL).
REFUSED = 76
BUSY = "Device or resource busy"

BOUND, PERL_HOLD, PYTHON_HOLD, CHECK = map(
    scripts.text, ("fence.sh", "fence_open.pl", "fence_open.py", "fence_check.sh")
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What a device must be for a command to run on it; an array has neither serial nor WWN."""

    path: str
    size_bytes: int
    serial: str = ""
    wwn: str = ""

    @classmethod
    def of(cls, drive: Drive) -> Checked:
        """A drive as the guard saw it."""
        return cls(drive.path, drive.size_bytes, _raw(drive.serial or ""), _raw(drive.wwn or ""))


def bound(argv: Sequence[str], devices: Sequence[Checked], *, alone: bool) -> tuple[str, ...]:
    """The command that is ``argv`` if all ``devices`` are what was checked, and else ends with ``REFUSED``.

    ``alone``: and if nobody else has any of them exclusively; nobody can while it runs.
    """
    how = "alone" if alone else "itself" if argv[0] == "blkdiscard" else "beside"
    parameters = [how, str(len(devices))]
    for device in devices:
        parameters += [device.path, str(device.size_bytes), device.serial, device.wwn]
    return ("sh", "-c", BOUND, "bound", PERL_HOLD, PYTHON_HOLD, CHECK, *parameters, *argv)


def unbound(argv: Sequence[str]) -> tuple[str, ...]:
    """The command within a bound one; any other as it is."""
    argv = tuple(argv)
    return argv[9 + 4 * int(argv[8]) :] if argv[2:3] == (BOUND,) else argv


def bound_to(argv: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """How a bound command is bound (``alone``, ``beside`` or ``itself``) and its devices' paths; of others nothing."""
    return (argv[7], tuple(argv[9 : 9 + 4 * int(argv[8]) : 4])) if tuple(argv[2:3]) == (BOUND,) else ("", ())


def refusal(done: Completed) -> str:
    """Why a bound command was not run; empty if it was."""
    return done.errors.strip().rpartition("\n")[2] if done.status == REFUSED else ""


def run(
    machine: Machine,
    argv: Sequence[str],
    drives: Sequence[Drive],
    *,
    alone: bool,
    deadline_s: float,
    check: bool = True,
    must_finish: MustFinish | None = None,
) -> Completed:
    """Run ``argv`` bound to ``drives``.

    Raises ``DriveRefused`` if they are not what was checked, or taken; else as ``Machine.run``.
    """
    command = bound(argv, [Checked.of(drive) for drive in drives], alone=alone)
    done = machine.run(command, deadline_s=deadline_s, check=False, must_finish=must_finish)
    if why := refusal(done):
        raise DriveRefused(told(why, drives))
    if check and done.status:
        raise CommandFailed(f"{argv[0]} on {machine.name} failed: {last_words(done)}", done)
    return done


def _raw(name: str) -> str:
    """A name as the drive has it: the inverse of ``printable.name``, if it was not shortened."""

    def character(found: re.Match[str]) -> str:
        code = int(found[1] or found[2] or found[3], 16)
        return chr(code + 0xDC00 if found[1] and code >= 0x80 else code)

    return re.sub(r"\\x([0-9a-f]{2})|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})", character, name)


def told(why: str, drives: Sequence[Drive]) -> str:
    """A ``refusal`` with the drive's whole name."""
    for drive in drives:
        if why == f"{drive.path}: {BUSY}":
            return f"{drive.describe()} is in use: it could not be opened exclusively"
        if why.startswith((f"{drive.path} ", f"{drive.path}:")):
            return drive.describe() + why.removeprefix(drive.path)
    return why
