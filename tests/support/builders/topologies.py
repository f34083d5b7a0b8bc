"""Machines full of block devices: the truth about what is in use, and what lsblk and the survey print of it.

Every relation between devices, and every use of one, is told by several sources: the kernel's holders and slaves,
lsblk's tree, mdstat, mountinfo, an exclusive open that fails. A ``Plant`` knows all sources of each; which of them
speak is for the test to choose. It may silence any of them, as long as one is left of each.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from pytest_ssdqual.rig.drives.topology import Match
from support.builders import survey_records

FILES = ("mounts", "swaps", "mdstat", "zfs")


@dataclass(frozen=True)
class Told:
    """One line of one source. ``section`` is a file of the survey's, ``record`` for its other records, or of lsblk:
    ``child``, ``pkname``, ``mountpoint``; ``busy`` is an exclusive open of that device that fails.
    """

    section: str
    text: str


@dataclass(frozen=True)
class Fact:
    """A relation or a use, by all the sources that a kernel has of it."""

    told: tuple[Told, ...]


@dataclass(eq=False)
class PlantDevice:
    kname: str
    type: str
    number: str
    path: str = ""
    size: int = 480_103_981_056
    #: As lsblk (udev) spells them, and as sysfs does.
    serial: str | None = None
    wwn: str | None = None
    sysfs_serial: str | None = None
    sysfs_wwid: str | None = None
    model: str | None = None
    disk: PlantDevice | None = None
    pttype: str | None = None
    #: What lsblk says is on it, and what wipefs finds.
    fstype: str | None = None
    signature: str | None = None
    #: lsblk was run before it appeared.
    unlisted: bool = False
    uppers: list[PlantDevice] = field(default_factory=list)
    used: bool = False

    def __post_init__(self) -> None:
        self.path = self.path or f"/dev/{self.kname}"

    @property
    def sysfs(self) -> str:
        return self.kname.replace("/", "!")

    @property
    def hexadecimal(self) -> str:
        return " ".join(f"{int(part):x}" for part in self.number.split(":"))

    @property
    def names(self) -> set[str]:
        """What tells it apart, however it is spelled."""
        wwns = [self.wwn, (self.sysfs_wwid or "").replace("naa.", "0x")]
        spelled = [self.serial, self.sysfs_serial, *wwns]
        return {"_".join(name.replace("_", " ").split()).lower() for name in spelled if name and name.strip()}

    def reach(self) -> list[PlantDevice]:
        found = [self]
        for device in found:
            found += [upper for upper in device.uppers if upper not in found]
        return found

    @property
    def carries_use(self) -> bool:
        """Something in use is on it, at any depth: all that is built on it but its partitions, and every use."""
        return any(each.used or (each is not self and each.disk is None) for each in self.reach())

    @property
    def has_content(self) -> bool:
        return any(each.pttype or each.fstype or each.signature or each.disk for each in self.reach())


@dataclass
class Plant:
    """One machine."""

    disks: list[PlantDevice] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)

    @property
    def devices(self) -> list[PlantDevice]:
        found: list[PlantDevice] = []
        for disk in self.disks:
            found += [device for device in disk.reach() if device not in found]
        return found

    def paths_of(self, disk: PlantDevice) -> list[PlantDevice]:
        """A drive and all its twins: what has a name in common with it, or with one that has."""
        found = [disk]
        for one in found:
            found += [other for other in self.disks if other not in found and one.names & other.names]
        return found

    def in_use(self, disk: PlantDevice) -> bool:
        return any(each.carries_use for each in self.paths_of(disk))

    def everything(self) -> list[Told]:
        return [told for fact in self.facts for told in fact.told]

    def lsblk(self, told: Collection[Told], order: Random) -> str:
        listed = [device for device in self.devices if not device.unlisted]
        below: dict[str, list[str]] = {}
        for each in told:
            if each.section == "child":
                lower, upper = each.text.split(" ")
                below.setdefault(lower, []).append(upper)
        by_kname = {device.kname: device for device in listed}
        nested = {name for names in below.values() for name in names}
        known = {(each.section, *each.text.split(" ", 1)) for each in told if each.section in ("pkname", "mountpoint")}

        def entry(device: PlantDevice, above: frozenset[str]) -> dict[str, object]:
            children = [name for name in below.get(device.kname, ()) if name in by_kname and name not in above]
            order.shuffle(children)
            plain = self._entry(device, {section: text for section, name, text in known if name == device.kname})
            inside = [entry(by_kname[name], above | {name}) for name in children]
            return {**plain, "children": inside} if inside else plain

        top = [device for device in listed if device.kname not in nested or device.kname not in by_kname]
        order.shuffle(top)
        return json.dumps({"blockdevices": [entry(device, frozenset({device.kname})) for device in top]})

    def _entry(self, device: PlantDevice, known: dict[str, str]) -> dict[str, object]:
        plain: dict[str, object] = {
            "name": device.path.rpartition("/")[2],
            "kname": device.kname,
            "path": device.path,
            "maj:min": f" {device.number}  ",
            "type": device.type,
            "size": device.size,
            "ro": False,
            "model": device.model,
            "serial": device.serial,
            "wwn": device.wwn,
            "fstype": device.fstype,
            "pttype": device.pttype or (device.disk and device.disk.pttype),
            "uuid": None,
            "mountpoint": known.get("mountpoint"),
            "pkname": known.get("pkname"),
            "log-sec": 512,
            "phy-sec": 4096,
            "rota": False,
            "tran": "sata" if device.type == "disk" else None,
        }
        return plain

    def script(self, told: Collection[Told], order: Random) -> str:
        lines: list[str] = []
        files: dict[str, list[str]] = {name: [] for name in FILES}
        files["swaps"].append("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority")
        files["mdstat"] += ["Personalities : [raid1] [raid6]", "unused devices: <none>"]
        for device in self.devices:
            attributes = [("dev", device.number), ("size", str(device.size // 512)), ("ro", "0")]
            attributes += [("wwid", device.sysfs_wwid or ""), ("serial", device.sysfs_serial or "")]
            lines += [f"{what} {device.sysfs} {text}" for what, text in attributes if text.strip()]
            if device.disk is not None:
                lines.append(f"disk {device.sysfs} {device.disk.sysfs}")
        busy = {each.text for each in told if each.section == "busy"}
        for disk in self.disks:
            lines.append(f"number /dev/{disk.kname} {disk.hexadecimal}")
            lines.append(f"probe /dev/{disk.kname} {16 if disk.kname in busy else 0}")
            if disk.signature:
                lines.append(f"signature /dev/{disk.kname} {disk.signature}")
        for each in told:
            if each.section in files:
                files[each.section].append(each.text)
            elif each.section == "record":
                lines.append(each.text)
        for texts in (lines, *files.values()):
            order.shuffle(texts)
        return survey_records.answer(lines, **{name: "\n".join(texts) for name, texts in files.items()})

    def match(self, device: PlantDevice) -> Match:
        return Match(device.path, device.path, device.kname)

    # What happens on it.

    def build(self, upper: PlantDevice, lowers: Sequence[PlantDevice]) -> None:
        """A device of md, dm or bcache over others, which it claims."""
        for lower in lowers:
            lower.uppers.append(upper)
            told = [Told("child", f"{lower.kname} {upper.kname}")]
            if len(lowers) == 1:  # there is one such field, in which lsblk names the parent that it lists it under
                told.append(Told("pkname", f"{upper.kname} {lower.kname}"))
            told = told if not (lower.unlisted or upper.unlisted) else []
            told.append(Told("record", f"holder {lower.sysfs} {upper.sysfs}"))
            told.append(Told("record", f"slave {upper.sysfs} {lower.sysfs}"))
            if upper.kname.startswith("md"):
                told.append(Told("mdstat", f"{upper.sysfs} : active (auto-read-only) raid1 {lower.sysfs}[0](S)"))
            self.facts.append(Fact((*told, *self._busy(lower))))

    def loop(self, upper: PlantDevice, lower: PlantDevice, *, odd: bool) -> None:
        """A loop device over a device (or over a file on it), by a name that may be gone; nothing is claimed."""
        lower.uppers.append(upper)
        told = [Told("record", f"over {upper.sysfs} {lower.hexadecimal}")]
        told += [] if odd else [Told("record", f"loop {upper.sysfs} /dev/{lower.kname}")]
        self.facts.append(Fact(tuple(told)))

    def use(self, device: PlantDevice, what: str, where: str) -> None:
        device.used = True
        told = list(_uses(device, what, where))
        if what not in (*OPENED, "export"):  # none of them claims what it uses
            told += self._busy(device)
        if device.unlisted:
            told = [each for each in told if each.section != "mountpoint"]
        self.facts.append(Fact(tuple(told)))

    def _busy(self, device: PlantDevice) -> tuple[Told, ...]:
        disk = device.disk or device
        return (Told("busy", disk.kname),) if disk in self.disks else ()


def _uses(device: PlantDevice, what: str, where: str) -> Sequence[Told]:
    seen = where.replace("\\", r"\134").replace(" ", r"\040").replace("\n", r"\012").replace("\t", r"\011")
    path = device.path.replace(" ", r"\040")
    uuid = "4e1c0a5a-0000-4000-8000-3b1f8b0d3c5e"
    match what:
        case "mount":
            here = Told("mountpoint", f"{device.kname} {where.strip() or '/'}")
            return here, Told("mounts", f"{device.number} / {seen} rw,relatime shared:1 - ext4 /dev/root rw")
        case "mount elsewhere":  # in another mount namespace; a bind mount of a part of it
            return (Told("mounts", f"{device.number} /sub {seen} rw - xfs {path} rw"),)
        case "btrfs":
            part = Told("record", f"btrfs {device.sysfs} {uuid}")
            return part, Told("mounts", f"0:27 /@ {seen} rw - btrfs {path} rw,subvol=/@")
        case "bcachefs":
            part = Told("record", f"bcachefs {device.sysfs} {uuid}")
            return part, Told("mounts", f"0:30 / {seen} rw - bcachefs /dev/gone:{path} rw")
        case "swap":
            here = Told("mountpoint", f"{device.kname} [SWAP]")
            return here, Told("swaps", f"{path}                              partition\t999420\t0\t-2")
        case "zfs":
            return (Told("zfs", device.path),)
        case "bcache":
            return (Told("record", f"bcache {device.sysfs}"),)
        case "export":
            by_path = Told("record", f"export nvmet {device.path}")
            return by_path, Told("record", f"exported nvmet {device.hexadecimal}")
        case "writer":
            return (Told("record", f"opened 4711 {device.number} write {device.number} qemu ==end"),)
        case "reader":
            return (Told("record", f"opened 4711 {device.number} read {device.number} dd\x1eend"),)
        case "generic":  # of no use without knowing whose node it is
            node = f"generic 21:{device.number} {device.sysfs}"
            return (Told("record", f"{node}\nopened 4713 {device.number} generic 21:{device.number} qemu"),)
        case _:  # opened exclusively, by somebody who is seen nowhere; a file system that was unmounted lazily
            return ()


PLACES = ("/", "/boot/efi", "/mnt/with blank", "/mnt/new\nline", "/mnt/tab\t", "/mnt/back\\slash - ext4 x", "/srv/ü 中")
OPENED = ("writer", "reader", "generic")
USES = ("mount", "mount elsewhere", "btrfs", "bcachefs", "swap", "zfs", "bcache", "export", *OPENED)
#: Kernel name (a number is put in), type, path if it is not by the kernel's name.
LAYERS = (
    ("md{}", "raid1", ""), ("dm-{}", "lvm", "/dev/mapper/vg-lv {}"), ("dm-{}", "crypt", "/dev/mapper/luks-{}"),
    ("dm-{}", "mpath", "/dev/mapper/mpath{}"), ("dm-{}", "part", "/dev/mapper/mpath{}-part1"), ("bcache{}", "disk", ""),
    ("drbd{}", "disk", ""), ("md_d{}", "raid5", ""),
)  # fmt: skip
SERIALS = ("S 1", "S_1", "s2", "BTWL\t3", "Ω4 é", "0", None)


@st.composite
def plants(draw: st.DrawFn) -> Plant:
    """Drives of all kinds of names, twins among them; partitions; layers, nested and over several; uses anywhere."""
    plant = Plant([_disk(draw, number) for number in range(draw(st.integers(1, 4)))])
    for number in range(draw(st.integers(0, 4))):
        lowers = draw(st.lists(st.sampled_from(plant.devices), min_size=1, max_size=3, unique=True))
        shape = draw(st.sampled_from((*LAYERS, None, None)))
        if shape is None:
            loop = PlantDevice(f"loop{number}", "loop", f"7:{number}", unlisted=draw(st.booleans()))
            plant.loop(loop, lowers[0], odd=draw(st.booleans()))
            continue
        kname, kind, path = shape
        upper = PlantDevice(
            kname.format(number), kind, f"252:{number}", path.format(number), unlisted=draw(st.booleans())
        )
        plant.build(upper, lowers)
        if kname.startswith("md") and draw(st.booleans()):
            _partition(upper, 1, f"259:{100 + number}")
    for device in draw(st.lists(st.sampled_from(plant.devices), max_size=3, unique=True)):
        whole = device.disk or device
        hidden = ("opened",) if whole in plant.disks else ()  # of others nobody would know
        plant.use(device, draw(st.sampled_from((*USES, *hidden))), draw(st.sampled_from(PLACES)))
    return plant


def _disk(draw: st.DrawFn, number: int) -> PlantDevice:
    kname = draw(
        st.sampled_from((f"sd{'abcd'[number]}", f"nvme{number}n1", f"cciss/c{number}d0", f"vd{'abcd'[number]}"))
    )
    # Two drives in a row are twins by one name or by the other, and three through the one in the middle.
    wwn = draw(st.sampled_from((f"5000c500{number:08x}", f"5000c5000ff0000{number // 2}", None)))
    serial = draw(st.sampled_from((f"SER{number}", f"TWIN {(number + 1) // 2}", *SERIALS)))
    udev, kernel = draw(st.sampled_from(((True, True), (True, False), (False, True))))
    disk = PlantDevice(
        kname, "disk", f"8:{number * 16}", model=f"ACME {number}",
        size=draw(st.sampled_from((480_103_981_056, 1 << 40))),
        serial=serial if udev else None, sysfs_serial=serial if kernel else None,
        wwn=f"0x{wwn}" if udev and wwn else None, sysfs_wwid=f"naa.{wwn}" if kernel and wwn else None,
    )  # fmt: skip
    for index in range(draw(st.sampled_from((0, 0, 0, 1, 3)))):
        disk.pttype = draw(st.sampled_from(("gpt", "dos")))
        part = _partition(disk, index + 1, f"8:{number * 16 + index + 1}")
        part.unlisted = draw(st.booleans())
        part.fstype = None if part.unlisted else draw(st.sampled_from((None, "ext4", "swap")))
    if not disk.uppers:
        kind = draw(st.sampled_from((None, None, "ext4", "linux_raid_member", "crypto_LUKS", "zfs_member")))
        disk.fstype, disk.signature = draw(st.sampled_from(((kind, kind), (kind, None), (None, kind))))
    return disk


def _partition(disk: PlantDevice, index: int, number: str) -> PlantDevice:
    infix = "p" if disk.kname[-1].isdigit() else ""
    part = PlantDevice(f"{disk.kname}{infix}{index}", "part", number, disk=disk)
    disk.uppers.append(part)
    return part


@st.composite
def hearings(draw: st.DrawFn, plant: Plant, at_least: Collection[Told] = ()) -> list[Told]:
    """Which sources speak: of each fact some, never none; all of ``at_least`` among them."""
    heard = list(at_least)
    for fact in plant.facts:
        if fact.told:
            heard += draw(st.lists(st.sampled_from(fact.told), min_size=1, unique=True))
    return list(dict.fromkeys(heard))
