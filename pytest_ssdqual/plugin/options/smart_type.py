"""``--ssd-smart-type``: smartctl's types of drives (its option -d), of all drives or by pattern of paths."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.rig.drives.topology import AUTO_SMART, NO_SMART

#: First words of the types of smartctl(8), up to 7.5, that only read. Left out are ``test``, which identifies no drive,
#: and those whose documentation warns of writes or damage: intelliprop, jmb39x, jms56x, usbcypress; smartctl would
#: send these before the guard has passed a drive.
FAMILIES = (
    "3ware", "aacraid", "areca", "ata", "cciss", "hpt", "marvell", "megaraid", "nvme", "sat", "scsi", "sntasmedia",
    "sntjmicron", "sntrealtek", "sssraid", "usbjmicron", "usbprolific", "usbsunplus",
)  # fmt: skip
UNSAFE = ("intelliprop", "jmb39x", "jms56x", "usbcypress")
TYPE = re.compile(r"(?P<family>[a-z0-9]+)(-q|#)?(?P<where>([,/][A-Za-z0-9]{1,10}){0,4})", re.ASCII)
EXAMPLES = "for example sat, scsi, nvme or megaraid,4"


@frozen
class SmartType:
    """The type of the drives at the paths that a pattern matches; without a pattern of all others."""

    type: str
    pattern: str = ""


def parse(texts: Iterable[str]) -> tuple[SmartType, ...]:
    """Parse values ``TYPE`` and ``PATTERN=TYPE``; ``ValueError`` for a wrong type, and for a pattern given twice."""
    found: dict[str, SmartType] = {}
    for text in texts:
        pattern, _, name = text.strip().rpartition("=")
        if pattern and not pattern.startswith("/"):
            raise ValueError(f"{pattern!r} is not a pattern of paths; write for example '/dev/sd[b-e]={name or 'sat'}'")
        if pattern in found:
            raise ValueError(f"gives a second type for {pattern or 'all drives'}")
        found[pattern] = SmartType(_type(name), pattern)
    return tuple(found.values())


def _type(name: str) -> str:
    """Return the type; ``ValueError`` unless it is one that smartctl knows and that only reads."""
    if name in (AUTO_SMART, NO_SMART):
        return name
    for part in name.split("+"):
        match = TYPE.fullmatch(part)
        family = match["family"] if match else ""
        if family in UNSAFE or (match and family == "usbjmicron" and ",x" in match["where"]):
            raise ValueError(f"smartctl's type {name!r} may write to the drive; {NO_SMART} runs without its health")
        if family not in FAMILIES:
            raise ValueError(
                f"{name!r} is no type of smartctl's option -d; write {EXAMPLES} (`smartctl -h` lists them), or "
                f"{NO_SMART} for drives that smartctl cannot open"
            )
    return name
