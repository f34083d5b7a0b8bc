"""QMP commands for faults of emulated drives. Pure functions only.

A healthy drive is media → limit → controller. A failing one has QEMU's ``blkdebug`` between media and limit, which
answers requests of some kinds with an error. It is inserted and removed while the drive is in use
(``blockdev-reopen`` can replace a filter's child from QEMU 6.1 on).
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping
from enum import IntFlag, StrEnum

from pytest_ssdqual.lab.drives import Names, throttle_options
from pytest_ssdqual.qual.frozen import frozen


class RequestKind(StrEnum):
    """Kinds of requests, with blkdebug's names."""

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


@frozen
class QmpCommand:
    """One QMP command."""

    name: str
    arguments: Mapping[str, object]


def error_node(names: Names) -> str:
    """Return the name of the node between media and limit while the drive fails requests."""
    return names.media_node.replace("media", "errors")


def failing(names: Names, requests: Collection[RequestKind]) -> tuple[QmpCommand, ...]:
    """Return commands that make these requests fail: on NVMe as a write fault or an unrecovered read (QEMU hw/nvme)."""
    rules = [
        {"event": "none", "iotype": request.value, "errno": errno.EIO, "immediately": False, "once": False}
        for request in sorted(requests)
    ]
    node: dict[str, object] = {
        "driver": "blkdebug",
        "node-name": error_node(names),
        "image": names.media_node,
        "discard": "unmap",
        "inject-error": rules,
    }
    return QmpCommand("blockdev-add", node), _over(names, error_node(names))


def mended(names: Names) -> tuple[QmpCommand, ...]:
    """Return commands that undo ``failing``."""
    return _over(names, names.media_node), QmpCommand("blockdev-del", {"node-name": error_node(names)})


def warned(names: Names, warning: Warned) -> QmpCommand:
    """Return a command that sets the critical warning of the SMART data."""
    value = {"path": f"/machine/peripheral/{names.device}", "property": "smart_critical_warning", "value": int(warning)}
    return QmpCommand("qom-set", value)


def _over(names: Names, node: str) -> QmpCommand:
    """Return a command that puts the drive's limit over another node; options left out become QEMU's defaults."""
    return QmpCommand("blockdev-reopen", {"options": [throttle_options(names, node)]})


def limits(iops: int, write_iops: int | None = None) -> dict[str, int]:
    """Return the value for ``qom-set`` of a throttle group: of all I/Os together, or of reads and of writes.

    0 is no limit. Limits of bandwidth do not change.
    """
    if write_iops is None:
        return {"iops-total": iops, "iops-read": 0, "iops-write": 0}
    return {"iops-total": 0, "iops-read": iops, "iops-write": write_iops}
