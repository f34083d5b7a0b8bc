"""Table ``inspection`` of a spec: what was ordered, and what a new drive may report.

Without a spec the defaults apply: a new, healthy drive, and all drives alike. What has no default (models, firmware,
sector format, write cache) is compared only if the table has it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from pytest_ssdqual.qual.spec.toml import Depth, Name, Size, Strict

#: 1 % of difference: labels are decimal and rounded; IDEMA's LBA1-03 adds less than 0.3 % above 160 GB.
CAPACITY_TOLERANCE = 0.01

Most = Annotated[int, Field(ge=0)]


class InspectionTable(Strict):
    """Table ``inspection``: the receiving inspection."""

    models: list[Name] = Field(default_factory=list)
    """Globs on the model string; default: those of the table product"""
    firmware: Annotated[list[Name], Field(examples=[["7CV1*"]])] = Field(default_factory=list)
    """Globs on the firmware revisions that are allowed"""
    capacity_bytes: Annotated[Size | None, Field(alias="capacity")] = None
    """Of one drive, within 1 %; default: that of the product"""
    logical_block_bytes: Annotated[int | None, Field(alias="logical_block", ge=512, le=65536)] = None
    """Bytes of a logical block"""
    physical_block_bytes: Annotated[int | None, Field(alias="physical_block", ge=512, le=65536)] = None
    """Bytes of a physical block"""
    metadata_bytes: Annotated[int, Field(alias="metadata", ge=0, le=65536)] = 0
    """Bytes of metadata of each block (NVMe)"""
    power_on_hours: Most = 24
    """At most, hours"""
    power_cycles: Most = 50
    """At most"""
    written_bytes: Annotated[Size, Field(alias="written")] = 100 * 10**9
    """At most written by hosts"""
    wear_percent: Annotated[int, Field(alias="wear", ge=0, le=255)] = 0
    """At most, per cent of the rated endurance used"""
    spare_percent: Annotated[int, Field(alias="spare", ge=0, le=100)] = 100
    """At least, per cent of the spare blocks left"""
    media_errors: Most = 0
    """At most, of each counter of defects: reallocated, pending, uncorrectable, grown"""
    error_log_entries: Annotated[int | None, Field(ge=0)] = None
    """At most, entries of the drive's error log; if left out, none of its media"""
    link_errors: Most = 0
    """At most, of each counter of the connection's errors"""
    write_cache: bool | None = None
    """Whether the write cache must be on or off"""
    link_speed: Annotated[float | None, Field(gt=0, le=256)] = None
    """At least, of one lane: GT/s for PCIe, Gb/s for SATA and SAS"""
    link_width: Annotated[int | None, Field(ge=1, le=32)] = None
    """At least, lanes of PCIe"""
    temperature_c: Annotated[int, Field(alias="temperature", ge=1, le=120)] = 60
    """At most at rest, °C"""
    queue_depth: Depth = 31
    """At least, I/Os that the kernel queues in the drive (SATA and SAS)"""
    namespaces: Annotated[int, Field(ge=1, le=1024)] = 1
    """Number of namespaces of an NVMe drive"""
    log_pages: Annotated[list[int], Field(examples=[[0x02, 0x06]])] = Field(default_factory=list)
    """Addresses of log pages that must be supported"""
    mixed: bool = False
    """Whether the drives may differ in model, firmware or format"""


#: The defaults: new, healthy, alike.
NEW = InspectionTable()


def matches(text: str, globs: list[str]) -> bool:
    """Return whether a model or firmware string, without blanks at its ends, matches one of the globs."""
    return any(fnmatchcase(text.strip(), each) for each in globs)
