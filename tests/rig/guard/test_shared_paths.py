from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.drives import named
from support.fakes.scripted import ScriptedMachine
from support.shells import SHELLS, run_script
from support.simulator import simulated_paths

from pytest_ssdqual.qual.measured.environment import SharedLink
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard.shared_paths import SCRIPT, DrivePath, Shared, between, links, parse, paths, same_drives
from pytest_ssdqual.rig.machine.machine import RigError

BOOT = "0f2d7c9e-5d5e-4a44-9ae5-0d3ea31d7f06"
#: Where drives hang, as Linux 6.1 has it: NVMe at a root port, twice behind a PCIe switch, behind a switch behind a
#: switch, behind Intel's VMD; SATA at an AHCI controller, and behind a port multiplier; SAS behind an expander behind
#: another; USB behind a hub; iSCSI; NVMe over TCP; an NVMe subsystem of two controllers; virtio.
ROOT = "pci0000:3a/0000:3a:00.0"
SWITCH = f"{ROOT}/0000:3b:00.0"
PLACES = {
    "nvme0n1": "pci0000:00/0000:00:1c.0/0000:01:00.0/nvme/nvme0",
    "nvme1n1": f"{SWITCH}/0000:3c:01.0/0000:40:00.0/nvme/nvme1",
    "nvme2n1": f"{SWITCH}/0000:3c:02.0/0000:41:00.0/nvme/nvme2",
    "nvme3n1": f"{SWITCH}/0000:3c:03.0/0000:42:00.0/0000:43:00.0/0000:44:00.0/nvme/nvme3",
    "nvme4n1": "pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0/nvme/nvme4",
    "nvme5n1": "virtual/nvme-fabrics/ctl/nvme5",
    "nvme6n1": "virtual/nvme-subsystem/nvme-subsys6",
    "sda": "pci0000:00/0000:00:1f.2/ata3/host2/target2:0:0/2:0:0:0",
    "sdb": "pci0000:00/0000:00:1f.2/ata4/host3/target3:1:0/3:1:0:0",
    "sdc": "pci0000:00/0000:00:03.0/0000:05:00.0/host6/port-6:0/expander-6:0/port-6:0:8/expander-6:1/port-6:1:2/"
    "end_device-6:1:2/target6:0:1/6:0:1:0",
    "sdd": "pci0000:00/0000:00:14.0/usb1/1-4/1-4.2/1-4.2:1.0/host8/target8:0:0/8:0:0:0",
    "sde": "platform/host9/session1/target9:0:0/9:0:0:0",
    "vda": "pci0000:00/0000:00:05.0/virtio2",
}
SECOND, THIRD = f"{SWITCH}/0000:3c:04.0/0000:45:00.0/nvme/nvme6", "virtual/nvme-fabrics/ctl/nvme7"
CLASSES = {"1f.2": "0x010601", "05:00.0": "0x010700", "14.0": "0x0c0330", "05.0": "0x010000"}
FILES = {
    "expander-6:0/sas_device/expander-6:0/sas_address": "0x500056b3a8b5b4ff",
    "expander-6:1/sas_device/expander-6:1/sas_address": "0x0000000000000000",
    "session1/connection1:0/iscsi_connection/connection1:0/persistent_address": "192.0.2.7",
    "nvme5/transport": "tcp",
    "nvme5/address": "traddr=192.0.2.9,trsvcid=4420,src_addr=192.0.2.1",
    "nvme7/transport": "rdma",
    "nvme7/address": "traddr=2001:db8::9,trsvcid=4420",
}
ON = {
    "nvme0n1": ["PCIe root port 0000:00:1c.0"],
    "nvme1n1": ["PCIe switch 0000:3b:00.0", "PCIe root port 0000:3a:00.0"],
    "nvme2n1": ["PCIe switch 0000:3b:00.0", "PCIe root port 0000:3a:00.0"],
    "nvme3n1": ["PCIe switch 0000:42:00.0", "PCIe switch 0000:3b:00.0", "PCIe root port 0000:3a:00.0"],
    "nvme4n1": ["PCIe root port 10000:00:02.0"],
    "nvme5n1": ["NVMe-oF target at 192.0.2.9"],
    "nvme6n1": ["PCIe switch 0000:3b:00.0", "PCIe root port 0000:3a:00.0", "NVMe-oF target at 2001:db8::9"],
    "sda": ["SATA port multiplier on ata3", "SATA controller 0000:00:1f.2"],
    "sdb": ["SATA port multiplier on ata4", "SATA controller 0000:00:1f.2"],
    "sdc": ["SAS expander 0x500056b3a8b5b4ff", "SAS controller 0000:05:00.0", "PCIe root port 0000:00:03.0"],
    "sdd": ["USB hub 1-4", "USB controller 0000:00:14.0"],
    "sde": ["iSCSI target at 192.0.2.7"],
    "vda": ["SCSI controller 0000:00:05.0"],
    "loop0": [],
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A root directory with those drives."""
    devices, block = tmp_path / "sys/devices", tmp_path / "sys/block"
    for kname, place in {**PLACES, "": SECOND, "-": THIRD}.items():
        (devices / place).mkdir(parents=True, exist_ok=True)
        if kname.isalnum():
            (block / kname).mkdir(parents=True)
            (block / kname / "device").symlink_to(devices / place)
    for each in (SECOND, THIRD):
        (devices / PLACES["nvme6n1"] / Path(each).name).symlink_to(devices / each)
    for function in devices.rglob("*:*.?"):
        found = [kind for end, kind in CLASSES.items() if function.name.endswith(end)]
        is_drive = (function / "nvme").is_dir()
        is_switch = function.name.endswith("3b:00.0")
        (function / "current_link_speed").write_text("8.0 GT/s PCIe\n" if is_switch else "Unknown\n")
        (function / "current_link_width").write_text(f"{16 if is_switch else 0}\n")
        (function / "class").write_text(f"{'0x010802' if is_drive else found[0] if found else '0x060400'}\n")
        if is_drive:
            (controller,) = (function / "nvme").iterdir()
            (controller / "transport").write_text("pcie\n")
            (controller / "address").write_text(f"{function.name}\n")
    for name, content in FILES.items():
        (above,) = (each for each in devices.rglob(name.partition("/")[0]) if not each.is_symlink())
        (above / name.partition("/")[2]).parent.mkdir(parents=True, exist_ok=True)
        (above / name.partition("/")[2]).write_text(f"{content}\n")
    (tmp_path / "random").mkdir()
    (tmp_path / "random/boot_id").write_text(f"{BOOT}\n")
    return tmp_path


def drive(kname: str, serial: str | None = "S1", model: str = "ACME", wwn: str | None = None) -> Drive:
    return replace(named(kname, "", model), serial=serial, wwn=wwn)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_finds_everything_in_any_shell(machine: Path, shell: str) -> None:
    script = SCRIPT.replace("/proc/sys/kernel/", f"{machine}/").replace("/sys/", f"{machine}/sys/")
    answer = run_script(shell, script, "shared-path", *ON).replace(str(machine), "")
    found = parse(answer, [drive(kname) for kname in ON])
    assert {each.drive.kname: [str(thing) for thing in each.on] for each in found} == ON
    everywhere = {thing.kind for each in found for thing in each.on if not thing.machine}
    assert everywhere == {"SAS expander", "iSCSI target at", "NVMe-oF target at"}
    assert {thing.machine for each in found for thing in each.on} == {BOOT, ""}
    (link,) = links(found)
    assert (link.name, link.speed, link.width) == ("PCIe switch 0000:3b:00.0", 8.0, 16)
    assert len(link.drives) == 4, "all behind it, also those behind another switch below it"


@pytest.mark.parametrize(("speed", "lane"), [(2.5, 0.25e9), (5, 0.5e9), (8, 0.985e9), (16, 1.969e9), (64, 7.56e9)])
def test_rate_of_a_lane(speed: float, lane: float) -> None:
    assert SharedLink("PCIe switch", speed, 4, ("S1", "S2")).bytes_per_s == pytest.approx(4 * lane, rel=1e-3)


def test_the_script_runs_on_this_computer() -> None:
    argv = ["sh", "-c", SCRIPT, "shared-path", *os.listdir("/sys/block")[:3]]  # noqa: PTH208  (names)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(parse(done.stdout, [drive(kname) for kname in argv[4:]])) == len(argv[4:])


def hanging(boot: str, knames: Sequence[str], *switched: str) -> tuple[DrivePath, ...]:
    drives = [drive(kname, f"{boot}-{kname}") for kname in knames]
    machine = ScriptedMachine().on("sh", answer=simulated_paths.text(boot, knames, switched))
    return paths(machine, drives)


def test_bays_are_warned_once_of_the_nearest_shared_thing() -> None:
    switched = [f"nvme{number}n1" for number in (2, 3, 4, 5, 6)]
    whole = hanging("one", [f"nvme{number}n1" for number in range(1, 8)], *switched)
    bays = {"a": whole[:2], "b": whole[2:6], "c": whole[6:], "d": hanging("other", switched, *switched)}
    (sentence,) = between(bays)
    for word in ("one-nvme2n1) of bay", "and 2 more", "PCIe switch 0000:3b:00.0"):
        assert word in sentence


def test_what_one_bay_alone_hangs_on_is_not_reported() -> None:
    knames = ["nvme1n1", "nvme2n1"]
    one, other = hanging("one", knames, *knames), hanging("other", knames, *knames)
    for bays in ({"a": one}, {"a": one, "b": other}, {"a": hanging("one", knames), "b": hanging("other", knames)}):
        assert between(bays) == ()


def test_expander_is_shared_by_two_hosts() -> None:
    expander, other = Shared("SAS expander", "0x500056b3a8b5b4ff"), Shared("SAS expander", "0x500056b3a8b5b4fe")
    first, second = Shared("SAS controller", "0000:05:00.0", "x"), Shared("SAS controller", "0000:05:00.0", "y")
    bays = {"a": [DrivePath(drive("sda"), (expander, first))], "b": [DrivePath(drive("sdb"), (expander, second))]}
    (sentence,) = between(bays)
    assert "SAS expander 0x500056b3a8b5b4ff" in sentence
    assert between({**bays, "b": [DrivePath(drive("sdb"), (other, second))]}) == ()


THINGS = [Shared("PCIe switch", str(number), "m") for number in range(4)]


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.lists(st.lists(st.sampled_from(THINGS), max_size=3), min_size=1, max_size=3)
    )
)
def test_exactly_the_bays_that_share_something_are_named(bays: dict[str, list[list[Shared]]]) -> None:
    hang = {
        bay: [DrivePath(drive(f"{bay}{n}"), tuple(on)) for n, on in enumerate(drives)] for bay, drives in bays.items()
    }
    told = between(hang)
    for one in bays:
        for other in bays:
            share = {thing for on in bays[one] for thing in on} & {thing for on in bays[other] for thing in on}
            said = any(f"of bay {one}" in each and f"of bay {other}" in each for each in told)
            assert one == other or said == bool(share)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "==end\n",
        f"- boot {BOOT}\n==end\n",
        f"- boot {BOOT}\n==drive nvme1n1\npath /sys/devices/x\n",
        f"- boot {BOOT}\n==drive nvme2n1\npath /sys/devices/x\n==end\n",
        "==drive nvme1n1\npath /sys/devices/x\n==end\n",
        f"- boot {BOOT}\n==drive nvme1n1\n==drive nvme1n1\n==end\n",
    ],
)
def test_what_is_no_answer_is_told(answer: str) -> None:
    with pytest.raises(RigError, match="no usable answer"):
        paths(ScriptedMachine().on("sh", answer=answer), [drive("nvme1n1")])


@given(st.text(alphabet="/:.=,pci0123abnvme \n\x1b-==drivetraddr", max_size=200))
def test_nothing_that_cannot_be_printed_leaves_it(text: str) -> None:
    answer = f"- boot {BOOT}\n==drive sda\npath /sys/devices/nvme1\nnvme1 transport tcp\nnvme1 address traddr={text}"
    try:
        found = parse(f"{answer}\n==end\n", [drive("sda")])
    except ValueError:
        return
    assert all(str(thing).isprintable() for each in found for thing in each.on)


def test_drive_may_be_in_one_bay_only() -> None:
    dual = drive("sda", "S1", wwn="0x5000c500a1b2c3d4"), drive("sdf", "S1", wwn="0x5000C500A1B2C3D4")
    spaces = drive("nvme0n1", "N 1", wwn="eui.01"), drive("nvme0n2", "n_1", wwn="eui.02")
    by_wwn, by_serial = same_drives({"a": [dual[0], spaces[0]], "b": [dual[1]], "c": [spaces[1]]})
    for sentence, words in (
        (by_wwn, ("/dev/sda", "/dev/sdf", "of bay b", "(same WWN 0x5000C500A1B2C3D4)")),
        (by_serial, ("/dev/nvme0n1", "/dev/nvme0n2", "of bay c", "(same serial n_1)")),
    ):
        assert all(word in sentence for word in words)
    others = {
        "a": [drive("sda", "S1", wwn="1"), drive("sdb", None, wwn="2"), drive("sdc", "0", model="Some")],
        "b": [drive("sda", "S2", wwn="3"), drive("sdb", None, wwn="4"), drive("sdc", "0", model="Other")],
    }
    assert same_drives(others) == ()
    assert same_drives({"a": [*others["a"], *others["a"]]}) == ()
