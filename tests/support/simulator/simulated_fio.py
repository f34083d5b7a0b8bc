"""What fio would have measured on drives that were never there: the law of the level, at 300 I/Os a second and drive.

As the lab's scale model: of any size and direction, at any depth that keeps the drive busy. From the purged state a
drive is twice as fast, until it was written once. No time passes.
"""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.result_records import RebuildRecord
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel, expected_iops
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.workload import Replay, Workload
from pytest_ssdqual.rig.fio.jobs import JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.machine.machine import Completed
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup
from support.builders import fio_documents
from support.fakes.scripted import completed
from support.simulator.pairs import pairs
from support.simulator.published_drives import PublishedDrives
from support.simulator.simulated_weakness import Weakness

IOPS = 300
#: Fewest dies of a drive, and the most that they are busy.
DIES, FULLY_BUSY = 16, 0.999
#: Share of the I/Os of a second, and their latency over the mean: the mean is 1, the p99 twice that.
LATENCIES = ((0.49, 0.6), (0.49, 1.36), (0.02, 2.0))
#: How a round differs from the mean; the signs of the five rounds of a window add up to zero.
SIGNS = (1.0, -1.0, 0.0, -1.0, 1.0)
#: Fresh over settled, and the user capacities written before the cliff.
FRESH, CLIFF = 2.0, 1.0
#: Seconds in which a drive writes its capacity, if that is what it is conditioned by.
CAPACITY_S = 3600.0
#: Share of what they do alone that reads do beside writes.
SHARED = 1 / 3
#: A longer one would look as if fio had been silent.
LONGEST_S = 2.5
#: What a rebuild leaves to the load, and how long it takes.
LEFT, REBUILD_S = 0.5, 270.0


@dataclass(frozen=True)
class Fio:
    """How the drives of one machine do; ``slow`` is the share of its speed that a drive has, by serial."""

    slow: Mapping[str, float]
    #: By how much a round differs from the mean, as a share of it.
    noise: float
    #: Of the run that is now made.
    number: int = 0
    #: IOPS that no array exceeds, whatever its drives can do.
    md_iops: float = math.inf
    #: Bytes per second that drives side by side transfer together at most.
    path_bytes_per_s: float = math.inf
    #: Serials of drives that never settle: each process leaves them twice as fast as it found them.
    restless: Sequence[str] = ()
    #: Factor of all speeds.
    pace: float = 1.0
    #: Called when fio has ended.
    ran: Callable[[Array, Sequence[Sequence[Interval]]], None] = lambda array, parts: None

    def process(self, array: Array, workload: Workload, window: ProcessWindow) -> UnderWay:
        """The process of a measurement for a fixed time, from its start on."""
        if workload.replay:
            return self.replaying(array, workload, workload.replay, window)
        curve = self._curve(array, workload, window)
        others_s = 0.0
        if bursts := workload.bursts(window.window_s):
            # fio reports the I/Os of all bursts, and the run time of the longest.
            curve = [(0.0, float(workload.burst_s), bursts)]
            others_s = float((bursts - 1) * (workload.burst_s + workload.idle_s))
        parts = self.parts(array, workload, curve)
        _, seconds, _ = curve[0]
        documents = fio_documents.documents(*parts)
        return UnderWay(documents, seconds, intervals=parts, ran=partial(self.ran, array), others_s=others_s)

    def replaying(self, array: Array, workload: Workload, replay: Replay, window: ProcessWindow) -> UnderWay:
        """The process of a replay: each target does the trace's I/Os, at its rate or at the most that it can do.

        Beyond that I/Os begin late, and their latency is that of a busy drive.
        """
        most = [part[0].ios for part in self.parts(array, workload, [(0.0, 1.0, 1.0)])]
        due = replay.ios / replay.due_s
        rates = [min(due, rate) for rate in most]
        end_s = min(window.window_s, max(replay.ios / rate for rate in rates))
        factor = 1 + self.noise * SIGNS[self.number % len(SIGNS)]
        parts = [
            tuple(
                replayed(workload, float(at), min(1.0, end_s - at), rate, replay.ios, factor * 1e9 / limit)
                for at in range(math.ceil(end_s))
            )
            for rate, limit in zip(rates, most, strict=True)
        ]
        return UnderWay(fio_documents.documents(*parts), 1.0, intervals=parts, ran=partial(self.ran, array))

    def parts(
        self, array: Array, workload: Workload, curve: Sequence[tuple[float, float, float]]
    ) -> list[tuple[Interval, ...]]:
        """What each target did; ``curve`` has time, length and share of the mean rate of each interval."""
        weak = Weakness.of_environment().share(workload, self.number)
        weak *= share_of_settings(array.geometry)
        speeds = [self.pace * weak * self.slow.get(drive.serial or "", 1.0) for drive in array.members]
        geometry = array.geometry
        alone = [Geometry(geometry.level, 1)] * len(speeds) if geometry.is_side_by_side else [geometry]
        rates = [law(each, workload) * speed for each, speed in zip(alone, speeds, strict=False)]
        carried = self.path_bytes_per_s / (sum(rates) * workload.block_bytes)
        if geometry.is_side_by_side and carried < 1:
            rates = [rate * carried for rate in rates]
        if workload.aggressor:
            return [
                tuple(
                    beside(at, seconds, workload, each, drive.serial or "", speed * part) for at, seconds, part in curve
                )
                for each, drive, speed in zip(alone, array.members, speeds, strict=False)
            ]
        end_s = sum(seconds for _, seconds, _ in curve)
        growth = [1 / end_s if drive.serial in self.restless else 0.0 for drive in array.members]
        outstanding = [float(workload.outstanding(each.width)) for each in alone]
        if not geometry.is_side_by_side:  # the slowest member sets the pace of all
            rates, growth = [min(self.md_iops, rates[0] / speeds[0] * min(speeds))], [0.0]
        if workload.rate_iops:
            asked = [workload.asked_iops(each.width) for each in alone]
            waiting = [at_rate(workload, *each) for each in zip(asked, rates, outstanding, strict=False)]
            rates, outstanding = list(map(min, asked, rates)), waiting
            # A rate that is kept does not scatter with the drive's speed.
            curve = [(at, seconds, 1.0) for at, seconds, _ in curve]
        return [
            tuple(
                interval(at, seconds, workload, waiting, rate * share * (1 + at * more)) for at, seconds, share in curve
            )
            for waiting, rate, more in zip(outstanding, rates, growth, strict=False)
        ]

    def _curve(self, array: Array, workload: Workload, window: ProcessWindow) -> list[tuple[float, float, float]]:
        """The curve of a process that ends by time, or by volume: conditioning at its rate, saturation with a cliff."""
        volume = window.volume_bytes
        if volume is None or volume > array.size_bytes:
            return self._saturating(array, workload, window) if volume else self._even(window)
        alone = array.geometry.is_side_by_side
        target = Geometry(array.geometry.level, 1) if alone else array.geometry
        fastest = max(self.slow.get(drive.serial or "", 1.0) for drive in array.members)
        bytes_per_s = self.pace * law(target, workload) * fastest * workload.block_bytes * len(array.targets)
        return self._even(replace(window, window_s=max(1.0, min(window.window_s, volume / bytes_per_s))))

    def _even(self, window: ProcessWindow) -> list[tuple[float, float, float]]:
        """A curve in which a round differs a little from the next."""
        whole = window.ramp_s + window.window_s
        seconds = max(1.0, min(whole / 200, LONGEST_S if window.rounds < 6 else whole / 200))
        if window.every_s > 1:
            seconds = min(float(window.every_s), whole)
        times = [number * seconds for number in range(math.ceil(round(whole / seconds, 6)))]
        first = self.number if window.rounds == 1 else 0

        def sign(at: float) -> float:
            return SIGNS[(first + int((at - window.ramp_s) / window.window_s * window.rounds)) % len(SIGNS)]

        return [(at, seconds, 1 + self.noise * sign(at)) for at in times]

    def _saturating(self, array: Array, workload: Workload, window: ProcessWindow) -> list[tuple[float, float, float]]:
        """The same for a curve that has written its volume when the time is over, whatever a drive can do."""
        capacity = array.size_bytes
        volume = (window.volume_bytes or 0) / capacity
        settled = (CLIFF / FRESH + volume - CLIFF) * capacity / window.window_s
        share = settled / (law(array.geometry, workload) * workload.block_bytes * (1 - workload.read_fraction))
        cliff_s = CLIFF * capacity / (FRESH * settled)
        count = max(1, round(window.window_s / window.every_s))
        return [
            (
                number * window.every_s,
                float(window.every_s),
                share * (FRESH if number * window.every_s < cliff_s else 1.0) * (1 + self.noise * SIGNS[number % 5]),
            )
            for number in range(count)
        ]


@dataclass
class UnderWay:
    """A fio process that is looked at while it runs; time passes when somebody waits, and only then.

    It dies after ``dies_s``, if that comes before its end.
    """

    documents: list[bytes]
    report_s: float
    dies_s: float = math.inf
    last_words: str = "fio: pid=77, got signal=9"
    #: What it says although it does not die.
    said: str = ""
    #: What each document adds, of each target; and what is called with those that were written.
    intervals: Sequence[Sequence[Interval]] = ()
    ran: Callable[[Sequence[Sequence[Interval]]], None] = lambda parts: None
    #: Before the burst whose run time is reported: the other bursts and all pauses.
    others_s: float = 0.0
    now_s: float = 0.0
    ended: bool = False
    #: Its output, when it has ended.
    output: bytes = b""

    @property
    def lasts_s(self) -> float:
        return min(len(self.documents) * self.report_s, self.dies_s)

    def is_alive(self) -> bool:
        return not self.ended and self.now_s < self.lasts_s

    def rest(self, seconds: float) -> bool:
        self.now_s += seconds
        return self.is_alive()

    def written(self) -> bytes:
        """Up to now, and the beginning of the document that comes next."""
        if self.ended:
            return self.output
        begun = self.documents[self._count][:400] if self.is_alive() else b""
        return b"".join(self.documents[: self._count]) + begun

    def wait(self, seconds: float) -> FinishedProcess:
        self.now_s = max(self.now_s, self.lasts_s)
        return self._finished(self.last_words if self._died else self.said)

    def end(self) -> FinishedProcess:
        """It finishes the document that it is writing, and adds its last one."""
        return self._finished("fio: terminating on signal 2" if self.is_alive() else "")

    @property
    def _died(self) -> bool:
        return self.dies_s < len(self.documents) * self.report_s and self.now_s >= self.dies_s

    @property
    def _count(self) -> int:
        return min(int(min(self.now_s, self.lasts_s) / self.report_s + 1e-6), len(self.documents))

    def _finished(self, said: str) -> FinishedProcess:
        count = self._count + self.is_alive()
        written = self.documents[:count]
        final = fio_documents.ended(written[-1]) if written and not self._died else b""
        data = self.output = b"".join([*written, final])
        self.ran([part[:count] for part in self.intervals])
        self.ended = True
        done = replace(completed(["fio"], stderr=said), elapsed_s=self.others_s + self.now_s)
        return FinishedProcess(done, gzip.compress(data, mtime=0))


def filling(array: Array, fill: Fill) -> UnderWay:
    """The process that fills an array, or drives side by side: one report, at its end."""
    seconds, transfer = 10.0, parse_size(fill.bs)
    written = [fill.passes * array_lifecycle.filled_part(target, fill).size_bytes for target in array.targets]
    parts = [
        [Interval(0.0, seconds, 0, ios, 0, size, histogram(0, 0.0), histogram(ios, 1e6))]
        for size in written
        for ios in (-(-size // transfer),)
    ]
    return UnderWay(fio_documents.documents(*parts), seconds, intervals=parts)


#: Reports of a process that compares, and those in which a slow drive reads a tenth of the usual.
REPORTS, SLOW_REPORTS = 160, range(60, 100)


def reading(array: Array, fill: Fill, wrong: Mapping[str, str]) -> UnderWay:
    """The process that compares drives side by side; those with these serial numbers are wrong in their middle.

    Or slow in a part, if that is what is wrong.
    """
    seconds, transfer = 10.0, parse_size(fill.bs)
    said, parts = [], []
    reports = REPORTS if {"slow", "paused"} & set(wrong.values()) else 2
    for drive, target in zip(array.members, array.targets, strict=True):
        size = target.size_bytes
        kind = wrong.get(drive.serial or "", "")
        if kind in ("slow", "paused"):
            parts.append(_with_a_slow_part(size, transfer, seconds))
            continue
        if kind:
            size = size // 2 // transfer * transfer
            at = target.begin_bytes + size
            place = f"requested block: offset={at}, length={transfer}, flags=8"
            said.append(f"pattern: verify failed at file {target.path} offset {at}, length 16777216 ({place})")
        shares = [size * (number + 1) // reports - size * number // reports for number in range(reports)]
        parts.append([_read(number * seconds, seconds, share, transfer) for number, share in enumerate(shares)])
    return UnderWay(fio_documents.documents(*parts), seconds, intervals=parts, said="\n".join(said))


def _with_a_slow_part(size: int, transfer: int, seconds: float) -> list[Interval]:
    weights = [0.1 if number in SLOW_REPORTS else 1.0 for number in range(REPORTS)]
    ends = [round(size * sum(weights[: number + 1]) / sum(weights)) for number in range(REPORTS)]
    shares = [end - begin for begin, end in pairwise([0, *ends])]
    return [_read(number * seconds, seconds, share, transfer) for number, share in enumerate(shares)]


def reading_a_part(target: JobTarget, fill: Fill, *, is_slow: bool) -> UnderWay:
    """The process that reads one of 64 parts of a drive again, as fast as the others were, or at a tenth."""
    transfer = parse_size(fill.bs)
    size = target.size_bytes // 64 // transfer * transfer
    seconds = 250.0 if is_slow else 25.0
    part = [_read(0.0, seconds, size, transfer)]
    return UnderWay(fio_documents.documents(part), seconds, intervals=[part])


def _read(start_s: float, seconds: float, size: int, transfer: int) -> Interval:
    ios = -(-size // transfer)
    return Interval(start_s, seconds, ios, 0, size, 0, histogram(ios, 1e6), histogram(0, 0.0))


@dataclass
class FioProcess:
    """A ``Tethered`` of the simulated machine, whose output is asked for as a file."""

    argv: tuple[str, ...]
    under_way: UnderWay

    def wait(self, deadline_s: float) -> Completed:
        return replace(self.under_way.wait(0).completed, argv=self.argv)

    def alive(self) -> bool:
        return self.under_way.is_alive()

    def rest(self, seconds: float) -> bool:
        return self.under_way.rest(seconds)

    def read_line(self, deadline_s: float) -> str:
        raise NotImplementedError("fio announces nothing")

    def cut(self, deadline_s: float = 30.0) -> Completed:
        return replace(self.under_way.end().completed, argv=self.argv)


def share_of_settings(geometry: Geometry) -> float:
    """Factor of an array's rate by its settings of md: ``SIMULATED_SETTINGS="s256=0.6,t8=1.2"``."""
    return float(pairs("SIMULATED_SETTINGS").get(str(geometry.tuning).removeprefix("-"), 1))


def law(geometry: Geometry, workload: Workload) -> float:
    """I/Os per second; fewer if less is outstanding than there are members."""
    if published := PublishedDrives.of_environment():
        return published.rate(geometry, workload)
    failed = Geometry(geometry.level, geometry.width, geometry.missing)
    left = LEFT if geometry.rebuilding else 1.0
    busy = expected_iops(failed, workload.read_fraction, IOPS, IOPS)
    return left * min(busy, workload.outstanding(geometry.width) * IOPS)


def pace(array: Array, workload: Workload) -> float:
    """Factor with which a drive of any size writes its capacity in ``CAPACITY_S``."""
    size_bytes = min(target.size_bytes for target in array.targets)
    published = PublishedDrives.of_environment()
    iops = published.rate(Geometry(RaidLevel.DRIVE, 1), workload) if published else IOPS
    return size_bytes / CAPACITY_S / (iops * workload.block_bytes)


def at_rate(workload: Workload, asked: float, most: float, deepest: float) -> float:
    """I/Os outstanding on average in a drive of many dies that can do ``most``: they wait when all dies are busy.

    ``SIMULATED_KNEE`` is the share of its maximum at which a drive is as busy as others at all of theirs.
    """
    if asked >= most:
        return deepest
    published = PublishedDrives.of_environment()
    empty_s = published.latency_s[not workload.reads] if published else 1 / IOPS
    busy = min(asked / most / float(os.environ.get("SIMULATED_KNEE", "1")), FULLY_BUSY)
    dies = max(DIES, most * empty_s)  # as many as answer at once at the drive's maximum
    return min(deepest, float(asked * empty_s * (1 + busy**dies / (1 - busy))))


def interval(start_s: float, seconds: float, workload: Workload, outstanding: float, iops: float) -> Interval:
    reads = round(iops * seconds * workload.read_fraction)
    writes = round(iops * seconds) - reads
    mean_ns = outstanding / iops * 1e9
    size = workload.block_bytes
    return Interval(
        start_s, seconds, reads, writes, round(reads * size), round(writes * size),
        histogram(reads, mean_ns), histogram(writes, mean_ns),
    )  # fmt: skip


def replayed(workload: Workload, start_s: float, seconds: float, rate: float, total: int, mean_ns: float) -> Interval:
    """A second of a replay of ``total`` I/Os at a rate; nothing after its end."""
    begun, ended = (min(total, round(rate * at)) for at in (start_s, start_s + seconds))
    ios = ended - begun
    reads = round(ios * workload.read_fraction)
    size = workload.block_bytes
    return Interval(
        start_s, seconds, reads, ios - reads, round(reads * size), round((ios - reads) * size),
        histogram(reads, mean_ns), histogram(ios - reads, mean_ns),
    )  # fmt: skip


def beside(
    start_s: float, seconds: float, workload: Workload, geometry: Geometry, serial: str, speed: float
) -> Interval:
    """Reads beside writes: on a sound drive they do a third of what they do alone, and the writes the rest.

    ``SIMULATED_STARVED`` is the share of that third, by serial: ``SSDQ0002=0.05``.
    """
    starved = float(pairs("SIMULATED_STARVED").get(serial, 1))
    shares = SHARED * starved, 1 - SHARED
    reads, writes = (
        interval(start_s, seconds, each, each.outstanding(geometry.width), law(geometry, each) * speed * share)
        for each, share in zip((replace(workload, beside=""), workload.writer), shares, strict=True)
    )
    return replace(
        reads, write_ios=writes.write_ios, write_bytes=writes.write_bytes, write_latency=writes.write_latency
    )


def histogram(ios: int, mean_ns: float) -> LatencyHistogram:
    counts = [round(ios * share) for share, _ in LATENCIES]
    counts[0] += ios - sum(counts)
    return LatencyHistogram.from_bins(
        {round(mean_ns * factor): count for (_, factor), count in zip(LATENCIES, counts, strict=True) if count}
    )


def fail(setup: Setup, array: Array, missing: int) -> Array:
    """Instead of ``members.fail_members``."""
    geometry = Geometry(array.geometry.level, array.geometry.width, missing)
    setup.logbook.note("members_failed", geometry=str(geometry), uuid=array.uuid)
    return replace(array, geometry=geometry)


def rebuild(run: Callable[..., Run]) -> Callable[[Setup, Array, Workload], Rebuild]:
    """Instead of ``rebuild.rebuild``."""

    def rebuilt(setup: Setup, array: Array, workload: Workload) -> Rebuild:
        failed = array.geometry
        geometry = Geometry(failed.level, failed.width, failed.missing, rebuilding=True)
        rule = setup.protocol
        window = fixed_time.ProcessWindow(rule.measure.ramp_s, REBUILD_S - rule.measure.ramp_s, rule.steady.window)
        foreground = Measured((run(setup, replace(array, geometry=geometry), workload, "rebuild", window).condensed(),))
        size = array.members[0].size_bytes
        found = Rebuild(geometry, REBUILD_S, size, foreground, mismatches=0)
        record = RebuildRecord(
            **found.summary(), asked=workload, protocol=rule.name, acceptance=rule.acceptance, members=(), limits={},
            raw=foreground.runs[0].raw,
        )  # fmt: skip
        setup.logbook.note("rebuild", **shallow(record))
        return found

    return rebuilt
