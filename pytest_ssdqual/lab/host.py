"""Properties of this host for the lab: its architecture, required programs, and the folder of the cache."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen


class LabUnavailable(Exception):
    """The lab cannot run on this host; the message says what would have to change."""


@frozen
class Architecture:
    """A processor architecture and its programs and packages."""

    #: As printed by ``uname -m``.
    name: str
    qemu: str
    qemu_package: str
    machine: str
    #: QEMU's model of the processor without KVM: the oldest with the instructions that dm-crypt's module needs. Newer
    #: features cost time to emulate: the model "max" needs a fifth more for booting, mdadm, lsblk and smartctl, and
    #: twice as much for fio (QEMU 7.2).
    emulated_cpu: str
    console: str
    #: Kernel packages for virtual machines, by the ``ID`` of /etc/os-release.
    kernels: tuple[tuple[str, str], ...]


ARCHITECTURES = (
    Architecture(
        name="x86_64",
        qemu="qemu-system-x86_64",
        qemu_package="qemu-system-x86",
        machine="q35",
        emulated_cpu="Westmere",
        console="ttyS0",
        kernels=(("debian", "linux-image-cloud-amd64"), ("ubuntu", "linux-image-virtual")),
    ),
)


@frozen
class Program:
    """A program that the lab calls, and its Debian or Ubuntu package."""

    name: str
    package: str


def architecture() -> Architecture:
    """Return the architecture of this host; raise ``LabUnavailable`` if the lab does not support it."""
    name = platform.machine()
    for row in ARCHITECTURES:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in ARCHITECTURES)
    raise LabUnavailable(f"the lab runs on {known} hosts only, this one is {name}")


def to_boot(row: Architecture) -> tuple[Program, ...]:
    return (
        Program(row.qemu, row.qemu_package),
        Program("ssh", "openssh-client"),
        Program("ssh-keygen", "openssh-client"),
        Program("setpriv", "util-linux"),
    )


TO_BUILD = (Program("apt-get", "apt"), Program("dpkg-deb", "dpkg"), Program("ssh-keygen", "openssh-client"))


def require(programs: Sequence[Program]) -> None:
    """Raise ``LabUnavailable`` naming everything that is missing, with the command that installs it."""
    missing = [program for program in programs if shutil.which(program.name) is None]
    if missing:
        names = ", ".join(program.name for program in missing)
        packages = " ".join(dict.fromkeys(program.package for program in missing))
        raise LabUnavailable(f"the lab needs {names}, not found here: apt-get install {packages}")


def cache_directory() -> Path:
    """Return the folder of cached images, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "pytest-ssdqual"
