from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders.sheet import PRODUCT, loaded, promise

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import spec
from pytest_ssdqual.qual.spec.claims import Claim
from pytest_ssdqual.qual.spec.drive_class import DriveClass, classify, is_virtual
from pytest_ssdqual.qual.workload.workload import Workload

ONE, FOUR = Geometry.parse("drivex1"), Geometry.parse("raid5x4")
READS, WRITES = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)


@pytest.mark.parametrize(
    ("model", "transport", "link", "expected"),
    [
        ("ACME 9", "sata", None, DriveClass.SATA),
        ("ACME 9", "sas", None, DriveClass.SAS),
        ("ACME 9", "nvme", "8.0 GT/s PCIe", DriveClass.NVME),
        ("ACME 9", "nvme", "16.0 GT/s PCIe", DriveClass.NVME_GEN4),
        ("ACME 9", "nvme", "32.0 GT/s PCIe", DriveClass.NVME_GEN5),
        ("ACME 9", "nvme", "64.0 GT/s PCIe", DriveClass.NVME_GEN5),
        ("ACME 9", "nvme", "Unknown", DriveClass.NVME),
        (None, "nvme", None, DriveClass.NVME),
        ("ACME 9", "usb", "16.0 GT/s PCIe", None),
        ("ACME 9", None, None, None),
        ("QEMU NVMe Ctrl", "nvme", "16.0 GT/s PCIe", DriveClass.EMULATED),
        (" SSDQUAL-SM300", "nvme", None, DriveClass.EMULATED),
        ("Amazon Elastic Block Store", "nvme", None, DriveClass.EMULATED),
        (None, "virtio", None, DriveClass.EMULATED),
    ],
)
def test_the_class_follows_from_what_the_drive_reports(
    model: str | None, transport: str | None, link: str | None, expected: DriveClass | None
) -> None:
    assert classify(model, transport, link) is expected


@pytest.mark.parametrize(
    ("model", "transport", "kname", "expected"),
    [
        ("QEMU HARDDISK", "spi", "sdb", True),
        ("QEMU_HARDDISK", None, "sdb", True),
        (None, "virtio", "vdb", True),
        (None, None, "vdaa", True),
        (None, None, "xvdb", True),
        ("Virtual_disk", None, "sdb", True),
        ("Virtual Disk", None, "sdb", True),
        ("VMware Virtual NVMe Disk", "nvme", "nvme0n1", True),
        ("VBOX HARDDISK", "sata", "sdb", True),
        ("PersistentDisk", None, "sdb", True),
        ("nvme_card-pd", "nvme", "nvme0n1", True),
        ("MSFT NVMe Accelerator v1.0", "nvme", "nvme0n1", True),
        ("Volume", None, "sdb", True),
        ("Volume Master 9", "sata", "sdb", False),
        ("MICRON_MTFDDAK960TDS", "sata", "sdb", False),
        ("SAMSUNG MZQL27T6HBLA-00A07", "nvme", "nvme0n1", False),
        (None, "nvme", "nvme0n1", False),
        (None, "usb", "sdb", False),
    ],
)
def test_a_hypervisors_drive_is_known_by_model_transport_or_name(
    model: str | None, transport: str | None, kname: str, expected: bool
) -> None:
    assert is_virtual(model, transport, kname) is expected


def bound(drive_class: DriveClass | None, geometry: Geometry, workload: Workload) -> float:
    limit = replace(spec.default(), drive_class=drive_class).limit(Claim.P99_LATENCY, geometry, workload)
    assert limit is not None
    return limit.bound


@pytest.mark.parametrize("geometry", [ONE, FOUR, Geometry.parse("raid6x6-1failed")])
@pytest.mark.parametrize("workload", [READS, WRITES, READS.at(1), WRITES.at(1)])
def test_no_class_has_a_wider_default_than_any_drive(geometry: Geometry, workload: Workload) -> None:
    of_any = bound(None, geometry, workload)
    bounds = {each: bound(each, geometry, workload) for each in DriveClass}
    assert bounds[DriveClass.EMULATED] == of_any
    assert max(bounds.values()) == of_any
    assert bounds[DriveClass.NVME_GEN5] <= bounds[DriveClass.NVME_GEN4] <= bounds[DriveClass.SATA]


def test_nvme_drive_thirty_times_too_slow_fails_by_default() -> None:
    normal_ns = 150_000
    assert bound(DriveClass.NVME_GEN4, ONE, READS) < 30 * normal_ns < bound(None, ONE, READS)


def test_the_limit_names_the_class_that_it_is_for() -> None:
    limit = replace(spec.default(), drive_class=DriveClass.NVME_GEN4).limit(Claim.P99_LATENCY, ONE, READS)
    assert limit is not None
    assert "NVMe Gen4" in limit.source


def test_a_promise_of_a_class_is_for_that_class_only() -> None:
    text = promise(claim="p99_latency", **{"class": "sata", "at_most": "3 ms"})
    text += promise(claim="p99_latency", **{"class": ["nvme", "nvme_gen4"], "at_most": "1 ms"})
    acme = loaded(PRODUCT + text)
    found = {each: replace(acme, drive_class=each).limit(Claim.P99_LATENCY, ONE, READS) for each in (None, *DriveClass)}
    assert {each: limit.bound for each, limit in found.items() if limit} == {
        DriveClass.SATA: 3_000_000, DriveClass.NVME: 1_000_000, DriveClass.NVME_GEN4: 1_000_000,
    }  # fmt: skip


def test_sata_sheet_without_conditions_has_a_depth_of_sata() -> None:
    sheet = spec.load("kingston-dc600m-960gb")
    assert sheet.drive_class is DriveClass.SATA
    assert sheet.published(Claim.STEADY_IOPS, ONE, READS.at(32)) is not None
