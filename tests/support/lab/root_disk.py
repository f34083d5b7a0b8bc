"""A guest like a server: its root is on a disk, and its udev assembles md arrays as the distribution's does.

The usual guest is an initramfs whose udev leaves arrays alone. This one has the same packages and more, as an ext4 file
system that is written without root rights; a small initramfs mounts it and becomes it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from pytest_ssdqual.lab.host import Program, require
from pytest_ssdqual.lab.image import contents
from pytest_ssdqual.lab.image.image import Image, Say, Variant, ensure, host_key, unpacked
from pytest_ssdqual.lab.image.initramfs import Entry, FileTree, cpio, directory, regular, symlink
from pytest_ssdqual.lab.image.kernel import Module, load_order
from pytest_ssdqual.lab.qemu_args import ROOT_SLOT

#: Rules of udev and mdadm that the usual guest is without: what has a superblock becomes an array when it appears.
MD_RULES = ("01-md-raid-creating", "64-md-raid-assembly")
#: As Debian's mdadm writes it, where AUTO is +all.
MDADM_CONF = b"HOMEHOST <system>\nMAILADDR root\n"
#: For both: the root disk first, then all other drives.
DISK_MODULES = ("virtio_pci", "sd_mod", "virtio_scsi", "ext4", "crc32c_generic")
#: Left free on the disk.
ROOM_BYTES = 256 << 20
TO_WRITE = (Program("mke2fs", "e2fsprogs"),)

#: Places in the guest → directories of this host.
Files = Callable[[], Mapping[str, Path]]

#: PCI address of the adapter of the root disk.
ROOT_ADAPTER = f"0000:00:{ROOT_SLOT:02x}.0"
#: The init of the initramfs.
SWITCH = Path(__file__).with_name("switch") / "init"


def ensure_disk(cache: Path, say: Say, packages: Iterable[str] = (), files: Files = dict, digest: str = "") -> Image:
    """The image of such a guest, built now if the cache does not hold it.

    ``files`` is asked then what else there is: places in the guest → directories of this host; ``digest`` changes with
    them. Raises as ``image.ensure``.
    """
    require(TO_WRITE)
    recipe = hashlib.sha256(Path(__file__).read_bytes() + SWITCH.read_bytes() + digest.encode()).hexdigest()
    return ensure(cache, say, Variant(tuple(packages), f"disk {recipe}", partial(_assemble, files)))


def wanted(path: str) -> bool:
    """Whether a file of a package goes onto the disk."""
    return contents.wanted(path, MD_RULES)


def _assemble(files: Files, packages: Iterable[Path], result: Path) -> None:
    tree, modules = unpacked(packages, result, wanted)
    contents.furnish(tree, contents.module_lists(modules, DISK_MODULES), host_key(result))
    tree.add("etc/mdadm/mdadm.conf", regular(MDADM_CONF))
    with (result / "initrd").open("wb") as initrd:
        initrd.writelines(cpio(switching(tree, load_order(modules, DISK_MODULES)).entries))
    with tempfile.TemporaryDirectory(dir=result) as scratch:
        write_tree(tree, Path(scratch))
        for place, source in files().items():
            shutil.copytree(source, Path(scratch, place), dirs_exist_ok=True, symlinks=True)
        write_file_system(Path(scratch), result / "root")


def switching(tree: FileTree, modules: Iterable[Module]) -> FileTree:
    """The initramfs: busybox, what the root disk needs, and ``SWITCH``."""
    small, modules = FileTree(), tuple(modules)
    for name in ("proc", "sys", "dev", "root"):
        small.add(name, directory())
    small.add("usr/bin/busybox", tree.entries["usr/bin/busybox"])
    small.add("bin", symlink("usr/bin"))
    small.add("dev/console", Entry(stat.S_IFCHR | 0o600))
    for module in modules:
        small.add(f"{module.name}.ko", regular(module.image))
    small.add("modules", regular("".join(f"{module.name}\n" for module in modules).encode()))
    small.add("root-adapter", regular(f"{ROOT_ADAPTER}\n".encode()))
    small.add("init", regular(SWITCH.read_bytes(), 0o755))
    return small


def write_tree(tree: FileTree, place: Path) -> None:
    """Write all entries but device nodes; what is not root's becomes its owner's only if we are root."""
    for path in sorted(tree.entries):
        entry, at = tree.entries[path], place / path
        if stat.S_ISDIR(entry.mode):
            at.mkdir(parents=True, exist_ok=True)
        elif stat.S_ISLNK(entry.mode):
            at.symlink_to(entry.data.decode())
        elif stat.S_ISREG(entry.mode):
            at.write_bytes(entry.data)
        else:
            continue
        if os.geteuid() == 0:
            os.chown(at, entry.uid, entry.gid, follow_symlinks=False)
        if not stat.S_ISLNK(entry.mode):
            at.chmod(stat.S_IMODE(entry.mode))


def write_file_system(place: Path, file: Path) -> None:
    """An ext4 file system of what is in ``place``, with some room."""
    used = subprocess.run(["du", "-s", "-B1", str(place)], check=True, capture_output=True, text=True).stdout
    blocks = (int(used.split()[0]) * 11 // 10 + ROOM_BYTES) // 4096
    # No journal: nothing of it has to survive, and a file system that is not written to does not change.
    options = ["-O", "^has_journal", "-E", "root_owner=0:0", "-L", "ssdqual-root", "-m", "0", "-b", "4096"]
    argv = ["mke2fs", "-q", "-F", "-t", "ext4", *options, "-d", str(place), str(file), str(blocks)]
    subprocess.run(argv, check=True, capture_output=True)
