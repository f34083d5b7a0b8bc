"""What one drive and its slot reported at the inspection; a value that was not reported is None, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from pytest_ssdqual.qual.frozen import frozen


class DriveKind(StrEnum):
    """Command set of a drive; decides which values it can report at all."""

    NVME = "nvme"
    ATA = "ata"
    SCSI = "scsi"


class Sanitizing(StrEnum):
    """State of the last sanitize operation (NVM Express, Sanitize Status log, SSTAT bits 2:0)."""

    NEVER = "never sanitized"
    SUCCEEDED = "sanitized"
    IN_PROGRESS = "sanitize in progress"
    FAILED = "sanitize failed"


#: Longest extended self-test that is run, by the duration that the drive reports.
LONGEST_SELF_TEST_S = 4 * 3600


class SelfTest(StrEnum):
    """End of a drive's last self-test."""

    PASSED = "passed"
    FAILED = "failed"
    ABORTED = "aborted"


@frozen
class InspectedLink:
    """The connection of a drive: negotiated, and the maxima of the drive and of the slot; None: not reported.

    Speeds are of one lane: GT/s for PCIe, Gb/s for SATA and SAS.
    """

    kind: str
    speed: float | None = None
    width: int | None = None
    drive_speed: float | None = None
    drive_width: int | None = None
    slot_speed: float | None = None
    slot_width: int | None = None

    @property
    def unit(self) -> str:
        return "GT/s" if self.kind == "PCIe" else "Gb/s"


@frozen
class InspectionRecord:
    """One drive at the inspection."""

    path: str
    #: None if the drive's SMART data could not be read.
    kind: DriveKind | None = None
    #: Why the drive could not be read; empty if it could.
    unreadable: str = ""
    #: Why a value is unknown that the drive does report, by the check that needs it.
    doubts: Mapping[str, str] = field(default_factory=dict)
    #: What the drive does by itself now, with the cure; empty if nothing is known of it.
    activity: str = ""
    #: True if the kernel's names of it are those of a USB bridge or a RAID controller.
    is_bridged: bool = False
    #: True if a hypervisor made it, which gives it hardly any values.
    is_virtual: bool = False
    serial: str | None = None
    wwn: str | None = None
    model: str | None = None
    firmware: str | None = None
    #: Serial that the drive itself reports; ``serial`` is the kernel's.
    own_serial: str | None = None
    capacity_bytes: int | None = None
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    #: Metadata of each logical block (NVMe); 0 is none.
    metadata_bytes: int | None = None
    read_only: bool | None = None
    queue_depth: int | None = None
    write_cache: bool | None = None
    power_on_hours: int | None = None
    power_cycles: int | None = None
    written_bytes: int | None = None
    #: Share of the rated endurance that is used; may exceed 100.
    wear_percent: int | None = None
    spare_percent: int | None = None
    spare_threshold_percent: int | None = None
    #: Counters of defects of the media by name: reallocated, pending, uncorrectable, grown defects.
    media_counters: Mapping[str, int] = field(default_factory=dict)
    #: Counters of errors of the connection by name.
    link_counters: Mapping[str, int] = field(default_factory=dict)
    #: Entries of the error log in the drive's life.
    error_log_entries: int | None = None
    #: Those that the log still shows, and that are of the media or of data integrity.
    media_log_entries: int = 0
    #: Entries of the self-test log that failed; None if there is no log.
    failed_self_tests: int | None = None
    #: None if none is known, or if one runs.
    last_self_test: SelfTest | None = None
    #: False if the drive says that it has no self-tests, and so no log of them.
    has_self_tests: bool | None = None
    #: Duration of its extended self-test, as it reports.
    extended_self_test_s: int | None = None
    passed: bool | None = None
    #: Bits of NVMe's critical warning, in words; None if not reported.
    warnings: tuple[str, ...] | None = None
    temperature_c: int | None = None
    #: The drive's own warning threshold.
    temperature_limit_c: int | None = None
    link: InspectedLink | None = None
    #: Security feature (ATA) or TCG Opal (NVMe): enabled with a password, locked.
    security_enabled: bool | None = None
    security_locked: bool | None = None
    sanitizing: Sanitizing | None = None
    can_sanitize: bool | None = None
    namespaces: int | None = None
    #: Capacity of an NVMe drive in no namespace, bytes.
    unallocated_bytes: int | None = None
    #: Addresses of the supported log pages; None if the drive does not list them.
    log_pages: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The drive in a sentence: its serial, else its WWN, else its path."""
        return self.serial or self.own_serial or self.wwn or self.path
