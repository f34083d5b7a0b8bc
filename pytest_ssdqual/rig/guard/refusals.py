"""Reasons not to destroy a drive: all of them, for all drives, before anything is written.

Decisions are pure functions, and a doubt is a reason. Only ``recheck``, which repeats the checks before each
destructive step, accesses a machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.serial_number import is_generic
from pytest_ssdqual.rig.drives.survey import survey
from pytest_ssdqual.rig.drives.topology import Drive, Match, Node, Source, Topology, Use, UseKind, plain_uuid
from pytest_ssdqual.rig.guard import consent, content
from pytest_ssdqual.rig.guard.consent import Consent, Content, MissingConsent, Risk
from pytest_ssdqual.rig.machine.machine import DriveRefused, DriveSilent, Machine

#: Only on these buses does ROTA=1 mean a hard disk; virtual drives, USB bridges and RAID controllers report it for
#: SSDs.
BUSES_THAT_TELL = ("sata", "ata", "sas")

#: lsblk's types in words.
TYPES = {
    "part": "a partition",
    "loop": "a loop device",
    "crypt": "an encrypted device",
    "lvm": "an LVM volume",
    "mpath": "a multipath map",
    "dm": "a device-mapper device",
    "rom": "an optical drive",
    "md": "an md array",
}


#: Uses in words; a device with one of those in ``CLAIMS`` cannot be opened exclusively.
CLAIMS = {
    UseKind.SWAP: "is swap space",
    UseKind.BTRFS: "is part of the mounted btrfs {}",
    UseKind.ZFS: "is part of an imported ZFS pool",
    UseKind.BCACHE: "is registered with bcache",
    UseKind.BCACHEFS: "is part of the mounted bcachefs {}",
    UseKind.EXPORT: "is exported ({})",
}
OPEN = {
    UseKind.WRITER: "is open for writing by {}",
    UseKind.READER: "is open for reading by {}",
    UseKind.GENERIC: "is open through a character device (sg, bsg or ng) by {}",
    UseKind.SILENT: "does not answer: {}",
    UseKind.RESERVED: "is reserved by, or registered with, a host ({})",
}
#: What is unknown while a source is blind, and what its user has to know instead.
QUESTIONS = {
    Source.EXPORTS: ("whether the kernel exports a drive", "it exports none of them"),
    Source.OPENERS: ("which programs have a drive open", "none has one of them open"),
    Source.LAYERS: ("what is built on a drive", "nothing is built on them"),
    Source.SIGNATURES: ("which signatures a drive has", "they may be destroyed"),
    Source.RESERVATIONS: ("whether another host uses a drive", "no other host uses them"),
}
#: Likely causes of a capacity of 0, by transport, and what to do. The kernel gives none to a namespace with metadata
#: that its block layer cannot use (nvme_update_disk_info, drivers/nvme/host/core.c), nor to a SCSI disk with another
#: size of blocks ("Unsupported sector size", drivers/scsi/sd.c).
NO_CAPACITY = {
    "nvme": "the controller does not answer, or the namespace is formatted with metadata or blocks that the kernel "
    "cannot use; see `nvme id-ns -H {0}`, and `nvme format` chooses a format without metadata and erases the drive",
    "sas": "the drive does not answer, or it has blocks of 520 or 528 bytes, which the kernel cannot use; see "
    "`sg_readcap -l {0}`, and `sg_format --format --size=512` formats and erases the drive",
}


@frozen
class Refusal:
    """Reasons why one drive must not be tested; its ``str`` is a line for the user."""

    drive: str
    reasons: tuple[str, ...]
    #: What the user may consent to, and sources that the user may do without.
    consents: tuple[Consent, ...] = ()
    blind: tuple[Source, ...] = ()
    #: Name that the kernel gives the drive; empty for a refusal by something else than the drive at a path.
    kname: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.drive}: {'; '.join(self.reasons)}."


@frozen
class Leftover:
    """An array of an earlier run that still exists; the caller stops it unless it is in use."""

    kname: str
    #: 32 hexadecimal digits.
    uuid: str
    #: Kernel names.
    members: tuple[str, ...]


def refusals(
    topology: Topology,
    matches: Sequence[Match],
    given: Collection[Consent] = frozenset(),
    known_uuids: Collection[str] = frozenset(),
    *,
    unchecked: Collection[Source] = frozenset(),
    of_several: bool = False,
) -> tuple[Refusal, ...]:
    """Every reason against every drive; empty if all may be destroyed.

    ``given`` holds what the user consented to; it never helps a drive in use. ``unchecked`` are the sources that may be
    blind. ``known_uuids`` holds the UUIDs, in any spelling, of arrays that a journal records as created: their remains
    on a drive need no consent, but a running one is still a reason (see ``leftovers``). ``of_several``: a consent may
    be for a drive of another bay, so the caller, who knows all bays, checks ``useless_consents`` itself.
    """
    known_uuids = frozenset(filter(None, map(plain_uuid, known_uuids)))
    by_kname: dict[str, list[Match]] = {}
    for match in matches:
        by_kname.setdefault(match.kname, []).append(match)
    refused = []
    for kname, named in by_kname.items():
        node = topology.nodes.get(kname)
        if node is None:
            refused.append(Refusal(named[0].written_path, (f"is {kname}, which is not among the block devices",)))
            continue
        reasons = dict.fromkeys(_reasons(topology, node, by_kname, given, known_uuids))
        if reasons:
            missing = [reason for reason in reasons if isinstance(reason, MissingConsent)]
            consents = tuple(each for reason in missing for each in reason.consents)
            words = tuple(reason.reason if isinstance(reason, MissingConsent) else reason for reason in reasons)
            refused.append(Refusal(_called(named[0], node), words, consents, kname=kname))
    drives = [topology.nodes[kname] for kname in by_kname if kname in topology.nodes]
    twins = [twin for node in drives for twin in topology.twins(node.kname)]
    useless = () if of_several else useless_consents(drives, given, twins)
    return (*refused, *blind(topology, unchecked), *useless)


def blind(topology: Topology, unchecked: Collection[Source]) -> Iterator[Refusal]:
    """A refusal for each blind source that the user did not name."""
    for source in Source:
        why = [spot.why for spot in topology.blind if spot.source is source]
        if why and source not in unchecked:
            unknown, condition = QUESTIONS[source]
            reason = f"does not show {unknown} ({'; '.join(why)}); if {condition}, add --ssd-unchecked={source.value}"
            yield Refusal("the machine", (reason,), blind=(source,))


def no_drives(topology: Topology, matches: Sequence[Match]) -> tuple[Refusal, ...]:
    """Reasons why devices cannot even be inspected: not a whole drive, or nothing to record it by."""
    refused = []
    for match in matches:
        node = topology.nodes.get(match.kname)
        if node is None:
            refused.append(Refusal(match.written_path, (f"is {match.kname}, which is not among the block devices",)))
        elif node.type != "disk" or node.partition_of or node.slaves:
            refused.append(Refusal(_called(match, node), tuple(_shape(topology, node))))
        elif not node.wwn and not node.serial:
            reason = "has neither a serial number nor a WWN, so it cannot be distinguished from another drive"
            refused.append(Refusal(_called(match, node), (reason,)))
        elif differences := [use.detail for use in node.uses if use.kind is UseKind.MISNAMED]:
            refused.append(Refusal(_called(match, node), tuple(_misnamed(node, each) for each in differences)))
    return tuple(refused)


def explain(refused: Sequence[Refusal]) -> str:
    """One message with a line for each refusal; for several with options a last line has all of these to copy."""
    lines = list(map(str, refused))
    if sum(bool(refusal.consents or refusal.blind) for refusal in refused) > 1:
        words = [consent.options(each for refusal in refused for each in refusal.consents)]
        if sources := [source.value for refusal in refused for source in refusal.blind]:
            words.append(f"--ssd-unchecked={','.join(dict.fromkeys(sources))}")
        lines.append(f"All of these options: {' '.join(filter(None, words))}")
    return "\n".join(lines)


def leftovers(topology: Topology, known_uuids: Collection[str]) -> tuple[Leftover, ...]:
    """The kernel's arrays whose UUID is one of ``known_uuids`` (in any spelling)."""
    own_uuids = set(filter(None, map(plain_uuid, known_uuids)))
    return tuple(
        Leftover(array.kname, array.uuid, array.members)
        for array in topology.arrays
        if array.uuid is not None and array.uuid in own_uuids
    )


def unequal(drives: Sequence[Drive], max_size_difference_percent: float = 1.0) -> tuple[str, ...]:
    """Reasons why drives cannot form one array: sizes too different, or logical blocks of different size."""
    if not drives:
        return ()
    reasons = []
    small, large = min(drives, key=lambda drive: drive.size_bytes), max(drives, key=lambda drive: drive.size_bytes)
    if large.size_bytes - small.size_bytes > large.size_bytes * max_size_difference_percent / 100:
        reasons.append(
            f"{large.describe()} has {large.size_bytes} bytes and {small.describe()} has {small.size_bytes}; "
            f"within one array drives may differ by {max_size_difference_percent:g} %."
        )
    if len({drive.logical_block_bytes for drive in drives}) > 1:
        sizes = ", ".join(f"{drive.path} {drive.logical_block_bytes}" for drive in drives)
        reasons.append(f"The drives have logical blocks of different size ({sizes} bytes); format them alike.")
    return tuple(reasons)


class ReportedUse(NamedTuple):
    """One use of a device, in words."""

    text: str
    #: The user is an array of an earlier run, which can be stopped.
    by_leftover: bool = False


def uses(topology: Topology, kname: str, known_uuids: Collection[str] = frozenset()) -> Iterator[ReportedUse]:
    """Uses of a device and of anything built on it: ``is mounted at /``, ``carries /dev/sda2, which is …``.

    ``known_uuids`` (32 hexadecimal digits each) are those of the arrays of earlier runs.
    """
    node = topology.nodes.get(kname)
    claims = list(_claims(topology, node, known_uuids))
    yield from claims
    yield from _open_files(node)
    for name in topology.below(kname):
        below = list(_claims(topology, topology.nodes.get(name), known_uuids))
        claims += below
        for use in (*below, *_open_files(topology.nodes.get(name))):
            yield use._replace(text=f"carries {topology.path(name)}, which {use.text}")
    if node is not None and not claims and Use(UseKind.EXCLUSIVE) in node.uses:
        # A known claim explains the exclusive open; an open file does not.
        yield ReportedUse("is open exclusively by something else")


def in_use(topology: Topology, kname: str) -> Iterator[str]:
    """The words of all ``uses``."""
    return (use.text for use in uses(topology, kname))


def changed(topology: Topology, drive: Drive) -> tuple[str, ...]:
    """Reasons why the device now at the path of a drive is not, or is not provably, the drive that was checked."""
    node = next((node for node in topology.nodes.values() if node.path == drive.path), None)
    if node is None:
        return ("is gone",)
    now = topology.drive(node.kname)
    reasons = [
        f"has {what} {new} where {old} was checked"
        for what, old, new in (
            ("kernel name", drive.kname, now.kname),
            ("WWN", drive.wwn, now.wwn),
            ("serial", drive.serial, now.serial),
            ("a size in bytes of", drive.size_bytes, now.size_bytes),
            ("logical blocks of", drive.logical_block_bytes, now.logical_block_bytes),
        )
        if old != new
    ]
    if (now.wwn, now.serial) == (drive.wwn, drive.serial) and (names := unknown_names(node, drive)):
        reasons.append(f"is called {', '.join(map(safe_text.name, names))}, which was no name of the checked drive")
    if not (drive.wwn or drive.serial):
        reasons.append("has neither a WWN nor a serial, so it cannot be distinguished from another drive")
    reasons.extend(_shape(topology, node))
    for other in (node, *topology.twins(node.kname)):
        prefix = "" if other is node else f"is the same drive as {other.path}, which "
        reasons.extend(prefix + use for use in in_use(topology, other.kname))
    return tuple(reasons)


def unknown_names(node: Node, drive: Drive) -> tuple[str, ...]:
    """Names that any source reports for the device in a drive's place, and none reported for the drive.

    Another drive may have taken the place of one while udev still reports the former names, which lsblk prints.
    """
    return tuple(sorted(node.names - drive.all_names)) if drive.names else ()


def is_gone(topology: Topology, drive: Drive) -> bool:
    """Return whether no device with a capacity has the drive's name, so that nothing can be written there.

    An NVMe drive whose controller is dead keeps its name for a while; the kernel sets its capacity to 0.
    """
    node = topology.nodes.get(drive.kname)
    return node is None or node.size_bytes <= 0


class DrivesGone(DriveRefused):
    """The only objection is that drives are gone."""

    def __init__(self, message: str, drives: Sequence[Drive]) -> None:
        super().__init__(message)
        self.drives = tuple(drives)


def recheck(
    machine: Machine,
    *drives: Drive,
    known: Mapping[str, Content] | None = None,
    known_uuids: Collection[str] = frozenset(),
    unchecked: Collection[Source] = frozenset(),
    may_be_gone: bool = False,
    may_have_data: bool = False,
) -> dict[str, Content]:
    """Check immediately before destroying: the same drives, still not in use, and no new content.

    ``known`` is what an earlier call returned, the content of each drive by its kernel name: new content is a reason,
    unless it is a superblock of ``known_uuids`` (UUIDs in any spelling). ``unchecked``: sources that may be blind.
    ``may_be_gone``: a drive that ``is_gone`` is no reason. ``may_have_data``: nor are data without a signature, or
    blocks that cannot be read. Costs three commands for any number of drives. Raises ``DriveRefused`` with every
    reason; ``DrivesGone`` or ``DriveSilent`` if that is the only one.
    """
    topology = survey(machine, [drive.kname for drive in drives])
    there = sorted(topology.candidates)
    topology = content.examined(machine, topology, there, known_uuids)
    contents = {kname: consent.content(topology, kname) for kname in there}
    lost = {f"/dev/{drive.kname}" for drive in drives if is_gone(topology, drive)}
    # What a drive that is gone does not answer is no further objection.
    open_questions = replace(topology, blind=tuple(spot for spot in topology.blind if spot.path not in lost))
    refused = list(blind(open_questions, unchecked))
    gone = tuple(drive for drive in drives if is_gone(topology, drive) and not may_be_gone)
    for drive in drives:
        if may_be_gone and is_gone(topology, drive):
            continue
        reasons = list(changed(topology, drive))
        before = None if known is None else known.get(drive.kname)
        has = contents.get(drive.kname, frozenset())
        if may_have_data:
            has = frozenset(sign for sign in has if sign.kind not in (consent.DATA, consent.UNREADABLE))
        if before is not None and (new := consent.foreign(has - before, known_uuids)):
            reasons.append(f"carries {', '.join(new)}, which came after it was checked")
        if reasons:
            refused.append(Refusal(drive.describe(), tuple(reasons)))
    if refused:
        silent = [node for drive in drives if (node := topology.nodes.get(drive.kname)) and node.is_silent]
        if len(gone) == len(refused):
            raise DrivesGone(explain(refused), gone)
        raise DriveSilent(explain(refused)) if len(silent) == len(refused) else DriveRefused(explain(refused))
    return contents


def _reasons(
    topology: Topology,
    node: Node,
    by_kname: dict[str, list[Match]],
    given: Collection[Consent],
    known_uuids: Collection[str],
) -> Iterator[str | MissingConsent]:
    used = list(uses(topology, node.kname, known_uuids))
    yield from _shape(topology, node)
    yield from (use.text for use in used)
    yield from _whole_in_use(topology, node, known_uuids)
    if len(by_kname[node.kname]) > 1:
        written = " and by ".join(match.written_path for match in by_kname[node.kname])
        yield f"is named twice, by {written}; name it once"
    twins = topology.twins(node.kname)
    for other in twins:
        same = f"is the same drive as {other.path} ({_shared_name(node, other)})"
        if other.kname in by_kname:
            yield f"{same}, which is named too; name it once"
        for use in uses(topology, other.kname, known_uuids):
            used.append(use)
            yield f"{same}, which {use.text}"
    if node.type == "disk" and not node.wwn:
        yield from _indistinct(node.serial)
    if node.rotational and node.transport in BUSES_THAT_TELL:
        yield "is a hard disk, not an SSD"
    if node.kname not in topology.candidates and not node.is_silent:
        yield "was not probed for exclusive use and signatures"
    if node.type == "disk":
        # A leftover array may be stopped once the user consented for all its members (``held_drives.stoppable``).
        free = all(use.by_leftover for use in used)
        yield from consent.missing(topology, (node, *twins), given, known_uuids, free=free)


def _indistinct(serial: str | None) -> Iterator[str]:
    """A reason for a drive without WWN whose serial number, if it has one, does not identify it."""
    if not serial:
        yield "has neither a serial number nor a WWN, so it cannot be distinguished from another drive"
    elif is_generic(serial):
        yield (
            f"has no WWN, and its serial number {serial} is one that many drives have, so it cannot be distinguished "
            "from another drive; connect it without a bridge, or ask its maker for a firmware that has a serial number"
        )


def _shape(topology: Topology, node: Node) -> Iterator[str]:
    if node.type != "disk" or node.partition_of:
        whole = [topology.nodes[name].describe() for name in topology.whole_disks(node.kname) if name != node.kname]
        what = TYPES.get(node.type, "a RAID array" if node.type.startswith("raid") else f"of type {node.type!r}")
        yield f"is {what}{' on ' + ', '.join(whole) if whole else ''}, not a whole drive"
    elif node.slaves:
        yield f"is built on {', '.join(map(topology.path, node.slaves))}, so it is not a drive"
    if node.read_only:
        yield "is read-only"
    if node.size_bytes <= 0:
        hint = NO_CAPACITY.get(node.transport or "", "").format(node.path)
        yield f"has no capacity (0 bytes){hint and ': '}{hint}"
    for use in node.uses:
        if use.kind is UseKind.UNOPENABLE:
            yield f"cannot be opened ({use.detail})"
        if use.kind is UseKind.MISNAMED:
            yield _misnamed(node, use.detail)
        if use.kind is UseKind.ZONED:
            yield f"is a zoned drive ({use.detail}), and those are not tested"


def _misnamed(node: Node, difference: str) -> str:
    return (
        f"has the {difference}, so it may have taken the place of another drive: run "
        f"`udevadm trigger --action=change {node.path}` and `udevadm settle`, or restart systemd-udevd"
    )


def _whole_in_use(topology: Topology, node: Node, known_uuids: Collection[str]) -> Iterator[str]:
    """Uses of the drives under a partition or array that the user named."""
    for name in topology.whole_disks(node.kname):
        if name != node.kname:
            for use in uses(topology, name, known_uuids):
                yield f"belongs to {topology.path(name)}, which {use.text}"


def _claims(topology: Topology, node: Node | None, known_uuids: Collection[str]) -> Iterator[ReportedUse]:
    if node is None:
        yield ReportedUse("is not among the block devices")
        return
    if node.mountpoints:
        root = " (the root file system)" if "/" in node.mountpoints else ""
        yield ReportedUse(f"is mounted at {', '.join(node.mountpoints)}{root}")
    yield from (ReportedUse(CLAIMS[use.kind].format(use.detail)) for use in node.uses if use.kind in CLAIMS)
    arrays = {array.kname: array for array in topology.arrays}
    for holder in node.holders:
        kind = topology.nodes[holder].type if holder in topology.nodes else "unknown"
        if holder in arrays and arrays[holder].uuid in known_uuids:
            member = f"is a member of {topology.path(holder)} ({kind})"
            yield ReportedUse(f"{member}, left over from an earlier run; stop that first", by_leftover=True)
        else:
            yield ReportedUse(f"is held by {topology.path(holder)} ({kind})")


def _open_files(node: Node | None) -> Iterator[ReportedUse]:
    """Uses that do not prevent another process from claiming the device."""
    return (ReportedUse(OPEN[use.kind].format(use.detail)) for use in (node.uses if node else ()) if use.kind in OPEN)


def _shared_name(one: Node, other: Node) -> str:
    if one.wwn and one.wwn == other.wwn:
        return f"same WWN {one.wwn}"
    return f"same serial {one.serial}" if one.serial and one.serial == other.serial else "by their names"


def _called(match: Match, node: Node) -> str:
    """The drive's description, with the path that the user wrote if that is another one."""
    return node.describe() if match.written_path == node.path else f"{match.written_path} → {node.describe()}"


def useless_consents(
    drives: Sequence[Node | Drive], given: Collection[Consent], twins: Sequence[Node] = ()
) -> Iterator[Refusal]:
    """A refusal for each consent that names none of these drives or other paths to them (``twins``)."""
    identities = {name for node in (*drives, *twins) for name in consent.names(node)}
    shared = {node.serial for node in (*drives, *twins)} - identities
    have = ", ".join(Consent(Risk.SHARED, next(iter(consent.names(node)), "none")).value for node in drives) or "none"
    for each in sorted(given, key=lambda each: (each.risk.value, each.name, each.mark)):
        if each.name in shared:
            reason = f"is a serial number that many drives have, and consent for none: give the WWN, here {have}"
        elif each.name not in identities:
            reason = f"is the serial of no drive that was named; theirs are {have}"
        else:
            continue
        yield Refusal(consent.options([each]), (reason,))
