"""Detects on the members of a leftover array whether it was used since; the array need not be running.

The label of an array (``rig.guard.label``) is in its first chunk, at the data offset of one member or more; any other
use of the array writes there. md's superblock, which contains that offset, is at 4 KiB (version 1.2; struct
mdp_superblock_1 of include/uapi/linux/raid/md_p.h).
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pytest_ssdqual.rig.guard.label import HEAD_BYTES, MD_SUPERBLOCK, of_array, owner_of
from pytest_ssdqual.rig.guard.sampling import PAGE_BYTES, DeviceSample
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError

RAW = scripts.text("read_raw.sh")
SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Superblock:
    """A member's md superblock."""

    #: 32 hexadecimal digits.
    uuid: str
    #: Where the array's data begin on this member.
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
    return any(each.offset_bytes == PAGE_BYTES and each.head.startswith(MD_SUPERBLOCK) for each in sample.pages)


def used(machine: Machine, paths: Iterable[str], known_uuids: Collection[str]) -> dict[str, int]:
    """Members of arrays that do not hold our label any more, each with the position where it would be.

    ``known_uuids``: UUIDs, 32 hexadecimal digits each. An array is ours still if one of its members has the label, or
    if all of them are blank there: a run was killed before it wrote it. Two commands for each member.
    """
    heads: dict[str, list[tuple[str, int, bytes]]] = {}
    for path in paths:
        found = Superblock.parse(_read(machine, path, PAGE_BYTES, PAGE_BYTES))
        if found is None:  # it was there when samples were taken
            heads[path] = [(path, PAGE_BYTES, b"")]
            continue
        head = _read(machine, path, found.data_offset_bytes, found.head_bytes)
        heads.setdefault(found.uuid, []).append((path, found.data_offset_bytes, head))
    labels = {of_array(uuid) for uuid in known_uuids}
    return {
        path: at
        for uuid, members in heads.items()
        if not (
            any(_is_labelled(head, labels | {of_array(uuid)}) for _, _, head in members)
            or all(head and _is_blank(head) for _, _, head in members)
        )
        for path, at, _ in members
    }


def _is_labelled(head: bytes, labels: Collection[str]) -> bool:
    return owner_of(head[:PAGE_BYTES]) in labels and _is_blank(head[PAGE_BYTES:])


def _is_blank(data: bytes) -> bool:
    pages = (data[at : at + PAGE_BYTES] for at in range(0, len(data), PAGE_BYTES))
    return all(page.count(page[:1]) == len(page) for page in pages)


def _read(machine: Machine, path: str, offset_bytes: int, size_bytes: int) -> bytes:
    """Empty if it cannot be read, whole otherwise."""
    done = machine.run(["sh", "-c", RAW, "raw", path, str(offset_bytes), str(size_bytes)], check=False, repeatable=True)
    try:
        data = gzip.decompress(done.stdout)
    except (OSError, EOFError) as error:
        raise RigError(f"what {path} holds at byte {offset_bytes} was not understood: {error}") from error
    return data if len(data) == size_bytes else b""
