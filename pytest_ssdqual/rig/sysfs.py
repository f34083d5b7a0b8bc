"""What the survey's script read in sysfs and asked of loop devices → a topology's draft; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_ssdqual.rig import lsblk
from pytest_ssdqual.rig.draft import Draft, decimal
from pytest_ssdqual.rig.topology import Node, UseKind, plain_name

#: Who exports drives from inside of the kernel, where no process shows it.
EXPORTS = {"nvmet": "NVMe over Fabrics target", "target": "SCSI target"}


def add(draft: Draft, lines: Iterable[str]) -> None:
    """Relations, and what lsblk leaves out when there is no udev."""
    attributes: dict[tuple[str, str], list[str]] = {}
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
            case "mduuid":
                draft.md_uuids[kname] = value
            case _:
                attributes.setdefault((kname, what), []).append(value)
    for (kname, what), (number, *_) in attributes.items():
        if what != "dev":
            continue
        if draft.nodes.setdefault(kname, _unlisted(kname, number, attributes)).device_number != number:
            raise ValueError(f"{kname} was replaced while it was looked at")
    for kname, node in draft.nodes.items():
        draft.nodes[kname] = _completed(node, attributes)
    for (kname, what), values in attributes.items():
        for value in values:
            _relate(draft, kname, what, value)


def _relate(draft: Draft, kname: str, what: str, value: str) -> None:
    """What is known by a path or a number, when all devices are."""
    match what:
        case "loop":
            draft.edges.update(dict.fromkeys((lower, kname) for lower in draft.by_path(value)))
        case "over":
            draft.edges.update(dict.fromkeys((lower, kname) for lower in draft.by_number(decimal(value))))
        case "bcache":
            draft.use([kname], UseKind.BCACHE)
        case "bcachefs":
            draft.use([kname], UseKind.BCACHEFS, value)
        case "export":
            draft.use(draft.by_path(value), UseKind.EXPORT, EXPORTS[kname])
        case "exported":
            draft.use(draft.by_number(decimal(value)), UseKind.EXPORT, EXPORTS[kname])
        case _:
            pass


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
