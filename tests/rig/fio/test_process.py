from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from scripted import completed

from pytest_ssdqual.qual.workload import Workload
from pytest_ssdqual.rig.fio import process
from pytest_ssdqual.rig.fio.jobfile import Target, measurement
from pytest_ssdqual.rig.machine import Completed, DeadlineExceeded, MachineLost, Tethered

JOB = measurement(Workload("randread", "4k", 1), [Target("/dev/sdb", 1 << 30)], 1, 5)


@dataclass
class Machine:
    """One on which fio does what it is told to, and what was asked of it."""

    output: bytes | None = b"{}"
    late: bool = False
    lost: bool = False
    asked: list[str] = field(default_factory=list)
    name: str = "here"
    paths: list[str] = field(default_factory=list)

    def run(
        self, argv: Sequence[str], *, deadline_s: float = 60.0, check: bool = True, stdin: bytes | None = None
    ) -> Completed:
        self.asked.append(argv[0])
        self.paths.append(argv[-1])
        if self.lost:
            raise MachineLost("here is lost")
        packed = b"" if self.output is None else gzip.compress(self.output)
        done = completed(argv, status=1 if self.output is None else 0)
        return Completed(done.argv, done.status, packed, b"", done.started, 0.0)

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT") -> Tethered:
        self.asked.append(f"fio, ended by {first_signal}")
        self.paths.append(argv[1].removeprefix("--output="))
        return self

    def alive(self) -> bool:
        return True

    def read_line(self, deadline_s: float) -> str:
        raise NotImplementedError

    def wait(self, deadline_s: float) -> Completed:
        self.asked.append(f"wait {deadline_s:g}")
        if self.late:
            raise DeadlineExceeded("fio did not end")
        return completed(["fio"])

    def cut(self, deadline_s: float = 30.0) -> Completed:
        self.asked.append("cut")
        return completed(["fio"], status=128)

    def close(self) -> None:
        """Nothing is open."""


def test_a_process_is_waited_for_longer_than_it_should_take_and_its_output_fetched() -> None:
    machine = Machine()
    finished = process.run(machine, JOB, 100)
    assert finished.output == b"{}"
    assert finished.completed.status == 0
    assert machine.asked == ["fio, ended by INT", "wait 215", "sh"]
    assert len(set(machine.paths)) == 1


def test_one_that_is_ended_leaves_its_output_too() -> None:
    machine = Machine()
    with process.start(machine, JOB) as running:
        assert running.is_alive()
        finished = running.end()
    assert (finished.completed.status, finished.output) == (128, b"{}")
    assert machine.asked == ["fio, ended by INT", "cut", "sh"]


def test_output_that_cannot_be_fetched_is_empty() -> None:
    assert process.run(Machine(output=None), JOB, 1).output == b""


@pytest.mark.parametrize("lost", [False, True])
def test_what_does_not_end_in_time_leaves_nothing_and_its_error_is_told(lost: bool) -> None:
    machine = Machine(late=True, lost=lost)
    with pytest.raises(DeadlineExceeded):
        process.run(machine, JOB, 1)
    assert machine.asked[-1] == "rm"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MachineLost])
def test_an_error_meanwhile_ends_it(error: type[BaseException]) -> None:
    machine = Machine(lost=error is MachineLost)

    def work() -> None:
        with process.start(machine, JOB):
            raise error

    with pytest.raises(error):
        work()
    assert machine.asked[-2:] == ["cut", "rm"]
