"""State of a drive's volatile write cache, and its record in the journal; ``write_cache`` reads and switches it."""

from __future__ import annotations

from enum import StrEnum

from pytest_ssdqual.qual.frozen import frozen


class CacheState(StrEnum):
    """State of a volatile write cache."""

    ON = "on"
    OFF = "off"
    #: The drive has none: NVMe reports that (VWC, bit 0), and ATA.
    ABSENT = "absent"
    UNKNOWN = "unknown"


@frozen
class WriteCacheRecord:
    """``write_cache``: of one drive, before the first step, and when it had lost the setting."""

    #: Identity of the drive.
    drive: str
    #: Path, model and serial number.
    name: str
    #: The protocol's rule.
    wanted: str
    found: CacheState
    now: CacheState
    outcome: str
