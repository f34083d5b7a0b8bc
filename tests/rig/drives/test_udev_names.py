from __future__ import annotations

import pytest
from support.builders.consents import all_risks
from support.builders.survey_records import answer
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.rig.drives.survey_parse import topology_of
from pytest_ssdqual.rig.drives.topology import Node, UseKind
from pytest_ssdqual.rig.drives.udev_names import contradictions
from pytest_ssdqual.rig.guard import refusals

NAA = "0x5000c500a1b2c3d4"
NVME = "nvme.1b36-5353445130303031-51454d55204e564d65204374726c-00000001"


def node(kname: str, serial: str | None = None, wwn: str | None = None, transport: str | None = "sata") -> Node:
    return Node(kname, f"/dev/{kname}", "8:0", "disk", 1, serial=serial, wwn=wwn, transport=transport)


@pytest.mark.parametrize(
    ("kname", "udev", "kernel", "differs"),
    [
        ("nvme0n1", "S1", "S1   ", False),
        ("nvme0n1", "S_1", "S 1", False),
        ("nvme0n1", "ACME_SSD_S1_1", "S1", False),
        ("nvme0n1", "a_b_c", "a*b(c", False),
        ("nvme0n1", "S1", "", False),
        ("nvme0n1", "S1", "S2", True),
        ("vda", "S1", "S2", True),
        ("sda", "S1", "S2", False),  # sysfs has no serial number of SCSI drives
        ("mmcblk0", "S1", "0x12345678", False),
    ],
)
def test_serial_number_of_another_drive(kname: str, udev: str, kernel: str, differs: bool) -> None:
    assert bool([*contradictions(node(kname, serial=udev), [kernel], [])]) == differs


@pytest.mark.parametrize(
    ("udev", "kernel", "differs"),
    [
        (NAA, "naa.5000c500a1b2c3d4", False),
        (NAA.upper().replace("X", "x"), "naa.5000c500a1b2c3d4", False),
        (NAA, "naa.5000c500a1b2c3d5", True),
        (NAA, "naa.6000c500a1b2c3d5", False),
        (NAA, "naa.5000c500a1b2c3d50000000000000001", False),
        (NAA, "t10.ATA     ACME SSD                S2", False),
        (NAA, "naa.0000000000000000", False),
        ("eui.0025385b01234567", "eui.0025385b01234568", True),
        ("eui.0025385b01234567", "eui.01000000010000005cd2e4b2c3d45451", False),
        ("eui.0025385b01234567", NVME, False),
        (NVME, NVME, False),
        (NVME, NVME.replace("30303031", "3030303131"), True),
        ("uuid.4e1c0a5a-0000-4000-8000-3b1f8b0d3c5e", "uuid.4e1c0a5a-0000-4000-8000-3b1f8b0d3c5f", True),
    ],
)
def test_wwn_of_another_drive(udev: str, kernel: str, differs: bool) -> None:
    assert bool([*contradictions(node("sda", wwn=udev), [], [kernel])]) == differs


def test_one_of_several_names_is_enough_except_of_bridges() -> None:
    assert not [*contradictions(node("sda", wwn=NAA), [], ["naa.5000c500a1b2c3d5", "naa.5000c500a1b2c3d4"])]
    assert not [*contradictions(node("sda", wwn=NAA, transport="usb"), [], ["naa.5000c500a1b2c3d5"])]


def test_drive_with_names_of_two_drives_is_always_refused() -> None:
    disk = Device("nvme0n1", "disk", "259:0", serial="OLD", transport="nvme")
    world = World([disk])
    facts = answer("serial nvme0n1 NEW\nnumber /dev/nvme0n1 103 0\nprobe /dev/nvme0n1 0")
    topology = topology_of(world.lsblk(), facts, ["nvme0n1"])
    assert [use.kind for use in topology.nodes["nvme0n1"].uses] == [UseKind.MISNAMED]
    (refusal,) = refusals.refusals(topology, world.matches(disk), all_risks("OLD"))
    (reason,) = refusal.reasons
    assert all(each in reason for each in ("serial OLD", "NEW"))
    assert refusals.no_drives(topology, world.matches(disk))
    was = topology_of(world.lsblk(), facts.replace("NEW", "OLD"), ["nvme0n1"]).drive("nvme0n1")
    assert any("is called new" in each for each in refusals.changed(topology, was))
