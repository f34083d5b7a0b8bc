"""What a drive counts of its hosts' I/O, in the JSON of nvme-cli or smartctl; pure.

A drive counts every command that reaches it, also those that pass the block layer (SG_IO, nvme-cli) and those of
another host, which no count of this kernel has. What a drive does not report is None.
"""

from __future__ import annotations

from dataclasses import astuple

from pytest_ssdqual.qual.measured.environment import OwnCount
from pytest_ssdqual.rig.health.smart_answer import (
    ALL_ONES,
    NVME_DATA_UNIT_BYTES,
    at,
    first,
    printed,
    scsi_bytes,
    statistic,
    whole,
)

#: Names of the NVMe log's fields in nvme-cli and in smartctl: commands and data units, read and written.
NVME_COUNTS = (
    ("host_read_commands", "host_reads"), ("host_write_commands", "host_writes"),
    ("data_units_read",), ("data_units_written",),
)  # fmt: skip
#: ATA's general statistics (ACS-4, log 04h, page 1).
ATA_COUNTS = ("Number of Read Commands", "Number of Write Commands", "Logical Sectors Read", "Logical Sectors Written")
#: smartctl prints the error counter log of SCSI in 10^9 bytes with three decimals.
SCSI_UNIT_BYTES = 10**6


def count(plain: object) -> OwnCount | None:
    """Return the counts of the drive's life; None if it reports none."""
    log = at(plain, "nvme_smart_health_information_log") if at(plain, "json_format_version") else plain
    nvme = [first(*(_number(log, name) for name in names)) for names in NVME_COUNTS]
    if nvme[2:] != [None, None]:
        units = [None if each is None else each * NVME_DATA_UNIT_BYTES for each in nvme[2:]]
        return OwnCount(nvme[0], nvme[1], units[0], units[1], NVME_DATA_UNIT_BYTES)
    ata = [statistic(plain, name) for name in ATA_COUNTS]
    if ata[2:] != [None, None]:
        sector = whole(plain, "logical_block_size") or 512
        sizes = [None if each is None else each * sector for each in ata[2:]]
        return OwnCount(ata[0], ata[1], sizes[0], sizes[1], sector)
    scsi = [scsi_bytes(plain, way) for way in ("read", "write")]
    return None if scsi == [None, None] else OwnCount(None, None, scsi[0], scsi[1], SCSI_UNIT_BYTES)


def between(before: OwnCount | None, after: OwnCount | None) -> OwnCount | None:
    """Return what was counted between two readings; None if a count went backwards."""
    # ``unit_bytes`` is the last field: it does not grow.
    if before is None or after is None or before.unit_bytes != after.unit_bytes:
        return None
    grown: list[int | None] = [
        None if earlier is None or now is None else now - earlier
        for earlier, now in zip(astuple(before)[:-1], astuple(after)[:-1], strict=True)
    ]
    if any(each is not None and each < 0 for each in grown):
        return None
    return OwnCount(grown[0], grown[1], grown[2], grown[3], after.unit_bytes)


def _number(log: object, name: str) -> int | None:
    number = printed(log, name)
    return None if number is None or number < 0 or number in ALL_ONES else number
