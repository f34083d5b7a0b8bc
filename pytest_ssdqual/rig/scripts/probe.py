# The same as probe.pl, for machines without perl, by Python 3.6 or later.
#
# Arguments, output and exit status: see there.

import array
import errno
import fcntl
import os
import struct
import sys
import time

LOOP_GET_STATUS64, SG_IO = 0x4C05, 0x2285
NVME_ID, NVME_ADMIN, NVME_IO = 0x4E40, 0xC0484E41, 0xC0484E43
#: The layouts below are those of 64-bit kernels.
WIDE = struct.calcsize("P") == 8
NARROW = "a program of 32 bits cannot ask for the reservations of"


def emit(*fields: object) -> None:
    """Print a record."""
    sys.stdout.buffer.write(b"".join(os.fsencode(str(field)) + b"\0" for field in fields))
    sys.stdout.buffer.flush()


def blind(path: str, why: str) -> None:
    """Print that the reservations of a drive are not known."""
    emit("blind_drive", "reservations", path, why)


def loops(paths: "list[str]") -> None:
    """LOOP_GET_STATUS64 reports the device that the file is on, and the one that it is."""
    for path in paths:
        try:
            with open(path, "rb") as device:  # noqa: PTH123 (runs where pathlib costs 20 ms)
                info = fcntl.ioctl(device, LOOP_GET_STATUS64, bytes(232))
        except OSError as problem:
            if problem.errno != errno.ENXIO:  # detached
                emit("blind", "layers", f"what {path} is over could not be read: {problem.strerror}")
            continue
        on, _, node = struct.unpack_from("QQQ", info)
        for number in (on, node):
            major, minor = number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00
            if major:
                emit("over", path[5:], format(major, "x"), format(minor, "x"))


def is_held(path: str) -> bool:
    """Return whether md or dm have the device; they stay on their members, so that waiting does not help."""
    try:
        with os.scandir("/sys/class/block/{}/holders".format(path[5:].replace("/", "!"))) as holders:
            return any(holders)
    except OSError:
        return False


def exclusive(paths: "list[str]") -> None:
    """O_EXCL is EBUSY if a device or a partition of it is claimed; udev's claims are short."""
    errors = dict.fromkeys(paths, errno.EBUSY)
    for pause in (0, 0.2, 0.2):
        busy = [path for path in errors if errors[path] == errno.EBUSY and not (pause and is_held(path))]
        time.sleep(pause if busy else 0)
        for path in busy:
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK))
                errors[path] = 0
            except OSError as problem:
                errors[path] = problem.errno or errno.EIO
    for path, error in errors.items():
        emit("probe", path, error)


def nvme(device: int, request: int, opcode: int, nsid: int, *dwords: int) -> "tuple[int, bytes]":
    """Status of an NVMe command, or the number of an error below 0; its data."""
    data = array.array("B", bytes(4096))
    address, length = data.buffer_info()
    dwords += (0,) * (6 - len(dwords))
    command = struct.pack("BBHIIIQQII6III", opcode, 0, 0, nsid, 0, 0, 0, address, 0, length, *dwords, 5000, 0)
    try:
        status = fcntl.ioctl(device, request, bytearray(command), True)
    except OSError as problem:
        return -(problem.errno or errno.EIO), b""
    return status & 0x7FF, data.tobytes()


def nvme_namespace(path: str, device: int) -> None:
    """NMIC and RESCAP of Identify Namespace, then the Reservation Report."""
    try:
        nsid = fcntl.ioctl(device, NVME_ID, 0)
    except OSError:
        return None
    if not WIDE:
        return blind(path, f"{NARROW} {path}")
    status, identity = nvme(device, NVME_ADMIN, 0x06, nsid, 0)
    if status:
        return blind(path, f"whether {path} has further ports is not known: Identify ended with {status}")
    size, _, used = struct.unpack_from("<QQQ", identity)
    emit("allocated", path, used, size)  # NUSE, NSZE
    if identity[30] & 1:
        emit("multiport", path)
    if not identity[31]:
        return None
    status, report = nvme(device, NVME_IO, 0x0E, nsid, 1023, 0)
    if status == 0x18:  # Host Identifier Inconsistent Format: hosts have identifiers of 128 bits
        status, report = nvme(device, NVME_IO, 0x0E, nsid, 1023, 1)
    if status == 1:  # Invalid Command Opcode
        return None
    if status:
        return blind(path, f"reservations of {path} could not be read: the report ended with {status}")
    return emit("reserved", path, report[4], report[5] | report[6] << 8)


def reserve_in(path: str, device: int, action: int) -> "bytes | None":
    """Data of PERSISTENT RESERVE IN; unsupported is silent."""
    for again in (True, False):
        data, sense = array.array("B", bytes(1024)), array.array("B", bytes(64))
        cdb = array.array("B", struct.pack(">BB5xHB", 0x5E, action, 1024, 0))
        at = [buffer.buffer_info()[0] for buffer in (data, cdb, sense)]
        header = bytearray(
            struct.pack("iiBBHIQQQIIi4xQBBBBHHiII4x", ord("S"), -3, 10, 64, 0, 1024, *at, 5000, 0, 0, 0, *[0] * 9)
        )
        try:
            fcntl.ioctl(device, SG_IO, header, True)
        except OSError as problem:
            if problem.errno not in (errno.ENOTTY, errno.EINVAL):
                blind(path, f"reservations of {path} could not be read: {problem.strerror}")
            return None
        status, host, driver = struct.unpack_from("B3xHH", header, 64)
        if not status and not host and not driver & 7:
            return data.tobytes()
        if status == 0x18:  # by RESERVE(6)
            emit("reserved", path, 1, 0)
            return None
        key = sense[2 if sense[0] & 0x7F < 0x72 else 1] & 0xF
        if again and status == 2 and key == 6:  # UNIT ATTENTION
            continue
        if status != 2 or key != 5:  # ILLEGAL REQUEST
            blind(path, f"reservations of {path} could not be read: status {status:#x}, sense key {key:#x}")
        return None
    return None


def scsi(path: str, device: int) -> None:
    """SCSI drives but SATA's and USB's: those have no second port, and bridges of USB do not take every command."""
    sysfs = "/sys/class/block/" + path[5:].replace("/", "!")
    if not os.path.exists(sysfs + "/device/scsi_level") or "/usb" in os.readlink(sysfs):  # noqa: PTH110
        return
    inquiry = contents(sysfs + "/device/inquiry")
    if contents(sysfs + "/device/vendor").startswith(b"ATA "):
        return
    if len(inquiry) > 6 and inquiry[6] & 0x10:
        emit("multiport", path)
    if not WIDE:
        blind(path, f"{NARROW} {path}")
        return
    keys = reserve_in(path, device, 0)
    held = None if keys is None else reserve_in(path, device, 1)
    if keys is not None and held is not None:
        kind = held[21] & 0xF if held[4:8].strip(b"\0") else 0
        emit("reserved", path, kind, struct.unpack_from(">I", keys, 4)[0] // 8)


def contents(path: str) -> bytes:
    """Of a file, nothing if it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (as above)
            return file.read(96)
    except OSError:
        return b""


def main(mode: str, paths: "list[str]") -> None:
    """Look at ``paths``, see above."""
    if mode == "loops":
        return loops(paths)
    exclusive(paths)
    for path in paths:
        try:
            device = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        nvme_namespace(path, device)
        scsi(path, device)
        os.close(device)
    return None


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
