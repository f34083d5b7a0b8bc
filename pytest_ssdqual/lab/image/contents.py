"""What the guest is made of: which packages, which of their files, which kernel modules.

Data and pure functions only; ``image`` fetches the packages and writes the result.
"""

from __future__ import annotations

import fnmatch
import hashlib
import stat
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from pytest_ssdqual.lab.image.initramfs import Entry, FileTree, directory, regular, symlink
from pytest_ssdqual.lab.image.kernel import Module, alias_table, dependency_table, load_order

#: Files of the package that are copied into the guest as they are, by their path below this directory.
GUEST = Path(__file__).with_name("guest")

_ACCOUNTS = (("root", 0), ("home/tester", 1000), ("home/nosudo", 1001))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: What the guest offers beside the kernel; apt adds what these need.
PACKAGES = _words(
    "busybox-static dash coreutils util-linux mount fdisk e2fsprogs procps gzip perl-base udev sudo openssh-server "
    "mdadm lvm2 dmsetup cryptsetup-bin fio smartmontools nvme-cli libpam-modules"
)

#: Packages that apt adds and the guest has no use for: maintainer scripts and what they are written in, the
#: initramfs the distribution would build, module tools (busybox reads our plain-text tables).
_UNUSED_PACKAGES = _words(
    "adduser debconf dpkg tar cpio ucf usrmerge passwd linux-base linux-firmware wireless-regdb initramfs-tools* "
    "dracut* klibc* libklibc* kmod python3* libpython3* perl perl-modules* libperl5* libdb5* libgdbm* libsemanage* "
    "openssh-client openssh-sftp-server libpam-runtime runit-helper uuid-runtime readline-common "
    "media-types libfile-find-rule-perl libnumber-compare-perl libtext-glob-perl sensible-utils lsb-base "
    "logsave"
)

#: Modules of the virtual hardware, loaded before sshd, and all others, loaded beside it.
FIRST_MODULES = ("virtio_pci", "virtio_net", "af_packet")
MODULES = _words(
    "nvme loop md_mod raid0 raid1 raid10 raid456 linear dm_mod dm_crypt dm_delay dm_flakey dm_snapshot dm_raid "
    "ext4 crc32c_generic crc32c_intel xts cbc essiv aes_generic aesni_intel sha256_generic algif_skcipher "
    "algif_hash"
)
#: There to be loaded by a test: the first makes a device by itself, the others are for the guard to be tried on.
LATER_MODULES = _words("null_blk brd faulty nvmet dm_multipath dm_round_robin virtio_blk sd_mod sg scsi_debug")

#: Parts of packages that run nothing here, and files that ours replace.
_UNWANTED = _words(
    "boot usr/share usr/games usr/include usr/src var usr/lib/modules usr/lib/systemd/system usr/lib/systemd/network "
    "usr/lib/systemd/catalog usr/lib/udev/hwdb.d usr/lib/udev/rules.d usr/lib/modprobe.d usr/lib/sysctl.d "
    "etc/init.d etc/cron.* etc/default etc/logrotate.d etc/pam.d etc/security etc/ssh etc/lvm usr/lib/*/gconv"
)

#: The rules that name drives. Those that assemble md arrays or activate volume groups are left out on purpose:
#: what a test left on the drives must be found by the rig, not brought up behind its back.
_UDEV_RULES = _words(
    "50-udev-default 55-dm 56-lvm 60-block 60-persistent-storage 60-persistent-storage-dm 63-md-raid-arrays "
    "95-dm-notify"
)

#: Programs of busybox for what no package of the list brings.
_APPLETS = _words(
    "awk bc clear cmp cpio diff egrep fgrep find free grep hexdump hostname ifconfig insmod ip killall less lsmod "
    "modinfo modprobe more nc netstat pidof ping ps readlink reset rmmod route sed strings tar time top tty uptime vi "
    "watch which xargs xxd"
)


def is_used(package: str, wanted: Collection[str] = ()) -> bool:
    """Whether the guest takes files of a package that apt resolved; of ``wanted`` ones and their like it does."""
    if any(fnmatch.fnmatchcase(package, f"{name}*") or package.startswith(f"lib{name}") for name in wanted):
        return True
    return not any(fnmatch.fnmatchcase(package, pattern) for pattern in _UNUSED_PACKAGES)


def wanted(path: str, more_rules: Collection[str] = ()) -> bool:
    """Whether a file of a package goes into the guest."""
    place = PurePosixPath(path)
    if str(place.parent) == "usr/lib/udev/rules.d":
        return place.stem in (*_UDEV_RULES, *more_rules)
    above = [str(part) for part in (place, *place.parents)]
    return not any(fnmatch.fnmatchcase(part, pattern) for part in above for pattern in _UNWANTED)


def recipe_hash(names: Iterable[str]) -> str:
    """Changes with the packages asked for, the guest's files and the code that puts them together."""
    digest = hashlib.sha256("\n".join(names).encode())
    for name in ("contents.py", "image.py", "initramfs.py", "kernel.py"):
        digest.update((Path(__file__).parent / name).read_bytes())
    for path in sorted(path for path in GUEST.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(GUEST)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def module_lists(packed: Mapping[str, bytes], more: Iterable[str] = ()) -> dict[str, tuple[Module, ...]]:
    """The modules in loading order: for before sshd, for beside it (and ``more``), and what is only there to be asked
    for.
    """
    first = load_order(packed, FIRST_MODULES)
    every = load_order(packed, (*FIRST_MODULES, *more, *MODULES))
    all_packed = load_order(packed, (*FIRST_MODULES, *more, *MODULES, *LATER_MODULES))
    return {"modules.first": first, "modules": every[len(first) :], "modules.later": all_packed[len(every) :]}


def furnish(tree: FileTree, modules: Mapping[str, tuple[Module, ...]], host_key: bytes) -> None:
    """Add all that comes from no package: accounts, configuration, module tables, links, sshd's own key.

    ``modules`` maps a list's name in the guest to the modules in loading order.
    """
    for name in ("bin", "sbin", "lib", "lib64"):
        tree.add(name, symlink(f"usr/{name}"))
        tree.add(f"usr/{name}", tree.entries.get(f"usr/{name}", directory()))
    for name in ("dev", "proc", "sys", "run", "mnt", "var/lib", "var/tmp", "var/log"):
        tree.add(name, directory())
    tree.add("tmp", directory(0o1777))
    tree.add("var/run", symlink("/run"))
    # the kernel opens it before init has mounted anything
    tree.add("dev/console", Entry(stat.S_IFCHR | 0o600))
    for home, uid in _ACCOUNTS:
        tree.add(home, directory(0o700, uid))
        tree.add(f"{home}/.ssh", directory(0o700, uid))
    for path in sorted(path for path in GUEST.rglob("*") if path.is_file()):
        inside = str(path.relative_to(GUEST))
        tree.add(inside, regular(path.read_bytes(), _guest_mode(inside)))
    tree.add("etc/ssh/ssh_host_ed25519_key", regular(host_key, 0o600))
    for applet in _APPLETS:
        if not any(f"usr/{place}/{applet}" in tree.entries for place in ("bin", "sbin")):
            tree.add(f"usr/bin/{applet}", symlink("busybox"))
    tree.add("usr/sbin/modprobe", symlink("/usr/bin/busybox"))
    tree.add("usr/bin/sh", symlink("dash"))
    _add_modules(tree, modules)


def _guest_mode(path: str) -> int:
    return {"init": 0o755, "etc/sudoers": 0o440, "etc/shadow": 0o600}.get(path, 0o644)


def _add_modules(tree: FileTree, lists: Mapping[str, tuple[Module, ...]]) -> None:
    every = {module.name: module for modules in lists.values() for module in modules}
    for module in every.values():
        tree.add(module.path, regular(module.image))
    for name, modules in lists.items():
        tree.add(f"etc/ssdqual/{name}", regular("".join(f"{module.name}\n" for module in modules).encode()))
    if every:
        # usr/lib/modules/VERSION/kernel/…
        root = "/".join(next(iter(every.values())).path.split("/")[:4]) + "/"
        tree.add(f"{root}modules.dep", regular(dependency_table(every.values(), root)))
        tree.add(f"{root}modules.alias", regular(alias_table(every.values())))
