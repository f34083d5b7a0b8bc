"""Shared paths between bays: controllers, switches and targets through which the drives of one bay slow another's.

One command a bay. Two things are the same only if they have the same name and no other thing can have it: a PCI address
of one running machine (identified by its boot's random id, because machine ids are copied with images), the SAS address
of an expander, the network address of a target. What all drives of a machine share anyway (its CPU, its root complex)
is not reported. ``docs/bays.md`` lists what cannot be detected from a host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.measured.environment import SharedLink
from pytest_ssdqual.qual.names import listed
from pytest_ssdqual.qual.numbers import decimal
from pytest_ssdqual.rig.drives.topology import Drive, plain_name
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError

SCRIPT = scripts.text("shared_paths.sh")
LOOK_S = 60.0

ROOT_BUS = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}", re.ASCII)
FUNCTION = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
EXPANDER = re.compile(r"expander-\d+:\d+", re.ASCII)
SAS_ADDRESS = re.compile(r"0x(?!0{16})[0-9a-f]{16}", re.ASCII)
ATA_PORT = re.compile(r"ata\d+", re.ASCII)
#: A device of USB by the hubs and ports that it is behind: 1-4.2 is behind port 2 of the hub 1-4.
USB = re.compile(r"\d+-\d+(\.\d+)*", re.ASCII)
#: First digits of a function's class (PCI Code and ID Assignment Specification) → its name in messages.
CLASSES = {
    "0x0106": "SATA controller",
    "0x0107": "SAS controller",
    "0x0104": "RAID controller",
    "0x0101": "IDE controller",
    "0x0100": "SCSI controller",
    "0x0c03": "USB controller",
    "0x0c04": "Fibre Channel controller",
}
#: NVMe: the function is the drive itself, which ``same_drives`` checks.
NVME_CLASS = "0x0108"
#: ``16.0 GT/s PCIe``; a function without a link has ``Unknown``.
SPEED = re.compile(r"(\d{1,3}(?:\.\d+)?) GT/s", re.ASCII)
#: A drive of its own slot has one for itself.
ROOT_PORT = "PCIe root port"
#: The most drives of a bay that a sentence names for one shared thing.
NAMED = 2


@frozen
class Shared:
    """Something that drives may have in common; equal exactly if it is the same thing."""

    #: Its kind in messages: "PCIe switch".
    kind: str
    name: str
    #: Boot id of the machine that ``name`` belongs to; empty if the name is unique in the world.
    machine: str = ""
    #: Speed of a lane in GT/s and number of lanes of its PCIe link; None if it has none, or sysfs does not say.
    link: tuple[float, int] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@frozen
class DrivePath:
    """A drive and what it hangs on, nearest first."""

    drive: Drive
    on: tuple[Shared, ...]


def paths(machine: Machine, drives: Sequence[Drive]) -> tuple[DrivePath, ...]:
    """The shared things on the path to each drive; none for drives without a device in sysfs (loop devices).

    ``RigError`` if the machine does not answer.
    """
    names = [drive.sysfs_name for drive in drives]
    done = scripts.answer(machine, SCRIPT, "shared-path", *names, deadline_s=LOOK_S)
    try:
        return parse(done.text, drives)
    except ValueError as error:
        raise RigError(f"{machine.name} gave no usable answer about the paths to its drives: {error}") from error


def parse(text: str, drives: Sequence[Drive]) -> tuple[DrivePath, ...]:
    """Parse the answer of ``SCRIPT``; ``ValueError`` if it is malformed."""
    head, *sections = re.split(r"^==drive ", text, flags=re.MULTILINE)
    if len(sections) != len(drives) or not text.endswith("==end\n"):
        raise ValueError(f"it answers for {len(sections)} of {len(drives)} drives")
    boot = re.fullmatch(r"- boot ([0-9a-f-]{36})\n", head, re.ASCII)
    if not boot:
        raise ValueError("it has no boot_id")
    paths = []
    for drive, section in zip(drives, sections, strict=True):
        name, *lines = section.split("\n")
        if name != drive.sysfs_name:
            raise ValueError(f"it answers for {safe_text.line(name, 40)!r} instead of {drive.kname}")
        paths.append(DrivePath(drive, tuple(_things(lines, boot[1]))))
    return tuple(paths)


def _things(lines: Iterable[str], boot: str) -> Iterator[Shared]:
    """Shared things on all paths to a drive, each path from the drive upwards."""
    place: list[str] = []
    attributes: dict[str, dict[str, list[str]]] = {}
    for line in (*lines, "path "):
        name, _, rest = line.partition(" ")
        if name == "path":
            yield from _upwards(place, attributes, boot)
            place, attributes = rest.split("/"), {}
        else:
            what, _, value = rest.partition(" ")
            attributes.setdefault(name, {}).setdefault(what, []).append(value)


def _upwards(place: Sequence[str], attributes: Mapping[str, Mapping[str, list[str]]], boot: str) -> Iterator[Shared]:
    yield from _of_the_network(attributes)
    *_, root = [-1, *(index for index, name in enumerate(place) if ROOT_BUS.fullmatch(name))]
    # Behind a root bus of its own (Intel's VMD) there are root ports again.
    functions = [name for name in place[root + 1 :] if FUNCTION.fullmatch(name)]
    for index in range(len(place) - 1, -1, -1):
        name = place[index]
        if EXPANDER.fullmatch(name):
            addresses = attributes.get(name, {}).get("sas", ())
            yield from (Shared("SAS expander", each) for each in addresses if SAS_ADDRESS.fullmatch(each))
        elif ATA_PORT.fullmatch(name):
            yield Shared("SATA port multiplier on", name, boot)
        elif USB.fullmatch(name) and any(USB.fullmatch(each) for each in place[index + 1 :]):
            yield Shared("USB hub", name, boot)
    for number in range(len(functions) - 1, -1, -1):
        kind = _kind(number, len(functions), attributes.get(functions[number], {}).get("class", ()))
        if kind:
            yield Shared(kind, functions[number], boot, _link(attributes.get(functions[number], {})))


def _link(attributes: Mapping[str, Sequence[str]]) -> tuple[float, int] | None:
    speed = SPEED.match(next(iter(attributes.get("speed", ())), ""))
    width = decimal(next(iter(attributes.get("width", ())), None))
    return (float(speed[1]), width) if speed and width else None


def links(paths: Iterable[DrivePath]) -> tuple[SharedLink, ...]:
    """Return the PCIe links that several of the drives share, without those of root ports: what is below has them."""
    on: dict[Shared, list[str]] = {}
    for path in paths:
        for thing in dict.fromkeys(path.on):
            on.setdefault(thing, []).append(path.drive.name)
    return tuple(
        SharedLink(str(thing), *thing.link, tuple(drives))
        for thing, drives in on.items()
        if thing.link and len(drives) > 1 and thing.kind != ROOT_PORT
    )


def _kind(number: int, count: int, classes: Sequence[str]) -> str:
    """Return the kind of a PCI function by its place in the chain from the root bus; empty if it cannot be shared.

    A root port; then of each switch on the way the upstream port and a downstream port, which belongs to the one
    drive; at last the controller.
    """
    if number == count - 1:
        what = classes[0][:6] if classes else ""
        return "" if what == NVME_CLASS else CLASSES.get(what, "PCI device")
    if number == 0:
        return ROOT_PORT
    return "PCIe switch" if number % 2 else ""


def _of_the_network(attributes: Mapping[str, Mapping[str, list[str]]]) -> Iterator[Shared]:
    for entry in attributes.values():
        for address in entry.get("iscsi", ()):
            yield Shared("iSCSI target at", safe_text.line(address, 100))
        if entry.get("transport", ["pcie"]) != ["pcie"]:
            for address in re.findall(r"(?:^|,)traddr=([^,]+)", "\n".join(entry.get("address", ()))):
                yield Shared("NVMe-oF target at", safe_text.line(address, 100))


def between(bays: Mapping[str, Sequence[DrivePath]]) -> tuple[str, ...]:
    """A sentence for each thing that drives of several bays share, only for the one that is nearest to the drives."""
    on: dict[Shared, dict[str, list[Drive]]] = {}
    for bay, hanging in bays.items():
        for path in hanging:
            for thing in dict.fromkeys(path.on):
                on.setdefault(thing, {}).setdefault(bay, []).append(path.drive)
    nearest: dict[Shared, None] = {}
    for bay, hanging in bays.items():
        for path in hanging:
            met = {bay}
            for thing in path.on:
                if on[thing].keys() - met:
                    nearest[thing] = None
                    met |= on[thing].keys()
    return tuple(
        f"{listed([_drives(bay, drives) for bay, drives in on[thing].items()])} share {thing}: "
        "I/O on one slows the other"
        for thing in nearest
    )


def same_drives(bays: Mapping[str, Sequence[Drive]]) -> tuple[str, ...]:
    """A sentence for each drive that is in two bays: by its WWN, or by its serial number and model.

    A drive with two ports is seen by two hosts, and namespaces of one NVMe drive have WWNs of their own. Serial numbers
    alone are unique only of one vendor's drives.
    """
    first_by_name: dict[tuple[str, str], tuple[str, Drive]] = {}
    sentences: dict[tuple[str, str, str, str], str] = {}
    for bay, drives in bays.items():
        for drive in drives:
            for key, why in _names(drive):
                first, other = first_by_name.setdefault(key, (bay, drive))
                if first != bay:
                    sentences.setdefault(
                        (first, other.kname, bay, drive.kname),
                        f"{other.describe()} of bay {first} and {drive.describe()} of bay {bay} are the same drive "
                        f"({why}), and a run of one would destroy what the other measures: leave it to one of them",
                    )
    return tuple(sentences.values())


def _names(drive: Drive) -> Iterator[tuple[tuple[str, str], str]]:
    if drive.wwn:
        yield ("wwn", plain_name(drive.wwn)), f"same WWN {drive.wwn}"
    if drive.serial:
        yield (plain_name(drive.model or ""), plain_name(drive.serial)), f"same serial {drive.serial}"


def _drives(bay: str, drives: Sequence[Drive]) -> str:
    named = [f"{drive.kname} (S/N {drive.serial or 'none'})" for drive in drives[:NAMED]]
    rest = [f"{len(drives) - NAMED} more"] if len(drives) > NAMED else []
    return f"{listed([*named, *rest])} of bay {bay}"
