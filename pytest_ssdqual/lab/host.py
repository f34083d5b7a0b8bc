"""What this host can do for the lab: its architecture, the programs it has and lacks, where the cache is.

Whether KVM works here: found out by starting a kernel, never by looking at the device file.

There are hosts where /dev/kvm opens and yet a guest hangs before its first console line (nested virtualization).
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class LabUnavailable(Exception):
    """The lab cannot run on this host; the message says what would have to change."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """All that differs between processors; a new one is a new row."""

    #: As ``uname -m`` says.
    name: str
    qemu: str
    qemu_package: str
    machine: str
    console: str
    #: Kernel packages by the ``ID`` of /etc/os-release, first choice of a kernel for virtual machines.
    kernels: tuple[tuple[str, str], ...]


ARCHITECTURES = (
    Architecture(
        name="x86_64",
        qemu="qemu-system-x86_64",
        qemu_package="qemu-system-x86",
        machine="q35",
        console="ttyS0",
        kernels=(("debian", "linux-image-cloud-amd64"), ("ubuntu", "linux-image-virtual")),
    ),
)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that the lab calls, and the Debian or Ubuntu package it is in."""

    name: str
    package: str


def architecture() -> Architecture:
    """This host's row; ``LabUnavailable`` if there is none."""
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
    """Where images are kept between runs, by the XDG base directory specification."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "pytest-ssdqual"
