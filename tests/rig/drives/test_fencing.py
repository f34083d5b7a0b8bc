from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.bound_commands import bound_to, unbound
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import with_each_shell

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.rig.drives import fencing
from pytest_ssdqual.rig.drives.fencing import BOUND, BUSY, REFUSED, Checked, bound
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, DriveRefused

pytestmark = pytest.mark.slow

DRIVE = Drive("/dev/sdb", "sdb", "ACME SSD", "S 1", "0x5000c500a1b2c3d4", None, 480, 512, 512, False, "sata")
OTHER = Drive("/dev/sdc", "sdc", "ACME SSD", "S2", None, None, 960, 512, 512, False, "sata")

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
words = st.lists(texts, min_size=1)


@given(words, st.lists(st.builds(Checked, texts, st.integers(0), texts, texts), max_size=4), st.booleans())
def test_a_bound_command_can_be_told_from_its_binding(argv: list[str], devices: list[Checked], alone: bool) -> None:
    whole = bound(argv, devices, alone=alone)
    assert unbound(whole) == tuple(argv)
    other = "itself" if argv[0] == "blkdiscard" else "beside"
    assert bound_to(whole) == ("alone" if alone else other, tuple(each.path for each in devices))
    assert bound_to(argv) == ("", ())
    assert unbound(argv) == tuple(argv)
    assert whole[:3] == ("sh", "-c", BOUND), "names are parameters, never part of a script"


@given(st.text(max_size=25))
def test_a_name_that_was_made_printable_is_the_drive_s_own_again(raw: str) -> None:
    shown = safe_text.name(raw)
    assert Checked.of(Drive("/dev/x", "x", None, shown, None, None, 1, 1, 1, False, None)).serial == raw


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (f"/dev/sdb: {BUSY}\n", "/dev/sdb (ACME SSD, serial S 1) is in use: it could not be opened exclusively"),
        ("x\n/dev/sdc: No such file or directory\n", "/dev/sdc (ACME SSD, serial S2): No such file or directory"),
        (
            "/dev/sdc is not the drive that was checked: its serial is not S2\n",
            "/dev/sdc (ACME SSD, serial S2) is not the drive that was checked: its serial is not S2",
        ),
        ("/dev/sdbc: oh\n", "/dev/sdbc: oh"),
    ],
)
def test_command_that_was_not_run_is_a_refusal_of_the_drive(stderr: str, message: str) -> None:
    here = ScriptedMachine().on("mdadm", answer=completed(["mdadm"], status=REFUSED, stderr=stderr))
    for check in (True, False):
        with pytest.raises(DriveRefused) as refusal:
            fencing.run(here, ["mdadm"], [DRIVE, OTHER], alone=False, deadline_s=1.0, check=check)
        assert str(refusal.value) == message


def test_a_command_that_failed_is_told_by_its_own_name() -> None:
    failed = completed(["mdadm"], status=1, stderr="mdadm: no\n")
    here = ScriptedMachine().on("mdadm", answer=failed)
    with pytest.raises(CommandFailed, match=r"failed: mdadm: no$"):
        fencing.run(here, ["mdadm", "--create"], [DRIVE], alone=False, deadline_s=1.0)
    assert fencing.run(here, ["mdadm"], [DRIVE], alone=False, deadline_s=1.0, check=False) is failed


#: What holds the drives.
HOLDERS = ("perl", "python3")
WWN = "0x5000c500a1b2c3d4"
LSBLK = """#!/bin/sh
case $* in *SERIAL*) printf '%s\\n' '  S 1   ' ;; *WWN*) printf '%s\\n' 0x5000c500a1b2c3d4 ;; esac
"""


@dataclass(frozen=True)
class Computer:
    """This one, with few programs, and a device whose names only lsblk knows."""

    device: str
    size_bytes: int
    path: Path

    def run(self, argv: Sequence[str]) -> Completed:
        done = subprocess.run(argv, capture_output=True, env={"PATH": str(self.path), "LC_ALL": "C"}, timeout=60)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr, "", 0.0)

    def checked(self, serial: str = "S 1", wwn: str = "0x5000c500a1b2c3d4", more_bytes: int = 0) -> Checked:
        return Checked(self.device, self.size_bytes + more_bytes, serial, wwn)

    def answer(self, *devices: Checked, alone: bool = False) -> tuple[int, str, str]:
        done = self.run(bound(["printf", "%s,", "ran", "$(exit 1)", "a b"], devices, alone=alone))
        return done.status, done.text, done.errors.strip()


@pytest.fixture
def some_device() -> Iterator[tuple[str, int]]:
    """A block device that nobody has open alone; other workers wait until the test has ended."""
    with ExitStack() as stack:
        for device in sorted(Path("/sys/class/block").glob("*")):
            path = Path("/dev") / device.name
            if path.is_block_device() and not (device / "partition").exists() and not list(device.glob("*serial")):
                try:
                    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    stack.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_EXCL))
                except OSError:
                    continue
                yield str(path), int((device / "size").read_text()) * 512
                return
    pytest.skip("no block device here can be opened")


@pytest.fixture(params=with_each_shell(HOLDERS))
def computer(request: pytest.FixtureRequest, tmp_path: Path, some_device: tuple[str, int]) -> Computer:
    device, size_bytes = some_device
    shell, holder = request.param
    for name, target in {"sh": shell, "stat": "stat", "printf": "printf", "sleep": "sleep", holder: holder}.items():
        found = sys.executable if name == "python3" else shutil.which(target)
        if not found:
            pytest.skip(f"there is no {target} here")
        (tmp_path / name).symlink_to(Path(found).resolve())
    (tmp_path / "lsblk").write_text(LSBLK)
    (tmp_path / "lsblk").chmod(0o755)
    return Computer(device, size_bytes, tmp_path)


def test_a_command_runs_on_the_drives_that_were_checked(computer: Computer) -> None:
    every = [computer.checked(), computer.checked(wwn=""), computer.checked(serial="")]
    assert computer.answer(*every) == (0, "ran,$(exit 1),a b,", "")
    assert computer.answer(computer.checked(), alone=True) == (0, "ran,$(exit 1),a b,", "")


def test_command_does_not_run_on_others(computer: Computer) -> None:
    for checked, why in (
        (computer.checked(serial="S1"), "its serial is not S1"),
        (computer.checked(serial="S * 1"), "its serial is not S * 1"),
        (computer.checked(wwn="0x5000c500a1b2c3d5"), "its WWN is not 0x5000c500a1b2c3d5"),
        (computer.checked(more_bytes=512), f"it has {computer.size_bytes} bytes"),
        (Checked("/dev/nothing at all", 0), "/dev/nothing at all"),
    ):
        status, said, errors = computer.answer(computer.checked(), checked)
        assert (status, said) == (REFUSED, "")
        assert why in errors


ANY = {"serial": "", "wwn": ""}


@pytest.mark.parametrize(
    ("kname", "checked", "sysfs", "is_same"),
    [
        ("nvme9n1", {"serial": "S_1"}, {"device/serial": "S 1   "}, True),
        ("nvme9n1", {"serial": "S 1"}, {"device/serial": "S 2   "}, False),
        ("vdz", {"serial": "S 1"}, {"serial": "S2"}, False),
        ("nvme9n1", {"serial": "S 1"}, {"device/serial": "    "}, True),
        ("mmcblk9", {"serial": "S 1"}, {"device/serial": "0x12345678"}, True),
        ("sdz", {"wwn": WWN}, {"device/wwid": "naa.5000c500a1b2c3d4"}, True),
        ("sdz", {"wwn": WWN}, {"device/wwid": "naa.5000c500a1b2c3d5"}, False),
        ("usb3/sdz", {"wwn": WWN}, {"device/wwid": "naa.5000c500a1b2c3d5"}, True),
        ("sdz", {"wwn": WWN}, {"device/wwid": "naa.6000c500a1b2c3d5"}, True),
        ("sdz", {"wwn": WWN}, {"device/wwid": "naa.5000c500a1b2c3d50000000000000000"}, True),
        ("sdz", {"wwn": WWN}, {"device/wwid": "t10.ATA     ACME SSD                S 2"}, True),
        ("nvme9n1", {"wwn": WWN}, {"wwid": "eui.0025385b01234567"}, True),
    ],
)
def test_kernel_may_contradict_udev(
    computer: Computer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kname: str,
    checked: dict[str, str],
    sysfs: dict[str, str],
    is_same: bool,
) -> None:
    """lsblk reports the names of the drive that was here before; sysfs spells some otherwise, or has others."""
    number = Path(computer.device).stat().st_rdev
    node = tmp_path / "devices" / kname
    for name, value in {"size": str(computer.size_bytes // 512), **sysfs}.items():
        (node / name).parent.mkdir(parents=True, exist_ok=True)
        (node / name).write_text(f"{value}\n")
    (tmp_path / f"{os.major(number)}:{os.minor(number)}").symlink_to(node)
    monkeypatch.setattr(fencing, "CHECK", fencing.CHECK.replace("/sys/dev/block/", f"{tmp_path}/"))
    if "_" in checked.get("serial", ""):
        (computer.path / "lsblk").write_text(LSBLK.replace("S 1", "S_1"))
    names = ANY | checked
    status, said, errors = computer.answer(computer.checked(names["serial"], names["wwn"]))
    assert (status, said) == ((0, "ran,$(exit 1),a b,") if is_same else (REFUSED, "")), errors


@pytest.mark.parametrize("argv", [["printf", "ran"], ["blkdiscard", "--help"]])
@pytest.mark.parametrize("alone", [True, False])
def test_without_perl_and_python_no_command_runs(computer: Computer, argv: list[str], alone: bool) -> None:
    for holder in HOLDERS:
        (computer.path / holder).unlink(missing_ok=True)
    done = computer.run(bound(argv, [computer.checked()], alone=alone))
    assert (done.status, done.text) == (REFUSED, "")
    assert "neither is there" in done.errors


MDADM = """#!/bin/sh
[ "$1 $2" != '--detail --export' ] || printf '%s\\n' MD_LEVEL=raid5 MD_UUID=3aaa0122:29827cfa:5331ad66:ca767371
"""


def test_a_command_runs_on_the_array_of_a_uuid_only(computer: Computer) -> None:
    for name in ("tr", "sed"):
        (computer.path / name).symlink_to(str(shutil.which(name)))
    array = Checked(computer.device, computer.size_bytes, uuid="3aaa0122:29827cfa:5331ad66:ca767371")
    status, said, errors = computer.answer(array)
    assert (status, said) == (REFUSED, "")
    assert errors.startswith(computer.device)
    assert errors.endswith(array.uuid)
    (computer.path / "mdadm").write_text(MDADM)
    (computer.path / "mdadm").chmod(0o755)
    assert computer.answer(array) == (0, "ran,$(exit 1),a b,", "")
    assert computer.answer(replace(array, uuid="3aaa0122:29827cfa:5331ad66:ca767370"))[:2] == (REFUSED, "")


def test_a_serial_number_is_no_uuid(computer: Computer) -> None:
    """A drive may report any text; this one once passed for a device that is no array."""
    assert computer.answer(computer.checked(serial="MD_UUID=", wwn=""))[:2] == (REFUSED, "")
    lsblk = computer.path / "lsblk"
    lsblk.write_text(LSBLK.replace("'  S 1   '", "MD_UUID=1"))
    assert computer.answer(computer.checked(serial="MD_UUID=1"))[:2] == (0, "ran,$(exit 1),a b,")


@contextmanager
def running(computer: Computer, argv: Sequence[str], *, alone: bool) -> Iterator[None]:
    """A bound command that prints ``on`` and stays."""
    environment = {"PATH": str(computer.path), "LC_ALL": "C"}
    whole = bound(argv, [computer.checked()], alone=alone)
    with subprocess.Popen(whole, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"on\n"
            yield
        finally:
            process.kill()


RAN = (0, "ran,$(exit 1),a b,")


def test_command_is_alone_for_as_long_as_it_runs(computer: Computer) -> None:
    with running(computer, ["sh", "-c", "echo on; exec sleep 600"], alone=True):
        with pytest.raises(OSError, match="busy"):
            os.open(computer.device, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK)
        assert computer.answer(computer.checked(), alone=True) == (REFUSED, "", f"{computer.device}: {BUSY}")
        assert computer.answer(computer.checked())[:2] == RAN, "beside it there is room"
    assert computer.answer(computer.checked(), alone=True)[0] == 0


@pytest.mark.parametrize(("usage", "claims"), [("-f, --force  disable all checking", True), ("-s, --secure", False)])
def test_blkdiscard_that_does_not_claim_its_drive_gets_it_alone(computer: Computer, usage: str, claims: bool) -> None:
    """Before util-linux 2.36 it opens the drive without O_EXCL, and has no --force."""
    script = f'#!/bin/sh\ncase $* in --help) echo "{usage}" ;; *) echo on; exec sleep 600 ;; esac\n'
    (computer.path / "blkdiscard").write_text(script)
    (computer.path / "blkdiscard").chmod(0o755)
    with running(computer, ["blkdiscard", computer.device], alone=False):
        assert computer.answer(computer.checked(), alone=True)[:2] == (RAN if claims else (REFUSED, ""))
