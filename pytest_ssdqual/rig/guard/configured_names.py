"""Device names in the configuration files of the machine under test: drives meant for another use, mounted or not.

One command reads the files, this module parses them, and a second command resolves the names on the machine. Comments
are ignored. scripts/configured_names.sh lists the files; docs/security.md says what is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives.topology import Node, Topology, plain_uuid
from pytest_ssdqual.rig.machine import scripts
from pytest_ssdqual.rig.machine.machine import Machine, RigError

FILES, RESOLVE = map(scripts.text, ("configured_names.sh", "resolve_names.sh"))

#: Folder of the links that udev makes for each kind of name.
LINKS = {
    "UUID": "/dev/disk/by-uuid/", "LABEL": "/dev/disk/by-label/", "ID": "/dev/disk/by-id/",
    "PARTUUID": "/dev/disk/by-partuuid/", "PARTLABEL": "/dev/disk/by-partlabel/",
}  # fmt: skip
#: ``UUID=…`` or a path below /dev, anywhere in a line: mount options and key files name devices, too.
#: A path continues after a colon (``by-path/pci-0000:00:1f.2``) unless another path follows (``/dev/sda:/dev/sdb``).
NAME = re.compile(
    r"""(?<![\w/])(?:(UUID|LABEL|ID|PARTUUID|PARTLABEL)=("[^"\n]*"|[^\s,:"']+)"""
    r"""|(/dev/(?:[^\s,:;"'<>*?\[]|:(?!/))+))"""
)
#: A glob such as ``/dev/sd*`` does not name one drive.
GLOB = re.compile(r"/dev/[^\s,:;\"'<>]*[*?\[]")
#: DRBD's index of a drive's metadata: ``meta-disk /dev/sdc[0];``, which is no glob.
INDEX = re.compile(r"\[\d+\]")
#: Files with a syntax of their own, as scripts/configured_names.sh lists them. The end of the whole path decides: the
#: unit ``srv-multipath.mount`` has the syntax of units.
LIBVIRT = re.compile(r"/etc/libvirt/(qemu|storage)/[^/]+\.xml\Z")
MULTIPATH = re.compile(r"/etc/multipath(\.conf|/conf\.d/[^/]+\.conf)\Z")
DRBD = re.compile(r"/etc/drbd(\.conf|\.d/[^/]+)\Z")
MDADM = re.compile(r"/etc/(mdadm/)?mdadm\.conf(\.d/[^/]+\.conf)?\Z")
WWID = re.compile(r"""^\s*wwid\s+"?([^"\s]+)"?\s*$""")
#: udev leaves these and everything that is not ASCII unchanged in the names of its links, and escapes the rest.
PLAIN = re.compile(r"[A-Za-z0-9#+.:=@_/\-\x80-\U0010ffff]")


@frozen
class Naming:
    """A name in a file: a path, an md array's UUID, or a WWID."""

    file: str
    #: The name as it is written in the file.
    text: str
    path: str = ""
    #: A UUID in any spelling, in lower case.
    uuid: str = ""
    wwid: str = ""


def names(machine: Machine, topology: Topology) -> dict[str, tuple[Naming, ...]]:
    """Names of the machine's devices in its configuration files, by kernel name of the whole drive.

    ``RigError`` if the answer cannot be parsed.
    """
    done = scripts.answer(machine, FILES, "named")
    try:
        namings = [naming for file, text in _texts(done.stdout) for naming in parse(file, text)]
    except ValueError as problem:
        raise RigError(f"The configuration files of {machine.name} could not be read: {problem}") from problem
    paths = list(dict.fromkeys(naming.path for naming in namings if naming.path))
    devices = dict(zip(paths, _resolved(machine, paths), strict=True)) if paths else {}
    return _by_drive(topology, namings, devices)


def parse(file: str, text: str) -> Iterator[Naming]:
    """The names in one configuration file."""
    if LIBVIRT.search(file):
        yield from _words(file, re.sub(r"<!--.*?(?:-->|\Z)", " ", text, flags=re.DOTALL))
    elif MULTIPATH.search(file):
        yield from _of_multipath(file, text)
    else:
        for line in text.splitlines():
            line = line.strip()
            if DRBD.search(file):
                yield from _words(file, INDEX.sub(" ", line.partition("#")[0]))
            elif MDADM.search(file):
                line = line.partition("#")[0]
                # An indented line continues the one before, so it may belong to an ARRAY as well.
                if not re.match(r"(?i)(device|mailaddr|program|create|homehost|auto|policy)\b", line):
                    yield from _words(file, line)
            elif not line.startswith(("#", ";")):
                yield from _words(file, line)


def _words(file: str, text: str) -> Iterator[Naming]:
    for match in NAME.finditer(text):
        if GLOB.match(text, match.start()):
            continue
        kind, value, path = match.groups()
        written = safe_text.line(match[0], 120)
        if path:
            yield Naming(file, written, path=_unescaped(path))
            continue
        value = _unescaped(value.strip('"'))
        uuid = value.lower() if kind == "UUID" else ""
        yield Naming(file, written, path=LINKS[kind] + _encoded(value) if value else "", uuid=uuid)
    # mdadm's spelling has colons, which end a name above.
    for match in re.finditer(r"(?i)\bUUID=([0-9a-f]{8}(?::[0-9a-f]{8}){3})", text):
        yield Naming(file, safe_text.line(match[0], 120), uuid=match[1].lower())


def _of_multipath(file: str, text: str) -> Iterator[Naming]:
    """The WWIDs in multipath.conf, except those in a blacklist; its ``blacklist_exceptions`` do count."""
    sections: list[str] = []
    previous = ""
    for line in text.splitlines():
        line = re.sub(r"[#!].*", "", line)
        if (match := WWID.match(line)) and "blacklist" not in sections:
            yield Naming(file, f"wwid {safe_text.line(match[1], 100)}", wwid=match[1].lower())
        for word in re.findall(r"[{}]|[\w]+", line):
            if word == "{":
                sections.append(previous)
            elif word == "}":
                del sections[-1:]
            previous = word


def _by_drive(
    topology: Topology, namings: Iterable[Naming], devices: Mapping[str, str]
) -> dict[str, tuple[Naming, ...]]:
    numbers = {node.device_number: node.kname for node in topology.nodes.values() if node.device_number}
    by_drive: dict[str, dict[Naming, None]] = {}
    for naming in namings:
        knames = {numbers[number]} if (number := devices.get(naming.path, "")) in numbers else set[str]()
        knames |= {node.kname for node in topology.nodes.values() if _bears(node, naming)}
        for kname in knames:
            for disk in topology.whole_disks(kname):
                by_drive.setdefault(disk, {})[naming] = None
    return {kname: tuple(namings) for kname, namings in by_drive.items()}


def _bears(node: Node, naming: Naming) -> bool:
    """Return whether a device has the UUID or the WWID of a name."""
    if naming.uuid:
        uuids = {(uuid or "").lower() for uuid in (node.uuid, *(signature.uuid for signature in node.signatures))}
        digits = plain_uuid(naming.uuid)
        return naming.uuid in uuids or (digits is not None and digits in map(plain_uuid, uuids))
    return bool(naming.wwid) and _wwid(naming.wwid) in map(_wwid, (*node.names, node.wwn or ""))


def _wwid(name: str) -> str:
    """A WWID without the prefix for its type: ``0x5000…``, ``naa.5000…`` and multipath's ``35000…`` become equal."""
    name = re.sub(r"^(0x|naa\.|eui\.|t10\.|uuid\.)", "", name.strip().lower())
    name = re.sub(r"[\s_]+", "_", name)
    return name[1:] if re.fullmatch(r"[23]([0-9a-f]{16}|[0-9a-f]{32})", name) else name or "-"


def _texts(answer: bytes) -> Iterator[tuple[str, str]]:
    records = answer.decode("utf-8", "replace").split("\0")
    if records[-2:] != ["end", ""] or len(records) % 2:
        raise ValueError("the answer was cut short")
    for file, text in zip(records[:-2:2], records[1:-2:2], strict=True):
        if not (file.startswith("file /") and text.startswith("text ")):
            raise ValueError(f"a record is {safe_text.line(file, 80)!r}")
        yield safe_text.line(file.removeprefix("file ")), text.removeprefix("text ")


def _resolved(machine: Machine, paths: list[str]) -> list[str]:
    """Device numbers as ``MAJOR:MINOR`` in decimal digits, or "" where a path leads to no block device."""
    done = scripts.answer(machine, RESOLVE, "resolve", *paths)
    answers = done.text.split("\0")
    if answers[-2:] != ["end", ""] or len(answers) != len(paths) + 2:
        raise RigError(
            f"{machine.name} gave an incomplete answer for the {len(paths)} device names in its configuration files"
        )
    return [_number(answer) for answer in answers[:-2]]


def _number(answer: str) -> str:
    number = re.fullmatch(r"([0-9a-f]{1,8}) ([0-9a-f]{1,8})", answer)
    return f"{int(number[1], 16)}:{int(number[2], 16)}" if number else ""


def _unescaped(text: str) -> str:
    r"""A name without fstab's octal escapes (a blank is written ``\040``)."""
    return re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), text).replace("\0", "")


def _encoded(value: str) -> str:
    return "".join(
        character if PLAIN.match(character) else "".join(f"\\x{byte:02x}" for byte in character.encode())
        for character in value
    )
