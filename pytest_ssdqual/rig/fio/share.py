"""Which part of a target each job of fio gets. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: Shares of a target begin at multiples of this, so that no member's erase block or stripe is split for nothing.
SHARE_ALIGNMENT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a target, written with one transfer size that divides it."""

    offset_bytes: int
    size_bytes: int
    block_bytes: int


def split(size_bytes: int, jobs: int, block_bytes: int) -> Iterator[Part]:
    """Cut ``size_bytes`` into up to ``jobs`` ranges of whole blocks and what is left at the end.

    No gap, no overlap; the last share takes what does not divide.
    """
    whole = size_bytes // block_bytes * block_bytes
    share = aligned_share(whole, jobs, block_bytes)
    count = jobs if share else min(1, whole)
    for number in range(count):
        size = whole - number * share if number == count - 1 else share
        yield Part(number * share, size, block_bytes)
    if whole < size_bytes:
        yield Part(whole, size_bytes - whole, size_bytes - whole)


def aligned_share(size_bytes: int, jobs: int, block_bytes: int) -> int:
    """The largest share that fits ``jobs`` times and begins on a block (and on 1 MiB if that leaves anything)."""
    share = size_bytes // jobs
    coarse = -(-SHARE_ALIGNMENT_BYTES // block_bytes) * block_bytes
    return share // coarse * coarse or share // block_bytes * block_bytes
