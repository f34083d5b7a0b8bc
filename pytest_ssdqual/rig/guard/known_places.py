"""Places of a device where partitions begin, and where file systems and volumes have copies of their superblocks; pure.

Whoever wipes the beginning of a drive leaves these copies. Each structure is looked for on the whole device and behind
each usual beginning of a partition or of a volume (``ORIGINS``), as a page or a stretch that contains it.
"""

from __future__ import annotations

from collections.abc import Iterator

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
PAGE_BYTES = 4096
#: Beginnings of file systems and of their copies: the device itself, partitions of DOS (63 sectors) and of today
#: (1 MiB), the data of LUKS2 (16 MiB) and of md on large members (128 MiB) in such a partition.
ORIGINS = (0, 63 * 512, MIB, 17 * MIB, 129 * MIB)
#: Groups of ext4 with a copy of the superblock: 1 and powers of 3, 5 and 7 (feature sparse_super).
EXT_GROUPS = (1, 3, 5, 7, 9, 25)
#: Bytes of a group, which has eight times as many blocks as a block has bytes: for blocks of 1, 2 and 4 KiB.
EXT_GROUP_BYTES = (8 * MIB, 32 * MIB, 128 * MIB)
#: Behind the first MiB (fs/btrfs/disk-io.h, btrfs_sb_offset).
BTRFS_COPIES = (64 * MIB, 256 * GIB)
#: Other beginnings: data of LUKS2 and md without a partition, and second partitions, behind one for EFI, for booting or
#: of Microsoft's.
BEGINNINGS = tuple(
    size * MIB for size in (16, 33, 101, 117, 128, 201, 257, 301, 501, 513, 551, 601, 1025, 1026, 1537, 2049)
)
#: Read as a whole: LUKS2's second header is at 4 MiB or before, LUKS1's data are at 2 MiB.
HEAD_BYTES = 8 * MIB
#: XFS has four groups, below and above whose computed beginning this much is read: the end of a partition is not known.
#: From 4 TiB on a group has 1 TiB less one block (xfsprogs, libfrog/topology.c).
XFS_GROUPS, XFS_MARGIN_BYTES, XFS_LARGE_BYTES = 4, MIB, 4 * TIB


def stretches(size_bytes: int) -> tuple[tuple[int, int], ...]:
    """The known places of a device, as beginnings and lengths in bytes.

    Whole pages, in ascending order and disjoint, between the first and the last MiB, which are always read.
    """
    first, last = MIB, (size_bytes - MIB) // PAGE_BYTES * PAGE_BYTES
    merged: list[tuple[int, int]] = []
    for place, length in sorted(_places(size_bytes)):
        begin = max(place // PAGE_BYTES * PAGE_BYTES, first)
        end = min(-(-(place + length) // PAGE_BYTES) * PAGE_BYTES, last)
        if merged and begin <= sum(merged[-1]):
            begin, previous = merged.pop()
            end = max(end, begin + previous)
        if begin < end:
            merged.append((begin, end - begin))
    return tuple(merged)


def _places(size_bytes: int) -> Iterator[tuple[int, int]]:
    """Beginnings and lengths, in any order; some are behind the end."""
    yield 0, HEAD_BYTES
    # A superblock may be behind an empty sector or page.
    yield from ((beginning, 2 * PAGE_BYTES) for beginning in (*ORIGINS, *BEGINNINGS))
    for origin in ORIGINS:
        yield from ((origin + copy, PAGE_BYTES) for copy in BTRFS_COPIES)
        for group_bytes in EXT_GROUP_BYTES:
            # With blocks of 1 KiB the first block is in no group; the page is the same.
            yield from ((origin + group * group_bytes, PAGE_BYTES) for group in EXT_GROUPS)
    if size_bytes < XFS_LARGE_BYTES:
        quarters = (group * size_bytes // XFS_GROUPS for group in range(1, XFS_GROUPS))
        yield from ((quarter - XFS_MARGIN_BYTES, 2 * XFS_MARGIN_BYTES) for quarter in quarters)
    else:
        groups = range(1, size_bytes // TIB + 1)
        yield from ((group * TIB - group * PAGE_BYTES + origin, PAGE_BYTES) for group in groups for origin in ORIGINS)
