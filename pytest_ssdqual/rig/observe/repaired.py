"""Errors that the kernel repaired during loads: its counters of each drive, and its messages that name the drive.

A request that fails and is sent again costs time, and no result is wrong. Such errors are the drive's or its link's
(cable, slot, backplane); they go into the health of the run (``rig.drives.failed``). Both readings are nearest to fio,
so that commands of this program, which a drive may refuse, are not counted. Pure.

Sources: drivers/scsi/scsi_sysfs.c (``ioerr_cnt`` counts each command that did not end well, also if it was retried;
``iotmo_cnt``), drivers/nvme/host/sysfs.c (since Linux 7.0), Documentation/ABI/testing/sysfs-bus-pci-devices-aer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_ssdqual.qual.measured.environment import KernelLine
from pytest_ssdqual.qual.spec.health_limits import FAILED_COMMANDS, PCIE_ERRORS, RESETS, TIME_OUTS

#: Names of files → counters. The namespace counts retries and errors, its controller resets.
FILES = {
    "ioerr_cnt": FAILED_COMMANDS,
    "iotmo_cnt": TIME_OUTS,
    "command_retries_count": FAILED_COMMANDS,
    "command_error_count": FAILED_COMMANDS,
    "io_errors": FAILED_COMMANDS,
    "reset_count": RESETS,
    "aer_dev_correctable": PCIE_ERRORS,
}
#: SCSI's are hexadecimal; of AER's file the last line is TOTAL_ERR_COR.
NUMBER = re.compile(r"(?:TOTAL_ERR_COR )?(0x[0-9a-f]{1,16}|\d{1,19})", re.ASCII)
#: Sense data and the results of commands are no more than information to the kernel.
ERROR = re.compile(
    r"error|fail|time(d )?-?out|abort|reset|exception|crc|offline|medium|sense key|hostbyte|retr(y|ies)", re.IGNORECASE
)
#: Severity from which any message counts: 3 is an error.
GRAVE = 3


def counted(name: str, files: Mapping[str, str]) -> Mapping[str, int]:
    """Return the kernel's counters of the drive with this name in sysfs, by file."""
    found = {}
    for path, value in files.items():
        number = NUMBER.fullmatch(value)
        if number and path.startswith(f"/sys/block/{name}/") and path.rpartition("/")[2] in FILES:
            found[path] = int(number[1], 0)
    return found


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return by how much counters rose; one that fell began anew with the device, and is not known."""
    found: dict[str, int] = {}
    for path, now in after.items():
        counter = FILES[path.rpartition("/")[2]]
        found[counter] = found.get(counter, 0) + max(0, now - before.get(path, now))
    return {counter: count for counter, count in found.items() if count}


def messages(lines: Sequence[KernelLine], names: Sequence[str]) -> dict[str, int]:
    """Return the kernel's messages of errors that name a drive, each with the number of its repetitions."""
    found: dict[str, int] = {}
    own = re.compile("|".join(rf"(?<![\w.:]){re.escape(name)}(?!\w|\.\d|:\S)" for name in names)) if names else None
    for line in lines:
        is_error = ERROR.search(line.text) or (line.level is not None and line.level <= GRAVE)
        if own and is_error and own.search(line.text):
            found[line.text] = found.get(line.text, 0) + 1
    return found
