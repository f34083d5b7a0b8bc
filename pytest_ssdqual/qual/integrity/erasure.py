"""What drives return for data that were discarded or erased, and what they promise about it; pure.

NVM Express, ACS and SBC let a drive promise that a block reads as zeroes after a discard. SP 800-88 Rev. 2 leaves the
techniques of its classes to IEEE 2883.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum

from pytest_ssdqual.qual.frozen import frozen


class DiscardPromise(StrEnum):
    """What a drive says that discarded blocks read as; the words of ``rig/scripts/discard_promise.sh``."""

    ZEROES = "zeroes"
    ONES = "ones"
    #: Anything, but always the same.
    STABLE = "stable"
    NOTHING = "nothing"


#: The byte of each promise about the content.
PROMISED = {DiscardPromise.ZEROES: 0x00, DiscardPromise.ONES: 0xFF}
#: Class of each method. A Format is Clear: it reaches one namespace, and may leave spare blocks as they are. So is a
#: Security Erase, which SP 800-88 Rev. 1 (table A-8) counts so for flash. A discard is in no class.
CLASSES = {"NVMe Sanitize": "Purge", "ATA Sanitize": "Purge", "NVMe Format": "Clear", "ATA Security Erase": "Clear"}
DISCARD, NONE = "discard of the whole range", "none"


@frozen
class ScannedRange:
    """A range of a device as it was read; offsets are those on the device."""

    begin_bytes: int
    #: Bytes that could be read.
    size_bytes: int
    #: The first place with data of the fill; None if none has.
    old_at: int | None
    #: The byte that all are equal to; None if they differ.
    fill: int | None
    checksum: int


@frozen
class DiscardedTarget:
    """What a bare drive or an array returned for ranges that were discarded, in two reads."""

    #: Serial number, or the array.
    name: str
    promise: DiscardPromise
    ranges: tuple[ScannedRange, ...]
    again: tuple[ScannedRange, ...]
    #: The data beside the ranges are as written.
    is_kept: bool

    @property
    def findings(self) -> tuple[str, ...]:
        """Broken promises, one clause each."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[str]:
        broken = [each for each in (*self.ranges, *self.again) if each.fill != PROMISED.get(self.promise, each.fill)]
        count = f"{len({each.begin_bytes for each in broken})} of {len(self.ranges)} discarded ranges"
        if broken:
            old_at = next((each.old_at for each in broken if each.old_at is not None), None)
            what = "other data" if old_at is None else f"the data from before the discard, first at byte {old_at:,}"
            yield f"{count} return {what}; promised are {self.promise}"
        elif self.promise is DiscardPromise.STABLE and self._unstable:
            yield f"{self._unstable} of {len(self.ranges)} discarded ranges changed between two reads"
        if not self.is_kept:
            yield "data beside the discarded ranges are not as written"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Observations that break no promise."""
        old = sum(each.old_at is not None for each in self.ranges)
        said = (
            f"{self.name}: {old} of {len(self.ranges)} discarded ranges had the earlier data, {self._unstable} changed"
        )
        return (f"{said} between two reads; promised: {self.promise}",) if old or self._unstable else ()

    @property
    def _unstable(self) -> int:
        return sum(first.checksum != again.checksum for first, again in zip(self.ranges, self.again, strict=True))


@frozen
class ErasedDrive:
    """How a drive was erased, and the evidence for it."""

    name: str
    method: str
    #: Better methods, each with the reason why it was not used.
    passed_over: tuple[str, ...] = ()
    #: Places that held data of their own before, and offsets of those that still have them.
    sampled: int = 0
    left: tuple[int, ...] = ()
    #: Bytes that were read afterwards, all of the drive; 0: the samples only.
    read_bytes: int = 0
    promise: DiscardPromise = DiscardPromise.NOTHING

    @property
    def nist_class(self) -> str:
        """Class by NIST SP 800-88; ``none`` if the method has none, or left data."""
        return "none" if self.left else CLASSES.get(self.method.partition(",")[0], "none")

    @property
    def evidence(self) -> str:
        """Return ``480,103,981,056 bytes read, 64 places sampled: nothing left``."""
        extent = f"{self.read_bytes:,} bytes read, {self.sampled} places sampled"
        if self.left:
            return f"{extent}: earlier data at byte {self.left[0]:,}"
        return f"{extent}: nothing left" if self.read_bytes or self.sampled else f"{extent}: nothing is known"

    @property
    def findings(self) -> tuple[str, ...]:
        """Broken promises, one clause each; a discard has one only if the drive promises what is read."""
        is_promised = self.method != DISCARD or self.promise in PROMISED
        return (f"{self.method} left data; {self.evidence}",) if self.left and is_promised else ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """Observations about methods that promise nothing."""
        is_remark = self.method == NONE or (self.left and not self.findings)
        return (f"{self.name}: {self.method}; {self.evidence}",) if is_remark else ()


@frozen
class ErasedDrives:
    """The record ``erased``: the drives of one purge."""

    drives: tuple[ErasedDrive, ...]


def left(before: Sequence[ScannedRange], after: Sequence[ScannedRange]) -> tuple[int, tuple[int, ...]]:
    """Return the number of samples with data of their own before that were read again, and where these still are.

    Data that several places share, such as a pattern, are no drive's own: they may be what an erased block reads as.
    """
    counts = Counter(each.checksum for each in before)
    own = [
        (first, now)
        for first, now in zip(before, after, strict=False)
        if first.size_bytes and now.size_bytes and first.fill is None and counts[first.checksum] == 1
    ]
    same = (first for first, now in own if now.fill is None and first.checksum == now.checksum)
    return len(own), tuple(place.begin_bytes for place in same)
