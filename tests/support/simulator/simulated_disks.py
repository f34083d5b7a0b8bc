"""Machines full of block devices that were never there: what ``lsblk`` and the survey's script would print.

The truth is in the objects; ``lsblk`` and ``facts`` are two incomplete views on it, as in life.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

from pytest_ssdqual.rig.drives.topology import Match
from support.builders import survey_records


@dataclass(eq=False)
class Device:
    kname: str
    type: str
    number: str
    size: int = 480_103_981_056
    serial: str | None = None
    wwn: str | None = None
    model: str | None = "ACME SSD 9"
    fstype: str | None = None
    pttype: str | None = None
    uuid: str | None = None
    mountpoint: str | None = None
    #: ``number``: mountinfo has its device number; ``source``: only its path, as for btrfs.
    mount_seen_by: str = "number"
    use: str | None = None
    partition: bool = False
    read_only: bool = False
    rotational: bool = False
    transport: str | None = "sata"
    logical_block: int = 512
    #: What sysfs says an NVMe drive prefers.
    minimum_io: int = 512
    #: The fastest link of a PCIe drive, as sysfs says it.
    link: str | None = None
    #: What sysfs says of a SATA or SAS drive's own queue.
    queue_depth: int | None = None
    #: How the relation to the upper devices is told: lsblk, holders, slaves, mdstat.
    told_by: str = "lsblk"
    uppers: list[Device] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/dev/{self.kname}"

    def reach(self) -> list[Device]:
        found = [self]
        for upper in self.uppers:
            found.extend(device for device in upper.reach() if device not in found)
        return found

    @property
    def really_in_use(self) -> bool:
        return any(
            device.mountpoint or device.use or (device is not self and not device.partition) for device in self.reach()
        )


@dataclass(eq=False)
class World:
    disks: list[Device]

    def devices(self) -> list[Device]:
        found: list[Device] = []
        for disk in self.disks:
            found.extend(device for device in disk.reach() if device not in found)
        return found

    def lsblk(self) -> str:
        return json.dumps({"blockdevices": [self._entry(disk) for disk in self.disks]})

    def _entry(self, device: Device) -> dict[str, object]:
        children = [self._entry(upper) for upper in device.uppers if upper.partition or device.told_by == "lsblk"]
        return {
            "name": device.kname,
            "kname": device.kname,
            "path": device.path,
            "maj:min": f" {device.number}",
            "type": device.type,
            "size": device.size,
            "ro": device.read_only,
            "model": device.model,
            "serial": device.serial,
            "wwn": device.wwn,
            "fstype": device.fstype,
            "pttype": device.pttype,
            "uuid": device.uuid,
            "mountpoint": None,
            "pkname": None,
            "log-sec": device.logical_block,
            "phy-sec": 4096,
            "min-io": device.minimum_io,
            "rota": device.rotational,
            "tran": device.transport,
            **({"children": children} if children else {}),
        }

    def facts(self, *candidates: str) -> str:
        lines: list[str] = []
        files = {"mounts": "", "mdstat": "", "zfs": "", "swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"}
        for device in self.devices():
            self._sysfs(device, lines, files)
            self._uses(device, lines, files)
            if device.path in candidates and device.use != "silent":
                major, minor = (int(part) for part in device.number.split(":"))
                lines.append(f"number {device.path} {major:x} {minor:x}")
                lines.append(f"probe {device.path} 0")  # as if O_EXCL saw nothing: the worst case
        return survey_records.answer(lines, **files)

    def _sysfs(self, device: Device, sysfs: list[str], files: dict[str, str]) -> None:
        name = device.kname.replace("/", "!")
        sysfs += [f"dev {name} {device.number}", f"size {name} {device.size // 512}"]
        sysfs.append(f"ro {name} {int(device.read_only)}")
        if device.queue_depth is not None:
            sysfs.append(f"depth {name} {device.queue_depth}")
        if device.link:
            sysfs.append(f"link {name} {device.link}")
        for upper in device.uppers:
            above = upper.kname.replace("/", "!")
            if upper.partition:
                sysfs.append(f"disk {above} {name}")
            elif device.told_by == "holders":
                sysfs.append(f"holder {name} {above}")
            elif device.told_by == "slaves":
                sysfs.append(f"slave {above} {name}")
            elif device.told_by == "mdstat":
                files["mdstat"] += f"{above} : active (auto-read-only) raid1 {name}[0](S)\n"

    def _uses(self, device: Device, lines: list[str], files: dict[str, str]) -> None:
        if device.mountpoint:
            mounted = device.mountpoint.replace("\\", r"\134").replace(" ", r"\040").replace("\n", r"\012")
            number = device.number if device.mount_seen_by == "number" else "0:27"
            source = "/dev/root" if device.mount_seen_by == "number" else device.path
            files["mounts"] += f"{number} / {mounted} rw,relatime shared:1 - ext4 {source} rw\n"
        match device.use:
            case "swap":
                files["swaps"] += f"{device.path}                              partition\t999420\t0\t-2\n"
            case "btrfs":
                name = device.kname.replace("/", "!")
                lines.append(f"btrfs {name} 4e1c0a5a-0000-4000-8000-3b1f8b0d3c5e")
            case "zfs":
                files["zfs"] += f"{device.path}\n"
            case "writer" | "reader":
                access = {"writer": "write", "reader": "read"}[device.use]
                lines.append(f"opened 4711 {device.number} {access} {device.number} qemu kvm")
            case "silent":
                lines.append(f"opened 282 {device.number} read {device.number} systemd-udevd")
                lines.append(f"hanging 282 {device.number} 31 1")
            case "generic":
                name = device.kname.replace("/", "!")
                lines += [
                    f"generic 21:{device.number} {name}",
                    f"opened 4713 {device.number} generic 21:{device.number} qemu kvm",
                ]
            case "bcache":
                lines.append(f"bcache {device.kname.replace('/', '!')}")
            case _:
                pass

    def matches(self, *devices: Device) -> list[Match]:
        return [Match(device.path, device.path, device.kname) for device in devices or self.disks]


ODD_MOUNTPOINTS = ("/", "/boot/efi", "/mnt/with blank", "/mnt/new\nline", "/mnt/back\\slash - ext4 /dev/null", "/srv/ü")
LAYERS = (("md", "raid1"), ("dm-", "lvm"), ("dm-", "crypt"), ("dm-", "mpath"), ("bcache", "disk"), ("dm-", "part"))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Disks, partitions, layers over any of them (nested, over several), uses anywhere."""
    world = World([_disk(draw, number) for number in range(draw(st.integers(1, 4)))])
    for number in range(draw(st.integers(0, 4))):
        prefix, kind = draw(st.sampled_from(LAYERS))
        upper = Device(f"{prefix}{100 + number}", kind, f"252:{number}", model=None, transport=None)
        lower = draw(st.lists(st.sampled_from(world.devices()), min_size=1, max_size=3, unique=True))
        for device in lower:
            device.uppers.append(upper)
            ways = ("lsblk", "holders", "slaves", "mdstat") if prefix == "md" else ("lsblk", "holders", "slaves")
            if device.told_by not in ways or len(device.uppers) == 1:
                device.told_by = draw(st.sampled_from(ways))
    for device in draw(st.lists(st.sampled_from(world.devices()), max_size=2)):
        if draw(st.booleans()):
            device.mountpoint = draw(st.sampled_from(ODD_MOUNTPOINTS))
            device.mount_seen_by = draw(st.sampled_from(("number", "source")))
        else:
            device.use = draw(st.sampled_from(("swap", "btrfs", "zfs", "writer", "reader", "generic", "bcache")))
    return world


def _disk(draw: st.DrawFn, number: int) -> Device:
    kname = draw(st.sampled_from((f"sd{'abcd'[number]}", f"nvme{number}n1", f"cciss/c{number}d0")))
    disk = Device(kname, "disk", f"8:{number * 16}", serial=f"S{number} 0Ω", wwn=f"0x5000{number + 1}")
    for part in range(draw(st.integers(0, 3))):
        infix = "p" if kname[-1].isdigit() else ""
        disk.pttype = "gpt"
        disk.uppers.append(
            Device(f"{kname}{infix}{part + 1}", "part", f"8:{number * 16 + part + 1}", partition=True, model=None)
        )
    if not disk.uppers:
        disk.fstype = draw(st.sampled_from((None, "ext4", "LVM2_member", "linux_raid_member", "crypto_LUKS")))
    return disk
