"""Where the law of a level holds: the workloads and arrays of which ``geometry.loads`` counts the member I/Os.

Predictions, limits in per cent of a data sheet, and growth with the number of drives rest on these counts. A workload
of which nobody can count them has none of the three. The kinds are those of Linux md (drivers/md: raid0.c, raid10.c,
raid5.c); growth needs less, because what costs all widths the same cancels out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Self

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel
from pytest_ssdqual.qual.workload.workload import Workload

#: What md handles of a member as one page of a stripe with parity (raid5.c, ``RAID5_STRIPE_SIZE``).
PAGE_BYTES = 4096
#: md's default of ``sync_speed_max``, bytes per second of each member (Documentation/admin-guide/md.rst).
SYNC_SPEED_MAX = 200_000 * 1024
#: Layout of RAID 10 in which both copies are on one pair of members.
NEAR = "n2"
#: Largest ratio of the member I/Os of a split transfer between two widths: half of the deviation that is allowed by
#: default.
UNEVEN = 1.05


@frozen
class Striping:
    """How md distributes an array's addresses over its members, and how fast it may rebuild one."""

    chunk_bytes: int = 64 << 10
    raid10_layout: str = NEAR
    #: Most bytes per second of a rebuild, for each member.
    rebuild_bytes_per_s: float = SYNC_SPEED_MAX

    def of(self, geometry: Geometry) -> Self:
        """Return the striping of an array, which may have chunks of its own."""
        return replace(self, chunk_bytes=geometry.tuning.chunk_bytes or self.chunk_bytes)

    def columns(self, geometry: Geometry) -> int:
        """Members over which consecutive chunks go; 1 if the array has no chunks.

        A pair of RAID 10 is not striped in the layout near (raid10.c, ``raid10_write_request``: it splits only if
        ``near_copies < raid_disks``).
        """
        if geometry.level in (RaidLevel.DRIVE, RaidLevel.RAID1):
            return 1
        if geometry.level is RaidLevel.RAID10 and self.raid10_layout != NEAR:
            return geometry.width
        return geometry.data_drives

    def pieces(self, geometry: Geometry, workload: Workload) -> float:
        """Member I/Os of a transfer on average, if neighbouring chunks of one member are merged."""
        columns = self.columns(geometry)
        if columns == 1:
            return 1.0
        return sum(share * min(columns, -(-size // self.chunk_bytes)) for size, share in workload.sizes) / 100


def objection(geometry: Geometry, workload: Workload, striping: Striping) -> str:
    """Return why the level's law does not say what the array does under the workload; "" if it does."""
    return next(_objections(geometry, workload, striping.of(geometry)), "")


def chunks_read(geometry: Geometry) -> int:
    """Return how many other chunks of a stripe md reads for a small write; 0: its old data and parity, or none.

    It reads the others if these are no more than the old ones (raid5.c, ``handle_stripe_dirtying``): one of three
    drives, two of four. How much a read costs beside a write differs between drives: if nothing, a RAID 5 of three
    writes as fast per drive as one of eight, and by the count of I/Os 1.33 times as fast.
    """
    parity = FACTS[geometry.level].parity
    others = geometry.width - parity - 1
    return others if parity and others <= parity + 1 else 0


def growth_objection(geometries: Sequence[Geometry], workload: Workload, striping: Striping) -> str:
    """Return why the level's law does not say how IOPS grow over these widths; "" if it does.

    Of a parity array's writes the pages within a chunk cost every width the same number of times. Wider ones cover
    whole stripes in part, which need no reads: with chunks of 64 KiB, 128 KiB always fill a stripe of three drives and
    never one of four, whose IOPS are then three quarters and not the same.
    """
    return next(_objections_to_growth(geometries, workload, striping.of(geometries[0])), "")


def _objections(geometry: Geometry, workload: Workload, striping: Striping) -> Iterator[str]:
    yield from _of_array(geometry, striping)
    if workload.rate_iops:
        yield f"{workload} asks for a rate, so its IOPS say nothing of what an array can do"
    if not workload.is_random or workload.random_percent < 100:
        yield f"no law says how md merges and splits sequential I/O, as {workload} has"
    if workload.has_streams or len(workload.sizes) > 1 or not workload.is_usual or workload.offset_bytes:
        yield f"{workload} is not of one size, aligned and evenly random over the whole array"
    size, chunk = workload.largest_bytes, striping.chunk_bytes
    if striping.columns(geometry) > 1 and chunk % size:
        yield f"transfers of {_kib(size)} are split at chunks of {_kib(chunk)}{_larger_chunk(size)}"
    if geometry.has_parity and workload.writes and size != PAGE_BYTES:
        yield f"md handles parity writes page by page, and those of {_kib(size)} may reach a member in parts"
    if geometry.has_parity and geometry.missing and size > PAGE_BYTES:
        yield f"md computes missing data page by page, and reads of {_kib(size)} may reach a member in parts"


def _objections_to_growth(geometries: Sequence[Geometry], workload: Workload, striping: Striping) -> Iterator[str]:
    if geometries[0].is_side_by_side:
        return
    yield from _of_array(geometries[0], striping)
    if workload.zipf or workload.zones or workload.fsync:
        yield f"{workload} does not keep all members busy alike, so no law says how it grows with their number"
    if geometries[0].has_parity and workload.writes:
        yield from _of_parity_writes(workload, striping.chunk_bytes)
        ways = {*map(chunks_read, geometries)}
        if workload.largest_bytes != PAGE_BYTES and len(ways) == len(geometries) > 1:
            yield f"md reads other chunks for writes of {_kib(workload.largest_bytes)} at each of these widths"
    pieces = [striping.pieces(geometry, workload) for geometry in geometries]
    if max(pieces) > UNEVEN * min(pieces):
        size = workload.largest_bytes
        yield (
            f"transfers of {_kib(size)} are split at chunks of {_kib(striping.chunk_bytes)} into more I/Os of members "
            f"on wide arrays than on narrow ones{_larger_chunk(size)}"
        )


def _of_array(geometry: Geometry, striping: Striping) -> Iterator[str]:
    """Yield why there is no law for an array, whatever it does.

    In far-2 and offset-2 every member shares copies with two others, so two members, and with balanced reads all, do
    the work of a missing one; in near-2 its twin does.
    """
    if geometry.rebuilding:
        yield f"no law says what {geometry} can do while it is rebuilt"
    layout = striping.raid10_layout
    if geometry.level is RaidLevel.RAID10 and geometry.missing and layout != NEAR:
        yield f"no law says what {geometry} with the layout {layout} can do; use {NEAR} (protocol: array.raid10_layout)"


def _of_parity_writes(workload: Workload, chunk: int) -> Iterator[str]:
    size = workload.largest_bytes
    if not workload.is_random or workload.random_percent < 100:
        yield f"no law says how many whole stripes md makes of sequential writes, as {workload} has"
    if size > PAGE_BYTES and workload.outstanding(1) < 2:
        yield (
            "with one I/O outstanding per drive, members of a wide array wait for each other, and no law says how "
            f"writes of {_kib(size)} grow"
        )
    if size > chunk:
        yield (
            f"random writes of {_kib(size)} are wider than the array's chunks of {_kib(chunk)}, so that some cover "
            f"whole stripes, for which there is no law{_larger_chunk(size)}"
        )
    begins = [workload.offset_bytes, workload.align_bytes, *(each for each, _ in workload.sizes)]
    if any(each % PAGE_BYTES for each in begins):
        yield f"{workload} writes parts of pages of {_kib(PAGE_BYTES)}, which md reads first, and no law counts"
    if not workload.is_usual:
        yield f"no law says how many pages of {workload} md finds in its stripe cache"


def _larger_chunk(size: int) -> str:
    """Return the cure; empty for a size that divides no chunk, whose bytes are a power of two."""
    if size & (size - 1):
        return ""
    return f"; measure with chunks of {_kib(size)} or more (protocol: array.chunk)"


def _kib(size: int) -> str:
    return f"{size // 1024} KiB" if size % 1024 == 0 else f"{size} bytes"
