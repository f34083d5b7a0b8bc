"""Emulated drives with a set speed, so that the correct result of a measurement is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from pytest_ssdqual.qual.frozen import frozen

#: A machine of this type has 29 free slots; a drive shelf has 24.
MAX_DRIVES = 24


#: The host bus adapter of drives on ``Bus.SCSI``, and the first of their WWNs (NAA 5).
ADAPTER, SCSI_WWN = "hba", 0x5000C500A1B20000
#: Speed of a slow drive as a share of that of the others.
SLOW = 0.6


class Bus(StrEnum):
    """The bus that attaches the drives."""

    #: Each is a controller of its own, /dev/nvme0n1 and so on.
    NVME = "nvme"
    #: Behind one host bus adapter, /dev/sda and so on; the drives report that they do not rotate.
    SCSI = "scsi"


@frozen
class ScaleModel:
    """One emulated drive: a cap on its I/Os and bytes per second, and how long each I/O takes.

    Without a latency a drive answers every I/O at once up to the cap, at any queue depth. With a latency, every I/O
    takes that long, so the rate grows with the depth up to the knee at ``iops`` × ``latency_ns`` outstanding I/Os. Such
    a drive keeps no data (it reads as zeros), so it cannot be a member of an array: md would not find its superblock.
    """

    serial: str
    size_bytes: int = 256 << 20
    #: Reads and writes together, of any size.
    iops: int = 300
    #: 0: the drive answers at once and keeps its data.
    latency_ns: int = 0
    bus: Bus = Bus.NVME
    #: Reads, writes, discards and zeroed ranges together; 0: no limit. With one, discards take time: 6.8 s for 256 MiB
    #: at 39 MB/s (QEMU 7.2), and rehearsals have many.
    bytes_per_s: int = 0

    #: Fixed in QEMU's NVMe controller.
    MODEL = "QEMU NVMe Ctrl"
    #: Vendor and product of a drive on ``Bus.SCSI``, at most 8 and 16 characters.
    VENDOR, PRODUCT = "SSDQUAL", "SM300"


class Names:
    """QEMU's names of the parts of the drive at one position."""

    def __init__(self, position: int) -> None:
        self.media_node = f"media{position}"
        self.throttle_node = f"drive{position}"
        self.limit = f"limit{position}"
        self.port = f"port{position}"
        self.device = f"ssd{position}"


def check_count(count: int) -> int:
    """Return the count; raise ``ValueError`` if the lab cannot emulate so many drives."""
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
    slow: int = 0,
    bytes_per_s: int = 0,
) -> tuple[ScaleModel, ...]:
    """Return drives with the serial numbers SSDQ0001 (``first``), SSDQ0002, …; raises as ``check_count``.

    They are equal, except that the drive at position ``slow``, counted from 1, has ``SLOW`` times the speed.
    """
    speeds = [SLOW if position == slow else 1 for position in range(1, check_count(count) + 1)]
    return tuple(
        ScaleModel(
            f"SSDQ{number:04}", size_bytes, round(iops * speed), latency_ns, bus, bytes_per_s=round(bytes_per_s * speed)
        )
        for number, speed in enumerate(speeds, first)
    )


def backing_file(directory: Path, drive: ScaleModel) -> Path:
    return directory / f"{drive.serial}.raw"


def create_backing_files(directory: Path, drives: Iterable[ScaleModel]) -> None:
    """Create sparse files: unwritten blocks take no memory and read as zeros, like a purged drive.

    Drives that keep no data have none.
    """
    for drive in drives:
        if drive.latency_ns:
            continue
        with backing_file(directory, drive).open("xb") as file:
            file.truncate(drive.size_bytes)


def adapter_argv(drives: Iterable[ScaleModel]) -> list[str]:
    """Return QEMU's arguments for the host bus adapter, if a drive needs one."""
    return ["-device", f"virtio-scsi-pci,id={ADAPTER}"] if any(drive.bus is Bus.SCSI for drive in drives) else []


def drive_argv(position: int, drive: ScaleModel, directory: Path) -> list[str]:
    """Return QEMU's arguments for one drive: media → limit → device; NVMe has a port of its own for hot-unplug."""
    names = Names(position)
    port = f"pcie-root-port,id={names.port},chassis={position + 1},slot={position + 1},io-reserve=0"
    return [
        "-blockdev",
        _media(names, drive, directory),
        "-object",
        f"throttle-group,id={names.limit},x-iops-total={drive.iops},x-bps-total={drive.bytes_per_s}",
        "-blockdev",
        _option(throttle_options(names, names.media_node)),
        *(["-device", port] if drive.bus is Bus.NVME else []),
        "-device",
        _option(device_properties(position, drive)),
    ]


def _option(properties: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in properties.items())


def throttle_options(names: Names, node: str) -> dict[str, str]:
    """Return the options of the limit over ``node``, for ``-blockdev`` and for ``blockdev-reopen``."""
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
        # Without read-zeroes a read leaves the guest's memory unchanged, and stale pages look like signatures.
        return (
            f"driver=null-co,node-name={names.media_node},size={drive.size_bytes},latency-ns={drive.latency_ns},"
            "read-zeroes=on"
        )
    file = str(backing_file(directory, drive)).replace(",", ",,")
    # A power cut loses no acknowledged write: the file is in memory.
    return f"driver=file,node-name={names.media_node},filename={file},cache.no-flush=on,discard=unmap"


def device_properties(position: int, drive: ScaleModel) -> dict[str, str]:
    """Return the device's properties, the driver first, for ``-device`` and for ``device_add``."""
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
