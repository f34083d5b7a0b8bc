"""The lab's drives without a run around them: for rehearsals of what the rig does to bare drives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pytest_ssdqual.rig.drives.survey import Drive, expand, survey
from pytest_ssdqual.rig.machine import ssh
from pytest_ssdqual.rig.machine.channel import Channel
from support.lab.rehearsed import SERIALS, Lab, Server

MIB = 1 << 20
#: Beginning, middle and end of a drive of 256 MiB, in MiB.
PLACES = (0, 127, 255)


def connect(lab: Lab) -> Channel:
    return ssh.connect(ssh.SshTarget("lab", ("-F", str(lab.ssh_config))))


@dataclass(frozen=True, slots=True)
class Bench:
    """The machine and its four drives, in the order of their serial numbers, as fast as they can be."""

    lab: Lab
    machine: Channel
    drives: tuple[Drive, ...]

    def write(self, path: str, size: str, count: int, at: int = 0) -> None:
        argv = ["dd", "if=/dev/urandom", f"of={path}", f"bs={size}", f"count={count}", f"seek={at}", "oflag=direct"]
        self.machine.run(argv)

    def soil(self, drive: Drive) -> None:
        """Random bytes here and there."""
        for place in PLACES:
            self.write(drive.path, "1M", 1, at=place)

    def is_soiled(self, drive: Drive) -> list[bool]:
        """Whether there is anything but zeroes at each place: read past the machine."""
        found = []
        with self.lab.vm.backing_file(drive.serial or "").open("rb") as file:
            for place in PLACES:
                file.seek(place * MIB)
                found.append(any(file.read(MIB)))
        return found

    def logical_block_bytes(self, drive: Drive) -> int:
        return int(self.machine.run(["cat", f"/sys/block/{drive.kname}/queue/logical_block_size"]).text)


@dataclass
class Book:
    """What a run folder would hold."""

    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def note(self, kind: str, **facts: object) -> None:
        self.notes.append((kind, facts))

    def keep(self, name: str, data: bytes) -> str:
        return name


@contextmanager
def bench(lab: Lab) -> Iterator[Bench]:
    """Nothing of what is done to the drives is left when it ends."""
    machine = connect(lab)
    try:
        for serial in SERIALS:
            lab.vm.set_iops(serial, 0)  # no limit: nothing is measured here
        paths = [f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}" for serial in SERIALS]
        knames = [match.kname for match in expand(machine, paths)]
        topology = survey(machine, knames)
        yield Bench(lab, machine, tuple(topology.drive(kname) for kname in knames))
    finally:
        machine.close()
        Server(lab).reset()
