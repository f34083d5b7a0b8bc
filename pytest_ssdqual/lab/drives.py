"""Emulated drives: scale models whose speed is set, so that what a test must measure is known exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

#: A machine of this type has 29 free slots; 24 is what one drive shelf holds.
MAX_DRIVES = 24


#: The host bus adapter of drives on ``Bus.SCSI``, and the first of their WWNs (NAA 5).
ADAPTER, SCSI_WWN = "hba", 0x5000C500A1B20000


class UnknownDrive(LookupError):
    """No emulated drive has this serial number."""


class Bus(StrEnum):
    """How the drives are attached."""

    #: Each is a controller of its own, /dev/nvme0n1 and so on.
    NVME = "nvme"
    #: Behind one host bus adapter, /dev/sda and so on; they call themselves SSDs.
    SCSI = "scsi"


@dataclass(frozen=True, slots=True)
class ScaleModel:
    """One emulated drive: a cap on its I/Os per second, and how long each of them takes.

    Without a latency every I/O is answered at once until the cap is reached, by any queue depth. With one, I/Os take
    that long whatever else is outstanding, so rates grow with the depth up to the knee at ``iops`` × ``latency_ns``
    outstanding I/Os: a drive of known parallelism. Such a drive keeps no data (it reads as zeros), so it can only be
    measured by itself: md would not find its own superblock again.
    """

    serial: str
    size_bytes: int = 256 << 20
    #: Reads and writes together, of any size.
    iops: int = 300
    #: 0: a drive that answers at once and keeps its data.
    latency_ns: int = 0
    bus: Bus = Bus.NVME

    #: Fixed in QEMU's NVMe controller; the data sheet of the scale model is found by it.
    MODEL = "QEMU NVMe Ctrl"
    #: What a drive on ``Bus.SCSI`` calls itself, at most 8 and 16 characters.
    VENDOR, PRODUCT = "SSDQUAL", "SM300"


@dataclass(frozen=True, slots=True)
class Names:
    """How QEMU knows the parts of the drive at one position."""

    position: int

    @property
    def media_node(self) -> str:
        return f"media{self.position}"

    @property
    def error_node(self) -> str:
        """Between media and limit while the drive fails requests."""
        return f"errors{self.position}"

    @property
    def throttle_node(self) -> str:
        return f"drive{self.position}"

    @property
    def limit(self) -> str:
        return f"limit{self.position}"

    @property
    def port(self) -> str:
        return f"port{self.position}"

    @property
    def device(self) -> str:
        return f"ssd{self.position}"

    @property
    def limit_path(self) -> str:
        return f"/objects/{self.limit}"

    @property
    def device_path(self) -> str:
        return f"/machine/peripheral/{self.device}"


def check_count(count: int) -> int:
    """The count, if so many drives can be emulated; ``ValueError`` with a sentence for the user otherwise."""
    if not 1 <= count <= MAX_DRIVES:
        raise ValueError(f"the lab emulates 1 to {MAX_DRIVES} drives, not {count}")
    return count


def shelf(
    count: int,
    *,
    size_bytes: int = 256 << 20,
    iops: int = 300,
    latency_ns: int = 0,
    first: int = 1,
    bus: Bus = Bus.NVME,
) -> tuple[ScaleModel, ...]:
    """Equal drives with the serial numbers SSDQ0001 (``first``), SSDQ0002, …; ``ValueError`` if there cannot be so
    many.
    """
    numbers = range(first, first + check_count(count))
    return tuple(ScaleModel(f"SSDQ{number:04}", size_bytes, iops, latency_ns, bus) for number in numbers)


def position_of(serial: str, drives: Iterable[ScaleModel]) -> int:
    for position, drive in enumerate(drives):
        if drive.serial == serial:
            return position
    raise UnknownDrive(serial)


def backing_file(directory: Path, drive: ScaleModel) -> Path:
    return directory / f"{drive.serial}.raw"


def create_backing_files(directory: Path, drives: Iterable[ScaleModel]) -> None:
    """Sparse files: what was never written takes no memory and reads as zeros, like a purged drive.

    None for drives that keep no data.
    """
    for drive in drives:
        if drive.latency_ns:
            continue
        with backing_file(directory, drive).open("xb") as file:
            file.truncate(drive.size_bytes)


def adapter_argv(drives: Iterable[ScaleModel]) -> list[str]:
    """QEMU arguments for the host bus adapter, if a drive needs one."""
    return ["-device", f"virtio-scsi-pci,id={ADAPTER}"] if any(drive.bus is Bus.SCSI for drive in drives) else []


def drive_argv(position: int, drive: ScaleModel, directory: Path) -> list[str]:
    """QEMU arguments for one drive: media → limit → device, NVMe in a port of its own, so that it can be pulled."""
    names = Names(position)
    port = f"pcie-root-port,id={names.port},chassis={position + 1},slot={position + 1},io-reserve=0"
    return [
        "-blockdev",
        _media(names, drive, directory),
        "-object",
        f"throttle-group,id={names.limit},x-iops-total={drive.iops}",
        "-blockdev",
        _option(throttle_options(names, names.media_node)),
        *(["-device", port] if drive.bus is Bus.NVME else []),
        "-device",
        _option(device_properties(position, drive)),
    ]


def _option(properties: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in properties.items())


def throttle_options(names: Names, node: str) -> dict[str, str]:
    """The limit over ``node``: for ``-blockdev`` and for ``blockdev-reopen``, which want the same."""
    return {
        "driver": "throttle",
        "node-name": names.throttle_node,
        "file": node,
        "throttle-group": names.limit,
        "discard": "unmap",
        "detect-zeroes": "unmap",
    }


def _media(names: Names, drive: ScaleModel, directory: Path) -> str:
    if drive.latency_ns:
        # Without read-zeroes a read leaves the guest's memory as it was, and stale pages pass for signatures.
        return (
            f"driver=null-co,node-name={names.media_node},size={drive.size_bytes},latency-ns={drive.latency_ns},"
            "read-zeroes=on"
        )
    file = str(backing_file(directory, drive)).replace(",", ",,")
    # A power cut loses nothing that the drive had acknowledged: the file is in memory anyway.
    return f"driver=file,node-name={names.media_node},filename={file},cache.no-flush=on,discard=unmap"


def device_properties(position: int, drive: ScaleModel) -> dict[str, str]:
    """The device's properties, first its driver: for ``-device`` and for ``device_add``, which want the same."""
    names = Names(position)
    common = {"id": names.device, "drive": names.throttle_node, "serial": drive.serial}
    if drive.bus is Bus.NVME:
        return {"driver": "nvme", "bus": names.port, **common}
    return {
        "driver": "scsi-hd",
        "bus": f"{ADAPTER}.0",
        "scsi-id": str(position),
        **common,
        "vendor": drive.VENDOR,
        "product": drive.PRODUCT,
        "wwn": f"{SCSI_WWN + position:#x}",
        # 1 is a solid state device, which does not rotate (SBC-3)
        "rotation_rate": "1",
    }


def limits(iops: int) -> dict[str, int]:
    """What ``qom-set`` gives a throttle group; only what is named changes."""
    return {"iops-total": iops}
