"""The label in the first 4 KiB of a drive or an array that holds only test data of this program.

The first MiB is the label and zeroes, and no workload writes there (``mdadm.Array.targets``). Any later use of the
device (a file system, a partition table, a volume, a database) changes that MiB, and the device then needs consent
again. The reasoning, and what it cannot detect, is in docs/decisions.md D48.

Of an array that need not be running, the label is read on its members: it is in the array's first chunk, at the data
offset of one member or more. md's superblock, which contains that offset, is at 4 KiB (version 1.2; struct
mdp_superblock_1 of include/uapi/linux/raid/md_p.h).
"""

from __future__ import annotations

import gzip
import hashlib
import re
import secrets
import struct
from collections.abc import Collection, Iterable, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.drives.topology import Drive, plain_uuid
from pytest_ssdqual.rig.guard.sampling import PAGE_BYTES, DeviceSample, SampledPage
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.channel import last_words
from pytest_ssdqual.rig.machine.machine import CommandFailed, DriveRefused, Machine, RigError
from pytest_ssdqual.rig.machine.side_by_side import each

#: Space reserved for the label at the beginning of every device.
HEAD_BYTES = 1 << 20
SCRIPT = scripts.text("label.sh")
TITLE = "pytest-ssdqual test data, may be overwritten"
_TEXT = re.compile(
    rf"(?P<content>{TITLE}\nversion 1\n(?P<owner>(?:drive|array) [^\n]+)\nid [0-9a-f]{{32}}\n)"
    r"sha256 (?P<sum>[0-9a-f]{64})\n"
)

#: First bytes of md's own pages: the superblock (version 1.2, at 4 KiB) and the write-intent bitmap.
MD_SUPERBLOCK, MD_BITMAP = "fc4e2ba9", "6269746d"
#: A bad-block log is filled from its beginning; what is not used of it is this.
UNUSED_LOG = "ff" * 16
DEADLINE_S = 60.0
#: Deadline of a range of data, which may be on blocks that the drive reads again and again.
READ_S = 300.0

RAW = scripts.text("read_raw.sh")
SECTOR_BYTES = 512


def of_drive(identity: str) -> str:
    """The owner that a drive's label names."""
    return f"drive {identity}"


def of_array(uuid: str) -> str:
    """The owner that the label on an array names, by its UUID in any spelling."""
    return f"array {plain_uuid(uuid) or uuid}"


def page(owner: str, number: str = "") -> bytes:
    """A label's 4 KiB; ``number`` (32 hexadecimal digits) distinguishes it from other labels of its owner."""
    content = f"{TITLE}\nversion 1\n{owner}\nid {number or secrets.token_hex(16)}\n"
    text = f"{content}sha256 {hashlib.sha256(content.encode()).hexdigest()}\n"
    return text.encode().ljust(PAGE_BYTES, b"\0")


def owner_of(data: bytes) -> str:
    """The owner that a label names; empty if the page is no valid label."""
    text, _, rest = data.partition(b"\0")
    try:
        match = _TEXT.fullmatch(text.decode())
    except UnicodeDecodeError:
        return ""
    if len(data) != PAGE_BYTES or rest.strip(b"\0") or match is None:
        return ""
    return match["owner"] if hashlib.sha256(match["content"].encode()).hexdigest() == match["sum"] else ""


def is_owned(sample: DeviceSample, owners: Sequence[str]) -> bool:
    """Return whether the label names one of ``owners`` and only md itself wrote to the rest of the first MiB."""
    owner = owner_of(sample.label)
    return bool(owner) and owner in owners and not _foreign_pages([page for page in sample.pages if page.offset_bytes])


def _foreign_pages(pages: Sequence[SampledPage]) -> list[SampledPage]:
    """The pages behind the label that md did not write. A bitmap continues over the pages that follow it."""
    foreign, bitmap_end = [], -1
    for page in pages:
        offset_bytes = page.offset_bytes
        if page.head.startswith(MD_BITMAP) or offset_bytes == bitmap_end:
            bitmap_end = offset_bytes + PAGE_BYTES
        elif not (offset_bytes == PAGE_BYTES and page.head.startswith(MD_SUPERBLOCK)) and page.tail != UNUSED_LOG:
            foreign.append(page)
    return foreign


def write_drives(machine: Machine, drives: Sequence[Drive]) -> None:
    """Label drives and zero the rest of their first MiB; the caller has a ``HeldDrives`` and destroys them anyway.

    ``DriveRefused`` if one is in use or is not the drive that was checked; ``CommandFailed`` if it takes no data.
    """
    each(machine, drives, lambda on, drive: _write(on, Checked.of(drive), of_drive(drive.identity), drive.describe()))


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


@frozen
class Superblock:
    """A member's md superblock."""

    #: 32 hexadecimal digits.
    uuid: str
    #: Offset of the array's data on this member.
    data_offset_bytes: int
    #: 0 where the level has none.
    chunk_bytes: int

    @classmethod
    def parse(cls, page: bytes) -> Superblock | None:
        """Parse the page at 4 KiB; None if it is no superblock."""
        if len(page) < PAGE_BYTES or page[:4].hex() != MD_SUPERBLOCK:
            return None
        (chunk,), (offset,) = struct.unpack_from("<I", page, 88), struct.unpack_from("<Q", page, 128)
        return cls(page[16:32].hex(), offset * SECTOR_BYTES, chunk * SECTOR_BYTES)

    @property
    def head_bytes(self) -> int:
        """Bytes of the member's data that the label and the zeroes behind it occupy."""
        return min(self.chunk_bytes or HEAD_BYTES, HEAD_BYTES)


def is_member(sample: DeviceSample) -> bool:
    """Return whether there is an md superblock of version 1.2, the version that this program creates."""
    return any(page.offset_bytes == PAGE_BYTES and page.head.startswith(MD_SUPERBLOCK) for page in sample.pages)


def used(machine: Machine, paths: Iterable[str], known_uuids: Collection[str]) -> dict[str, int]:
    """Return the members of arrays that no longer hold this program's label, each with the label's position.

    ``known_uuids``: UUIDs, 32 hexadecimal digits each. An array is still this program's if one of its members has the
    label, or if all of them are blank there: a run was killed before it wrote the label. Two commands for each member.
    """
    heads: dict[str, list[tuple[str, int, bytes]]] = {}
    for path in paths:
        superblock = Superblock.parse(_read(machine, path, PAGE_BYTES, PAGE_BYTES))
        if superblock is None:  # it was there when samples were taken
            heads[path] = [(path, PAGE_BYTES, b"")]
            continue
        head = _read(machine, path, superblock.data_offset_bytes, superblock.head_bytes)
        heads.setdefault(superblock.uuid, []).append((path, superblock.data_offset_bytes, head))
    labels = {of_array(uuid) for uuid in known_uuids}
    return {
        path: offset_bytes
        for uuid, members in heads.items()
        if not (
            any(
                owner_of(head[:PAGE_BYTES]) in labels | {of_array(uuid)} and _is_blank(head[PAGE_BYTES:])
                for _, _, head in members
            )
            or all(head and _is_blank(head) for _, _, head in members)
        )
        for path, offset_bytes, _ in members
    }


def _is_blank(data: bytes) -> bool:
    pages = (data[offset : offset + PAGE_BYTES] for offset in range(0, len(data), PAGE_BYTES))
    return all(page.count(page[:1]) == len(page) for page in pages)


def packed(machine: Machine, path: str, offset_bytes: int, size_bytes: int) -> bytes:
    """Return a range as gzip packs it; of fewer bytes if it cannot be read."""
    argv = ["sh", "-c", RAW, "raw", path, str(offset_bytes), str(size_bytes)]
    return machine.run(argv, deadline_s=READ_S, repeatable=True).stdout


def _read(machine: Machine, path: str, offset_bytes: int, size_bytes: int) -> bytes:
    """Empty if it cannot be read, whole otherwise."""
    done = scripts.answer(machine, RAW, "raw", path, str(offset_bytes), str(size_bytes))
    try:
        data = gzip.decompress(done.stdout)
    except (OSError, EOFError) as error:
        raise RigError(f"what {path} holds at byte {offset_bytes} was not understood: {error}") from error
    return data if len(data) == size_bytes else b""
