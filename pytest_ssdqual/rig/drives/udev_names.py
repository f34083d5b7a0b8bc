"""Names of a drive in udev's database that the kernel contradicts; pure.

lsblk prints what udev stored when it last handled an event of the device. If udev is stuck, or its queue is stopped, a
drive that took another one's kernel name still has the name of that one. sysfs has the drive's own names, but not all
of them, and spells some otherwise; only names that are the same in a healthy machine are compared:

- serial numbers of NVMe and virtio drives, which udev takes from sysfs. It replaces what is no letter or digit, and may
  put the model in front.
- WWNs of one kind and length. An NVMe drive with an EUI-64 has an ``eui.`` name for one version of the kernel and a
  ``nvme.`` one for another. A USB bridge makes up a name, and udev asks the drive behind it.

``scripts/fence_check.sh`` does the same where commands are bound to drives.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from pytest_ssdqual.rig.drives import lsblk
from pytest_ssdqual.rig.drives.topology import Node

HAVE_SERIALS = re.compile(r"nvme|vd")
#: WWNs that may be compared, as lsblk spells them; the first digit of an NAA is its kind.
KIND = re.compile(r"0x(?P<naa>[0-9a-f])|(?P<prefix>eui|uuid|nvme)\.")


def contradictions(node: Node, serials: Collection[str], wwids: Collection[str]) -> Iterator[str]:
    """Yield a phrase for each name that lsblk reports for ``node`` and the kernel contradicts.

    ``serials`` and ``wwids`` are those of sysfs.
    """
    if node.serial and HAVE_SERIALS.match(node.kname):
        of_udev = _letters(node.serial)
        of_kernel = [serial for serial in serials if _letters(serial)]
        if of_kernel and not any(_letters(serial) in of_udev for serial in of_kernel):
            yield f"serial {node.serial} in udev's database and {of_kernel[0]} in the kernel"
    if node.wwn and node.transport != "usb":
        wwns = [wwn for wwn in map(lsblk.wwn, wwids) if wwn and _is_comparable(node.wwn, wwn)]
        if wwns and node.wwn.casefold() not in map(str.casefold, wwns):
            yield f"WWN {node.wwn} in udev's database and {wwns[0]} in the kernel"


def _letters(name: str) -> str:
    return re.sub(r"[^0-9a-z]", "", name.casefold())


def _is_comparable(one: str, other: str) -> bool:
    kinds = [KIND.match(name.casefold()) for name in (one, other)]
    if not kinds[0] or not kinds[1] or kinds[0].groups() != kinds[1].groups():
        return False
    return kinds[0]["prefix"] == "nvme" or len(one) == len(other)
