"""Opens a bay: connects to the machine, finds the drives, and lets the guard check them.

Runs once, on the controller, before collection, so that a wrong request ends as one sentence with exit status 4 before
anything is touched.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.options.device_address import Devices
from pytest_ssdqual.plugin.options.settings import Settings
from pytest_ssdqual.plugin.options.values import usage_error
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.names import named
from pytest_ssdqual.qual.units import format_duration
from pytest_ssdqual.rig.drives.survey import Drive, NothingMatches, UnusablePattern, expand, survey
from pytest_ssdqual.rig.drives.topology import AUTO_SMART, NO_SMART, Match, Topology
from pytest_ssdqual.rig.fio import features
from pytest_ssdqual.rig.guard import consent, content, held_drives, lease, refusals, sampling
from pytest_ssdqual.rig.guard.consent import Consent, Content
from pytest_ssdqual.rig.guard.lease import Terms
from pytest_ssdqual.rig.guard.refusals import Leftover
from pytest_ssdqual.rig.health import health, locking
from pytest_ssdqual.rig.health.health import Identification
from pytest_ssdqual.rig.integrity.power_cut import PowerSwitch
from pytest_ssdqual.rig.machine import facts as provenance
from pytest_ssdqual.rig.machine import local, run_files, ssh
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import MachineLost, Observer, RigError
from pytest_ssdqual.rig.md import members

if TYPE_CHECKING:
    from pytest_ssdqual.lab.drives import ScaleModel
    from pytest_ssdqual.lab.vm import Vm

#: Drives in a sentence.
MOST_NAMED = 8


#: A drive that reports less of itself as allocated may count whole mapping units, of which a label is in one.
MIN_ALLOCATED = 0.0001


@frozen
class Bay:
    """A machine and the drives that passed the guard, as plain data that is also sent to xdist's workers."""

    #: Connection to the machine; None: this computer.
    target: ssh.SshTarget | None
    drives: tuple[Drive, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    #: Checks that the guard could not make, and leftovers that it removed; for the header.
    remarks: tuple[str, ...] = ()
    #: Content of the drives when the guard passed them, by kernel name.
    contents: Mapping[str, Content] = field(default_factory=dict)
    #: Cuts and restores the machine's power, if that is possible; None in an xdist worker.
    switch: PowerSwitch | None = field(default=None, compare=False, repr=False)

    @property
    def machine(self) -> str:
        return "localhost" if self.target is None else self.target.name or self.target.destination


@frozen
class OpenedBay:
    """A bay whose drives passed the guard, as if the arrays that earlier runs left on them had been stopped."""

    bay: Bay
    channel: Channel
    matches: tuple[Match, ...] = ()
    #: Whether there are such arrays; ``clear`` stops them.
    has_leftovers: bool = False


@frozen
class ExaminedDrives:
    """The drives that patterns match, and all that the guard has against them."""

    topology: Topology
    matches: tuple[Match, ...]
    drives: tuple[Drive, ...]
    refused: tuple[refusals.Refusal, ...]
    #: Arrays that earlier runs left on them can be stopped; the rest is as if they had been.
    has_leftovers: bool

    def remarks(self, known: Sequence[Drive], settings: Settings) -> tuple[str, ...]:
        """Return the remarks of a run on these drives, as smartctl knows them."""
        return (*_unchecked(self.topology, settings), *_allocated(self.topology, known), *_without_health(known))


@frozen
class BayOpener:
    """Opens a bay."""

    settings: Settings
    #: Closes what is opened.
    stack: ExitStack
    #: Returns the UUIDs of arrays that earlier runs left behind.
    ours: Callable[[], frozenset[str]]
    #: Returns the reasons of a site's hook.
    refuse: Callable[[Drive], list[str]]

    def open(self, observer: Observer | None, note: Callable[..., None] | None) -> OpenedBay:
        """Connect to the machine, find the drives, check their leases, and call the guard. No drive is written to.

        ``note`` records which files of earlier runs are removed; without it none is. Raises ``pytest.UsageError`` with
        all refusals.
        """
        settings = self.settings
        target, patterns, switch = self.where()
        with usage_error(RigError, ValueError):
            channel = connected(target, self.stack, observer)
            if settings.read_only:
                return OpenedBay(self._read_only_bay(channel, target, patterns), channel)
            provenance.require_tools(channel)
            features.probe(channel)
            if note and (removed := run_files.sweep(channel)):
                note("leftovers_removed", files=list(removed))
            seen = self.examine(channel, patterns, settings.wait_s if note else 0.0)
            facts = provenance.facts(channel)
        _require_none(seen.refused)
        # smartctl runs only on drives that passed the guard.
        known = identified(channel, seen.drives)
        require_tools_of(channel, known)
        require_unlocked(channel, known)
        bay = Bay(target, tuple(known), facts, seen.remarks(known, settings), _contents(seen.topology, known), switch)
        return OpenedBay(bay, channel, seen.matches, has_leftovers=seen.has_leftovers)

    def planned(self) -> Bay:
        """Return the bay of a run that only collects: it checks the drives, but records and removes nothing.

        A lab is not booted, because its drives are known. Raises ``pytest.UsageError`` as ``open``.
        """
        lab = self.settings.devices.lab
        if lab is None:
            return self.open(None, None).bay
        from pytest_ssdqual.lab.drives import shelf

        return Bay(ssh.SshTarget("lab"), tuple(map(_imagined, shelf(lab))))

    def examine(self, channel: Channel, patterns: tuple[str, ...], wait_s: float = 0.0) -> ExaminedDrives:
        """Find the drives when no other run holds them, and call the guard.

        Raises ``RigError`` and ``UnusablePattern``.
        """
        matches, topology = _found_free(channel, patterns, wait_s)
        uuids, wanted = self.ours(), {match.kname for match in matches}
        topology, left = _without_leftovers(channel, topology, uuids, wanted, self.settings.consents)
        topology = content.examined(channel, topology, wanted, uuids, names=True, spend_s=sampling.THOROUGH_S)
        drives = [topology.drive(match.kname) for match in matches if match.kname in topology.nodes]
        drives = self._typed(channel, drives)
        refused = self._refused(topology, matches, uuids, drives)
        return ExaminedDrives(topology, tuple(matches), tuple(drives), refused, bool(left))

    def clear(self, opened: OpenedBay, note: Callable[..., None]) -> Bay:
        """Stop the arrays that earlier runs left on the drives, and call the guard for what is there then.

        ``note`` records each array. Raises ``pytest.UsageError``.
        """
        channel, wanted, uuids = opened.channel, {match.kname for match in opened.matches}, self.ours()
        with usage_error(RigError, ValueError):
            topology = held_drives.examined_leftovers(channel, survey(channel, wanted), uuids, wanted)
            leftovers = held_drives.stoppable(topology, uuids, wanted, self.settings.consents)
            stopped = held_drives.clear_leftovers(channel, topology, leftovers, note)
            topology = content.examined(channel, survey(channel, wanted), wanted, uuids, names=True)
        _require_none(self._refused(topology, opened.matches, uuids, opened.bay.drives))
        remarks = (f"stopped {array}, left over from an earlier run" for array in stopped)
        contents = _contents(topology, opened.bay.drives)
        return replace(opened.bay, remarks=(*opened.bay.remarks, *remarks), contents=contents)

    def where(self) -> tuple[ssh.SshTarget | None, tuple[str, ...], PowerSwitch | None]:
        """Return the machine (None: this computer), the patterns of its drives and the switch of its power.

        Boots a lab, which ``stack`` ends. Raises ``pytest.UsageError``.
        """
        settings, devices = self.settings, self.settings.devices
        if devices.lab is not None:
            target, patterns, switch = _boot_lab(devices, devices.lab, self.stack)
            return replace(target, patience_s=settings.reconnect_s), patterns, switch
        if devices.host is None:
            return None, devices.patterns, None
        options = ("-F", settings.ssh_config) if settings.ssh_config else ()
        with usage_error(ValueError):
            return ssh.SshTarget(devices.host, options, patience_s=settings.reconnect_s), devices.patterns, None

    def _refused(
        self, topology: Topology, matches: Sequence[Match], uuids: frozenset[str], drives: Sequence[Drive]
    ) -> tuple[refusals.Refusal, ...]:
        """Return all refusals of the guard and of the site's hook."""
        settings = self.settings
        refused = refusals.refusals(
            topology, matches, settings.consents, uuids,
            unchecked=settings.unchecked, of_several=settings.is_of_several,
        )  # fmt: skip
        by_site = [
            refusals.Refusal(drive.describe(), tuple(reasons), kname=drive.kname)
            for drive in drives
            if (reasons := self.refuse(drive))
        ]
        return (*refused, *by_site)

    def _read_only_bay(self, channel: Channel, target: ssh.SshTarget | None, patterns: tuple[str, ...]) -> Bay:
        """Return the bay of a run that writes nothing: its drives may be in use, and none is checked for content.

        Raises ``pytest.UsageError`` for what is no whole drive, or has no identity to record it by.
        """
        provenance.require_tools(channel, {name: provenance.TOOLS[name] for name in ("smartctl", "lsblk")})
        matches = expand(channel, patterns)
        topology = survey(channel)
        _require_none(refusals.no_drives(topology, matches))
        drives = [topology.drive(kname) for kname in dict.fromkeys(match.kname for match in matches)]
        drives = self._typed(channel, drives)
        # The inspection reports a drive that smartctl cannot identify.
        healths = health.identify(channel, drives)
        drives = [
            replace(drive, firmware=healths[drive.path].firmware or drive.firmware)
            for drive in _without_virtual_health(channel, drives, healths)
        ]
        return Bay(target, tuple(drives), provenance.facts(channel), _without_health(drives))

    def _typed(self, channel: Channel, drives: Sequence[Drive]) -> list[Drive]:
        """Return the drives with their types for smartctl; patterns are expanded on the machine.

        ``UnusablePattern`` for a pattern that matches none of the drives, unless it is for several bays.
        """
        of_all = next((each.type for each in self.settings.smart_types if not each.pattern), AUTO_SMART)
        types: dict[str, str] = {}
        for each in self.settings.smart_types if drives else ():
            if not each.pattern:
                continue
            try:
                matched = {match.kname for match in expand(channel, [each.pattern])}
            except NothingMatches:
                matched = set()
            matched &= {drive.kname for drive in drives}
            if not matched and not self.settings.is_of_several:
                raise UnusablePattern(f"--ssd-smart-type: {each.pattern!r} matches none of the drives under test.")
            types |= dict.fromkeys(matched, each.type)
        return [replace(drive, smart_type=types.get(drive.kname, of_all)) for drive in drives]


def _contents(topology: Topology, drives: Sequence[Drive]) -> dict[str, Content]:
    return {drive.kname: consent.content(topology, drive.kname) for drive in drives}


def _require_none(refused: Sequence[refusals.Refusal]) -> None:
    """Raise ``pytest.UsageError`` with all refusals, if there are any."""
    if refused:
        raise pytest.UsageError(refusals.explain(refused))


def _without_leftovers(
    channel: Channel, topology: Topology, ours: frozenset[str], wanted: set[str], given: frozenset[Consent]
) -> tuple[Topology, tuple[Leftover, ...]]:
    """Return the topology that results when arrays of earlier runs are stopped where that is safe, and the arrays."""
    topology = held_drives.examined_leftovers(channel, topology, ours, wanted)
    leftovers = held_drives.stoppable(topology, ours, wanted, given)
    for leftover in leftovers:
        topology = members.without(topology, leftover.kname)
    return topology, leftovers


def identified(channel: Channel, drives: Sequence[Drive]) -> list[Drive]:
    """Return the drives with the firmware that smartctl reports; those of a hypervisor perhaps without health.

    Raises ``pytest.UsageError`` with all drives that smartctl cannot identify, and if it does not run.
    """
    with usage_error(RigError):
        found = health.identify(channel, drives)
        drives = _without_virtual_health(channel, drives, found)
    if unread := [drive for drive in drives if found[drive.path].problem and drive.has_health]:
        raise pytest.UsageError(_unread(unread, found, are_all=len(unread) == len(drives)))
    return [replace(drive, firmware=found[drive.path].firmware or drive.firmware) for drive in drives]


def _without_virtual_health(
    channel: Channel, drives: Sequence[Drive], found: Mapping[str, Identification]
) -> list[Drive]:
    """Return the drives, those of a hypervisor that have no readable health without it, unless a type was given."""
    unread = [drive for drive in drives if found[drive.path].problem and drive.smart_type == AUTO_SMART]
    emulated = health.emulated_among(channel, unread)
    return [
        replace(drive, smart_type=NO_SMART, is_emulated=True) if drive.kname in emulated else drive for drive in drives
    ]


def _unread(drives: Sequence[Drive], found: Mapping[str, Identification], *, are_all: bool) -> str:
    """Return one sentence for all drives whose health cannot be read, with one option to copy that is for all."""
    by_problem: dict[str, list[str]] = {}
    for drive in drives:
        problem = found[drive.path].problem.replace(f"{drive.path}: ", "")
        by_problem.setdefault(problem, []).append(drive.describe())
    said = "; ".join(f"{named(names, MOST_NAMED)}: {problem}" for problem, names in by_problem.items())

    def option(smart_type: str) -> str:
        values = [smart_type] if are_all else [f"{drive.path}={smart_type}" for drive in drives]
        return " ".join(f"--ssd-smart-type={shlex.quote(value)}" for value in values)

    return (
        f"smartctl: {said}; name the type with {option('TYPE')} (smartctl's option -d, e.g. megaraid,4), or run "
        f"without health: {option(NO_SMART)}"
    )


def _unchecked(topology: Topology, settings: Settings) -> Iterator[str]:
    """Yield a remark for each source of ``--ssd-unchecked``: why it was blind, or that it was not."""
    for source in sorted(settings.unchecked, key=lambda source: source.value):
        why = "; ".join(spot.why for spot in topology.blind if spot.source is source)
        result = f"not checked: {why}" if why else "not needed, this machine could answer"
        yield f"--ssd-unchecked={source.value}: {result}"


def _allocated(topology: Topology, drives: Sequence[Drive]) -> Iterator[str]:
    """Yield a remark for each drive that by its own account has data where no sample shows any.

    NVMe's NUSE counts allocated blocks. Many drives always report all of them, which says nothing.
    """
    for drive in drives:
        share = topology.nodes[drive.kname].allocated
        is_blank = not topology.nodes[drive.kname].signatures
        if is_blank and share is not None and MIN_ALLOCATED < share < 1:
            yield (
                f"{drive.describe()} reports {share:.1%} of its blocks as allocated (NUSE), and no sample shows "
                "content: there may be data between the samples"
            )


def _without_health(drives: Sequence[Drive]) -> tuple[str, ...]:
    """Return a sentence about the drives of a hypervisor without health, and one about all others without it."""
    unread = [drive for drive in drives if not drive.has_health]
    virtual = [drive for drive in unread if drive.is_virtual]
    real = [drive.describe() for drive in unread if not drive.is_virtual]
    of_virtual = (
        f"{len(virtual)} drive{'' if len(virtual) == 1 else 's'} of a hypervisor "
        f"({named(sorted({drive.model or drive.path for drive in virtual}), MOST_NAMED)}) have no health that can be "
        "read; it is not judged"
    )
    of_real = f"the health of {named(real, MOST_NAMED)} is not read and not judged (--ssd-smart-type={NO_SMART})"
    return (*((of_virtual,) if virtual else ()), *((of_real,) if real else ()))


def require_tools_of(channel: Channel, drives: Sequence[Drive]) -> None:
    """Require the tools that these drives need on the machine; else raise ``pytest.UsageError``."""
    if any(drive.transport == "nvme" for drive in drives):
        with usage_error(RigError):
            provenance.require_tools(channel, provenance.NVME_TOOLS)


def require_unlocked(channel: Channel, drives: Sequence[Drive]) -> None:
    """Require that no drive reports itself as locked; else raise ``pytest.UsageError``. Unknown is no refusal."""
    with usage_error(RigError):
        states = locking.read(channel, drives)
    objections = {drive: locking.objection(states[drive.path]) for drive in drives if drive.path in states}
    _require_none([refusals.Refusal(drive.describe(), (why,)) for drive, why in objections.items() if why])


def _found_free(channel: Channel, patterns: tuple[str, ...], wait_s: float) -> tuple[Sequence[Match], Topology]:
    """Return the drives of the patterns when they are free; raise ``LeaseTaken`` if they are not within ``wait_s``.

    Patterns are expanded again after waiting: in hours a kernel name may become that of another drive.
    """

    def say(message: str, left_s: float) -> None:
        print(safe_text.line(f"ssdqual: {message}; waiting for {format_duration(left_s)} at most"), flush=True)

    began = time.monotonic()
    while True:
        matches = expand(channel, patterns)
        wanted = {match.kname for match in matches}
        terms = Terms(wait_s=wait_s, waiting=say)
        if lease.await_finished(channel, wanted, terms, began):
            continue
        topology = survey(channel, wanted)
        # Drives without an identity have no lease; the guard refuses them.
        drives = [topology.drive(kname) for kname in sorted(wanted & topology.nodes.keys())]
        if not lease.await_free(channel, lease.names_of(drives), terms, began):
            return matches, topology


def connected(target: ssh.SshTarget | None, stack: ExitStack, observer: Observer | None = None) -> Channel:
    """Return a connection to the machine, which ``stack`` closes; ``RigError`` if there is none."""
    channel = local.connect(observer) if target is None else ssh.connect(target, observer)
    stack.callback(channel.close)
    return channel


def _boot_lab(devices: Devices, count: int, stack: ExitStack) -> tuple[ssh.SshTarget, tuple[str, ...], PowerSwitch]:
    from pytest_ssdqual import lab
    from pytest_ssdqual.lab.drives import shelf
    from pytest_ssdqual.lab.host import LabUnavailable
    from pytest_ssdqual.lab.vm import LabFailed

    with usage_error(LabUnavailable, LabFailed):
        drives = shelf(count, first=devices.first, slow=devices.slow)
        booted = stack.enter_context(lab.start(drives, release=devices.release))
    reach = booted.ssh
    target = ssh.SshTarget(
        f"{reach.user}@{reach.host}", (*reach.options, "-p", str(reach.port), "-i", str(reach.identity)), name="lab"
    )
    return target, ("/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ????",), lambda: lab_switch(booted)


def lab_switch(vm: Vm) -> None:
    """Cut the lab's power, and boot it again on the same drives; raise ``MachineLost`` if it does not come up."""
    from pytest_ssdqual.lab.vm import LabFailed

    vm.power_cut()
    try:
        vm.power_on()
    except LabFailed as error:
        raise MachineLost(f"the lab is lost: {error}") from error


def _imagined(model: ScaleModel) -> Drive:
    return Drive(
        path=f"/dev/lab/{model.serial}", kname=model.serial, model=model.MODEL, serial=model.serial, wwn=None,
        firmware=None, size_bytes=model.size_bytes, logical_block_bytes=512, physical_block_bytes=512,
        rotational=False, transport="nvme",
    )  # fmt: skip
