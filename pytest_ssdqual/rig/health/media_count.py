"""What drives count of their own writes to flash, read before and after a fio process.

Only what identifies itself is believed: a log of the Open Compute Project by its GUID, one of Intel by its keys, an ATA
attribute by the name that smartmontools' drive database (drivedb.h) gives it on known models. Logs of other layouts
(Micron, Samsung, SanDisk and Kioxia before OCP) are not read. An NVMe drive without a log counts the command that asks
for it as an error in its error log, so drives are asked only where write amplification is promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd

from pytest_ssdqual.qual.measured.environment import MediaCount, ProcessEnvironment
from pytest_ssdqual.qual.strict_json import LARGEST, read_json
from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.health.smart_answer import attribute
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine

SCRIPT = scripts.text("media_counts.sh")
#: End of the SMART / Health Information Extended log (Datacenter NVMe SSD Specification, SMART-22). Its first 16 bytes
#: are the bytes written to the media, of user and system data (SMART-1).
OCP_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
#: Intel's log: items of 12 bytes, the key first and six bytes of a count from the sixth on. It begins with the key of
#: program failures; F4h are bytes written to NAND, in units of 32 MiB (nvme-cli, intel-nvme.c).
INTEL_ITEM, INTEL_FIRST, INTEL_NAND, INTEL_UNIT_BYTES = 12, 0xAB, 0xF4, 32 << 20
#: ATA attributes of bytes written to flash → bytes of a unit.
ATA_UNIT_BYTES = {"NAND_Writes_32MiB": 32 << 20, "NAND_Writes_1GiB": 1 << 30, "Flash_Writes_GiB": 1 << 30}
#: Micron's and Crucial's pages programmed for the host, and beside it by the drive (247, 248), of an unknown size.
HOST_PAGES, OTHER_PAGES = "Host_Program_Page_Count", ("FTL_Program_Page_Count", "Bckgnd_Program_Page_Cnt")


def with_growth(
    machine: Machine, drives: Sequence[Drive], before: Mapping[str, MediaCount], seen: ProcessEnvironment
) -> ProcessEnvironment:
    """Read the counts of the drives again that reported one ``before``, and return the environment with their growth.

    ``RigError`` if the machine does not answer.
    """
    after = read(machine, [drive for drive in drives if drive.name in before])
    grown = {name: between(before[name], count) for name, count in after.items()}
    return replace(seen, drives=tuple(replace(drive, media=grown.get(drive.name)) for drive in seen.drives))


def read(machine: Machine, drives: Sequence[Drive]) -> Mapping[str, MediaCount]:
    """Return the counts of the drives' lives, by serial number, of those that report one."""
    if not drives:
        return {}
    words = [word for drive in drives for word in (drive.sysfs_name, drive.path, drive.smart_type)]
    done = scripts.answer(machine, SCRIPT, "media", *words, deadline_s=30.0 + 45.0 * len(drives))
    answers = dict(part.partition("\n")[::2] for part in f"\n{done.text}".split("\n=="))
    counts = {drive.name: parse(answers.get(drive.sysfs_name, "")) for drive in drives}
    return {name: count for name, count in counts.items() if count is not None}


def parse(answer: str) -> MediaCount | None:
    """Parse what ``media_counts.sh`` printed of one drive; None if it has no count whose unit is known."""
    logs = dict(line.partition(" ")[::2] for line in answer.splitlines())
    try:
        written = _ocp(bytes.fromhex(logs.get("c0", ""))) or _intel(bytes.fromhex(logs.get("ca", "")))
        if written or "c0" in logs:
            return MediaCount(written) if written else None
        plain = read_json(answer)
    except ValueError:
        return None
    for name, unit_bytes in ATA_UNIT_BYTES.items():
        if units := attribute(plain, name):
            return MediaCount(units * unit_bytes)
    host, others = attribute(plain, HOST_PAGES), attribute(plain, *OTHER_PAGES)
    return MediaCount(host + others, host) if host and others is not None else None


def _ocp(log: bytes) -> int:
    """Return the bytes written to the media; 0 if the log is another one, or has no value."""
    written = int.from_bytes(log[:16], "little") if len(log) == 512 and log.endswith(OCP_GUID) else 0
    return written if written <= LARGEST else 0


def _intel(log: bytes) -> int:
    items = {log[at]: log[at + 5 : at + 11] for at in range(0, len(log) - INTEL_ITEM + 1, INTEL_ITEM)}
    if log[:1] != bytes([INTEL_FIRST]):
        return 0
    return int.from_bytes(items.get(INTEL_NAND, b""), "little") * INTEL_UNIT_BYTES


def between(before: MediaCount, after: MediaCount) -> MediaCount | None:
    """Return the growth of a count; None if it went backwards, or is not the same count.

    Drives do not report how coarse their count is. Both readings are multiples of its unit, so it is at most their
    greatest common divisor, which is small unless there is such a unit.
    """
    if after.written < before.written or (before.host is None) != (after.host is None):
        return None
    host = None if before.host is None or after.host is None else after.host - before.host
    return MediaCount(after.written - before.written, host, gcd(before.written, after.written))
