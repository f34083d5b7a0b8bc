from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.consents import all_risks, of, unmarked, wiped
from support.builders.survey_records import probed, record
from support.fakes.scripted import ScriptedMachine
from support.simulator.simulated_disks import Device, World, worlds

from pytest_ssdqual.rig.drives.survey_parse import topology_of
from pytest_ssdqual.rig.drives.topology import Drive, Match, Topology
from pytest_ssdqual.rig.guard.consent import Consent, Risk
from pytest_ssdqual.rig.guard.refusals import (
    DrivesGone,
    Refusal,
    changed,
    explain,
    in_use,
    leftovers,
    recheck,
    refusals,
    unequal,
)
from pytest_ssdqual.rig.machine.machine import DriveRefused

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"


def ssd(letter: str = "b", **more: object) -> Device:
    minor = ord(letter) - ord("a")
    disk = Device(f"sd{letter}", "disk", f"8:{minor * 16}", serial=f"SER{letter}", wwn=f"0x500{minor + 1}")
    for name, value in more.items():
        setattr(disk, name, value)
    return disk


def part(disk: Device, index: int = 1, **more: object) -> Device:
    disk.pttype = "gpt"
    number = f"8:{int(disk.number.split(':')[1]) + index}"
    device = Device(f"{disk.kname}{index}", "part", number, partition=True, model=None)
    for name, value in more.items():
        setattr(device, name, value)
    disk.uppers.append(device)
    return device


def surveyed(world: World, *devices: Device) -> Topology:
    named = devices or tuple(world.disks)
    return topology_of(world.lsblk(), world.facts(*(one.path for one in named)), [one.kname for one in named])


def objections(*disks: Device, wipe: tuple[str, ...] = (), ours: tuple[str, ...] = ()) -> tuple[Refusal, ...]:
    world = World(list(disks))
    return refusals(surveyed(world), world.matches(), wiped(*wipe), ours)


def refused(*disks: Device, wipe: tuple[str, ...] = (), ours: tuple[str, ...] = ()) -> str:
    return unmarked(explain(objections(*disks, wipe=wipe, ours=ours)))


def asked(*disks: Device, wipe: tuple[str, ...] = ()) -> list[str]:
    """The names by which the refusals ask for consent to destroy content."""
    consents = [consent for refusal in objections(*disks, wipe=wipe) for consent in refusal.consents]
    assert all(consent.risk is Risk.CONTENT for consent in consents)
    return [consent.name for consent in consents]


def test_process_that_hangs_is_a_symptom_of_its_drive() -> None:
    disk = ssd(use="silent")
    named = part(disk, use="silent")
    world = World([disk, ssd("c")])
    topology = surveyed(world)
    assert topology.candidates == {"sdc"}
    assert {kname for kname, node in topology.nodes.items() if node.is_silent} == {"sdb"}
    (refusal,) = refusals(topology, world.matches(), all_risks("SERb"))
    assert len(refusal.reasons) == 1  # the process of the partition hangs on the same drive
    for reason in refusal.reasons:
        assert reason.startswith("does not answer")
        assert "systemd-udevd" in reason
        assert "31 s" in reason
    assert not any("open for reading" in reason for reason in in_use(topology, named.kname))


@given(worlds())
def test_nothing_in_use_is_ever_passed(world: World) -> None:
    topology = surveyed(world)
    everything = all_risks(*(disk.serial for disk in world.disks if disk.serial))
    for disk in world.disks:
        stopped = bool(refusals(topology, world.matches(disk), all_risks(disk.serial or "")))
        assert stopped == disk.really_in_use, topology.nodes[disk.kname]
        assert bool(changed(topology, topology.drive(disk.kname))) == disk.really_in_use
    told = {one.drive for one in refusals(topology, world.matches(), everything)}
    assert told == {topology.nodes[disk.kname].describe() for disk in world.disks if disk.really_in_use}


@given(worlds(), st.data())
def test_what_is_not_a_whole_disk_is_never_passed(world: World, data: st.DataObject) -> None:
    others = [device for device in world.devices() if device not in world.disks]
    if others:
        device = data.draw(st.sampled_from(others))
        assert refusals(surveyed(world, device), world.matches(device))


@given(worlds())
def test_content_needs_consent_and_a_blank_drive_does_not(world: World) -> None:
    topology = surveyed(world)
    for disk in world.disks:
        blank = not disk.really_in_use and not disk.pttype and not disk.fstype
        assert (refusals(topology, world.matches(disk)) == ()) == blank


def test_a_refusal_names_the_drive_and_every_reason() -> None:
    disk = ssd()
    part(disk, 1, mountpoint="/", fstype="ext4")
    part(disk, 2, use="swap")
    (refusal,) = objections(disk, ssd("c"))
    root, swap, content = refusal.reasons
    assert (refusal.kname, refusal.consents) == ("sdb", ())
    assert root.startswith("carries /dev/sdb1, which")
    assert swap.startswith("carries /dev/sdb2, which")
    assert all(each in content for each in ("(gpt)", "(ext4) on /dev/sdb1", "partition /dev/sdb2"))
    assert all(each in str(refusal) for each in (refusal.drive, *refusal.reasons))


def test_consent_tells_what_to_type_and_is_by_serial() -> None:
    assert asked(ssd(fstype="ext4")) == ["SERb"]
    assert "add --ssd-wipe=SERb" in refused(ssd(fstype="ext4"))
    assert "add '--ssd-wipe=SER b'" in refused(ssd(fstype="ext4", serial="SER b"))
    assert refused(ssd(fstype="ext4"), wipe=("SERb",)) == ""
    assert refused(ssd(fstype="ext4"), wipe=("0x5002",)) == ""
    assert asked(ssd(fstype="ext4"), ssd("c"), wipe=("SERc",)) == ["SERb"]


def test_consent_for_a_generic_serial_is_by_wwn() -> None:
    assert refused(ssd(serial="123456789012")) == "", "beside a WWN it is no reason"
    drive = ssd(fstype="ext4", serial="123456789012")
    assert asked(drive) == asked(drive, wipe=("123456789012",)) == ["0x5002"]
    assert "--ssd-wipe=123456789012: is" in refused(drive, wipe=("123456789012",))
    assert refused(drive, wipe=("0x5002",)) == ""


def test_consent_never_helps_a_drive_in_use_and_is_not_offered() -> None:
    (refusal,) = objections(ssd(fstype="ext4", mountpoint="/data"), wipe=("SERb",))
    assert [reason.split()[-1] for reason in refusal.reasons] == ["/data"]
    (refusal,) = objections(ssd(fstype="ext4", mountpoint="/data"))
    assert refusal.consents == ()
    assert "--ssd-wipe" not in str(refusal)


def test_a_mistyped_consent_is_told() -> None:
    (refusal,) = objections(ssd(), wipe=("SERX",))
    assert refusal.drive == "--ssd-wipe=SERX"
    assert "SERb" in str(refusal)


@pytest.mark.parametrize(
    ("disk", "reason"),
    [
        (ssd(read_only=True), "is read-only"),
        (ssd(size=0), "has no capacity (0 bytes)."),
        (
            ssd(size=0, transport="nvme"),
            "with metadata or blocks that the kernel cannot use; see `nvme id-ns -H /dev/sdb`",
        ),
        (
            ssd(size=0, transport="sas"),
            "of 520 or 528 bytes, which the kernel cannot use; see `sg_readcap -l /dev/sdb`",
        ),
        (
            ssd(serial=None, wwn=None),
            "has neither a serial number nor a WWN, so it cannot be distinguished from another drive",
        ),
        (
            ssd(serial="123456789012", wwn=None),
            "has no WWN, and its serial number 123456789012 is one that many drives have, so it cannot be",
        ),
        (ssd(rotational=True), "is a hard disk, not an SSD"),
        (ssd(use="writer"), "is open for writing by qemu kvm (pid 4711)"),
        (ssd(use="btrfs"), "is part of the mounted btrfs 4e1c0a5a-0000-4000-8000-3b1f8b0d3c5e"),
        (ssd(use="zfs"), "is part of an imported ZFS pool"),
        (Device("loop7", "loop", "7:7", model=None), "is a loop device, not a whole drive"),
        (Device("sr0", "rom", "11:0", serial="R"), "is an optical drive, not a whole drive"),
        (Device("md1", "raid5", "9:1", serial="R"), "is a RAID array, not a whole drive"),
    ],
)
def test_each_reason_has_its_sentence(disk: Device, reason: str) -> None:
    assert reason in refused(disk)


def test_rotational_virtual_and_usb_drives_are_no_hard_disks() -> None:
    assert refused(ssd(rotational=True, transport=None), ssd("c", rotational=True, transport="usb")) == ""


def test_partition_is_refused_with_its_disk_and_its_use() -> None:
    disk = ssd()
    first, _ = part(disk, 1), part(disk, 2, mountpoint="/home")
    world = World([disk])
    (one,) = refusals(surveyed(world, first), [Match("/dev/disk/by-id/x-part1", "/dev/disk/by-id/x-part1", "sdb1")])
    assert one.drive.startswith("/dev/disk/by-id/x-part1 → /dev/sdb1 ")
    partition, use = one.reasons
    assert "partition on /dev/sdb " in partition
    assert [word for word in use.replace(",", "").split() if "/" in word] == ["/dev/sdb", "/dev/sdb2", "/home"]


def test_a_drive_named_twice_is_refused() -> None:
    world = World([ssd()])
    matches = [Match("/dev/sdb", "/dev/sdb", "sdb"), Match("/dev/disk/by-id/*", "/dev/disk/by-id/x", "sdb")]
    (refusal,) = refusals(surveyed(world), matches)
    (reason,) = refusal.reasons
    assert "named twice" in reason
    assert "/dev/disk/by-id/x" in reason


def test_two_paths_of_one_drive_are_refused_and_share_their_uses() -> None:
    here, there = ssd("b"), ssd("c", wwn="0x5002", serial="SERb")
    assert "(same WWN 0x5002)" in refused(here, there)
    there.mountpoint = "/srv"
    world = World([here, there])
    (one,) = refusals(surveyed(world, here), world.matches(here), all_risks("SERb"))
    topology = surveyed(world, here)
    for (reason,) in (one.reasons, changed(topology, topology.drive("sdb"))):
        assert "/dev/sdc" in reason
        assert reason.endswith("mounted at /srv")


def test_another_namespace_counts_as_a_format_may_erase_it() -> None:
    one = ssd("b", kname="nvme0n1", wwn="eui.01", serial="N")
    two = ssd("c", kname="nvme0n2", wwn="eui.02", serial="N", fstype="xfs")
    world = World([one, two])
    (refusal,) = refusals(surveyed(world, one), world.matches(one))
    (reason,) = refusal.reasons
    assert "(xfs) on /dev/nvme0n2" in reason
    assert [consent.name for consent in refusal.consents] == ["N"]
    to_one = refusals(surveyed(world, one), world.matches(one), wiped("eui.01"))
    assert to_one, "consent to one namespace is not to both"
    assert refusals(surveyed(world, one), world.matches(one), wiped("N")) == ()


def with_array() -> tuple[Device, Device, Device]:
    array = Device("md127", "raid1", "9:127", model=None, transport=None)
    members = [ssd(letter, fstype="linux_raid_member", uuid=UUID.replace(":", "-"), uppers=[array]) for letter in "bc"]
    members[1].told_by = "mdstat"
    return members[0], members[1], array


def test_an_array_of_ours_is_a_leftover_and_still_a_reason() -> None:
    one, two, array = with_array()
    topology = surveyed(World([one, two]))
    (left,) = leftovers(topology, {UUID.upper()})
    assert (left.kname, left.uuid) == ("md127", UUID.replace(":", ""))
    assert list(in_use(topology, "md127")) == []
    assert set(left.members) == {"sdb", "sdc"}
    assert leftovers(topology, {"0" * 32, "nonsense"}) == ()
    text = refused(one, two, ours=(UUID,))
    assert "(raid1), left over" in text
    assert "carries" not in text, "no consent is needed for what we wrote"
    assert "held by /dev/md127" in refused(one, two)
    array.mountpoint = "/srv"
    (use,) = in_use(surveyed(World([one, two])), "md127")
    assert use.endswith("mounted at /srv")


def test_only_the_superblock_of_ours_needs_no_consent() -> None:
    one = ssd(fstype="linux_raid_member", uuid=UUID)
    assert refused(one, ours=(UUID,)) == ""
    assert "(linux_raid_member)" in refused(one, ours=("f" * 32,))
    one.pttype = "gpt"
    assert "(gpt)" in refused(one, ours=(UUID,))


def test_claim_is_a_reason_unless_a_mount_explains_it() -> None:
    world = World([ssd()])

    def reasons(more: str = "") -> tuple[str, ...]:
        facts = more + probed(world.facts("/dev/sdb"), "/dev/sdb", 16)
        return refusals(topology_of(world.lsblk(), facts, ["sdb"]), world.matches())[0].reasons

    claim = "is open exclusively by something else"
    assert reasons() == (claim,)
    opened = written("opened 7 3 write 8:16 dd")
    by_dd, further = reasons(opened)
    assert by_dd.endswith("dd (pid 7)")
    assert further == claim
    world.disks[0].mountpoint = "/x"
    (mount,) = reasons()
    assert mount.endswith("mounted at /x")


def with_lines(*lines: str) -> Topology:
    world = World([ssd()])
    return topology_of(world.lsblk(), "".join(map(written, lines)) + world.facts("/dev/sdb"), ["sdb"])


def written(line: str) -> str:
    return "".join(f"{field}\0" for field in record(line))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("opened 7 3 read 8:16 dd",), "is open for reading by dd (pid 7)"),
        (
            ("generic 21:1 sdb", "opened 7 3 generic 21:1 qemu"),
            "is open through a character device (sg, bsg or ng) by qemu (pid 7)",
        ),
        (("reserved /dev/sdb 5 2",), "is reserved by, or registered with, a host (type 5, registrations: 2)"),
        (("zoned sdb host-managed",), "is a zoned drive (host-managed), and those are not tested"),
        (("export target /dev/sdb",), "is exported (SCSI target)"),
        (
            ("passthru /dev/sdx f0 1", "controller sdb 240:1"),
            "is exported (NVMe over Fabrics target, passthru of /dev/sdx)",
        ),
    ],
)
def test_no_consent_helps_against_a_use(lines: tuple[str, ...], reason: str) -> None:
    serial = ssd().serial or ""
    (refusal,) = refusals(with_lines(*lines), World([ssd()]).matches(), all_risks(serial))
    assert refusal.reasons == (reason,)


def test_a_further_port_needs_consent() -> None:
    topology, named = with_lines("multiport /dev/sdb"), World([ssd()]).matches()
    serial = topology.nodes["sdb"].serial or ""
    (refusal,) = refusals(topology, named)
    assert refusal.consents == (Consent(Risk.SHARED, serial),)
    assert f"--ssd-shared={serial}" in str(refusal)
    assert refusals(topology, named, of([Risk.SHARED], serial)) == ()
    assert changed(topology, topology.drive("sdb")) == (), "consent is given once, not before every step"


def test_drive_that_was_not_probed_or_vanished_is_refused() -> None:
    world = World([ssd()])
    (unprobed,) = refusals(topology_of(world.lsblk(), world.facts()), world.matches())
    (reason,) = unprobed.reasons
    assert "not probed" in reason
    (gone,) = refusals(surveyed(world), [Match("/dev/sdz", "/dev/sdz", "sdz")])
    assert (gone.drive, len(gone.reasons)) == ("/dev/sdz", 1)


def drive(**more: object) -> Drive:
    plain = surveyed(World([ssd()])).drive("sdb")
    return replace(plain, **more)  # type: ignore[arg-type]


def test_unequal_drives() -> None:
    assert unequal([drive(), drive(size_bytes=round(480_103_981_056 * 0.991))]) == ()
    (reason,) = unequal([drive(), drive(size_bytes=round(480_103_981_056 * 0.98), path="/dev/sdc")])
    assert all(each in reason for each in ("has 480103981056", "/dev/sdc", "1 %"))
    assert unequal([drive(), drive(size_bytes=470_000_000_000)], max_size_difference_percent=3) == ()
    (reason,) = unequal([drive(), drive(path="/dev/sdc", logical_block_bytes=4096)])
    assert all(each in reason for each in ("/dev/sdb 512", "/dev/sdc 4096"))
    assert unequal([]) == ()


@pytest.mark.parametrize(
    ("was", "reason"),
    [
        ({"serial": "OTHER"}, "has serial SERb where OTHER was checked"),
        ({"wwn": "0x1"}, "has WWN 0x5002 where 0x1 was checked"),
        ({"size_bytes": 1}, "has a size in bytes of 480103981056 where 1 was checked"),
        ({"kname": "sdq"}, "has kernel name sdb where sdq was checked"),
        ({"path": "/dev/sdq"}, "is gone"),
        ({}, "is read-only"),
    ],
)
def test_drive_that_is_not_the_one_that_was_checked(was: dict[str, object], reason: str) -> None:
    now = surveyed(World([ssd(read_only=not was)]))
    assert changed(now, drive(**was)) == (reason,)


def test_a_disk_that_is_built_on_another_is_not_a_drive() -> None:
    lower, upper = ssd(), Device("bcache0", "disk", "251:0", serial="B", wwn="0xb")
    lower.uppers.append(upper)
    world = World([lower])
    (refusal,) = refusals(surveyed(world, upper), world.matches(upper))
    assert any("built on /dev/sdb" in reason for reason in refusal.reasons)


def scripted(world: World) -> ScriptedMachine:
    paths = [disk.path for disk in world.disks]
    return ScriptedMachine().on("lsblk", answer=world.lsblk()).on("sh", answer=world.facts(*paths))


def test_recheck_is_three_commands_and_gives_every_reason() -> None:
    one, two = ssd("b"), ssd("c")
    world = World([one, two])
    topology = surveyed(world)
    drives = topology.drive("sdb"), topology.drive("sdc")
    machine = scripted(world)
    recheck(machine, *drives)
    assert len(machine.asked) == 3
    one.mountpoint, two.serial = "/late", "SWAPPED"
    with pytest.raises(DriveRefused) as refusal:
        recheck(scripted(world), *drives)
    first, second = str(refusal.value).splitlines()
    assert first.startswith("/dev/sdb ")
    assert first.endswith("/late.")
    assert second.startswith("/dev/sdc ")
    assert "SWAPPED where SERc" in second


@pytest.mark.parametrize(
    ("about", "refusal"),
    [("/dev/sdb", DrivesGone), ("/dev/sdc", DriveRefused), ("", DriveRefused)],
    ids=["the drive that is gone", "another drive", "the machine"],
)
def test_blind_spot_of_a_drive_that_is_gone_is_no_objection(about: str, refusal: type[DriveRefused]) -> None:
    """A dead controller keeps its node, which answers each question with an error."""
    one, two = ssd("b"), ssd("c")
    world = World([one, two])
    drives = [surveyed(world).drive(kname) for kname in ("sdb", "sdc")]
    one.size = 0
    record = ("blind_drive", "reservations", about, "why") if about else ("blind", "reservations", "why")
    facts = "\0".join((*record, world.facts("/dev/sdb", "/dev/sdc")))
    machine = scripted(world).on("sh", answer=facts)
    with pytest.raises(DriveRefused) as refused:
        recheck(machine, *drives)
    assert type(refused.value) is refusal


LAB = Path(__file__).parents[2] / "data" / "lsblk"

#: What the README beside the sample says is on the drives, as the guard must put it.
LAB_REASONS = {
    "nvme0n1": (
        "carries /dev/nvme0n1p1, which is mounted at /mnt/with blank",
        "carries /dev/nvme0n1p2, which is swap space",
        "carries a partition table (gpt), a partition table (PMBR), a signature (ext4) on /dev/nvme0n1p1, "
        "a signature (swap) on /dev/nvme0n1p2, the partition /dev/nvme0n1p3",
    ),
    "nvme1n1": (
        "is held by /dev/mapper/vg0-root (lvm)",
        "carries /dev/mapper/vg0-root, which is mounted at /mnt/lv",
        "carries a signature (LVM2_member), a signature (ext4) on /dev/mapper/vg0-root",
    ),
    "nvme2n1": (
        "is held by /dev/md7 (raid1)",
        "carries /dev/md7, which is held by /dev/mapper/vault (crypt)",
        "carries a signature (linux_raid_member), a signature (crypto_LUKS) on /dev/md7",
    ),
    "nvme3n1": (
        "is held by /dev/md7 (raid1)",
        "carries /dev/md7, which is held by /dev/mapper/vault (crypt)",
        "carries a signature (linux_raid_member), a signature (crypto_LUKS) on /dev/md7",
    ),
    "nvme4n1": (
        "carries a partition table (gpt), a partition table (PMBR), the partition /dev/nvme4n1p1; "
        "if that may be destroyed, add --ssd-wipe=SSDQ0005",
    ),
    "nvme5n1": ("is mounted at /mnt/hidden", "carries a signature (ext4)"),
    "nvme6n1": ("is open for writing by sleep (pid 286)",),
}


def test_the_drives_of_a_real_machine() -> None:
    names = [f"nvme{number}n1" for number in range(8)]
    topology = topology_of((LAB / "lab-2.38.json").read_text(), (LAB / "lab-2.38.facts").read_text(), names)
    matches = [Match(f"/dev/{name}", f"/dev/{name}", name) for name in names]
    expected = [(topology.nodes[name].describe(), LAB_REASONS[name]) for name in names[:7]]
    found = refusals(topology, matches)
    assert [(each.drive, tuple(map(unmarked, each.reasons))) for each in found] == expected
    serials = all_risks(*(topology.nodes[name].serial or "" for name in names))
    still = [refusal.drive.split()[0] for refusal in refusals(topology, matches, serials)]
    assert still == [f"/dev/nvme{number}n1" for number in (0, 1, 2, 3, 5, 6)]
    (left,) = leftovers(topology, {"bafd524b:8fcc265b:0e251d92:7a1fe008"})
    (use,) = in_use(topology, left.kname)
    assert "/dev/mapper/vault" in use, "so it is not stopped"


@pytest.mark.parametrize("source", ["json", "facts"])
def test_each_view_of_a_real_machine_is_enough_to_refuse(source: str) -> None:
    """lsblk told nothing of relations and uses, or the script saw nothing but the disks: in use all the same."""
    names = [f"nvme{number}n1" for number in range(6)]
    lsblk, facts = (LAB / "lab-2.38.json").read_text(), (LAB / "lab-2.38.facts").read_text()
    if source == "facts":
        entries = json.loads(lsblk)["blockdevices"]
        lsblk = json.dumps({"blockdevices": [{**entry, "children": [], "mountpoint": None} for entry in entries]})
    else:
        facts = re.sub(r"(holder|slave)\0[^\0]*\0[^\0]*\0|(?m:^md7 .*\n)", "", facts)
    topology = topology_of(lsblk, facts, names)
    for name in names:
        consents = all_risks(topology.nodes[name].serial or "")
        refused_here = refusals(topology, [Match(name, f"/dev/{name}", name)], consents)
        assert bool(refused_here) == (name != "nvme4n1"), name
