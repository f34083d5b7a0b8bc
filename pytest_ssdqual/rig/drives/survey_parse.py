"""Parsers of what lsblk and the survey's script print → ``Topology``; pure.

Sources are united, never preferred: a device or a relation between devices exists if any source reports it, because a
use that is missed here may lead to a wiped drive. The sources are lsblk's JSON (from version 2.34 on; versions spell
numbers and flags differently), sysfs and loop devices; each may know only a part, so a draft collects them.

The script's answer is records of fields, each ended by NUL. No value that it prints can contain a NUL, and each kind of
record has a fixed number of fields, so no value can end a record or begin one. Every deviation is an error: an answer
that is partly parsed could miss a use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives import lsblk, udev_names
from pytest_ssdqual.rig.drives.topology import (
    BlindSpot,
    MdArray,
    Node,
    Signature,
    Source,
    Topology,
    Use,
    UseKind,
    plain_name,
    plain_uuid,
)

#: Exporters of drives within the kernel, where no process reveals them.
EXPORTS = {
    "nvmet": "NVMe over Fabrics target",
    "target": "SCSI target",
    "gadget": "USB mass storage gadget",
    "rnbd": "RDMA network block device",
    "xen": "Xen block backend",
    "scst": "SCST target",
}
#: Kinds of records that are plain attributes of a device.
ATTRIBUTES = ("dev", "size", "ro", "wwid", "serial", "model", "depth", "firmware", "link")

#: Identifiers of a device, and other texts about it.
EXACT, WORDS = ("model", "serial", "wwn", "vendor", "firmware"), ("type", "fstype", "pttype", "uuid", "transport")

EBUSY = 16
#: PROC_PID_INIT_INO of include/linux/proc_ns.h: the initial PID namespace, which contains all others.
FIRST_PID_NAMESPACE = "4026531836"
CONTAINED = "the program is in a PID namespace of its own, which does not show the processes outside of it"


@frozen
class RecordKind:
    """Number of fields and key of one kind of record."""

    fields: int
    #: Number of leading fields that identify a record of its kind: 0 if there is only one; None: there may be equals.
    key: int | None = None
    required: bool = False


KINDS = {
    # about a device, by its name in sysfs
    **dict.fromkeys(("dev", "size", "ro", "model", "depth", "mduuid", "zoned", "loop", "disk"), RecordKind(2, 1)),
    **dict.fromkeys(("wwid", "serial", "firmware", "link"), RecordKind(2)),
    **dict.fromkeys(("holder", "slave", "controller", "btrfs", "bcachefs"), RecordKind(2, 2)),
    "bcache": RecordKind(1, 1),
    "over": RecordKind(3),
    # about a path or a number
    "generic": RecordKind(2, 2),
    "export": RecordKind(2),
    "exported": RecordKind(3),
    "passthru": RecordKind(2),
    # whole files
    **dict.fromkeys(("mounts", "swaps", "mdstat"), RecordKind(1, 0, required=True)),
    "zfs": RecordKind(1, 0),
    # open files: process, descriptor, access, device, name of the process
    "opened": RecordKind(5, 2),
    # processes that wait for a silent device: process, device, seconds at least, requests in flight
    "hanging": RecordKind(4),
    "pidns": RecordKind(1, 0),
    "scanned": RecordKind(0, 0, required=True),
    # about candidates, by path
    "number": RecordKind(3, 1),
    "probe": RecordKind(2, 1),
    "multiport": RecordKind(1, 1),
    "reserved": RecordKind(3, 1),
    "signature": RecordKind(2),
    "allocated": RecordKind(3, 1),
    "blind_drive": RecordKind(3),
    "blind": RecordKind(2),
    "end": RecordKind(0, 0, required=True),
}


@frozen
class Records:
    """The parsed answer."""

    by_kind: dict[str, list[tuple[str, ...]]]

    def __getitem__(self, kind: str) -> Sequence[tuple[str, ...]]:
        """Return all records of a kind, without the kind."""
        if kind not in KINDS:
            raise ValueError(f"{kind} is no kind of record")
        return self.by_kind.get(kind, ())

    def text(self, kind: str) -> str:
        """Return the only field of the only record of a kind; empty if there is none."""
        return "".join(fields[0] for fields in self[kind])


def parse(answer: str) -> Records:
    """Parse an answer; ``ValueError`` unless it consists of whole records of known kinds, unique where required."""
    if not answer.endswith("\0"):
        raise ValueError("the survey was cut short")
    words = iter(answer[:-1].split("\0"))
    by_kind: dict[str, list[tuple[str, ...]]] = {}
    for name in words:
        if name not in KINDS or "end" in by_kind:
            raise ValueError(f"{name[:40]!r} is not a record of the survey")
        fields = tuple(islice(words, KINDS[name].fields))
        if len(fields) < KINDS[name].fields:
            raise ValueError(f"the survey was cut short, within {name}")
        by_kind.setdefault(name, []).append(fields)
    missing = [name for name, kind in KINDS.items() if kind.required and name not in by_kind]
    if missing:
        raise ValueError(f"the survey was cut short, {', '.join(missing)} missing")
    _require_single(by_kind)
    return Records(by_kind)


def _require_single(by_kind: dict[str, list[tuple[str, ...]]]) -> None:
    for name, records in by_kind.items():
        keys = [fields[: KINDS[name].key] for fields in records]
        if KINDS[name].key is not None and len(set(keys)) < len(keys):
            raise ValueError(f"the survey reports {name} more than once")


@dataclass(slots=True)
class Draft:
    """The facts that are collected so far. A fact about a path or a number holds for every device that has it."""

    nodes: dict[str, Node] = field(default_factory=dict)
    #: (lower, upper): the upper device is built on the lower one.
    edges: dict[tuple[str, str], None] = field(default_factory=dict)
    disks: dict[str, str] = field(default_factory=dict)
    mountpoints: dict[str, dict[str, None]] = field(default_factory=dict)
    uses: dict[str, dict[Use, None]] = field(default_factory=dict)
    signatures: dict[str, dict[Signature, None]] = field(default_factory=dict)
    md_uuids: dict[str, str] = field(default_factory=dict)
    md_members: dict[str, list[str]] = field(default_factory=dict)
    #: By the number of an NVMe controller, and of an sg, bsg or ng node: the block devices to which they lead.
    controllers: dict[str, list[str]] = field(default_factory=dict)
    generics: dict[str, list[str]] = field(default_factory=dict)
    blind: dict[BlindSpot, None] = field(default_factory=dict)

    def use(self, knames: Iterable[str], kind: UseKind, detail: str = "") -> None:
        for kname in knames:
            self.uses.setdefault(kname, {})[Use(kind, safe_text.line(detail))] = None

    def mount(self, knames: Iterable[str], mountpoint: str) -> None:
        for kname in knames:
            self.mountpoints.setdefault(kname, {})[safe_text.line(mountpoint)] = None

    def by_path(self, path: str) -> list[str]:
        return [kname for kname, node in self.nodes.items() if path in (node.path, f"/dev/{kname}")]

    def by_number(self, number: str) -> list[str]:
        return [kname for kname, node in self.nodes.items() if node.device_number == number]


def decimal(major: str, minor: str) -> str:
    """Device number in decimal, from the hexadecimal digits of stat(1) and the probes."""
    return f"{int(major, 16)}:{int(minor, 16)}"


def add(draft: Draft, records: Records) -> None:
    """Add relations to the draft, and the attributes that lsblk omits when there is no udev."""
    attributes: dict[tuple[str, str], list[str]] = {}
    for what in ATTRIBUTES:
        for kname, value in records[what]:
            attributes.setdefault((named(kname), what), []).append(value.strip())
    for kname, number in records["dev"]:
        node = _unlisted(named(kname), number.strip(), attributes)
        if draft.nodes.setdefault(node.kname, node).device_number != node.device_number:
            raise ValueError(f"{node.kname} was replaced while the survey ran")
    for kname, node in draft.nodes.items():
        serials, wwids = (attributes.get((kname, what), ()) for what in ("serial", "wwid"))
        for difference in udev_names.contradictions(node, serials, wwids):
            draft.use([kname], UseKind.MISNAMED, difference)
        draft.nodes[kname] = _completed(node, attributes)
    _relate(draft, records)
    _add_uses(draft, records)


def named(sysfs_name: str) -> str:
    """The kernel's name of a device, from sysfs', which has an exclamation mark for each slash."""
    return sysfs_name.replace("!", "/")


def _relate(draft: Draft, records: Records) -> None:
    edges = [(lower, upper) for lower, upper in records["holder"]]
    edges += [(lower, upper) for upper, lower in records["slave"]]
    edges += [(disk, part) for part, disk in records["disk"]]
    draft.edges.update(dict.fromkeys((named(lower), named(upper)) for lower, upper in edges))
    draft.disks.update((named(part), named(disk)) for part, disk in records["disk"])
    draft.md_uuids.update((named(kname), uuid.strip()) for kname, uuid in records["mduuid"])
    for upper, path in records["loop"]:
        draft.edges.update(dict.fromkeys((lower, named(upper)) for lower in draft.by_path(path)))
    for upper, major, minor in records["over"]:
        lowers = draft.by_number(decimal(major, minor))
        draft.edges.update(dict.fromkeys((lower, named(upper)) for lower in lowers))
    for kname, number in records["controller"]:
        draft.controllers.setdefault(number.strip(), []).append(named(kname))
    for number, kname in records["generic"]:
        draft.generics.setdefault(number.strip(), []).append(named(kname))


def _add_uses(draft: Draft, records: Records) -> None:
    draft.use((named(kname) for (kname,) in records["bcache"]), UseKind.BCACHE)
    for kname, uuid in records["bcachefs"]:
        draft.use([named(kname)], UseKind.BCACHEFS, uuid)
    for kname, uuid in records["btrfs"]:
        draft.use([named(kname)], UseKind.BTRFS, uuid)
    for by, path in records["export"]:
        draft.use(draft.by_path(path), UseKind.EXPORT, EXPORTS[by])
    for by, major, minor in records["exported"]:
        draft.use(draft.by_number(decimal(major, minor)), UseKind.EXPORT, EXPORTS[by])
    for path, number in records["passthru"]:
        # Without a node of that name, only the name is left: nvme0 has nvme0n1, and nvme0c0n1 of a subsystem.
        named_so = [kname for kname in draft.nodes if re.fullmatch(rf"{re.escape(path[5:])}n\d+", kname)]
        known = draft.controllers.get(decimal(*number.split(" ")), []) if number else []
        draft.use({*known, *named_so}, UseKind.EXPORT, f"{EXPORTS['nvmet']}, passthru of {path}")
    for kname, model in records["zoned"]:
        if model.strip() != "none":
            draft.use([named(kname)], UseKind.ZONED, model.strip())


def _unlisted(kname: str, number: str, attributes: Mapping[tuple[str, str], list[str]]) -> Node:
    return Node(
        kname=kname,
        path=f"/dev/{kname}",
        device_number=number,
        type="unknown",
        # sysfs counts 512-byte sectors, whatever the drive's block size
        size_bytes=int(attributes.get((kname, "size"), ["0"])[0]) * 512,
        read_only=attributes.get((kname, "ro")) != ["0"],
    )


def _completed(node: Node, attributes: Mapping[tuple[str, str], list[str]]) -> Node:
    def known(what: str) -> str | None:
        return min(filter(None, attributes.get((node.kname, what), ())), default=None)

    serials = [node.serial, *attributes.get((node.kname, "serial"), ())]
    wwns = [node.wwn, *map(lsblk.wwn, attributes.get((node.kname, "wwid"), ()))]
    return replace(
        node,
        model=node.model or known("model"),
        serial=node.serial or known("serial"),
        wwn=node.wwn or lsblk.wwn(known("wwid")),
        names=frozenset(plain_name(name) for name in (*serials, *wwns) if name),
        firmware=node.firmware or known("firmware"),
        read_only=node.read_only or "1" in attributes.get((node.kname, "ro"), ()),
        queue_limit=int(depth) if (depth := known("depth")) and depth.isdecimal() else None,
        max_link=known("link"),
    )


def topology_of(lsblk_json: str, facts: str, candidates: Iterable[str] = ()) -> Topology:
    """Unite both answers (decoded with ``surrogateescape``); ``ValueError`` if one does not have the expected form.

    All names that drives and other devices report are printable from here on (``qual.safe_text``); paths and kernel
    names stay unchanged, since they are used.
    """
    try:
        return _united(lsblk_json, facts, frozenset(candidates))
    except (KeyError, IndexError, OverflowError) as problem:
        raise ValueError(f"the answer has an unknown shape: {problem!r}") from problem
    except RecursionError:
        raise ValueError("devices are nested too deeply") from None


def _united(lsblk_json: str, facts: str, candidates: frozenset[str]) -> Topology:
    records = parse(facts)
    draft = Draft()
    _add_listed(draft, lsblk.read(lsblk_json))
    add(draft, records)
    _add_mounts(draft, _lines(records, "mounts"))
    _add_claims(draft, records)
    _add_opened(draft, records)
    _add_probes(draft, records)
    if records.text("pidns") not in ("", FIRST_PID_NAMESPACE):
        draft.blind[BlindSpot(Source.OPENERS, CONTAINED)] = None
    for source, why in records["blind"]:
        draft.blind[BlindSpot(Source(source), safe_text.line(why))] = None
    for source, path, why in records["blind_drive"]:
        draft.blind[BlindSpot(Source(source), safe_text.line(why), path)] = None
    silent = {kname for kname, uses in draft.uses.items() if any(use.kind is UseKind.SILENT for use in uses)}
    there = candidates & draft.nodes.keys() - silent
    _require_probed(draft, records, there)
    return _finish(draft, there)


def _require_probed(draft: Draft, records: Records, candidates: frozenset[str]) -> None:
    """Require that every candidate was opened, and that its node in /dev is the device that the kernel calls so."""
    numbers = {path: decimal(major, minor) for path, major, minor in records["number"]}
    opened = {path for path, _ in records["probe"]}
    for kname in sorted(candidates):
        path = f"/dev/{kname}"
        if numbers.get(path) != draft.nodes[kname].device_number:
            raise ValueError(f"{path} is not the device that the kernel calls {kname}")
        if path not in opened:
            raise ValueError(f"{path} could not be probed")


def _lines(records: Records, kind: str) -> list[str]:
    """Lines of a kernel file, which escapes line ends in names; not splitlines: names may contain other separators."""
    return [line for line in records.text(kind).split("\n") if line]


def _add_listed(draft: Draft, listing: lsblk.Listing) -> None:
    draft.nodes.update(listing.nodes)
    draft.edges.update(dict.fromkeys(listing.edges))
    for kname, mountpoint in listing.mountpoints:
        if mountpoint == "[SWAP]":
            draft.use([kname], UseKind.SWAP)
        else:
            draft.mount([kname], mountpoint)


def _add_mounts(draft: Draft, lines: Iterable[str]) -> None:
    """Add mounts of lines ``MAJ:MIN ROOT MOUNTPOINT … - FSTYPE SOURCE``; and by source: btrfs' number is anonymous."""
    for line in lines:
        before, _, after = line.partition(" - ")
        number, _, mountpoint = before.split(" ")[:3]
        fstype, source = after.split(" ")[:2]
        draft.mount(draft.by_number(number), _unescaped(mountpoint))
        for path in source.split(":") if fstype == "bcachefs" else [source]:
            draft.mount(draft.by_path(_unescaped(path)), _unescaped(mountpoint))


def _add_claims(draft: Draft, records: Records) -> None:
    for line in _lines(records, "swaps"):
        draft.use(draft.by_path(_unescaped(line.split()[0])), UseKind.SWAP)
    for name, members in md_members(_lines(records, "mdstat")):
        draft.md_members.setdefault(name, []).extend(members)
        draft.edges.update(dict.fromkeys((member, name) for member in members))
    for line in _lines(records, "zfs"):
        draft.use(draft.by_path(line.strip()), UseKind.ZFS)


def md_members(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the arrays in the lines of /proc/mdstat, each with its members.

    ``md127 : active (auto-read-only) raid1 sdb1[1](F) sda[0]``; ``md5 : inactive sdc[2](S)``
    """
    for line in lines:
        name, colon, rest = line.partition(" : ")
        if colon and name.startswith("md"):  # in every state (active, inactive, broken, …) it has its members
            yield name.strip(), [named(match[1]) for match in re.finditer(r"(\S+)\[\d+\]", rest)]


def _add_opened(draft: Draft, records: Records) -> None:
    hanging = {(pid, number): (int(seconds), int(flying)) for pid, number, seconds, flying in records["hanging"]}
    for pid, _, access, number, name in records["opened"]:
        process = f"{name} (pid {pid})"
        if (pid, number) in hanging:
            seconds, flying = hanging[pid, number]
            requests = f"{flying} request{'' if flying == 1 else 's'} in flight"
            detail = f"a request of {process} to it has been waiting for {seconds} s or longer, {requests}"
            disks = (draft.disks.get(kname, kname) for kname in draft.by_number(number))
            draft.use(disks, UseKind.SILENT, detail)
        elif access == "generic":
            draft.use(draft.generics[number], UseKind.GENERIC, process)
        else:
            draft.use(draft.by_number(number), {"write": UseKind.WRITER, "read": UseKind.READER}[access], process)


def _add_probes(draft: Draft, records: Records) -> None:
    for path, error in records["probe"]:
        if error != "0":
            kind = UseKind.EXCLUSIVE if int(error) == EBUSY else UseKind.UNOPENABLE
            draft.use(draft.by_path(path), kind, "" if kind is UseKind.EXCLUSIVE else os.strerror(int(error)))
    for path, kind_of_reservation, hosts in records["reserved"]:
        if int(kind_of_reservation) or int(hosts):
            draft.use(draft.by_path(path), UseKind.RESERVED, f"type {kind_of_reservation}, registrations: {hosts}")
    for (path,) in records["multiport"]:
        draft.use(draft.by_path(path), UseKind.MULTIPORT)
    for path, used, size in records["allocated"]:
        for kname in draft.by_path(path):
            draft.nodes[kname] = replace(draft.nodes[kname], allocated=int(used) / max(int(size), 1))
    for path, line in records["signature"]:
        kind_of_signature, _, uuid = line.partition(" ")
        signature = Signature(safe_text.line(kind_of_signature), safe_text.line(uuid.strip()))
        for kname in draft.by_path(path):
            draft.signatures.setdefault(kname, {})[signature] = None


def _finish(draft: Draft, candidates: frozenset[str]) -> Topology:
    for member in {name for edge in draft.edges for name in edge} | set(draft.uses):
        if member not in draft.nodes:  # a source refers to it but none describes it: it is added, so that it is refused
            draft.nodes[member] = Node(member, f"/dev/{member}", "", "unknown", 0, read_only=True)
    nodes = {}
    for kname, node in draft.nodes.items():
        upper = [high for low, high in draft.edges if low == kname and high != kname]
        lower = [low for low, high in draft.edges if high == kname and low != kname]
        disk = draft.disks.get(kname)
        nodes[kname] = replace(
            _shown(node),
            signatures=tuple(draft.signatures.get(kname, ())),
            mountpoints=tuple(draft.mountpoints.get(kname, ())),
            uses=tuple(draft.uses.get(kname, ())),
            partition_of=disk,
            partitions=tuple(name for name in upper if draft.disks.get(name) == kname),
            holders=tuple(name for name in upper if draft.disks.get(name) != kname),
            slaves=tuple(name for name in lower if name != disk),
        )
    return Topology(nodes, tuple(_arrays(draft)), candidates, tuple(draft.blind))


def _shown(node: Node) -> Node:
    """Make a drive's own strings printable, only here: identifiers stay exact, other text may be shortened."""
    shown: dict[str, Any] = {name: safe_text.name(raw) for name in EXACT if (raw := getattr(node, name))}
    shown |= {name: safe_text.line(raw) for name in WORDS if (raw := getattr(node, name))}
    return replace(node, **shown)


def _arrays(draft: Draft) -> Iterator[MdArray]:
    for kname in dict.fromkeys([*draft.md_members, *draft.md_uuids]):
        lower = [low for low, high in draft.edges if high == kname and draft.disks.get(kname) != low]
        members = tuple(dict.fromkeys([*draft.md_members.get(kname, ()), *lower]))
        superblocks = [
            plain_uuid(draft.nodes[name].uuid)
            for name in members
            if name in draft.nodes and draft.nodes[name].fstype == "linux_raid_member"
        ]
        # If the members disagree, the array has no UUID.
        known = set(superblocks)
        uuid = plain_uuid(draft.md_uuids.get(kname)) or (known.pop() if len(known) == 1 else None)
        yield MdArray(kname, uuid, members)


def _unescaped(text: str) -> str:
    r"""Undo the escapes of mountinfo and swaps, which write a blank as ``\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
