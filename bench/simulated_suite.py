"""Simulated drives, arrays and clocks of a whole suite by the protocol ``acceptance``.

Eight drives have series of their own kind (``drive_kinds``), all in lockstep or each with its own
phases. An array is their power mean: exponent -1 at QD 1 and 2, -4 at QD 4 and 8, where I/Os queue at
the slowest member. What drives do acts on random writes in full, on mixes less, on reads hardly.
Time passes as in a campaign: fill, conditioning until the drift test ends it, bare drives, then
visits. A cell takes the mean of its minute out of the series.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from conditioned_series import Conditioned, until_settled
from drive_kinds import KINDS, LATE, Approach, Series
from visited_points import OVERHEAD_S

from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.stats.visits import HEAD_S, Point
from pytest_ssdqual.qual.workload.workload_set import INTEL_RAID

DRIVES, WIDTHS = 8, range(3, 9)
#: Seconds of one value of a series.
STEP_S = 5
#: Seconds of one report of conditioning.
REPORT_S = 60
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


MATRICES = {"raid5": default_matrix, "intel_s3500": paper_matrix}


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

    def cell(self, point: Point, start_s: float, ramp_s: float, cell_s: float) -> list[float]:
        """Return the mean rates of a cell's ramp, its first seconds and its rest."""
        geometry, workload = point
        integral, mean = self.integrals[geometry.width, -1 if workload.qd_per_drive < 4 else -4]
        felt = FELT[round(100 * workload.read_fraction)]
        moments = (start_s, start_s + ramp_s, start_s + ramp_s + HEAD_S, start_s + ramp_s + cell_s)
        written = [self._at(integral, each) for each in moments]
        return [
            1 + felt * ((after - before) / (end_s - begin_s) / mean - 1) if end_s > begin_s else 0.0
            for before, after, begin_s, end_s in zip(written[:-1], written[1:], moments[:-1], moments[1:], strict=True)
        ]

    @staticmethod
    def _at(integral: Series, at_s: float) -> float:
        index = int(at_s / STEP_S)
        part = at_s / STEP_S - index
        return float(integral[index] + part * (integral[index + 1] - integral[index])) * STEP_S


@dataclass(frozen=True, slots=True)
class Suite:
    """Points that are measured on eight drives of a model by a protocol."""

    name: str
    points: tuple[Point, ...]
    model: Model
    protocol: Protocol

    def members_s(self) -> float:
        """Return the time of the bare drives' measurements for predictions."""
        rule = self.protocol.members
        each_s = rule.window_s + rule.ramp_s + OVERHEAD_S
        return len({workload for _, workload in self.points}) * each_s * bool(rule.window_s)

    def longest_s(self) -> float:
        """Return a time that all cells are certainly measured in, from conditioning on."""
        rule = self.protocol.visits
        assert rule
        cells_s = sum(rule.cells) * len(self.points) * (rule.ramp_s + rule.cell_s + OVERHEAD_S)
        arrays_s = len(rule.cells) * len(WIDTHS) * (rule.refresh_s + 60)
        return 1.1 * (cells_s + arrays_s + self.protocol.precondition.limit_capacities * self.model.capacity_s)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Eight drives of one kind, and their arrays when conditioning has ended."""

    conditioned: Conditioned
    arrays: Arrays
    #: Time and capacities before the first visit, of all drives side by side.
    before_s: float
    written: float

    @classmethod
    def of(cls, suite: Suite, kind: str, rng: np.random.Generator, *, in_lockstep: bool) -> Drawn:
        """Draw drives of one model: one approach for all of them, and the noise of ``kind``."""
        model, steps = suite.model, round(suite.longest_s() / REPORT_S)
        seconds = steps * REPORT_S
        noise = np.asarray([KINDS[kind](rng, seconds) for _ in range(1 if in_lockstep else DRIVES)])
        rates = noise * Approach.drawn(rng).by_time(seconds, model.capacity_s)
        reports = rates.reshape(len(rates), -1, REPORT_S).mean(axis=2) * model.random_write_iops * 4096
        conditioned = until_settled(list(reports), REPORT_S, model.drive_bytes, suite.protocol)
        begin = round(conditioned.seconds / STEP_S)
        later = rates.reshape(len(rates), -1, STEP_S).mean(axis=2)[:, begin:]
        return cls(
            conditioned,
            Arrays.of(np.broadcast_to(later, (DRIVES, later.shape[1])), is_late=kind in LATE),
            model.fill_s + conditioned.seconds + suite.members_s(),
            suite.protocol.fill.passes + conditioned.capacities,
        )
