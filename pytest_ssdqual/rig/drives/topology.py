"""Block devices as values: what they are, what is built on them, what uses them.

Facts only. ``guard.refusals`` decides whether a fact is a reason to refuse a drive; ``survey`` collects the facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from enum import Enum
from types import MappingProxyType

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.spec.drive_class import DriveClass, classify, is_virtual
from pytest_ssdqual.rig.machine.machine import RigError

#: Type of a drive for smartctl that leaves the choice to smartctl (its default), and that of a drive it cannot open.
AUTO_SMART, NO_SMART = "auto", "none"
#: Families of types of drives that smartctl addresses themselves; all others are of a bridge or a RAID controller.
DIRECT = frozenset({AUTO_SMART, NO_SMART, "ata", "nvme", "sat", "scsi"})
#: Length of a revision in INQUIRY data (SPC); SAT fills it with the end of a SATA drive's firmware revision.
INQUIRY_REVISION = 4


class UseKind(Enum):
    """A use of a device that no device built on it reveals, or another reason not to touch it."""

    SWAP = "swap"
    BTRFS = "btrfs"
    ZFS = "zfs"
    BCACHE = "bcache"
    BCACHEFS = "bcachefs"
    EXPORT = "export"
    WRITER = "writer"
    READER = "reader"
    #: Through a character device (sg, bsg, ng) that bypasses the block device.
    GENERIC = "generic"
    EXCLUSIVE = "exclusive"
    UNOPENABLE = "unopenable"
    #: The drive does not answer: a process that has it open waits for it in the kernel.
    SILENT = "silent"
    #: Another host has registered for it, or reserved it.
    RESERVED = "reserved"
    #: Another host may be connected to it; this is a possibility, not an observed use.
    MULTIPORT = "multiport"
    ZONED = "zoned"
    #: Not a use: udev's database and the kernel have different names for it, so it may not be the drive that it seems.
    MISNAMED = "misnamed"


class Source(Enum):
    """A source of the guard that may be blind on a machine, by its name in ``--ssd-unchecked``."""

    EXPORTS = "exports"
    OPENERS = "openers"
    LAYERS = "layers"
    SIGNATURES = "signatures"
    RESERVATIONS = "reservations"


@frozen
class BlindSpot:
    """A question about the drives that a machine cannot answer."""

    source: Source
    #: Phrase without a full stop.
    why: str
    #: Node of the only drive that it is about; empty: it is about the machine.
    path: str = ""


@frozen
class Use:
    kind: UseKind
    #: The file system's UUID, the process, the export: whatever helps to identify the user.
    detail: str = ""


@frozen
class Signature:
    """A signature that low-level probing found: a file system, a partition table, a superblock."""

    kind: str
    #: In blkid's spelling; empty if there is none.
    uuid: str = ""
    #: Description of content that has no signature (``consent.FOUND``).
    detail: str = field(default="", compare=False)


@frozen
class Node:
    """One block device of any type, by its kernel name."""

    kname: str
    path: str
    #: ``8:0``; decimal, as in /proc/self/mountinfo.
    device_number: str
    #: lsblk's name of the type: disk, part, lvm, crypt, raid5, mpath, loop, rom, …
    type: str
    size_bytes: int
    read_only: bool = False
    model: str | None = None
    serial: str | None = None
    wwn: str | None = None
    vendor: str | None = None
    firmware: str | None = None
    fstype: str | None = None
    pttype: str | None = None
    #: UUID of the file system or RAID superblock on it.
    uuid: str | None = None
    #: Signatures that low-level probing of the device itself found; udev's database may be stale.
    signatures: tuple[Signature, ...] = ()
    #: All serials and WWNs that any source reports, for comparison only: see ``plain_name``.
    names: frozenset[str] = frozenset()
    #: Mount points in any mount namespace of the machine.
    mountpoints: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    #: Kernel name of the disk of which this is a partition.
    partition_of: str | None = None
    #: Devices built on this one other than its own partitions: md, dm, bcache, loop.
    holders: tuple[str, ...] = ()
    #: Devices on which this one is built, other than the disk of which it is a partition.
    slaves: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    logical_block_bytes: int = 512
    physical_block_bytes: int = 512
    #: The kernel's ``minimum_io_size``; 0 if unknown.
    minimum_io_bytes: int = 0
    rotational: bool = False
    transport: str | None = None
    #: I/Os that the drive itself queues (SATA, SAS); None where the host knows no such limit. NVMe has none of
    #: practical relevance: up to 65,535 in each of a queue per CPU.
    queue_limit: int | None = None
    #: Fastest PCIe link that an NVMe drive is capable of, as sysfs spells it: ``16.0 GT/s PCIe``.
    max_link: str | None = None
    #: Share of an NVMe namespace that is allocated, by its own account (NUSE); None if it reports none.
    allocated: float | None = None

    @property
    def is_silent(self) -> bool:
        """True if the drive does not answer: whoever reads from it hangs."""
        return any(use.kind is UseKind.SILENT for use in self.uses)

    @property
    def children(self) -> tuple[str, ...]:
        return (*self.partitions, *self.holders)

    @property
    def parents(self) -> tuple[str, ...]:
        return self.slaves if self.partition_of is None else (self.partition_of, *self.slaves)

    def describe(self) -> str:
        """``/dev/sdb (INTEL SSDSC2BB480G4, serial BTWL…)``."""
        return _described(self)


@frozen
class MdArray:
    """An md array that the kernel knows, running or not."""

    kname: str
    #: 32 hexadecimal digits in lower case, or None if neither sysfs nor a member reports it.
    uuid: str | None
    members: tuple[str, ...]


@frozen
class Topology:
    """All block devices of a machine at one moment."""

    nodes: Mapping[str, Node]
    arrays: tuple[MdArray, ...] = ()
    #: Kernel names of the devices that were also opened and probed; no other may be destroyed.
    candidates: frozenset[str] = frozenset()
    blind: tuple[BlindSpot, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", MappingProxyType(dict(self.nodes)))

    def below(self, kname: str) -> tuple[str, ...]:
        """Kernel names of all devices built on a device, at any depth, nearest first; not itself."""
        return tuple(self._walk(kname, down=True))

    def whole_disks(self, kname: str) -> tuple[str, ...]:
        """The devices at the bottom of a device's chain: itself if nothing is below it."""
        chain = [kname, *self._walk(kname, down=False)]
        return tuple(name for name in chain if name not in self.nodes or not self.nodes[name].parents)

    def twins(self, kname: str) -> tuple[Node, ...]:
        """Other paths to the same drive, and other namespaces of it: formatting one may erase the other.

        Those are devices that share a serial or a WWN with it, directly or through others; a partition has its disk's.
        """
        apart = [node for node in self.nodes.values() if node.type != "part" and node.partition_of is None]
        names, knames = self.nodes[kname].names, {kname}
        while more := {node.kname for node in apart if node.names & names} - knames:
            knames |= more
            names = names.union(*(self.nodes[name].names for name in more))
        own = {kname, *self._walk(kname, down=True), *self._walk(kname, down=False)}
        return tuple(self.nodes[name] for name in sorted(knames - own))

    def path(self, kname: str) -> str:
        return self.nodes[kname].path if kname in self.nodes else f"/dev/{kname}"

    def drive(self, kname: str) -> Drive:
        """The device as a drive; ``KeyError`` if there is no such device."""
        node = self.nodes[kname]
        shared = {each.name for each in fields(Drive)}
        known = {each.name: getattr(node, each.name) for each in fields(Node) if each.name in shared}
        known["names"] = tuple(sorted(node.names.union(*(twin.names for twin in self.twins(kname)))))
        return Drive(**known, revision=node.firmware)

    def _walk(self, kname: str, *, down: bool) -> Iterator[str]:
        visited, queue = {kname}, [kname]
        while queue:
            node = self.nodes.get(queue.pop(0))
            if node is None:
                continue
            for name in node.children if down else node.parents:
                if name not in visited:
                    visited.add(name)
                    queue.append(name)
                    yield name


@frozen
class Drive:
    """A whole drive that may be tested; its identity is its WWN or serial, its path is its current location."""

    path: str
    kname: str
    model: str | None
    serial: str | None
    wwn: str | None
    #: The drive's own firmware revision, once smartctl has identified it; until then as ``revision``.
    firmware: str | None = field(compare=False)
    size_bytes: int
    logical_block_bytes: int
    physical_block_bytes: int
    rotational: bool
    transport: str | None
    read_only: bool = field(default=False)
    minimum_io_bytes: int = field(default=0, compare=False)
    #: See ``Node.queue_limit`` and ``Node.max_link``. The SCSI layer lowers and raises a queue depth under load, so it
    #: does not tell one drive from another.
    queue_limit: int | None = field(default=None, compare=False)
    max_link: str | None = None
    #: The revision that the kernel reports; util-linux before 2.39 has four characters of a SATA drive's eight.
    revision: str | None = None
    #: smartctl's option -d, or ``NO_SMART``.
    smart_type: str = field(default=AUTO_SMART, compare=False)
    #: True if a hypervisor made it, though neither its model nor its name shows that.
    is_emulated: bool = field(default=False, compare=False)
    #: ``Node.names`` of this path and of all others to the same drive, its other namespaces included.
    names: tuple[str, ...] = field(default=(), compare=False)

    @property
    def sysfs_name(self) -> str:
        """The kernel's name as sysfs spells it: ``cciss!c0d0`` for ``cciss/c0d0``."""
        return self.kname.replace("/", "!")

    @property
    def drive_class(self) -> DriveClass | None:
        """The class by which limits for any drive are chosen; None if it has none."""
        return classify(self.model, self.transport, self.max_link)

    @property
    def preferred_write_bytes(self) -> int | None:
        """Size of writes that an NVMe drive prefers (NPWG); None if it states none.

        The kernel's value is a logical block then.
        """
        is_stated = self.transport == "nvme" and self.minimum_io_bytes > self.logical_block_bytes
        return self.minimum_io_bytes if is_stated else None

    @property
    def has_health(self) -> bool:
        """False if the user gave up its health: smartctl does not open it."""
        return self.smart_type != NO_SMART

    @property
    def is_virtual(self) -> bool:
        """Return whether a hypervisor made the drive."""
        return self.is_emulated or is_virtual(self.model, self.transport, self.kname)

    @property
    def is_bridged(self) -> bool:
        """Return whether the kernel's names are not the drive's own, but those of a USB bridge or RAID controller."""
        families = re.findall(r"(?:^|\+)([a-z0-9]+)", self.smart_type)
        return self.transport == "usb" or not DIRECT.issuperset(families)

    @property
    def identity(self) -> str:
        """WWN, else serial; the key of journals. ``RigError`` for a drive that has neither."""
        identity = self.wwn or self.serial
        if not identity:
            raise RigError(f"{self.path} has neither a WWN nor a serial number, so nothing can be recorded about it.")
        return identity

    @property
    def name(self) -> str:
        """Serial number, else identity: the name of the drive in reports."""
        return self.serial or self.identity

    @property
    def all_names(self) -> frozenset[str]:
        """Every name by which any path or namespace of this drive may be known, see ``plain_name``.

        A host without udev shows a drive without its WWN, and each NVMe namespace has a WWN of its own, so two runs may
        know one drive by different identities.
        """
        return frozenset([*self.names, *(plain_name(name) for name in (self.wwn, self.serial) if name)])

    def describe(self) -> str:
        """``/dev/sdb (INTEL SSDSC2BB480G4, serial BTWL…)``."""
        return _described(self)


@frozen
class Match:
    """One block device that matches a pattern of the user."""

    pattern: str
    #: The path to which the pattern expanded; possibly a symbolic link.
    written_path: str
    #: Kernel name of the device at that path, by its device number.
    kname: str


def _described(what: Node | Drive) -> str:
    name = f"WWN {what.wwn}" if what.wwn else "no serial"
    if what.serial:
        name = f"serial {what.serial}"
    return f"{what.path} ({what.model or 'unknown model'}, {name})"


def plain_name(name: str) -> str:
    """A serial or WWN in a common spelling of all sources: udev writes an underscore for one blank or several."""
    return re.sub(r"[\s_]+", "_", name.strip()).casefold()


def is_same_firmware(one: str | None, other: str | None) -> bool:
    """Return whether two firmware revisions may be the same: equal, or one is the other's end in INQUIRY data.

    The latter is all that util-linux before 2.39 has of a SATA drive that smartctl does not identify.
    """
    if not one or not other:
        return (one or None) == (other or None)
    short, whole = sorted((one, other), key=len)
    return short == whole or (len(short) == INQUIRY_REVISION and whole.endswith(short))


def plain_uuid(uuid: str | None) -> str | None:
    """An md UUID in mdadm's (``a:b:c:d``), sysfs' or blkid's spelling as 32 hexadecimal digits; None if it is none."""
    digits = (uuid or "").replace(":", "").replace("-", "").lower()
    return digits if len(digits) == 32 and set(digits) <= set("0123456789abcdef") and set(digits) != {"0"} else None
