"""Risks of a drive that its user may take, and the user's consent to each; pure functions.

Content needs consent unless it is proven to come from an earlier run: by an array UUID that a journal records and on
which every source agrees, or by a label (``rig.guard.label``). What ``rig.guard.content`` finds without a signature is
represented as signatures of separate kinds (``FOUND``). Each risk has a consent of its own (``Risk``), so that a word
given for a second port is none for a file system that is made later.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.serial_number import is_generic
from pytest_ssdqual.rig.drives.topology import Drive, Node, Signature, Topology, Use, UseKind, plain_uuid

#: Signatures that were found on a device.
Content = frozenset[Signature]
MEMBER = "linux_raid_member"
#: Kinds in addition to those of real signatures: samples that are not blank, reads that failed, and names in
#: configuration files (whose ``uuid`` is the file).
DATA, UNREADABLE, NAMED = "data without a signature", "content that cannot be read", "a name"
FOUND = frozenset({DATA, UNREADABLE, NAMED})


class Risk(Enum):
    """What a user may consent to; the value is the option's name after ``--ssd-``."""

    CONTENT = "wipe"
    SHARED = "shared"
    CONFIGURED = "configured"
    UNREADABLE = "unreadable"


#: What a refusal says before the option, and the condition for adding that.
QUESTIONS = {
    Risk.CONTENT: ("carries {}", "if that may be destroyed"),
    Risk.SHARED: ("has {}", "if no other host uses it"),
    Risk.CONFIGURED: ("has {}", "if nothing there needs the drive"),
    Risk.UNREADABLE: ("has {}", "if that may be destroyed unread"),
}
PORT = "a further port, through which another host may use it unseen"
#: Digits of a mark: an accident of equal ones is one in four billion.
MARK_DIGITS = 8


@frozen
class Consent:
    """One consent for one drive, as an option gives it."""

    risk: Risk
    #: Serial number or WWN.
    name: str
    #: Mark of the content that a refusal listed (``_mark``); empty: of any content.
    mark: str = ""

    @classmethod
    def parse(cls, risk: Risk, text: str) -> tuple[Consent, ...]:
        r"""Return the consents of an option's value, as ``options`` writes it: ``\,`` and ``\@`` are part of a name."""
        parts = [part.strip() for part in re.split(r"(?<!\\),", text)]
        return tuple(cls._of(risk, part) for part in parts if part)

    @classmethod
    def _of(cls, risk: Risk, text: str) -> Consent:
        name, mark = text, ""
        if risk is Risk.CONTENT and (match := re.fullmatch(r"(.+)(?<!\\)@([0-9a-f]+)", text)):
            name, mark = match.groups()
        return cls(risk, re.sub(r"\\([,@])", r"\1", name), mark)

    @property
    def value(self) -> str:
        """The consent as it is typed after ``--ssd-wipe=``: separators in a name have a backslash."""
        name = re.sub(r"[,@]", r"\\\g<0>", self.name)
        return f"{name}@{self.mark}" if self.mark else name


def options(consents: Iterable[Consent]) -> str:
    """The options that give these consents, quoted for a shell: one option for each risk."""
    by_risk: dict[Risk, dict[str, None]] = {}
    for consent in consents:
        by_risk.setdefault(consent.risk, {})[consent.value] = None
    return " ".join(shlex.quote(f"--ssd-{risk.value}={','.join(values)}") for risk, values in by_risk.items())


@frozen
class MissingConsent:
    """A risk that the user has not consented to."""

    reason: str
    #: The consents that would be enough; empty if none helps, as for a drive in use.
    consents: tuple[Consent, ...] = ()


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


def is_given(drive: Node | Drive, given: Collection[Consent], risk: Risk, mark: str = "") -> bool:
    """Return whether the user consented, by one of the drive's names, to a risk, and there to content of this mark."""
    return any(
        consent.risk is risk and consent.name in names(drive) and consent.mark in ("", mark) for consent in given
    )


def missing(
    topology: Topology, nodes: Sequence[Node], given: Collection[Consent], known_uuids: Collection[str], *, free: bool
) -> Iterator[MissingConsent]:
    """Each risk of a drive that the user has not consented to.

    ``nodes`` are all paths to the drive. ``free``: the drive is not in use, so the reason names the option to consent.
    ``known_uuids`` are array UUIDs of 32 hexadecimal digits.
    """
    for risk in Risk:
        reasons: dict[str, None] = {}
        consents: list[Consent] = []
        can_consent = free
        for node in nodes:
            mark = _mark(topology, node, known_uuids) if risk is Risk.CONTENT else ""
            if is_given(node, given, risk, mark):
                continue
            details = list(_details(topology, node, risk, known_uuids))
            # What only another path shows, such as another namespace of the drive, is reported with that path.
            where = "" if node is nodes[0] or risk is Risk.SHARED else f" on {node.path}"
            reasons |= dict.fromkeys(
                detail if detail in reasons or " on /dev/" in detail else f"{detail}{where}" for detail in details
            )
            if details and (called := names(node)):
                consents.append(Consent(risk, called[0], mark))
            elif details:
                can_consent = False
        if reasons:
            statement, condition = QUESTIONS[risk]
            offered = tuple(consents) if can_consent else ()
            add = f"; {condition}, add {options(offered)}" if offered else ""
            yield MissingConsent(f"{statement.format(', '.join(reasons))}{_outdated(nodes, given, risk)}{add}", offered)


def _outdated(nodes: Sequence[Node], given: Collection[Consent], risk: Risk) -> str:
    """Words about consents that were given for other content of these paths to a drive."""
    called = {name for node in nodes for name in names(node)}
    others = sorted(each.value for each in given if each.mark and each.risk is risk and each.name in called)
    return f", which is not the content that --ssd-{risk.value}={','.join(others)} was given for" if others else ""


def _details(topology: Topology, node: Node, risk: Risk, known_uuids: Collection[str]) -> Iterator[str]:
    """Descriptions of what makes a risk of one path to a drive."""
    if risk is Risk.SHARED:
        yield from [PORT] * (Use(UseKind.MULTIPORT) in node.uses)
        return
    for found in _found(topology, node, known_uuids):
        if found.risk is risk:
            yield found.words


def _mark(topology: Topology, disk: Node, known_uuids: Collection[str]) -> str:
    """The mark of a drive's content: a digest of its signatures and their UUIDs.

    Content on an array or another device above the drive has none: stopping that changes what is there, so that only a
    consent to any content is enough. Data without a signature have no identity: any of them has the same mark.
    """
    content = [found for found in _found(topology, disk, known_uuids) if found.risk is Risk.CONTENT]
    own = {disk.kname, *disk.partitions}
    if not content or any(found.kname not in own for found in content):
        return ""
    keys = sorted(found.key for found in content)
    return hashlib.sha256("\n".join(keys).encode("utf-8", "surrogateescape")).hexdigest()[:MARK_DIGITS]


@frozen
class _Found:
    """Something on a device that needs consent."""

    kname: str
    risk: Risk
    words: str
    #: What tells it from another content of the kind: the kind and its UUID.
    key: str = ""


RISKS = {DATA: Risk.CONTENT, UNREADABLE: Risk.UNREADABLE, NAMED: Risk.CONFIGURED}


def _found(topology: Topology, disk: Node, known_uuids: Collection[str]) -> Iterator[_Found]:
    """What is on a device and on everything built on it, except remains of ``known_uuids``."""
    nodes = [topology.nodes[name] for name in (disk.kname, *topology.below(disk.kname)) if name in topology.nodes]
    signed = [found for node in nodes for found in _signatures(disk, node, known_uuids)]
    yield from signed
    for node in nodes:
        for signature in node.signatures:
            # Where there is a signature, "data without a signature" adds nothing.
            if signature.kind in FOUND and not (signed and signature.kind == DATA):
                where = "" if node is disk else f" on {node.path}"
                yield _Found(node.kname, RISKS[signature.kind], _words(signature) + where, signature.kind)


def _signatures(disk: Node, node: Node, known_uuids: Collection[str]) -> Iterator[_Found]:
    where = "" if node is disk else f" on {node.path}"
    table = None if node.partition_of else node.pttype  # for a partition, lsblk reports its parent's table
    tables = (table, "PMBR")
    probed = [signature.kind for signature in node.signatures if signature.kind not in FOUND]
    kinds = dict.fromkeys(filter(None, (table, node.fstype, *probed)))
    if _is_own(node, tuple(kinds), known_uuids):
        return
    # Of both sources: udev's database may be stale.
    uuids: dict[str, set[str]] = {}
    for signature in node.signatures:
        uuids.setdefault(signature.kind, set()).add(signature.uuid or "")
    if node.fstype and node.uuid:
        uuids.setdefault(node.fstype, set()).add(node.uuid)
    for kind in kinds:
        what = "partition table" if kind in tables else "signature"
        yield _Found(
            node.kname, Risk.CONTENT, f"a {what} ({kind}){where}", f"{kind} {' '.join(sorted(uuids.get(kind, ())))}"
        )
    if node.partition_of and not kinds:
        yield _Found(node.kname, Risk.CONTENT, f"the partition {node.path}", f"partition {node.size_bytes}")


def _is_own(node: Node, kinds: Sequence[str], known_uuids: Collection[str]) -> bool:
    """Return whether there are only superblocks of ``known_uuids``.

    udev's database may be stale, so the signatures read from the drive must agree with it.
    """
    uuids = {plain_uuid(node.uuid)} if node.uuid else set()
    uuids |= {plain_uuid(signature.uuid) for signature in node.signatures if signature.uuid}
    return list(kinds) == [MEMBER] and bool(uuids) and all(uuid in known_uuids for uuid in uuids)
