"""What one look at the machine under test printed → ``Sight``; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_ssdqual.qual.measured.environment import DriveLink, Traffic
from pytest_ssdqual.rig.drives import temperature
from pytest_ssdqual.rig.drives.temperature import Warmth
from pytest_ssdqual.rig.observe import kernel_log
from pytest_ssdqual.rig.observe.kernel_log import Heard

SECTOR_BYTES = 512
#: Of a CPU's line in /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. What guests of this
#: machine use follows, and is in the first two already.
FIELDS = 8
#: Fields of /sys/block/<name>/stat (Documentation/block/stat.rst), counted from 0.
READS, READ_MERGES, READ_SECTORS, WRITES, WRITE_MERGES, WRITE_SECTORS = 0, 1, 2, 4, 5, 6
COUNT = re.compile(r"\d{1,20}", re.ASCII)
CLOCK = re.compile(r"(?P<s>\d{1,15})(?:\.(?P<ns>\d{9}))?", re.ASCII)
UPTIME = re.compile(r"\d{1,12}(?:\.\d+)?", re.ASCII)
LINK = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
#: The uptime's last digit.
TICK_S = 0.01


@dataclass(frozen=True, slots=True)
class Counted:
    """One block device at one moment."""

    #: The kernel's number of this appearance; 0 if it gives none.
    appearance: int = 0
    #: Since it appeared; None if it is not there, or does not count.
    traffic: Traffic | None = None


@dataclass(frozen=True, slots=True)
class DriveSight:
    counted: Counted
    warmth: Warmth
    link: DriveLink | None
    #: Threshold that hwmon knows.
    alarm_c: float | None


@dataclass(frozen=True, slots=True)
class Sight:
    """The machine at one moment."""

    uptime_s: float
    #: The wall clock at that moment, and how exactly it tells it.
    clock_s: float | None
    resolution_s: float
    #: Ticks by use, of each CPU; ``cpu`` is all of them.
    cpus: Mapping[str, tuple[int, ...]]
    #: How long each CPU was throttled in all, by its file in sysfs.
    throttled_ms: Mapping[str, int]
    drives: tuple[DriveSight, ...]
    array: Counted
    chunk_bytes: int | None
    bitmap: bool | None
    #: Of the kernel's log; None if it cannot be read.
    heard: Heard | None
    #: Whose messages count there; at the earlier look only, what is pulled out later had its names then.
    names: tuple[str, ...]


def parse(text: str, array: str, drives: Sequence[str]) -> Sight:
    """What ``surroundings.SCRIPT`` printed; ``array`` (empty: none) and ``drives`` are names as sysfs spells them.

    ``ValueError`` if it is not whole.
    """
    lines = text.splitlines()
    if not lines or lines[-1] != "==end":
        raise ValueError("the answer was cut short")
    sections, rest = _sections(lines[:-1])
    heard = next((name for name in sections if name.startswith("kernel ")), None)
    clock = next((line.split()[1:] for line in rest if line.startswith("clock ")), [])
    if len(clock) != 3:
        raise ValueError("it has no clock")
    uptime_s, clock_s, resolution_s = _clock(*clock)
    files = dict(line.split(":", 1) for line in rest if line.startswith("/sys/") and ":" in line)
    cpus = [line.removeprefix("/proc/stat:").split() for line in rest if line.startswith("/proc/stat:cpu")]
    return Sight(
        uptime_s=uptime_s,
        clock_s=clock_s,
        resolution_s=resolution_s,
        cpus={words[0]: tuple(map(_count, words[1 : 1 + FIELDS])) for words in cpus},
        throttled_ms={name: _count(value) for name, value in files.items() if name.endswith("_total_time_ms")},
        drives=tuple(_drive(name, files, "\n".join(sections.get(f"warmth {name}", ()))) for name in drives),
        array=_counted(array, files) if array else Counted(),
        chunk_bytes=_whole(files.get(f"/sys/block/{array}/md/chunk_size")),
        # A RAID 0 has no such file, and no bitmap.
        bitmap=files.get(f"/sys/block/{array}/md/bitmap/location", "none") != "none" if array else None,
        heard=kernel_log.parse(heard.removeprefix("kernel "), sections[heard]) if heard else None,
        names=kernel_log.names(sections.get("names", ())),
    )


def _sections(lines: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """What stands between ``==name`` and ``==``, by the whole of that first line, and all other lines."""
    sections: dict[str, list[str]] = {}
    rest: list[str] = []
    into = rest
    for line in lines:
        if line.startswith("=="):
            into = sections.setdefault(line.removeprefix("=="), []) if line != "==" else rest
        else:
            into.append(line)
    return sections, rest


def _clock(up: str, now: str, later: str) -> tuple[float, float | None, float]:
    """Uptime and wall clock of one moment, which lies between two readings of the uptime.

    busybox may lack nanoseconds; then the clock is known to a second.
    """
    if not UPTIME.fullmatch(up) or not UPTIME.fullmatch(later):
        raise ValueError("it has no uptime")
    resolution_s = (float(later) - float(up)) / 2 + TICK_S
    uptime_s = (float(up) + float(later)) / 2
    found = CLOCK.match(now)
    if not found:
        return uptime_s, None, resolution_s
    if found["ns"] is None:
        return uptime_s, float(found["s"]), resolution_s + 1.0
    return uptime_s, int(found["s"]) + int(found["ns"]) / 1e9, resolution_s


def _drive(name: str, files: Mapping[str, str], answer: str) -> DriveSight:
    warmth, link = temperature.parse(answer)
    own = {path: value for path, value in files.items() if path.startswith(f"/sys/block/{name}/device/")}
    alarms = [int(value) / 1000 for path, value in own.items() if path.endswith("/temp1_max") and _whole(value)]
    alarm_c = next((each for each in map(temperature.limit, alarms) if each is not None), None)
    return DriveSight(_counted(name, files), warmth, _pcie_link(own) or link, alarm_c)


def _counted(name: str, files: Mapping[str, str]) -> Counted:
    """Of the head, or of all its paths together where those alone count."""
    before, _, number = map(re.escape, name.rpartition("n"))
    path = re.compile(rf"/sys/block/{before}c\d+n{number}/stat")
    head = _traffic(files.get(f"/sys/block/{name}/stat", ""))
    paths = [found for file, value in files.items() if path.fullmatch(file) and (found := _traffic(value))]
    if head is None or files.get(f"/sys/block/{name}/queue/iostats") == "0":
        return Counted()
    traffic = Traffic(
        max(head.reads, sum(each.reads for each in paths)),
        max(head.writes, sum(each.writes for each in paths)),
        max(head.read_bytes, sum(each.read_bytes for each in paths)),
        max(head.write_bytes, sum(each.write_bytes for each in paths)),
    )
    return Counted(_whole(files.get(f"/sys/block/{name}/diskseq")) or 0, traffic)


def _traffic(text: str) -> Traffic | None:
    fields = [_count(word) for word in text.split()]
    if len(fields) <= WRITE_SECTORS:
        return None
    return Traffic(
        fields[READS] + fields[READ_MERGES],
        fields[WRITES] + fields[WRITE_MERGES],
        fields[READ_SECTORS] * SECTOR_BYTES,
        fields[WRITE_SECTORS] * SECTOR_BYTES,
    )


def _pcie_link(files: Mapping[str, str]) -> DriveLink | None:
    """From sysfs of the controller's PCI device; of several controllers the worst. ``Unknown`` is not known."""
    found: dict[str, dict[str, float]] = {}
    for path, value in files.items():
        device, _, what = path.rpartition("/")
        number = re.match(r"\d{1,9}(?:\.\d{1,9})?", value, re.ASCII)
        if what.endswith(("_link_speed", "_link_width")) and number and float(number[0]):
            found.setdefault(device, {})[what] = float(number[0])
    links = [
        DriveLink(
            "PCIe", each["current_link_speed"], int(each["current_link_width"]), each["max_link_speed"],
            int(each["max_link_width"]),
        )
        for each in found.values()
        if set(LINK) <= set(each)
    ]  # fmt: skip
    return min(links, key=lambda link: link.share, default=None)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and COUNT.fullmatch(text) else None


def _count(word: str) -> int:
    if not COUNT.fullmatch(word):
        raise ValueError(f"{word[:40]!r} is no count")
    return int(word)
