"""What is on a drive, and whether its loss was agreed to; pure.

The rule of the module: content is somebody's unless it is proven to be ours, by a UUID that our journals know and that
every source tells alike.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from pytest_ssdqual.rig.topology import Node, Signature, Topology, plain_uuid

#: Signatures that were found on a device.
Content = frozenset[Signature]
MEMBER = "linux_raid_member"


def content(topology: Topology, kname: str) -> Content:
    """The signatures of a device that was probed, at this moment."""
    node = topology.nodes.get(kname)
    return frozenset(node.signatures if node is not None else ())


def foreign(found: Iterable[Signature], ours: Collection[str]) -> list[str]:
    """Of signatures, those that are no superblocks of ``ours`` (UUIDs in any spelling): words for a reader."""
    known = set(filter(None, map(plain_uuid, ours)))
    return sorted(
        f"a signature ({each.kind})" for each in found if each.kind != MEMBER or plain_uuid(each.uuid) not in known
    )


def missing(
    topology: Topology, nodes: Sequence[Node], wipe: Collection[str], ours: Collection[str], *, free: bool
) -> Iterator[str]:
    """The content of a drive (the first of ``nodes``, which are all paths to it) that the user has not given up.

    ``free``: it is not in use, so that consent would help.
    """
    kept = [each for each in nodes if each.serial not in wipe and each.wwn not in wipe]
    signs = {each.kname: tuple(_signs(topology, each, ours)) for each in kept}
    content = list(dict.fromkeys(what for found in signs.values() for what in found))
    # A twin may have another serial, and content that this one does not show.
    names = [each.serial or each.wwn for each in kept if signs[each.kname]]
    if content:
        words = " ".join(dict.fromkeys(option(name) for name in names if name))
        consent = f"; if that may be destroyed, add {words}" if free and words and all(names) else ""
        yield f"carries {', '.join(content)}{consent}"


def _signs(topology: Topology, disk: Node, ours: Collection[str]) -> Iterator[str]:
    """Signatures on a disk and on everything on it, except what our own arrays left."""
    for name in (disk.kname, *topology.below(disk.kname)):
        node = topology.nodes.get(name)
        if node is None:
            continue
        where = "" if node is disk else f" on {node.path}"
        table = None if node.partition_of else node.pttype  # of a partition lsblk tells the table it is listed in
        tables = (table, "PMBR")
        kinds = dict.fromkeys(filter(None, (table, node.fstype, *(each.kind for each in node.signatures))))
        if _is_ours(node, tuple(kinds), ours):
            continue
        yield from (f"a {'partition table' if kind in tables else 'signature'} ({kind}){where}" for kind in kinds)
        if node.partition_of and not kinds:
            yield f"the partition {node.path}"


def _is_ours(node: Node, kinds: Sequence[str], ours: Collection[str]) -> bool:
    """Nothing but superblocks of arrays of ours; udev's database may be stale, so the drive itself has to agree."""
    told = {plain_uuid(node.uuid)} if node.uuid else set()
    told |= {plain_uuid(each.uuid) for each in node.signatures if each.uuid}
    return list(kinds) == [MEMBER] and bool(told) and all(uuid in ours for uuid in told)


def option(serial: str) -> str:
    """The option that gives up what is on the drive of this serial (or WWN), as it must be typed."""
    return shlex.quote(f"--ssd-wipe={typed(serial)}")


def typed(serial: str) -> str:
    """A serial (or WWN) as it is typed behind ``--ssd-wipe=``."""
    return serial.replace(",", "\\,")  # a bare comma parts two serials
