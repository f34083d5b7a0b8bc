"""What can be wrong with an emulated drive: values → QMP commands. Pure functions only.

A healthy drive is media → limit → controller. A failing one has QEMU's ``blkdebug`` between media and limit, which
answers requests of some kinds with an error; it is put in and taken out while the drive is in use
(``blockdev-reopen`` can replace a filter's child from QEMU 6.1 on).
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntFlag, StrEnum

from pytest_ssdqual.lab.drives import Names, throttle_options


class RequestKind(StrEnum):
    """Kinds of requests, by blkdebug's names for them."""

    READ = "read"
    WRITE = "write"
    ZEROES = "write-zeroes"
    DISCARD = "discard"


EVERYTHING = frozenset(RequestKind)
WRITES = EVERYTHING - {RequestKind.READ}


class Warned(IntFlag):
    """NVMe's critical warnings, by their bits (NVM Express base specification, SMART / Health Information)."""

    NONE = 0
    READ_ONLY = 8


@dataclass(frozen=True, slots=True)
class QmpCommand:
    """One QMP command."""

    name: str
    arguments: Mapping[str, object]


def failing(names: Names, requests: Collection[RequestKind]) -> tuple[QmpCommand, ...]:
    """From now on these requests end in an error: of NVMe a write fault, or an unrecovered read (QEMU hw/nvme)."""
    rules = [
        {"event": "none", "iotype": request.value, "errno": errno.EIO, "immediately": False, "once": False}
        for request in sorted(requests)
    ]
    node: dict[str, object] = {
        "driver": "blkdebug",
        "node-name": names.error_node,
        "image": names.media_node,
        "discard": "unmap",
        "inject-error": rules,
    }
    return QmpCommand("blockdev-add", node), _over(names, names.error_node)


def mended(names: Names) -> tuple[QmpCommand, ...]:
    """The opposite of ``failing``."""
    return _over(names, names.media_node), QmpCommand("blockdev-del", {"node-name": names.error_node})


def warned(names: Names, warning: Warned) -> QmpCommand:
    """What SMART data say from now on."""
    value = {"path": names.device_path, "property": "smart_critical_warning", "value": int(warning)}
    return QmpCommand("qom-set", value)


def _over(names: Names, node: str) -> QmpCommand:
    """The drive's limit over another node; whatever is not said again would become QEMU's default."""
    return QmpCommand("blockdev-reopen", {"options": [throttle_options(names, node)]})
