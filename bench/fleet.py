"""Measures the controller's cost of a rack: runs of pytest with xdist's workers on simulated machines.

    python bench/fleet.py --bays 1 2 5 --seconds 2
    python bench/fleet.py --bays 1 2 5 10 20 50 100 --workers 40 --seconds 600     # ten hours

Each bay has four drives and six promises, so six simulated runs of fio, which sleep for ``--seconds``. The bench
measures the rest: the start of processes, reports, records, pages. Real runs of fio take hours, and the longer they
are, the less the cores of this computer matter.

Linear is (wall time of one bay × bays) / (wall time of all × workers). If bays are not a multiple of workers, some
workers are idle in the last round for reasons other than the controller, so the ratio is relative to the best possible
one. "95 % from" is the waiting time of a bay that gives that share of linear, if all other times stay the same.

A shortage of cores lengthens the other times, so the table has the use of the cores, and the time that a worker was
ready to run and waited for a core.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fleet_processes import Cores, ObservedProcesses, ProcessCost, memory_available_mib

from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.report.fleet import page_content
from pytest_ssdqual.report.run_folder.reader import Record, read_records

ROOT = Path(__file__).parents[1]
SUITE = """
import pytest
from pytest_ssdqual import Workload

READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
pytestmark = [pytest.mark.ssd_array("raid5"), pytest.mark.ssd_workload(READS, WRITES)]

@pytest.mark.ssd_promise("steady_iops")
def test_iops(ssd_run, ssd_sla):
    assert ssd_sla.judge(ssd_run)

@pytest.mark.ssd_promise("scaling_slope")
def test_scaling(ssd_sweep, ssd_sla):
    assert ssd_sla.judge(ssd_sweep)
"""
SPEC = """
[product]
name = "ACME 9"
models = ["ACME-9*", "QEMU NVMe Ctrl"]

[[promise]]
claim = "steady_iops"
at_least = "100 IOPS"
"""
#: Of a bay: two widths and two workloads, and two slopes.
PROMISES = 6
#: Memory reserved for a worker, and the share of free memory that workers may use.
WORKER_MIB, SHARE = 200, 0.8
#: Goal, as a share of linear.
AIM = 0.95


@dataclass(frozen=True, slots=True)
class Rack:
    """One run; times in seconds."""

    bays: int
    workers: int
    wall_s: float
    #: Time that a bay waited for its simulated fio.
    waited_s: float
    #: From the making of the fleet's folder until the last bay is open; None of a single bay.
    open_s: float | None
    #: From the last report of a worker to the end of the controller.
    end_s: float
    cost: ProcessCost
    #: CPU time of drawing the fleet's page once more, and its size; None of a single bay.
    page_s: float | None
    page_kb: float

    @property
    def rounds(self) -> int:
        return math.ceil(self.bays / self.workers)

    def linear(self, one: Rack) -> float:
        """(Wall time of one bay × bays) / (wall time × workers), as a share of the best that there can be."""
        return self.rounds * one.wall_s / self.wall_s

    def enough_s(self, one: Rack) -> float:
        """Return the waiting time of a bay at which ``linear`` reaches the goal, if all other times stay the same."""
        rest_s, rest_of_one_s = self.wall_s - self.rounds * self.waited_s, one.wall_s - one.waited_s
        return max(0.0, (AIM * rest_s - self.rounds * rest_of_one_s) / ((1 - AIM) * self.rounds))


def workers_for(bays: int, most: int) -> int:
    """As few as go round as often as the most would: 34, not 40, for 100 bays."""
    return math.ceil(bays / math.ceil(bays / most))


def inventory(bays: int) -> str:
    """``dut1`` to ``dutN``: the simulation gives machines of other numbers other drives."""
    one = '[[bay]]\nname = "dut{0}"\nhost = "root@dut{0}"\ndevices = ["/dev/nvme*"]\n'
    return "\n".join(one.format(number) for number in range(1, bays + 1))


def compile_once(folder: Path, cache: Path) -> None:
    """What every later run finds in ``cache``: pytest rewrites each module of a plugin when it is first imported."""
    _run(folder, 1, 0, _environment(0, cache), 1.0)


def measure(folder: Path, cache: Path, bays: int, workers: int, seconds: float, period_s: float) -> Rack:
    """Run pytest in the empty ``folder``; raise ``SystemExit`` if a bay lacks one of its six verdicts."""
    cores, began_s = Cores.now(), time.time()
    observed = _run(folder, bays, workers, _environment(seconds, cache), period_s)
    wall_s = time.time() - began_s
    (run,) = (folder / "ssdqual-runs").iterdir()
    records = [list(read_records(each)) for each in (fleet.bay_folders(run) if bays > 1 else [run])]
    verdicts = [sum(each.kind == "verdict" for each in of_bay) for of_bay in records]
    if verdicts != [PROMISES] * bays:
        raise SystemExit(f"not all of {bays} bays have {PROMISES} verdicts: {verdicts}")
    opened = max(_time_s(each) for of_bay in records for each in of_bay if each.kind == "run_started")
    last_s = max(_time_s(each) for of_bay in records for each in of_bay if each.facts["writer"] != "main")
    page_s, page_kb = _page(run) if bays > 1 else (None, 0.0)
    return Rack(
        bays, workers, wall_s,
        waited_s=seconds * sum(each.kind == "ran" for each in records[0]),
        open_s=opened - datetime.fromisoformat(fleet.read(run).started).timestamp() if bays > 1 else None,
        end_s=began_s + wall_s - last_s,
        cost=observed.cost(bays, wall_s, Cores.now().since(cores)),
        page_s=page_s, page_kb=page_kb,
    )  # fmt: skip


def _run(folder: Path, bays: int, workers: int, environment: dict[str, str], period_s: float) -> ObservedProcesses:
    """Return the measurements of a run; raise ``SystemExit`` if it failed."""
    for name, text in (("test_rack.py", SUITE), ("acme.toml", SPEC), ("pytest.ini", "[pytest]\n")):
        (folder / name).write_text(text)
    (folder / "bays.toml").write_text(inventory(bays))
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(_argv(workers), cwd=folder, env=environment, stdout=said, stderr=said)
        observed = ObservedProcesses.until_end(process, period_s)
    if process.returncode:
        last = (folder / "said").read_text(errors="replace").strip().split("\n")[-5:]
        raise SystemExit("\n".join([f"pytest ended with status {process.returncode}:", *last]))
    return observed


def _argv(workers: int) -> tuple[str, ...]:
    return (
        sys.executable, "-m", "pytest", "-q", "-p", "support.simulator.simulated_rig", "-p", "no:cacheprovider", "-n",
        str(workers), "--ssd-bays=bays.toml", "--ssd-spec=acme.toml", "--ssd-protocol=quick", "test_rack.py",
    )  # fmt: skip


def _environment(seconds: float, cache: Path) -> dict[str, str]:
    """Return the environment without variables that would change the measurement."""
    left_out = ("SIMULATED_", "PYTEST_", "GITHUB_STEP_SUMMARY", "COV_", "PYTHONDONTWRITEBYTECODE")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *filter(None, [ours.get("PYTHONPATH")])])
    return {**ours, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(cache), "SIMULATED_TAKES": str(seconds)}


def _time_s(record: Record) -> float:
    return datetime.fromisoformat(record.time).timestamp()


def _page(run: Path) -> tuple[float, float]:
    """CPU seconds of writing the page and the summary, and the size of the page in kB; imports are not counted."""
    page_content.write(run)
    began_s = time.process_time()
    path = page_content.write(run)
    return time.process_time() - began_s, path.stat().st_size / 1000


def table(racks: Sequence[Rack]) -> Iterator[str]:
    """Lines of Markdown; the ratios are to the first run of a single bay."""
    one = next((each for each in racks if each.bays == 1), None)
    yield "| bays | workers | wall s | waited s | of linear | 95 % from | open s | end s | CPU ours, others, idle |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for each in racks:
        ratios = [f"{each.linear(one):.3f}", f"{each.enough_s(one) / 60:.0f} min"] if one else ["–", "–"]
        opened = "–" if each.open_s is None else f"{each.open_s:.2f}"
        cells = [str(each.bays), str(each.workers), f"{each.wall_s:.1f}", f"{each.rounds * each.waited_s:.1f}", *ratios]
        yield f"| {' | '.join(cells)} | {opened} | {each.end_s:.1f} | {each.cost.shares} |"
    yield ""
    yield (
        "| bays | controller peak MiB | CPU s per bay | worker peak MiB | CPU s per bay | stood in line s "
        "| workers at once, ended and not gone | all, PSS MiB | page CPU s | page kB |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for each in racks:
        page = "– | –" if each.page_s is None else f"{each.page_s:.2f} | {each.page_kb:.0f}"
        cost = each.cost
        yield (
            f"| {each.bays} | {cost.controller_mib:.0f} | {cost.controller_s / each.bays:.2f} | {cost.worker_mib:.0f} "
            f"| {cost.workers_s / each.bays:.2f} | {cost.delayed_s:.1f} | {cost.at_once}, {cost.zombies} "
            f"| {cost.pss_mib:.0f} | {page} |"
        )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bays", type=int, nargs="+", default=[1, 2, 5, 10, 20, 50, 100])
    parser.add_argument("--workers", type=int, default=40, help="at once, at most")
    parser.add_argument("--seconds", type=float, default=60, help="that each of six simulated runs of fio lasts")
    parser.add_argument("--period", type=float, default=0.5, help="seconds between two samples of the processes")
    parser.add_argument("--folder", help="folder for runs while they are measured")
    asked = parser.parse_args(argv)
    if min(asked.bays) < 1 or asked.workers < 1 or asked.seconds < 0 or asked.period <= 0:
        parser.error("bays and workers are 1 at least, seconds not below 0, and the period is above 0")
    most = min(asked.workers, int(SHARE * memory_available_mib() / WORKER_MIB)) or 1
    racks = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as place:
        cache = Path(place, "cache")
        for number, bays in enumerate([0, *asked.bays]):
            folder = Path(place, str(number))
            folder.mkdir()
            if bays:
                workers = workers_for(bays, most)
                racks.append(measure(folder, cache, bays, workers, asked.seconds, asked.period))
                print(racks[-1], file=sys.stderr, flush=True)  # the table comes when all are done
            else:
                compile_once(folder, cache)
    print(*table(racks), sep="\n")
    print(
        f"\nMeasured with Python {platform.python_version()} on {os.cpu_count()} cores, at most {most} workers, "
        f"6 × {asked.seconds:g} s of waiting in a bay; CPU is that of all cores while it ran."
    )


if __name__ == "__main__":
    main()
