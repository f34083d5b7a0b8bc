"""What is on a drive, and whether its loss was agreed to; pure.

The rule of the module: content is somebody's unless it is proven to be ours, by a UUID that our journals know and that
every source tells alike, or by a label (``rig.guard.label``). What ``rig.guard.content`` finds without a signature is
told as signatures of kinds of their own (``FOUND``).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from pytest_ssdqual.rig.drives.topology import Node, Signature, Topology, plain_uuid

#: Signatures that were found on a device.
Content = frozenset[Signature]
MEMBER = "linux_raid_member"
#: Kinds that no signature has: samples that are not blank, reads that failed, and names in configuration files (whose
#: ``uuid`` is the file).
DATA, UNREADABLE, NAMED = "data without a signature", "content that cannot be read", "a name"
FOUND = frozenset({DATA, UNREADABLE, NAMED})


def content(topology: Topology, kname: str) -> Content:
    """The signatures of a device that was probed, at this moment."""
    node = topology.nodes.get(kname)
    return frozenset(node.signatures if node is not None else ())


def foreign(found: Iterable[Signature], ours: Collection[str]) -> list[str]:
    """Of signatures, those that are no superblocks of ``ours`` (UUIDs in any spelling): words for a reader."""
    known = set(filter(None, map(plain_uuid, ours)))
    strange = [each for each in found if each.kind != MEMBER or plain_uuid(each.uuid) not in known]
    signed = any(each.kind not in FOUND for each in strange)
    return sorted(_words(each) for each in strange if not (signed and each.kind == DATA))


def _words(sign: Signature) -> str:
    return f"{sign.kind} {sign.detail}".rstrip() if sign.kind in FOUND else f"a signature ({sign.kind})"


def missing(
    topology: Topology, nodes: Sequence[Node], wipe: Collection[str], ours: Collection[str], *, free: bool
) -> Iterator[str]:
    """The content of a drive (the first of ``nodes``, which are all paths to it) that the user has not given up.

    ``free``: it is not in use, so that consent would help.
    """
    kept = [each for each in nodes if each.serial not in wipe and each.wwn not in wipe]
    signs = {each.kname: tuple(signs_on(topology, each, ours)) for each in kept}
    # Of what only another path shows (another namespace of the drive, say) that path is told.
    first = signs.get(nodes[0].kname, ())
    others = [
        what if " on /dev/" in what else f"{what} on {each.path}"
        for each in kept
        if each is not nodes[0]
        for what in signs[each.kname]
        if what not in first
    ]
    content = list(dict.fromkeys((*first, *others)))
    # A twin may have another serial, and content that this one does not show.
    names = [each.serial or each.wwn for each in kept if signs[each.kname]]
    if content:
        words = " ".join(dict.fromkeys(option(name) for name in names if name))
        consent = f"; if that may be destroyed, add {words}" if free and words and all(names) else ""
        yield f"carries {', '.join(content)}{consent}"


def signs_on(topology: Topology, disk: Node, ours: Collection[str]) -> Iterator[str]:
    """Words for what is on a device and on everything on it, except what our own arrays left (32 digits each)."""
    signed = list(_signatures(topology, disk, ours))
    yield from signed
    for name in (disk.kname, *topology.below(disk.kname)):
        for each in topology.nodes[name].signatures if name in topology.nodes else ():
            # That there is data, too, where there is a signature says nothing more.
            if each.kind in FOUND and not (signed and each.kind == DATA):
                yield _words(each) + ("" if name == disk.kname else f" on {topology.path(name)}")


def _signatures(topology: Topology, disk: Node, ours: Collection[str]) -> Iterator[str]:
    for name in (disk.kname, *topology.below(disk.kname)):
        node = topology.nodes.get(name)
        if node is None:
            continue
        where = "" if node is disk else f" on {node.path}"
        table = None if node.partition_of else node.pttype  # of a partition lsblk tells the table it is listed in
        tables = (table, "PMBR")
        probed = [each.kind for each in node.signatures if each.kind not in FOUND]
        kinds = dict.fromkeys(filter(None, (table, node.fstype, *probed)))
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
