"""CPU time and memory of the processes of a pytest-xdist run, from the kernel's counters; for ``fleet.py``."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
#: Command line of execnet's processes, which read their program from standard input.
WORKER = b"sys.stdin.readline"
#: Of the time, at most this share is spent on looking at memory that is shared, which takes the kernel long.
PSS_SHARE, PSS_EVERY_S = 0.01, 1.0


@dataclass(frozen=True, slots=True)
class Cores:
    """CPU seconds of all cores since the computer started, or between two moments."""

    busy_s: float
    idle_s: float

    @classmethod
    def now(cls) -> Cores:
        fields = [int(each) / TICKS for each in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
        idle_s = fields[3] + fields[4]
        return cls(sum(fields) - idle_s, idle_s)

    def since(self, before: Cores) -> Cores:
        return Cores(self.busy_s - before.busy_s, self.idle_s - before.idle_s)


@dataclass(frozen=True, slots=True)
class ProcessCost:
    """Of one run: peaks in MiB, CPU time in seconds of all bays."""

    #: Resident, of which libraries are shared with other processes.
    controller_mib: float
    worker_mib: float
    #: Of all processes at one moment, what they share counted once.
    pss_mib: float
    controller_s: float
    workers_s: float
    #: How long a worker was ready and had no core, as a mean of bays.
    delayed_s: float
    #: The most workers at a time; the most that had ended and were still to be waited for.
    at_once: int
    zombies: int
    #: Of all cores: ours, those of other processes and of other guests, unused; as text.
    shares: str


@dataclass(slots=True)
class ObservedProcesses:
    """Measurements of a process and its workers, by process id."""

    peak_mib: dict[int, float] = field(default_factory=dict)
    cpu_s: dict[int, float] = field(default_factory=dict)
    delayed_s: dict[int, float] = field(default_factory=dict)
    controller: int = 0
    #: CPU time of processes that the controller has waited for.
    waited_for_s: float = 0.0
    pss_mib: float = 0.0
    at_once: int = 0
    zombies: int = 0

    @classmethod
    def until_end(cls, process: subprocess.Popen[bytes], period_s: float) -> ObservedProcesses:
        """Sample the process until it has ended; ``process.returncode`` then has its status."""
        seen, pss_at_s = cls(controller=process.pid), 0.0
        ended = os.WEXITED | os.WNOWAIT | os.WNOHANG
        # It stays in the table of processes while its last figures are read.
        while os.waitid(os.P_PID, process.pid, ended) is None:
            workers = seen._look()
            if time.monotonic() >= pss_at_s:
                began_s = time.process_time()
                seen.pss_mib = max(seen.pss_mib, sum(map(_pss_mib, [process.pid, *workers])))
                took_s = time.process_time() - began_s
                pss_at_s = time.monotonic() + max(PSS_EVERY_S, took_s / PSS_SHARE)
            time.sleep(period_s)
        if fields := _stat(process.pid):
            seen.cpu_s[process.pid] = _ticks_s(fields, 11)
            seen.waited_for_s = _ticks_s(fields, 13)
        process.wait()
        return seen

    def cost(self, bays: int, wall_s: float, cores: Cores) -> ProcessCost:
        """``cores`` is what all of them did in these ``wall_s``."""
        workers = [pid for pid in self.peak_mib if pid != self.controller]
        own_s = self.cpu_s.get(self.controller, 0.0)
        # Samples miss the time after the last one; the controller's sum misses processes that it never waited for.
        workers_s = max(self.waited_for_s, sum(self.cpu_s[pid] for pid in workers))
        whole_s = (os.cpu_count() or 1) * wall_s
        shares = (own_s + workers_s, cores.busy_s - own_s - workers_s, cores.idle_s)
        return ProcessCost(
            controller_mib=self.peak_mib.get(self.controller, 0.0),
            worker_mib=max((self.peak_mib[pid] for pid in workers), default=0.0),
            pss_mib=self.pss_mib,
            controller_s=own_s,
            workers_s=workers_s,
            delayed_s=sum(self.delayed_s.get(pid, 0.0) for pid in workers) / bays,
            at_once=self.at_once,
            zombies=self.zombies,
            shares=", ".join(f"{100 * max(0.0, each) / whole_s:.0f} %" for each in shares),
        )

    def _look(self) -> list[int]:
        """Sample all processes once; return the ids of running workers."""
        running, zombies = [], 0
        for each in PROC.iterdir():
            if not each.name.isdigit() or not (fields := _stat(pid := int(each.name))):
                continue
            if pid != self.controller and int(fields[1]) != self.controller:
                continue
            known = pid in self.peak_mib
            if fields[0] == "Z":
                zombies += known
            elif pid == self.controller or WORKER in _read(each / "cmdline"):
                self._note(pid)
                running += [] if pid == self.controller else [pid]
            if known:
                self.cpu_s[pid] = _ticks_s(fields, 11)
        self.at_once, self.zombies = max(self.at_once, len(running)), max(self.zombies, zombies)
        return running

    def _note(self, pid: int) -> None:
        if found := re.search(rb"VmHWM:\s+(\d+) kB", _read(PROC / str(pid) / "status")):
            self.peak_mib[pid] = int(found[1]) / 1024
            self.cpu_s.setdefault(pid, 0.0)
        if (told := _read(PROC / str(pid) / "schedstat").split()) and pid in self.peak_mib:
            self.delayed_s[pid] = int(told[1]) / 1e9


def memory_available_mib() -> float:
    """Return the memory available without swapping; 0 if unknown."""
    found = re.search(rb"MemAvailable:\s+(\d+) kB", _read(PROC / "meminfo"))
    return int(found[1]) / 1024 if found else 0.0


def _pss_mib(pid: int) -> float:
    """0 if it has ended, or if that is not to be known."""
    found = re.search(rb"^Pss:\s+(\d+) kB", _read(PROC / str(pid) / "smaps_rollup"), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def _stat(pid: int) -> list[str]:
    """Fields of ``/proc/PID/stat`` from the state on; none if it is gone."""
    text = _read(PROC / str(pid) / "stat").decode(errors="replace")
    return text.rpartition(")")[2].split()


def _ticks_s(fields: list[str], first: int) -> float:
    """User and system time; 11: its own, 13: of those that it has waited for."""
    return (int(fields[first]) + int(fields[first + 1])) / TICKS


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""
