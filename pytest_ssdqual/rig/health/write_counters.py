"""Write counters of drives, to detect writes that are not from this run.

The kernel counts every sector it sends, exactly, from the moment a drive appears (Documentation/block/stat.rst); a
drive counts what it receives for its whole life, coarsely (NVMe: thousands of 512-byte blocks, rounded up). So the
kernel's count is used within one boot, and the drive's own otherwise. Neither is complete: the kernel's lacks commands
that programs send to a drive past the block layer (SG_IO, nvme-cli), the drive's lacks discards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.health.smart_answer import NVME_DATA_UNIT_BYTES
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, MachineLost, RigError

SECTOR_BYTES = 512
#: Bytes that md adds when an array is stopped: the superblock's last states, and this program's erasing of it. Measured
#: (kernel 6.1, mdadm 4.2, all levels, with a bitmap and without): at most 6,656 bytes a member, which are 4,096 and
#: five single sectors; 24 KiB where sectors are of 4 KiB. Between two readings of an unused drive it is 0, including
#: everything that the guard does.
STOPPING_BYTES = 32 << 10
#: Fields of /sys/block/<name>/stat, counted from 0: sectors written; sectors discarded (since kernel 4.18).
WRITTEN, DISCARDED = 6, 13

SCRIPT = scripts.text("write_counters.sh")


@frozen
class Written:
    """Write counters of one drive at one moment."""

    boot_id: str
    #: The kernel's number of this appearance of the drive (diskseq), in this boot; 0 if the kernel reports none.
    appearance: int
    #: 512-byte sectors written since the drive appeared, whatever its own sector size. WRITE ZEROES counts as a write.
    sectors: int
    discarded_sectors: int
    #: Lifetime bytes written by the drive's own SMART data; None if it reports none, or was not queried.
    host_bytes: int | None


def read(machine: Machine, drives: Sequence[Drive], *, smart: bool = True) -> dict[str, Written]:
    """Read the write counters of every drive, by identity: one command, and with ``smart`` another.

    SMART data that is not available is None; ``RigError`` if the kernel's counters are not available.
    """
    if not drives:
        return {}
    names = [drive.sysfs_name for drive in drives]
    lines = scripts.answer(machine, SCRIPT, "counters", *names).text.splitlines()
    boot_id = lines[0].removeprefix("boot ") if lines and lines[0].startswith("boot ") else ""
    host_bytes = _host_bytes(machine, drives) if smart else {}
    written = {}
    for drive, name in zip(drives, names, strict=True):
        rows = [line.split()[1:] for line in lines[1:] if line.split()[:1] == [name]]
        if not boot_id or not rows:
            raise RigError(f"{machine.name} reports no write counters for {drive.describe()}")
        if any(decimal(word) is None for row in rows for word in row):
            raise RigError(f"{machine.name} reports write counters for {drive.describe()} that are not numbers")
        written[drive.identity] = Written(
            boot_id,
            _field(rows[0], 0),
            _head_or_paths([_field(row[1:], WRITTEN) for row in rows]),
            _head_or_paths([_field(row[1:], DISCARDED) for row in rows]),
            host_bytes.get(drive.path),
        )
    return written


def written_since(before: Written, now: Written) -> int | None:
    """Bytes written to or discarded on a drive between two readings; None if that cannot be determined.

    Exact within one appearance in one boot; otherwise as coarse as the drive's own count, and without discards.
    """
    if _same_count(before, now):
        sectors = now.sectors - before.sectors + now.discarded_sectors - before.discarded_sectors
        return sectors * SECTOR_BYTES
    return _by_its_own_figure(before, now)


def unchanged(before: Mapping[str, Written], now: Mapping[str, Written], allowance_bytes: int) -> list[str]:
    """Return the reasons why the drives of ``before`` (by identity) may have changed; empty if they have not.

    One sentence for each drive that received more than ``allowance_bytes``, or for which that cannot be determined.
    A drive's own count may rise by one NVMe data unit beyond the allowance; a drive with larger units is then reported.
    """
    reasons = []
    for identity, earlier in before.items():
        if identity not in now:
            reasons.append(f"{identity} is not among the drives any more")
            continue
        written = written_since(earlier, now[identity])
        if written is None:
            reasons.append(
                f"cannot determine whether {identity} was written to: the machine was rebooted, or the drive "
                "replugged, and the drive's own count does not help"
            )
        elif written > allowance_bytes + (0 if _same_count(earlier, now[identity]) else NVME_DATA_UNIT_BYTES):
            reasons.append(f"{identity} was written to meanwhile: {written:,} bytes")
    return reasons


def _same_count(before: Written, now: Written) -> bool:
    """Return True if the kernel's counters continue from one reading to the other."""
    return (
        (before.boot_id, before.appearance) == (now.boot_id, now.appearance)
        and before.sectors <= now.sectors
        and before.discarded_sectors <= now.discarded_sectors
    )


def _by_its_own_figure(before: Written, now: Written) -> int | None:
    if before.host_bytes is None or now.host_bytes is None or now.host_bytes < before.host_bytes:
        return None
    return now.host_bytes - before.host_bytes


def _host_bytes(machine: Machine, drives: Sequence[Drive]) -> dict[str, int | None]:
    from pytest_ssdqual.rig.health import health  # it loads pydantic, and commands that read no drive load this module

    try:
        return {path: drive_health.data_written_bytes for path, drive_health in health.read(machine, drives).items()}
    except MachineLost:
        raise
    except RigError:
        return {}  # smartctl is missing or cannot read a drive: within one boot its data are not needed


def _head_or_paths(counts: Sequence[int]) -> int:
    """Count of the head (or a plain drive), which is first; the sum of its paths repeats it, or is the only count."""
    return max(counts[0], sum(counts[1:]))


def _field(fields: Sequence[str], number: int) -> int:
    return int(fields[number]) if number < len(fields) else 0
