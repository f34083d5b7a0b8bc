"""Drives that must not be destroyed, in a real machine, past the real guard: each refused, each byte left alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from support.builders.consents import all_risks, unmarked
from support.lab.rehearsed import SERIALS, Server, Start, await_that

from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.fencing import Checked
from pytest_ssdqual.rig.drives.survey import expand, survey
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard import refusals as safety
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine import ssh
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import Completed, DriveRefused
from pytest_ssdqual.rig.purge import purge

if TYPE_CHECKING:
    from support.lab.rehearsed import LabHost

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

BY_ID = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{}"

#: In front of every scene. ``linger`` leaves a process behind whose standard input is $1; ``ended`` lets it go.
WORDS = r"""
linger() { setsid sleep 3600 <>"$1" >/dev/null 2>&1 & echo $! >>/run/lingering; }
mirror() { md=$1; shift; mdadm --create "$md" --run --metadata=1.2 --homehost=any --level=1 --raid-devices=2 \
    --assume-clean --bitmap=none --uuid=3aaa0122:29827cfa:5331ad66:ca767371 "$@" 2>/dev/null; }
parted() { for size in $2; do echo "size=$size"; done | sfdisk --quiet --label "${3:-gpt}" "$1"; udevadm settle; }
ended() { kill $(cat /run/lingering); rm /run/lingering; }
odd=$(printf '/run/odd name\nof a drive'); another=$(printf '/run/\134040\033[1m')
number() { echo $((0x$(stat -L -c %t "$1"))) $((0x$(stat -L -c %T "$1"))); }
nvmet=/sys/kernel/config/nvmet/subsystems/ssdqual
"""
#: $1 to $4 are the drives. Several cases at once: booting and asking cost more than setting up.
SCENES = {
    "remains": """
        mirror /dev/md90 "$1" "$2"; mdadm --stop /dev/md90 2>/dev/null
        wipefs --all --quiet "$2"; blockdev --setro "$2"
        mke2fs -q "$3"
        truncate -s 8M /run/image; losetup /dev/loop0 /run/image
    """,
    "file systems": """
        busybox mkdosfs "$1" >/dev/null
        parted "$2" '200MiB' dos
        mke2fs -q "$2"p1; mkdir -p /mnt/part /mnt/whole; mount -o ro "$2"p1 /mnt/part
        mke2fs -q "$3"; mount -o ro "$3" /mnt/whole
        ln -s "$3" /dev/innocent; ln -s innocent /dev/more; ln -s /dev/more "/run/so innocent"
        mknod "$odd" b $(number "$3")
        mkswap "$4" >/dev/null; swapon "$4"
    """,
    "layers": """
        mirror /dev/md90 "$1" "$2"
        pvcreate -qq "$3"; vgcreate -qq vg "$3"; lvcreate -qq -Wn -Zn -l 10 -n lv vg 2>/dev/null
        lvcreate -qq -s -l 5 -n old vg/lv 2>/dev/null
        echo secret >/run/key; cryptsetup -q luksFormat --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$4" /run/key
        cryptsetup open --key-file /run/key "$4" secret
    """,
    "deep": """
        parted "$1" '64MiB 64MiB'; parted "$2" '64MiB'
        mirror /dev/md91 "$1"p1 "$2"p1
        dmsetup create deep --table '0 65536 linear /dev/md91 0'
        mke2fs -q /dev/mapper/deep; mkdir -p '/mnt/deep down'; mount -o ro /dev/mapper/deep '/mnt/deep down'
        parted "$3" '64MiB 64MiB'; mirror /dev/md92 "$3"p1 "$3"p2
        echo inactive >/sys/block/md92/md/array_state
        modprobe -a dm_multipath dm_round_robin
        dmsetup create paths --uuid mpath-ssdqual --table "0 8192 multipath 0 0 1 1 round-robin 0 1 1 $4 1"
    """,
    "hidden": """
        for d; do mke2fs -q "$d"; done; mkdir -p /mnt/private /mnt/kept /mnt/lazy /mnt/bound /mnt/rest
        unshare --mount sh -c 'mount -o ro "$1" /mnt/private
            setsid sleep 3600 </dev/null >/dev/null 2>&1 & echo $! >>/run/lingering' sh "$1"
        mkdir /run/kept; mount --bind /run/kept /run/kept; mount --make-private /run/kept; touch /run/kept/mounts
        unshare --mount=/run/kept/mounts mount -o ro "$2" /mnt/kept
        mount -o ro "$3" /mnt/lazy; (cd /mnt/lazy; linger /dev/null); umount --lazy /mnt/lazy
        mount -o ro "$4" /mnt/bound; mount --bind /mnt/bound/lost+found /mnt/rest; umount /mnt/bound
    """,
    "open": r"""
        parted "$1" '64MiB'
        setsid perl -e 'use Fcntl; sysopen(D, $ARGV[0], O_RDONLY | O_EXCL) or die; sleep 3600' "$1"p1 \
            </dev/null >/dev/null 2>&1 & echo $! >>/run/lingering
        mknod "$odd" b $(number "$2"); linger "$odd"
        mknod "$another" b $(number "$3"); losetup /dev/loop1 "$another"; rm "$another"
        modprobe nvmet; [ -d "${nvmet%/*}" ] || mount -t configfs configfs /sys/kernel/config; mkdir "$nvmet"
        cd "$nvmet"; mkdir namespaces/1; ln -s "$4" "/run/by another name"
        echo -n "/run/by another name" >namespaces/1/device_path; echo 1 >namespaces/1/enable; sleep 0.5
    """,
    "files": """
        for d in "$1" "$2"; do mke2fs -q "$d"; done; mkdir -p /mnt/images /mnt/inside /mnt/swap
        mount "$1" /mnt/images; truncate -s 32M /mnt/images/image; mke2fs -q /mnt/images/image
        mount -o remount,ro /mnt/images; losetup --read-only /dev/loop2 /mnt/images/image
        mount -o ro /dev/loop2 /mnt/inside; umount --lazy /mnt/images
        mount "$2" /mnt/swap; dd if=/dev/zero of=/mnt/swap/file bs=1M count=8 2>/dev/null
        chmod 600 /mnt/swap/file; mkswap /mnt/swap/file >/dev/null; swapon /mnt/swap/file
        sync; fsfreeze --freeze /mnt/swap
        parted "$3" '32MiB 32MiB 32MiB 32MiB 32MiB'
        busybox mkdosfs "$3"p1 >/dev/null; mke2fs -q "$3"p2; pvcreate -qq "$3"p3; mkswap "$3"p4 >/dev/null
        echo secret >/run/key; cryptsetup -q luksFormat --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$3"p5 /run/key
        parted "$4" '64MiB'; dd if=/dev/zero of="$4" bs=512 seek=1 count=33 conv=notrunc 2>/dev/null
        blockdev --rereadpt "$4"
    """,
    "nodes": r"""
        generic=/dev/ng${1#/dev/nvme}; [ -c "$generic" ] || generic=$1; linger "$generic"
        setsid sleep 3600 <"$2" >/dev/null 2>&1 & echo $! >>/run/lingering
        linger "$3"
        hostile=$(printf '/run/x%s' '\n==writers'); ln -s "$(command -v sleep)" "$hostile"
        setsid "$hostile" 3600 <>/dev/loop3 >/dev/null 2>&1 & echo $! >>/run/lingering
        linger "${4%n1}"
        { while [ -e /run/lingering ]; do head -c 512 "$4"; sleep 0.1; done; } >/dev/null 2>&1 </dev/null &
    """,
}
UNDO = {
    "remains": 'losetup --detach /dev/loop0; rm /run/image; blockdev --setrw "$2"',
    "file systems": """
        umount /mnt/part /mnt/whole; swapoff "$4"; rm /dev/innocent /dev/more "/run/so innocent" "$odd"
    """,
    "layers": """
        mdadm --stop /dev/md90 2>/dev/null; vgchange -qq -an vg; vgremove -qq -f vg; cryptsetup close secret
    """,
    "deep": """
        umount '/mnt/deep down'; dmsetup remove deep; dmsetup remove paths
        mdadm --stop /dev/md91; mdadm --stop /dev/md92
    """,
    "hidden": "ended; umount /run/kept/mounts; umount /run/kept; rm -r /run/kept; umount /mnt/rest; sleep 0.5",
    "open": """
        ended; losetup --detach /dev/loop1; rm "$odd" "/run/by another name"; echo 0 >"$nvmet/namespaces/1/enable"
        rmdir "$nvmet/namespaces/1" "$nvmet"; sleep 0.5
    """,
    "files": """
        fsfreeze --unfreeze /mnt/swap; umount /mnt/inside; losetup --detach /dev/loop2
        swapoff /mnt/swap/file; umount /mnt/swap; sleep 0.5
    """,
    "nodes": r"""ended; rm "$(printf '/run/x%s' '\n==writers')"; sleep 0.5""",
}
BLANK = """
for drive; do wipefs --all --quiet --force "$drive"; blkdiscard "$drive"; done; udevadm settle
for drive; do blockdev --rereadpt "$drive"; done; udevadm settle
"""


@dataclass(frozen=True, slots=True)
class GuardCase:
    """One way to name drives, and what must be said of it."""

    scene: str
    #: ``{1}`` to ``{4}`` are the drives' paths, ``{id1}`` … their names by serial number.
    patterns: tuple[str, ...]
    says: str
    wipe: tuple[str, ...] = ()


ODD = "/run/odd name\nof a drive"
LUKS = "carries a signature (crypto_LUKS); if that may be destroyed, add --ssd-wipe=SSDQ0004"

CASES = {
    "a drive that is FAT": GuardCase(
        "file systems", ("{1}",), "{d1}: carries a signature (vfat); if that may be destroyed"
    ),
    "partition mounted": GuardCase("file systems", ("{2}",), "{d2}: carries {2}p1, which is mounted at /mnt/part"),
    "mounted partition": GuardCase(
        "file systems", ("{2}p1",), "is a partition on {d2}, not a whole drive; is mounted at"
    ),
    "whole disk mounted": GuardCase("file systems", ("{3}",), "{d3}: is mounted at /mnt/whole"),
    "consent does not help": GuardCase("file systems", ("{3}",), "{d3}: is mounted at /mnt/whole", wipe=("SSDQ0003",)),
    "by its name": GuardCase("file systems", ("{id3}",), "{id3} → {d3}: is mounted at /mnt/whole"),
    "by a link": GuardCase("file systems", ("/dev/innocent",), "/dev/innocent → {d3}: is mounted at /mnt/whole"),
    "by a chain of links": GuardCase(
        "file systems", ("/run/so innocent",), "/run/so innocent → {d3}: is mounted at /mnt"
    ),
    "by an odd name": GuardCase("file systems", (ODD,), "→ {d3}: is mounted at /mnt/whole"),
    "by a pattern of odd names": GuardCase("file systems", ("/run/odd*",), "→ {d3}: is mounted at /mnt/whole"),
    "swap": GuardCase("file systems", ("{4}",), "{d4}: is swap space"),
    "among others": GuardCase("file systems", ("/dev/nvme*n1",), "{d4}: is swap space"),
    "array member": GuardCase("layers", ("{1}",), "{d1}: is held by /dev/md90 (raid1)"),
    "array member, consent": GuardCase("layers", ("{2}",), "{d2}: is held by /dev/md90 (raid1)", wipe=("SSDQ0002",)),
    "an array": GuardCase("layers", ("/dev/md90",), "/dev/md90 (unknown model, no serial): is a RAID array on "),
    "volume group": GuardCase("layers", ("{3}",), "is held by /dev/mapper/vg-lv-real (lvm)"),
    "a snapshot": GuardCase(
        "layers", ("{3}",), "carries /dev/mapper/vg-lv-real, which is held by /dev/mapper/vg-old (lvm)"
    ),
    "a volume": GuardCase(
        "layers", ("/dev/vg/lv",), "/dev/vg/lv → /dev/mapper/vg-lv (unknown model, no serial): is an LVM"
    ),
    "LUKS open": GuardCase("layers", ("{4}",), "{d4}: is held by /dev/mapper/secret (crypt)"),
    "stale superblock": GuardCase("remains", ("{1}",), "{d1}: carries a signature (linux_raid_member); if that may be"),
    "consent for another": GuardCase(
        "remains", ("{1}",), "is the serial of no drive that was named", wipe=("SSDQ0004",)
    ),
    "read-only": GuardCase("remains", ("{2}",), "{d2}: is read-only"),
    "a file system": GuardCase(
        "remains", ("{3}",), "carries a signature (ext2); if that may be destroyed, add --ssd-wipe="
    ),
    "named twice": GuardCase("remains", ("{4}", "{id4}"), "{d4}: is named twice, by {4} and by {id4}; name it once"),
    "a loop device": GuardCase("remains", ("/dev/loop0",), "/dev/loop0 (unknown model, no serial): is a loop device"),
    "five storeys up": GuardCase("deep", ("{1}",), "carries /dev/mapper/deep, which is mounted at /mnt/deep down"),
    "of its mirror": GuardCase("deep", ("{2}",), "carries /dev/mapper/deep, which is mounted at /mnt/deep down"),
    "a member of no use": GuardCase(
        "deep", ("{2}",), "carries {2}p1, which is held by /dev/md91 (raid1)", ("SSDQ0002",)
    ),
    "an array that waits": GuardCase("deep", ("{3}",), "carries {3}p1, which is held by /dev/md92 ("),
    "multipath": GuardCase("deep", ("{4}",), "{d4}: is held by /dev/mapper/paths (mpath)", wipe=("SSDQ0004",)),
    "the multipath map": GuardCase("deep", ("/dev/mapper/paths",), "is a multipath map on {d4}, not a whole drive"),
    "mounted privately": GuardCase("hidden", ("{1}",), "{d1}: is mounted at /mnt/private"),
    "mounted for nobody": GuardCase(
        "hidden", ("{2}",), "{d2}: is open exclusively by something else", wipe=("SSDQ0002",)
    ),
    "unmounted lazily": GuardCase(
        "hidden", ("{3}",), "{d3}: is open exclusively by something else", wipe=("SSDQ0003",)
    ),
    "bound elsewhere": GuardCase("hidden", ("{4}",), "{d4}: is mounted at /mnt/rest"),
    "partition open alone": GuardCase("open", ("{1}",), "; is open exclusively by something else", wipe=("SSDQ0001",)),
    "reader of a partition": GuardCase(
        "open", ("{1}",), "{d1}: carries {1}p1, which is open for reading by perl (pid "
    ),
    "written by another name": GuardCase("open", ("{2}",), "{d2}: is open for writing by sleep (pid "),
    "a loop by a lost name": GuardCase("open", ("{3}",), "{d3}: is held by /dev/loop1 (loop)"),
    "exported": GuardCase("open", ("{4}",), "{d4}: is exported (NVMe over Fabrics target)", wipe=("SSDQ0004",)),
    "loop over its file": GuardCase("files", ("{1}",), "carries /dev/loop2, which is mounted at /mnt/inside"),
    "swap in its file": GuardCase("files", ("{2}",), "{d2}: is mounted at /mnt/swap"),
    "partitions": GuardCase("files", ("{3}",), "{d3}: carries a partition table (gpt)"),
    "FAT": GuardCase("files", ("{3}",), "a signature (vfat) on {3}p1"),
    "a file system in a partition": GuardCase("files", ("{3}",), "a signature (ext2) on {3}p2"),
    "an idle volume": GuardCase("files", ("{3}",), "a signature (LVM2_member) on {3}p3"),
    "unused swap": GuardCase("files", ("{3}",), "a signature (swap) on {3}p4"),
    "LUKS closed": GuardCase(
        "files", ("{3}",), "(crypto_LUKS) on {3}p5; if that may be destroyed, add --ssd-wipe=SSDQ0003"
    ),
    "half a table": GuardCase("files", ("{4}",), "{d4}: carries a "),
    "open by its generic node": GuardCase(
        "nodes", ("{1}",), "{d1}: is open through a character device (sg, bsg or ng) by"
    ),
    "read by a process": GuardCase("nodes", ("{2}",), "{d2}: is open for reading by sleep (pid ", wipe=("SSDQ0002",)),
    "written, before a hostile name": GuardCase("nodes", ("{3}",), "{d3}: is open for writing by sleep (pid "),
}
#: What must be refused with all consents in the world, and what a run with all drives must say; by scene.
IN_USE = {
    "remains": (2,),
    "file systems": (2, 3, 4),
    "layers": (1, 2, 3, 4),
    "deep": (1, 2, 3, 4),
    "hidden": (1, 2, 3, 4),
    "open": (1, 2, 3, 4),
    "files": (1, 2),
    "nodes": (1, 2, 3),
}


@dataclass(frozen=True, slots=True)
class OccupiedDrives:
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
        """Of every byte that every drive has ever been given, and where it is, read past the machine."""
        self.machine.run(["sh", "-c", "sync; for drive; do blockdev --flushbufs $drive; done", "sync", *self.paths])
        return {serial: _digest(self.host.vm.backing_file(serial)) for serial in SERIALS}

    def refusals(self, patterns: tuple[str, ...], wipe: tuple[str, ...] = ()) -> str:
        """What the guard says, asked directly."""
        matches = expand(self.machine, patterns)
        topology = survey(self.machine, [match.kname for match in matches])
        return unmarked(safety.explain(safety.refusals(topology, matches, all_risks(*wipe))))

    def appeared(self, serial: str, count: int) -> list[str]:
        """Kernel names of the drives with this serial, when there are so many."""
        script = 'for f in /sys/block/*/serial /sys/block/*/device/serial; do grep -Hxs "$1 *" "$f"; done; true'
        found: list[str] = []

        def is_so() -> bool:
            said = self.machine.run(["sh", "-c", script, "serials", serial]).text.splitlines()
            found[:] = [line.split("/")[3] for line in said]
            return len(found) == count

        await_that(is_so, f"{count} drives of serial {serial}")
        self.machine.run(["udevadm", "settle"])
        return found

    def drive(self, number: int) -> Drive:
        (match,) = expand(self.machine, [self.paths[number - 1]])
        return survey(self.machine, [match.kname]).drive(match.kname)


def _digest(path: Path) -> str:
    """Holes are skipped: a byte that is written there, a zero even, is one more."""
    digest, at = hashlib.sha256(), 0
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while at < end:
            try:
                begin = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but a hole is left
                break
            at = os.lseek(file.fileno(), begin, os.SEEK_HOLE)
            digest.update(f"{begin}-{at}".encode() + os.pread(file.fileno(), at - begin, begin))
    return digest.hexdigest()


@pytest.fixture(scope="module")
def rack(lab: LabHost) -> Iterator[OccupiedDrives]:
    machine = ssh.connect(ssh.SshTarget("lab", ("-F", str(lab.ssh_config))))
    found = machine.run(["readlink", "-f", *(BY_ID.format(serial) for serial in SERIALS)]).text.split()
    for serial in SERIALS:
        lab.vm.set_iops(serial, 0)  # no limit: what is set up here is not measured
    yield OccupiedDrives(lab, machine, tuple(found))
    for serial in SERIALS:
        lab.vm.set_iops(serial, 300)
    machine.close()
    assert Server(lab).left() == []


@pytest.fixture(scope="module", params=SCENES)
def scene(request: pytest.FixtureRequest, rack: OccupiedDrives) -> Iterator[str]:
    """One scene at a time: pytest puts the tests that want the same one together."""
    name: str = request.param
    try:
        rack.machine.run(["sh", "-ec", WORDS + SCENES[name], "scene", *rack.paths])
        rack.machine.run(["udevadm", "settle"])
        await_that(
            lambda: rack.hashes() == rack.hashes(), "file systems that have written what they write when mounted"
        )
        yield name
    finally:
        rack.machine.run(["sh", "-c", WORDS + UNDO[name] + BLANK, "undo", *rack.paths], check=False)


@pytest.mark.every_release
def test_the_guard_says_why(scene: str, rack: OccupiedDrives, subtests: pytest.Subtests) -> None:
    """One look at the machine; each case is what is said of some of its drives."""
    cases = {name: case for name, case in CASES.items() if case.scene == scene}
    before = rack.hashes()
    matches = expand(rack.machine, [rack.fill(each) for case in cases.values() for each in case.patterns])
    topology = survey(rack.machine, [match.kname for match in matches])
    for name, case in cases.items():
        with subtests.test(name):
            if name == "open by its generic node" and not rack.machine.run(["sh", "-c", "ls /dev/ng* || :"]).text:
                pytest.skip("the kernel is older than 5.13: NVMe namespaces have no generic node")
            named = [match for match in matches if match.pattern in map(rack.fill, case.patterns)]
            named = list(dict.fromkeys(named))
            said = unmarked(safety.explain(safety.refusals(topology, named, all_risks(*case.wipe))))
            assert rack.fill(case.says) in said
    with subtests.test("whatever is agreed to"):
        named = [match for match in matches if match.written_path in rack.paths]
        named = list({match.kname: match for match in named}.values())
        refused = safety.refusals(topology, named, all_risks(*SERIALS))
        assert {one.drive for one in refused if one.drive.startswith("/dev/nvme")} == {
            rack.fill(f"{{d{number}}}") for number in IN_USE[scene]
        }
    assert rack.hashes() == before


@dataclass(frozen=True, slots=True)
class Contained:
    """The machine as a container sees it: every command in a mount namespace of its own, after ``preparation``."""

    machine: Channel
    preparation: str

    def run(self, argv: Sequence[str], **how: object) -> Completed:
        script = f'{self.preparation.strip()}; exec "$@"'
        return self.machine.run(["unshare", "--mount", "sh", "-ec", script, "container", *argv], **how)  # type: ignore[arg-type]


FRESH_SYSFS = "umount -l -R /sys; mount -t sysfs sysfs /sys"
CONFIGFS_OF_THE_HOST = f"""
    mkdir -p /run/config; mount --rbind /sys/kernel/config /run/config
    {FRESH_SYSFS}; mount --rbind /run/config /sys/kernel/config
"""


@pytest.mark.parametrize("scene", ["open"], indirect=True)
@pytest.mark.parametrize(
    ("preparation", "says"),
    [
        (FRESH_SYSFS, "whether the kernel exports a drive (nvmet is loaded, and /sys/kernel/config/nvmet is not there"),
        ("umount /sys/kernel/config", "whether the kernel exports a drive (nvmet is loaded"),
        (CONFIGFS_OF_THE_HOST, "is exported (NVMe over Fabrics target)"),
    ],
    ids=["container", "unmounted", "documented container"],
)
def test_exported_drive_is_refused_wherever_configfs_is(
    scene: str, rack: OccupiedDrives, preparation: str, says: str
) -> None:
    contained = replace(rack, machine=cast("Channel", Contained(rack.machine, preparation)))
    assert says in contained.refusals((rack.paths[3],), SERIALS)


#: pytest keeps a scene for tests that name it at the same index: it is the first of all.
REMAINS = pytest.mark.parametrize("scene", ["remains"], indirect=True)


#: What the guard finds in each scene is in test_the_guard_says_why; a run adds its start and its end.
RUN = [pytest.param(name, marks=[] if name == "layers" else pytest.mark.nightly) for name in SCENES]


@pytest.mark.parametrize("scene", RUN, indirect=True)
def test_a_run_ends_before_it_began(scene: str, rack: OccupiedDrives, tmp_path: Path) -> None:
    """One run of the program for a scene, with all its drives: every reason must be told, and nothing be written."""
    before = rack.hashes()
    consents = [f"--ssd-wipe={SERIALS[number - 1]}" for number in IN_USE[scene]]
    done = Start(tmp_path, Server(rack.host).options)("lab:/dev/nvme[0-9]n1", *consents).finish()
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    for number in IN_USE[scene]:
        assert rack.fill(f"{{d{number}}}: ") in done.output
    for case in CASES.values():
        if case.scene == scene and case.says.startswith("{d") and len(case.patterns) == 1 and not case.wipe:
            assert rack.fill(case.says).partition("; if")[0] in done.output
    assert "Traceback" not in done.output
    assert rack.hashes() == before


@REMAINS
def test_a_drive_put_to_use_after_the_guard_passed_it_is_refused(scene: str, rack: OccupiedDrives) -> None:
    drive = rack.drive(4)
    assert rack.refusals((drive.path,)) == ""
    rack.machine.run(["sh", "-ec", 'mke2fs -q "$1"; mkdir -p /mnt/late; mount "$1" /mnt/late', "mount", drive.path])
    try:
        with pytest.raises(DriveRefused, match="mounted at /mnt/late"):
            HeldDrives(rack.machine, [drive])
        with pytest.raises(DriveRefused, match="open it exclusively"):
            purge.purge(rack.machine, [drive], best=True)
        rack.machine.run(["test", "-d", "/mnt/late/lost+found"])
    finally:
        rack.machine.run(["umount", "/mnt/late"])
        rack.machine.run(["blkdiscard", "--force", drive.path])
        rack.machine.run(["udevadm", "settle"])  # until then lsblk knows the file system from udev


@REMAINS
def test_with_consent_remains_are_no_reason(scene: str, rack: OccupiedDrives) -> None:
    assert rack.refusals((rack.paths[0], rack.paths[2]), ("SSDQ0001", "SSDQ0003")) == ""


@REMAINS
def test_a_blank_drive_needs_none(scene: str, rack: OccupiedDrives) -> None:
    assert rack.refusals((BY_ID.format("SSDQ0004"),)) == ""


@REMAINS
def test_nobody_takes_a_drive_that_a_command_has_alone(scene: str, rack: OccupiedDrives) -> None:
    drive = rack.drive(4)
    with pytest.raises(DriveRefused, match="is not SSDQ0001"):
        _bound(rack, replace(drive, serial="SSDQ0001"), "true")
    argv = fencing.bound(["sh", "-c", "echo on; exec sleep 600"], [Checked.of(drive)], alone=True)
    running = rack.machine.tether(argv, first_signal="TERM", announces=True)
    try:
        assert running.read_line(30.0).strip() == "on"
        for attempt in ("mke2fs -q -F", "mkswap", "wipefs --all"):
            done = rack.machine.run(["sh", "-c", f"{attempt} {drive.path}"], check=False)
            assert done.status, attempt
        assert "is open exclusively" in rack.refusals((drive.path,))
        with pytest.raises(DriveRefused, match="be opened exclusively"):
            _bound(rack, drive, "true")
        with pytest.raises(DriveRefused, match="open it exclusively"):
            purge.purge(rack.machine, [drive], best=False)
    finally:
        running.cut()
    _bound(rack, drive, "true")
    assert rack.refusals((drive.path,)) == ""


#: An array of one member on a loop device, by the UUID $1; prints its size.
SMALL_ARRAY = """
truncate -s 32M /run/member; losetup /dev/loop4 /run/member
mdadm --create /dev/md93 --run --force --metadata=1.2 --homehost=any --level=1 --raid-devices=1 --bitmap=none \
    --uuid="$1" /dev/loop4 2>/dev/null
blockdev --getsize64 /dev/md93
"""
NO_ARRAY = "udevadm settle; mdadm --stop /dev/md93 2>/dev/null; losetup --detach /dev/loop4; rm /run/member"


@REMAINS
def test_a_command_runs_on_the_array_that_was_built_only(scene: str, rack: OccupiedDrives) -> None:
    uuid, other = (f"3aaa0122:29827cfa:5331ad66:ca76737{number}" for number in (1, 2))
    for standing, status in ((uuid, 0), (other, fencing.REFUSED)):
        size = int(rack.machine.run(["sh", "-c", SMALL_ARRAY, "array", standing]).text)
        try:
            argv = fencing.bound(["true"], [Checked("/dev/md93", size, uuid=uuid)], alone=True)
            done = rack.machine.run(argv, check=False)
        finally:
            rack.machine.run(["sh", "-c", NO_ARRAY])
        assert done.status == status, done.errors


def _bound(rack: OccupiedDrives, drive: Drive, *argv: str) -> None:
    fencing.run(rack.machine, argv, [drive], alone=True, deadline_s=30.0)


@REMAINS
def test_what_came_after_the_check_is_refused(scene: str, rack: OccupiedDrives) -> None:
    drive = rack.drive(4)
    held = HeldDrives(rack.machine, [drive])
    try:
        held.require([drive])
        rack.machine.run(["mke2fs", "-q", drive.path])
        with pytest.raises(DriveRefused, match=r"\(ext2\), which came"):
            held.require([drive])
        rack.machine.run(["blkdiscard", "--force", drive.path])
        held.require([drive])
    finally:
        held.release()
        rack.machine.run(["blkdiscard", "--force", drive.path])


@contextmanager
def instead_of_the_last(rack: OccupiedDrives, **properties: str) -> Iterator[None]:
    """With the fourth drive pulled, and another one that has these properties where it was."""
    vm = rack.host.vm
    vm.pull("SSDQ0004")
    try:
        vm.plug("SSDQ0004", **properties)
        try:
            yield
        finally:
            vm.pull("SSDQ0004")
    finally:
        vm.plug("SSDQ0004")
        rack.appeared("SSDQ0004", 1)


@REMAINS
def test_another_drive_in_its_place_is_not_touched(scene: str, rack: OccupiedDrives) -> None:
    checked = rack.drive(4)
    with instead_of_the_last(rack, serial="ANOTHER"):
        assert rack.appeared("ANOTHER", 1) == [checked.kname], "nobody had it open, so the name is given again"
        before = rack.hashes()
        with pytest.raises(DriveRefused, match=r"is not SSDQ0004$"):
            purge.purge(rack.machine, [checked], best=True)
        assert rack.hashes() == before


@REMAINS
def test_another_path_to_a_drive_is_the_same_drive(scene: str, rack: OccupiedDrives) -> None:
    """A path of another kind, even; the kernel ignores a second NVMe controller of one serial."""
    named, consent = (rack.paths[2],), ("SSDQ0003",)
    rack.machine.run(["modprobe", "virtio_blk"])
    with instead_of_the_last(rack, driver="virtio-blk-pci", serial="SSDQ0003"):
        (twin,) = (f"/dev/{name}" for name in rack.appeared("SSDQ0003", 2) if name not in rack.paths[2])
        assert rack.refusals(named, consent) == "", "a twin that is blank and unused is no reason"
        use = 'mke2fs -q "$1"; mkdir -p /mnt/twin; mount -o ro "$1" /mnt/twin; cd /mnt/twin; linger /dev/null'
        rack.machine.run(["sh", "-ec", WORDS + use, "use", twin])
        try:
            same = f"is the same drive as {twin} (same serial SSDQ0003), which is "
            assert same + "mounted at /mnt/twin" in rack.refusals(named, consent)
            rack.machine.run(["umount", "--lazy", "/mnt/twin"])
            assert same + "open exclusively" in rack.refusals(named, consent)
        finally:
            undo = 'umount /mnt/twin; ended; sleep 0.5; wipefs --all --quiet "$1"; blkdiscard "$1"'
            rack.machine.run(["sh", "-c", WORDS + undo, "undo", twin], check=False)


@REMAINS
def test_serial_of_a_drive_hides_no_use_of_another(scene: str, rack: OccupiedDrives) -> None:
    """The serial number once opened a section of the survey's answer."""
    export = """
        modprobe nvmet; [ -d "${nvmet%/*}" ] || mount -t configfs configfs /sys/kernel/config; mkdir "$nvmet"
        mkdir "$nvmet/namespaces/1"; echo -n "$1" >"$nvmet/namespaces/1/device_path"
    """
    with instead_of_the_last(rack, serial=r"\n==mounts"):
        rack.machine.run(["sh", "-ec", WORDS + export, "export", rack.paths[2]])
        try:
            before = rack.hashes()
            assert "(NVMe over Fabrics" in rack.refusals((rack.paths[2],), ("SSDQ0003",))
            topology = survey(rack.machine)
            serials = {node.serial for node in topology.nodes.values() if node.model == "QEMU NVMe Ctrl"}
            assert rack.hashes() == before
            assert len(serials) == len(SERIALS)
        finally:
            undo = 'rmdir "$nvmet/namespaces/1" "$nvmet"'
            rack.machine.run(["sh", "-c", WORDS + undo, "undo"], check=False)


@pytest.fixture
def scsi_drive(rack: OccupiedDrives, request: pytest.FixtureRequest) -> Iterator[str]:
    """The path of a drive of the kernel's own, loaded with the test's parameters; it has sg and bsg nodes."""
    script = """
        modprobe -a sd_mod sg; modprobe scsi_debug dev_size_mb=128 "$@"; udevadm settle
        for d in /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*:*/block/*; do echo "/dev/${d##*/}"; done
    """
    try:
        yield rack.machine.run(["sh", "-ec", script, "scsi", *getattr(request, "param", ())]).text.strip()
    finally:
        undo = WORDS + 'rm -f "$odd"; [ ! -e /run/lingering ] || ended; sleep 0.5; rmmod scsi_debug'
        rack.machine.run(["sh", "-c", undo, "undo"], check=False)


@REMAINS
@pytest.mark.parametrize("kind", ["scsi_generic/*", "bsg/*"])
def test_scsi_drive_that_is_open_by_its_generic_node_is_refused(
    scene: str, rack: OccupiedDrives, scsi_drive: str, kind: str
) -> None:
    (serial,) = [node.serial for node in survey(rack.machine).nodes.values() if node.path == scsi_drive]
    assert serial
    assert "another host may" in rack.refusals((scsi_drive,)), "the emulated drive has two ports"
    assert rack.refusals((scsi_drive,), (serial,)) == ""
    hold = f"""
        for d in "/sys/block/${{1#/dev/}}"/device/{kind}; do
            n=$(cat "$d/dev"); rm -f "$odd"; mknod "$odd" c ${{n%:*}} ${{n#*:}}; linger "$odd"
        done
    """
    rack.machine.run(["sh", "-ec", WORDS + hold, "hold", scsi_drive])
    assert "ng) by sleep" in rack.refusals((scsi_drive,), (serial,))


@REMAINS
@pytest.mark.parametrize("scsi_drive", [("zbc=managed", "zone_size_mb=8", "zone_nr_conv=0")], indirect=True)
def test_zoned_drive_is_refused(scene: str, rack: OccupiedDrives, scsi_drive: str) -> None:
    assert "zoned drive (host-managed)" in rack.refusals((scsi_drive,))
