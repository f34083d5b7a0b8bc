"""The lab's machine with faults of its drives, for rehearsals."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pytest_ssdqual.lab.drives import Names, ScaleModel, backing_file, device_properties, throttle_options
from pytest_ssdqual.lab.qemu_args import root_file
from pytest_ssdqual.lab.qmp import QmpError
from pytest_ssdqual.lab.vm import READY, LabFailed, Vm
from support.lab import faults
from support.lab.faults import EVERYTHING, WRITES, QmpCommand, RequestKind, Warned, limits


class UnknownDrive(LookupError):
    """No emulated drive has this serial number."""


def position_of(serial: str, drives: Iterable[ScaleModel]) -> int:
    for position, drive in enumerate(drives):
        if drive.serial == serial:
            return position
    raise UnknownDrive(serial)


class FaultyVm(Vm):
    """A running virtual machine whose drives and power can fail."""

    #: Serial numbers of drives that fail requests; empty after a boot.
    _failing: set[str]

    @classmethod
    def of(cls, vm: Vm) -> FaultyVm:
        """The same machine: both have one state, so who booted it still stops it."""
        faulty = cls.__new__(cls)
        faulty.__dict__ = vm.__dict__
        faulty._failing = set()
        return faulty

    @property
    def drives(self) -> tuple[ScaleModel, ...]:
        return self._hardware.drives

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

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
        path = f"/objects/{Names(position).limit}"
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
        """Cut the power; ``power_on`` boots again with the same drives, which fail no more."""
        super().power_cut()
        self._failing.clear()

    def _drive(self, serial: str) -> tuple[int, ScaleModel]:
        position = position_of(serial, self._hardware.drives)
        return position, self._hardware.drives[position]

    def _do(self, *commands: QmpCommand) -> None:
        for command in commands:
            self._ask(command.name, **command.arguments)

    def _await_event(self, name: str, deadline_s: float, **data: object) -> None:
        try:
            self._monitor().wait_event(name, deadline_s, **data)
        except QmpError as error:
            raise LabFailed(f"waiting for {name}: {error}\n{self.console_tail()}") from error
