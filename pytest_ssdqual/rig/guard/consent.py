"""Content of a drive, and the user's consent to destroy it; pure functions.

Content needs consent unless it is proven to come from an earlier run: by an array UUID that a journal records and on
which every source agrees, or by a label (``rig.guard.label``). Content that ``rig.guard.content`` finds without a
signature is represented as signatures of separate kinds (``FOUND``).
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from pytest_ssdqual.qual.serial_number import is_generic
from pytest_ssdqual.rig.drives.topology import Drive, Node, Signature, Topology, plain_uuid

#: Signatures that were found on a device.
Content = frozenset[Signature]
MEMBER = "linux_raid_member"
#: Kinds in addition to those of real signatures: samples that are not blank, reads that failed, and names in
#: configuration files (whose ``uuid`` is the file).
DATA, UNREADABLE, NAMED = "data without a signature", "content that cannot be read", "a name"
FOUND = frozenset({DATA, UNREADABLE, NAMED})


def content(topology: Topology, kname: str) -> Content:
    """The signatures that the survey found on a device."""
    node = topology.nodes.get(kname)
    return frozenset(node.signatures if node is not None else ())


def foreign(signatures: Iterable[Signature], known_uuids: Collection[str]) -> list[str]:
    """Descriptions of all signatures except superblocks of arrays with ``known_uuids`` (in any spelling)."""
    known = set(filter(None, map(plain_uuid, known_uuids)))
    foreign_signatures = [
        signature for signature in signatures if signature.kind != MEMBER or plain_uuid(signature.uuid) not in known
    ]
    signed = any(signature.kind not in FOUND for signature in foreign_signatures)
    return sorted(_words(signature) for signature in foreign_signatures if not (signed and signature.kind == DATA))


def _words(sign: Signature) -> str:
    return f"{sign.kind} {sign.detail}".rstrip() if sign.kind in FOUND else f"a signature ({sign.kind})"


def names(drive: Node | Drive) -> tuple[str, ...]:
    """The names by which a user can consent to destroy a drive's content: its serial number, then its WWN.

    A serial number that many drives have is none of them: consent for one drive would be consent for another.
    """
    serial = None if drive.serial and is_generic(drive.serial) else drive.serial
    return tuple(filter(None, (serial, drive.wwn)))


def is_given(drive: Node | Drive, wipe: Collection[str]) -> bool:
    """Return whether the user consented by one of the drive's names."""
    return any(name in wipe for name in names(drive))


def missing(
    topology: Topology, nodes: Sequence[Node], wipe: Collection[str], known_uuids: Collection[str], *, free: bool
) -> Iterator[str]:
    """A reason for content of a drive that the user has not consented to destroy.

    ``nodes`` are all paths to the drive. ``free``: the drive is not in use, so the reason names the option to consent.
    """
    unconsented = [node for node in nodes if not is_given(node, wipe)]
    descriptions = {node.kname: tuple(signs_on(topology, node, known_uuids)) for node in unconsented}
    # Content that only another path shows (such as another namespace of the drive) is reported with that path.
    first = descriptions.get(nodes[0].kname, ())
    others = [
        what if " on /dev/" in what else f"{what} on {node.path}"
        for node in unconsented
        if node is not nodes[0]
        for what in descriptions[node.kname]
        if what not in first
    ]
    content = list(dict.fromkeys((*first, *others)))
    # Another path may have another serial number, and content that this one does not show.
    called = [names(node) for node in unconsented if descriptions[node.kname]]
    if content:
        options = " ".join(dict.fromkeys(option(each[0]) for each in called if each))
        consent = f"; if that may be destroyed, add {options}" if free and options and all(called) else ""
        yield f"carries {', '.join(content)}{consent}"


def signs_on(topology: Topology, disk: Node, known_uuids: Collection[str]) -> Iterator[str]:
    """Descriptions of what is on a device and on everything built on it, except remains of ``known_uuids``.

    ``known_uuids`` are array UUIDs of 32 hexadecimal digits.
    """
    signed = list(_signatures(topology, disk, known_uuids))
    yield from signed
    for name in (disk.kname, *topology.below(disk.kname)):
        for signature in topology.nodes[name].signatures if name in topology.nodes else ():
            # Where there is a signature, "data without a signature" adds nothing.
            if signature.kind in FOUND and not (signed and signature.kind == DATA):
                yield _words(signature) + ("" if name == disk.kname else f" on {topology.path(name)}")


def _signatures(topology: Topology, disk: Node, known_uuids: Collection[str]) -> Iterator[str]:
    for name in (disk.kname, *topology.below(disk.kname)):
        node = topology.nodes.get(name)
        if node is None:
            continue
        where = "" if node is disk else f" on {node.path}"
        table = None if node.partition_of else node.pttype  # for a partition, lsblk reports its parent's table
        tables = (table, "PMBR")
        probed = [signature.kind for signature in node.signatures if signature.kind not in FOUND]
        kinds = dict.fromkeys(filter(None, (table, node.fstype, *probed)))
        if _is_own(node, tuple(kinds), known_uuids):
            continue
        yield from (f"a {'partition table' if kind in tables else 'signature'} ({kind}){where}" for kind in kinds)
        if node.partition_of and not kinds:
            yield f"the partition {node.path}"


def _is_own(node: Node, kinds: Sequence[str], known_uuids: Collection[str]) -> bool:
    """Return whether there are only superblocks of ``known_uuids``.

    udev's database may be stale, so the signatures read from the drive must agree with it.
    """
    uuids = {plain_uuid(node.uuid)} if node.uuid else set()
    uuids |= {plain_uuid(signature.uuid) for signature in node.signatures if signature.uuid}
    return list(kinds) == [MEMBER] and bool(uuids) and all(uuid in known_uuids for uuid in uuids)


def option(serial: str) -> str:
    """The option, as it is typed, that consents to destroy the content of the drive with this serial (or WWN)."""
    return shlex.quote(f"--ssd-wipe={typed(serial)}")


def typed(serial: str) -> str:
    """A serial (or WWN) as it is typed after ``--ssd-wipe=``."""
    return serial.replace(",", "\\,")  # a bare comma separates two serials
