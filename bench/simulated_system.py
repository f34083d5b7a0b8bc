"""Simulates a storage system from dies to fio, to know the cause of a shortfall by construction.

A drive has dies, each serving one I/O at a time; a random address means a random die. Between dies and fio are a path
that some drives share, md and the host's CPUs, each a server with a rate. This is a model of its own: the package
predicts arrays from members' measured curves and knows nothing of dies.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from pytest_ssdqual.qual.raid.geometry import FACTS, Geometry, RaidLevel, read_for_read, read_for_write

#: Share of the I/Os of a simulation that are its ramp.
RAMP = 0.1


@dataclass(frozen=True, slots=True)
class SimulatedDrive:
    """One drive."""

    serial: str
    dies: int = 32
    read_s: float = 80e-6
    write_s: float = 320e-6
    #: Coefficient of variation of a die's service time.
    variation: float = 0.3
    #: Factors on service times of reads and of writes; above 1 is slow.
    slow_reads: float = 1.0
    slow_writes: float = 1.0
    #: Factor on service times while exactly so many I/Os or more are outstanding.
    slow_deep: float = 1.0
    deep: int = 1 << 30
    #: Reads per second of another load.
    foreign_iops: float = 0.0
    #: Share of the I/Os that take so much longer, as beside garbage collection.
    stalled: float = 0.0
    stall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedSystem:
    """Drives, and what is above them; rates are I/Os per second, infinite where nothing limits."""

    drives: tuple[SimulatedDrive, ...]
    md_iops: float = math.inf
    host_iops: float = math.inf
    fio_iops: float = math.inf
    #: Member I/Os per second through the path that the first ``behind`` drives share.
    path_iops: float = math.inf
    behind: int = 0
    #: Share of the host's I/Os that wait so long for a CPU, without keeping others from it.
    delayed: float = 0.0
    delay_s: float = 0.0

    def with_drive(self, index: int, **changes: Any) -> SimulatedSystem:  # noqa: ANN401 (fields of the drive)
        """Return the system with one drive changed."""
        drives = list(self.drives)
        drives[index] = replace(drives[index], **changes)
        return replace(self, drives=tuple(drives))


@dataclass(slots=True)
class SimulatedMember:
    """Counters of one drive, as the kernel keeps them."""

    reads: int = 0
    writes: int = 0
    foreign: int = 0
    read_wait_s: float = 0.0
    write_wait_s: float = 0.0
    busy_s: float = 0.0
    outstanding: int = 0
    busy_since: float = 0.0
    #: Of its I/Os after the ramp, seconds.
    read_latencies: list[float] = field(default_factory=list)
    write_latencies: list[float] = field(default_factory=list)


@dataclass(slots=True)
class SimulatedRun:
    """Result of one simulation."""

    seconds: float
    ios: int
    latencies: list[float]
    members: list[SimulatedMember]
    #: Share of the time that each server above the drives was busy.
    md_busy: float
    host_busy: float
    fio_busy: float
    path_busy: float

    @property
    def iops(self) -> float:
        return self.ios / self.seconds


class RateServer:
    """A server that takes I/Os one after another at a rate."""

    def __init__(self, iops: float, rng: random.Random) -> None:
        self.mean_s = 0.0 if math.isinf(iops) else 1 / iops
        self.free = 0.0
        self.busy_s = 0.0
        self.rng = rng

    def leave(self, now: float) -> float:
        """Return the time at which an I/O that arrives now leaves."""
        if not self.mean_s:
            return now
        service = self.mean_s * self.rng.gammavariate(4.0, 0.25)
        self.free = max(self.free, now) + service
        self.busy_s += service
        return self.free


@dataclass(slots=True)
class HostIo:
    """One host I/O on its way: phases are sets of (member, is a read)."""

    begin: float
    phases: list[list[tuple[int, bool]]]
    left: int = 0


@dataclass(slots=True)
class Simulation:
    """One closed loop of ``outstanding`` I/Os on an array, or on each of several drives side by side."""

    system: SimulatedSystem
    geometry: Geometry
    read_fraction: float
    outstanding: int
    seed: int
    _rng: random.Random = field(init=False)
    _members: list[SimulatedMember] = field(init=False)
    _dies: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311 (a simulation)
        self._members = [SimulatedMember() for _ in range(self.geometry.width)]
        self._dies = [[0.0] * self.system.drives[index].dies for index in range(self.geometry.width)]

    def run(self, ios: int) -> SimulatedRun:
        """Simulate until so many I/Os completed, and count those after the ramp."""
        rng, system = self._rng, self.system
        servers = [RateServer(iops, rng) for iops in (system.fio_iops, system.host_iops, system.md_iops)]
        path = RateServer(system.path_iops, rng)
        numbers = count()
        events: list[tuple[float, int, int, Any]] = []  # the last one depends on the stage
        side = self.geometry.is_side_by_side

        def push(at: float, stage: int, what: HostIo | tuple[HostIo | None, int, bool, float, int] | int) -> None:
            heapq.heappush(events, (at, next(numbers), stage, what))

        def submit(now: float, lane: int) -> None:
            push(now, 0, HostIo(now, self._phases(lane if side else None)))

        for lane in range(self.geometry.width if side else 1):
            for _ in range(self.outstanding):
                submit(rng.random() * 1e-6, lane)
        for index, drive in enumerate(system.drives[: self.geometry.width]):
            if drive.foreign_iops:
                push(rng.expovariate(drive.foreign_iops), 5, index)
        done, since, latencies, ramp = 0, 0.0, [], int(ios * RAMP)
        now = 0.0
        while done < ios + ramp:
            now, _, stage, what = heapq.heappop(events)
            if stage < 3:  # fio, host, md
                at = servers[stage].leave(now) if not side or stage < 2 else now
                if stage == 1 and system.delayed and rng.random() < system.delayed:
                    at += system.delay_s
                push(at, stage + 1, what)
            elif stage == 3:  # the next phase
                assert isinstance(what, HostIo)
                if not what.phases:
                    done += 1
                    if done == ramp:
                        since = now
                        self._reset(now)
                        for server in (*servers, path):
                            server.busy_s = 0.0
                    elif done > ramp:
                        latencies.append(now - what.begin)
                    submit(now, what.left)
                    continue
                phase = what.phases.pop(0)
                lane, what.left = what.left, len(phase)
                for member, is_read in phase:
                    self._arrive(member, now)
                    at = path.leave(now) if member < system.behind else now
                    push(self._serve(member, is_read, at), 4, (what, member, is_read, now, lane))
            elif stage == 4:  # a member's I/O completes
                io, member, is_read, begin, lane = what
                self._complete(member, is_read, now, begin)
                if io is None:
                    continue
                io.left -= 1
                if not io.left:
                    io.left = io_lane(io, member, side)
                    push(now, 3, io)
            else:
                index = int(what)
                self._arrive(index, now)
                self._members[index].foreign += 1
                push(self._serve(index, True, now), 4, (None, index, True, now, 0))
                push(now + rng.expovariate(system.drives[index].foreign_iops), 5, index)
        seconds = now - since
        for each in self._members:
            if each.outstanding:
                each.busy_s += now - each.busy_since
        fio, host, md = (min(1.0, server.busy_s / seconds) for server in servers)
        return SimulatedRun(seconds, done - ramp, latencies, self._members, md, host, fio, path.busy_s / seconds)

    def _phases(self, lane: int | None) -> list[list[tuple[int, bool]]]:
        """Return the member I/Os of one random host I/O, phase by phase."""
        is_read = self._rng.random() < self.read_fraction
        if lane is not None:
            return [[(lane, is_read)]]
        geometry, facts = self.geometry, FACTS[self.geometry.level]
        width = geometry.width
        gone = frozenset(range(width - geometry.missing, width))
        if facts.parity:
            first, target = self._rng.randrange(width), 0
            parity = frozenset((first + number) % width for number in range(facts.parity))
            target = self._rng.choice([each for each in range(width) if each not in parity])
            if is_read:
                return [[(each, True) for each in read_for_read(target, width, gone)]]
            before = read_for_write(target, width, parity, gone)
            after = (parity | {target}) - gone
            return (
                [[(each, True) for each in before], [(each, False) for each in after]]
                if before
                else [[(each, False) for each in after]]
            )
        copies = self._copies(gone)
        if is_read:
            return [[(min(copies, key=lambda each: (self._members[each].outstanding, self._rng.random())), True)]]
        return [[(each, False) for each in copies]]

    def _copies(self, gone: frozenset[int]) -> list[int]:
        width = self.geometry.width
        if self.geometry.level is RaidLevel.RAID1:
            return [each for each in range(width) if each not in gone]
        if self.geometry.level is RaidLevel.RAID10:
            pair = self._rng.randrange(width // 2)
            return [each for each in (2 * pair, 2 * pair + 1) if each not in gone]
        return [self._rng.randrange(width)]

    def _serve(self, member: int, is_read: bool, at: float) -> float:
        drive, dies = self.system.drives[member], self._dies[member]
        die = self._rng.randrange(drive.dies)
        mean = drive.read_s * drive.slow_reads if is_read else drive.write_s * drive.slow_writes
        if self._members[member].outstanding >= drive.deep:
            mean *= drive.slow_deep
        shape = 1 / drive.variation**2
        dies[die] = max(dies[die], at) + mean * self._rng.gammavariate(shape, 1 / shape)
        if drive.stalled and self._rng.random() < drive.stalled:
            dies[die] += drive.stall_s
        return dies[die]

    def _arrive(self, member: int, now: float) -> None:
        found = self._members[member]
        if not found.outstanding:
            found.busy_since = now
        found.outstanding += 1

    def _complete(self, member: int, is_read: bool, now: float, begin: float) -> None:
        found = self._members[member]
        found.outstanding -= 1
        if not found.outstanding:
            found.busy_s += now - found.busy_since
        (found.read_latencies if is_read else found.write_latencies).append(now - begin)
        if is_read:
            found.reads += 1
            found.read_wait_s += now - begin
        else:
            found.writes += 1
            found.write_wait_s += now - begin

    def _reset(self, now: float) -> None:
        for found in self._members:
            found.reads = found.writes = found.foreign = 0
            found.read_wait_s = found.write_wait_s = found.busy_s = 0.0
            found.busy_since = now
            found.read_latencies.clear()
            found.write_latencies.clear()


def io_lane(io: HostIo, member: int, side: bool) -> int:
    """Return the drive that a completed I/O of drives side by side belongs to; the next one goes there, too."""
    return member if side else 0


def simulate(
    system: SimulatedSystem, geometry: Geometry, read_fraction: float, outstanding: int, ios: int = 4000, seed: int = 1
) -> SimulatedRun:
    """Simulate a closed loop; for drives side by side ``outstanding`` is that of each drive."""
    return Simulation(system, geometry, read_fraction, outstanding, seed).run(ios)


def even_drives(number: int, spread: float, seed: int, **model: float) -> tuple[SimulatedDrive, ...]:
    """Return drives whose speeds differ by a few per cent, as those of one production lot do."""
    rng = random.Random(seed)  # noqa: S311 (a simulation)
    drives: Sequence[SimulatedDrive] = [
        SimulatedDrive(f"SIM{index + 1:03}", slow_reads=factor, slow_writes=factor, **model)  # type: ignore[arg-type]
        for index, factor in enumerate(math.exp(rng.gauss(0, spread)) for _ in range(number))
    ]
    return tuple(drives)
