"""Kinds of faults, and the codes by which drives, the block layer and fio report one.

Sources: NVM Express Base Specification 2.0 (figures 94 to 100, status codes), SPC-6 (clause 4.5 and annex F, sense
keys, ASC and ASCQ), Linux: block/blk-core.c (``blk_errors``), drivers/nvme/host/core.c (``nvme_error_status``),
drivers/scsi/sense_codes.h. A code that is not listed is judged by its class, and what no class decides is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from pytest_ssdqual.qual.frozen import frozen

UNLOCK = (
    "unlock it (`sedutil-cli --setLockingRange 0 RW PASSWORD DEVICE`, `nvme sed unlock DEVICE`; ATA: "
    "`hdparm --security-unlock`), or revert it with the PSID on its label"
)
UNPROTECT = "take the write protection off (`nvme set-feature -f 0x84 -v 0`, `blockdev --setrw`, a switch of the drive)"
RELEASE = "release the reservation (`nvme resv-release`, `sg_persist --out --clear`) or disconnect the other host"
AWAIT_ERASE = "wait until it has ended (`nvme sanitize-log`, `sg_requests --progress`), then repeat"
WRITE_FIRST = "write the blocks first, or switch errors for unwritten blocks off (`nvme set-feature -f 5`)"
FREE_SPACE = "free or add space of the pool that holds its blocks"
FORMAT_AGAIN = "format it again (`sg_format --format`, `nvme format`)"
SANITIZE_AGAIN = "run the sanitize again, or leave its failure mode (`nvme sanitize -a 1`)"
FIT_FORMAT = "format it without protection information, or compare formatter and reader (`nvme id-ns -H`)"
LET_FINISH = "let the other program finish (firmware updates, vendor tools), then repeat"


class Fault(StrEnum):
    """What a report of the kernel or of a drive proves."""

    #: A defect of the medium or of the drive, which the drive reports itself.
    MEDIUM = "medium"
    DRIVE = "drive"
    #: The drive did not answer in time; the kernel gave it up or removed it.
    SILENT = "silent"
    GIVEN_UP = "given up"
    #: A request failed, and the words do not say why.
    FAILED = "failed"
    #: The drive did as it was told by someone else: locked, write-protected, reserved, being sanitized.
    REFUSED = "refused"
    #: The drive, or its slot, cable or backplane.
    LINK = "link"
    #: An HBA, an expander or a fabric, which several drives may share.
    PATH = "path"
    HOST = "host"
    #: The host lacked memory or a clock, which ends fio and loses no drive.
    STARVED = "starved"
    #: A person or another program took the drive away.
    PERSON = "person"
    #: The drive answered with a status that proves nothing.
    UNKNOWN = "unknown"
    #: It follows from another fault, or is none.
    CONSEQUENCE = "consequence"


@frozen
class Meaning:
    """Meaning of a report: the fault, a clause about the drive or the host, and what a person can do."""

    fault: Fault
    text: str = ""
    cure: str = ""


LOCKED = Meaning(Fault.REFUSED, "it is locked (TCG Opal, a password)", UNLOCK)
PROTECTED = Meaning(Fault.REFUSED, "it is write-protected", UNPROTECT)
RESERVED = Meaning(Fault.REFUSED, "another host or program has reserved it", RELEASE)
SANITIZING = Meaning(Fault.REFUSED, "another program's sanitize is in progress", AWAIT_ERASE)
FORMATTING = Meaning(Fault.REFUSED, "another program's format is in progress", AWAIT_ERASE)
SANITIZE_FAILED = Meaning(Fault.REFUSED, "an earlier sanitize failed, and was not repeated", SANITIZE_AGAIN)
FULL = Meaning(Fault.REFUSED, "the pool of its thin volume or namespace is full", FREE_SPACE)
UNWRITTEN = Meaning(Fault.REFUSED, "blocks were read that hold no data", WRITE_FIRST)
UNFORMATTED = Meaning(Fault.REFUSED, "a format of it was interrupted or failed", FORMAT_AGAIN)
ACTIVATING = Meaning(Fault.REFUSED, "another program activates firmware", LET_FINISH)
STOPPED = Meaning(Fault.REFUSED, "it was stopped, or waits for a command to start", "start it (`sg_start --start`)")
MISFIT = Meaning(Fault.HOST, "protection information does not fit what the host or another format wrote", FIT_FORMAT)
MEDIUM_DEFECT = Meaning(Fault.MEDIUM, "it returned media errors")
HARDWARE_DEFECT = Meaning(Fault.DRIVE, "it reported a hardware error of its own")
DAMAGED_ON_THE_WAY = Meaning(Fault.LINK, "data were damaged between host and drive")
PROVES_NOTHING = Meaning(Fault.UNKNOWN, "it refused a request with a status that proves no defect")
FAILED = Meaning(Fault.FAILED, "its requests failed or timed out")
SILENT = Meaning(Fault.SILENT, "its requests failed or timed out")
GIVEN_UP = Meaning(Fault.GIVEN_UP, "the kernel gave it up")
CONSEQUENCE = Meaning(Fault.CONSEQUENCE)
AMBIGUOUS_MEDIUM = Meaning(
    Fault.UNKNOWN,
    "the kernel's word for its status is the same for defects, locked drives and unwritten blocks",
    "compare `nvme error-log` and `nvme sed discover`; kernels from 5.18 on print the status itself",
)

#: By status code type and status code.
_NVME: Mapping[tuple[int, int], Meaning] = {
    (0, 0x00): CONSEQUENCE,
    (0, 0x04): DAMAGED_ON_THE_WAY,
    (0, 0x05): Meaning(Fault.HOST, "a loss of power was announced to it", "look into the machine's power supply"),
    (0, 0x06): Meaning(Fault.DRIVE, "it reported an internal error"),
    # Aborted on request of the host, or with its queue.
    (0, 0x07): CONSEQUENCE,
    (0, 0x08): CONSEQUENCE,
    (0, 0x15): LOCKED,
    (0, 0x19): Meaning(Fault.PATH, "its keep-alive timer expired", "look into the fabric between host and target"),
    (0, 0x1B): RESERVED,
    (0, 0x1C): SANITIZE_FAILED,
    (0, 0x1D): SANITIZING,
    (0, 0x20): PROTECTED,
    (0, 0x22): DAMAGED_ON_THE_WAY,
    (0, 0x23): Meaning(Fault.REFUSED, "its lockdown feature prohibits the command", "`nvme lockdown` allows it"),
    (0, 0x81): FULL,
    (0, 0x83): RESERVED,
    (0, 0x84): FORMATTING,
    (1, 0x81): MISFIT,
    (1, 0x82): PROTECTED,
    (2, 0x80): MEDIUM_DEFECT,
    (2, 0x81): MEDIUM_DEFECT,
    (2, 0x83): MISFIT,
    (2, 0x84): MISFIT,
    (2, 0x86): LOCKED,
    (2, 0x87): UNWRITTEN,
    (2, 0x88): MISFIT,
    # Internal Path Error: inside the controller.
    (3, 0x00): PROVES_NOTHING,
    # Given by the driver to the requests of a controller that it resets or has given up.
    (3, 0x70): CONSEQUENCE,
    (3, 0x71): CONSEQUENCE,
}
_NVME_PATH = Meaning(Fault.PATH, "the controller lost its path", "look into the fabric, ANA states and the other path")

#: Reasons in the words of sense_codes.h; the first match counts, and it is more specific than the sense key.
_ADDITIONAL: tuple[tuple[re.Pattern[str], Meaning], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        (r"sanitize in progress", SANITIZING),
        (r"sanitize command failed", SANITIZE_FAILED),
        (r"format in progress", FORMATTING),
        (r"medium format corrupted|format command failed", UNFORMATTED),
        (r"self-test in progress", Meaning(Fault.REFUSED, "another program's self-test is in progress", LET_FINISH)),
        (r"microcode|firmware", ACTIVATING),
        (r"initializing command required|enable spinup", STOPPED),
        (r"space allocation failed|thin provisioning", FULL),
        (r"write protect|read.only", PROTECTED),
        (r"access (denied|not authorized)|security|authentication|crypt|locked", LOCKED),
        (r"reservation|registrations", RESERVED),
        (r"failure prediction threshold exceeded \(false\)", CONSEQUENCE),
        (r"failure prediction|impending failure", Meaning(Fault.DRIVE, "it predicts its own failure")),
        (r"internal target failure|logical unit failure|diagnostic failure|self-test fail|failed self"
         r"|defect list (error|not found)", HARDWARE_DEFECT),
        (r"device internal reset", Meaning(Fault.SILENT, "it restarted by itself")),
        (r"parity error|crc error|data phase|nak received|ack/nak|initiator (response timeout|detected error)"
         r"|connection lost|protocol service", DAMAGED_ON_THE_WAY),
        (r"logical block (application|reference) tag check failed", MISFIT),
    )
)  # fmt: skip

#: By the words of constants.c (``snstext``); an additional sense code may say more.
_SENSE_KEYS: Mapping[str, Meaning] = {
    "No Sense": CONSEQUENCE,
    "Recovered Error": CONSEQUENCE,
    "Not Ready": Meaning(Fault.SILENT, "it is not ready"),
    "Medium Error": MEDIUM_DEFECT,
    "Hardware Error": HARDWARE_DEFECT,
    # A reset, also of another initiator, or parameters that another program changed.
    "Unit Attention": CONSEQUENCE,
    "Data Protect": PROTECTED,
    "Blank Check": UNWRITTEN,
    "Completed": CONSEQUENCE,
}

#: Words of block/blk-core.c, also of older kernels, before ``error, dev``.
_BLOCK_STATUS: Mapping[str, Meaning] = {
    "timeout": SILENT,
    "critical space allocation": FULL,
    "critical nexus": RESERVED,
    "reservation conflict": RESERVED,
    "kernel resource": Meaning(Fault.HOST, "the host lacked memory or queues for a request", "free memory"),
    "device resource": CONSEQUENCE,
    "nonblocking retry": CONSEQUENCE,
    "dm internal retry": CONSEQUENCE,
    "device offline": GIVEN_UP,
    "I/O": FAILED,
}
#: errno of a request in fio's words (block/blk-core.c gives each status one), unless they are those of the host.
_ERRNO: Mapping[str, Meaning] = {
    "Invalid exchange": RESERVED,
    "No space left on device": FULL,
    "Connection timed out": SILENT,
    "No such device": FAILED,
    "No such device or address": FAILED,
    "Input/output error": FAILED,
    "I/O error": FAILED,
}


def of_nvme(kind: int, code: int) -> Meaning:
    """Meaning of an NVMe status: status code type and status code."""
    if kind == 3:
        return _NVME.get((kind, code), _NVME_PATH)
    return _NVME.get((kind, code), PROVES_NOTHING)


def of_sense(key: str, additional: str) -> Meaning:
    """Meaning of SCSI sense data in the kernel's words; either may be empty."""
    stated = next((meaning for pattern, meaning in _ADDITIONAL if pattern.search(additional)), None)
    by_key = _SENSE_KEYS.get(key, PROVES_NOTHING) if key else CONSEQUENCE
    return stated or by_key


def of_block_status(words: str, device: str) -> Meaning:
    """Meaning of the block layer's words about a request to ``device``.

    ``critical medium`` is a medium error of SCSI; for NVMe it stands for several statuses (``nvme_error_status``).
    """
    if words == "critical medium":
        return AMBIGUOUS_MEDIUM if device.startswith("nvme") else MEDIUM_DEFECT
    return _BLOCK_STATUS.get(words, PROVES_NOTHING)


def of_errno(words: str, device: str) -> Meaning:
    """Meaning of the errno of a request that fio reports in words."""
    if words == "No data available":
        return of_block_status("critical medium", device.removeprefix("/dev/"))
    return _ERRNO.get(words, PROVES_NOTHING)
