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

    media_errors: Annotated[Rise, Field(description="Unrecovered errors")] = 0
    reallocated_blocks: Annotated[Rise, Field(description="Blocks that the drive replaced by spare ones (SATA)")] = 0
    pending_sectors: Annotated[Rise, Field(description="Sectors that wait to be replaced (SATA)")] = 0
    uncorrectable_sectors: Annotated[Rise, Field(description="Uncorrectable sectors found offline (SATA)")] = 0
    program_failures: Annotated[Rise, Field(description="Failures to program flash (SATA)")] = 0
    erase_failures: Annotated[Rise, Field(description="Failures to erase flash (SATA)")] = 0
    end_to_end_errors: Annotated[Rise, Field(description="Errors of the drive's own data path (SATA)")] = 0
    grown_defects: Annotated[Rise, Field(description="Entries of the grown defect list (SAS)")] = 0
    spare_percent: Annotated[
        int, Field(alias="spare", ge=0, le=100, description="Loss of the available spare, points of per cent (NVMe)")
    ] = 0
    link_errors: Annotated[
        Rise | None, Field(description="Checksum errors between drive and host; without a limit if left out")
    ] = None
    retried_errors: Annotated[
        Rise | None,
        Field(
            description="Failed or retried commands, time-outs, resets and messages of errors that the kernel counts "
            "under load, of each; without a limit if left out"
        ),
    ] = None
    error_log_entries: Annotated[
        Rise | None, Field(description="Entries of the error log (NVMe); without a limit if left out")
    ] = None
    unsafe_shutdowns: Annotated[
        Rise | None,
        Field(description="Losses of power beyond those that the run made itself; without a limit if left out"),
    ] = None

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
