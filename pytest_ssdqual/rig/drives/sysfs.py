"""What the survey's script read in sysfs and asked of loop devices → a topology's draft; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pytest_ssdqual.rig.drives import lsblk
from pytest_ssdqual.rig.drives.draft import Draft, decimal
from pytest_ssdqual.rig.drives.survey_records import Records
from pytest_ssdqual.rig.drives.topology import Node, UseKind, plain_name

#: Who exports drives from inside of the kernel, where no process shows it.
EXPORTS = {"nvmet": "NVMe over Fabrics target", "target": "SCSI target"}


#: Kinds of records that are plain attributes of a device.
ATTRIBUTES = ("dev", "size", "ro", "wwid", "serial", "model", "depth", "firmware")


def add(draft: Draft, records: Records) -> None:
    """Relations, and what lsblk leaves out when there is no udev."""
    attributes: dict[tuple[str, str], list[str]] = {}
    for what in ATTRIBUTES:
        for kname, value in records[what]:
            attributes.setdefault((named(kname), what), []).append(value.strip())
    for kname, number in records["dev"]:
        node = _unlisted(named(kname), number.strip(), attributes)
        if draft.nodes.setdefault(node.kname, node).device_number != node.device_number:
            raise ValueError(f"{node.kname} was replaced while the survey ran")
    for kname, node in draft.nodes.items():
        draft.nodes[kname] = _completed(node, attributes)
    _relate(draft, records)
    _add_uses(draft, records)


def named(sysfs_name: str) -> str:
    """The kernel's name of a device: sysfs has an exclamation mark for each slash."""
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
        # Without a node of that name, the name alone: nvme0 has nvme0n1, and nvme0c0n1 of a subsystem.
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
        # sysfs counts so whatever the drive's blocks are
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
    )
