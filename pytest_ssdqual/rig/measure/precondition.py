"""Conditioning: writes in steps, until each drive has settled and the protocol's volume was written.

By a protocol with ``drift_percent`` the volume is the clock: see ``stats.drift``. By the published
ones it is rounds of equal time, and the SNIA rule over them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from statistics import fmean

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.stats import steady_state
from pytest_ssdqual.qual.stats.drift import (
    RANDOM_STEP,
    SEQUENTIAL_STEP,
    SKEWED_CAPACITIES,
    Settling,
    WrittenSeries,
)
from pytest_ssdqual.qual.stats.steady_state import SteadyState
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow, least_steady
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

#: Depth of conditioning writes: the deepest of the Intel S3500 RAID paper (seeds A-P5).
CONDITIONING_DEPTH = 8
#: Smallest conditioning write. Flash maps pages of 4 KiB, so smaller writes bring a drive into no other state; but one
#: capacity of 512-byte writes takes 21 hours on a drive of 7.68 TB at 200,000 IOPS, and exceeds limits on larger ones.
SMALLEST_CONDITIONING_BYTES = 4096
#: Shortest step, seconds: fio's start and the checks around it take 3 s.
SHORTEST_STEP_S = 10.0
#: fio's reports in a capacity at a usual rate: six of each stretch of the drift test, and 24 drives
#: side by side have 3,000 of 33 kB in a step that is five times as slow.
REPORTS, USUAL_BYTES_PER_S = 120, 1e9


def until_steady(setup: Setup, array: Array, workload: Workload) -> Conditioned | None:
    """Write in steps until steady, with the writes of the workload's access pattern.

    None if the protocol has no such step. ``InvalidMeasurement`` if the array does not settle within the limit. Of
    drives side by side, those that do not are left out of this pattern.
    """
    protocol = setup.protocol
    if not protocol.precondition.step_s:
        return None
    writes = conditioning(workload, setup.unit_bytes)
    subject = array.geometry, workload.pattern
    setup.failures.undecided.pop(subject, None)
    rule = ByVolume if protocol.precondition.drift_percent else InRounds
    course: ByVolume | InRounds = rule(setup, array, writes)
    _write(setup, array, writes, course)
    unsettled = course.unsettled()
    rates = course.rates() if array.geometry.is_side_by_side else {}
    setup.note(
        "conditioned",
        array.geometry,
        workload=str(writes),
        pattern=workload.pattern,
        seconds=course.seconds,
        steady=asdict(course.state()),
        rates=rates,
        raw=course.raws,
        **course.facts(),
    )
    about = f"did not settle within {course.seconds:g} s of {writes}"
    if len(unsettled) == len(array.targets):
        each = "; ".join(f"{name}: {why}" if name else why for name, why in unsettled.items())
        raise InvalidMeasurement(f"{array.geometry} {about}: {each}")
    if unsettled:
        reasons = {name: f"{about}: {why}" for name, why in unsettled.items()}
        setup.failures.leave_out(array.geometry, subject, reasons, setup.logbook)
    return Conditioned(writes, course.state(without=unsettled), rates)


def _write(setup: Setup, array: Array, writes: Workload, course: ByVolume | InRounds) -> None:
    """Write in processes until the rule of ``course`` is satisfied, or until the protocol's limit."""
    while not course.is_over():
        window = course.window()
        usual_s = (window.volume_bytes or 0) / len(array.targets) / USUAL_BYTES_PER_S
        expected_s = min(window.window_s, usual_s or window.window_s)
        setup.progress(f"{array.geometry}: precondition with {writes}", expected_s)
        live_stats.expect(setup.live, course.position())
        run = partial(fixed_time.run, setup, array, writes, "precondition", window)
        course.add(fixed_time.prepared(setup, array, run))


def conditioning(workload: Workload, unit_bytes: int | None = None) -> Workload:
    """The writes that bring an array into the state in which ``workload`` is to be measured.

    They have the access pattern and the size of its writes, for a mix of sizes the most frequent one, but never less
    than 4 KiB. Random ones are no less than ``unit_bytes``, which the drives map at a time: a smaller write rewrites
    such a unit just the same, in more time for each byte.

    Skewed writes on bare drives have other favourite blocks than those on an array of them: each
    drive gets a share of the array's. Their number and their weight are about the same.
    """
    workload = workload.writer
    most_frequent, _ = max(workload.sizes, key=lambda size_and_share: size_and_share[1])
    size = max(most_frequent, SMALLEST_CONDITIONING_BYTES, (unit_bytes or 0) if workload.is_random else 0)
    writes = Workload("randwrite" if workload.is_random else "write", str(size), CONDITIONING_DEPTH)
    if not workload.is_skewed:
        return writes
    return replace(writes, zipf=workload.zipf, zones=workload.zones, region_percent=workload.region_percent)


def least_capacities(demanded: float, writes: Workload) -> float:
    """Return the capacities that are written before a drive may be found settled; ``demanded`` by the protocol.

    Uniform writes to a part of the range, the rest of which is purged, settle as those to a smaller drive.
    """
    return max(demanded, SKEWED_CAPACITIES) if writes.zipf or writes.zones else demanded


@dataclass(slots=True)
class ByVolume:
    """Conditioning by volume, each drive by its own bytes.

    They are fio's counts of completed writes. These are direct (O_DIRECT), whole blocks, to a drive
    without a file system or md, so the drive received as many bytes: the kernel keeps none back and
    adds none. What a process wrote that was disturbed is not counted, so it can only be more.
    """

    setup: Setup
    array: Array
    writes: Workload
    raws: list[str] = field(default_factory=list)
    seconds: float = 0.0
    #: By the names of the targets.
    targets: dict[str, Settling] = field(init=False)
    limit_s: float = field(init=False)

    def __post_init__(self) -> None:
        protocol = self.setup.protocol
        least = least_capacities(protocol.precondition.capacities, self.writes)
        limit = protocol.precondition.limit_capacities
        most = max(limit, least) if limit else math.inf
        step = RANDOM_STEP if self.writes.is_random else SEQUENTIAL_STEP
        self.limit_s = protocol.precondition.limit_of(max(target.size_bytes for target in self.array.targets))
        self.targets = {
            name: Settling(WrittenSeries(target.size_bytes), least, most, protocol.precondition.drift_percent, step)
            for name, target in zip(_names(self.array), self.array.targets, strict=True)
        }

    def unsettled(self) -> Mapping[str, str]:
        """Return why targets have not settled, by serial number; an array's is empty."""
        return {name: target.describe() for name, target in self.targets.items() if not target.is_settled}

    def rates(self) -> Mapping[str, float]:
        """Return the settled IOPS of each target."""
        return {name: target.rates(1)[0] / self.writes.block_bytes for name, target in self.targets.items()}

    def state(self, without: Collection[str] = ()) -> SteadyState:
        """Return the SNIA rule's figures over the last half capacity of the least steady target, without some.

        Whether it is reached, the drift test says.
        """
        rule, block = self.setup.protocol.steady, self.writes.block_bytes
        counted = [target for name, target in self.targets.items() if name not in without]
        state = least_steady([[rate / block for rate in target.rates(rule.window)] for target in counted], rule)
        return replace(state, reached=all(target.is_settled for target in counted))

    def facts(self) -> Mapping[str, object]:
        """Return what else is recorded."""
        every = self.targets.values()
        return {
            "capacities": self._capacities,
            "bytes_written": sum(int(each.series.written_bytes) for each in every),
            "least_bytes": sum(int(each.least * each.series.capacity_bytes) for each in every),
            "round_iops": self._rounds(),
            "drift": {name: asdict(each.drift) for name, each in self.targets.items() if each.drift},
        }

    @property
    def _capacities(self) -> float:
        return min(each.series.capacities for each in self.targets.values())

    def _rounds(self) -> list[list[float]]:
        """Return the IOPS of each target over equal parts of its volume: the last ones are those of ``state``."""
        parts, block = 2 * self.setup.protocol.steady.window, self.writes.block_bytes
        count = int(self._capacities * parts)
        series = [each.series for each in self.targets.values() if count]
        return [[rate / block for rate in each.rates(count / parts, count)] for each in series]

    def add(self, run: Run) -> None:
        """Take the writes of a process."""
        for target, member in zip(self.targets.values(), run.of_members(), strict=True):
            target.add(member.intervals)
        self.raws.append(run.raw)
        self.seconds += run.window_s
        unsettled = self.unsettled()
        sentence = next((f"not settled: {why}" for why in unsettled.values()), "settled")
        live_stats.send_steadiness(self.setup.live, not unsettled, sentence, sentence)

    def is_over(self) -> bool:
        """Return whether all targets have settled, or the limit is reached."""
        return self.seconds >= self.limit_s or all(each.is_over for each in self.targets.values())

    def window(self) -> ProcessWindow:
        """Return the next process. The first one ends by volume, since no rate is known; the fastest drive ends it."""
        every = list(self.targets.values())
        smallest = min(each.series.capacity_bytes for each in every)
        every_s = max(1, round(smallest / (REPORTS * USUAL_BYTES_PER_S)))
        longest_s = self.setup.protocol.precondition.step_s
        if not self.writes.is_random:
            longest_s = max(longest_s, self.limit_s - self.seconds)
        if not self.raws:
            volume = int(every[0].step * smallest) * len(every)
            return ProcessWindow(0.0, longest_s, 1, every_s, volume)
        needed_s = max(each.needed_s() for each in every)
        seconds = min(longest_s, max(SHORTEST_STEP_S, needed_s))
        return ProcessWindow(0.0, math.ceil(seconds), 1, every_s)

    def position(self) -> Course:
        """Return the eighths of the least volume that were written."""
        written = self._capacities
        least = max(each.least for each in self.targets.values())
        return Course(int(8 * written), math.ceil(8 * max(least, written + RANDOM_STEP)))


@dataclass(slots=True)
class InRounds:
    """Conditioning in rounds of equal time, until the SNIA rule holds over the last of them."""

    setup: Setup
    array: Array
    writes: Workload
    raws: list[str] = field(default_factory=list)
    seconds: float = 0.0
    #: IOPS of each round, for each target.
    rounds: list[list[float]] = field(init=False)
    #: IOPS of all targets together, one value a report.
    _together: list[float] = field(default_factory=list)
    _report_s: float = 1.0
    _bytes_written: int = 0

    def __post_init__(self) -> None:
        self.rounds = [[] for _ in self.array.targets]

    def window(self) -> ProcessWindow:
        """Return the next process, of whole rounds."""
        step_s, round_s = self.setup.protocol.precondition.step_s, self.setup.protocol.round_s
        # Two hours of conditioning do not need a histogram of every second; a few points per round suffice.
        return ProcessWindow(0.0, step_s, max(1, round(step_s / round_s)), max(1, int(round_s / 12)))

    def unsettled(self) -> Mapping[str, str]:
        """See ``ByVolume.unsettled``."""
        found = zip(_names(self.array), self._states(), strict=True)
        unsettled = {name: state.describe() for name, state in found if not state.reached}
        if "" in unsettled:
            unsettled[""] += steady_state.repeats(self._together, self._report_s)
        return unsettled or self._too_little()

    def rates(self) -> Mapping[str, float]:
        """See ``ByVolume.rates``."""
        window = self.setup.protocol.steady.window
        rates = (fmean(rounds[-window:]) for rounds in self.rounds)
        return dict(zip(_names(self.array), rates, strict=True))

    def state(self, without: Collection[str] = ()) -> SteadyState:
        """Return the state of the least steady target, without some."""
        found = zip(_names(self.array), self._states(), strict=True)
        return steady_state.least([state for name, state in found if name not in without])

    def facts(self) -> Mapping[str, object]:
        """See ``ByVolume.facts``."""
        return {
            "capacities": self._bytes_written / self.array.size_bytes,
            "bytes_written": self._bytes_written,
            "least_bytes": self._least_bytes,
            "round_iops": self.rounds[0] if len(self.rounds) == 1 else self.rounds,
        }

    @property
    def _least_bytes(self) -> int:
        return int(self.setup.protocol.precondition.capacities * self.array.size_bytes)

    def _states(self) -> Sequence[SteadyState]:
        rule = self.setup.protocol.steady
        return [steady_state.judge(rounds[-rule.window :], rule) for rounds in self.rounds]

    def _too_little(self) -> Mapping[str, str]:
        if self._bytes_written >= self._least_bytes:
            return {}
        written, size = self._bytes_written / self.array.size_bytes, self.array.size_bytes
        why = f"only {written:.2f} capacities were written, the protocol requires {self._least_bytes / size:g}"
        return dict.fromkeys(_names(self.array), f"{why}: raise precondition.limit")

    def is_over(self) -> bool:
        """See ``ByVolume.is_over``."""
        protocol = self.setup.protocol
        if len(self.rounds[0]) < protocol.steady.window:
            return False  # steps shorter than the window: the rule needs one whole window, whatever the limit
        state = self.state()
        live_stats.send_state(self.setup.live, state)
        is_steady = state.reached and self._bytes_written >= self._least_bytes
        return is_steady or self.seconds >= protocol.precondition.limit_s

    def position(self) -> Course:
        """Return the rounds until the limit; a step that exceeds the limit extends it."""
        before, window = len(self.rounds[0]), self.window()
        steps = max(1, math.ceil(self.setup.protocol.precondition.limit_s / window.window_s))
        most = max(steps * window.rounds, before + window.rounds)
        return Course(before, most, window.window_s / window.rounds)

    def add(self, run: Run) -> None:
        """See ``ByVolume.add``."""
        for rounds, member in zip(self.rounds, run.of_members(), strict=True):
            rounds += member.round_iops()
        values, self._report_s = steady_state.series(run)
        self._together += values
        self.raws.append(run.raw)
        self.seconds += run.window_s
        self._bytes_written += run.bytes_written


def _names(array: Array) -> Sequence[str]:
    """Return the names of the targets: serial numbers of drives side by side; an array's is empty."""
    return [drive.name for drive in array.members] if array.geometry.is_side_by_side else [""]
