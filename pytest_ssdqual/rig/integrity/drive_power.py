"""A site's commands that cut and restore the power of drives, and the drives' departure and return.

The commands run on the controller, without a shell. The machine under test keeps its power, so the lease is held all
the time; a drive may come back under another name, and is known by its serial number, WWN and capacity alone.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives.survey import Drive, Node, Topology, survey
from pytest_ssdqual.rig.guard import refusals
from pytest_ssdqual.rig.machine.machine import Machine, RigError

#: Names in the commands that are replaced.
PLACEHOLDER, NAMES = re.compile(r"\{(\w+)\}"), ("serial", "path", "slot", "machine")
#: Seconds that a command may take, that a machine may take to notice that drives are gone (an NVMe driver gives up
#: after its time limits of 30 s and 60 s), and that drives may take to come back (NVMe allows 127.5 s, CAP.TO).
COMMAND_S, GONE_S, RETURN_S = 120.0, 180.0, 180.0
PAUSE_S = 1.0


@frozen
class PowerCommands:
    """The commands of ``--ssd-power-off`` and ``--ssd-power-on``, as words."""

    off: Sequence[str]
    on: Sequence[str]

    @classmethod
    def parse(cls, off: str, on: str) -> PowerCommands:
        """Parse both options; ``ValueError`` for words that cannot be parted, or an unknown placeholder."""
        for name in PLACEHOLDER.findall(off + on):
            if name not in NAMES:
                raise ValueError(f"{{{name}}} is no placeholder; these are: {', '.join(NAMES)}")
        return cls(shlex.split(off), shlex.split(on))

    @contextmanager
    def cut(self, machine: Machine, slots: Mapping[Drive, int]) -> Iterator[None]:
        """Cut the power of the drives, and restore it at the end, whatever comes in between.

        ``slots`` are the drives' numbers in the run. A command that is the same for several drives runs once.
        ``RigError`` for a command that fails.
        """
        try:
            _run("--ssd-power-off", self.off, machine, slots)
            yield
        finally:
            _run("--ssd-power-on", self.on, machine, slots)


def _run(option: str, words: Sequence[str], machine: Machine, slots: Mapping[Drive, int]) -> None:
    def command(drive: Drive, slot: int) -> tuple[str, ...]:
        values = dict(zip(NAMES, (drive.name, drive.path, str(slot), machine.name), strict=True))
        return tuple(PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in words)

    errors = []
    for argv in dict.fromkeys(command(*slot) for slot in slots.items()):
        try:
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            printed = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()[-200:]
            errors.append(f"{option}: {shlex.join(argv)} failed: {error}; {printed}")
    if errors:  # the others are tried all the same: no drive stays without power because of one outlet
        raise RigError("; ".join(errors))


def await_gone(machine: Machine, drives: Sequence[Drive], is_over: Callable[[], bool]) -> None:
    """Wait until the machine has lost the drives and ``is_over``; ``RigError`` if that does not happen in ``GONE_S``.

    Where a drive keeps its name without power, its return could not be distinguished from its absence.
    """

    def is_gone(topology: Topology) -> bool:
        return is_over() and all(refusals.is_gone(topology, drive) for drive in drives)

    if not is_gone(_awaited(machine, is_gone, GONE_S)):
        names = ", ".join(drive.describe() for drive in drives)
        raise RigError(f"--ssd-power-off did not take all drives from {machine.name} within {GONE_S:g} s: {names}")


def await_return(machine: Machine, drives: Sequence[Drive]) -> tuple[dict[Drive, Drive], dict[Drive, str]]:
    """Wait until all drives are back, ``RETURN_S`` at most.

    Return the drives as they are called now, by the drives as they were; and of the others why they are not back. A
    drive is back if a disk has its serial number, its WWN and its capacity. ``RigError`` if the machine is lost.
    """
    topology = _awaited(machine, lambda now: all(_disk_of(now, drive) for drive in drives), RETURN_S)
    back: dict[Drive, Drive] = {}
    absent: dict[Drive, str] = {}
    for drive in drives:
        node, other = _disk_of(topology, drive), topology.nodes.get(drive.kname)
        if node is None:
            instead = f"; in its place is {other.describe()}" if other else ""
            absent[drive] = f"it did not come back within {RETURN_S:g} s{instead}"
        elif node.size_bytes != drive.size_bytes:
            absent[drive] = f"it came back with {node.size_bytes:,} bytes instead of {drive.size_bytes:,}"
        else:
            back[drive] = replace(drive, path=node.path, kname=node.kname)
    return back, absent


def _awaited(machine: Machine, is_so: Callable[[Topology], bool], limit_s: float) -> Topology:
    """Return the block devices when ``is_so``, or after the limit; one may come or go while they are listed."""
    end = time.monotonic() + limit_s
    while True:
        time.sleep(PAUSE_S)
        is_late = time.monotonic() > end
        try:
            topology = survey(machine)
        except RigError as error:
            if error.ends_run or is_late:
                raise
            continue
        if is_late or is_so(topology):
            return topology


def _disk_of(topology: Topology, drive: Drive) -> Node | None:
    """Return the disk with the drive's serial number and WWN, whatever its name and capacity."""
    named = (node for node in topology.nodes.values() if (node.serial, node.wwn) == (drive.serial, drive.wwn))
    return next((node for node in named if node.type == "disk" and node.size_bytes > 0), None)
