from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from pytest_ssdqual.lab.image import contents
from pytest_ssdqual.lab.image.contents import GUEST, furnish, is_used, module_lists, recipe_hash, wanted
from pytest_ssdqual.lab.image.initramfs import FileTree, regular
from pytest_ssdqual.lab.image.kernel import load_order


@pytest.mark.parametrize(
    "path", ["usr/bin/fio", "usr/sbin/mdadm", "usr/lib/udev/rules.d/60-persistent-storage.rules", "etc/nvme/x"]
)
def test_programs_and_the_rules_that_name_drives_are_taken(path: str) -> None:
    assert wanted(path)


@pytest.mark.parametrize(
    "path",
    [
        "usr/share/man/man1/fio.1.gz",
        "usr/lib/udev/rules.d/64-md-raid-assembly.rules",
        "usr/lib/udev/rules.d/69-lvm.rules",
        "usr/lib/systemd/system/ssh.service",
        "etc/lvm/lvm.conf",
        "etc/cron.d/mdadm",
        "var/lib/dpkg/x",
    ],
)
def test_nothing_that_assembles_itself_or_is_only_read_is_taken(path: str) -> None:
    assert not wanted(path)


def test_packages_for_maintainers_are_not_fetched() -> None:
    assert is_used("fio")
    assert is_used("perl-base")
    assert not any(is_used(name) for name in ("perl", "libpython3.11-stdlib", "initramfs-tools-core", "debconf"))


def test_the_recipe_changes_with_its_packages_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = tmp_path / "guest"
    shutil.copytree(GUEST, guest)
    monkeypatch.setattr(contents, "GUEST", guest)
    first = recipe_hash(["fio"])
    assert recipe_hash(["fio"]) == first
    assert recipe_hash(["fio", "mdadm"]) != first
    (guest / "etc" / "hosts").write_text("127.0.0.1 other\n")
    assert recipe_hash(["fio"]) != first


@pytest.fixture
def guest() -> FileTree:
    tree = FileTree()
    tree.add("usr/bin/ps", regular(b"procps'", 0o755))
    modules = {"usr/lib/modules/6.1/kernel/raid0.ko": b"\0depends=\0alias=md-level-0\0"}
    furnish(tree, {"modules.first": (), "modules": load_order(modules, ["raid0"])}, b"host key")
    return tree


def test_accounts_own_their_homes(guest: FileTree) -> None:
    accounts = guest.entries["etc/passwd"].data.decode()
    for name, uid in (("tester", 1000), ("nosudo", 1001)):
        assert f"{name}:x:{uid}:{uid}::/home/{name}:" in accounts
        assert guest.entries[f"home/{name}/.ssh"].uid == uid


def test_only_tester_may_become_root_unasked(guest: FileTree) -> None:
    sudoers = guest.entries["etc/sudoers"]
    assert b"tester ALL=(ALL) NOPASSWD: ALL" in sudoers.data
    assert b"nosudo" not in sudoers.data
    assert stat.S_IMODE(sudoers.mode) == 0o440


def test_nothing_is_assembled_behind_the_rigs_back(guest: FileTree) -> None:
    assert b"\nAUTO -all\n" in guest.entries["etc/mdadm/mdadm.conf"].data
    assert b"auto_activation_volume_list = []" in guest.entries["etc/lvm/lvm.conf"].data


def test_busybox_fills_in_only_what_is_missing(guest: FileTree) -> None:
    assert guest.entries["usr/bin/ps"].data == b"procps'"
    assert guest.entries["usr/bin/awk"].data == b"busybox"


def test_modprobe_finds_the_modules(guest: FileTree) -> None:
    assert guest.entries["etc/ssdqual/modules"].data == b"raid0\n"
    assert guest.entries["usr/lib/modules/6.1/modules.dep"].data == b"kernel/raid0.ko:\n"
    assert guest.entries["usr/lib/modules/6.1/modules.alias"].data == b"alias md-level-0 raid0\n"


def test_a_module_is_in_one_list_only() -> None:
    root = "usr/lib/modules/6.1/kernel/"
    packed = {f"{root}{name}.ko": b"\0depends=\0" for name in ("virtio_net", "raid0", "null_blk")}
    lists = {name: [module.name for module in modules] for name, modules in module_lists(packed).items()}
    assert lists == {"modules.first": ["virtio_net"], "modules": ["raid0"], "modules.later": ["null_blk"]}


def test_init_is_a_script_that_a_shell_accepts() -> None:
    subprocess.run(["sh", "-n", str(GUEST / "init")], check=True)
