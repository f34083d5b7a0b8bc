"""One virtual machine: boot it, inject faults, stop it.

A temporary directory holds its drives, sockets and keys; it is removed soon after its owner ends.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_ssdqual.lab import faults
from pytest_ssdqual.lab.drives import (
    Names,
    ScaleModel,
    backing_file,
    create_backing_files,
    device_properties,
    limits,
    position_of,
    throttle_options,
)
from pytest_ssdqual.lab.faults import EVERYTHING, WRITES, QmpCommand, RequestKind, Warned
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
        #: Serial numbers of drives that fail requests; empty after a boot.
        self._failing: set[str] = set()

    @property
    def drives(self) -> tuple[ScaleModel, ...]:
        return self._hardware.drives

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def ssh(self) -> Reach:
        return Reach("127.0.0.1", self._hardware.ssh_port, "root", self._identity, tuple(_SSH_OPTIONS.split()))

    def backing_file(self, serial: str) -> Path:
        """Return the file with the drive's content; change it only while the guest does not use the drive."""
        return backing_file(self._hardware.directory, self._drive(serial)[1])

    @property
    def root_file(self) -> Path:
        """File with the content of the root disk, of a guest that has one."""
        return root_file(self._hardware.directory)

    def set_iops(self, serial: str, iops: int, write_iops: int | None = None) -> None:
        """Make a drive faster or slower from now on; with ``write_iops``, ``iops`` is about reads only; 0: no limit."""
        position, _ = self._drive(serial)
        path = Names(position).limit_path
        self._ask("qom-set", path=path, property="limits", value=limits(iops, write_iops))

    def share_limit(self, serials: Sequence[str], *, shared: bool = True) -> None:
        """Put drives behind the limit of the first of them, like a link that they share; or each behind its own."""
        first = Names(self._drive(serials[0])[0])
        for serial in serials:
            names = Names(self._drive(serial)[0])
            options = throttle_options(names, names.media_node)
            if shared:
                options["throttle-group"] = first.limit
            self._ask("blockdev-reopen", options=[options])

    def pull(self, serial: str, deadline_s: float = 30.0) -> None:
        """Remove a drive from the running machine; return when the guest has released it."""
        device = Names(self._drive(serial)[0]).device
        self._ask("device_del", id=device)
        self._await_event("DEVICE_DELETED", deadline_s, device=device)

    def plug(self, serial: str, /, **instead: str) -> None:
        """Insert a pulled drive again with its data; ``instead`` replaces properties of the device."""
        position, drive = self._drive(serial)
        self._ask("device_add", **{**device_properties(position, drive), **instead})

    def fail(self, serial: str, requests: Collection[RequestKind] = EVERYTHING) -> None:
        """Make a drive fail these requests until ``mend``."""
        position, _ = self._drive(serial)
        self._do(*faults.failing(Names(position), requests))
        self._failing.add(serial)

    def turn_read_only(self, serial: str) -> None:
        """Make a drive fail as if worn out: it fails all writes and sets the read-only warning in its SMART data."""
        self.fail(serial, WRITES)
        self._do(faults.warned(Names(self._drive(serial)[0]), Warned.READ_ONLY))

    def mend(self, serial: str) -> None:
        """Remove all faults of a drive."""
        names = Names(self._drive(serial)[0])
        if serial in self._failing:
            self._do(*faults.mended(names), faults.warned(names, Warned.NONE))
            self._failing.discard(serial)

    def pause(self) -> None:
        """Freeze the machine."""
        self._ask("stop")

    def cont(self) -> None:
        self._ask("cont")

    def reset(self) -> None:
        """Reset the machine; return when it is ready again."""
        seen = len(READY.findall(self._console()))
        self._ask("set-action", reboot="reset")
        self._ask("system_reset")
        # only after that: SeaBIOS resets the machine once more after a warm start
        self._await_ready(seen + 1)
        self._ask("set-action", reboot="shutdown")

    def await_end(self, deadline_s: float = 60.0) -> None:
        """Wait until the machine ends by itself, as after a panic; raise ``LabFailed`` at the deadline."""
        try:
            if self._process is not None:
                self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise LabFailed(f"the lab was still running after {deadline_s:g} s\n{self.console_tail()}") from None

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

    def stop(self) -> None:
        """End the machine; the content of its drives is lost."""
        self.power_cut()

    def console_tail(self, lines: int = 20) -> str:
        """Return the last lines of the serial console and of QEMU's messages."""
        stderr = self._hardware.directory / "stderr"
        errors = stderr.read_bytes() if stderr.exists() else b""
        text = (self._console() + errors).decode("utf-8", "backslashreplace")
        return "\n".join(line.rstrip() for line in text.splitlines()[-lines:])

    def _drive(self, serial: str) -> tuple[int, ScaleModel]:
        position = position_of(serial, self._hardware.drives)
        return position, self._hardware.drives[position]

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

    def _do(self, *commands: QmpCommand) -> None:
        for command in commands:
            self._ask(command.name, **command.arguments)

    def _await_event(self, name: str, deadline_s: float, **data: object) -> None:
        try:
            self._monitor().wait_event(name, deadline_s, **data)
        except QmpError as error:
            raise LabFailed(f"waiting for {name}: {error}\n{self.console_tail()}") from error

    def _forget(self) -> None:
        if self._qmp is not None:
            self._qmp.close()
        self._process = self._qmp = None
        self._failing.clear()


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
        stack.callback(machine.stop)
        say(f"the lab: booting {len(drives)} emulated drives ({accelerator})")
        machine.power_on()
        yield machine


def _new_key(identity: Path) -> str:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ssdqual-lab", "-f", str(identity)]
    subprocess.run(argv, check=True, capture_output=True)
    return identity.with_suffix(".pub").read_text(encoding="ascii").split()[1]
