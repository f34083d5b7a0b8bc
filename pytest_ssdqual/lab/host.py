"""Properties of this host for the lab: its architecture, required programs, and the folder of the cache."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen

#: The only architecture of hosts and guests, as ``uname -m`` prints it.
ARCHITECTURE = "x86_64"
QEMU, MACHINE, CONSOLE = "qemu-system-x86_64", "q35", "ttyS0"
#: QEMU's model of the processor without KVM: the oldest with the instructions that dm-crypt's module needs. Newer
#: features cost time to emulate: the model "max" needs a fifth more for booting, mdadm, lsblk and smartctl, and
#: twice as much for fio (QEMU 7.2).
EMULATED_CPU = "Westmere"
#: Kernel packages for virtual machines, by the ``ID`` of /etc/os-release.
KERNELS = {"debian": "linux-image-cloud-amd64", "ubuntu": "linux-image-virtual"}


class LabUnavailable(Exception):
    """The lab cannot run on this host; the message says what would have to change."""


@frozen
class Program:
    """A program that the lab calls, and its Debian or Ubuntu package."""

    name: str
    package: str


TO_BOOT = (
    Program(QEMU, "qemu-system-x86"),
    Program("ssh", "openssh-client"),
    Program("ssh-keygen", "openssh-client"),
    Program("setpriv", "util-linux"),
)
TO_BUILD = (Program("apt-get", "apt"), Program("dpkg-deb", "dpkg"), Program("ssh-keygen", "openssh-client"))


def require(programs: Sequence[Program]) -> None:
    """Raise ``LabUnavailable`` on a host of another architecture, and if programs are missing.

    It names everything that is missing, with the command that installs it.
    """
    if (machine := platform.machine()) != ARCHITECTURE:
        raise LabUnavailable(f"the lab runs on {ARCHITECTURE} hosts only, this one is {machine}")
    missing = [program for program in programs if shutil.which(program.name) is None]
    if missing:
        names = ", ".join(program.name for program in missing)
        packages = " ".join(dict.fromkeys(program.package for program in missing))
        raise LabUnavailable(f"the lab needs {names}, not found here: apt-get install {packages}")


def cache_directory() -> Path:
    """Return the folder of cached images, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "pytest-ssdqual"
