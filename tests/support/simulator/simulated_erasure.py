"""What simulated drives return for data that were discarded or purged: nothing, unless one breaks its promise.

``SIMULATED_LEFT`` has pairs ``SERIAL=KIND``: ``discard`` and ``purge`` leave the data, ``neighbours`` loses those
beside a discarded range, ``other`` returns other data, and other ones each time. ``SIMULATED_PROMISE`` is a word of
``DiscardPromise``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import count

from pytest_ssdqual.rig.purge.scan import PAGE_BYTES
from support.simulator.pairs import pairs


@dataclass
class Erasure:
    """Faults by serial number, and what was discarded; numbers of reads make unstable data."""

    left: dict[str, str]
    promise: str
    discarded: list[tuple[str, int, int]] = field(default_factory=list)
    reads: count[int] = field(default_factory=lambda: count(1))

    @classmethod
    def of_environment(cls) -> Erasure:
        return cls(pairs("SIMULATED_LEFT"), os.environ.get("SIMULATED_PROMISE", "zeroes"))

    def kinds(self, serials: Collection[str]) -> set[str]:
        """Return what is wrong with a device of these drives."""
        return {self.left[serial] for serial in serials if serial in self.left}

    def scanned(self, words: Sequence[str], serials: Collection[str], *, filled: bool) -> str:
        """Answer a scan: of the known bytes, the device, and ranges; ``filled``: no purge came after the data."""
        path, ranges = words[1], [int(word) for word in words[2:]]
        kinds, lines = self.kinds(serials), []
        for begin, length in zip(ranges[::2], ranges[1::2], strict=True):
            is_discarded = (path, begin, length) in self.discarded
            is_left = filled or ("discard" in kinds if is_discarded else "purge" in kinds)
            if is_discarded and "other" in kinds:
                lines.append(f"{length} - - {next(self.reads)}")
            elif is_left and length == PAGE_BYTES:
                lines.append(f"{length} - - {begin}")
            elif is_left:
                lines.append(f"{length} {begin} - {begin}")
            else:
                lines.append(f"{length} - 0 0")
        return "\n".join(lines)
