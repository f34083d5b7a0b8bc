"""What lsblk lists → its devices; pure. From version 2.34 on; versions spell numbers and flags differently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_ssdqual.qual.strict_json import read_json
from pytest_ssdqual.rig.drives.topology import Node

#: Columns of util-linux 2.34 and later. MOUNTPOINTS came with 2.37 and is not requested: mounts come from mountinfo,
#: for all mount namespaces, where lsblk reports only its own.
COLUMNS = (
    "NAME,KNAME,PATH,MAJ:MIN,TYPE,SIZE,RO,MODEL,SERIAL,WWN,VENDOR,REV,FSTYPE,PTTYPE,UUID,MOUNTPOINT,PKNAME,"
    "LOG-SEC,PHY-SEC,MIN-IO,ROTA,TRAN,HOTPLUG"
)

#: ``--all``: a drive of size zero must be found to be refused.
ARGV = ("lsblk", "--all", "--json", "--bytes", "--output", COLUMNS)


@dataclass(slots=True)
class Listing:
    """All devices that lsblk listed."""

    nodes: dict[str, Node] = field(default_factory=dict)
    #: (lower, upper): the upper device is built on the lower one, or a partition of it.
    edges: list[tuple[str, str]] = field(default_factory=list)
    #: Kernel name and mount point; ``[SWAP]`` for swap space.
    mountpoints: list[tuple[str, str]] = field(default_factory=list)


def read(text: str) -> Listing:
    """Parse lsblk's answer; ``ValueError`` if it has another form, or contradicts itself about a device."""
    listing = Listing()
    for entry in _entries(read_json(text), "blockdevices"):
        _add(listing, entry, None)
    return listing


def wwn(text: str | None) -> str | None:
    """One spelling for lsblk's ``0x5000…`` and sysfs' ``naa.5000…``; None if it is all zeros."""
    if text is None:
        return None
    plain = re.sub(r"\s+", " ", "0x" + text.removeprefix("naa.") if text.startswith("naa.") else text)
    return plain if re.search(r"[1-9a-fA-F]", plain.removeprefix("0x").removeprefix("eui.")) else None


def _entries(plain: object, name: str) -> Iterator[Mapping[str, object]]:
    entries = plain.get(name, []) if isinstance(plain, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"lsblk's JSON has no list of {name}")
    yield from entries


def _add(listing: Listing, entry: Mapping[str, object], parent: str | None) -> None:
    kname = _text(entry, "kname") or ""
    if not kname:
        raise ValueError("lsblk lists a device without a kernel name")
    node = _node(entry, kname)
    if listing.nodes.setdefault(kname, node) != node:  # lsblk lists a device twice if it is built on two others
        raise ValueError(f"lsblk reports contradictory values for {kname}")
    listing.edges += [(lower, kname) for lower in (parent, _text(entry, "pkname")) if lower]
    if mountpoint := _text(entry, "mountpoint"):
        listing.mountpoints.append((kname, mountpoint))
    for child in _entries(entry, "children"):
        _add(listing, child, kname)


def _node(entry: Mapping[str, object], kname: str) -> Node:
    return Node(
        kname=kname,
        path=_text(entry, "path") or f"/dev/{kname}",
        device_number=_text(entry, "maj:min") or "",
        type=_text(entry, "type") or "unknown",
        size_bytes=_number(entry, "size"),
        read_only=_flag(entry, "ro"),
        model=_text(entry, "model"),
        serial=_text(entry, "serial"),
        wwn=wwn(_text(entry, "wwn")),
        vendor=_text(entry, "vendor"),
        firmware=_text(entry, "rev"),
        fstype=_text(entry, "fstype"),
        pttype=_text(entry, "pttype"),
        uuid=_text(entry, "uuid"),
        logical_block_bytes=_number(entry, "log-sec") or 512,
        physical_block_bytes=_number(entry, "phy-sec") or 512,
        minimum_io_bytes=_number(entry, "min-io"),
        rotational=_flag(entry, "rota"),
        transport=_text(entry, "tran"),
    )


def _text(entry: Mapping[str, object], name: str) -> str | None:
    value = entry.get(name)
    return str(value).strip() or None if value is not None else None


def _number(entry: Mapping[str, object], name: str) -> int:
    number = int(_text(entry, name) or "0")
    if number < 0:
        raise ValueError(f"lsblk's {name} is {number}")
    return number


def _flag(entry: Mapping[str, object], name: str) -> bool:
    """A flag: true, 1 or "1", depending on util-linux' version."""
    return (_text(entry, name) or "0").lower() in ("true", "1")
