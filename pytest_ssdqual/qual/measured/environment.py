"""What the machine under test and its drives told before and after one fio process; values, and nothing judged yet.

The rule of the module: what could not be read is None, never a value that would pass for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

#: Of the kernel's messages, by number (syslog(3)): those that speak of trouble.
LEVELS = "emergency", "alert", "critical", "error", "warning"


@dataclass(frozen=True, slots=True)
class Traffic:
    """I/Os and bytes of one block device; an I/O that was merged into another one is counted too."""

    reads: int
    writes: int
    read_bytes: int
    write_bytes: int

    @property
    def ios(self) -> int:
        return self.reads + self.writes

    @property
    def total_bytes(self) -> int:
        return self.read_bytes + self.write_bytes


@dataclass(frozen=True, slots=True)
class DriveLink:
    """How a drive is connected, and how it could be."""

    #: ``PCIe`` or ``SATA``.
    kind: str
    #: Of one lane: GT/s of PCIe, Gb/s of SATA. Of two looks the worse one.
    speed: float
    width: int
    #: What the drive itself can do.
    max_speed: float
    max_width: int

    @property
    def share(self) -> float:
        """Of the rate that it could have, 0…1."""
        return self.speed * self.width / (self.max_speed * self.max_width)

    def describe(self) -> str:
        """``PCIe 8 GT/s x2, at most 16 GT/s x4``."""
        if self.kind == "SATA":
            return f"SATA {self.speed:g} Gb/s, at most {self.max_speed:g} Gb/s"
        return f"{self.kind} {self.speed:g} GT/s x{self.width}, at most {self.max_speed:g} GT/s x{self.max_width}"


@dataclass(frozen=True, slots=True)
class Heat:
    """How warm a drive was, by its own account."""

    #: The highest that is known of: at both looks, and in between if the drive keeps a maximum that rose.
    temperature_c: float | None = None
    #: Its own warning threshold.
    limit_c: float | None = None
    #: Whether it called itself too warm at either look.
    too_warm: bool | None = None
    #: Growth of the times that it counted itself too warm, or slowed itself down; seconds, some drives count minutes.
    too_warm_s: float | None = None
    #: How often it began to slow itself down, or found itself beyond its limit.
    events: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceTraffic:
    """A drive, or an array: what went over it."""

    #: By the kernel; None if it does not count, or not from the one look to the other.
    counted: Traffic | None
    #: By fio, the whole process; None of a member of an array, which fio does not know.
    asked: Traffic | None


@dataclass(frozen=True, slots=True)
class SeenDrive:
    #: Serial number.
    name: str
    device: DeviceTraffic
    heat: Heat
    link: DriveLink | None


@dataclass(frozen=True, slots=True)
class SeenArray:
    device: DeviceTraffic
    #: 0: it has none (RAID 1).
    chunk_bytes: int | None
    #: Whether md writes a bitmap beside the data.
    bitmap: bool | None
    #: What the kernel's log says of resyncs, checks and recoveries that began meanwhile; None: it cannot be read.
    syncs: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Cpu:
    """Shares of CPU time in use, 0…1; waiting for I/O is idle, and time stolen by a hypervisor is in use."""

    count: int
    #: All CPUs together.
    busy: float
    #: The busiest one.
    busiest: float
    #: The busiest of those that spent most of it in the kernel: interrupts, md's threads, submission of I/O.
    busiest_in_kernel: float
    #: Share of the time that the most affected CPU was slowed down by its own heat.
    throttled: float | None


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message of the kernel; its text is printable, and cut if it is long."""

    #: By the kernel's own clock, as dmesg shows it: since the boot, and without time that the machine was suspended.
    time_s: float
    #: 0 (emergency) to 7 (debug), as in syslog; None where only dmesg could be asked.
    level: int | None
    text: str

    def describe(self) -> str:
        """``[ 1421.565657] error: nvme nvme0: I/O 12 QID 1 timeout``; the word for warnings and worse only."""
        word = f"{LEVELS[self.level]}: " if self.level is not None and 0 <= self.level < len(LEVELS) else ""
        return f"[{self.time_s:12.6f}] {word}{self.text}"


@dataclass(frozen=True, slots=True)
class KernelLog:
    """What the kernel said meanwhile of the array, its drives, and what they hang on."""

    lines: tuple[KernelLine, ...]
    #: How many more of these there were.
    more: int
    #: Whether the log had forgotten messages of that time before it was read: some of these may be missing.
    lost: bool


@dataclass(frozen=True, slots=True)
class ProcessEnvironment:
    """Around one fio process; the looks are just before and just after it."""

    #: Between the looks, by the kernel's clock that nobody can set.
    seconds: float
    #: By fio's own clock, how long it ran.
    fio_s: float
    #: How much further the machine's wall clock went than the other one.
    clock_jump_s: float | None
    #: How exactly that is known.
    clock_resolution_s: float
    cpu: Cpu | None
    #: CPU time of fio's jobs, mean share of one CPU each.
    jobs_busy: float | None
    #: In the order of ``Run.members``.
    drives: tuple[SeenDrive, ...]
    array: SeenArray | None
    #: None: the kernel's log could not be read, or the record is of a version that did not collect it.
    kernel: KernelLog | None = None

    def of_drive(self, index: int) -> ProcessEnvironment:
        """Of drives side by side what concerns one of them; the machine is the same for all."""
        return replace(self, drives=self.drives[index : index + 1])

    def to_record(self) -> dict[str, object]:
        """Plain JSON data; ``from_record`` reads it back."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ProcessEnvironment:
        """The inverse of ``to_record``; ``KeyError`` or ``TypeError`` for anything else."""
        array, cpu, kernel = record["array"], record["cpu"], record.get("kernel")
        return cls(
            **{
                **record,
                "cpu": cpu and Cpu(**cpu),
                "drives": tuple(map(_drive, record["drives"])),
                "array": array and _array(array),
                "kernel": kernel and kernel_log(kernel),
            }
        )


def kernel_log(record: Mapping[str, Any]) -> KernelLog:
    """The inverse of ``asdict``; ``KeyError`` or ``TypeError`` for anything else."""
    return KernelLog(**{**record, "lines": tuple(KernelLine(**each) for each in record["lines"])})


def total(traffic: Sequence[Traffic]) -> Traffic:
    """Of several devices together."""
    return Traffic(
        sum(each.reads for each in traffic),
        sum(each.writes for each in traffic),
        sum(each.read_bytes for each in traffic),
        sum(each.write_bytes for each in traffic),
    )


def _drive(record: Mapping[str, Any]) -> SeenDrive:
    link = record["link"]
    return SeenDrive(record["name"], _device(record["device"]), Heat(**record["heat"]), link and DriveLink(**link))


def _array(record: Mapping[str, Any]) -> SeenArray:
    syncs = record["syncs"]
    whole = {**record, "device": _device(record["device"]), "syncs": None if syncs is None else tuple(syncs)}
    return SeenArray(**whole)


def _device(record: Mapping[str, Any]) -> DeviceTraffic:
    counted, asked = record["counted"], record["asked"]
    return DeviceTraffic(counted and Traffic(**counted), asked and Traffic(**asked))
