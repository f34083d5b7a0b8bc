"""Whether drives are locked, by answers in the form of nvme-cli and smartctl."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import SHELLS, run_script

from pytest_ssdqual.rig.drives.survey import Drive
from pytest_ssdqual.rig.health import inspection, locking
from pytest_ssdqual.rig.health.locking import Locking, objection, of_discovery, read

#: Codes of TCG: TPer, Locking, Geometry, Opal SSC 2.0.
TPER, LOCKING, GEOMETRY, OPAL = 0x0001, 0x0002, 0x0003, 0x0203
MADE = {"off": 0x09, "unlocked": 0x0B, "locked": 0x0F}


def feature(code: int, *data: int, length: int = 12) -> bytes:
    return code.to_bytes(2, "big") + bytes([0x10, length]) + bytes(data).ljust(length, b"\0")


def discovery(*features: bytes) -> bytes:
    """A Level 0 Discovery of 2,048 bytes, as a drive fills the buffer."""
    body = b"".join(features)
    header = (44 + len(body)).to_bytes(4, "big") + bytes([0, 0, 0, 1])
    return (header.ljust(48, b"\0") + body).ljust(2048, b"\0")


def of_opal(flags: int) -> bytes:
    return discovery(feature(TPER, 0x11), feature(LOCKING, flags), feature(GEOMETRY, length=28), feature(OPAL, 0x10))


def drive(kname: str, smart_type: str = "auto") -> Drive:
    made = Drive(f"/dev/{kname}", kname, "ACME", "S1", None, None, 1 << 30, 512, 512, False, "nvme")
    return replace(made, smart_type=smart_type)


@pytest.mark.parametrize("state", MADE)
def test_the_locking_feature_says_whether_a_drive_is_locked(state: str) -> None:
    assert of_discovery(list(of_opal(MADE[state]))) is Locking(state)


def test_a_drive_without_the_feature_cannot_be_locked() -> None:
    assert of_discovery(list(discovery(feature(TPER, 0x11)))) is Locking.OFF


@pytest.mark.parametrize("data", [b"", b"\0" * 512, of_opal(0x0F)[:47], b"NVME Security Receive"])
def test_what_is_no_discovery_is_unknown(data: bytes) -> None:
    assert of_discovery(list(data)) is None


@given(st.lists(st.integers(0, 255), max_size=200))
def test_any_bytes_are_read_without_an_error(data: list[int]) -> None:
    assert of_discovery(data) in (None, *Locking)


ANSWERS = f"""\
nvme0n1 discovery {" ".join(map(str, of_opal(0x0F)))}
nvme1n1 discovery {" ".join(map(str, of_opal(0x09)))}
nvme2n1 discovery
sda security {{"ata_security":{{"state":41,"string":"ENABLED, **LOCKED** [SEC6]","enabled":true,"locked":true}}}}
sdb security {{"ata_security":{{"state":33,"string":"Disabled, frozen [SEC2]","enabled":false,"frozen":true}}}}
sdc security {{"smartctl":{{"exit_status":2}}}}
sdd security
"""


def test_each_kind_of_drive_is_read_and_unknown_stays_unknown() -> None:
    drives = [drive(name) for name in ("nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1", "sda", "sdb", "sdc", "sdd")]
    machine = ScriptedMachine().on("sh", "-c", locking.SCRIPT, answer=completed((), ANSWERS))
    assert read(machine, drives) == {
        "/dev/nvme0n1": Locking.LOCKED, "/dev/nvme1n1": Locking.OFF,
        "/dev/sda": Locking.LOCKED, "/dev/sdb": Locking.OFF,
    }  # fmt: skip


def test_only_a_drive_that_is_locked_is_refused_with_the_cure() -> None:
    assert "sedutil-cli" in objection(Locking.LOCKED)
    assert objection(Locking.UNLOCKED) == objection(Locking.OFF) == ""


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("oacs", [0x10A, 0x10B])
def test_the_script_asks_only_a_drive_that_knows_the_command(tmp_path: Path, shell: str, oacs: int) -> None:
    """An unknown command adds an entry to the error log of some drives."""
    (tmp_path / "answer").write_bytes(of_opal(0x0F))
    program = f"""#!/bin/sh
echo "$*" >>{tmp_path}/asked
case $1 in
id-ctrl) printf '{{\\n  "vid":6966,\\n  "oacs":{oacs},\\n  "acl":3\\n}}\\n' ;;
security-recv) cat {tmp_path}/answer ;;
esac
"""
    for name in ("nvme", "smartctl"):
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    words = "locking", "nvme0n1", "/dev/nvme0n1", "auto", "sda", "/dev/sda", "none"
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    answer = completed((), run_script(shell, locking.SCRIPT, *words, env=env))
    machine = ScriptedMachine().on("sh", "-c", locking.SCRIPT, answer=answer)
    expected = {"/dev/nvme0n1": Locking.LOCKED} if oacs & 1 else {}
    assert read(machine, [drive("nvme0n1"), drive("sda", "none")]) == expected
    assert ("security-recv" in (tmp_path / "asked").read_text()) is bool(oacs & 1)


@pytest.mark.parametrize(("state", "enabled"), [("off", False), ("unlocked", None), ("locked", True)])
def test_the_inspection_has_the_state_of_an_nvme_drive(state: str, enabled: bool | None) -> None:
    smart = (Path(__file__).parents[2] / "data" / "smartctl" / "qemu-nvme-7.3.json").read_text()
    found = inspection.record(drive("nvme0n1"), {"smart": smart, "discovery": " ".join(map(str, of_opal(MADE[state])))})
    assert (found.security_enabled, found.security_locked) == (enabled, state == "locked")
