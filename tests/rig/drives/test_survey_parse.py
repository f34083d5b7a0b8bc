from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from support.builders.consents import all_risks
from support.builders.survey_records import answer
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.rig.drives.survey_parse import topology_of
from pytest_ssdqual.rig.drives.topology import BlindSpot, Drive, Match, Signature, Source, Topology, Use, UseKind
from pytest_ssdqual.rig.guard import refusals


def facts(lines: str = "", **files: str) -> str:
    return answer(lines, **files)


def listed(*entries: Mapping[str, object]) -> str:
    return json.dumps({"blockdevices": entries})


def disk(kname: str = "sda", number: str = "8:0", /, **more: object) -> dict[str, object]:
    return {"name": kname, "kname": kname, "path": f"/dev/{kname}", "maj:min": number, "type": "disk", **more}


def one(lsblk: str, said: str, kname: str = "sda") -> Topology:
    topology = topology_of(lsblk, said)
    assert kname in topology.nodes
    return topology


def test_numbers_and_flags_in_the_spellings_of_all_versions() -> None:
    old = disk(size="480103981056", ro="1", rota="0") | {"log-sec": "512", "phy-sec": "4096"}
    new = disk(size=480103981056, ro=True, rota=False) | {"log-sec": 512, "phy-sec": 4096}
    assert one(listed(old), facts()).nodes["sda"] == one(listed(new), facts()).nodes["sda"]
    node = one(listed(new), facts()).nodes["sda"]
    assert (node.size_bytes, node.read_only, node.rotational) == (480103981056, True, False)


@pytest.mark.parametrize(
    ("transport", "logical", "least", "preferred"),
    [("nvme", 512, 16384, 16384), ("nvme", 4096, 4096, None), ("nvme", 512, 0, None), ("sata", 512, 4096, None)],
)
def test_a_drive_prefers_writes_if_nvme_states_more_than_a_block(
    transport: str, logical: int, least: int, preferred: int | None
) -> None:
    entry = disk(tran=transport) | {"log-sec": logical, "min-io": least}
    assert one(listed(entry), facts()).drive("sda").preferred_write_bytes == preferred


def test_names_are_trimmed_and_empty_ones_are_none() -> None:
    node = one(listed(disk(model="INTEL SSD   ", serial="  ", wwn="0x0000000000000000")), facts()).nodes["sda"]
    assert (node.model, node.serial, node.wwn) == ("INTEL SSD", None, None)


def test_without_udev_sysfs_names_the_drive() -> None:
    sysfs = "wwid sda naa.5000c500a1b2c3d4\nserial sda  BTWL 1 \nmodel sda INTEL\nfirmware sda D201"
    node = one(listed(disk()), facts(sysfs)).nodes["sda"]
    assert (node.wwn, node.serial, node.model, node.firmware) == ("0x5000c500a1b2c3d4", "BTWL 1", "INTEL", "D201")
    node = one(listed(disk(wwn="0x5000c500a1b2c3d4", serial="UDEV")), facts(sysfs)).nodes["sda"]
    assert (node.wwn, node.serial) == ("0x5000c500a1b2c3d4", "UDEV")


def test_a_device_that_lsblk_does_not_list_is_known_all_the_same() -> None:
    sysfs = "dev sda1 8:1\nsize sda1 2048\nro sda1 0\ndisk sda1 sda"
    topology = one(listed(disk()), facts(sysfs, mounts="8:1 / /srv rw - xfs /dev/sda1 rw"))
    assert topology.nodes["sda"].partitions == ("sda1",)
    node = topology.nodes["sda1"]
    assert (node.size_bytes, node.mountpoints, node.partition_of) == (1048576, ("/srv",), "sda")


def test_a_holder_that_nobody_lists_is_kept() -> None:
    topology = one(listed(disk()), facts("holder sda dm-9"))
    assert topology.nodes["sda"].holders == ("dm-9",)
    assert topology.nodes["dm-9"].type == "unknown"


@pytest.mark.parametrize(
    ("line", "members"),
    [
        ("md127 : active raid5 sdc[2] sdb[1] sda[0]", ("sdc", "sdb", "sda")),
        ("md127 : active (auto-read-only) raid1 sda[0](F) sdb[1](S)", ("sda", "sdb")),
        ("md127 : active (read-only) raid1 cciss!c0d0[0](W)(J)", ("cciss/c0d0",)),
        ("md127 : inactive sda[1](S)", ("sda",)),
        ("md_d0 : broken raid0 sda[0]", ("sda",)),
    ],
)
def test_mdstat(line: str, members: tuple[str, ...]) -> None:
    text = f"Personalities : [raid1] [raid5]\n{line}\n      1000 blocks super 1.2 [2/2] [UU]\n\nunused devices: <none>"
    topology = one(listed(disk()), facts(mdstat=text))
    assert [array.members for array in topology.arrays] == [members]
    assert topology.nodes[members[0]].holders == (line.split()[0],)


MEMBER_UUID, SYSFS_UUID = "3aaa0122-2982-7cfa-5331-ad66ca767371", "00112233-4455-6677-8899-aabbccddeeff"
MEMBER = disk(fstype="linux_raid_member", uuid=MEMBER_UUID)


@pytest.mark.parametrize(
    ("members", "lines", "uuid"),
    [
        ([MEMBER], "", MEMBER_UUID),
        ([MEMBER], f"mduuid md5 {SYSFS_UUID}", SYSFS_UUID),
        ([disk(uuid=MEMBER_UUID)], "", None),
        # Members that disagree.
        ([MEMBER, disk("sdb", "8:16", fstype="linux_raid_member", uuid=SYSFS_UUID)], "", None),
    ],
)
def test_uuid_of_an_array_is_from_sysfs_or_all_superblocks(
    members: list[dict[str, object]], lines: str, uuid: str | None
) -> None:
    stat = "md5 : active raid1 " + " ".join(f"{each['kname']}[{n}]" for n, each in enumerate(members))
    (array,) = one(listed(*members), facts(lines, mdstat=stat)).arrays
    assert array.uuid == (uuid and uuid.replace("-", ""))


def test_mounts_by_number_and_by_source_unescaped() -> None:
    mounts = (
        r"8:0 / /mnt/with\040blank rw shared:1 - ext4 /dev/root rw"
        "\n"
        "0:27 /sub /home rw - btrfs /dev/sda rw,subvol=/sub\n"
        "0:30 / /big rw - bcachefs /dev/sdz:/dev/sda rw"
    )
    assert one(listed(disk()), facts(mounts=mounts)).nodes["sda"].mountpoints == ("/mnt/with blank", "/home", "/big")


UUID = "4e1c0a5a-0000-4000-8000-3b1f8b0d3c5e"


@pytest.mark.parametrize(
    ("listing", "said", "uses"),
    [
        ({"mountpoint": "[SWAP]"}, facts(), [Use(UseKind.SWAP)]),
        (
            {},
            facts(swaps="Filename Type Size Used Priority\n/dev/sda   partition 1 0 -2\n/swap file 1 0 -3"),
            [Use(UseKind.SWAP)],
        ),
        (
            {},
            facts("export nvmet /dev/sda\nopened 42 7 write 8:0 my daemon"),
            [Use(UseKind.EXPORT, "NVMe over Fabrics target"), Use(UseKind.WRITER, "my daemon (pid 42)")],
        ),
        ({}, facts(f"bcachefs sda {UUID}"), [Use(UseKind.BCACHEFS, UUID)]),
        (
            {},
            facts("opened 42 7 write 8:0 x\x0b==end\x1e==mounts"),
            [Use(UseKind.WRITER, r"x\x0b==end\x1e==mounts (pid 42)")],
        ),
        (
            {},
            facts(
                "generic 21:3 sda\nopened 1 3 generic 21:3 qemu\nopened 2 4 read 8:0 dd\nopened 2 5 write 8:0 dd"
            ),
            [
                Use(UseKind.GENERIC, "qemu (pid 1)"), Use(UseKind.READER, "dd (pid 2)"),
                Use(UseKind.WRITER, "dd (pid 2)"),
            ],
        ),
    ],
    ids=["swap by lsblk", "swap by the kernel", "export and writer", "bcachefs", "odd name", "open files"],
)  # fmt: skip
def test_uses_of_a_drive(listing: dict[str, object], said: str, uses: list[Use]) -> None:
    assert one(listed(disk(**listing)), said).nodes["sda"].uses == tuple(uses)


def test_candidate_that_cannot_be_opened() -> None:
    said = facts("number /dev/sda 8 0\nprobe /dev/sda 13")
    uses = topology_of(listed(disk()), said, ["sda"]).nodes["sda"].uses
    assert uses == (Use(UseKind.UNOPENABLE, "Permission denied"),)


def test_kernel_name_with_a_slash_is_spelled_otherwise_in_sysfs() -> None:
    topology = one(listed(disk("cciss/c0d0")), facts(f"bcachefs cciss!c0d0 {UUID}"), "cciss/c0d0")
    assert topology.nodes["cciss/c0d0"].uses == (Use(UseKind.BCACHEFS, UUID),)


def test_a_loop_device_over_a_drive_holds_it() -> None:
    loop = disk("loop3", "7:3") | {"type": "loop"}
    topology = one(listed(disk(), loop), facts("loop loop3 /dev/sda"))
    assert topology.nodes["sda"].holders == ("loop3",)
    assert one(listed(disk(), loop), facts("loop loop3 /srv/image")).nodes["sda"].holders == ()


def test_drive_by_an_unknown_name_is_known_by_its_number() -> None:
    exported = one(listed(disk("sda", "8:10")), facts("export target /mnt/odd\nexported target 8 a"))
    assert exported.nodes["sda"].uses == (Use(UseKind.EXPORT, "SCSI target"),)
    loop = disk("loop3", "7:3") | {"type": "loop"}
    over = one(listed(disk("sda", "8:10"), loop), facts("loop loop3 /mnt/odd (deleted)\nover loop3 8 a"))
    assert over.nodes["sda"].holders == ("loop3",)


def test_every_exporter_has_a_name() -> None:
    lines = [f"exported {exporter} 8 0" for exporter in ("nvmet", "target", "gadget", "rnbd", "xen", "scst")]
    uses = one(listed(disk()), facts("\n".join(lines))).nodes["sda"].uses
    assert [use.kind for use in uses] == [UseKind.EXPORT] * 6
    assert refusals.refusals(one(listed(disk(serial="S1")), facts(lines[-1])), [Match("", "", "sda")], all_risks("S1"))


def test_device_that_became_another_meanwhile_is_an_error() -> None:
    with pytest.raises(ValueError, match="sda was replaced"):
        topology_of(listed(disk()), facts("dev sda 8:16"))


def test_two_stories_of_one_device_are_an_error() -> None:
    upper = disk("md1", "9:1") | {"type": "raid1"}
    told = [disk("sda") | {"children": [upper]}, disk("sdb", "8:16") | {"children": [upper | {"fstype": "ext4"}]}]
    with pytest.raises(ValueError, match="contradictory values"):
        topology_of(listed(*told), facts())
    told[1]["children"] = [upper]
    assert topology_of(listed(*told), facts()).nodes["md1"].slaves == ("sda", "sdb")


@pytest.mark.parametrize(
    ("one_name", "other_name", "same"),
    [
        ({"serial": "S 1"}, {"serial": "S_1"}, True),
        ({"serial": "S 1"}, {"serial": "S1"}, False),
        ({"wwn": "0x5000c500A1B2C3D4"}, {"wwn": "naa.5000c500a1b2c3d4"}, True),
        ({"serial": None}, {"serial": None}, False),
        ({"wwn": "0x0000000000000000"}, {"wwn": "0x0000000000000000"}, False),
    ],
)
def test_twins_have_a_name_in_common_however_it_is_spelled(
    one_name: dict[str, str | None], other_name: dict[str, str | None], same: bool
) -> None:
    topology = topology_of(listed(disk(**one_name), disk("sdb", "8:16", **other_name)), facts())
    assert [node.kname for node in topology.twins("sda")] == (["sdb"] if same else [])


def test_twins_are_known_by_every_name_and_through_each_other() -> None:
    drives = (
        disk(serial="UDEV"), disk("sdb", "8:16", wwn="0x51"), disk("sdc", "8:32", wwn="0x51"), disk("sdd", "8:48"),
        disk("sda1", "8:1", serial="UDEV"), disk("sde", "8:64", serial="UDEV"),
    )  # fmt: skip
    sysfs = "serial sda KERNEL\nserial sdb KERNEL\nserial sdd OTHER\ndisk sda1 sda\nholder sda sde"
    topology = topology_of(listed(*drives), facts(sysfs))
    twins = {kname: [node.kname for node in topology.twins(kname)] for kname in ("sda", "sdc", "sdd")}
    assert twins == {"sda": ["sdb", "sdc"], "sdc": ["sda", "sdb", "sde"], "sdd": []}, "what is built on it is no twin"
    by_wwid = disk(), disk("sdb", "8:16", wwn="0x51")
    topology = topology_of(listed(*by_wwid), facts("wwid sda naa.52\nwwid sdb naa.52"))
    assert [node.kname for node in topology.twins("sda")] == ["sdb"]


def test_what_could_not_be_looked_at_is_told_and_is_no_finding() -> None:
    topology = topology_of(listed(disk()), facts("blind openers old find\nblind layers no zpool"))
    assert topology.blind == (BlindSpot(Source.OPENERS, "old find"), BlindSpot(Source.LAYERS, "no zpool"))
    assert topology.nodes["sda"].uses == ()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("number /dev/sda 8 10\nprobe /dev/sda 0", "/dev/sda is not the device that the kernel calls sda"),
        ("probe /dev/sda 0", "/dev/sda is not the device that the kernel calls sda"),
        ("number /dev/sda 8 0", "/dev/sda could not be probed"),
        ("number /dev/sda 8 0\nprobe /dev/sdb 0", "/dev/sda could not be probed"),
    ],
)
def test_a_candidate_that_was_not_probed_is_an_error(lines: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        topology_of(listed(disk()), facts(lines), ["sda"])


def test_all_signatures_of_a_candidate_are_kept() -> None:
    uuid = "3aaa0122-2982-7cfa-5331-ad66ca767371"
    found = ("gpt", "PMBR", "gpt", f"ext4 {uuid}")
    said = facts("\n".join(f"signature /dev/sda {each}" for each in found))
    assert one(listed(disk()), said).nodes["sda"].signatures == (
        Signature("gpt"),
        Signature("PMBR"),
        Signature("ext4", uuid),
    )


@pytest.mark.parametrize("line", ["opened 1 3 generic 21:3 qemu", "opened 1 3 odd 8:0 qemu"])
def test_an_open_file_that_is_not_understood_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="an unknown shape"):
        topology_of(listed(disk()), facts(line))


@pytest.mark.parametrize("passthru", ["/dev/nvme3 f0 3", "/run/odd f0 3", "/dev/nvme3 "])
def test_a_controller_that_is_exported_exports_its_namespaces(passthru: str) -> None:
    drives = disk("nvme3n1", "259:0"), disk("nvme3n2", "259:1"), disk("nvme33n1", "259:2")
    lines = f"passthru {passthru}\n" + "\n".join(f"controller nvme3n{each} 240:3" for each in (1, 2))
    nodes = topology_of(listed(*drives), facts(lines)).nodes
    used = [name for name, node in nodes.items() if node.uses and node.uses[0].kind is UseKind.EXPORT]
    assert used == ["nvme3n1", "nvme3n2"]


def test_only_existing_reservations_ports_and_zones_are_uses() -> None:
    drives = disk(), disk("sdb", "8:16"), disk("sdc", "8:32"), disk("sdd", "8:48")
    lines = (
        "reserved /dev/sda 0 0\nreserved /dev/sdb 5 2\nreserved /dev/sdc 0 1\nmultiport /dev/sdd\n"
        "zoned sda none\nzoned sdd host-managed"
    )
    uses = {name: node.uses for name, node in topology_of(listed(*drives), facts(lines)).nodes.items()}
    assert uses == {
        "sda": (),
        "sdb": (Use(UseKind.RESERVED, "type 5, registrations: 2"),),
        "sdc": (Use(UseKind.RESERVED, "type 0, registrations: 1"),),
        "sdd": (Use(UseKind.ZONED, "host-managed"), Use(UseKind.MULTIPORT)),
    }


def test_a_pid_namespace_that_is_not_the_first_is_reported() -> None:
    assert topology_of(listed(disk()), facts("pidns 4026531836")).blind == ()
    (spot,) = topology_of(listed(disk()), facts("pidns 4026532201")).blind
    assert spot.source is Source.OPENERS


def test_layers_are_walked_to_both_ends_and_cycles_end() -> None:
    sda, sdb = Device("sda", "disk", "8:0"), Device("sdb", "disk", "8:16")
    part = Device("sda1", "part", "8:1", partition=True)
    md, crypt = Device("md1", "raid1", "9:1"), Device("dm-0", "crypt", "252:0")
    sda.uppers, part.uppers, sdb.uppers, md.uppers = [part], [md], [md], [crypt]
    crypt.uppers = []
    world = World([sda, sdb])
    topology = topology_of(world.lsblk(), world.facts())
    assert topology.below("sda") == ("sda1", "md1", "dm-0")
    assert sorted(topology.whole_disks("dm-0")) == ["sda", "sdb"]
    assert topology.whole_disks("sdb") == ("sdb",)
    looped = one(listed(disk("sda"), disk("sdb", "8:16")), facts("holder sda sdb\nholder sdb sda"))
    assert looped.below("sda") == ("sdb",)


@pytest.mark.parametrize(
    ("line", "link", "limit"),
    [
        ("link sda 16.0 GT/s PCIe", "16.0 GT/s PCIe", None),
        ("link sda ", None, None),
        ("depth sda 32", None, 32),
        ("depth sda ", None, None),
        ("depth sda none", None, None),
        ("", None, None),
    ],
)
def test_link_and_depth_of_a_drive_where_the_host_knows_them(line: str, link: str | None, limit: int | None) -> None:
    topology = one(listed(disk()), facts(line))
    drive = topology.drive("sda")
    assert (drive.max_link, drive.queue_limit, topology.nodes["sda"].queue_limit) == (link, limit, limit)
    assert from_plain(Drive, plain(drive)) == drive
