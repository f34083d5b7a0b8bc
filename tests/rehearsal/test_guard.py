"""Drives that must not be destroyed, in a real machine, past the real guard: each refused, each byte left alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rehearsed import SERIALS, Server, Start

from pytest_ssdqual.rig import purge, safety, ssh
from pytest_ssdqual.rig.blockdev import expand, survey
from pytest_ssdqual.rig.channel import Channel
from pytest_ssdqual.rig.hold import HeldDrives
from pytest_ssdqual.rig.machine import DriveRefused
from pytest_ssdqual.rig.topology import Drive

if TYPE_CHECKING:
    from rehearsed import LabHost

pytestmark = pytest.mark.lab

BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{}"

#: $1 to $4 are the drives. Several cases at once: booting and asking cost more than setting up.
SCENES = {
    "remains": """
        mdadm --create /dev/md90 --run --metadata=1.2 --homehost=any --level=1 --raid-devices=2 --assume-clean \
            --bitmap=none --uuid=3aaa0122:29827cfa:5331ad66:ca767371 "$1" "$2" 2>/dev/null
        mdadm --stop /dev/md90 2>/dev/null
        wipefs --all --quiet "$2"
        blockdev --setro "$2"
        mke2fs -q "$3"
        truncate -s 8M /run/image; losetup /dev/loop0 /run/image
    """,
    "file systems": """
        echo 'label: gpt
        size=100MiB
        size=100MiB' | sfdisk --quiet "$1"
        echo , | sfdisk --quiet "$2"; udevadm settle
        mke2fs -q "$2"p1; mkdir -p /mnt/part /mnt/whole; mount "$2"p1 /mnt/part
        mke2fs -q "$3"; mount "$3" /mnt/whole
        ln -s "$3" /dev/innocent
        mkswap -q "$4"; swapon "$4"
    """,
    "layers": """
        mdadm --create /dev/md90 --run --metadata=1.2 --homehost=any --level=1 --raid-devices=2 --assume-clean \
            --bitmap=none --uuid=3aaa0122:29827cfa:5331ad66:ca767371 "$1" "$2" 2>/dev/null
        pvcreate -qq "$3"; vgcreate -qq vg "$3"; lvcreate -qq -Wn -Zn -l 10 -n lv vg 2>/dev/null
        echo secret >/run/key; cryptsetup -q luksFormat --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$4" /run/key
        cryptsetup open --key-file /run/key "$4" secret
    """,
}
UNDO = {
    "file systems": """
        umount /mnt/part /mnt/whole; swapoff "$4"; rm /dev/innocent
    """,
    "layers": """
        mdadm --stop /dev/md90 2>/dev/null; vgchange -qq -an vg; vgremove -qq -f vg; cryptsetup close secret
    """,
    "remains": """
        losetup --detach /dev/loop0; rm /run/image; blockdev --setrw "$2"
    """,
}
BLANK = """
for drive; do wipefs --all --quiet --force "$drive"; blkdiscard "$drive"; done; udevadm settle
for drive; do blockdev --rereadpt "$drive"; done; udevadm settle
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One way to name drives, and what must be said of it."""

    scene: str
    #: ``{1}`` to ``{4}`` are the drives' paths, ``{id1}`` … their names by serial number.
    patterns: tuple[str, ...]
    says: str
    wipe: tuple[str, ...] = ()


CASES = {
    "partitioned": Case("file systems", ("{1}",), "{d1}: carries a partition table (gpt)"),
    "partitions have to be given up too": Case("file systems", ("{1}",), "the partition {1}p1"),
    "a partition": Case("file systems", ("{1}p2",), ": is a partition on {d1}, not a whole drive"),
    "a glob of partitions": Case("file systems", ("{1}p*",), ": is a partition on {d1}, not a whole drive"),
    "partition mounted": Case("file systems", ("{2}",), "{d2}: carries {2}p1, which is mounted at /mnt/part"),
    "mounted partition": Case("file systems", ("{2}p1",), "is a partition on {d2}, not a whole drive; is mounted at"),
    "whole disk mounted": Case("file systems", ("{3}",), "{d3}: is mounted at /mnt/whole"),
    "consent does not help": Case("file systems", ("{3}",), "{d3}: is mounted at /mnt/whole", wipe=("SSDQ0003",)),
    "by its name": Case("file systems", ("{id3}",), "{id3} → {d3}: is mounted at /mnt/whole"),
    "by a link": Case("file systems", ("/dev/innocent",), "/dev/innocent → {d3}: is mounted at /mnt/whole"),
    "swap": Case("file systems", ("{4}",), "{d4}: is swap space"),
    "among others": Case("file systems", ("/dev/nvme*n1",), "{d4}: is swap space"),
    "array member": Case("layers", ("{1}",), "{d1}: is held by /dev/md90 (raid1)"),
    "array member, consent": Case("layers", ("{2}",), "{d2}: is held by /dev/md90 (raid1)", wipe=("SSDQ0002",)),
    "an array": Case("layers", ("/dev/md90",), "/dev/md90 (unknown model, no serial): is a RAID array on "),
    "volume group": Case("layers", ("{3}",), "{d3}: is held by /dev/mapper/vg-lv (lvm)"),
    "a volume": Case("layers", ("/dev/vg/lv",), "/dev/vg/lv → /dev/mapper/vg-lv (unknown model, no serial): is an LVM"),
    "LUKS open": Case("layers", ("{4}",), "{d4}: is held by /dev/mapper/secret (crypt)"),
    "stale superblock": Case("remains", ("{1}",), "{d1}: carries a signature (linux_raid_member); if that may be"),
    "consent for another": Case("remains", ("{1}",), "is the serial of no drive that was named", wipe=("SSDQ0004",)),
    "read-only": Case("remains", ("{2}",), "{d2}: is read-only"),
    "a file system": Case("remains", ("{3}",), "carries a signature (ext2); if that may be destroyed, add --ssd-wipe="),
    "named twice": Case("remains", ("{4}", "{id4}"), "{d4}: is named twice, by {4} and by {id4}; name it once"),
    "a loop device": Case("remains", ("/dev/loop0",), "/dev/loop0 (unknown model, no serial): is a loop device"),
}


@dataclass(frozen=True, slots=True)
class Rack:
    """The machine and its four drives, by serial number."""

    host: LabHost
    machine: Channel
    paths: tuple[str, ...]

    def fill(self, text: str) -> str:
        """A text of a case with the drives of today."""
        named = {f"id{number}": BY_ID.format(serial) for number, serial in enumerate(SERIALS, 1)}
        for number, (path, serial) in enumerate(zip(self.paths, SERIALS, strict=True), 1):
            named[f"d{number}"] = f"{path} (QEMU NVMe Ctrl, serial {serial})"
            text = text.replace(f"{{{number}}}", path)
        for name, value in named.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def hashes(self) -> dict[str, str]:
        """Of every byte of every drive, read past the machine."""
        digests = {}
        for serial in SERIALS:
            with self.host.vm.backing_file(serial).open("rb") as file:
                digests[serial] = hashlib.file_digest(file, "sha256").hexdigest()
        return digests

    def refusals(self, patterns: tuple[str, ...], wipe: tuple[str, ...] = ()) -> str:
        """What the guard says, asked directly."""
        matches = expand(self.machine, patterns)
        topology = survey(self.machine, [match.kname for match in matches])
        return safety.explain(safety.refusals(topology, matches, frozenset(wipe)))

    def drive(self, number: int) -> Drive:
        (match,) = expand(self.machine, [self.paths[number - 1]])
        return survey(self.machine, [match.kname]).drive(match.kname)


@pytest.fixture(scope="module")
def rack(lab: LabHost) -> Iterator[Rack]:
    machine = ssh.connect(ssh.Target("lab", ("-F", str(lab.ssh_config))))
    found = machine.run(["readlink", "-f", *(BY_ID.format(serial) for serial in SERIALS)]).text.split()
    for serial in SERIALS:
        lab.vm.set_iops(serial, 0)  # no limit: what is set up here is not measured
    yield Rack(lab, machine, tuple(found))
    for serial in SERIALS:
        lab.vm.set_iops(serial, 300)
    machine.close()
    assert Server(lab).left() == []


@pytest.fixture(scope="module", params=SCENES)
def scene(request: pytest.FixtureRequest, rack: Rack) -> Iterator[str]:
    """One scene at a time: pytest puts the tests that want the same one together."""
    name: str = request.param
    try:
        rack.machine.run(["sh", "-ec", SCENES[name], "scene", *rack.paths])
        rack.machine.run(["udevadm", "settle"])
        yield name
    finally:
        rack.machine.run(["sh", "-c", UNDO[name] + BLANK, "undo", *rack.paths], check=False)


def test_the_guard_says_why(scene: str, rack: Rack, subtests: pytest.Subtests) -> None:
    for name, case in CASES.items():
        if case.scene == scene:
            with subtests.test(name):
                said = rack.refusals(tuple(map(rack.fill, case.patterns)), case.wipe)
                assert rack.fill(case.says) in said


#: pytest keeps a scene for tests that name it at the same index: it is the first of all.
REMAINS = pytest.mark.parametrize("scene", ["remains"], indirect=True)

#: One run of the program for each scene, with all its drives: a run takes seconds, and every reason must be told.
RUNS = {
    "file systems": ("{d2}: carries {2}p1, which is mounted", "{d3}: is mounted at /mnt/whole", "{d4}: is swap space"),
    "layers": (
        "{d1}: is held by /dev/md90",
        "{d3}: is held by /dev/mapper/vg-lv",
        "{d4}: is held by /dev/mapper/secret",
    ),
    "remains": (
        "{d1}: carries a signature (linux_raid_member)",
        "{d2}: is read-only",
        "{d3}: carries a signature (ext2)",
    ),
}


def test_a_run_ends_before_it_began(scene: str, rack: Rack, tmp_path: Path) -> None:
    rack.machine.run(["sh", "-c", "sync; for drive; do blockdev --flushbufs $drive; done", "sync", *rack.paths])
    before = rack.hashes()
    done = Start(tmp_path, Server(rack.host).options)("lab:/dev/nvme[0-9]n1").finish()
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    for sentence in RUNS[scene]:
        assert rack.fill(sentence) in done.output
    assert "Traceback" not in done.output
    assert rack.hashes() == before


@REMAINS
def test_a_drive_that_is_put_to_use_after_the_guard_passed_it_is_refused(scene: str, rack: Rack) -> None:
    drive = rack.drive(4)
    assert rack.refusals((drive.path,)) == ""
    rack.machine.run(["sh", "-ec", 'mke2fs -q "$1"; mkdir -p /mnt/late; mount "$1" /mnt/late', "mount", drive.path])
    try:
        with pytest.raises(DriveRefused, match="is mounted at /mnt/late"):
            HeldDrives(rack.machine, [drive])
        with pytest.raises(DriveRefused, match="could not open it exclusively"):
            purge.purge(rack.machine, [drive], best=True)
        rack.machine.run(["test", "-d", "/mnt/late/lost+found"])
    finally:
        rack.machine.run(["umount", "/mnt/late"])
        rack.machine.run(["wipefs", "--all", "--quiet", drive.path])


@REMAINS
def test_with_consent_remains_are_no_reason(scene: str, rack: Rack) -> None:
    assert rack.refusals((rack.paths[0], rack.paths[2]), ("SSDQ0001", "SSDQ0003")) == ""


@REMAINS
def test_a_blank_drive_needs_none(scene: str, rack: Rack) -> None:
    assert rack.refusals((BY_ID.format("SSDQ0004"),)) == ""
