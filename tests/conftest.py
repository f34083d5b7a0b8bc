"""Fixtures that several rooms' tests share: the lab's one virtual machine, and hypothesis' profiles."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pytest_ssdqual.lab.vm import Vm

#: Drives of the machine that rehearsals share: two widths of RAID 5, and one to play with.
LAB_DRIVES = 4

# A slow machine is not a bug of the code under test.
settings.register_profile("ssdqual", deadline=None, print_blob=True)
settings.load_profile("ssdqual")


@dataclass(frozen=True, slots=True)
class LabHost:
    """The running lab as a server that OpenSSH knows: ``ssh -F config lab``."""

    vm: Vm
    #: An OpenSSH configuration with the hosts ``lab`` (root), ``lab-tester`` (sudo) and ``lab-nosudo``.
    ssh_config: Path

    def ssh(self, *argv: str) -> list[str]:
        """An argv that runs a command there as root."""
        return ["ssh", "-F", str(self.ssh_config), "lab", shlex.join(argv)]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHost]:
    """One VM for the whole session; whoever uses it leaves its drives blank and unused."""
    from pytest_ssdqual.lab import start

    with start(LAB_DRIVES) as vm:
        config = tmp_path_factory.mktemp("ssh") / "config"
        config.write_text("".join(_host(vm, name, user) for name, user in HOSTS.items()))
        yield LabHost(vm, config)


HOSTS = {"lab": "root", "lab-tester": "tester", "lab-nosudo": "nosudo"}


def _host(vm: Vm, name: str, user: str) -> str:
    reach = vm.ssh
    lines = [f"HostName {reach.host}", f"Port {reach.port}", f"User {user}", f"IdentityFile {reach.identity}"]
    lines += ["IdentitiesOnly yes", "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR"]
    return f"Host {name}\n" + "".join(f"    {line}\n" for line in lines)
