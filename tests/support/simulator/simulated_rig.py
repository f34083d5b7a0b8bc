"""A machine with drives that was never there, for ``-p simulated_rig``: everything of the plugin runs but fio.

It answers what ``rig`` asks of a machine (survey, lease, purge, mdadm). A fio that is started on it writes documents by
the law of the level, at 300 IOPS a drive; jobs, processes, their output and its acceptance are those of the package.
Only failed members and their rebuild are replaced. No time passes. The scene is set by environment variables, so that
xdist's workers see it, too.

PYTEST_DONT_REWRITE: it has no assertions, and pytest warns of plugins that it finds imported already.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ssdqual import lab
from pytest_ssdqual.lab import drives as media  # imported late by options, it would bring a fresh ``lab``
from pytest_ssdqual.plugin.searches import integrity
from pytest_ssdqual.qual.integrity import stamp
from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.read_back import ReadBack
from pytest_ssdqual.qual.integrity.stamp import Stamp
from pytest_ssdqual.qual.measured.interval import Interval
from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.measured.sweep import Ceiling
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import Fill
from pytest_ssdqual.qual.units import parse_size
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.run_folder import manifest
from pytest_ssdqual.rig.drives import survey, write_cache
from pytest_ssdqual.rig.fio import engine_limits, process, stamped_io
from pytest_ssdqual.rig.fio.jobs import Job, JobTarget
from pytest_ssdqual.rig.fio.load import Load, LoadTrial
from pytest_ssdqual.rig.guard import label, lease, sampling, shared_paths
from pytest_ssdqual.rig.health import health, inspection, locking, media_count, self_test, write_counters
from pytest_ssdqual.rig.integrity import drive_cuts, drive_power, erase, power_cut
from pytest_ssdqual.rig.integrity.power_cut import PowerSwitch
from pytest_ssdqual.rig.machine import facts, local, ssh
from pytest_ssdqual.rig.machine.machine import (
    CommandFailed,
    Completed,
    MachineLost,
    MustFinish,
    Observer,
    RigError,
    Tethered,
)
from pytest_ssdqual.rig.md import ceiling, driver, mdadm, members
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, load_calibration, read_back, rebuild, replays
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.read_back import StampedFill
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import drive_failure
from pytest_ssdqual.rig.observe import environment as surroundings
from pytest_ssdqual.rig.purge import zero
from support.builders import inspected
from support.fakes.bound_commands import bound_to, unbound
from support.fakes.scripted import completed
from support.simulator import simulated_fio, simulated_paths
from support.simulator.pairs import pairs, pairs_of
from support.simulator.published_drives import interface
from support.simulator.simulated_array import SimulatedBody
from support.simulator.simulated_caches import Caches
from support.simulator.simulated_content import Contents
from support.simulator.simulated_disks import Device, World
from support.simulator.simulated_erasure import Erasure
from support.simulator.simulated_fio import FioProcess, UnderWay
from support.simulator.simulated_media import Media
from support.simulator.simulated_power import Power
from support.simulator.simulated_self_tests import SelfTests
from support.simulator.simulated_surroundings import Surroundings, traffic

SMART = (Path(__file__).parents[2] / "data" / "smartctl" / "qemu-nvme-7.3.json").read_text()
REAL_BODY = integrity.body_of
REAL_RUN, REAL_FILL = fixed_time.run, array_lifecycle.fill_up
REAL_READ_BACK = read_back.compare
REAL_CEILING = ceiling.measure
#: Versions of installed distributions, which each session asks for several times: a twelfth of a short one's time.
VERSION = cache(version)
FETCHES = (process.FETCH, process.FETCH_REST, process.READ_NEW)
LSBLK_BYTES = 480_103_981_056


#: How a field of the scene is read of its variable, by what it is.
READ: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "tuple[str, ...]": lambda text: tuple(text.split()),
    "dict[str, str]": pairs_of,
    "dict[str, float]": lambda text: {name: float(each) for name, each in pairs_of(text).items()},
    "dict[str, int]": lambda text: {name: int(each) for name, each in pairs_of(text).items()},
}
#: Variables with another name than their field.
VARIABLES = {"md_iops": "MD", "path_bytes_per_s": "PATH_BYTES", "takes_s": "TAKES"}


@dataclass(frozen=True)
class Scene:
    """What is wrong with the machine: each field is the variable ``SIMULATED_`` of its name."""

    drives: int = 4
    #: Of several, separated by ``|``, the drives have one each in turn.
    model: str = "QEMU NVMe Ctrl"
    #: Serial → share of the speed.
    slow: dict[str, float] = field(default_factory=dict)
    #: The same of drives that share a path, while several of them work.
    path: dict[str, float] = field(default_factory=dict)
    #: This array cannot be built.
    broken: str = ""
    #: Where a bug of the program shows: ``fill``, ``run``, ``fill:raid5x4``, ``run:raid5x4:randread_4k_qd8``.
    mistakes: tuple[str, ...] = ()
    #: fio's run of this number never comes back, and neither does the machine.
    lost_at: int = 0
    #: At fio's run of this number somebody presses Ctrl-C.
    interrupted_at: int = 0
    #: At fio's run of this number the process that measures is killed.
    killed_at: int = 0
    #: By how much a round differs from the mean, as a share of it.
    noise: float = 0.01
    #: Commands that are not installed.
    missing: tuple[str, ...] = ()
    #: This option is one that its fio does not know.
    unknown_option: str = ""
    #: What smartctl says instead of identifying the first drive.
    unidentified: str = ""
    #: Serial → what the middle of the drive returns: ``zeroes``, ``elsewhere``, ``earlier``, ``damaged``, ``unstable``;
    #: or that it is read slowly, always (``slow``) or once (``paused``).
    wrong: dict[str, str] = field(default_factory=dict)
    #: What it says instead of every drive's health; empty: they are healthy.
    without_health: str = ""
    #: Serial → bytes, of drives that are no ordinary ones.
    sizes: dict[str, int] = field(default_factory=dict)
    #: What the drives' WWNs begin with; empty: they have none.
    wwn: str = ""
    #: Bytes of the drives' blocks, and how many I/Os they queue; 0: they do not say.
    block: int = 512
    queue: int = 0
    #: Bytes of the writes that they prefer.
    preferred: int = 512
    #: Its drives report a critical warning as soon as something was measured.
    worn: bool = False
    #: IOPS that no array exceeds.
    md_iops: float = math.inf
    #: Bytes per second that drives side by side transfer together at most.
    path_bytes_per_s: float = math.inf
    #: What goes wrong around each run, see ``simulated_surroundings``.
    trouble: tuple[str, ...] = ()
    #: How often those who ask are told that somebody holds the first two drives.
    held: int = 0
    #: How long each process of fio lasts in truth, for those who watch; 0: no time passes.
    takes_s: float = 0.0

    def model_of(self, number: int) -> str:
        """Model of the drive with this number, counted from 1."""
        models = self.model.split("|")
        return models[(number - 1) % len(models)]

    def speeds(self, array: Array) -> dict[str, float]:
        """Share of its speed that each drive has while the members of ``array`` work."""
        behind = [serial for drive in array.members if (serial := drive.serial) in self.path]
        slowed = {serial: self.path[serial] * self.slow.get(serial, 1.0) for serial in behind if serial}
        return self.slow | slowed if len(behind) > 1 else self.slow

    @classmethod
    def of_environment(cls, machine: str = "") -> Scene:
        """``SIMULATED_ONLY`` names the one machine of several where anything is out of the ordinary."""
        only = os.environ.get("SIMULATED_ONLY", machine)
        ordinary = {"SIMULATED_DRIVES": os.environ.get("SIMULATED_DRIVES", "4")}
        given = os.environ.get if only == machine else ordinary.get
        said: dict[str, Any] = {}
        for each in fields(cls):
            text = given(f"SIMULATED_{VARIABLES.get(each.name, each.name.upper())}")
            if text is not None:
                said[each.name] = READ[str(each.type)](text)
        return cls(**said)


class Held:
    """A lease that lasts until it is cut."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv

    def wait(self, deadline_s: float) -> Completed:
        raise NotImplementedError("nobody waits for a lease to end")

    def alive(self) -> bool:
        return True

    def rest(self, seconds: float) -> bool:
        return True

    def read_line(self, deadline_s: float) -> str:
        return "held\n"

    def cut(self, deadline_s: float = 30.0) -> Completed:
        return completed(self._argv)


@dataclass
class Counting:
    """Answers as the kernel would count 4 KiB writes at this rate, with a slow swing of a tenth."""

    iops: Callable[[], float]
    began_s: float = field(default_factory=time.monotonic)
    writes: float = 0.0
    at_s: float = 0.0

    def ask(self, text: str, answers: int, deadline_s: float) -> list[str]:
        now_s = time.monotonic() - self.began_s
        self.writes += (now_s - self.at_s) * self.iops() * (1 + 0.1 * math.sin(now_s))
        self.at_s = now_s
        return [f"0 0 0 0 0 0 {int(self.writes * (8 + index))}" for index in range(answers)]

    def close(self) -> None:
        """Nothing is open."""


def silences_of_environment() -> dict[str, int]:
    return {serial: int(number) for serial, number in pairs("SIMULATED_SILENT").items()}


@dataclass
class SimulatedMachine:
    """A ``Machine``; of arrays it knows only that they are there."""

    name: str
    scene: Scene
    observer: Observer | None = None
    generation: int = 0
    token: str = "ab"  # noqa: S105 (of file names)
    arrays: dict[str, str] = field(default_factory=dict)
    #: Of the last one.
    geometry: Geometry = field(default=Geometry(RaidLevel.DRIVE, 1))
    media: Media = field(default_factory=Media.of_environment)
    contents: Contents = field(default_factory=Contents.of_environment)
    caches: Caches = field(default_factory=Caches.of_environment)
    self_tests: SelfTests = field(default_factory=SelfTests.of_environment)
    power: Power = field(default_factory=Power.of_environment)
    erasure: Erasure = field(default_factory=Erasure.of_environment)
    surroundings: Surroundings = field(init=False)
    runs: int = 0
    #: Members of the last array that were failed.
    missing: int = 0
    #: What the next process of fio does, and the output files of those that were started.
    next_fio: Callable[[], UnderWay] | None = None
    outputs: dict[str, UnderWay] = field(default_factory=dict)
    #: How often it was asked who holds drives.
    asked: int = 0
    #: Surveys in which a drive does not answer after a purge, by serial: ``SIMULATED_SILENT=SSDQ0002=2``.
    silences: dict[str, int] = field(default_factory=lambda: silences_of_environment())
    purged: set[str] = field(default_factory=set)
    #: Kernel names of drives that are not there any more.
    unplugged: set[str] = field(default_factory=set)
    gone: bool = False
    #: What was written to drives whose data are compared.
    written: Stamp | None = None
    #: Kernel names of drives that an earlier session labelled and filled, and none purged since.
    inherited: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.inherited = set(self.media.filled)
        serials = {device.kname: device.serial or "" for device in self.world.disks}
        self.surroundings = Surroundings(self.scene.trouble, serials, slow=self.scene.slow, md_iops=self.scene.md_iops)

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float = 60.0,
        check: bool = True,
        stdin: bytes | None = None,
        repeatable: bool = False,
        must_finish: MustFinish | None = None,
    ) -> Completed:
        self.require_alive()
        done = self._done(unbound(argv), stdin)
        if self.observer:
            self.observer(done)
        if check and done.status:
            raise CommandFailed(f"{argv[0]} on {self.name} failed: {done.errors}", done)
        return done

    def _done(self, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        if argv[:2] == ("sh", "-c") and argv[2] in FETCHES:
            written = self.outputs[argv[4]].written()[int(argv[5]) if len(argv) > 5 else 0 :]
            return replace(completed(argv), stdout=gzip.compress(written, mtime=0))
        if argv[:2] == ("sh", "-c") and argv[2] == label.RAW and self.written:
            data = self._returned(argv[4], self.written.at(int(argv[5])), int(argv[6]))
            return replace(completed(argv), stdout=gzip.compress(data, mtime=0))
        if argv[:2] == ("sh", "-c") and argv[2] == label.RAW and self._serial(argv[4]) in self.power.held:
            data = self.power.read(self._serial(argv[4]), int(argv[5]), int(argv[6]))
            return replace(completed(argv), stdout=gzip.compress(data, mtime=0))
        if argv[0] == "cat" and (note := self.power.noted(argv[1])) is not None:
            return completed(argv, note)
        said = self.contents.answer(argv, stdin)
        return self._answer(argv) if said is None else completed(argv, said.decode())

    def _returned(self, path: str, written: Stamp, size_bytes: int) -> bytes:
        """What a drive returns where it is wrong."""
        right = stamp.filled(written, size_bytes)
        kind = self.scene.wrong[self.surroundings.serials[path.removeprefix("/dev/")]]
        answers = {
            "zeroes": bytes(size_bytes),
            "elsewhere": stamp.filled(written.at(1 << 20), size_bytes),
            "earlier": stamp.filled(replace(written, generation=written.generation ^ 1), size_bytes),
            "damaged": bytes([right[0] ^ 4]) + right[1:],
            "unstable": right,
        }
        return answers[kind]

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT", announces: bool = False) -> Tethered:
        self.require_alive()
        if unbound(argv)[2:3] == (stamped_io.OVERWRITE,):
            return self.power.overwrite(unbound(argv), self._serial(bound_to(argv)[1][0]))
        if unbound(argv)[0] != "fio":
            return Held(argv)
        if any(word.startswith("--name=stretch-") for word in argv):
            (path,) = [each.removeprefix("--output=") for each in argv if each.startswith("--output=")]
            process = self.power.write(unbound(argv), self._serial(bound_to(argv)[1][0]))
            self.outputs[path] = process.under_way
            return process
        if self.next_fio is None:
            raise NotImplementedError(f"it is not known what this would measure: {argv}")
        (path,) = [each.removeprefix("--output=") for each in argv if each.startswith("--output=")]
        self.outputs[path] = running = self.next_fio()
        return FioProcess(tuple(argv), running)

    @contextmanager
    def about_to_run(self, next_fio: Callable[[], UnderWay]) -> Iterator[None]:
        """What fio does if it is started inside."""
        self.next_fio = next_fio
        try:
            yield
        finally:
            self.next_fio = None

    def _serial(self, path: str) -> str:
        return next((disk.serial or "" for disk in self.world.disks if disk.path == path), "")

    def line_process(self, argv: Sequence[str]) -> Counting:
        """Of whatever name, its drives' counters go up by the law for 4 KiB; see ``rig.observe.live_stats``."""
        return Counting(lambda: simulated_fio.IOPS * self.geometry.data_drives)

    def unfinished(self) -> tuple[str, ...]:
        return ()

    def leave_unfinished(self) -> None:
        """Nothing must finish."""

    def close(self) -> None:
        """Nothing is open."""

    def begin_run(self) -> None:
        """What happens when fio would start."""
        if self.runs == self.scene.lost_at:
            self.gone = True
        self.require_alive()
        if self.runs == self.scene.interrupted_at:
            raise KeyboardInterrupt
        if self.runs == self.scene.killed_at:
            os._exit(9)
        time.sleep(self.scene.takes_s)

    def write(self, array: Array, size_bytes: int) -> None:
        """To every member, behind the first MiB."""
        self.media.write((drive.kname for drive in array.members), size_bytes)
        for drive in array.members if size_bytes else ():
            if drive.kname not in self.inherited:
                self.contents.data[drive.path] = 1 << 20

    def require_alive(self) -> None:
        if self.gone:
            raise MachineLost(f"{self.name} is lost: no answer")

    @property
    def world(self) -> World:
        digits = re.sub(r"\D", "", self.name.partition(".")[0])  # dut2's drives are not dut1's
        sheet = os.environ.get("SIMULATED_SHEET")
        transport, link, queue = interface(sheet) if sheet else ("nvme", None, None)
        return World(
            [
                self._as_it_came_back(disk)
                for disk in self._disks(digits, transport, link, queue)
                if not self.power.is_off(disk.serial or "")
            ]
        )

    def _as_it_came_back(self, disk: Device) -> Device:
        """A drive with another name, capacity or serial after its power was cut, if that is its fault."""
        fault = self.power.fault(disk.serial or "")
        if fault == "renamed":
            disk.kname, disk.number = f"nvme{int(disk.number.partition(':')[2]) + 20}n1", f"{disk.number}0"
            self.surroundings.serials = {**self.surroundings.serials, disk.kname: disk.serial or ""}
            former = f"/dev/nvme{int(disk.kname[4:-2]) - 21}n1"
            if former in self.contents.pages:
                self.contents.pages[disk.path] = self.contents.pages.pop(former)
            if former in self.contents.data:
                self.contents.data[disk.path] = self.contents.data.pop(former)
        elif fault == "smaller":
            disk.size //= 2
        elif fault == "swapped":
            disk.serial, disk.wwn = "OTHER", None
        elif fault == "mounted":
            disk.mountpoint = "/mnt"
        return disk

    def _disks(self, digits: str, transport: str | None, link: str | None, queue: int | None) -> list[Device]:
        numbers = range(1, self.scene.drives + 1)
        return (
            [
                Device(
                    f"nvme{number - 1}n1", "disk", f"259:{number}",
                    size=self.scene.sizes.get(f"SSDQ{digits}{number:04}", LSBLK_BYTES),
                    serial=f"SSDQ{digits}{number:04}", wwn=f"{self.scene.wwn}{number:04}" if self.scene.wwn else None,
                    model=self.scene.model_of(number), transport=transport, link=link, logical_block=self.scene.block,
                    queue_depth=self.scene.queue or queue, minimum_io=self.scene.preferred,
                    use="writer" if f"used:SSDQ{digits}{number:04}" in self.scene.trouble else None,
                )
                for number in numbers
                if f"nvme{number - 1}n1" not in self.unplugged
            ]
        )  # fmt: skip

    def _answer(self, argv: tuple[str, ...]) -> Completed:
        if argv[:2] == ("sh", "-c"):
            return completed(argv, self._script(argv))
        if argv[:2] == ("fio", "--parse-only") and self.scene.unknown_option:
            return completed(argv, status=1, stderr=f"fio: unrecognized option '--{self.scene.unknown_option}=1'")
        if argv[0] == "rm":
            for path in argv[1:]:
                self.outputs.pop(path, None)
        if argv[0] == "blkdiscard" and argv[1].startswith("--offset="):
            offset, length = (int(word.partition("=")[2]) for word in argv[1:3])
            self.erasure.discarded.append((argv[3], offset, length))
        elif argv[0] == "blkdiscard":
            self.purged.add(argv[-1])
            kname = argv[-1].removeprefix("/dev/")
            if self.surroundings.unplugged_in_purge(kname):
                self.unplugged.add(kname)
                return completed(
                    argv, status=1, stderr=f"blkdiscard: cannot open {argv[-1]}: No such file or directory"
                )
            self.media.purge(argv[-1])
            self.contents.wipe(argv[-1])
            self.inherited.discard(argv[-1].removeprefix("/dev/"))
        if argv[:2] == ("mdadm", "--create"):
            said = dict(each.removeprefix("--").split("=", 1) for each in argv if each.startswith("--") and "=" in each)
            self.arrays[argv[2]] = said["uuid"]
            self.geometry, self.missing = Geometry(RaidLevel(f"raid{said['level']}"), int(said["raid-devices"])), 0
        if argv[:2] == ("mdadm", "--stop"):
            self.arrays.pop(argv[2])
        if argv[:2] == ("test", "-e"):
            return completed(argv, status=0 if f"/dev/{argv[2].split('/')[3]}" in self.arrays else 1)
        return completed(argv, self._command(argv))

    def _command(self, argv: tuple[str, ...]) -> str:
        degraded = max(self.missing, self.surroundings.dropped)
        state = "array_state:clean", "sync_action:idle", f"degraded:{degraded}", "mismatch_cnt:0"
        answers: dict[str, Callable[[], str]] = {
            "lsblk": lambda: self.world.lsblk(),
            "id": lambda: "0",
            "nproc": lambda: "2",
            "fio": lambda: "fio-3.33" if "--version" in argv else "",
            "cat": lambda: "2147483648\n" * (len(argv) - 1),
            "blockdev": lambda: str(min(each.size for each in self.world.disks) * self.geometry.data_drives),
            "ls": lambda: "\n".join(device.kname for device in self.world.disks),
            "nvme": lambda: json.dumps({"oacs": 2, "fna": 0}),
            "smartctl": lambda: self._identified(argv[-2], argv[-1]),
            "mdadm": lambda: f"MD_UUID={self.arrays.get(argv[-1], '')}",
            "grep": lambda: "".join(f"/sys/block/md100/md/{each}\n" for each in state),
        }
        return answers.get(argv[0], lambda: "")()

    def _script(self, argv: tuple[str, ...]) -> str:
        script, arguments = argv[2], argv[4:]
        if script == sampling.SCRIPT:
            filled = arguments[3].removeprefix("/dev/") in self.media.filled
            return self.erasure.scanned(arguments[2:], self.serials_of(arguments[3]), filled=filled)
        if script == erase.PROMISE:
            return f"{self.erasure.promise}\n" * (len(arguments) // 2)
        if script == survey.EXPAND:
            return "".join(map(self._expanded, arguments)) + "end \0"
        if script == survey.FACTS:
            return self._surveyed(arguments[2:])
        if script == facts.MISSING:
            return "\n".join(each for each in arguments if each in self.scene.missing)
        if script == facts.FACTS:
            return "hostname simulated\nkernel Linux 6.1\nmachine_id 0123456789abcdef\n"
        if script == driver.LOAD:
            return os.environ.get("SIMULATED_NO_MD", "")
        if script == engine_limits.SCRIPT:
            return os.environ.get("SIMULATED_LIMITS", "")
        if script == health.SCRIPT:
            return "".join(f"{json.dumps(self._smart(path))}\n" for path in arguments[1::2])
        if script == media_count.SCRIPT:
            return self.surroundings.media_counts(arguments[::3])
        if script == locking.SCRIPT:
            return "".join(map(self._locking, arguments[::3]))
        if script == inspection.SCRIPT:
            return self._inspected(arguments)
        if script == self_test.SCRIPT:
            return self.self_tests.script(arguments[0], arguments[1:], self.surroundings.serials)
        if script == write_cache.SCRIPT:
            return self.caches.script(arguments, self.surroundings.serials)
        if script == zero.ZEROES:
            return self.media.zeroes(arguments[0], arguments[2:])
        if script == write_counters.SCRIPT:
            return self.media.counters(arguments)
        if script == lease.HELD:
            if not arguments[1].endswith(".lock"):  # of all work of the machine that must finish
                return ""
            self.asked += 1
            note = lease.Note("anna@one", 77, "20261122T093701Z-ab12", 10_800).to_line()
            return "".join(f"{each}\t3600\t{note} \n" for each in arguments[1:3] if self.asked <= self.scene.held)
        if script == shared_paths.SCRIPT:
            boot = str(uuid.uuid5(uuid.NAMESPACE_DNS, self.name))
            return simulated_paths.text(boot, arguments, os.environ.get("SIMULATED_SWITCHED", "").split())
        if script == drive_failure.SCRIPT:
            return self.surroundings.states(arguments[0], arguments[1:])
        if script == surroundings.SCRIPT:
            return self.surroundings.text(argv)
        if script == mdadm.REMOVE_EMPTY:
            return "\n".join(set(arguments) & set(os.environ.get("SIMULATED_EMPTY_ARRAYS", "").split()))
        return "2048\n" if script == mdadm.OFFSETS else ""

    def serials_of(self, path: str) -> list[str]:
        """Serial number of a drive, or those of all drives of an array."""
        every = self.surroundings.serials
        known = every.get(path.removeprefix("/dev/"))
        return [known] if known else [*every.values()]

    def _surveyed(self, candidates: Sequence[str]) -> str:
        world = self.world
        for disk in world.disks:
            left = self.silences.get(disk.serial or "", 0)
            if left and disk.path in candidates and disk.path in self.purged:
                disk.use = "silent"
                self.silences[disk.serial or ""] = left - 1
        return world.facts(*candidates)

    def _identified(self, smart_type: str, path: str) -> str:
        """What smartctl identifies a drive as; the first one perhaps only by a type."""
        if self.scene.without_health:
            return self.scene.without_health
        if self.scene.unidentified and smart_type == "auto" and path == self.world.disks[0].path:
            return self.scene.unidentified
        serial = self.surroundings.serials.get(path.removeprefix("/dev/"), "")
        return json.dumps({**json.loads(SMART), "serial_number": "S" if "shared" in self.scene.trouble else serial})

    def _locking(self, kname: str) -> str:
        """A Level 0 Discovery of a drive that is locked by TCG Opal, or nothing."""
        if f"locked:{self.surroundings.serials.get(kname)}" not in self.scene.trouble:
            return ""
        discovery = [0, 0, 0, 60, *[0] * 44, 0, 2, 16, 12, 0x0F, *[0] * 11]
        return f"{kname} discovery {' '.join(map(str, discovery))}\n"

    def _smart(self, path: str) -> object:
        """What smartctl says of a drive."""
        kname = path.removeprefix("/dev/")
        if kname in self.surroundings.gone:
            message = {"string": f"Smartctl open device: {path} failed: No such device", "severity": "error"}
            return {"smartctl": {"exit_status": 2, "messages": [message]}}
        answer = json.loads(SMART)
        log = answer["nvme_smart_health_information_log"]
        if self.scene.worn and self.runs:
            log["critical_warning"] = 1
        serial = self.surroundings.serials[kname]
        if self.runs and f"endurance:{serial}" in self.scene.trouble:  # 51.2 TB wear it by three per cent
            log["percentage_used"] += 3
            log["data_units_written"] += 100_000_000
        if self.runs and f"unread:{serial}" in self.scene.trouble:
            return {"smartctl": {"exit_status": 2, "messages": [{"string": "I/O error", "severity": "error"}]}}
        if self.runs and f"warm:{serial}" in self.scene.trouble:
            log["critical_warning"] = 2
        if self.runs and f"shutdown:{serial}" in self.scene.trouble:
            log["unsafe_shutdowns"] += 1
        if self.runs and f"assessment:{self.surroundings.serials[kname]}" in self.scene.trouble:
            answer["smart_status"]["passed"] = False
        return answer

    def _inspected(self, arguments: Sequence[str]) -> str:
        """Healthy drives, unless ``SIMULATED_INSPECTED`` has other sections: JSON of a serial, then of a section."""
        other = json.loads(os.environ.get("SIMULATED_INSPECTED", "{}"))
        serials = {device.kname: device.serial or "" for device in self.world.disks}
        models = {device.kname: device.model or "" for device in self.world.disks}
        return (
            "".join(
                inspected.text(
                    name,
                    {
                        **inspected.nvme(serials[name], models[name]),
                        **self.self_tests.sections(name, serials[name]),
                        **other.get(serials[name], {}),
                    },
                )
                for name in arguments[::3]
            )
            + "==end\n"
        )

    def _expanded(self, pattern: str) -> str:
        """Every pattern with a star is all drives; any other is those that it matches."""
        is_all = "*" in pattern or "?" in pattern
        found = [each.kname for each in self.world.disks if is_all or fnmatchcase(each.path, pattern)]
        return f"pattern {pattern}\0" + "".join(f"path /dev/{each}\0kname {each}\0disk \0" for each in found)


def simulated_run(setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
    """``fixed_time.run``, unless something comes in between; its fio process is a simulated one."""
    machine = machine_of(setup)
    machine.runs += 1
    mistake(machine, "run", str(array.geometry), str(workload))

    def ran(array: Array, parts: Sequence[Sequence[Interval]]) -> None:
        machine.surroundings.ran(array, parts)
        machine.write(array, sum(traffic(part).write_bytes for part in parts))

    scene = machine.scene
    is_by_volume = setup.protocol.precondition.drift_percent > 0 and kind in fixed_time.PREPARATIONS
    pace = simulated_fio.pace(array, workload) if is_by_volume else 1.0
    fio = simulated_fio.Fio(
        scene.speeds(array),
        scene.noise,
        machine.runs,
        scene.md_iops,
        scene.path_bytes_per_s,
        restless(scene),
        pace,
        ran,
    )

    def under_way() -> UnderWay:
        machine.begin_run()
        return struck(machine, array, fio.process(array, workload, window))

    with machine.about_to_run(under_way):
        return REAL_RUN(setup, array, workload, kind, window)


def restless(scene: Scene) -> tuple[str, ...]:
    """Drives with the trouble ``restless:SERIAL``."""
    return tuple(each.partition(":")[2] for each in scene.trouble if each.startswith("restless:"))


def struck(machine: SimulatedMachine, array: Array, running: UnderWay) -> UnderWay:
    """Let the process end early if drives fail under it."""
    if words := machine.surroundings.failing(array):
        running.last_words, running.dies_s = words, 1.5 * running.report_s
    return running


def simulated_fail(setup: Setup, array: Array, missing: int) -> Array:
    machine_of(setup).missing = missing
    return simulated_fio.fail(setup, array, missing)


def simulated_rebuild(setup: Setup, array: Array, workload: Workload) -> Rebuild:
    found = simulated_fio.rebuild(simulated_run)(setup, array, workload)
    machine_of(setup).missing = 0
    return found


def simulated_load(machine: object, target: JobTarget, load: Load) -> LoadTrial:
    """A job of fio is at ease."""
    return LoadTrial(load.engine, load.jobs, 75_000, 0.2)


def simulated_ceiling(setup: Setup, geometry: Geometry, workload: Workload) -> Ceiling:
    """That of an md that is the bottleneck; else the machine has no memory devices."""
    md_iops = machine_of(setup).scene.md_iops
    if math.isinf(md_iops):
        return REAL_CEILING(setup, geometry, workload)
    return Ceiling(geometry, str(workload), "null_blk", md_iops)


def simulated_read_back(setup: Setup, array: Array, fill: Fill, filled: StampedFill) -> ReadBack:
    """``read_back.compare``, with simulated processes."""
    machine = machine_of(setup)
    machine.written = filled.stamp
    processes = reading_back(machine, array, fill)
    with machine.about_to_run(lambda: next(processes)):
        found = REAL_READ_BACK(setup, array, fill, filled)
    machine.written = None
    return found


def reading_back(machine: SimulatedMachine, array: Array, fill: Fill) -> Iterator[UnderWay]:
    """The process that compares all data, and those that read slow parts again: each is followed by a median one."""
    wrong = machine.scene.wrong
    died = True
    while died:
        whole = struck(machine, array, simulated_fio.reading(array, fill, wrong))
        whole.ran = partial(machine.surroundings.ran, array)
        yield whole
        died = whole.dies_s < math.inf
    for drive, target in zip(array.members, array.targets, strict=True):
        kind = wrong.get(drive.serial or "", "")
        for is_slow in (kind == "slow", False) * read_back.MOST_AGAIN if kind else ():
            yield simulated_fio.reading_a_part(target, fill, is_slow=is_slow)


def simulated_fill(setup: Setup, array: Array, fill: Fill, pattern: str = "") -> None:
    """``array_lifecycle.fill_up``, with a simulated process; where a rig that is broken breaks."""
    machine = machine_of(setup)
    mistake(machine, "fill", str(array.geometry))
    if str(array.geometry) == machine.scene.broken:
        raise RigError(f"fio on {machine.name} was refused by {array.path}")
    with machine.about_to_run(lambda: simulated_fio.filling(array, fill)):
        REAL_FILL(setup, array, fill, pattern)
    if fill.passes:
        machine.write(array, fill.passes * array.size_bytes)


def simulated_stamps(machine: SimulatedMachine, job: Job, limit_s: float) -> SimpleNamespace:
    """``process.run`` of a job that writes stamps, or compares those beside discarded ranges."""
    machine.require_alive()
    (path,) = [each.removeprefix("--filename=") for each in job.options if each.startswith("--filename=")]
    is_lost = "neighbours" in machine.erasure.kinds(machine.serials_of(path))
    return SimpleNamespace(accepted=lambda expectation: None, is_lost=is_lost)


def mistake(machine: SimulatedMachine, *what: str) -> None:
    """Raise what a bug of the program would raise, not an error of the rig."""
    for each in machine.scene.mistakes:
        if set(each.split(":")) <= set(what):
            raise IndexError(f"{each} is out of range")


def simulated_body(setup: Setup, switch: PowerSwitch | None) -> SimulatedBody:
    """Instead of ``surviving.body_of``: an array that keeps its data."""
    chunk = parse_size(setup.protocol.array.chunk)
    return SimulatedBody(drives=len(setup.held.drives), can=Abilities(power_cut=switch is not None), chunk=chunk)


def host_pace() -> float:
    """How long a replay takes on the machine without drives, over the trace: ``SIMULATED_HOST_PACE``."""
    return float(os.environ.get("SIMULATED_HOST_PACE", "1"))


def machine_of(setup: Setup) -> SimulatedMachine:
    if not isinstance(setup.machine, SimulatedMachine):
        raise TypeError("this is a real machine")
    return setup.machine


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Replace the machine, for this session only: pytester runs many in one process."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)

    def connect_local(observer: Observer | None = None) -> SimulatedMachine:
        return SimulatedMachine("localhost", Scene.of_environment("localhost"), observer)

    def connect_ssh(target: SimpleNamespace, observer: Observer | None = None) -> SimulatedMachine:
        name = target.name or target.destination
        return SimulatedMachine(name, Scene.of_environment(name), observer)

    @contextmanager
    def start(drives: Sequence[media.ScaleModel], release: str = "") -> Iterator[SimpleNamespace]:
        for slow in (drive for drive in drives if drive.iops < media.shelf(1)[0].iops):
            patch.setenv("SIMULATED_SLOW", f"{slow.serial}={media.SLOW}")
        patch.setenv("SIMULATED_DRIVES", str(len(drives)))  # for xdist's workers, too
        reach = SimpleNamespace(user="root", host="127.0.0.1", port=22, identity=Path("/dev/null"), options=())
        yield SimpleNamespace(ssh=reach)

    # No simulated session must survive a power cut, and waiting for the disk took half of the time of each.
    patch.setattr(os, "fsync", lambda descriptor: None)
    passed_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: sum(passed_s), sleep=passed_s.append)
    for module in (self_test, drive_cuts, drive_power, power_cut):
        patch.setattr(module, "time", clock)
    patch.setattr(drive_cuts, "MOST_BYTES", 1 << 16)
    patch.setattr(self_test, "LIMIT_S", 100.0)
    patch.setattr(manifest, "version", VERSION)
    patch.setattr(local, "connect", connect_local)
    patch.setattr(ssh, "connect", connect_ssh)
    patch.setattr(lab, "start", start)
    patch.setattr(fixed_time, "run", simulated_run)
    patch.setattr(array_lifecycle, "fill_up", simulated_fill)
    patch.setattr(read_back, "compare", simulated_read_back)
    patch.setattr(erase, "process", SimpleNamespace(run=simulated_stamps))
    patch.setattr(stamped_io, "differs", lambda finished, expectation: finished.is_lost)
    patch.setattr(members, "fail_members", simulated_fail)
    patch.setattr(rebuild, "rebuild", simulated_rebuild)
    patch.setattr(ceiling, "measure", simulated_ceiling)
    patch.setattr(load_calibration, "try_load", simulated_load)
    patch.setattr(replays, "fio_alone", lambda machine, job, seconds: seconds / replays.LONGEST * host_pace())
    if integrity.body_of is REAL_BODY:  # a test may have its own
        patch.setattr(integrity, "body_of", simulated_body)
