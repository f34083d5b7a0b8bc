"""What goes on around fio on a machine that was never there, as ``surroundings.SCRIPT`` would print it.

Time passes and sectors are counted when fio has run, and only then. What is wrong is a list of words, as in the
environment variable ``SIMULATED_TROUBLE``: ``reads:SSDQ0002 resync clock:3600``.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_ssdqual.qual.measured.environment import Traffic, total
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.raid.geometry import Geometry, loads
from pytest_ssdqual.qual.validity.drive_failure import FailureAttribution
from pytest_ssdqual.qual.validity.fault_codes import Fault
from pytest_ssdqual.rig.health import media_count
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.observe import drive_failure, environment
from pytest_ssdqual.rig.observe.kernel_log import PICK

SMART = json.loads((Path(__file__).parents[2] / "data" / "nvme-cli" / "2.3" / "smart-log.json").read_text())
NOTHING = Traffic(0, 0, 0, 0)
#: What another program reads of a drive during one run.
FOREIGN = Traffic(20_000, 0, 20_000 * 131_072, 0)
#: What it writes.
WRITTEN = Traffic(0, 8, 0, 8 * 4096)
CPUS = 2
#: Of the ticks of one CPU: user, nice, system, idle, iowait, irq, softirq, steal.
CALM, SATURATED = (8, 0, 10, 80, 0, 0, 2, 0), (8, 0, 60, 0, 0, 0, 32, 0)
PCI = "/sys/block/{}/device/device"


@dataclass
class Surroundings:
    """Of one machine; ``serials`` by kernel name, for those drives that have trouble."""

    trouble: Sequence[str] = ()
    #: Share of its speed that a drive has, by serial.
    slow: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    #: IOPS that no array exceeds: if it is finite, I/Os wait for md and not for drives.
    md_iops: float = field(default=math.inf, kw_only=True)
    serials: Mapping[str, str] = field(default_factory=dict)
    uptime_s: float = 5000.0
    wall_s: float = 1_795_286_113.25
    counted: dict[str, Traffic] = field(default_factory=dict)
    #: I/O past the block layer, which only the drives count: ``passthrough:SERIAL``.
    passed_by: dict[str, Traffic] = field(default_factory=dict)
    ticks: list[list[int]] = field(default_factory=lambda: [[1000] * 8 for _ in range(CPUS)])
    log: list[str] = field(default_factory=list)
    runs: int = 0
    #: Number of members that the array has lost.
    dropped: int = 0
    #: Kernel names of drives that failed while fio ran.
    gone: set[str] = field(default_factory=set)
    #: Of each drive: time of all reads, of all writes, and with any of them outstanding.
    milliseconds: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def ran(self, array: Array, parts: Sequence[Sequence[Interval]]) -> None:
        """A fio process, of one target or of drives side by side, and what happened meanwhile."""
        self.runs += 1
        before = dict(self.counted)
        seconds = parts[0][-1].end_s + 1.5
        self.uptime_s += seconds
        self.wall_s += seconds + sum(float(each) for each in self._about("clock"))
        for number, cpu in enumerate(self.ticks):
            share = SATURATED if number == 1 and "cpu" in self.trouble else CALM
            cpu[:] = [before + round(seconds * each) for before, each in zip(cpu, share, strict=True)]
        done = [traffic(part) for part in parts]
        if array.geometry.is_side_by_side:
            for drive, each in zip(array.members, done, strict=True):
                self._count(drive.kname, each)
        else:
            self._count(array.kname, done[0])
            for drive, each in zip(array.members, of_members(array.geometry, done[0]), strict=False):
                self._count(drive.kname, each)
        self._wait(array, seconds - 1.5, before)
        for drive in array.members:
            if self.serials.get(drive.kname, drive.serial) in self._about("reads"):
                self._count(drive.kname, FOREIGN)
            if self.serials.get(drive.kname, drive.serial) in self._about("writes"):
                self._count(drive.kname, WRITTEN)
            if self.serials.get(drive.kname, drive.serial) in self._about("passthrough"):
                earlier = self.passed_by.get(drive.kname, NOTHING)
                self.passed_by[drive.kname] = total([earlier, FOREIGN])
        if "resync" in self.trouble:
            self._say(6, f"md: data-check of RAID array {array.kname}")
        for drive in array.members:
            if self.serials.get(drive.kname, drive.serial) in self._about("timeout"):
                self._say(4, f"nvme {drive.kname[:-2]}: I/O 12 QID 1 timeout, aborting")
            for _ in range(24 if self.serials.get(drive.kname, drive.serial) in self._about("iucrc") else 0):
                self._say(6, f"sd 0:0:1:0: [{drive.kname}] tag#7 Add. Sense: Information unit iuCRC error detected")
            if self.serials.get(drive.kname, drive.serial) in self._about("drops"):
                self.dropped = 1
                self._unreadable(drive.kname, 2048)
        if "hung" in self.trouble:
            self._say(3, "INFO: task fio:12 blocked for more than 122 seconds.")

    def failing(self, array: Array) -> str:
        """What fio says if drives of ``array`` fail under its load: ``pulled:SERIAL``, ``media:SERIAL``, ``hba``.

        ``stuck:SERIAL`` answers nothing until it is reset; ``returns:SERIAL`` loses requests and comes back.
        ``kernel:SERIAL`` fails one, and the kernel says what ``SIMULATED_KERNEL`` holds about it.
        """
        lost, is_stuck = [], False
        for drive in array.members:
            serial = self.serials.get(drive.kname, drive.serial)
            if serial in self._about("pulled") or "hba" in self.trouble:
                self.gone.add(drive.kname)
                self._say(3, f"nvme {drive.kname[:-2]}: controller is down; will reset: CSTS=0xffffffff")
                lost.append(drive)
            if serial in self._about("media"):
                self._unreadable(drive.kname, 4096)
                lost.append(drive)
            if serial in self._about("kernel"):
                self._report(drive.kname, os.environ["SIMULATED_KERNEL"].splitlines())
                lost.append(drive)
            if serial in self._about("stuck"):
                self._say(4, f"nvme {drive.kname[:-2]}: I/O 12 QID 1 timeout, reset controller")
                lost.append(drive)
                is_stuck = True
            if serial in self._about("returns"):
                self._say(4, f"nvme {drive.kname[:-2]}: I/O 12 QID 1 timeout, reset controller")
                self._say(3, f"I/O error, dev {drive.kname}, sector 4096 op 0x0:(READ) flags 0x0")
                lost.append(drive)
        if not lost:
            return ""
        if is_stuck:
            return "fio: job 'drive-1' (state=5) hasn't exited in 60 seconds, it appears to be stuck."
        target = lost[0].path if array.geometry.is_side_by_side else array.path
        return f"fio: io_u error on file {target}: Input/output error: read offset=2097152, buflen=4096"

    def unplugged_in_purge(self, kname: str) -> bool:
        """Whether the drive is taken out of its slot while it is purged: ``unplugged:SERIAL``."""
        if self.serials.get(kname) not in self._about("unplugged"):
            return False
        self.gone.add(kname)
        self._say(3, f"nvme {kname[:-2]}: controller is down; will reset: CSTS=0xffffffff")
        return True

    def states(self, array: str, drives: Sequence[str]) -> str:
        """The answer of ``drive_states.sh``."""
        member = "-" if array == "-" else "in_sync"
        lines = [f"{kname} gone rw -" if kname in self.gone else f"{kname} present rw {member}" for kname in drives]
        return "\n".join([*lines, "end", ""])

    def _wait(self, array: Array, seconds: float, before: Mapping[str, Traffic]) -> None:
        """The slowest drive is always busy, and most I/Os wait for it; each has eight outstanding on average."""
        speeds = [self.slow.get(self.serials.get(drive.kname, drive.serial or ""), 1.0) for drive in array.members]
        slowest = min(speeds)
        shares = [1.0 if speed == slowest else slowest / speed / 2 for speed in speeds]
        if array.geometry.is_side_by_side:
            shares = [1.0] * len(speeds)
        for drive, share in zip(array.members, shares, strict=True):
            depth = 8 * len(shares) * share / sum(shares)
            if math.isfinite(self.md_iops) and not array.geometry.is_side_by_side:
                depth, share = 0.5, 0.5
            earlier, now = before.get(drive.kname, NOTHING), self.counted.get(drive.kname, NOTHING)
            reads = (now.reads - earlier.reads) / max(1, now.ios - earlier.ios)
            reads_ms, writes_ms, busy_ms = self.milliseconds.get(drive.kname, (0, 0, 0))
            self.milliseconds[drive.kname] = (
                reads_ms + round(1000 * seconds * depth * reads),
                writes_ms + round(1000 * seconds * depth * (1 - reads)),
                busy_ms + round(1000 * seconds * share),
            )

    def text(self, argv: Sequence[str]) -> str:
        """The answer to ``sh -c SCRIPT surroundings PICK WHEN ARRAY SINCE NAMES KNAME PATH TYPE …``."""
        when, array, since, _, *drives = argv[5:]
        files = self._clock() + self._files(array, drives[::3])
        warmth = [
            line
            for kname in drives[::3]
            for line in (f"==warmth {kname}", self._smart(kname), f"==selftest {kname}", self._self_test(kname))
        ] + ["==", "==opened", *self._opened(drives[::3]), "=="]
        names = ["==names", *({array} - {"-"}), *(name for kname in drives[::3] for name in (kname, kname[:-2])), "=="]
        new = self.log[int(since[1:]) - 1 :] if when == "after" and since.startswith("k") else []
        # Message 1 is of the boot, and has scrolled out of sight.
        said = [] if "speechless" in self.trouble else [f"==kernel k{len(self.log) + 1} 0 0", *new, "=="]
        return "\n".join([*(warmth + names + said + files if when == "before" else files + said + warmth), "==end", ""])

    def _unreadable(self, kname: str, sector: int) -> None:
        self._say(3, f"{kname}: Read(0x2) @ LBA {sector}, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR")
        self._say(2, f"critical medium error, dev {kname}, sector {sector} op 0x0:(READ) flags 0x0")

    def _report(self, kname: str, texts: Sequence[str]) -> None:
        """Put messages into the log, in which ``nvme0n1`` and ``nvme0`` are the drive, as far as the script lets them.

        ``I/O error`` of the block layer follows.
        """
        about = [re.sub(r"\bnvme0(n1)?\b", lambda match: kname if match[1] else kname[:-2], text) for text in texts]
        log = "".join(f"3,{number},{number},-;{text}\n" for number, text in enumerate(about, 1))
        environment = {**os.environ, "form": "k", "since": "k0", "names": f"{kname} {kname[:-2]}", "array": "-"}
        done = subprocess.run(["awk", PICK], input=log, capture_output=True, text=True, check=True, env=environment)
        for line in done.stdout.splitlines()[1:]:
            self._say(3, line.split(" ", 2)[2])
        self._say(3, f"I/O error, dev {kname}, sector 4096 op 0x0:(READ) flags 0x0")

    def _say(self, level: int, text: str) -> None:
        self.log.append(f"{level} {self.uptime_s - 2:.6f} {text}")

    def _clock(self) -> list[str]:
        cpus = [" ".join(map(str, [*cpu, 0, 0])) for cpu in self.ticks]
        together = " ".join(str(sum(each)) for each in zip(*self.ticks, strict=True))
        return [
            f"clock {self.uptime_s:.2f} {self.wall_s:.9f} {self.uptime_s + 0.02:.2f}",
            f"/proc/stat:cpu  {together} 0 0",
            *(f"/proc/stat:cpu{number} {cpu}" for number, cpu in enumerate(cpus)),
        ]

    def _files(self, array: str, drives: Sequence[str]) -> list[str]:
        lines = []
        for kname in [*drives, *([] if array == "-" else [array])]:
            seen = self.counted.get(kname, NOTHING)
            reads_ms, writes_ms, busy_ms = self.milliseconds.get(kname, (0, 0, 0))
            stat = (
                f"{seen.reads} 0 {seen.read_bytes // 512} {reads_ms} "
                f"{seen.writes} 0 {seen.write_bytes // 512} {writes_ms} 0 {busy_ms} {reads_ms + writes_ms}"
            )
            lines += [f"/sys/block/{kname}/{each}" for each in (f"stat:{stat}", "diskseq:9", "queue/iostats:1")]
        if array != "-":
            lines += [f"/sys/block/{array}/md/{each}" for each in ("chunk_size:65536", "bitmap/location:none")]
        for kname in drives:
            lanes = 2 if self.serials.get(kname) in self._about("lanes") else 4
            rates = "current_link_speed:16.0 GT/s PCIe", "max_link_speed:16.0 GT/s PCIe"
            widths = f"current_link_width:{lanes}", "max_link_width:4"
            lines += [f"{PCI.format(kname)}/{each}" for each in (*rates, *widths)]
            # 31 commands fail in each run of fio.
            retried = 31 * self.runs if self.serials.get(kname) in self._about("retries") else 0
            lines += [f"/sys/block/{kname}/device/ioerr_cnt:{7 + retried:#x}"]
        return lines

    def _opened(self, knames: Sequence[str]) -> list[str]:
        """Who has drives open once something was measured: ``opened:SERIAL``."""
        users = [kname for kname in knames if self.runs and self.serials.get(kname) in self._about("opened")]
        return [f"{kname} 737 generic sg_dd" for kname in users]

    def _self_test(self, kname: str) -> str:
        """A self-test once something was measured: ``selftest:SERIAL``."""
        is_running = self.runs and self.serials.get(kname) in self._about("selftest")
        operation = {"current_self_test_operation": {"value": 2 if is_running else 0}}
        return json.dumps({"nvme_self_test_log": operation | {"current_self_test_completion_percent": 60}})

    def _smart(self, kname: str) -> str:
        answer: dict[str, Any] = dict(SMART)
        own = total([self.counted.get(kname, NOTHING), self.passed_by.get(kname, NOTHING)])
        answer |= {"host_read_commands": own.reads, "host_write_commands": own.writes}
        answer |= {"data_units_read": -(-own.read_bytes // 512_000), "data_units_written": own.write_bytes // 512_000}
        if "uncounted" in self.trouble:
            answer = {name: value for name, value in answer.items() if not name.startswith(("host_", "data_units"))}
        if self.serials.get(kname) in self._about("throttled"):
            answer |= {"thm_temp1_trans_count": 3 * self.runs, "thm_temp1_total_time": 40 * self.runs}
        if self.serials.get(kname) in self._about("hot"):
            answer |= {"temperature": 358, "critical_warning": 2}
        return json.dumps(answer, indent=2)

    def media_counts(self, knames: Sequence[str]) -> str:
        """Logs C0h of drives that write twice to flash what they get, or five times: ``flash amplified:SERIAL``.

        ``unlogged:SERIAL`` refuses the log.
        """
        lines = []
        for kname in knames:
            serial = self.serials.get(kname)
            factor = 5 if serial in self._about("amplified") else 2
            written = 77_777 + factor * self.counted.get(kname, NOTHING).write_bytes
            log = written.to_bytes(16, "little") + bytes(480) + media_count.OCP_GUID
            is_read = "flash" in self.trouble and serial not in self._about("unlogged")
            lines += [f"=={kname}", f"c0 {log.hex() if is_read else ''}", *([] if is_read else ["ca "])]
        return "\n".join([*lines, ""])

    def _about(self, word: str) -> list[str]:
        return [each.partition(":")[2] for each in self.trouble if each.partition(":")[0] == word]

    def _count(self, kname: str, more: Traffic) -> None:
        self.counted[kname] = total([self.counted.get(kname, NOTHING), more])


def traffic(intervals: Sequence[Interval]) -> Traffic:
    return Traffic(
        sum(each.read_ios for each in intervals),
        sum(each.write_ios for each in intervals),
        sum(each.read_bytes for each in intervals),
        sum(each.write_bytes for each in intervals),
    )


def of_members(geometry: Geometry, done: Traffic) -> list[Traffic]:
    """By the level's law; while it is rebuilt, by that of the degraded array."""
    return [
        Traffic(
            int(done.reads * load.reads_for_read + done.writes * load.reads_for_write),
            int(done.writes * load.writes_for_write),
            512 * int((done.read_bytes * load.reads_for_read + done.write_bytes * load.reads_for_write) / 512),
            512 * int(done.write_bytes * load.writes_for_write / 512),
        )
        for load in loads(Geometry(geometry.level, geometry.width, geometry.missing))
    ]


def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the surroundings: for tests of what else happens."""
    monkeypatch.setattr(environment, "take_reading", lambda machine, array, *_: None)
    monkeypatch.setattr(environment, "between", lambda *_: None)
    unattributed(monkeypatch)


def unattributed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks which drive was at fault, and who else used it: errors stay as they are."""
    monkeypatch.setattr(environment, "self_tests", lambda *_: {})
    monkeypatch.setattr(environment, "with_users", lambda after, *_: after)
    unknown = FailureAttribution(Fault.UNKNOWN)
    monkeypatch.setattr(drive_failure, "_attribution", lambda *_: unknown)
    monkeypatch.setattr(drive_failure, "note_repaired", lambda *_: None)
