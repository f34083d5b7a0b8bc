"""The label in the first 4 KiB of a drive or an array that holds only test data of this program.

The first MiB is the label and zeroes, and no workload writes there (``mdadm.Array.targets``). Any later use of the
device (a file system, a partition table, a volume, a database) changes that MiB, and the device then needs consent
again. The reasoning, and what it cannot detect, is in docs/decisions.md D48.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.drives.topology import Drive, plain_uuid
from pytest_ssdqual.rig.guard.sampling import PAGE_BYTES, DeviceSample, SampledPage
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import CommandFailed, DriveRefused, Machine

#: Space reserved for the label at the beginning of every device.
HEAD_BYTES = 1 << 20
SCRIPT = scripts.text("label.sh")
TITLE = "pytest-ssdqual test data, may be overwritten"
_TEXT = re.compile(
    rf"(?P<said>{TITLE}\nversion 1\n(?P<owner>(?:drive|array) [^\n]+)\nid [0-9a-f]{{32}}\n)"
    r"sha256 (?P<sum>[0-9a-f]{64})\n"
)

#: How md's own pages begin: the superblock (version 1.2, at 4 KiB) and the write-intent bitmap.
MD_SUPERBLOCK, MD_BITMAP = "fc4e2ba9", "6269746d"
#: A bad-block log is filled from its beginning; what is not used of it is this.
UNUSED_LOG = "ff" * 16
#: sshd's default MaxSessions is 10; the lease and a running fio have one each.
SIDE_BY_SIDE = 6
DEADLINE_S = 60.0


def of_drive(identity: str) -> str:
    """The owner that a drive's label names."""
    return f"drive {identity}"


def of_array(uuid: str) -> str:
    """The owner that the label on an array names, by its UUID in any spelling."""
    return f"array {plain_uuid(uuid) or uuid}"


def page(owner: str, number: str = "") -> bytes:
    """A label's 4 KiB; ``number`` (32 hexadecimal digits) tells it from other labels of the same owner."""
    said = f"{TITLE}\nversion 1\n{owner}\nid {number or secrets.token_hex(16)}\n"
    text = f"{said}sha256 {hashlib.sha256(said.encode()).hexdigest()}\n"
    return text.encode().ljust(PAGE_BYTES, b"\0")


def owner_of(data: bytes) -> str:
    """The owner that a label names; empty if the page is no valid label."""
    text, _, rest = data.partition(b"\0")
    try:
        found = _TEXT.fullmatch(text.decode())
    except UnicodeDecodeError:
        return ""
    if len(data) != PAGE_BYTES or rest.strip(b"\0") or found is None:
        return ""
    return found["owner"] if hashlib.sha256(found["said"].encode()).hexdigest() == found["sum"] else ""


def is_ours(sample: DeviceSample, owners: Sequence[str]) -> bool:
    """Return whether the label names one of ``owners`` and only md itself wrote to the rest of the first MiB."""
    owner = owner_of(sample.label)
    return bool(owner) and owner in owners and not _foreign_pages([each for each in sample.pages if each.offset_bytes])


def _foreign_pages(pages: Sequence[SampledPage]) -> list[SampledPage]:
    """The pages behind the label that md did not write. A bitmap continues over the pages that follow it."""
    foreign, bitmap_end = [], -1
    for each in pages:
        at = each.offset_bytes
        if each.head.startswith(MD_BITMAP) or at == bitmap_end:
            bitmap_end = at + PAGE_BYTES
        elif not (at == PAGE_BYTES and each.head.startswith(MD_SUPERBLOCK)) and each.tail != UNUSED_LOG:
            foreign.append(each)
    return foreign


def write_drives(machine: Machine, drives: Sequence[Drive]) -> None:
    """Label drives and zero the rest of their first MiB; the caller has a ``HeldDrives`` and destroys them anyway.

    ``DriveRefused`` if one is in use or is not the drive that was checked; ``CommandFailed`` if it takes no data.
    """
    owners = [of_drive(drive.identity) for drive in drives]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        working = [
            pool.submit(_write, machine, Checked.of(drive), owner, drive.describe())
            for drive, owner in zip(drives, owners, strict=True)
        ]
    for done in working:
        done.result()


def write_array(machine: Machine, array: Checked, uuid: str) -> None:
    """Label the array at a path and zero the rest of its first MiB; raises as ``write_drives``."""
    _write(machine, array, of_array(uuid), array.path)


def _write(machine: Machine, device: Checked, owner: str, called: str) -> None:
    argv = fencing.bound(["sh", "-c", SCRIPT, "label", device.path], [device], alone=True)
    done = machine.run(argv, deadline_s=DEADLINE_S, check=False, stdin=page(owner))
    if why := fencing.refusal(done):
        raise DriveRefused(f"{called} cannot be labelled: {why}")
    if done.status:
        raise CommandFailed(f"{called} cannot be labelled as holding test data: {last_words(done)}", done)
