from __future__ import annotations

import shutil
import stat
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from support.lab.root_disk import MD_RULES, switching, wanted, write_file_system, write_tree

from pytest_ssdqual.lab.drives import Bus, shelf
from pytest_ssdqual.lab.image.contents import is_used
from pytest_ssdqual.lab.image.image import Image
from pytest_ssdqual.lab.image.initramfs import Entry, FileTree, directory, regular, symlink
from pytest_ssdqual.lab.image.kernel import Module
from pytest_ssdqual.lab.qemu_args import ROOT_SLOT, Hardware, qemu_argv

IMAGE = Image(Path("/cache/kernel"), Path("/cache/initrd"), Path("/cache/root"))
HARDWARE = Hardware(IMAGE, "tcg", Path("/scratch"), "AAAA", shelf(2, bus=Bus.SCSI))


def devices(hardware: Hardware) -> list[str]:
    return [value for name, value in pairwise(qemu_argv(hardware)) if name == "-device"]


def test_root_disk_has_an_adapter_of_its_own() -> None:
    found = devices(HARDWARE)
    assert f"virtio-scsi-pci,id=root-hba,addr={ROOT_SLOT:#x}" in found
    assert len([each for each in found if each.startswith("virtio-scsi-pci")]) == 2
    assert switching(tree(), []).entries["root-adapter"].data == f"0000:00:{ROOT_SLOT:02x}.0\n".encode()
    without = replace(HARDWARE, image=replace(IMAGE, root=None))
    assert not [each for each in devices(without) if "root" in each]


def test_rules_of_md_are_on_the_disk_only() -> None:
    for rule in MD_RULES:
        assert wanted(f"usr/lib/udev/rules.d/{rule}.rules")
    assert wanted("usr/lib/udev/rules.d/63-md-raid-arrays.rules")
    assert not wanted("usr/share/doc/mdadm/README")


def test_packages_that_are_asked_for_are_used() -> None:
    assert not is_used("python3.11-minimal")
    for name in ("python3.11-minimal", "libpython3.11-stdlib", "python3"):
        assert is_used(name, ["python3"])
    assert not is_used("perl-modules-5.36", ["python3"])


def tree() -> FileTree:
    found = FileTree()
    found.add("usr/bin/busybox", regular(b"busybox", 0o755))
    found.add("usr/bin/sudo", regular(b"sudo", 0o4755))
    found.add("usr/bin/sh", symlink("busybox"))
    found.add("tmp", directory(0o1777))
    found.add("dev/console", Entry(stat.S_IFCHR | 0o600))
    return found


def test_initramfs_has_the_modules_in_order() -> None:
    small = switching(tree(), [Module("virtio_pci", "a/virtio_pci.ko", b"1"), Module("ext4", "a/ext4.ko", b"2")])
    assert small.entries["modules"].data == b"virtio_pci\next4\n"
    assert small.entries["ext4.ko"].data == b"2"
    assert small.entries["init"].mode & 0o111


@pytest.mark.skipif(not shutil.which("mke2fs"), reason="there is no mke2fs here")
def test_file_system_has_what_is_in_the_tree(tmp_path: Path) -> None:
    write_tree(tree(), tmp_path / "tree")
    write_file_system(tmp_path / "tree", tmp_path / "root")
    asked = ["debugfs", "-R", "ls -l /usr/bin", str(tmp_path / "root")]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    modes = {line.split()[-1]: line.split()[1] for line in said.splitlines() if line.strip()}
    assert (modes["busybox"], modes["sudo"], modes["sh"]) == ("100755", "104755", "120777")


def test_tree_is_written_without_devices(tmp_path: Path) -> None:
    write_tree(tree(), tmp_path)
    assert (tmp_path / "tmp").stat().st_mode & 0o7777 == 0o1777
    assert not (tmp_path / "dev" / "console").exists()
