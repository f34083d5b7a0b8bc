"""Rounds of a workload set on one array, until the tracked figures are steady, and the stimuli that follow them.

The method of the SNIA test specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from pytest_ssdqual.qual.measured.result_records import LoopRecord
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.records import shallow
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.rounds import Round, Rounds, RoundsResult, Stimulus, settled, states
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DrivesUndecided
from pytest_ssdqual.rig.machine.machine import Disturbed
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import live_stats
from pytest_ssdqual.rig.observe.live_stats import Course

#: By so much the interval of reports exceeds a process that shall have none but its final one, seconds.
LAST_STATUS_S = 3600
#: Cells that a loop repeats because the rig disturbed them. A loop takes hours, which one other program must not cost.
MOST_LEFT_OUT = 3


def run(setup: Setup, array: Array, loop: Rounds) -> RoundsResult:
    """Run rounds of all workloads in order, one process each without pauses, until steady.

    At most as many rounds as the protocol allows; the result says whether the last of them were steady. A cell that the
    rig disturbed is repeated at once. ``RigError`` or a child of it: ``InvalidMeasurement`` if a cell is not valid
    otherwise, because then the rounds before and after it are not one experiment. The same of a stimulus; only a part
    of one with pauses is repeated, if something disturbed it (``Disturbed``).
    """
    rule = setup.protocol.steady
    # Fewer rounds than one window cannot be steady.
    running = _RunningLoop(setup, array, loop, max(setup.protocol.loop.max_rounds, rule.window))
    result = RoundsResult(array.geometry, loop, running.until_steady() if loop.tracked else (), rule)
    _require_no_odd_drive(result, array)
    if result.reached:
        result = replace(result, after=tuple(running.stimulus(each) for each in loop.after))
    rounds, after = (
        tuple(tuple(run.record() for run in runs) for runs in each) for each in (result.rounds, result.after)
    )
    record = LoopRecord(
        array.geometry, loop.name, loop, setup.protocol.name, setup.protocol.acceptance, rule, result.reached, rounds,
        after, tuple(map(str, result.recoveries())),
    )  # fmt: skip
    setup.logbook.note("loop", **shallow(record))
    return result


@dataclass(slots=True)
class _RunningLoop:
    setup: Setup
    array: Array
    loop: Rounds
    #: Most rounds.
    most: int
    #: Cells until now that the rig disturbed.
    left_out: int = 0

    def until_steady(self) -> tuple[Round, ...]:
        """Run rounds until all tracked figures are steady, or until the last one."""
        setup, loop, rule = self.setup, self.loop, self.setup.protocol.steady
        rounds: list[Round] = []
        while len(rounds) < self.most and not settled(loop, rounds, rule):
            rounds.append(self.round(len(rounds) + 1))
            found = states(loop, rounds, rule)
            setup.note(
                "loop_round",
                self.array.geometry,
                loop=loop.name,
                round=len(rounds),
                states=[asdict(state) for state in found],
            )
            if found:
                steady = sum(state.reached for state in found)
                sentence = f"{steady} of {len(found)} figures of {loop} are steady after {len(rounds)} rounds"
                verdict = "steady" if steady == len(found) else "not steady yet"
                brief = f"{verdict}: {steady} of {len(found)} figures"
                live_stats.send_steadiness(setup.live, steady == len(found), sentence, brief)
        return tuple(rounds)

    def round(self, number: int) -> Round:
        # The course of each cell contains the round; a step of another name would count as another measurement.
        self.setup.progress(f"{self.array.geometry}: {self.loop}", self.loop.cells * self.setup.protocol.loop.cell_s)
        runs = [self._cell(workload, cells, number) for workload, cells in self.loop.processes]
        return tuple(runs[-len(self.loop.workloads) :])

    def _cell(self, workload: Workload, cells: int, number: int) -> Run:
        """Return a valid cell of one round; what the rig disturbed is repeated."""
        while True:
            try:
                measured = self._process(workload, cells, number)
            except Disturbed as disturbed:
                if not self._leaves_out(workload, number, (str(disturbed),)):
                    raise
                continue
            if not (objections := checks.objections(measured)):
                return measured.condensed()
            others = set(objections).difference(checks.objections_in(checks.of_rig(measured)))
            if others or not self._leaves_out(workload, number, objections):
                where = f"{workload} on {self.array.geometry} in round {number} of {self.loop}"
                sentence = f"{where} is not valid: {'; '.join(objections)}"
                raise fixed_time.of_some_drives(sentence, fixed_time.faults_of_drives(measured), self.array)

    def stimulus(self, asked: Stimulus) -> tuple[Run, ...]:
        """Run a stimulus as one process, or as one for each part if it has pauses.

        Each burst is a job of fio, and fio has at most 4,096 jobs, so one process cannot have them all.
        """
        cell_s = self.setup.protocol.loop.cell_s
        length_s, processes = asked.cells * cell_s, asked.processes(cell_s)
        self.setup.progress(f"{self.array.geometry}: {self.loop}, {asked.workload}", length_s)
        each_s, rounds = length_s / processes, 1 if asked.workload.burst_s else asked.parts
        every_s = math.ceil(each_s) + LAST_STATUS_S if asked.workload.burst_s else max(1, int(each_s / rounds))
        window = fixed_time.ProcessWindow(0.0, each_s, rounds, every_s)
        found = []
        for number in range(1, processes + 1):
            live_stats.expect(self.setup.live, Course(number - 1, processes))
            once = partial(fixed_time.run, self.setup, self.array, asked.workload, f"{self.loop}-{number:02}", window)
            run = fixed_time.repeated(once) if asked.workload.burst_s else once()
            # A rate that changes is the result, so only the environment and the queue of a constant load are checked.
            own = () if asked.workload.burst_s else checks.of_part(run, every_s)
            about = f"{asked.workload} on {self.array.geometry} in {self.loop}"
            fixed_time.require_valid((*own, *checks.of_environment(run)), about, self.array)
            found.append(run.condensed())
        return tuple(found)

    def _leaves_out(self, workload: Workload, number: int, objections: Sequence[str]) -> bool:
        """Record a cell that is repeated; False if too many were."""
        if self.left_out >= MOST_LEFT_OUT:
            return False
        self.left_out += 1
        fixed_time.note_left_out(self.setup, self.array, workload, number, objections)
        return True

    def _process(self, workload: Workload, cells: int, number: int) -> Run:
        """Run one process, from its first I/O on: whole minutes count in the specification."""
        live_stats.expect(self.setup.live, Course(number - 1, self.most))
        window = fixed_time.ProcessWindow(0.0, cells * self.setup.protocol.loop.cell_s, 1)
        return fixed_time.run(self.setup, self.array, workload, f"{self.loop}-{number:02}", window)


def _require_no_odd_drive(result: RoundsResult, array: Array) -> None:
    """Raise ``DrivesUndecided`` if some of several drives side by side did not become steady, and the others did."""
    unsteady: dict[str, str] = {}
    if array.geometry.is_side_by_side and not result.reached:
        for each in result.determination():
            if not each["reached"]:
                unsteady[str(each["member"])] = f"{each['claim']} of {each['workload']} did not become steady"
    error = fixed_time.of_some_drives(repr(result).strip("<>"), unsteady, array)
    if isinstance(error, DrivesUndecided):
        raise error
