"""Entries of a drive's own error log that are of its media: NVMe's log page 01h, ATA's error log; pure.

Most entries are of commands that a drive does not support: of 106 drives in service 17 have some, and media errors
none of these. A log is a ring, so it shows only the newest entries; counters of media errors are never lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ssdqual.rig.health.smart_answer import at, items, whole

#: NVM Express Base Specification 2.1, status code type of Media and Data Integrity Errors, and of its codes those that
#: say nothing about the media: Access Denied, Deallocated or Unwritten Logical Block.
OF_MEDIA, NOT_OF_MEDIA = 2, (0x86, 0x87)
#: ACS-4, error field of a read: bit 6 is an uncorrectable error.
UNCORRECTABLE = 1 << 6


def of_media(smart: object) -> int:
    """Return how many entries that smartctl shows are errors of the media or of data integrity."""
    statuses = [status for entry in items(smart, "nvme_error_information_log", "table") for status in _nvme(entry)]
    nvme = [code for kind, code in statuses if kind == OF_MEDIA and code not in NOT_OF_MEDIA]
    logs = (at(smart, "ata_smart_error_log", name) for name in ("extended", "summary"))
    shown = next((list(items(log, "table")) for log in logs if isinstance(log, dict)), [])
    errors = [whole(entry, "completion_registers", "error") or 0 for entry in shown]
    return len(nvme) + sum(bool(error & UNCORRECTABLE) for error in errors)


def _nvme(entry: object) -> Iterator[tuple[int, int]]:
    """Yield status code type and status code of an entry."""
    value = whole(entry, "status_field", "value")
    if value is not None:
        yield value >> 8 & 0b111, value & 0xFF
