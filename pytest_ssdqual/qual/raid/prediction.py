"""What an array of exactly these members can do: a closed queueing network of their measured curves.

The array is simulated: a fixed number of host I/Os is outstanding, each becomes the member I/Os of the level's cost
model, phase by phase, and is replaced by a new one when the last of them completes. One mechanism covers all depths,
levels, missing members, read balance and unequal members; closed forms exist only at the ends, where they agree:
N·M/P when members are always busy, and outstanding I/Os over latency when they are mostly idle.

A member is a processor-sharing server with the total rate of its curve at the number of I/Os outstanding there (a
flow-equivalent server, by Norton's theorem for closed networks; Chandy, Herzog & Woo 1975). The work of an I/O has the
shape of the measured latencies. So the simulated member, at a constant depth, has exactly the measured rate and
latencies. A rate-limited member has also saved work from its idle time, as a token bucket has.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel, read_for_read, read_for_write
from pytest_ssdqual.qual.raid.member_curve import MemberCurve
from pytest_ssdqual.qual.stats.estimate import Estimate
from pytest_ssdqual.qual.units import Unit

#: Fewest host I/Os of a simulation, fewest turns of those outstanding, and the first part that is not counted.
IOS, TURNS, RAMP = 3000, 16, 0.2
#: Relative error of a simulation of so many I/Os: its standard deviation over seeds is up to 0.7 %.
SIMULATION_ERROR = 0.015
SEED = 20
#: Work that a rate-limited member saves while it is idle, I/Os; QEMU's throttle saves a tenth of a second.
SAVED_WORK_S = 0.1

#: Phases of one host I/O, one after another; member I/Os of a phase run side by side: (member, is a read).
Phases = list[list[tuple[int, bool]]]


@frozen
class PredictedMember:
    """Expectation for one member."""

    drive: str
    iops: float
    #: Mean number of I/Os outstanding.
    depth: float


@frozen
class Prediction:
    """Expectation for an array under one workload."""

    geometry: Geometry
    outstanding: int
    #: The interval carries the curves' errors and the simulation's; it is a bound, not a confidence interval.
    iops: Estimate
    #: Of simulated host I/Os, in rising order.
    read_latencies_ns: tuple[float, ...]
    write_latencies_ns: tuple[float, ...]
    #: In the order of the curves.
    members: tuple[PredictedMember, ...]

    def quantile_ns(self, q: float) -> float:
        """Return a quantile of all latencies; the simulation is too short for those beyond 0.99."""
        latencies = sorted((*self.read_latencies_ns, *self.write_latencies_ns))
        return latencies[min(len(latencies) - 1, int(q * len(latencies)))]


def predict(
    geometry: Geometry, read_fraction: float, outstanding: int, curves: Sequence[MemberCurve], ios: int = IOS
) -> Prediction:
    """Predict what an array does with ``outstanding`` host I/Os.

    ``curves`` are those of its present members, in order, at the mix of member I/Os
    (``member_curve.physical_read_fraction``). The result is the same for the same arguments.
    """
    simulation = _Simulation(geometry, read_fraction, outstanding, curves)
    seconds, latencies = simulation.run(max(ios, TURNS * outstanding))
    # All rates enter with degree 1, so a common error of the curves is that of the result; the largest bounds it.
    value, error = sum(map(len, latencies.values())) / seconds, max(curve.error for curve in curves) + SIMULATION_ERROR
    points = min(point.iops.n for curve in curves for point in curve.points)
    return Prediction(
        geometry,
        outstanding,
        Estimate(value, value * max(0.0, 1 - error), value * (1 + error), points, Unit.IOPS),
        tuple(sorted(1e9 * each for each in latencies[True])),
        tuple(sorted(1e9 * each for each in latencies[False])),
        tuple(
            PredictedMember(curve.drive, member.done / seconds, member.depth_s / seconds)
            for curve, member in zip(curves, simulation.members, strict=True)
        ),
    )


def with_median(curves: Sequence[MemberCurve], drives: Collection[str], depth: float) -> tuple[MemberCurve, ...]:
    """Return the curves with those of ``drives`` replaced by the median member of the others, by IOPS at a depth."""
    others = sorted((curve for curve in curves if curve.drive not in drives), key=lambda curve: curve.iops(depth))
    usual = others[len(others) // 2]
    return tuple(replace(usual, drive=curve.drive) if curve.drive in drives else curve for curve in curves)


def speeds(curves: Sequence[MemberCurve], depth: float) -> dict[str, float]:
    """Return the IOPS of each drive at a depth over those of the median drive."""
    usual = median(curve.iops(depth) for curve in curves)
    return {curve.drive: curve.iops(depth) / usual for curve in curves}


def phases(geometry: Geometry, is_read: bool, draw: random.Random, pending: Sequence[int]) -> Phases:
    """Draw the member I/Os of one small random host I/O.

    ``pending`` is the number of I/Os outstanding at each present member: md reads from the copy with the fewest
    (raid1.c and raid10.c, ``read_balance``, for drives that do not rotate). Missing members are the last ones.
    """
    width = geometry.width
    gone = frozenset(range(width - geometry.missing, width))
    if FACTS[geometry.level].parity:
        return _parity_phases(width, FACTS[geometry.level].parity, is_read, draw, gone)
    if geometry.level is RaidLevel.RAID1:
        copies = [each for each in range(width) if each not in gone]
    elif geometry.level is RaidLevel.RAID10:
        first = 2 * draw.randrange(width // 2)
        copies = [each for each in (first, first + 1) if each not in gone]
    else:
        copies = [draw.randrange(width)]
    if is_read:
        return [[(min(copies, key=lambda each: (pending[each], draw.random())), True)]]
    return [[(each, False) for each in copies]]


def _parity_phases(width: int, parity: int, is_read: bool, draw: random.Random, gone: frozenset[int]) -> Phases:
    first = draw.randrange(width)
    parity_members = frozenset((first + number) % width for number in range(parity))
    target = (first + parity + draw.randrange(width - parity)) % width
    if is_read:
        return [[(each, True) for each in sorted(read_for_read(target, width, gone))]]
    before = sorted(read_for_write(target, width, parity_members, gone))
    after = sorted((parity_members | {target}) - gone)
    return [part for part in ([(each, True) for each in before], [(each, False) for each in after]) if part]


@dataclass(slots=True)
class _HostIo:
    begin_s: float
    is_read: bool
    phases: Iterator[list[tuple[int, bool]]]
    #: Member I/Os of the present phase that are not done.
    left: int = 0


@dataclass(slots=True)
class _Member:
    """A processor-sharing server; ``served`` is the work that each I/O has received since the beginning."""

    rates: Sequence[float]
    shapes: Sequence[tuple[tuple[float, ...], tuple[float, ...]]]
    #: Rate without waiting, for each outstanding I/O, while work is saved; 0 for a member that saves none.
    delay_rate: float
    saved_most: float
    now_s: float = 0.0
    served: float = 0.0
    saved: float = 0.0
    #: Outstanding I/Os by the work at which each is done.
    queue: list[tuple[float, int, _HostIo]] = field(default_factory=list)
    #: Number of the event that is valid.
    version: int = 0
    done: int = 0
    depth_s: float = 0.0

    def rate(self) -> float:
        """Total rate now."""
        depth = len(self.queue)
        if self.saved > 1e-9:
            return depth * self.delay_rate
        return self.rates[min(depth, len(self.rates) - 1)]

    def advance(self, now_s: float) -> None:
        """Serve until ``now_s``; the rate did not change since."""
        passed_s, self.now_s = now_s - self.now_s, now_s
        depth = len(self.queue)
        self.depth_s += depth * passed_s
        rate = self.rate()
        if depth:
            self.served += rate / depth * passed_s
        if self.saved_most:
            saved = self.saved + (self.rates[-1] - rate) * passed_s
            self.saved = min(self.saved_most, saved if saved > 1e-9 else 0.0)

    def next_s(self) -> float:
        """Time of the next change: the first I/O is done, or the saved work is used up."""
        depth = len(self.queue)
        if not depth:
            return math.inf
        rate = self.rate()
        wait_s = max(0.0, self.queue[0][0] - self.served) * depth / rate
        if self.saved > 1e-9 and rate > self.rates[-1]:
            wait_s = min(wait_s, self.saved / (rate - self.rates[-1]))
        return self.now_s + wait_s

    def work(self, is_read: bool, draw: random.Random) -> float:
        """Draw the work of an I/O that arrives now."""
        reads, writes = self.shapes[min(len(self.queue) + 1, len(self.shapes) - 1)]
        shape = (reads or writes) if is_read else (writes or reads)
        return shape[int(draw.random() * len(shape))] if shape else 1.0


class _Simulation:
    """One closed loop; see the module."""

    def __init__(
        self, geometry: Geometry, read_fraction: float, outstanding: int, curves: Sequence[MemberCurve]
    ) -> None:
        self.geometry, self.read_fraction, self.outstanding = geometry, read_fraction, outstanding
        self.draw = random.Random(SEED)  # noqa: S311 (a simulation)
        self.members = [_member(curve) for curve in curves]
        self.pending = [0] * geometry.width
        self.events: list[tuple[float, int, int, int]] = []
        self.number = 0
        #: Reads that are due; drawn ones would add their own scatter to that of the result.
        self.reads_due = 0.5

    def run(self, ios: int) -> tuple[float, dict[bool, list[float]]]:
        """Return the seconds that ``ios`` host I/Os took after the ramp, and the latencies of reads (True) and writes
        in seconds.
        """
        for _ in range(self.outstanding):
            self._begin(0.0)
        ramp, done, since_s, latencies = (
            int(ios * RAMP) + self.outstanding,
            0,
            0.0,
            {True: list[float](), False: list[float]()},
        )
        while True:
            now_s, _, index, version = heapq.heappop(self.events)
            member = self.members[index]
            if version != member.version:
                continue
            member.advance(now_s)
            while member.queue and member.queue[0][0] <= member.served * (1 + 1e-12) + 1e-12:
                io = heapq.heappop(member.queue)[2]
                self.pending[index] -= 1
                member.done += 1
                io.left -= 1
                if io.left or self._next_phase(io, now_s):
                    continue
                done += 1
                if done > ramp:
                    latencies[io.is_read].append(now_s - io.begin_s)
                    if done - ramp == ios:
                        return now_s - since_s, latencies
                elif done == ramp:
                    since_s = now_s
                    for number, each in enumerate(self.members):
                        each.advance(now_s)
                        each.done, each.depth_s = 0, 0.0
                        self._schedule(each, number)
                self._begin(now_s)
            self._schedule(member, index)

    def _begin(self, now_s: float) -> None:
        self.reads_due += self.read_fraction
        is_read = self.reads_due >= 1
        self.reads_due -= is_read
        self._next_phase(_HostIo(now_s, is_read, iter(phases(self.geometry, is_read, self.draw, self.pending))), now_s)

    def _next_phase(self, io: _HostIo, now_s: float) -> bool:
        """Submit the member I/Os of the next phase; return False if there is none."""
        phase = next(io.phases, None)
        if phase is None:
            return False
        io.left = len(phase)
        for index, is_read in phase:
            member = self.members[index]
            member.advance(now_s)
            self.number += 1
            heapq.heappush(member.queue, (member.served + member.work(is_read, self.draw), self.number, io))
            self.pending[index] += 1
            self._schedule(member, index)
        return True

    def _schedule(self, member: _Member, index: int) -> None:
        """Replace the next event of the member of this index."""
        member.version += 1
        if member.queue:
            self.number += 1
            heapq.heappush(self.events, (member.next_s(), self.number, index, member.version))


def _member(curve: MemberCurve) -> _Member:
    last = math.ceil(curve.points[-1].depth)
    depths = range(last + 1)
    limited = curve.is_rate_limited
    nearest = [curve.nearest(max(1, depth)) for depth in depths]
    return _Member(
        rates=[0.0, *(curve.iops(depth) for depth in depths[1:])],
        shapes=[(point.reads, point.writes) for point in nearest],
        delay_rate=curve.iops(1) if limited else 0.0,
        saved_most=SAVED_WORK_S * curve.most if limited else 0.0,
    )
