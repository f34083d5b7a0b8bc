"""What lsblk and the survey's script print → ``Topology``; pure.

The rule of the module: sources are united, never preferred. A device or a relation between devices exists if any
source says so, because what is missed here may be wiped later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.drives import lsblk, survey_records, sysfs
from pytest_ssdqual.rig.drives.draft import Draft, decimal
from pytest_ssdqual.rig.drives.survey_records import Records
from pytest_ssdqual.rig.drives.topology import MdArray, Node, Signature, Topology, UseKind, plain_uuid

EBUSY = 16
#: PROC_PID_INIT_INO of include/linux/proc_ns.h: the PID namespace that all others are in.
FIRST_PID_NAMESPACE = "4026531836"
CONTAINED = "the run is in a PID namespace of its own, so processes outside of it that use the drives are not seen"


def topology_of(lsblk_json: str, facts: str, candidates: Iterable[str] = ()) -> Topology:
    """Unite both answers (decoded with ``surrogateescape``); ``ValueError`` if one is not what was asked for.

    What drives and others call themselves is printable from here on (``qual.safe_text``); paths and kernel names are
    as they were, since they are used.
    """
    try:
        return _united(lsblk_json, facts, frozenset(candidates))
    except (KeyError, IndexError, OverflowError) as problem:
        raise ValueError(f"the answer has an unknown shape: {problem!r}") from problem
    except RecursionError:
        raise ValueError("devices are nested too deeply") from None


def _united(lsblk_json: str, facts: str, candidates: frozenset[str]) -> Topology:
    found = survey_records.parse(facts)
    draft = Draft()
    _add_listed(draft, lsblk.read(lsblk_json))
    sysfs.add(draft, found)
    _add_mounts(draft, _lines(found, "mounts"))
    _add_claims(draft, found)
    _add_opened(draft, found)
    _add_probes(draft, found)
    if found.text("pidns") not in ("", FIRST_PID_NAMESPACE):
        draft.unchecked[f"{CONTAINED}."] = None
    for (sentence,) in (*found["unchecked"], *found["unprobed"]):
        draft.unchecked[f"{safe_text.line(sentence)}."] = None
    _require_probed(draft, found, candidates)
    return _finish(draft, candidates)


def _require_probed(draft: Draft, found: Records, candidates: frozenset[str]) -> None:
    """Every candidate was opened, and its node in /dev leads to the device that the kernel calls so."""
    numbers = {path: decimal(major, minor) for path, major, minor in found["number"]}
    opened = {path for path, _ in found["probe"]}
    for kname in sorted(candidates):
        path = f"/dev/{kname}"
        if kname not in draft.nodes or numbers.get(path) != draft.nodes[kname].device_number:
            raise ValueError(f"{path} is not the device that the kernel calls {kname}")
        if not found["unprobed"] and path not in opened:
            raise ValueError(f"{path} could not be probed")


def _lines(found: Records, kind: str) -> list[str]:
    """Of a file of the kernel's, which escapes the line ends in names; not splitlines: others may be in them."""
    return [line for line in found.text(kind).split("\n") if line]


def _add_listed(draft: Draft, listing: lsblk.Listing) -> None:
    draft.nodes.update(listing.nodes)
    draft.edges.update(dict.fromkeys(listing.edges))
    for kname, mountpoint in listing.mountpoints:
        if mountpoint == "[SWAP]":
            draft.use([kname], UseKind.SWAP)
        else:
            draft.mount([kname], mountpoint)


def _add_mounts(draft: Draft, lines: Iterable[str]) -> None:
    """From ``MAJ:MIN ROOT MOUNTPOINT … - FSTYPE SOURCE …``; the source too, as btrfs shows an anonymous number."""
    for line in lines:
        before, _, after = line.partition(" - ")
        number, _, mountpoint = before.split(" ")[:3]
        fstype, source = after.split(" ")[:2]
        draft.mount(draft.by_number(number), _unescaped(mountpoint))
        for path in source.split(":") if fstype == "bcachefs" else [source]:
            draft.mount(draft.by_path(_unescaped(path)), _unescaped(mountpoint))


def _add_claims(draft: Draft, found: Records) -> None:
    for line in _lines(found, "swaps"):
        draft.use(draft.by_path(_unescaped(line.split()[0])), UseKind.SWAP)
    for line in _lines(found, "mdstat"):
        # "md127 : active (auto-read-only) raid1 sdb1[1](F) sda[0]"; "md5 : inactive sdc[2](S)"
        name, colon, rest = line.partition(" : ")
        if colon and name.startswith("md"):  # active, inactive, broken, …: whatever it is, it has its members
            members = [sysfs.named(match[1]) for match in re.finditer(r"(\S+)\[\d+\]", rest)]
            draft.md_members.setdefault(name.strip(), []).extend(members)
            draft.edges.update(dict.fromkeys((member, name.strip()) for member in members))
    for line in _lines(found, "zfs"):
        draft.use(draft.by_path(line.strip()), UseKind.ZFS)


def _add_opened(draft: Draft, found: Records) -> None:
    for pid, _, access, number, name in found["opened"]:
        process = f"{name} (pid {pid})"
        if access == "generic":
            draft.use(draft.generics[number], UseKind.GENERIC, process)
        else:
            draft.use(draft.by_number(number), {"write": UseKind.WRITER, "read": UseKind.READER}[access], process)


def _add_probes(draft: Draft, found: Records) -> None:
    for path, error in found["probe"]:
        if error != "0":
            kind = UseKind.EXCLUSIVE if int(error) == EBUSY else UseKind.UNOPENABLE
            draft.use(draft.by_path(path), kind, "" if kind is UseKind.EXCLUSIVE else os.strerror(int(error)))
    for path, kind_of_reservation, hosts in found["reserved"]:
        if int(kind_of_reservation) or int(hosts):
            draft.use(draft.by_path(path), UseKind.RESERVED, f"type {kind_of_reservation}, registrations: {hosts}")
    for (path,) in found["multiport"]:
        draft.use(draft.by_path(path), UseKind.MULTIPORT)
    for path, line in found["signature"]:
        kind_of_signature, _, uuid = line.partition(" ")
        signature = Signature(safe_text.line(kind_of_signature), safe_text.line(uuid.strip()))
        for kname in draft.by_path(path):
            draft.signatures.setdefault(kname, {})[signature] = None


def _finish(draft: Draft, candidates: frozenset[str]) -> Topology:
    for member in {name for edge in draft.edges for name in edge} | set(draft.uses):
        if member not in draft.nodes:  # named by somebody, shown by nobody: kept, so that it is refused
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
    return Topology(nodes, tuple(_arrays(draft)), candidates, tuple(draft.unchecked))


def _shown(node: Node) -> Node:
    """The one place where a drive's own words become names: what tells it apart stays exact, the rest is words."""

    def exact(raw: str | None) -> str | None:
        return safe_text.name(raw) if raw else None

    def words(raw: str | None) -> str | None:
        return safe_text.line(raw) if raw else None

    return replace(
        node,
        type=safe_text.line(node.type),
        model=exact(node.model),
        serial=exact(node.serial),
        wwn=exact(node.wwn),
        vendor=exact(node.vendor),
        firmware=exact(node.firmware),
        fstype=words(node.fstype),
        pttype=words(node.pttype),
        uuid=words(node.uuid),
        transport=words(node.transport),
    )


def _arrays(draft: Draft) -> Iterator[MdArray]:
    for kname in dict.fromkeys([*draft.md_members, *draft.md_uuids]):
        lower = [low for low, high in draft.edges if high == kname and draft.disks.get(kname) != low]
        members = tuple(dict.fromkeys([*draft.md_members.get(kname, ()), *lower]))
        superblocks = [
            plain_uuid(draft.nodes[name].uuid)
            for name in members
            if name in draft.nodes and draft.nodes[name].fstype == "linux_raid_member"
        ]
        # Members that disagree make it nobody's.
        known = set(superblocks)
        uuid = plain_uuid(draft.md_uuids.get(kname)) or (known.pop() if len(known) == 1 else None)
        yield MdArray(kname, uuid, members)


def _unescaped(text: str) -> str:
    r"""Mountinfo and swaps write a blank as ``\040``."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
