"""How much was written to each drive, to detect writes that are not from this run.

The kernel counts every sector it sends, exactly, from the moment a drive appears (Documentation/block/stat.rst); a
drive counts what it receives for its whole life, coarsely (NVMe: thousands of 512-byte blocks, rounded up). So the
kernel's count is used within one boot, and the drive's own otherwise. Neither is complete: the kernel's lacks commands
that programs send to a drive past the block layer (SG_IO, nvme-cli), the drive's lacks discards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from pytest_ssdqual.qual import strict_json
from pytest_ssdqual.rig.drives import health
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, MachineLost, RigError

SECTOR_BYTES = 512
#: Bytes that md adds when an array is stopped: the superblock's last states, and this program's erasing of it. Measured
#: (kernel 6.1, mdadm 4.2, all levels, with a bitmap and without): 6,656 bytes a member at most, which are 4,096 and
#: five single sectors; 24 KiB where sectors are of 4 KiB. Between two looks at a drive that nobody uses it is 0, guard
#: and all.
STOPPING_BYTES = 32 << 10
#: Fields of /sys/block/<name>/stat, counted from 0: sectors written; sectors discarded (since kernel 4.18).
WRITTEN, DISCARDED = 6, 13

SCRIPT = scripts.text("write_counters.sh")


@dataclass(frozen=True, slots=True)
class Written:
    """What one drive had been sent by one moment."""

    boot_id: str
    #: The kernel's number of this appearance of the drive, in this boot; 0 if it gives none.
    appearance: int
    #: Of 512 bytes, whatever the drive's own sectors are; since it appeared. WRITE ZEROES are writes here.
    sectors: int
    discarded_sectors: int
    #: In the drive's whole life, by its own SMART data; None if it does not tell, or was not asked.
    host_bytes: int | None

    def to_record(self) -> dict[str, object]:
        """Plain data for the journal."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> Self:
        """The inverse of ``to_record``; ``ValueError`` for anything else."""
        record = strict_json.table(record)
        try:
            boot_id, host_bytes = str(record["boot_id"]), record["host_bytes"]
        except KeyError as error:
            raise ValueError(f"it has no {error}") from error
        return cls(
            boot_id,
            _whole(record, "appearance"),
            _whole(record, "sectors"),
            _whole(record, "discarded_sectors"),
            None if host_bytes is None else _whole(record, "host_bytes"),
        )


def read(machine: Machine, drives: Sequence[Drive], *, smart: bool = True) -> dict[str, Written]:
    """What every drive has been sent by now, by its identity: one command, and with ``smart`` another.

    SMART data that cannot be had is None; ``RigError`` if the kernel's figures cannot.
    """
    if not drives:
        return {}
    names = [drive.kname.replace("/", "!") for drive in drives]
    lines = machine.run(["sh", "-c", SCRIPT, "counters", *names], check=False, repeatable=True).text.splitlines()
    boot_id = lines[0].removeprefix("boot ") if lines and lines[0].startswith("boot ") else ""
    host_bytes = _host_bytes(machine, drives) if smart else {}
    found = {}
    for drive, name in zip(drives, names, strict=True):
        counted = [line.split()[1:] for line in lines[1:] if line.split()[:1] == [name]]
        if not boot_id or not counted:
            raise RigError(f"{machine.name} does not say how much was written to {drive.describe()}")
        if not all(word.isascii() and word.isdecimal() and len(word) < 21 for each in counted for word in each):
            raise RigError(f"{machine.name} tells what was written to {drive.describe()} in another way than expected")
        found[drive.identity] = Written(
            boot_id,
            _field(counted[0], 0),
            _head_or_paths([_field(each[1:], WRITTEN) for each in counted]),
            _head_or_paths([_field(each[1:], DISCARDED) for each in counted]),
            host_bytes.get(drive.path),
        )
    return found


def written_since(before: Written, now: Written) -> int | None:
    """Bytes written or discarded between two looks at one drive; None if that cannot be told.

    Exact if it is the same appearance in the same boot; otherwise as coarse as the drive's own figure, and without
    discards.
    """
    if _same_count(before, now):
        sectors = now.sectors - before.sectors + now.discarded_sectors - before.discarded_sectors
        return sectors * SECTOR_BYTES
    return _by_its_own_figure(before, now)


def unchanged(before: Mapping[str, Written], now: Mapping[str, Written], allowance_bytes: int) -> list[str]:
    """Why the drives of ``before`` (by identity) may not be what they were then; empty if they are.

    A sentence for each that was sent more than ``allowance_bytes`` since, or of which nobody can tell. A drive's own
    figure may go up by a unit for whatever was allowed; one with units larger than NVMe's is told rather than trusted.
    """
    found = []
    for identity, then in before.items():
        if identity not in now:
            found.append(f"{identity} is not among the drives any more")
            continue
        sent = written_since(then, now[identity])
        if sent is None:
            found.append(
                f"it cannot be told whether {identity} was written to: it is another boot, or it was replugged, and "
                "the drive's own count does not help"
            )
        elif sent > allowance_bytes + (0 if _same_count(then, now[identity]) else health.NVME_DATA_UNIT_BYTES):
            found.append(f"{identity} was written to meanwhile: {sent:,} bytes")
    return found


def spread_of_writes(
    before: Mapping[str, Written], after: Mapping[str, Written], members: Iterable[str]
) -> dict[str, int | None]:
    """Bytes written (not discarded) to each member, by identity, between two looks; None if that cannot be told.

    For promises of even wear (seed A-35). What the drives wrote into their flash for it they alone know.
    """
    found: dict[str, int | None] = {}
    for identity in members:
        then, now = before.get(identity), after.get(identity)
        if then is None or now is None:
            found[identity] = None
        elif _same_count(then, now):
            found[identity] = (now.sectors - then.sectors) * SECTOR_BYTES
        else:
            found[identity] = _by_its_own_figure(then, now)
    return found


def _same_count(before: Written, now: Written) -> bool:
    """Whether the kernel counted on from the one to the other."""
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
    try:
        return {path: found.data_written_bytes for path, found in health.read(machine, drives).items()}
    except MachineLost:
        raise
    except RigError:
        return {}  # smartctl is missing or cannot read a drive: within one boot it is not needed


def _head_or_paths(counts: Sequence[int]) -> int:
    """A head, or a plain drive, is the first; what its paths have counted is the same again, or the only count."""
    return max(counts[0], sum(counts[1:]))


def _field(fields: Sequence[str], number: int) -> int:
    return int(fields[number]) if number < len(fields) else 0


def _whole(record: Mapping[str, object], name: str) -> int:
    value = strict_json.whole(record.get(name))
    if value is None:
        raise ValueError(f"A count of writes has a whole number for {name}.")
    return value
