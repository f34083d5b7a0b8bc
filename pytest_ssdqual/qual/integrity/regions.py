"""Where on an array something is written: pairs of regions side by side, from its first byte to its last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.integrity.steps import UNIT_BYTES
from pytest_ssdqual.qual.raid.geometry import Geometry, Level
from pytest_ssdqual.qual.spec.protocol import ArraySettings
from pytest_ssdqual.qual.units import parse_size

#: A region is a stripe and one unit, so that the border between two neighbours lies inside a stripe; of wide arrays
#: with large chunks not more than this.
MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of the array that is written as a whole."""

    number: int
    offset_bytes: int
    size_bytes: int

    @property
    def end_bytes(self) -> int:
        return self.offset_bytes + self.size_bytes

    def written(self, block_bytes: int) -> int:
        """How many of its bytes whole transfers of this size overwrite; the rest at its end stays as it was."""
        return self.size_bytes // block_bytes * block_bytes


def stripe_bytes(geometry: Geometry, settings: ArraySettings) -> int:
    """User data of one stripe; of a mirror, which has none, of a chunk."""
    data = 1 if geometry.level is Level.RAID1 else geometry.data_drives
    return parse_size(settings.chunk) * data


def region_bytes(geometry: Geometry, settings: ArraySettings) -> int:
    """Size of every region of an array."""
    return min(stripe_bytes(geometry, settings), MOST_BYTES) + UNIT_BYTES


def spread(size_bytes: int, each_bytes: int, count: int, begin_bytes: int = 0) -> tuple[Region, ...]:
    """Up to ``count`` regions in pairs of neighbours, evenly from ``begin_bytes`` to the last byte of
    ``size_bytes``.

    Fewer where there is not enough room; ``ValueError`` where there is none for one pair.
    """
    room = size_bytes - begin_bytes
    pairs = min(count // 2, room // (2 * each_bytes))
    if pairs < 1:
        raise ValueError(f"{room} bytes have no room for two regions of {each_bytes}")
    last = room // UNIT_BYTES * UNIT_BYTES - 2 * each_bytes
    starts = [begin_bytes + last * pair // max(1, pairs - 1) // UNIT_BYTES * UNIT_BYTES for pair in range(pairs)]
    return tuple(
        Region(2 * pair + half, start + half * each_bytes, each_bytes)
        for pair, start in enumerate(starts)
        for half in (0, 1)
    )


def behind(known: Sequence[Region], size_bytes: int) -> tuple[Region, ...]:
    """Two more, at the new end of an array that has grown to ``size_bytes``; ``ValueError`` if they do not fit."""
    each = known[0].size_bytes
    start = size_bytes // UNIT_BYTES * UNIT_BYTES - 2 * each
    if start < max(region.end_bytes for region in known):
        raise ValueError(f"the array has grown to {size_bytes} bytes only")
    return tuple(Region(len(known) + half, start + half * each, each) for half in (0, 1))
