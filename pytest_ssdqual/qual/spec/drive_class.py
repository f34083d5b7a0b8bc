"""Classes of drives, by interface: what a limit for any drive may assume of this one."""

from __future__ import annotations

import re
from enum import StrEnum
from fnmatch import fnmatchcase

#: Model strings of drives that a hypervisor or a cloud emulates. Their speed is the host's, so no class of drives
#: describes them. Clouds: Amazon, Google (PersistentDisk, EphemeralDisk, nvme_card), Azure, Oracle, Alibaba;
#: DigitalOcean and Hetzner call theirs Volume.
EMULATED_MODELS = (
    "QEMU*", "SSDQUAL*", "VMware*", "VBOX*", "Virtual*", "BHYVE*", "bhyve*", "XEN*", "Parallels*", "VDISK*",
    "Amazon*", "PersistentDisk*", "EphemeralDisk*", "nvme_card*", "MSFT*NVMe*", "Microsoft*NVMe*", "BlockVolume*",
    "Alibaba*", "Volume",
)  # fmt: skip
#: Kernel names of drives without a model string: virtio_blk, xen_blkfront.
EMULATED_NAMES = re.compile(r"(vd|xvd)[a-z]+", re.ASCII)
_LINK = re.compile(r"(?P<rate>\d+(?:\.\d+)?) GT/s")


class DriveClass(StrEnum):
    """A class of drives, by its name in specs."""

    SATA = "sata"
    SAS = "sas"
    #: NVMe of PCIe 3.0, or of an unknown generation.
    NVME = "nvme"
    NVME_GEN4 = "nvme_gen4"
    #: NVMe of PCIe 5.0 or later.
    NVME_GEN5 = "nvme_gen5"
    EMULATED = "emulated"

    @property
    def label(self) -> str:
        """Name in a sentence: ``NVMe Gen4``."""
        return _LABELS[self]


_LABELS = {
    DriveClass.SATA: "SATA",
    DriveClass.SAS: "SAS",
    DriveClass.NVME: "NVMe",
    DriveClass.NVME_GEN4: "NVMe Gen4",
    DriveClass.NVME_GEN5: "NVMe Gen5",
    DriveClass.EMULATED: "emulated",
}
#: Least transfer rate of a PCIe lane, in GT/s, of each generation that has a class.
_GENERATIONS = ((32.0, DriveClass.NVME_GEN5), (16.0, DriveClass.NVME_GEN4))


def classify(model: str | None, transport: str | None, max_link: str | None) -> DriveClass | None:
    """Return the class of a drive; None for a transport without one (USB, Fibre Channel, unknown).

    ``transport`` is lsblk's, ``max_link`` sysfs' ``max_link_speed`` of the drive: the speed that it is capable of, not
    the one of its slot.
    """
    if is_virtual(model, transport):
        return DriveClass.EMULATED
    if transport in ("sata", "ata"):
        return DriveClass.SATA
    if transport == "sas":
        return DriveClass.SAS
    if transport != "nvme":
        return None
    found = _LINK.match(max_link or "")
    rate = float(found["rate"]) if found else 0.0
    return next((each for least, each in _GENERATIONS if rate >= least), DriveClass.NVME)


def is_virtual(model: str | None, transport: str | None, kname: str = "") -> bool:
    """Return whether a drive is one of a hypervisor, by its model string, its transport (lsblk's) or its name."""
    is_named = any(fnmatchcase((model or "").strip(), pattern) for pattern in EMULATED_MODELS)
    return is_named or transport == "virtio" or EMULATED_NAMES.fullmatch(kname) is not None
