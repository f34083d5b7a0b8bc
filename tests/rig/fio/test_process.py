from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.builders import fio_documents, strategies
from support.fakes.scripted import CommandsOnly, completed
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.fio import engine_limits, process
from pytest_ssdqual.rig.fio.jobs import JobTarget, measurement
from pytest_ssdqual.rig.machine.machine import Completed, DeadlineExceeded, MachineLost, RigError, Tethered

JOB = measurement(Workload("randread", "4k", 1), [JobTarget("/dev/sdb", 1 << 30)], 1, 5)


@dataclass
class Machine(CommandsOnly):
    """One on which fio does what it is told to, and what was asked of it."""

    output: bytes | None = b"{}"
    late: bool = False
    lost: bool = False
    ended: bool = False
    asked: list[str] = field(default_factory=list)
    name: str = "here"
    paths: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], **how: Any) -> Completed:  # noqa: ANN401
        self.asked.append(argv[0])
        self.paths += [word for word in argv[4:5] or argv[-1:]]
        if self.lost:
            raise MachineLost("here is lost")
        new = (self.output or b"")[int(argv[5]) if len(argv) > 5 else 0 :]
        packed = b"" if self.output is None else gzip.compress(new)
        done = completed(argv, status=1 if self.output is None else 0)
        return Completed(done.argv, done.status, packed, b"", done.started, 0.0)

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT", announces: bool = False) -> Tethered:
        self.asked.append(f"fio until {first_signal}")
        self.paths.append(argv[1].removeprefix("--output="))
        return self

    def alive(self) -> bool:
        return not self.ended

    def rest(self, seconds: float) -> bool:
        return not self.ended

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


def test_process_is_awaited_and_its_output_fetched() -> None:
    machine = Machine()
    finished = process.run(machine, JOB, 100)
    assert list(finished.pieces()) == [b"{}"]
    assert finished.completed.status == 0
    assert machine.asked == ["fio until INT", "wait 215", "sh", "rm"]
    assert len(set(machine.paths)) == 1


@pytest.mark.parametrize(("status", "limits"), [(0, {}), (1, {"memlock": "64"}), (2, {"memlock": "64"}), (128, {})])
def test_limits_are_read_where_fio_reports_that_it_failed(status: int, limits: dict[str, str]) -> None:
    class Failing(Machine):
        def wait(self, deadline_s: float) -> Completed:
            return completed(["fio"], status=status, stderr="its last words\n")

        def run(self, argv: Sequence[str], **how: Any) -> Completed:  # noqa: ANN401
            return completed(argv, "memlock=64\n") if argv[2] == engine_limits.SCRIPT else super().run(argv, **how)

    finished = process.run(Failing(), JOB, 1)
    assert engine_limits.limits_in(finished.completed.errors.splitlines()) == (limits, ["its last words"])


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_prints_the_limits_of_this_machine(shell: str) -> None:
    limits, others = engine_limits.limits_in(run_script(shell, engine_limits.SCRIPT).splitlines())
    assert {"fs.aio-nr", "fs.aio-max-nr", "memlock"} <= limits.keys()
    assert others == []


@pytest.mark.parametrize("before", [b"", b"{1}\n"])
def test_rest_that_cannot_be_fetched_leaves_what_was_read(before: bytes) -> None:
    machine = Machine(output=before)
    with process.start(machine, JOB) as running:
        list(running.read_new())
        machine.output = None
        finished = running.wait(1)
    assert b"".join(finished.pieces()) == before


@pytest.mark.parametrize("lost", [False, True])
def test_process_that_does_not_end_in_time_leaves_nothing(lost: bool) -> None:
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


def test_output_read_while_fio_runs_is_not_read_again() -> None:
    machine = Machine(output=b"")
    with process.start(machine, JOB) as running:
        assert b"".join(running.read_new()) == b""
        machine.output = b"{1}\n{2"
        assert b"".join(running.read_new()) == b"{1}\n{2"
        assert b"".join(running.read_new()) == b""
        machine.output += b"}\n{3}\n"
        finished = running.end()
    assert b"".join(finished.pieces()) == b"{1}\n{2}\n{3}\n"
    assert len(set(machine.paths)) == 1


def test_what_arrives_damaged_or_endless_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for damaged in (b"{}", gzip.compress(b"{}" * 1000)[:-9], b"\x1f\x8b\x08" + bytes(50)):
        with pytest.raises(RigError, match="arrived damaged"):
            list(process.unpacked(damaged))
    monkeypatch.setattr(process, "UNPACKED_BYTES", 1 << 20)
    assert sum(map(len, process.unpacked(gzip.compress(bytes(1 << 20))))) == 1 << 20
    with pytest.raises(RigError, match="has more than"):
        list(process.unpacked(gzip.compress(bytes((1 << 20) + 1))))


@pytest.mark.parametrize("is_stalled", [True, False])
def test_a_watched_process_is_ended_when_none_of_its_ios_ends(
    monkeypatch: pytest.MonkeyPatch, is_stalled: bool
) -> None:
    """A device does not respond, and fio would be awaited for days. A slow one is awaited."""
    series = strategies.run([100] * 40, workload=Workload("randread", "4k", 1)).intervals
    documents = fio_documents.documents(series)
    clock, machine = [0.0], Machine(output=documents[0])

    def rest(seconds: float) -> bool:
        clock[0] += seconds
        now = int(clock[0] / process.STALLED_S * 1.5)
        machine.output = b"".join(documents[: 1 if is_stalled else 1 + now])
        machine.ended = clock[0] > 10 * process.STALLED_S
        return not machine.ended

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(machine, "rest", rest)
    if is_stalled:
        with pytest.raises(DeadlineExceeded, match="I/Os ended for"):
            process.run(machine, JOB, 1e6, is_watched=True)
        assert machine.asked[-2:] == ["cut", "rm"]
    else:
        finished = process.run(machine, JOB, 1e6, is_watched=True)
        assert b"".join(finished.pieces()) == machine.output


def test_real_scripts_read_what_is_new_and_free_its_memory(tmp_path: Path) -> None:
    """On a file that somebody writes at a position of his own, as fio does."""
    path = tmp_path / "fio.json"
    content = bytes(range(256)) * 400
    with path.open("wb", buffering=0) as file:
        machine = Shell()
        running = process.RunningProcess(machine, Machine(), str(path))
        file.write(content[:50_000])
        assert b"".join(running.read_new()) == content[:50_000]
        file.write(content[50_000:80_000])
        assert b"".join(running.read_new()) == content[50_000:80_000]
        file.write(content[80_000:])
        finished = running.end()
    assert b"".join(finished.pieces()) == content
    assert not path.exists()
    # The second time, what was read the first time is given back; whole pages, and what it takes to note that.
    assert machine.blocks[1] * 512 < 80_000 - 40_000


@dataclass
class Shell(CommandsOnly):
    """This computer, and how much of the file it has after each command."""

    blocks: list[int] = field(default_factory=list)
    name: str = "here"

    def run(self, argv: Sequence[str], **how: Any) -> Completed:  # noqa: ANN401
        done = subprocess.run(argv, capture_output=True, check=False, timeout=60)
        path = Path(argv[4] if argv[0] == "sh" else argv[2])
        self.blocks.append(path.stat().st_blocks if path.exists() else 0)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr, "", 0.0)


#: 270 MB of fio's documents, read as those of a fill are, with a quarter of a GB for all data of the process. Its first
#: argument is one document.
STREAMED = """
import gzip, io, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (1 << 28, 1 << 28))
from pytest_ssdqual.rig.fio import output, process
packed = io.BytesIO()
document = open(sys.argv[1], "rb").read()
with gzip.open(packed, "wb", compresslevel=1) as file:
    for _ in range(270_000_000 // len(document) + 1):
        file.write(document)
reader = output.read(process.FinishedProcess(None, packed.getvalue()).pieces(), output.MOST_DOCUMENTS)
print(reader.so_far().seconds)
"""


def test_large_output_is_never_held_whole(tmp_path: Path) -> None:
    latency = LatencyHistogram.from_bins({1 << bit: 1000 for bit in range(10, 30)})
    (document,) = fio_documents.documents(
        [Interval(0.0, 5.0, 20_000, 0, 20_000 * 4096, 0, latency, LatencyHistogram())]
    )
    # Text between documents is passed over faster than documents are read, and long lines faster than short ones.
    (tmp_path / "document").write_bytes(document + (b"fio: note:" + b" nothing" * 250 + b"\n") * 1000)
    argv = [sys.executable, "-c", STREAMED, str(tmp_path / "document")]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    )
    assert (done.stdout, done.returncode) == ("5.0\n", 0), done.stderr
