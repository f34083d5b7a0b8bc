"""Facts about the machine under test: the tools that a run needs, and what its evidence must record."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.names import listed
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError, ask

#: Command → the package that has it, by its name on Debian, Ubuntu, Fedora and RHEL alike.
TOOLS = {
    "fio": "fio",
    "mdadm": "mdadm",
    "smartctl": "smartmontools",
    "lsblk": "util-linux",
    "flock": "util-linux",
    "blkdiscard": "util-linux",
    "setsid": "util-linux",
    "blockdev": "util-linux",
    "timeout": "coreutils",
    "nproc": "coreutils",
    "gzip": "gzip",
    # Or Python 3: it opens the drives exclusively, samples their content and asks them for reservations.
    "perl": "perl",
    "udevadm": "udev",
}
#: Names in messages of commands that another one can replace.
EITHER = {"perl": "perl or python3"}
#: Needed only if there are NVMe drives.
NVME_TOOLS = {"nvme": "nvme-cli"}
#: Without it ATA drives are purged by what the kernel itself can do.
ATA_TOOLS = {"hdparm": "hdparm"}

#: Command that installs packages, by a distribution's ID or ID_LIKE in /etc/os-release, and packages with another name.
INSTALL = {
    "debian": "apt install",
    "ubuntu": "apt install",
    "fedora": "dnf install",
    "rhel": "dnf install",
    "suse": "zypper install",
    "arch": "pacman -S",
}
OTHER_NAMES = {"dnf install": {"udev": "systemd-udev", "perl": "perl-interpreter"}}
#: Names a distribution, and those that it is like (os-release(5)).
OS_RELEASE, IDS = "/etc/os-release", re.compile(r"""^ID(?:_LIKE)?=["']?([^"'\n]*)""", re.MULTILINE)

MISSING, FACTS = map(scripts.text, ("missing_tools.sh", "facts.sh"))


class ToolsMissing(RigError):
    """The machine lacks programs that every run needs."""


def require_tools(machine: Machine, tools: dict[str, str] | None = None) -> None:
    """Raise ``ToolsMissing`` with every missing command and the packages that contain them."""
    packages_of = TOOLS if tools is None else tools
    if missing := missing_tools(machine, packages_of):
        packages = sorted({packages_of[command] for command in missing})
        names = [EITHER.get(command, command) for command in missing]
        raise ToolsMissing(
            f"{machine.name} has no {listed(names)}: install the package{'s' if len(packages) > 1 else ''} "
            f"{' '.join(packages)} there{_how(machine, packages)}"
        )


def missing_tools(machine: Machine, commands: Iterable[str]) -> list[str]:
    """Return those of the commands that the machine does not have."""
    return machine.run(["sh", "-c", MISSING, "missing", *commands]).text.split()


def _how(machine: Machine, packages: list[str]) -> str:
    """Return the command that installs packages on the machine; empty if its distribution is not known."""
    release = ask(machine, ["cat", OS_RELEASE]).text
    names = " ".join(IDS.findall(release)).split()
    command = next((INSTALL[name] for name in names if name in INSTALL), "")
    if not command:
        return ""
    other_names = OTHER_NAMES.get(command, {})
    return f", by `{command} {' '.join(other_names.get(package, package) for package in packages)}`"


def facts(machine: Machine) -> dict[str, str]:
    """Kernel, tools and hardware, as printable text; facts that are not available are omitted."""
    lines = scripts.answer(machine, FACTS, "facts").text.splitlines()
    words = (line.split(" ", 1) for line in lines if " " in line)
    return {safe_text.line(name): safe_text.line(value) for name, value in words}
