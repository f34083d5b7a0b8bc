"""One virtual machine: boot it, cut its power, stop it.

A temporary directory holds its drives, sockets and keys; it is removed soon after its owner ends.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_ssdqual.lab.drives import (
    ScaleModel,
    create_backing_files,
)
from pytest_ssdqual.lab.image.image import Image, Say
from pytest_ssdqual.lab.qemu_args import Hardware, qemu_argv, root_file
from pytest_ssdqual.lab.qmp import Qmp, QmpError
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.machine.owned_directory import OwnedDirectory

_PREFIX = "ssdqual-lab-"
_MEMORY = Path("/dev", "shm")
#: Space left free beside the drives.
_RESERVE_BYTES = 64 << 20
#: Line of the console, with the guest's uptime.
READY = re.compile(rb"ssdqual-lab: ready after (\d+\.\d+) s")
#: A guest's clock that runs faster than this ends processes for silence in seconds, and measures nothing. The kernel
#: calibrates its clock while it boots, and may fail to on a busy computer.
FASTEST_CLOCK, FAST_CLOCK_SLACK_S = 1.25, 1.0
#: Deadline of a boot: it takes 10 s of processor time without KVM, so two minutes on a busy computer.
BOOT_S = 180.0

_SSH_OPTIONS = """
    -F none -o IdentitiesOnly=yes -o IdentityAgent=none -o PreferredAuthentications=publickey
    -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=no
    -o LogLevel=ERROR -o KexAlgorithms=curve25519-sha256
"""


@contextmanager
def scratch_directory(size_bytes: int) -> Iterator[Path]:
    """Create a directory for ``size_bytes`` of data, in memory if they fit there, else among the temporary files.

    It is removed at the end. Directories of owners that were killed are removed first.
    """
    directory = OwnedDirectory.make(roomiest(size_bytes), _PREFIX)
    try:
        yield directory.path
    finally:
        directory.remove()


def roomiest(size_bytes: int, memory: Path | None = None) -> Path:
    """Return the directory in memory if full drives fit there, else the directory for temporary files."""
    memory = memory or _MEMORY
    if memory.is_dir() and shutil.disk_usage(memory).free > size_bytes + _RESERVE_BYTES:
        return memory
    return Path(tempfile.gettempdir())


class LabFailed(Exception):
    """The virtual machine did not come up or went away; the message ends with its last console lines."""


class FastClock(LabFailed):
    """The guest's clock is too fast."""


@frozen
class Reach:
    """OpenSSH's parameters for the guest; plain data that can be sent to other processes."""

    host: str
    port: int
    user: str
    identity: Path
    #: Further arguments of ssh; they exclude the user's configuration.
    options: tuple[str, ...]

    def argv(self, *command: str) -> list[str]:
        """Return an ssh command line."""
        place = ["-p", str(self.port), "-i", str(self.identity), f"{self.user}@{self.host}"]
        return ["ssh", *self.options, *place, *command]


class Vm:
    """A running virtual machine; made by ``boot``."""

    def __init__(self, hardware: Hardware, identity: Path) -> None:
        self._hardware = hardware
        self._identity = identity
        self._process: subprocess.Popen[bytes] | None = None
        self._qmp: Qmp | None = None

    @property
    def ssh(self) -> Reach:
        return Reach("127.0.0.1", self._hardware.ssh_port, "root", self._identity, tuple(_SSH_OPTIONS.split()))

    def power_cut(self) -> None:
        """Cut the power; ``power_on`` boots again with the same drives."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget()

    def power_on(self, *, again: bool = True) -> None:
        """Start QEMU and return when the guest is ready; raise ``LabFailed`` at the deadline.

        ``again``: boot once more if the guest's clock is too fast.
        """
        console = self._hardware.directory / "console"
        console.unlink(missing_ok=True)
        stderr = (self._hardware.directory / "stderr").open("wb")
        with stderr:
            # The kernel ends QEMU with this thread. Signals to the process group of the run (Ctrl-C, timeout(1)) are
            # for pytest: the run needs its machine until it has ended in order.
            argv = ["setpriv", "--pdeathsig", "KILL", "--", *qemu_argv(self._hardware)]
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, start_new_session=True
            )
        try:
            self._await_ready(1)
            self._hardware = replace(self._hardware, ssh_port=self._forwarded_port())
        except BaseException as error:
            self.power_cut()
            if not (again and isinstance(error, FastClock)):
                raise
            self.power_on(again=False)

    def console_tail(self, lines: int = 20) -> str:
        """Return the last lines of the serial console and of QEMU's messages."""
        stderr = self._hardware.directory / "stderr"
        errors = stderr.read_bytes() if stderr.exists() else b""
        text = (self._console() + errors).decode("utf-8", "backslashreplace")
        return "\n".join(line.rstrip() for line in text.splitlines()[-lines:])

    def _console(self) -> bytes:
        console = self._hardware.directory / "console"
        return console.read_bytes() if console.exists() else b""

    def _await_ready(self, count: int) -> None:
        began = time.monotonic()
        while len(uptimes := READY.findall(self._console())) < count:
            if self._process is None or self._process.poll() is not None:
                raise LabFailed(f"QEMU ended while the lab was booting\n{self.console_tail()}")
            if time.monotonic() > began + BOOT_S:
                raise LabFailed(f"the lab was not ready within {BOOT_S:g} s\n{self.console_tail()}")
            time.sleep(0.05)
        uptime_s, elapsed_s = float(uptimes[-1]), time.monotonic() - began
        if uptime_s > FASTEST_CLOCK * elapsed_s + FAST_CLOCK_SLACK_S:
            raise FastClock(f"the guest's clock is too fast: it says {uptime_s:.1f} s after {elapsed_s:.1f} s")

    def _forwarded_port(self) -> int:
        table = str(self._ask("human-monitor-command", **{"command-line": "info usernet"}))
        found = re.search(r"HOST_FORWARD\]\s+\d+\s+\S+\s+(\d+)", table)
        if found is None:
            raise LabFailed(f"QEMU forwards no port to the lab\n{table}")
        return int(found[1])

    def _monitor(self) -> Qmp:
        if self._qmp is None:
            self._qmp = Qmp(self._hardware.directory / "qmp")
        return self._qmp

    def _ask(self, command: str, **arguments: object) -> object:
        """Run a QMP command; raise ``LabFailed`` with the console's last lines if QEMU refuses it or has ended."""
        try:
            return self._monitor().execute(command, arguments)
        except QmpError as error:
            raise LabFailed(f"{error}\n{self.console_tail()}") from error

    def _forget(self) -> None:
        if self._qmp is not None:
            self._qmp.close()
        self._process = self._qmp = None


@contextmanager
def boot(
    image: Image,
    drives: Sequence[ScaleModel],
    *,
    accelerator: str,
    say: Say,
    memory_mib: int = 2048,
) -> Iterator[Vm]:
    """Boot a machine with these drives; remove it, with all its files, when the block is left.

    Call it from a thread that outlives the machine: the kernel kills QEMU when that thread ends, so that QEMU does not
        outlive a killed controller. Raises ``LabFailed``.
    """
    with ExitStack() as stack:
        kept_bytes = sum(0 if drive.latency_ns else drive.size_bytes for drive in drives)
        kept_bytes += image.root.stat().st_size if image.root else 0
        directory = stack.enter_context(scratch_directory(kept_bytes))
        create_backing_files(directory, drives)
        if image.root:
            shutil.copyfile(image.root, root_file(directory))
        identity = directory / "identity"
        key = _new_key(identity)
        hardware = Hardware(image, accelerator, directory, key, tuple(drives), memory_mib=memory_mib)
        machine = Vm(hardware, identity)
        stack.callback(machine.power_cut)
        say(f"the lab: booting {len(drives)} emulated drives ({accelerator})")
        machine.power_on()
        yield machine


def _new_key(identity: Path) -> str:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ssdqual-lab", "-f", str(identity)]
    subprocess.run(argv, check=True, capture_output=True)
    return identity.with_suffix(".pub").read_text(encoding="ascii").split()[1]
