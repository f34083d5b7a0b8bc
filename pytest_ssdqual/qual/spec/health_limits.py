"""Table ``health`` of a spec: how far each error counter of a drive may rise during a run.

Without a spec the defaults apply: nothing that is the drive's own may get worse. A counter without a limit is shown and
decides nothing: checksum errors may be the cable's, a drive logs commands that it does not support, and a machine may
lose its power.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from pytest_ssdqual.qual.spec.toml import Strict

#: What the kernel counts of a drive under load, and repairs: names in sentences.
FAILED_COMMANDS, TIME_OUTS, RESETS = "failed or retried commands", "commands that timed out", "resets of the controller"
PCIE_ERRORS, KERNEL_MESSAGES = "corrected errors of the PCIe link", "kernel messages of errors"

Rise = Annotated[int, Field(ge=0, le=1_000_000_000)]
#: Counters by their names in sentences → fields of the table.
COUNTERS = {
    "media errors": "media_errors",
    "reallocated blocks": "reallocated_blocks",
    "pending sectors": "pending_sectors",
    "uncorrectable sectors found offline": "uncorrectable_sectors",
    "program failures": "program_failures",
    "erase failures": "erase_failures",
    "end-to-end errors": "end_to_end_errors",
    "grown defects": "grown_defects",
    "available spare": "spare_percent",
    "CRC errors of the link": "link_errors",
    "errors of the SAS link": "link_errors",
    "entries of the error log": "error_log_entries",
    "unsafe shutdowns": "unsafe_shutdowns",
    FAILED_COMMANDS: "retried_errors",
    TIME_OUTS: "retried_errors",
    RESETS: "retried_errors",
    KERNEL_MESSAGES: "retried_errors",
    PCIE_ERRORS: "link_errors",
}


class HealthTable(Strict):
    """Table ``health``: the most by which a counter of one drive may get worse during a run."""

    media_errors: Rise = 0
    """Unrecovered errors"""
    reallocated_blocks: Rise = 0
    """Blocks that the drive replaced by spare ones (SATA)"""
    pending_sectors: Rise = 0
    """Sectors that wait to be replaced (SATA)"""
    uncorrectable_sectors: Rise = 0
    """Uncorrectable sectors found offline (SATA)"""
    program_failures: Rise = 0
    """Failures to program flash (SATA)"""
    erase_failures: Rise = 0
    """Failures to erase flash (SATA)"""
    end_to_end_errors: Rise = 0
    """Errors of the drive's own data path (SATA)"""
    grown_defects: Rise = 0
    """Entries of the grown defect list (SAS)"""
    spare_percent: Annotated[int, Field(alias="spare", ge=0, le=100)] = 0
    """Loss of the available spare, points of per cent (NVMe)"""
    link_errors: Rise | None = None
    """Checksum errors between drive and host; without a limit if left out"""
    retried_errors: Annotated[
        Rise | None,
        Field(
            description="Failed or retried commands, time-outs, resets and messages of errors that the kernel counts "
            "under load, of each; without a limit if left out"
        ),
    ] = None
    error_log_entries: Rise | None = None
    """Entries of the error log (NVMe); without a limit if left out"""
    unsafe_shutdowns: Rise | None = None
    """Losses of power beyond those that the run made itself; without a limit if left out"""

    def limit(self, counter: str) -> int | None:
        """Return the limit of a counter by its name in sentences; None: it has none. ``KeyError`` for no counter."""
        found: int | None = getattr(self, COUNTERS[counter])
        return found

    def changed(self) -> Iterator[str]:
        """Yield the limits that are not the defaults, a phrase each."""
        for counter, name in COUNTERS.items():
            limit = getattr(self, name)
            if limit != getattr(ORDINARY, name):
                yield f"{counter}: at most {limit:,} more"


#: The defaults.
ORDINARY = HealthTable()
