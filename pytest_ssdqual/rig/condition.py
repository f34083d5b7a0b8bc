"""Bringing drives into a known state: purge, zero, fill.

Everything here destroys data. Its callers hold ``station.HeldDrives``, which exist only after the guard has
passed the drives and while the lease is held; every command that can ask the kernel for the drive exclusively does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pytest_ssdqual.rig.blockdev import Drive
from pytest_ssdqual.rig.machine import CommandFailed, Completed, DriveRefused, InvalidMeasurement, Machine

T = TypeVar("T")

#: sshd's default MaxSessions is 10; the lease and a running fio have one each.
SIDE_BY_SIDE = 6
#: A purge of a large drive: SATA TRIM of the whole range and NVMe format take seconds to minutes.
PURGE_DEADLINE_S = 3600.0
#: FNA bits 0 and 1 (NVMe base specification, Identify Controller): format, or its secure erase, reaches *all*
#: namespaces of the controller, and so drives that nobody gave us.
FORMAT_REACHES_ALL = 0b011
#: OACS bit 1: the Format NVM command is supported.
FORMAT_SUPPORTED = 0b010

#: How much is read back at each spot of a zeroed drive.
SPOT_BYTES = 65536
#: $1 device, $2 bytes of a spot, then numbers of spots: how many bytes there are zero. Zeroes are counted, not what
#: differs from them: a spot that cannot be read must not look like one that is zero.
ZEROES = (
    "dev=$1 size=$2; shift 2; for at; do "
    'dd if="$dev" bs="$size" skip="$at" count=1 iflag=direct 2>/dev/null | tr -cd "\\0" | wc -c; done'
)


def purge(machine: Machine, drives: Sequence[Drive], *, best: bool) -> dict[str, str]:
    """Return every drive to "never written" as well as it allows; serial → the method that worked.

    The ladder: NVMe Format (user data erase) where it cannot reach other namespaces, and only if ``best``; a
    discard of the whole range; ``none`` if the drive supports neither, which the record then says (SNIA PTS: a
    missing purge must be reported). Raises ``DriveRefused`` if a drive is in use after all.
    """
    methods = each(drives, lambda drive: _purge(machine, drive, best=best))
    return {drive.identity: method for drive, method in zip(drives, methods, strict=True)}


def zero(machine: Machine, drives: Sequence[Drive]) -> bool:
    """Make all drives read as zeroes, if they can do so without a full write; whether they now do.

    BLKZEROOUT's promise is that the range reads as zeroes afterwards; drives with WRITE ZEROES keep it in seconds.
    Others would need a whole sequential write, and then md's own resync costs no more: False. Spots are read back.
    """
    limits = [f"/sys/block/{drive.kname}/queue/write_zeroes_max_bytes" for drive in drives]
    if any(int(line) == 0 for line in machine.run(["cat", *limits]).text.split()):
        return False
    each(drives, lambda drive: _exclusively(machine, ["blkdiscard", "--zeroout", drive.path], drive))
    return all(each(drives, lambda drive: _reads_zero(machine, drive)))


def _purge(machine: Machine, drive: Drive, *, best: bool) -> str:
    # First a command that opens the drive with O_EXCL and fails if anything uses it; nvme-cli with --force,
    # without which it waits 10 s for a human, does not.
    discarded = _exclusively(machine, ["blkdiscard", drive.path], drive, check=False).status == 0
    if not discarded:
        # Otherwise what the user agreed to lose would still be found on the drive when the run is over.
        _exclusively(machine, ["wipefs", "--all", drive.path], drive)
    if best and drive.transport == "nvme" and _may_format(machine, drive):
        machine.run(["nvme", "format", drive.path, "--ses=1", "--force"], deadline_s=PURGE_DEADLINE_S)
        return "NVMe format, user data erase"
    return "discard of the whole range" if discarded else "none"


def _may_format(machine: Machine, drive: Drive) -> bool:
    done = machine.run(["nvme", "id-ctrl", drive.path, "--output-format=json"], check=False)
    if done.status:
        return False
    controller = json.loads(done.text)
    if not int(controller["oacs"]) & FORMAT_SUPPORTED:
        return False
    if not int(controller["fna"]) & FORMAT_REACHES_ALL:
        return True
    namespaces = machine.run(["nvme", "list-ns", drive.path, "--all", "--output-format=json"], check=False)
    return namespaces.status == 0 and len(json.loads(namespaces.text).get("nsid_list", ())) == 1


def _reads_zero(machine: Machine, drive: Drive) -> bool:
    last = drive.size_bytes // SPOT_BYTES - 1
    spots = sorted({0, last // 3, last // 2, last})
    counts = machine.run(["sh", "-c", ZEROES, "zeroes", drive.path, str(SPOT_BYTES), *map(str, spots)]).text.split()
    if len(counts) != len(spots):
        raise InvalidMeasurement(f"{drive.describe()} could not be read back after it was zeroed")
    return all(int(count) == SPOT_BYTES for count in counts)


def _exclusively(machine: Machine, argv: Sequence[str], drive: Drive, *, check: bool = True) -> Completed:
    try:
        done = machine.run(argv, deadline_s=PURGE_DEADLINE_S, check=check)
    except CommandFailed as error:
        done = error.completed
        if "busy" not in done.errors:
            raise
    if done.status and "busy" in done.errors:
        raise DriveRefused(f"{drive.describe()} is in use: {argv[0]} could not open it exclusively")
    return done


def each(drives: Sequence[Drive], work: Callable[[Drive], T]) -> list[T]:
    """``work`` on every drive, several at a time; the first error is raised when all have ended."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return list(pool.map(work, drives))
