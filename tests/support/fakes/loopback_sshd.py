"""An OpenSSH server on this computer, for whoever runs the tests and for nobody else."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_ssdqual.rig.machine.ssh import SshTarget

SSHD = Path("/usr/sbin/sshd")
#: Sets p to the server's process that carries the connection on which this came.
CARRIER = """
p=$$
until case $(cat /proc/$p/comm) in sshd*) true;; *) false;; esac; do read -r _ _ _ p _ </proc/$p/stat; done
"""


def root_here() -> None:
    if os.geteuid() and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("neither root nor `sudo -n` here")


@dataclass(frozen=True, slots=True)
class Sshd:
    """A running server and what it wrote down."""

    log: Path
    config: Path

    @property
    def target(self) -> SshTarget:
        return SshTarget("here", ("-F", str(self.config)))

    def connections(self) -> int:
        """How many were accepted so far."""
        return self.log.read_text("utf-8", "replace").count("Accepted publickey")


@contextmanager
def serving(place: Path) -> Iterator[Sshd]:
    """The server, with keys of its own in ``place``."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for name in ("host", "user"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
        subprocess.run(argv, check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Sshd(place / "log", place / "config")
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    server.config.write_text(
        f"Host here\n HostName 127.0.0.1\n Port {port}\n User {user}\n IdentityFile {place / 'user'}\n"
        f" IdentitiesOnly yes\n IdentityAgent none\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n"
    )
    (place / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {place / 'host'}\nAuthorizedKeysFile {place / 'user.pub'}\n"
        "PidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
        "KbdInteractiveAuthentication no\nLogLevel VERBOSE\n"
    )
    with server.log.open("wb") as log:
        # -D: in the foreground, so that it is ours to end; -e: its log on standard error.
        process = subprocess.Popen([str(SSHD), "-D", "-e", "-f", str(place / "sshd_config")], stderr=log)
    try:
        _await_port(port, process, server.log)
        yield server
    finally:
        process.terminate()
        process.wait()


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(200):
        if process.poll() is not None:
            raise RuntimeError(f"sshd did not start: {log.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"sshd does not listen: {log.read_text()}")
