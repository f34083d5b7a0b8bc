"""A topology while it is put together out of many sources, each of which may know only a part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.drives.topology import Node, Signature, Use, UseKind


@dataclass(slots=True)
class Draft:
    """What is known so far. What is told of a path or a number holds for every device that has it."""

    nodes: dict[str, Node] = field(default_factory=dict)
    #: (lower, upper): the upper device is built on the lower one.
    edges: dict[tuple[str, str], None] = field(default_factory=dict)
    disks: dict[str, str] = field(default_factory=dict)
    mountpoints: dict[str, dict[str, None]] = field(default_factory=dict)
    uses: dict[str, dict[Use, None]] = field(default_factory=dict)
    signatures: dict[str, dict[Signature, None]] = field(default_factory=dict)
    md_uuids: dict[str, str] = field(default_factory=dict)
    md_members: dict[str, list[str]] = field(default_factory=dict)
    #: Of NVMe controllers (number) and of sg, bsg and ng nodes (number): the block devices that they lead to.
    controllers: dict[str, list[str]] = field(default_factory=dict)
    generics: dict[str, list[str]] = field(default_factory=dict)
    unchecked: dict[str, None] = field(default_factory=dict)

    def use(self, knames: Iterable[str], kind: UseKind, detail: str = "") -> None:
        for kname in knames:
            self.uses.setdefault(kname, {})[Use(kind, safe_text.line(detail))] = None

    def mount(self, knames: Iterable[str], mountpoint: str) -> None:
        for kname in knames:
            self.mountpoints.setdefault(kname, {})[safe_text.line(mountpoint)] = None

    def by_path(self, path: str) -> list[str]:
        return [kname for kname, node in self.nodes.items() if path in (node.path, f"/dev/{kname}")]

    def by_number(self, number: str) -> list[str]:
        return [kname for kname, node in self.nodes.items() if node.device_number == number]


def decimal(major: str, minor: str) -> str:
    """The number of a device, which stat(1) and the probes write in hexadecimal digits."""
    return f"{int(major, 16)}:{int(minor, 16)}"
