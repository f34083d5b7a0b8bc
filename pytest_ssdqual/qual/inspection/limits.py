"""Table ``inspection`` of a spec: what was ordered, and what a new drive may report.

Without a spec the defaults apply: a new, healthy drive, and all drives alike. What has no default (models, firmware,
sector format, write cache) is compared only if the table has it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field

from pytest_ssdqual.qual.spec.toml import Name, Size, Strict

#: 1 % of difference: labels are decimal and rounded; IDEMA's LBA1-03 adds less than 0.3 % above 160 GB.
CAPACITY_TOLERANCE = 0.01


class InspectionTable(Strict):
    """Table ``inspection``: the receiving inspection."""

    models: Annotated[
        list[Name], Field(description="Globs on the model string; default: those of the table product")
    ] = Field(default_factory=list)
    firmware: Annotated[
        list[Name], Field(description="Globs on the firmware revisions that are allowed", examples=[["7CV1*"]])
    ] = Field(default_factory=list)
    capacity_bytes: Annotated[
        Size | None, Field(alias="capacity", description="Of one drive, within 1 %; default: that of the product")
    ] = None
    logical_block_bytes: Annotated[
        int | None, Field(alias="logical_block", ge=512, le=65536, description="Bytes of a logical block")
    ] = None
    physical_block_bytes: Annotated[
        int | None, Field(alias="physical_block", ge=512, le=65536, description="Bytes of a physical block")
    ] = None
    metadata_bytes: Annotated[
        int, Field(alias="metadata", ge=0, le=65536, description="Bytes of metadata of each block (NVMe)")
    ] = 0
    power_on_hours: Annotated[int, Field(ge=0, description="At most, hours")] = 24
    power_cycles: Annotated[int, Field(ge=0, description="At most")] = 50
    written_bytes: Annotated[Size, Field(alias="written", description="At most written by hosts")] = 100 * 10**9
    wear_percent: Annotated[
        int, Field(alias="wear", ge=0, le=255, description="At most, per cent of the rated endurance used")
    ] = 0
    spare_percent: Annotated[
        int, Field(alias="spare", ge=0, le=100, description="At least, per cent of the spare blocks left")
    ] = 100
    media_errors: Annotated[
        int, Field(ge=0, description="At most, of each counter of defects: reallocated, pending, uncorrectable, grown")
    ] = 0
    error_log_entries: Annotated[
        int | None,
        Field(ge=0, description="At most, entries of the drive's error log; if left out, none of its media"),
    ] = None
    link_errors: Annotated[int, Field(ge=0, description="At most, of each counter of the connection's errors")] = 0
    write_cache: Annotated[bool | None, Field(description="Whether the write cache must be on or off")] = None
    link_speed: Annotated[
        float | None, Field(gt=0, le=256, description="At least, of one lane: GT/s for PCIe, Gb/s for SATA and SAS")
    ] = None
    link_width: Annotated[int | None, Field(ge=1, le=32, description="At least, lanes of PCIe")] = None
    temperature_c: Annotated[int, Field(alias="temperature", ge=1, le=120, description="At most at rest, °C")] = 60
    queue_depth: Annotated[
        int, Field(ge=1, le=65536, description="At least, I/Os that the kernel queues in the drive (SATA and SAS)")
    ] = 31
    namespaces: Annotated[int, Field(ge=1, le=65536, description="Number of namespaces of an NVMe drive")] = 1
    log_pages: Annotated[
        list[int], Field(description="Addresses of log pages that must be supported", examples=[[0x02, 0x06]])
    ] = Field(default_factory=list)
    mixed: Annotated[bool, Field(description="Whether the drives may differ in model, firmware or format")] = False


#: The defaults: new, healthy, alike.
NEW = InspectionTable()


def matches(text: str, globs: list[str]) -> bool:
    """Return whether a model or firmware string, without blanks at its ends, matches one of the globs."""
    return any(fnmatchcase(text.strip(), each) for each in globs)
