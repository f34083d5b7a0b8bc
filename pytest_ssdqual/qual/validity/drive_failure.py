"""Attribution of a failed measurement to a drive, to the host or the path of drives, or to neither.

A drive has failed if it reports it itself (SMART, sense data of media or hardware errors), or if it alone dropped out,
returned I/O errors or did not answer in time. If several drives lost their connection at once, or the kernel reports a
fault of the HBA or the IOMMU, their path is the likelier cause, and no drive is blamed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_ssdqual.qual.measured.environment import KernelLine

#: Sense data and status codes by which a drive reports defects of its media (SPC-6 annex D, NVMe base 2.0 figure 101),
#: as the kernel prints them.
MEDIA = re.compile(
    r"critical medium error|sense key ?: medium error|unrecovered read error|write fault|media error"
    r"|error: \{ (\w+ )*UNC",
    re.IGNORECASE,
)
#: The same of its hardware: controller, parity in its buffers, self-test (SPC-6, sense key 4h).
HARDWARE = re.compile(r"sense key ?: hardware error", re.IGNORECASE)
#: The kernel gave up a drive, or removed it. libata of older kernels says ``disabled``.
DROPPED = re.compile(
    r"disabling device|device not ready|controller is down|removing after|offline(d| device)|reset fail"
    r"|^ata\S+: (disable device|disabled$)|link down|card not present",
    re.IGNORECASE,
)
#: A request failed or was not answered in time. Reads and writes are always supported, unless a drive refuses one; the
#: block layer also tries requests that a drive need not support, such as WRITE_ZEROES.
REQUEST = re.compile(
    r"I/O error|critical (target|nexus) error|time(d )?out|reset(ting)? controller"
    r"|operation not supported error, dev \S+, sector \d+ op 0x[01]:\((READ|WRITE)\)",
    re.IGNORECASE,
)
#: Data was damaged between drive and host: the cable, the slot or the drive's interface.
TRANSFER = re.compile(r"\b(ICRC|BadCRC|UDMA CRC)\b|interface (fatal )?error|CRC error", re.IGNORECASE)
#: Faults of HBA, IOMMU and host, whatever drive the message names. ``[Hardware Error]`` is the host's (HW_ERR of
#: include/linux/printk.h); ``Sense Key : Hardware Error`` is a drive's. A corrected error of the host, such as of one
#: bit of memory, excuses no drive, so only lines that state another severity count: of firmware (cper_severity_str,
#: drivers/firmware/efi/cper.c), of AMD's decoder (decode_error_status, drivers/edac/mce_amd.c), and of x86, where bit
#: 61 of the bank's status is "uncorrected" (__print_mce, arch/x86/kernel/cpu/mce/core.c). A device that comes or goes
#: is added to its IOMMU group or removed from it, which is no fault (drivers/iommu/iommu.c; older kernels say it in
#: other words).
HOST = re.compile(
    r"\b(DMAR|IOMMU(?! group|: (Adding|Removing) device)|AMD-Vi|SMMU)\b|IO_PAGE_FAULT"
    r"|(diag|host|adapter|firmware) reset|reset(ting)? (adapter|host)|fault_state"
    r"|non-operational|host adapter abort|scsi_recover_host"
    r"|\[Hardware Error\]: (event severity: (fatal|recoverable)|Uncorrected|Deferred error|System Fatal error"
    r"|CPU \d+: Machine Check( Exception|: \w+ Bank \d+: [2367abef]))",
    re.IGNORECASE,
)
#: Errors that a drive can cause. SMART data alone blame a drive for no other error: what they count may be hours old.
OF_DRIVES = re.compile(
    r"I/O error|degraded|it is gone|state is broken|stuck|errno 5\b|did not end within|reported only \d+ s"
)
#: Kernel messages that a sentence quotes.
QUOTED = 2


#: Lines that may name a drive and are no words about it: errors of a PCIe link that were corrected
#: (drivers/pci/pcie/aer.c), even where the name is a time-out, and records of the host's errors.
NOT_OF_DRIVE = re.compile(r"severity=Correct|\[12\] (Replay Timer )?Timeout|\[Hardware Error\]", re.IGNORECASE)


class FailureOrigin(StrEnum):
    """The part of the system that failed."""

    DRIVE = "drive"
    #: The host, an HBA, or a path that several drives share.
    PATH = "path"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DriveTrace:
    """What is known of one drive after a measurement has failed; unknown values are empty or None."""

    serial: str
    #: Device path in the messages of fio.
    path: str
    #: Names by which only this drive is meant in kernel messages.
    names: tuple[str, ...] = ()
    #: False if the kernel has no such device any more.
    present: bool | None = None
    #: True if the kernel holds the device as read-only.
    read_only: bool = False
    #: True if md holds it as faulty or has removed it, and this run did not ask for that.
    is_faulty: bool = False
    #: Defects that its SMART data report since they were read before.
    smart: tuple[str, ...] = ()
    #: True if smartctl gets no answer from it; alone it is no evidence, since smartctl may fail because of the host.
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class FailedDrive:
    """A drive that failed: its serial number, the observations, and the kernel's words about it."""

    serial: str
    findings: tuple[str, ...]
    kernel: tuple[str, ...]
    #: Name of the array, or of the drives side by side, under whose load it failed.
    under: str = ""

    @property
    def sentence(self) -> str:
        """``drive SSDQ0002 failed: it dropped out; kernel: […] nvme nvme1: …``."""
        words = f"; kernel: {' | '.join(self.kernel[:QUOTED])}" if self.kernel else ""
        return f"drive {self.serial} failed: {'; '.join(self.findings)}{words}"


@dataclass(frozen=True, slots=True)
class FailureAttribution:
    """Origin of a failed measurement; ``drives`` is empty unless drives are the origin."""

    origin: FailureOrigin
    drives: tuple[FailedDrive, ...] = ()
    #: The evidence as a clause; empty if the origin is unknown or a drive.
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Suspect:
    trace: DriveTrace
    #: Reports of the drive about itself, and losses that the path may have caused, too.
    own: tuple[str, ...]
    lost: tuple[str, ...]
    kernel: tuple[str, ...]

    @property
    def failed(self) -> FailedDrive:
        return FailedDrive(self.trace.serial, (*self.own, *self.lost), self.kernel)


def attribute(error: str, drives: Sequence[DriveTrace], kernel: Iterable[KernelLine]) -> FailureAttribution:
    """Attribute a measurement that ended with ``error``, by the kernel's messages during it."""
    lines = tuple(kernel)
    suspects = [each for each in (_suspect(error, drive, lines) for drive in drives) if each.own or each.lost]
    of_host = next((line.describe() for line in lines if HOST.search(line.text)), "")
    if proven := [each for each in suspects if each.own]:
        # One more that is gone is named, too; several may be the path's.
        gone = [each for each in suspects if not each.own and (each.trace.present is False or each.trace.is_faulty)]
        found = [*proven, *gone] if len(gone) == 1 and not of_host else proven
        return FailureAttribution(FailureOrigin.DRIVE, tuple(each.failed for each in found))
    if of_host and suspects:
        return FailureAttribution(FailureOrigin.PATH, why=f"the kernel reports a fault of the host: {of_host}")
    if len(suspects) > 1:
        serials = ", ".join(each.trace.serial for each in suspects)
        words = next((f"; kernel: {each.kernel[0]}" for each in suspects if each.kernel), "")
        why = f"{len(suspects)} drives failed at once ({serials}), which points to a path that they share{words}"
        return FailureAttribution(FailureOrigin.PATH, why=why)
    if suspects:
        return FailureAttribution(FailureOrigin.DRIVE, (suspects[0].failed,))
    return FailureAttribution(FailureOrigin.UNKNOWN)


def _suspect(error: str, drive: DriveTrace, kernel: Sequence[KernelLine]) -> _Suspect:
    named = (line for line in kernel if _names(line.text, drive.names))
    lines = [line for line in named if not HOST.search(line.text) and not NOT_OF_DRIVE.search(line.text)]

    def heard(pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(line.text) for line in lines)

    own = [*drive.smart] if OF_DRIVES.search(error) else []
    if heard(MEDIA):
        own.append("it returned media errors")
    if heard(HARDWARE):
        own.append("it reported a hardware error of its own")
    lost = []
    if drive.present is False:
        lost.append("it dropped out")
    elif drive.read_only:
        lost.append("it turned read-only")
    is_damaged_on_the_way = heard(TRANSFER) and not lost
    if not is_damaged_on_the_way:
        if drive.is_faulty:
            lost.append("md took it out of the array after failed requests")
        if error.startswith(f"I/O error on {drive.path}:"):
            lost.append("it returned I/O errors")
        if not lost and heard(DROPPED):
            lost.append("the kernel gave it up")
        if not lost and heard(REQUEST):
            lost.append("its requests failed or timed out")
    if drive.is_silent and (own or lost):
        lost.append("it answers smartctl no more")
    return _Suspect(drive, tuple(own), tuple(lost), tuple(line.describe() for line in _by_severity(lines)))


def _by_severity(lines: Sequence[KernelLine]) -> Sequence[KernelLine]:
    """Sort errors of the drive itself first, then by severity, then by time."""

    def rank(line: KernelLine) -> tuple[bool, int]:
        is_own = MEDIA.search(line.text) or HARDWARE.search(line.text)
        return not is_own, 8 if line.level is None else line.level

    return sorted(lines, key=rank)


def _names(text: str, names: Iterable[str]) -> bool:
    """Return whether a message names a drive; ``nvme1`` is not named by ``nvme10`` nor by ``nvme1c1``."""
    return any(re.search(rf"(?<![\w.:]){re.escape(name)}(?!\w|\.\d|:\S)", text) for name in names)
