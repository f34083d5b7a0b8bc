"""Wrong deliveries, as made-up answers of the tools, and the table of ``docs/inspection.md`` that lists them.

Four drives are delivered; one (sometimes several) of them is wrong by one change of the answers of new, healthy drives.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_ssdqual.qual.inspection.limits import InspectionTable
from pytest_ssdqual.qual.inspection.record import InspectionRecord
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.health.inspection import record
from support.builders import inspected

DOCUMENT = Path(__file__).parents[3] / "docs" / "inspection.md"
#: Set to anything, the test writes the table instead of comparing it.
WRITE = "SSDQUAL_WRITE_INSPECTION"
#: The table is between these lines.
BEGIN, END = "<!-- begin: written by the tests -->", "<!-- end: written by the tests -->"

#: The order: what a table ``inspection`` of a spec says.
ORDER = InspectionTable.model_validate(
    {
        "models": ["ACME 9000*", "ACME 500*", "ACME 700*"],
        "firmware": ["2CV1*", "D3MU*", "B21*"],
        "capacity": "480 GB",
        "logical_block": 512,
        "physical_block": 4096,
    }
)
#: What the order says more, of SATA and SAS drives.
MORE: Mapping[str, Mapping[str, object]] = {
    "sata": {"write_cache": True, "log_pages": [0x04]},
    "sas": {"link_speed": 12.0},
    "nvme": {},
}
BUILDERS: Mapping[str, Callable[..., dict[str, str]]] = {
    "nvme": inspected.nvme,
    "sata": inspected.sata,
    "sas": inspected.sas,
}
MODELS = {"nvme": "ACME 9000", "sata": "ACME 500", "sas": "ACME 700"}
SIZE_BYTES = 480_103_981_056
DRIVES = 4


@dataclass(frozen=True)
class Delivery:
    """One wrong delivery."""

    name: str
    #: The check that must find it.
    check: str
    kind: str = "nvme"
    #: Changes of the kernel's facts.
    drive: Mapping[str, object] = field(default_factory=dict)
    #: Changes of smartctl's JSON, by path.
    smart: Mapping[str, object] = field(default_factory=dict)
    #: Changes of whole sections, and of single lines of sysfs.
    sections: Mapping[str, str] = field(default_factory=dict)
    sysfs: Mapping[str, object] = field(default_factory=dict)
    #: Checks that find it as well.
    also: tuple[str, ...] = ()
    #: Positions of the wrong drives.
    wrong: tuple[int, ...] = (2,)
    #: Without an order only the defaults apply.
    ordered: bool = True
    order: Mapping[str, object] = field(default_factory=dict)

    @property
    def limits(self) -> InspectionTable:
        """The order, or the defaults."""
        if not self.ordered:
            return InspectionTable()
        written = {**ORDER.model_dump(exclude_unset=True, by_alias=True), **MORE[self.kind], **self.order}
        return InspectionTable.model_validate({**written, "capacity": f"{ORDER.capacity_bytes} B"})

    def records(self) -> list[InspectionRecord]:
        """What is read of the four drives."""
        return [self._record(number) for number in range(DRIVES)]

    def _record(self, number: int) -> InspectionRecord:
        serial = f"S{number + 1}"
        is_wrong = number in self.wrong
        own = replace(drive(self.kind, number), **(self.drive if is_wrong else {}))  # type: ignore[arg-type]
        answers = BUILDERS[self.kind](serial, MODELS[self.kind])
        if is_wrong:
            smart = json.loads(answers["smart"])
            for path, value in self.smart.items():
                _set(smart, path.split("/"), value)
            answers |= {"smart": json.dumps(smart), **self.sections}
            lines = dict(line.split(" ", 1) for line in answers["sysfs"].splitlines())
            answers["sysfs"] = "\n".join(f"{name} {value}" for name, value in {**lines, **self.sysfs}.items())
        return record(own, answers)


def drive(kind: str, number: int) -> Drive:
    """A drive as the kernel knows it."""
    name = f"nvme{number}n1" if kind == "nvme" else f"sd{'bcde'[number]}"
    return Drive(
        f"/dev/{name}",
        name,
        MODELS[kind],
        f"S{number + 1}",
        f"eui.00{number + 1}",
        "kern",
        SIZE_BYTES,
        512,
        4096,
        False,
        kind,
    )


def _set(plain: Any, path: Sequence[str], value: object) -> None:  # noqa: ANN401 (JSON)
    *way, last = path
    for name in way:
        plain = plain[int(name)] if isinstance(plain, list) else plain[name]
    if value is None:
        del plain[last]
    else:
        plain[last] = value


LOG = "nvme_smart_health_information_log"
ATTRIBUTES = "ata_smart_attributes/table"


def nvme_errors(*statuses: int) -> dict[str, object]:
    """The error log of an NVMe drive as smartctl prints it, with these status fields."""
    table = [{"error_count": count, "status_field": {"value": status}} for count, status in enumerate(statuses, 1)]
    return {"size": 64, "read": 16, "table": table}


#: Log page 06h whose newest self-test ended with the result 7, a failed segment.
FAILED_SELF_TEST = " ".join(map(str, [0, 0, 0, 0, 0x27, *[0] * 27, *([0x0F, *[0] * 27] * 19)]))

DELIVERIES = (
    Delivery("another model", "model", drive={"model": "ACME 8000"}, also=("alike",)),
    Delivery("a relabelled drive of a lesser series", "model", "sata", drive={"model": "ACM3 500"}, also=("alike",)),
    Delivery("an older firmware", "firmware", smart={"firmware_version": "2CV0R099"}, also=("alike",)),
    Delivery(
        "one drive with another firmware, without an order",
        "alike",
        smart={"firmware_version": "2CV2R001"},
        ordered=False,
    ),
    Delivery("half the capacity", "capacity", drive={"size_bytes": 240_057_409_536}, also=("alike",)),
    Delivery("a drive that is write-protected at the end of its life", "health", sysfs={"ro": 1}),
    Delivery("formatted with 4 KiB blocks", "sector_format", drive={"logical_block_bytes": 4096}, also=("alike",)),
    Delivery(
        "formatted with metadata",
        "sector_format",
        sections={"id-ns": '{"flbas": 1, "lbafs": [{"ms": 0, "ds": 9}, {"ms": 8, "ds": 9}]}'},
    ),
    Delivery(
        "two drives with the same serial",
        "identity",
        drive={"serial": "S9"},
        smart={"serial_number": "S9"},
        wrong=(1, 2),
    ),
    Delivery("two drives with the same WWN", "identity", drive={"wwn": "eui.0"}, wrong=(1, 2)),
    Delivery("a drive without a WWN", "identity", drive={"wwn": None}),
    Delivery(
        "a drive whose maker gave it no serial of its own",
        "identity",
        drive={"serial": "000000000001"},
        smart={"serial_number": "000000000001"},
    ),
    Delivery("a drive whose label and controller disagree on the serial", "identity", smart={"serial_number": "X77"}),
    Delivery("a drive that ran for a year", "power_on_hours", smart={"power_on_time/hours": 9204}),
    Delivery("a drive from a desktop: few hours, many power cycles", "power_cycles", smart={"power_cycle_count": 812}),
    Delivery("a drive with 41 TB written", "written", smart={f"{LOG}/data_units_written": 80_000_000}),
    Delivery(
        "a SAS drive with 900 TB written",
        "written",
        "sas",
        smart={"scsi_error_counter_log/write/gigabytes_processed": "900112.455"},
    ),
    Delivery("a worn drive whose hours were reset", "wear", smart={f"{LOG}/percentage_used": 38}),
    Delivery(
        "a worn SATA drive",
        "wear",
        "sata",
        smart={"endurance_used/current_percent": 7},
    ),
    Delivery("a drive that used spare blocks", "spare", smart={f"{LOG}/available_spare": 91}),
    Delivery("unrecovered media errors", "media", smart={f"{LOG}/media_errors": 2}),
    Delivery("a SATA drive with reallocated sectors", "media", "sata", smart={f"{ATTRIBUTES}/0/raw": {"value": 5}}),
    Delivery("a SATA drive with pending sectors", "media", "sata", smart={f"{ATTRIBUTES}/1/raw": {"value": 1}}),
    Delivery("a SAS drive with grown defects", "media", "sas", smart={"scsi_grown_defect_list": 14}),
    Delivery(
        "a SAS drive with uncorrected reads",
        "media",
        "sas",
        smart={"scsi_error_counter_log/read/total_uncorrected_errors": 3},
    ),
    Delivery(
        "an unrecovered read in the error log",
        "error_log",
        smart={f"{LOG}/num_err_log_entries": 127, "nvme_error_information_log": nvme_errors(0x281, 0x4002)},
    ),
    Delivery(
        "entries in the error log, where the order forbids any",
        "error_log",
        smart={f"{LOG}/num_err_log_entries": 127},
        order={"error_log_entries": 0},
    ),
    Delivery(
        "an uncorrectable error in the log of a SATA drive",
        "error_log",
        "sata",
        smart={
            "ata_smart_error_log/extended": {"count": 6, "table": [{"completion_registers": {"error": 0x40}}]},
        },
    ),
    Delivery("a failed self-test in the log", "self_test", sections={"self-test": FAILED_SELF_TEST}),
    Delivery(
        "a failed self-test of a SATA drive",
        "self_test",
        "sata",
        smart={"ata_smart_self_test_log/extended/error_count_total": 1},
    ),
    Delivery("a failed health assessment", "health", "sata", smart={"smart_status/passed": False}),
    Delivery("a critical warning: media is read-only", "health", smart={f"{LOG}/critical_warning": 8}),
    Delivery(
        "an attribute that failed in the past",
        "health",
        "sata",
        smart={f"{ATTRIBUTES}/0/when_failed": "past"},
    ),
    Delivery(
        "the write cache switched off", "write_cache", "sata", smart={"write_cache/enabled": False}, also=("alike",)
    ),
    Delivery(
        "a PCIe 3.0 drive instead of 4.0",
        "link_speed",
        order={"link_speed": 16.0},
        sysfs={"current_link_speed": "8.0 GT/s PCIe", "max_link_speed": "8.0 GT/s PCIe"},
        also=("alike",),
    ),
    Delivery("a PCIe link trained to a lower speed", "link_speed", sysfs={"current_link_speed": "2.5 GT/s PCIe"}),
    Delivery("a PCIe link with lanes missing", "link_width", sysfs={"current_link_width": 2}),
    Delivery(
        "a SATA link at 3 Gb/s",
        "link_speed",
        "sata",
        smart={"interface_speed/current": {"units_per_second": 30, "bits_per_unit": 100_000_000}},
    ),
    Delivery(
        "a SAS link at 6 Gb/s, 12 ordered",
        "link_speed",
        "sas",
        smart={"scsi_sas_port_0/phy_0": {"negotiated_logical_link_rate": "phy enabled; 6 Gbps"}},
    ),
    Delivery("CRC errors of a bad connector", "link_errors", "sata", smart={f"{ATTRIBUTES}/2/raw": {"value": 41}}),
    Delivery("a drive that is hot at rest", "temperature", smart={"temperature/current": 68}),
    Delivery(
        "a drive beyond its own threshold",
        "temperature",
        smart={"temperature/current": 58, "nvme_composite_temperature_threshold/warning": 55},
    ),
    Delivery(
        "a drive locked with the former owner's password",
        "security",
        "sata",
        smart={"ata_security/enabled": True, "ata_security/locked": True},
    ),
    Delivery("a password that is set, not locked", "security", "sata", smart={"ata_security/enabled": True}),
    Delivery("a failed sanitize", "sanitize", sections={"sanitize": "255 255 3 0 2 0 0 0"}),
    Delivery("two namespaces", "namespaces", sysfs={"namespaces": 2}),
    Delivery(
        "a part of the capacity in no namespace",
        "namespaces",
        sections={"id-ctrl": '{"oacs": 30, "sanicap": 3, "unvmcap": 96000000000}'},
    ),
    Delivery("no native command queuing", "queue_depth", "sata", sysfs={"queue_depth": 1}),
    Delivery(
        "a log page that is missing",
        "log_pages",
        "sata",
        smart={"ata_log_directory/table": [{"address": 0}, {"address": 3}]},
    ),
)


def is_to_be_written() -> bool:
    return bool(os.environ.get(WRITE))


def table() -> str:
    """The table of each check and the deliveries that it must find."""
    by_check: dict[str, list[str]] = {}
    for delivery in DELIVERIES:
        by_check.setdefault(delivery.check, []).append(delivery.name)
    lines = ["| check | deliveries |", "| --- | --- |"]
    lines += [f"| `{check}` | {'; '.join(names)} |" for check, names in by_check.items()]
    return "\n".join(lines)


def committed() -> str:
    """The table in the document."""
    return DOCUMENT.read_text().split(BEGIN, 1)[1].split(END, 1)[0].strip()


def write(text: str) -> None:
    before, rest = DOCUMENT.read_text().split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
