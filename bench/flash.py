"""A flash drive small enough to understand: pages, blocks, a page map and garbage collection.

Pages are programmed in order and only into erased blocks; an overwrite invalidates the old page. When one erased block
is left, the drive collects a block: it copies the valid pages into the erased one, and the host continues in the rest
of it. This suffices for write amplification, the fresh plateau, the write cliff and steady state. The model has no
wear, read disturb, power loss or parallel queues; all dies work as one fast die. ``write_amplification.py`` has its
long-run mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]


#: Streams of pages; one and the same unless they are separated.
_HOST, _COPIES = 0, -1


class GarbageCollection(StrEnum):
    """The choice of the block to collect."""

    #: The one with the fewest valid pages.
    GREEDY = "greedy"
    #: The one that was filled first; also called LRU or cyclic cleaning.
    FIFO = "fifo"


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of the flash, and the part that the host sees."""

    blocks: int = 1024
    pages_per_block: int = 64
    #: Share of the user capacity that the drive has beyond it: 0.07 for 256 GiB of flash sold as 256 GB.
    over_provisioning: float = 0.28
    collection: GarbageCollection = GarbageCollection.GREEDY
    #: Of this many blocks, those filled first, the greedy choice is made (Hu et al. 2009); None: of all.
    window: int | None = None
    #: Whether copied pages go into blocks of their own, so that what is old does not lie among what is new.
    separates: bool = False

    def __post_init__(self) -> None:
        if self.spare_pages <= self.pages_per_block:
            raise ValueError("flash needs at least one spare block besides the one that garbage is collected into")
        if self.window is not None and not 1 <= self.window <= self.blocks:
            raise ValueError(f"a window of {self.window} blocks is not one of 1 to {self.blocks}")

    @property
    def user_pages(self) -> int:
        """Of 4 KiB, say; the over-provisioning is in relation to these. One block is only there to collect into."""
        return int((self.blocks - 1) * self.pages_per_block / (1 + self.over_provisioning))

    @property
    def spare_pages(self) -> int:
        return (self.blocks - 1) * self.pages_per_block - self.user_pages


@dataclass(frozen=True, slots=True)
class FlashTiming:
    """Times of flash operations, of all dies together: with 32 dies a 32nd of the data sheet's values."""

    program_ns: float = 20_000
    read_ns: float = 2_000
    erase_ns: float = 100_000


@dataclass(frozen=True, slots=True)
class Work:
    """Operations of the flash between two collections, or their sum."""

    host_pages: int
    copied_pages: int
    erased_blocks: int

    def duration_ns(self, timing: FlashTiming) -> float:
        programmed = self.host_pages + self.copied_pages
        return (
            programmed * timing.program_ns + self.copied_pages * timing.read_ns + self.erased_blocks * timing.erase_ns
        )

    @property
    def write_amplification(self) -> float:
        """Pages programmed to pages written by the host; NaN if it wrote none."""
        return (self.host_pages + self.copied_pages) / self.host_pages if self.host_pages else math.nan


def total(works: Iterable[Work]) -> Work:
    host_pages = copied_pages = erased_blocks = 0
    for work in works:
        host_pages += work.host_pages
        copied_pages += work.copied_pages
        erased_blocks += work.erased_blocks
    return Work(host_pages, copied_pages, erased_blocks)


class Flash:
    """One drive, purged at first; logical pages are numbered from 0 to ``shape.user_pages`` - 1."""

    def __init__(self, shape: Shape) -> None:
        import numpy as np

        self.shape = shape
        self.total = Work(0, 0, 0)
        #: Flash page of each logical page; -1: none.
        self._place = np.full(shape.user_pages, -1, dtype=np.int64)
        #: Logical page of each flash page; valid only if ``_place`` points back.
        self._holds = np.zeros(shape.blocks * shape.pages_per_block, dtype=np.int64)
        self._valid = np.zeros(shape.blocks, dtype=np.int64)
        #: When each block was filled, by a count of blocks; the largest number for those that are not full.
        self._filled = np.full(shape.blocks, np.iinfo(np.int64).max, dtype=np.int64)
        self._erased = list(range(shape.blocks))
        #: The open block and how much of it is used, of the host's pages and (last) of copied ones.
        self._open = [self._erased.pop() for _ in range(1 + shape.separates)]
        self._used = [0 for _ in self._open]
        self._fills = 0

    @property
    def valid_pages(self) -> int:
        """Number of flash pages with current data of the host."""
        return int(self._valid.sum())

    def stored(self) -> set[int]:
        """Logical pages that can be read back from where the map says they are."""
        import numpy as np

        pages = np.flatnonzero(self._place >= 0)
        return set(pages[self._holds[self._place[pages]] == pages].tolist())

    def write(self, pages: Integers) -> list[Work]:
        """Write logical pages in this order; return the work for each block that this filled, and for the rest."""
        at, works = 0, []
        while at < pages.size:
            copied = erased = 0
            # One erased block always remains, to collect into.
            while self._room(_HOST) == 0 and len(self._erased) < 2:
                copied, erased = copied + self._collect(), erased + 1
            part = pages[at : at + (self._room(_HOST) or self.shape.pages_per_block)]
            self._forget(part)
            self._program(_HOST, part)
            at += part.size
            works.append(Work(int(part.size), copied, erased))
        self.total = total([self.total, *works])
        return works

    def trim(self, pages: Integers) -> None:
        """Invalidate logical pages that the host does not need any more."""
        self._forget(pages)
        self._place[pages] = -1

    def idle(self, blocks: int) -> None:
        """Collect garbage in the background until so many blocks are erased, or a block without garbage is next."""
        while len(self._erased) < blocks and self._valid[self._victim()] < self.shape.pages_per_block:
            self._collect()

    def _room(self, stream: int) -> int:
        return self.shape.pages_per_block - self._used[stream]

    def _collect(self) -> int:
        """Copy the valid pages of one block, and erase it; return the number of copied pages."""
        import numpy as np

        victim = self._victim()
        places = np.arange(victim * self.shape.pages_per_block, (victim + 1) * self.shape.pages_per_block)
        valid = self._holds[places][self._place[self._holds[places]] == places]
        self._valid[victim] = 0
        self._filled[victim] = np.iinfo(np.int64).max
        at = 0
        while at < valid.size:
            part = valid[at : at + (self._room(_COPIES) or self.shape.pages_per_block)]
            self._program(_COPIES, part)
            at += part.size
        self._erased.append(victim)
        return int(valid.size)

    def _victim(self) -> int:
        import numpy as np

        if self.shape.collection is GarbageCollection.FIFO:
            return int(self._filled.argmin())
        full = self._filled < np.iinfo(np.int64).max
        if self.shape.window is not None:
            full &= self._filled <= np.partition(self._filled, self.shape.window - 1)[self.shape.window - 1]
        return int(np.where(full, self._valid, self.shape.pages_per_block + 1).argmin())

    def _forget(self, pages: Integers) -> None:
        """Invalidate the flash pages of these logical pages."""
        import numpy as np

        places = self._place[np.unique(pages)]
        self._valid -= np.bincount(places[places >= 0] // self.shape.pages_per_block, minlength=self.shape.blocks)

    def _program(self, stream: int, pages: Integers) -> None:
        """Program pages into the open block of the stream, or into the next; the last one counts of equal pages."""
        import numpy as np

        if self._room(stream) == 0:
            self._fills += 1
            self._filled[self._open[stream]] = self._fills
            self._open[stream], self._used[stream] = self._erased.pop(), 0
        first = self._open[stream] * self.shape.pages_per_block + self._used[stream]
        places = np.arange(first, first + pages.size)
        self._holds[places] = pages
        self._place[pages] = places
        self._used[stream] += pages.size
        self._valid[self._open[stream]] += np.count_nonzero(self._place[pages] == places)


def uniform(rng: np.random.Generator, shape: Shape, count: int) -> Integers:
    """Return uniformly random writes, as of fio with ``norandommap``.

    With its random map fio writes every page once before any page twice: half as many copies if they are separated.
    """
    return rng.integers(0, shape.user_pages, count)


def hot_cold(rng: np.random.Generator, shape: Shape, count: int, *, hot: float, traffic: float) -> Integers:
    """Writes of which the share ``traffic`` goes to the share ``hot`` of the pages, uniformly within each part."""
    import numpy as np

    border = round(hot * shape.user_pages)
    to_hot = rng.random(count) < traffic
    return np.where(to_hot, rng.integers(0, border, count), rng.integers(border, shape.user_pages, count))


def iops(works: Sequence[Work], timing: FlashTiming) -> Floats:
    """Return host writes of each whole second; the pages of one ``Work`` are spread over its time.

    This models drives that copy a little with every host write, to keep latencies even.
    """
    import numpy as np

    ends_s = np.cumsum([work.duration_ns(timing) for work in works]) / 1e9
    written = np.cumsum([work.host_pages for work in works])
    at = np.arange(int(ends_s[-1]) + 1 if len(works) else 1)
    rates: Floats = np.diff(np.interp(at, np.concatenate([[0.0], ends_s]), np.concatenate([[0.0], written])))
    return rates
