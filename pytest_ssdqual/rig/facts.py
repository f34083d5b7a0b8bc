"""What lsblk and the survey's script print → ``Topology``; pure.

The rule of the module: sources are united, never preferred. A device or a relation between devices exists if any
source says so, because what is missed here may be wiped later.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from pytest_ssdqual.rig.topology import MdArray, Node, Topology, Use, UseKind, plain_uuid

SECTIONS = (
    *("sysfs", "mounts", "swaps", "mdstat", "btrfs", "zfs", "writers"),
    *("numbers", "exclusive", "signatures", "end"),  # of the candidates only
)

EBUSY = 16


@dataclass(slots=True)
class _Draft:
    """What is known so far; the only mutable thing here, gone when the topology is made."""

    nodes: dict[str, Node] = field(default_factory=dict)
    #: (lower, upper): the upper device is built on the lower one.
    edges: dict[tuple[str, str], None] = field(default_factory=dict)
    disks: dict[str, str] = field(default_factory=dict)
    mountpoints: dict[str, dict[str, None]] = field(default_factory=dict)
    uses: dict[str, dict[Use, None]] = field(default_factory=dict)
    signatures: dict[str, dict[str, None]] = field(default_factory=dict)
    md_uuids: dict[str, str] = field(default_factory=dict)
    md_members: dict[str, list[str]] = field(default_factory=dict)
    unchecked: dict[str, None] = field(default_factory=dict)

    def use(self, kname: str | None, kind: UseKind, detail: str = "") -> None:
        if kname is not None:
            self.uses.setdefault(kname, {})[Use(kind, detail)] = None

    def mount(self, kname: str | None, mountpoint: str) -> None:
        if kname is not None:
            self.mountpoints.setdefault(kname, {})[mountpoint] = None

    def by_path(self, path: str) -> str | None:
        for kname, node in self.nodes.items():
            if path in (node.path, f"/dev/{kname}"):
                return kname
        return None

    def by_number(self, number: str) -> str | None:
        return next((kname for kname, node in self.nodes.items() if node.device_number == number), None)


def topology_of(lsblk_json: str, facts: str, candidates: Iterable[str] = ()) -> Topology:
    """Unite both answers; ``ValueError`` or ``KeyError`` if one of them is not what was asked for."""
    candidates = frozenset(candidates)
    sections = _sections(facts)
    draft = _Draft()
    for entry in _entries(json.loads(lsblk_json), "blockdevices"):
        _add_listed(draft, entry, None)
    _add_sysfs(draft, sections["sysfs"])
    _add_mounts(draft, sections["mounts"])
    _add_claims(draft, sections)
    _add_probes(draft, sections)
    for name in ("zfs", "writers", "exclusive", "signatures"):
        for line in sections[name]:
            if line.startswith("unchecked "):
                draft.unchecked[line.removeprefix("unchecked ") + "."] = None
    _require_probed(draft, sections, candidates)
    return _finish(draft, candidates)


def _require_probed(draft: _Draft, sections: Mapping[str, list[str]], candidates: frozenset[str]) -> None:
    """Every candidate was opened, and its node in /dev leads to the device that the kernel calls so."""
    numbers = dict(_path_and_number(line) for line in sections["numbers"])
    opened = {line.rpartition(" ")[0] for line in sections["exclusive"]}
    unprobed = any(line.startswith("unchecked ") for line in sections["exclusive"])
    for kname in sorted(candidates):
        path = f"/dev/{kname}"
        if kname not in draft.nodes or numbers.get(path) != draft.nodes[kname].device_number:
            raise ValueError(f"{path} is not the device that the kernel calls {kname}")
        if not unprobed and path not in opened:
            raise ValueError(f"{path} could not be probed")


def _path_and_number(line: str) -> tuple[str, str]:
    path, major, minor = line.rsplit(" ", 2)
    return path, f"{int(major, 16)}:{int(minor, 16)}"


def _sections(facts: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    name = ""
    for line in facts.split("\n"):  # not splitlines: a process name may hold other separators
        if line.startswith("==") and line[2:] in SECTIONS:
            name = line[2:]
            sections[name] = []
        elif name and line:
            sections[name].append(line)
    missing = [section for section in SECTIONS if section not in sections]
    if missing:
        raise ValueError(f"the survey was cut short, {', '.join(missing)} missing")
    return sections


def _entries(plain: object, name: str) -> Iterator[Mapping[str, object]]:
    entries = plain.get(name, []) if isinstance(plain, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"lsblk's JSON has no list of {name}")
    yield from entries


def _add_listed(draft: _Draft, entry: Mapping[str, object], parent: str | None) -> None:
    kname = _text(entry, "kname") or ""
    if not kname:
        raise ValueError("lsblk lists a device without a kernel name")
    draft.nodes.setdefault(kname, _listed(entry, kname))
    for lower in (parent, _text(entry, "pkname")):
        if lower:
            draft.edges[lower, kname] = None
    mountpoint = _text(entry, "mountpoint")
    if mountpoint == "[SWAP]":
        draft.use(kname, UseKind.SWAP)
    elif mountpoint:
        draft.mount(kname, mountpoint)
    for child in _entries(entry, "children"):
        _add_listed(draft, child, kname)


def _listed(entry: Mapping[str, object], kname: str) -> Node:
    return Node(
        kname=kname,
        path=_text(entry, "path") or f"/dev/{kname}",
        device_number=_text(entry, "maj:min") or "",
        type=_text(entry, "type") or "unknown",
        size_bytes=_number(entry, "size"),
        read_only=_flag(entry, "ro"),
        model=_text(entry, "model"),
        serial=_text(entry, "serial"),
        wwn=_wwn(_text(entry, "wwn")),
        vendor=_text(entry, "vendor"),
        firmware=_text(entry, "rev"),
        fstype=_text(entry, "fstype"),
        pttype=_text(entry, "pttype"),
        uuid=_text(entry, "uuid"),
        logical_block_bytes=_number(entry, "log-sec") or 512,
        physical_block_bytes=_number(entry, "phy-sec") or 512,
        rotational=_flag(entry, "rota"),
        transport=_text(entry, "tran"),
    )


def _add_sysfs(draft: _Draft, lines: Iterable[str]) -> None:
    """Relations, and what lsblk leaves out when there is no udev."""
    attributes: dict[tuple[str, str], str] = {}
    exports = []
    for line in lines:
        what, _, rest = line.partition(" ")
        kname, _, value = rest.partition(" ")
        kname, value = kname.replace("!", "/"), value.strip()
        match what:
            case "holder":
                draft.edges[kname, value.replace("!", "/")] = None
            case "slave":
                draft.edges[value.replace("!", "/"), kname] = None
            case "disk":
                draft.disks[kname] = value.replace("!", "/")
                draft.edges[draft.disks[kname], kname] = None
            case "bcache":
                draft.use(kname, UseKind.BCACHE)
            case "mduuid":
                draft.md_uuids[kname] = value
            case "export":
                exports.append(value)
            case _:
                attributes.setdefault((kname, what), value)
    for (kname, what), number in attributes.items():
        if what == "dev" and kname not in draft.nodes:
            draft.nodes[kname] = _unlisted(kname, number, attributes)
    for kname, node in draft.nodes.items():
        draft.nodes[kname] = _completed(node, attributes)
    for (kname, what), file in attributes.items():
        lower = draft.by_path(file) if what == "loop" else None
        if lower is not None:
            draft.edges[lower, kname] = None
    for path in exports:
        draft.use(draft.by_path(path), UseKind.EXPORT, "NVMe over Fabrics target")


def _unlisted(kname: str, number: str, attributes: Mapping[tuple[str, str], str]) -> Node:
    return Node(
        kname=kname,
        path=f"/dev/{kname}",
        device_number=number,
        type="unknown",
        size_bytes=int(attributes.get((kname, "size"), "0")) * 512,  # sysfs counts so whatever the drive's blocks are
        read_only=attributes.get((kname, "ro")) != "0",
    )


def _completed(node: Node, attributes: Mapping[tuple[str, str], str]) -> Node:
    def known(what: str) -> str | None:
        return attributes.get((node.kname, what)) or None

    return replace(
        node,
        model=node.model or known("model"),
        serial=node.serial or known("serial"),
        wwn=node.wwn or _wwn(known("wwid")),
        firmware=node.firmware or known("firmware"),
        read_only=node.read_only or known("ro") == "1",
        queue_limit=int(depth) if (depth := known("depth")) and depth.isdecimal() else None,
    )


def _add_mounts(draft: _Draft, lines: Iterable[str]) -> None:
    """From ``MAJ:MIN ROOT MOUNTPOINT … - FSTYPE SOURCE …``; the source too, as btrfs shows an anonymous number."""
    for line in lines:
        before, _, after = line.partition(" - ")
        number, _, mountpoint = before.split(" ")[:3]
        fstype, source = after.split(" ")[:2]
        draft.mount(draft.by_number(number), _unescaped(mountpoint))
        for path in source.split(":") if fstype == "bcachefs" else [source]:
            draft.mount(draft.by_path(_unescaped(path)), _unescaped(mountpoint))


def _add_claims(draft: _Draft, sections: Mapping[str, list[str]]) -> None:
    for line in sections["swaps"]:
        draft.use(draft.by_path(_unescaped(line.split()[0])), UseKind.SWAP)
    for line in sections["mdstat"]:
        # "md127 : active (auto-read-only) raid1 sdb1[1](F) sda[0]"; "md5 : inactive sdc[2](S)"
        name, colon, rest = line.partition(" : ")
        if colon and name.startswith("md"):  # active, inactive, broken, …: whatever it is, it has its members
            members = [found[1].replace("!", "/") for found in re.finditer(r"(\S+)\[\d+\]", rest)]
            draft.md_members.setdefault(name.strip(), []).extend(members)
            draft.edges.update(dict.fromkeys((member, name.strip()) for member in members))
    for line in sections["btrfs"]:
        uuid, _, kname = line.removeprefix("/sys/fs/btrfs/").partition("/devices/")
        draft.use(kname.replace("!", "/"), UseKind.BTRFS, uuid)
    for line in sections["zfs"]:
        draft.use(draft.by_path(line.strip()), UseKind.ZFS)


def _add_probes(draft: _Draft, sections: Mapping[str, list[str]]) -> None:
    for line in sections["writers"]:
        if not line.startswith("unchecked "):
            major, minor, pid, name = (line).split(" ", 3)
            _, number = _path_and_number(f"- {major} {minor}")
            draft.use(draft.by_number(number), UseKind.WRITER, f"{name} (pid {pid})")
    for line in sections["exclusive"]:
        path, _, error = line.rpartition(" ")
        if not line.startswith("unchecked ") and error != "0":
            kind = UseKind.EXCLUSIVE if int(error) == EBUSY else UseKind.UNOPENABLE
            draft.use(draft.by_path(path), kind, "" if kind is UseKind.EXCLUSIVE else os.strerror(int(error)))
    for line in sections["signatures"]:
        path, _, kind_of_signature = line.partition(" ")
        kname = draft.by_path(path)
        if not line.startswith("unchecked ") and kname is not None:
            draft.signatures.setdefault(kname, {})[kind_of_signature] = None


def _finish(draft: _Draft, candidates: frozenset[str]) -> Topology:
    for member in {name for edge in draft.edges for name in edge} | set(draft.uses):
        if member not in draft.nodes:  # named by somebody, shown by nobody: kept, so that it is refused
            draft.nodes[member] = Node(member, f"/dev/{member}", "", "unknown", 0, read_only=True)
    nodes = {}
    for kname, node in draft.nodes.items():
        upper = [high for low, high in draft.edges if low == kname and high != kname]
        lower = [low for low, high in draft.edges if high == kname and low != kname]
        disk = draft.disks.get(kname)
        nodes[kname] = replace(
            node,
            signatures=tuple(draft.signatures.get(kname, ())),
            mountpoints=tuple(draft.mountpoints.get(kname, ())),
            uses=tuple(draft.uses.get(kname, ())),
            partition_of=disk,
            partitions=tuple(name for name in upper if draft.disks.get(name) == kname),
            holders=tuple(name for name in upper if draft.disks.get(name) != kname),
            slaves=tuple(name for name in lower if name != disk),
        )
    return Topology(nodes, tuple(_arrays(draft)), candidates, tuple(draft.unchecked))


def _arrays(draft: _Draft) -> Iterator[MdArray]:
    for kname in dict.fromkeys([*draft.md_members, *draft.md_uuids]):
        lower = [low for low, high in draft.edges if high == kname and draft.disks.get(kname) != low]
        members = tuple(dict.fromkeys([*draft.md_members.get(kname, ()), *lower]))
        superblocks = [
            plain_uuid(draft.nodes[name].uuid)
            for name in members
            if name in draft.nodes and draft.nodes[name].fstype == "linux_raid_member"
        ]
        uuid = plain_uuid(draft.md_uuids.get(kname)) or next(filter(None, superblocks), None)
        yield MdArray(kname, uuid, members)


def _unescaped(text: str) -> str:
    r"""Mountinfo and swaps write a blank as ``\040``."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _wwn(text: str | None) -> str | None:
    """One spelling for lsblk's ``0x5000…`` and sysfs' ``naa.5000…``; all zeros is no name."""
    if text is None:
        return None
    wwn = re.sub(r"\s+", " ", "0x" + text.removeprefix("naa.") if text.startswith("naa.") else text)
    return wwn if re.search(r"[1-9a-fA-F]", wwn.removeprefix("0x").removeprefix("eui.")) else None


def _text(entry: Mapping[str, object], name: str) -> str | None:
    value = entry.get(name)
    return str(value).strip() or None if value is not None else None


def _number(entry: Mapping[str, object], name: str) -> int:
    return int(_text(entry, name) or "0")


def _flag(entry: Mapping[str, object], name: str) -> bool:
    """True, 1 or "1": util-linux changed its mind."""
    return (_text(entry, name) or "0").lower() in ("true", "1")
