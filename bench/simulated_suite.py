"""Simulated drives, arrays and clocks of a whole suite by the protocol ``acceptance``.

Eight drives have series of their own kind (``drive_kinds``), all in lockstep or each with its own
phases. An array is their power mean: exponent -1 at QD 1 and 2, -4 at QD 4 and 8, where I/Os queue at
the slowest member. What drives do acts on random writes in full, on mixes less, on reads hardly.
Time passes as in a campaign: fill, conditioning until the drift test ends it, bare drives, then
visits. A cell takes the mean of its minute out of the series.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from drive_kinds import KINDS, Approach, Series

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID

Point = tuple[Geometry, Workload]

DRIVES, WIDTHS = 8, range(3, 9)
#: Seconds of one value of a series.
STEP_S = 5
#: fio's start and end beside ramp and window, and the assembly of an array.
OVERHEAD_S, ASSEMBLY_S = 3.5, 20.0
#: Of the changes of a drive's rate under random writes, the share that a mix with so many reads sees.
FELT = {0: 1.0, 70: 0.6, 90: 0.3, 100: 0.05}


@dataclass(frozen=True, slots=True)
class Model:
    """A drive model: rates that it is conditioned with."""

    name: str
    drive_bytes: int
    random_write_iops: float
    sequential_write_bytes_per_s: float

    @property
    def fill_s(self) -> float:
        return self.drive_bytes / self.sequential_write_bytes_per_s

    @property
    def capacity_s(self) -> float:
        """Seconds that one capacity of 4 KiB random writes takes at the settled rate."""
        return self.drive_bytes / (4096 * self.random_write_iops)


#: Figures of the data sheets of Intel's S3700 and Samsung's PM9A3.
MODELS = {
    "sata": Model("8 × SATA 800 GB", 800 * 10**9, 36_000, 450e6),
    "nvme": Model("8 × NVMe 7.68 TB", 7_680 * 10**9, 200_000, 4.1e9),
}


def default_matrix() -> tuple[Point, ...]:
    """QD 8 at every width, QD 1 at the narrowest and the widest: ``suites/raid5``."""
    ends = (WIDTHS[0], WIDTHS[-1])
    return tuple(
        (Geometry(RaidLevel.RAID5, width), workload)
        for width in WIDTHS
        for workload in INTEL_RAID
        if workload.qd_per_drive == 8 or (workload.qd_per_drive == 1 and width in ends)
    )


def paper_matrix() -> tuple[Point, ...]:
    """All depths at every width: ``suites/intel_s3500``."""
    return tuple((Geometry(RaidLevel.RAID5, width), each) for width in WIDTHS for each in INTEL_RAID)


@dataclass(frozen=True, slots=True)
class Drives:
    """Eight drives from the first random write after their fill on."""

    #: One row for each drive, in units of the settled rate.
    rates: Series
    capacity_s: float

    @classmethod
    def drawn(
        cls, kind: str, rng: np.random.Generator, model: Model, hours: float, *, in_lockstep: bool
    ) -> Drives:
        """Draw drives of one model: one approach for all of them, and the noise of ``kind``."""
        seconds = round(hours * 3600)
        approach = Approach.drawn(rng).by_time(seconds, model.capacity_s)
        noise = np.asarray([KINDS[kind](rng, seconds) for _ in range(1 if in_lockstep else DRIVES)])
        rows = (noise * approach).reshape(len(noise), -1, STEP_S).mean(axis=2)
        return cls(np.broadcast_to(rows, (DRIVES, rows.shape[1])), model.capacity_s)

    def written(self) -> Series:
        """Return the capacities that each drive has written after each step."""
        return np.cumsum(self.rates, axis=1) * STEP_S / self.capacity_s


@dataclass(frozen=True, slots=True)
class Arrays:
    """Arrays of drives whose conditioning has ended: the means of cells, as shares of the truth."""

    #: For each width and exponent, the integral of the rate over steps, and its mean.
    integrals: Mapping[tuple[int, int], tuple[Series, float]]

    @classmethod
    def of(cls, rates: Series, *, is_late: bool) -> Arrays:
        """``is_late``: of drives that are still changing; the truth is what they come to."""
        found = {}
        for exponent in (-1, -4):
            powers = np.cumsum(rates**exponent, axis=0)
            for width in WIDTHS:
                array = (powers[width - 1] / width) ** (1 / exponent)
                truth = array[-array.size // 3 :] if is_late else array
                found[width, exponent] = np.concatenate(([0.0], np.cumsum(array))), float(truth.mean())
        return cls(found)

    def cell(self, point: Point, start_s: float, seconds: float) -> float:
        """Return the mean rate of a cell."""
        geometry, workload = point
        integral, mean = self.integrals[geometry.width, -1 if workload.qd_per_drive < 4 else -4]
        share = (self._at(integral, start_s + seconds) - self._at(integral, start_s)) / seconds / mean
        return float(1 + FELT[round(100 * workload.read_fraction)] * (share - 1))

    @staticmethod
    def _at(integral: Series, at_s: float) -> float:
        index = int(at_s / STEP_S)
        part = at_s / STEP_S - index
        return float(integral[index] + part * (integral[index + 1] - integral[index])) * STEP_S
