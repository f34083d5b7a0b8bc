"""Kinds of drives that simulate a flash translation layer, so that their approach to steady state is not assumed.

As those of ``drive_kinds.py``. Each drive is a small simulated flash (``bench/flash.py``) of its own
over-provisioning and size under uniformly random writes, which takes the same number of writes as a large one to
settle, in user capacities. Its true mean is the closed form of greedy collection, met within 0.2 % at this size; the
clock is set such that it is the mean asked for. A drive costs about a tenth of a second per capacity written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import flash
import numpy as np
import numpy.typing as npt
import write_amplification as amplification
from flash import Flash, FlashTiming, Shape
from held_out_kinds import noise

Series = npt.NDArray[np.float64]
Kind = Callable[[np.random.Generator, float, int], Series]


@dataclass(frozen=True, slots=True)
class FlashDrive:
    shape: Shape
    timing: FlashTiming
    #: Writes a second in the long run.
    settled: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> FlashDrive:
        """12…40 % over-provisioning; 10…30 min to write a capacity once it has settled."""
        shape = Shape(over_provisioning=rng.uniform(0.12, 0.4))
        settled = shape.user_pages / rng.uniform(600, 1800)
        # A read takes 5…15 % of a program, an erase as long as 2…8 programs (data sheets of SLC to TLC flash).
        parts = FlashTiming(1.0, rng.uniform(0.05, 0.15), rng.uniform(2, 8))
        scale = amplification.settled_iops(shape, parts) / settled
        return cls(shape, FlashTiming(*(scale * each for each in (1.0, parts.read_ns, parts.erase_ns))), settled)

    def writes(self, rng: np.random.Generator, seconds: int, *, fills: int, passed: float) -> Series:
        """Random writes of each second, 1 in the long run; after sequential fills, ``passed`` capacities left out."""
        drive = Flash(self.shape)
        for _ in range(fills):
            drive.write(np.arange(self.shape.user_pages))
        drive.write(flash.uniform(rng, self.shape, round(passed * self.shape.user_pages)))
        found = np.empty(0)
        works: list[flash.Work] = []
        while found.size < seconds:
            works += drive.write(flash.uniform(rng, self.shape, self.shape.user_pages))
            found = flash.iops(works, self.timing) / self.settled
        return found[:seconds]


def ftl(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Conditioned by the book: written twice sequentially, once randomly, and then measured."""
    return mean * FlashDrive.drawn(rng).writes(rng, seconds, fills=2, passed=1.0) * noise(rng, seconds)


def ftl_random(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Purged, then written two capacities randomly: its blocks are of all ages, and it takes six or more to settle."""
    return mean * FlashDrive.drawn(rng).writes(rng, seconds, fills=0, passed=2.0) * noise(rng, seconds)


def ftl_filled(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Written twice sequentially, and measured from the first random write on: fast for as long as there are blocks
    without a valid page, then a cliff. No gate was kept."""
    return mean * FlashDrive.drawn(rng).writes(rng, seconds, fills=2, passed=0.0) * noise(rng, seconds)


def ftl_fresh(rng: np.random.Generator, mean: float, seconds: int) -> Series:
    """Purged, and measured from the first write on: fresh speed for 1.1…1.4 capacities, then a long decline."""
    return mean * FlashDrive.drawn(rng).writes(rng, seconds, fills=0, passed=0.0) * noise(rng, seconds)


KINDS: Mapping[str, Kind] = {kind.__name__: kind for kind in (ftl, ftl_random)}
#: What the gate is for; as in ``drive_kinds.py``.
WITHOUT_GATE: Mapping[str, Kind] = {kind.__name__: kind for kind in (ftl_filled, ftl_fresh)}
