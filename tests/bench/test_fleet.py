"""The bench of a rack: its arithmetic, what it reads of processes, and a run of two bays in truth."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fleet as bench
import fleet_processes
import pytest
from fleet_processes import Cores, ObservedProcesses, ProcessCost
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

COST = ProcessCost(90, 80, 900, 10.0, 20.0, 1.5, 10, 0, "10 %, 20 %, 70 %")
ONE = bench.Rack(1, 1, 110.0, 100.0, None, 1.0, replace(COST, at_once=1), None, 0.0)
TEN = bench.Rack(10, 10, 120.0, 100.0, 0.5, 2.0, COST, 0.75, 123.4)
#: A process that ends when its standard input does, and has the words of execnet's among its arguments.
CHILD = "import sys; busy = sum(range(3_000_000)); sys.stdin.readline()"


def test_linear_is_one_bays_time_of_as_many_rounds() -> None:
    # (110 s × 10 bays) / (120 s × 10 workers).
    assert TEN.linear(ONE) == pytest.approx(1100 / 1200)
    # 100 bays by 34 workers: (110 × 100) / (360 × 34), where 100 / (34 × 3) would be the best.
    hundred = replace(TEN, bays=100, workers=34, wall_s=360.0)
    assert hundred.rounds == 3
    assert hundred.linear(ONE) == pytest.approx(110 * 100 / (360 * 34) / (100 / (34 * 3)))
    assert ONE.linear(ONE) == 1


@given(st.integers(1, 200), st.integers(1, 50), st.floats(0.1, 60), st.floats(0, 600))
def test_whoever_waits_long_enough_reaches_what_is_aimed_at(bays: int, most: int, rest_s: float, more_s: float) -> None:
    one = replace(ONE, wall_s=100 + rest_s)
    rack = replace(TEN, bays=bays, workers=bench.workers_for(bays, most))
    rack = replace(rack, wall_s=rack.rounds * (100 + rest_s) + more_s)
    longer_s = rack.enough_s(one) - 100
    waited = replace(rack, wall_s=rack.wall_s + rack.rounds * longer_s)
    found = waited.linear(replace(one, wall_s=one.wall_s + longer_s))
    assert found == pytest.approx(bench.AIM) if rack.enough_s(one) else found >= bench.AIM


@given(st.integers(1, 300), st.integers(1, 60))
def test_no_worker_is_started_that_saves_no_round(bays: int, most: int) -> None:
    workers = bench.workers_for(bays, most)
    rounds = -(-bays // workers)
    assert 1 <= workers <= min(bays, most)
    assert rounds == -(-bays // most)
    assert workers == 1 or -(-bays // (workers - 1)) > rounds


def test_the_tables_have_a_row_of_each_run() -> None:
    lines = list(bench.table([ONE, TEN]))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line]
    assert lines.count("") == 1
    assert {len(row) for row in rows[:4]} == {9}
    assert {len(row) for row in rows[4:]} == {10}
    # Beyond the waiting: 10 s of one bay, 20 s of ten: (0.95 × 20 - 10) / 0.05 = 180 s.
    assert rows[3] == ["10", "10", "120.0", "100.0", "0.917", "3 min", "0.50", "2.0", "10 %, 20 %, 70 %"]
    assert rows[6][:3] + rows[6][-2:] == ["1", "90", "10.00", "–", "–"]
    assert rows[7] == ["10", "90", "1.00", "80", "2.00", "1.5", "10, 0", "900", "0.75", "123"]
    assert next(each for each in bench.table([TEN]) if each.startswith("| 10 ")).count("–") == 2


@pytest.fixture
def parent() -> subprocess.Popen[bytes]:
    """A process with a child that looks like a worker, and one that does not."""
    program = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {CHILD!r}], stdin=subprocess.PIPE)\n"
        "other = subprocess.Popen(['sleep', '0.5'])\n"
        "print('both are what they will be', flush=True)\n"
        "other.wait(); child.communicate(); sys.exit(3)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    # Between fork and exec a child would be taken for another one of its parent.
    assert process.stdout
    assert process.stdout.readline()
    process.stdout.close()
    return process


def test_a_process_and_its_workers_are_seen(parent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_processes, "PSS_EVERY_S", 0)
    monkeypatch.setattr(fleet_processes, "PSS_SHARE", 1)
    before = Cores.now()
    seen = ObservedProcesses.until_end(parent, 0.02)
    cores = Cores.now().since(before)
    assert parent.returncode == 3
    cost = seen.cost(1, 1.0, cores)
    assert (cost.at_once, len(seen.peak_mib)) == (1, 2)
    assert min(cost.controller_mib, cost.worker_mib) > 3
    assert cost.pss_mib > 3
    assert cost.workers_s >= 0.02
    assert cores.busy_s >= 0.02
    assert re.fullmatch(r"\d+ %, \d+ %, \d+ %", cost.shares)


def test_what_has_ended_has_no_figures() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert fleet_processes._stat(process.pid) == []
    assert fleet_processes._pss_mib(process.pid) == 0
    assert fleet_processes._pss_mib(os.getpid()) > 1
    assert fleet_processes.memory_available_mib() > 1


def test_two_bays_in_truth(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without bays' pages, and with what Python has compiled already: both would only take time."""
    argv, environment = bench._argv, bench._environment
    monkeypatch.setattr(bench, "compile_once", lambda folder, cache: None)
    monkeypatch.setattr(bench, "_argv", lambda workers: (*argv(workers), "-o", "ssd_page=false"))
    monkeypatch.setattr(
        bench, "_environment", lambda *args: {**environment(*args), "PYTHONPYCACHEPREFIX": sys.pycache_prefix or ""}
    )
    monkeypatch.setenv("SIMULATED_LOST_AT", "1")  # of a test around this one: nothing of it reaches the run
    bench.main(["--bays", "2", "--seconds", "0", "--period", "0.1", f"--folder={tmp_path}"])
    told = capsys.readouterr().out
    first, second = (line for line in told.splitlines() if line.startswith("| 2 | "))
    assert re.fullmatch(r"\| 2 \| 2 \| [\d.]+ \| 0\.0 \| – \| – \| [\d.]+ \| [\d.]+ \| \d+ %, \d+ %, \d+ % \|", first)
    numbers = [float(each) for each in re.findall(r"[\d.]+", second)]
    assert len(numbers) == 11
    assert min(numbers[1:5]) > 0
    assert numbers[6] == 2
    assert "6 × 0 s of waiting" in told
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_failed_is_told_and_has_no_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_argv", lambda workers: (sys.executable, "-c", "import sys; sys.exit('no such bay')"))
    with pytest.raises(SystemExit, match="pytest ended with status 1:\nno such bay"):
        bench.measure(tmp_path, tmp_path, 2, 1, 0, 0.05)


@pytest.mark.parametrize("argument", ["--bays=0", "--workers=0", "--seconds=-1", "--period=0"])
def test_what_makes_no_sense_is_refused(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench.main([argument])
    assert "bays and workers are 1 at least" in capsys.readouterr().err
