"""From settings to a bay: a machine that answers, and the drives on it that the guard lets us destroy.

Runs once, on the controller, before collection, so that whatever the user asked wrongly is one sentence and
exit status 4, and nothing was touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ssdqual.plugin.options.settings import Devices, Settings
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.drives import health
from pytest_ssdqual.rig.drives.survey import Drive, expand, survey
from pytest_ssdqual.rig.drives.topology import Match, Signature, Topology
from pytest_ssdqual.rig.fio import features
from pytest_ssdqual.rig.guard import consent, content, held_drives, lease, refusals
from pytest_ssdqual.rig.guard.consent import Content
from pytest_ssdqual.rig.guard.lease import Terms
from pytest_ssdqual.rig.integrity.power_cut import Switch
from pytest_ssdqual.rig.machine import facts as provenance
from pytest_ssdqual.rig.machine import local, run_files, ssh
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import MachineLost, Observer, RigError
from pytest_ssdqual.rig.md import members

if TYPE_CHECKING:
    from pytest_ssdqual.lab.drives import ScaleModel
    from pytest_ssdqual.lab.vm import Reach, Vm


@dataclass(frozen=True, slots=True)
class Bay:
    """A machine and its passed drives, as plain data: it also travels to xdist's workers."""

    #: How the machine is reached: None for this one.
    target: ssh.SshTarget | None
    drives: tuple[Drive, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    #: What the guard could not look at, and what it cleaned up; for people to read.
    remarks: tuple[str, ...] = ()
    #: What was on the drives when the guard passed them, by kernel name.
    contents: Mapping[str, Content] = field(default_factory=dict)
    #: Cuts the machine's power and gives it back, where we can; stays with the process that booted it.
    switch: Switch | None = field(default=None, compare=False, repr=False)

    @property
    def machine(self) -> str:
        return "localhost" if self.target is None else self.target.name or self.target.destination

    def connect(self, observer: Observer | None = None) -> Channel:
        """A connection of our own to the machine."""
        return local.connect(observer) if self.target is None else ssh.connect(self.target, observer)

    def to_json(self) -> dict[str, object]:
        """Plain types for execnet."""
        to = self.target
        target = to and [to.destination, list(to.options), to.name, to.patience_s]
        return {
            "target": target,
            "drives": [drive.to_json() for drive in self.drives],
            "facts": dict(self.facts),
            "remarks": list(self.remarks),
            "contents": {kname: [[each.kind, each.uuid] for each in found] for kname, found in self.contents.items()},
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Bay:
        """The inverse of ``to_json``."""
        target = None
        if plain["target"]:
            destination, options, name, patience_s = plain["target"]
            target = ssh.SshTarget(destination, tuple(options), name, patience_s)
        drives = tuple(Drive.from_json(each) for each in plain["drives"])
        contents = {kname: frozenset(Signature(*each) for each in found) for kname, found in plain["contents"].items()}
        return cls(target, drives, dict(plain["facts"]), tuple(plain["remarks"]), contents)


def open_bay(
    settings: Settings,
    stack: ExitStack,
    ours: Callable[[], frozenset[str]],
    refuse: Callable[[Drive], list[str]],
    observer: Observer | None,
    note: Callable[..., None] | None,
) -> tuple[Bay, Channel]:
    """Reach the machine, find the drives, ask whether another run has them, clear away what is left of our own earlier
    runs, ask the guard.

    ``ours`` gives the UUIDs of arrays that earlier runs left behind, ``refuse`` a site's own reasons; what is
    cleared away is told to ``note``, without which nothing is. Whatever is opened goes onto ``stack``.
    ``pytest.UsageError`` with everything that is wrong.
    """
    target, patterns, switch = _where(settings, stack)
    try:
        channel = local.connect(observer) if target is None else ssh.connect(target, observer)
        stack.callback(channel.close)
        provenance.require_tools(channel)
        features.probe(channel)
        if note and (removed := run_files.sweep(channel)):
            note("leftovers_removed", files=list(removed))
        matches, topology = _found_free(channel, patterns, settings.wait_s if note else 0.0)
        uuids, wanted = ours(), {match.kname for match in matches}
        topology, cleared = _cleared(channel, topology, uuids, wanted, settings.wipe, note)
        topology = content.examined(channel, topology, wanted, uuids, names=True)
        facts = provenance.facts(channel)
        known = [topology.drive(match.kname) for match in matches if match.kname in topology.nodes]
    except (RigError, ValueError) as error:
        raise pytest.UsageError(str(error)) from error
    refused = list(refusals.refusals(topology, matches, settings.wipe, uuids, of_several=settings.is_of_several))
    refused += [refusals.Refusal(drive.describe(), tuple(why)) for drive in known if (why := refuse(drive))]
    # smartctl asks drives that the guard has passed only.
    if refused := refused or _unidentified(channel, known):
        raise pytest.UsageError(refusals.explain(refused))
    _require_one_kind(channel, known)
    remarks = (*topology.unchecked, *(f"stopped {each}, left over from an earlier run" for each in cleared))
    contents = {drive.kname: consent.content(topology, drive.kname) for drive in known}
    return Bay(target, tuple(known), facts, remarks, contents, switch), channel


def _cleared(
    channel: Channel,
    topology: Topology,
    ours: frozenset[str],
    wanted: set[str],
    wipe: frozenset[str],
    note: Callable[..., None] | None,
) -> tuple[Topology, tuple[str, ...]]:
    """The machine without what is left of our own earlier runs and may be stopped, and what was stopped.

    Without ``note`` nothing is stopped, and the guard is asked about the machine as it would be.
    """
    topology = held_drives.examined_leftovers(channel, topology, ours, wanted)
    leftovers = held_drives.stoppable(topology, ours, wanted, wipe)
    if not note:
        for leftover in leftovers:
            topology = members.without(topology, leftover.kname)
        return topology, ()
    cleared = held_drives.clear_leftovers(channel, topology, leftovers, note)
    if cleared:
        topology = held_drives.examined_leftovers(channel, survey(channel, wanted), ours, wanted)
    return topology, cleared


def _unidentified(channel: Channel, drives: Sequence[Drive]) -> list[refusals.Refusal]:
    """Return a refusal for each drive whose health smartctl cannot read; ``pytest.UsageError`` if it does not run."""
    try:
        reasons = health.unidentified(channel, drives)
    except RigError as error:
        raise pytest.UsageError(str(error)) from error
    return [refusals.Refusal(drive.describe(), (reasons[drive.path],)) for drive in drives if drive.path in reasons]


def _require_one_kind(channel: Channel, drives: Sequence[Drive]) -> None:
    """That these make one array, and that the machine has what they need; ``pytest.UsageError`` if not."""
    if any(drive.transport == "nvme" for drive in drives):
        try:
            provenance.require_tools(channel, provenance.NVME_TOOLS)
        except RigError as error:
            raise pytest.UsageError(str(error)) from error
    if unequal := refusals.unequal(drives):
        raise pytest.UsageError("these drives do not make one array: " + "; ".join(unequal))


def _found_free(channel: Channel, patterns: tuple[str, ...], wait_s: float) -> tuple[Sequence[Match], Topology]:
    """What the patterns mean when no other run has any of it; ``LeaseTaken`` if that is not within ``wait_s``.

    They are looked up anew after waiting: in hours a name of the kernel may have become that of another drive.
    """

    def say(told: str, left_s: float) -> None:
        print(safe_text.line(f"ssdqual: {told}; waiting for {format_duration(left_s)} at most"), flush=True)

    began = time.monotonic()
    while True:
        matches = expand(channel, patterns)
        wanted = {match.kname for match in matches}
        terms = Terms(wait_s=wait_s, waiting=say)
        if lease.await_finished(channel, wanted, terms, began):
            continue
        topology = survey(channel, wanted)
        # Whatever else is wrong with what was named; what has no name at all the guard refuses.
        drives = [topology.drive(kname) for kname in sorted(wanted & topology.nodes.keys())]
        names = held_drives.names(drive for drive in drives if drive.wwn or drive.serial)
        if not lease.await_free(channel, names, replace(terms, names=names), began):
            return matches, topology


def _where(settings: Settings, stack: ExitStack) -> tuple[ssh.SshTarget | None, tuple[str, ...], Switch | None]:
    devices: Devices = settings.devices
    if devices.lab is not None:
        target, patterns, switch = _boot_lab(devices.lab, devices.first, stack)
        return replace(target, patience_s=settings.reconnect_s), patterns, switch
    if devices.host is None:
        return None, devices.patterns, None
    options = ("-F", settings.ssh_config) if settings.ssh_config else ()
    try:
        return ssh.SshTarget(devices.host, options, patience_s=settings.reconnect_s), devices.patterns, None
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error


def _boot_lab(count: int, first: int, stack: ExitStack) -> tuple[ssh.SshTarget, tuple[str, ...], Switch]:
    from pytest_ssdqual import lab
    from pytest_ssdqual.lab.host import LabUnavailable
    from pytest_ssdqual.lab.vm import LabFailed

    try:
        booted = stack.enter_context(lab.start(count, first=first))
    except (LabUnavailable, LabFailed) as error:
        raise pytest.UsageError(str(error)) from error
    return lab_target(booted.ssh), ("/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ????",), lambda: lab_switch(booted)


def lab_switch(vm: Vm) -> None:
    """Cut the lab's power, and boot it again on the same drives; ``MachineLost`` if it does not come up."""
    from pytest_ssdqual.lab.vm import LabFailed

    vm.power_cut()
    try:
        vm.power_on()
    except LabFailed as error:
        raise MachineLost(f"the lab is lost: {error}") from error


def planned_bay(
    settings: Settings,
    stack: ExitStack,
    ours: Callable[[], frozenset[str]],
    refuse: Callable[[Drive], list[str]],
) -> Bay:
    """The bay of a run that only collects: drives are looked at, but nothing is written down or cleared away.

    A lab is not even booted: its drives are known. ``pytest.UsageError`` as ``open_bay``.
    """
    if settings.devices.lab is None:
        return open_bay(settings, stack, ours, refuse, None, None)[0]
    from pytest_ssdqual.lab.drives import shelf

    return Bay(ssh.SshTarget("lab"), tuple(map(_imagined, shelf(settings.devices.lab))))


def _imagined(model: ScaleModel) -> Drive:
    return Drive(
        path=f"/dev/lab/{model.serial}", kname=model.serial, model=model.MODEL, serial=model.serial, wwn=None,
        firmware=None, size_bytes=model.size_bytes, logical_block_bytes=512, physical_block_bytes=512,
        rotational=False, transport="nvme",
    )  # fmt: skip


def lab_target(reach: Reach) -> ssh.SshTarget:
    """How ``rig.machine.ssh`` gets into the lab."""
    return ssh.SshTarget(
        f"{reach.user}@{reach.host}", (*reach.options, "-p", str(reach.port), "-i", str(reach.identity)), name="lab"
    )
