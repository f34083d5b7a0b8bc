"""Zeroes drives; and what the purge methods (``purge``, ``nvme``, ``ata``) share.

Everything here destroys data. The callers have a ``HeldDrives``, which exists only after the guard has passed the
drives and while the lease is held; every command is bound to the checked drive, and has it exclusively.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ssdqual.rig.drives import answers, fencing
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.guard.lease import must_finish
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import (
    CommandFailed,
    Completed,
    DeadlineExceeded,
    DriveRefused,
    InvalidMeasurement,
    Machine,
    RigError,
    counts,
)
from pytest_ssdqual.rig.machine.side_by_side import each

#: Deadline of one command on a large drive: TRIM of the whole range and NVMe Format take seconds to minutes.
PURGE_DEADLINE_S = 3600.0
#: Deadline of a command that only starts an operation.
COMMAND_DEADLINE_S = 60.0
#: A sanitize ends by itself or not at all: no command stops it.
SANITIZE_DEADLINE_S = 4 * 3600.0
#: Slowest rate of one command, bytes per second: a drive that writes zeroes for WRITE ZEROES needs hours for 30 TB.
SLOWEST_BYTES_PER_S = 1_000_000_000
#: Seconds between polls of an operation inside a drive, by a script on the machine.
PAUSE_S = 2.0

#: Bytes read back at each position of a zeroed drive.
SPOT_BYTES = 65536
#: Number of places that are read back, evenly over a drive.
SPOTS = 64
ZEROES = scripts.text("count_zeroes.sh")


class PassedOver(Exception):
    """A drive lacks this purge method or refused it; the text is the reason, in half a sentence."""


def command_s(drive: Drive) -> float:
    """Seconds that one command on the whole drive may take."""
    return max(PURGE_DEADLINE_S, drive.size_bytes / SLOWEST_BYTES_PER_S)


def await_answers(machine: Machine, drives: Sequence[Drive]) -> None:
    """Wait until all drives answer again: after a discard, which completes at once, a drive may be busy for minutes.

    It has the time that the discard could have taken itself. ``RigError`` names each drive that is silent then.
    """
    paths = [drive.path for drive in drives]
    silent = answers.unanswered(machine, paths, max(map(command_s, drives), default=0.0))
    if silent:
        described = {drive.path: drive.describe() for drive in drives}
        raise RigError("; ".join(f"{described[path]} {clause}, after its purge" for path, clause in silent.items()))


def zero(machine: Machine, drives: Sequence[Drive]) -> bool:
    """Make all drives read as zeroes, if they can without a full write; return True if they do.

    BLKZEROOUT guarantees that the range reads as zeroes afterwards; drives with WRITE ZEROES do that in seconds. Others
    would need a whole sequential write, and then md's own resync costs no more: False. Samples are read back.
    """
    limits = [f"/sys/block/{drive.sysfs_name}/queue/write_zeroes_max_bytes" for drive in drives]
    if 0 in counts(machine.run(["cat", *limits], repeatable=True)):
        return False
    each(machine, drives, lambda on, drive: exclusively(on, ["blkdiscard", "--zeroout", drive.path], drive))
    await_answers(machine, drives)
    return all(each(machine, drives, _reads_zero))


def _reads_zero(machine: Machine, drive: Drive) -> bool:
    last = drive.size_bytes // SPOT_BYTES - 1
    spots = sorted({last * place // (SPOTS - 1) for place in range(SPOTS)})
    zeroes = zeroes_at(machine, drive, spots)
    if len(zeroes) != len(spots):
        raise InvalidMeasurement(f"{drive.describe()} could not be read back after it was zeroed")
    return all(count == SPOT_BYTES for count in zeroes)


def zeroes_at(machine: Machine, drive: Drive, spots: Sequence[int]) -> list[int]:
    """Return the number of zero bytes at each spot, in spots from the beginning; fewer where one cannot be read."""
    argv = ["sh", "-c", ZEROES, "zeroes", drive.path, str(SPOT_BYTES), *map(str, spots)]
    return counts(machine.run(argv, repeatable=True))


def exclusively(machine: Machine, argv: Sequence[str], drive: Drive, *, check: bool = True) -> Completed:
    """Run a command that opens the drive with O_EXCL, bound to the drive that was checked.

    ``DriveRefused`` if another process holds it, or another drive is in its place. Without ``check``, the caller
    handles every other failure.
    """
    try:
        done = fencing.run(machine, argv, [drive], alone=False, deadline_s=command_s(drive), check=check)
    except CommandFailed as error:
        done = error.completed
        if "busy" not in done.errors:
            raise
    if done.status and "busy" in done.errors:
        raise DriveRefused(f"{drive.describe()} is in use: {argv[0]} could not open it exclusively")
    return done


def await_in_drive(machine: Machine, drive: Drive, script: str, what: str, more: Sequence[str] = ()) -> None:
    """Wait until an operation inside the drive is over, by a script: $1 the drive, $2 seconds between polls.

    No power loss and no signal ends such an operation, so a keeper runs the script, which only polls, and it holds the
    drive as long. ``RigError`` past the deadline.
    """
    argv = ["sh", "-c", script, "await", drive.path, f"{PAUSE_S:g}", *more]
    work = must_finish(drive, what)
    try:
        machine.run(argv, deadline_s=SANITIZE_DEADLINE_S, check=False, must_finish=work)
    except DeadlineExceeded as error:
        raise RigError(f"{drive.describe()} is still being sanitized after {SANITIZE_DEADLINE_S / 3600:g} h") from error
