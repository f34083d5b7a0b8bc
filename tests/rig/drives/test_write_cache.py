"""The state of a write cache and its switch: the script on a made-up /sys with made-up tools, and hostile answers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.wrong_deliveries import drive
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import SHELLS, run_script
from support.simulator.simulated_caches import Caches

from pytest_ssdqual.rig.drives import fencing, write_cache
from pytest_ssdqual.rig.drives.cache_state import CacheState
from pytest_ssdqual.rig.drives.write_cache import SCRIPT, Switched, by_hand, read, state, switch
from pytest_ssdqual.rig.machine.machine import CommandFailed, DriveRefused

ID_CTRL = (Path(__file__).parents[2] / "data/nvme-cli/2.3/id-ctrl.json").read_text()
NVME, SATA = drive("nvme", 0), drive("sata", 0)
ON, OFF, ABSENT, UNKNOWN = CacheState
#: Drives that keep their state in a file; ``refuse`` is what they refuse with.
NVME_CLI = """
echo "nvme $*" >>log
case $1 in
id-ctrl) cat identify ;;
get-feature) echo "get-feature:0x06 (Volatile Write Cache), Current value:0x0000000$(cat state)" ;;
admin-passthru)
    [ ! -e refuse ] || { cat refuse >&2; exit 1; }
    case $* in *--cdw11=1*) echo 1 ;; *) echo 0 ;; esac >state ;;
esac
"""
SMARTCTL = """
echo "smartctl $*" >>log
printf 'smartctl 7.3\\n\\n=== START OF INFORMATION SECTION ===\\n'
case $(cat type) in 'write back'*) said=Enabled ;; *) said=Disabled ;; esac
echo "Write cache is:   $said"
"""


class Rig:
    """A machine's /sys with one drive of each kind."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir()
        for name, body in {"nvme": NVME_CLI, "smartctl": SMARTCTL}.items():
            (root / "bin" / name).write_text(f"#!/bin/sh\ncd {root}{body}")
            (root / "bin" / name).chmod(0o755)
        (root / "bin" / "cat").symlink_to(shutil.which("cat") or "cat")
        (root / "identify").write_text(ID_CTRL)
        (root / "state").write_text("1\n")
        self.type = root / "sys/block/sdb/device/scsi_disk/2:0:0:0/cache_type"
        self.type.parent.mkdir(parents=True)
        (root / "type").symlink_to(self.type)
        self.type.write_text("write back\n")

    def run(self, shell: str, name: str, to: str, smart_type: str = "auto") -> str:
        environment = {"PATH": str(self.root / "bin"), "sys": str(self.root / "sys")}
        return run_script(shell, SCRIPT, "write_cache", name, f"/dev/{name}", smart_type, to, env=environment)

    def switched(self, shell: str, name: str, to: str) -> Switched:
        """What the program makes of the script's real answer."""
        found = replace(NVME if name.startswith("nvme") else SATA, kname=name, path=f"/dev/{name}")
        machine = ScriptedMachine().on("sh", "-c", SCRIPT, answer=lambda argv: self.run(shell, argv[4], argv[7]))
        return switch(machine, found, CacheState(to))


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_nvme_is_switched_for_the_controller_and_read_again(rig: Rig, shell: str) -> None:
    assert rig.switched(shell, "nvme0n1", "off") == Switched(ON, OFF)
    log = (rig.root / "log").read_text()
    assert "--opcode=9 --cdw10=6 --cdw11=0" in log
    assert log.count("get-feature --feature-id=6") == 2
    assert rig.switched(shell, "nvme0n1", "on") == Switched(OFF, ON)


def test_drive_that_refuses_is_in_the_state_that_it_reports(rig: Rig, shell: str) -> None:
    refusal = "NVMe status: Feature Not Changeable(0x10e)"
    (rig.root / "refuse").write_text(f"{refusal}\n")
    assert rig.switched(shell, "nvme0n1", "off") == Switched(ON, ON, refusal)


@pytest.mark.parametrize(
    ("found", "off", "on"),
    [
        ("write back", "write through", "write back"),
        ("write back, no read (daft)", "none", "write back, no read (daft)"),
        ("write through", "write through", "write back"),
        ("none", "none", "write back, no read (daft)"),
    ],
)
def test_kernel_switches_scsi_and_keeps_the_bit_for_reads(rig: Rig, shell: str, found: str, off: str, on: str) -> None:
    rig.type.write_text(f"{found}\n")
    was = ON if "back" in found else OFF
    assert rig.switched(shell, "sdb", "off") == Switched(was, OFF)
    assert rig.type.read_text() == f"{off}\n"
    assert rig.switched(shell, "sdb", "on") == Switched(OFF, ON)
    assert rig.type.read_text() == f"{on}\n"


def test_reading_switches_nothing(rig: Rig, shell: str) -> None:
    assert state(rig.run(shell, "sdb", "read")) is state(rig.run(shell, "nvme0n1", "read")) is ON
    assert "admin-passthru" not in (rig.root / "log").read_text()
    assert rig.type.read_text() == "write back\n"
    (rig.root / "log").unlink()
    rig.type.write_text("none\n")
    assert state(rig.run(shell, "sdb", "read", "none")) is OFF
    assert not (rig.root / "log").exists(), "smartctl is not run for a drive that it cannot open"


def test_drive_without_a_switch_of_the_kernel_is_left_as_it_is(rig: Rig, shell: str) -> None:
    rig.type.unlink()
    done = rig.switched(shell, "vda", "off")
    assert (done.before, done.after) == (OFF, OFF)  # of the made-up smartctl, whose drive is gone
    assert "cache_type" in done.printed


@pytest.mark.parametrize(
    ("report", "found"),
    [
        ('==identify\n{"vwc": 0}\n==feature\nCurrent value:0x00000001\n', ABSENT),
        ('==identify\n{"vwc": 7}\n==feature\nget-feature:0x06 (Volatile Write Cache), Current value:00000000\n', OFF),
        ("==identify\nno JSON\n==feature\nget-feature:0x6 (Volatile Write Cache), Current value:0x000001\n", ON),
        ('==identify\n{"vwc": 1}\n==feature\nNVMe status: INVALID_FIELD(0x2)\n', UNKNOWN),
        ('==identify\n{"vwc": true}\n==feature\n', UNKNOWN),
        ("==drive\nWrite cache is:   Enabled\n==kernel\nwrite through\n", ON),
        ("==drive\nWrite cache is:   Unavailable\n==kernel\nwrite through\n", ABSENT),
        ("==drive\nWriteback Cache is:   Disabled\n==kernel\nwrite back\n", OFF),
        (
            "==drive\nRead Cache is:        Enabled\nWriteback Cache is:   Unavailable\n==kernel\nwrite through\n",
            UNKNOWN,
        ),
        ("==drive\nSmartctl open device: failed\n==kernel\nwrite back, no read (daft)\n", ON),
        ("==drive\n==kernel\nnone\n", OFF),
        ("==drive\n==kernel\ntemporary\n", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_state_is_the_drive_s_own_answer_and_else_the_kernel_s(report: str, found: CacheState) -> None:
    assert state(f"==report\n{report}==end\n") is found


@given(st.text())
def test_state_of_any_text(text: str) -> None:
    report = "".join(f"=={section}\n{text}\n" for section in ("identify", "feature", "drive", "kernel"))
    assert state(text) in CacheState
    assert state(report) in CacheState


def test_answer_that_was_cut_short_is_no_state() -> None:
    whole = Caches().answer("S", "off")
    for end in (0, 20, len(whole) - 1):
        machine = ScriptedMachine().on("sh", "-c", SCRIPT, answer=whole[:end])
        with pytest.raises(CommandFailed, match="was cut short"):
            switch(machine, NVME, OFF)


def test_command_is_bound_to_the_drive_that_was_checked() -> None:
    machine = ScriptedMachine().on("sh", "-c", SCRIPT, answer=Caches().answer("S", "read"))
    assert read(machine, NVME) is ON
    assert machine.bound == [("beside", NVME.path, ("sh", "-c"))]
    gone = completed((), status=fencing.REFUSED, stderr=f"{NVME.path} is not the drive that was checked: it is gone")
    machine.on("sh", "-c", SCRIPT, answer=gone)
    with pytest.raises(DriveRefused, match="it is gone"):
        switch(machine, NVME, OFF)


def test_command_for_a_person_is_what_the_program_does() -> None:
    assert by_hand(NVME, ON).endswith("--opcode=9 --cdw10=6 --cdw11=1")
    assert by_hand(SATA, OFF).startswith("echo write through")
    assert "/sys/block/cciss!c0d0/device" in by_hand(replace(SATA, kname="cciss/c0d0"), OFF)
    assert {write_cache.KERNEL["write back"], write_cache.KERNEL["write through"]} == {ON, OFF}
