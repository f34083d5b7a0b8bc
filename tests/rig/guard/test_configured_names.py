from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator.simulated_content import Contents

from pytest_ssdqual.rig.drives.topology import Node, Signature, Topology
from pytest_ssdqual.rig.guard import configured_names
from pytest_ssdqual.rig.guard.configured_names import names, parse
from pytest_ssdqual.rig.machine.machine import RigError

MULTIPATH = """
defaults { user_friendly_names yes }
blacklist {
    wwid 35000000000000001
    device { vendor "ACME" }
}
blacklist_exceptions { wwid "3500000000000000a" }
multipaths {
    multipath {
        wwid 35000000000000002   # the archive
        alias archive
    }
    # multipath { wwid 35000000000000003
}
"""


@pytest.mark.parametrize(
    ("file", "text", "paths"),
    [
        ("/etc/fstab", "/dev/sdb1 / ext4 defaults 0 1", ["/dev/sdb1"]),
        ("/etc/fstab", "# /dev/sdb1 / ext4\n  #UUID=1234 / ext4", []),
        ("/etc/fstab", "UUID=AB-CD /boot vfat", ["/dev/disk/by-uuid/AB-CD"]),
        ("/etc/fstab", 'LABEL="my disk" /srv xfs', ["/dev/disk/by-label/my\\x20disk"]),
        ("/etc/fstab", "LABEL=my\\040disk /srv xfs", ["/dev/disk/by-label/my\\x20disk"]),
        ("/etc/fstab", "PARTUUID=1-02 /srv xfs logdev=/dev/sdc,ro", ["/dev/disk/by-partuuid/1-02", "/dev/sdc"]),
        ("/etc/fstab", "/dev/sda:/dev/sdb /srv bcachefs", ["/dev/sda", "/dev/sdb"]),
        ("/etc/fstab", "host:/srv/dev/sdb /mnt nfs\ntmpfs /dev/shm tmpfs uid=7", ["/dev/shm"]),
        ("/etc/fstab", "/dev/disk/by-path/pci-0000:00:1f.2-ata-1 / ext4", ["/dev/disk/by-path/pci-0000:00:1f.2-ata-1"]),
        ("/etc/crypttab", "x /dev/disk/by-id/ata-A none plain", ["/dev/disk/by-id/ata-A"]),
        ("/etc/crypttab", "x UUID=1 /dev/sdk luks,header=/dev/sdh", ["/dev/disk/by-uuid/1", "/dev/sdk", "/dev/sdh"]),
        ("/etc/mdadm/mdadm.conf", "DEVICE /dev/sd*\nARRAY /dev/md0 devices=/dev/sda,/dev/sdb # /dev/sdc",
         ["/dev/md0", "/dev/sda", "/dev/sdb"]),
        ("/etc/libvirt/qemu/a.xml", "<disk><!-- <source dev='/dev/sda'/> --><source dev='/dev/sdb'/></disk>",
         ["/dev/sdb"]),
        ("/etc/libvirt/storage/a.xml", "<pool><source><device path=\"/dev/sdb\"/></source><target><path>/dev</path>",
         ["/dev/sdb"]),
        ("/etc/systemd/system/srv.mount", "[Mount]\n;What=/dev/sda1\nWhat=/dev/sdb1\nWhere=/srv", ["/dev/sdb1"]),
        ("/etc/systemd/system/x.swap", "What=LABEL=swap", ["/dev/disk/by-label/swap"]),
        ("/etc/auto.misc", "#old -fstype=ext4 :/dev/sda1\ndata -fstype=xfs,ro :/dev/sdb1", ["/dev/sdb1"]),
        ("/etc/pve/qemu-server/100.conf", "#/dev/sda\nscsi1: /dev/disk/by-id/ata-A,iothread=1,size=480G",
         ["/dev/disk/by-id/ata-A"]),
        ("/etc/drbd.d/r0.res", "disk /dev/sdb; # was /dev/sda\nmeta-disk /dev/sdc[0];\ndevice /dev/drbd0 minor 0;",
         ["/dev/sdb", "/dev/sdc", "/dev/drbd0"]),
        ("/host/etc/target/saveconfig.json", '{"storage_objects": [{"dev": "/dev/sdb", "plugin": "block"}]}',
         ["/dev/sdb"]),
        ("/etc/nvmet/config.json", '{"device": {"path": "/dev/nvme0n1"}}', ["/dev/nvme0n1"]),
        ("/etc/tgt/conf.d/a.conf", "<target iqn.a>\n  # backing-store /dev/sda\n  direct-store /dev/sdb\n</target>",
         ["/dev/sdb"]),
        ("/etc/nbd-server/config", "[a]\nexportname=/dev/sdb", ["/dev/sdb"]),
        # Names of files that contain those of other programs.
        ("/etc/systemd/system/srv-multipath.mount", "[Mount]\nWhat=/dev/sdb1", ["/dev/sdb1"]),
        ("/etc/systemd/system/srv-mdadm.mount", "device\nWhat=/dev/sdb1 #1", ["/dev/sdb1"]),
        ("/etc/systemd/system/srv-drbd.mount", "What=/dev/disk/by-label/a#1", ["/dev/disk/by-label/a#1"]),
        ("/etc/auto.xml", "#old :/dev/sda1\ndata :/dev/sdb1", ["/dev/sdb1"]),
        ("/etc/systemd/system/mdadm.swap", "PROGRAM /dev/sdb", ["/dev/sdb"]),
        ("/etc/mdadm.conf.d/a.conf", "PROGRAM /dev/sdb\nARRAY /dev/md0", ["/dev/md0"]),
        ("/etc/multipath/conf.d/a.conf", "path /dev/sdb", []),
    ],
)  # fmt: skip
def test_names_in_files_are_paths(file: str, text: str, paths: list[str]) -> None:
    assert [naming.path for naming in parse(file, text) if naming.path] == paths


def test_multipath_is_asked_for_what_it_may_use() -> None:
    found = list(parse("/etc/multipath.conf", MULTIPATH))
    assert [naming.wwid for naming in found] == ["35000000000000002"]


def node(kname: str, number: str, **more: object) -> Node:
    return Node(kname, f"/dev/{kname}", number, "part" if more.get("partition_of") else "disk", 1 << 30, **more)  # type: ignore[arg-type]


BLKID = "3aaa0122-2982-7cfa-5331-ad66ca767371"
TOPOLOGY = Topology(
    {
        "sda": node("sda", "8:0", partitions=("sda1",)),
        "sda1": node("sda1", "8:1", partition_of="sda", uuid="AB-CD"),
        "sdb": node("sdb", "8:16", wwn="0x5000000000000002", names=frozenset({"naa.5000000000000002"})),
        "sdc": node("sdc", "8:32", signatures=(Signature("linux_raid_member", BLKID),)),
    }
)


def found(files: dict[str, str], numbers: dict[str, str] | None = None) -> dict[str, list[str]]:
    machine = ScriptedMachine(contents=Contents(files=files, numbers=numbers or {}))
    return {
        kname: [f"{each.file} {each.text}" for each in namings] for kname, namings in names(machine, TOPOLOGY).items()
    }


def test_a_partition_counts_for_its_disk() -> None:
    said = found({"/etc/fstab": "/dev/disk/by-id/x-part1 / ext4"}, {"/dev/disk/by-id/x-part1": "8 1"})
    assert said == {"sda": ["/etc/fstab /dev/disk/by-id/x-part1"]}


def test_uuids_and_wwids_are_compared() -> None:
    assert found({"/etc/fstab": "UUID=ab-cd / vfat"}) == {"sda": ["/etc/fstab UUID=ab-cd"]}
    assert found({"/etc/multipath.conf": MULTIPATH}) == {"sdb": ["/etc/multipath.conf wwid 35000000000000002"]}
    uuid = "UUID=3aaa0122:29827cfa:5331ad66:ca767371"
    assert found({"/etc/mdadm.conf": f"ARRAY <ignore> {uuid}"}) == {"sdc": [f"/etc/mdadm.conf {uuid}"]}


def test_what_names_no_drive_of_this_machine_is_nothing() -> None:
    foreign = "/dev/sdz / ext4\nUUID=12-34 / vfat"
    assert found({"/etc/fstab": foreign}) == {}
    assert found({}) == {}


@pytest.mark.parametrize("answer", ["", "file /etc/fstab\0end\0", "text x\0file /etc/fstab\0end\0", "end"])
def test_half_an_answer_is_an_error(answer: str) -> None:
    machine = ScriptedMachine().on("sh", "-c", configured_names.FILES, answer=answer)
    with pytest.raises(RigError, match="configuration files"):
        names(machine, TOPOLOGY)


def test_names_that_are_not_resolved_are_an_error() -> None:
    machine = ScriptedMachine(contents=Contents(files={"/etc/fstab": "/dev/sdb / ext4"}))
    machine.on("sh", "-c", configured_names.RESOLVE, answer=completed(["sh"], "end\0"))
    with pytest.raises(RigError, match="incomplete answer"):
        names(machine, TOPOLOGY)


def test_the_scripts_answer_on_this_computer() -> None:
    done = subprocess.run(["sh", "-c", configured_names.FILES, "named"], capture_output=True, check=True, timeout=60)
    assert done.stdout.endswith(b"end\0")
    paths = ["/dev/null", "/nowhere", "/dev/with blank"]
    done = subprocess.run(
        ["sh", "-c", configured_names.RESOLVE, "resolve", *paths], capture_output=True, check=True, timeout=60
    )
    assert done.stdout == b"-\0-\0-\0end\0"


def test_files_of_other_programs_are_read(tmp_path: Path) -> None:
    names = (
        "etc/fstab", "etc/systemd/system/srv.mount", "etc/systemd/system/a.swap", "etc/auto.misc",
        "etc/pve/qemu-server/100.conf", "etc/drbd.d/r0.res", "etc/target/saveconfig.json", "etc/tgt/conf.d/a.conf",
        "etc/nbd-server/config", "host/etc/drbd.d/r1.res",
    )  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    script = configured_names.FILES.replace("root=\n", f"root={tmp_path}\n", 1)
    done = subprocess.run(["sh", "-c", script, "named"], capture_output=True, check=True, timeout=60)
    answer = configured_names._texts(done.stdout)
    assert sorted(text.strip() for _, text in answer) == sorted(names)


WORDS = ("{", "}", "wwid", "UUID=", "/dev/", "<!--", "-->", '"', "\n", "\\777")


@given(
    st.sampled_from(["/etc/fstab", "/etc/mdadm.conf", "/etc/multipath.conf", "/etc/libvirt/qemu/a.xml"]),
    st.text() | st.lists(st.sampled_from(WORDS)).map("".join),
)
def test_any_text_is_read(file: str, text: str) -> None:
    for naming in parse(file, text):
        assert naming.text.isprintable()
        assert "\0" not in naming.path


@given(st.binary())
def test_any_answer_is_names_or_an_error(answer: bytes) -> None:
    with suppress(ValueError):
        list(configured_names._texts(answer))


def test_the_files_that_are_read_are_told_in_the_documentation() -> None:
    told = (Path(__file__).parents[3] / "docs" / "security.md").read_text("utf-8")
    for word in ("fstab", "crypttab", "mdadm.conf", "multipath.conf", "libvirt"):
        assert word in told
        assert word in configured_names.FILES
