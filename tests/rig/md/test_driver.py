"""The kernel's md driver: loaded before anything is purged, and missing only where that is known."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

import pytest
from support.fakes.scripted import ScriptedMachine
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.raid.geometry import RaidLevel
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.md import driver

#: Loads the modules that are listed in a file, as the kernel shows them.
MODPROBE = """#!/bin/sh
[ "$1" = -n ] && dry=yes && shift
grep -qx "$1" {root}/known || {{ echo "modprobe: FATAL: Module $1 not found"; exit 1; }}
[ "$dry" ] || echo "$1" >>{root}/loaded
"""


def test_bare_drives_need_no_md() -> None:
    driver.require(ScriptedMachine(), [RaidLevel.DRIVE])


def test_modules_of_all_levels_are_loaded_once() -> None:
    machine = ScriptedMachine().on("sh")
    driver.require(machine, list(RaidLevel))
    assert machine.asked[0][4:] == ("", "raid0", "raid1", "raid10", "raid456")


def test_modules_are_asked_for_and_unknown_ones_not_missing() -> None:
    said = "raid1: modprobe: FATAL: Module raid1 not found"
    machine = ScriptedMachine().on("sh", answer=f"{said}\nraid456:\n")
    lacking = driver.missing(machine, [RaidLevel.RAID1, RaidLevel.RAID5], load=False)
    assert lacking == {"raid1": said, "raid456": ""}
    assert machine.asked[0][4:] == ("-n", "raid1", "raid456")
    driver.require(ScriptedMachine().on("sh", answer="raid456:\n"), [RaidLevel.RAID5])


def test_machine_without_md_is_an_error_of_the_rig() -> None:
    said = "md_mod: modprobe: FATAL: Module md_mod not found\n"
    with pytest.raises(RigError, match="scripted") as caught:
        driver.require(ScriptedMachine().on("sh", answer=said), [RaidLevel.RAID5])
    assert said.strip() in str(caught.value)


def missing(
    root: Path, shell: str, known: str, mdstat: str | None, mode: str, *, has_modules: bool, has_modprobe: bool
) -> str:
    """What the script reports of raid1 and raid456."""
    (root / "bin").mkdir()
    for tool in ("sh", "grep", "tail", "uname"):
        (root / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    if has_modprobe:
        (root / "bin/modprobe").write_text(MODPROBE.format(root=root))
        (root / "bin/modprobe").chmod(0o755)
    if has_modules:
        (root / "lib/modules" / platform.release()).mkdir(parents=True)
    if mdstat is not None:
        (root / "proc").mkdir()
        (root / "proc/mdstat").write_text(mdstat)
    (root / "known").write_text(known)
    script = driver.LOAD.replace("root=\n", f"root={root}\n", 1)
    environment = {**os.environ, "PATH": str(root / "bin")}
    return run_script(shell, script, "md_driver", mode, "raid1", "raid456", env=environment)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("mode", ["", "-n"])
@pytest.mark.parametrize(
    ("known", "mdstat", "has_modules", "has_modprobe", "lacking"),
    [
        ("md_mod\nraid1\nraid456\n", None, True, True, []),
        ("", "Personalities : [raid1] [raid6] [raid5] [raid4] \n", True, True, []),
        ("md_mod\nraid1\n", None, True, True, ["raid456"]),
        ("", None, True, True, ["md_mod", "raid1", "raid456"]),
        # A container: its modprobe cannot know what the kernel of the host has.
        ("", None, False, True, []),
        ("", "Personalities : \n", True, False, []),
    ],
)
def test_module_is_missing_only_if_modprobe_can_know_it(
    tmp_path: Path, shell: str, mode: str, known: str, mdstat: str | None, has_modules: bool, has_modprobe: bool,
    lacking: list[str],
) -> None:  # fmt: skip
    said = missing(tmp_path, shell, known, mdstat, mode, has_modules=has_modules, has_modprobe=has_modprobe)
    assert [line.partition(":")[0] for line in said.splitlines() if not line.endswith(":")] == lacking
    is_there = {"md_mod", "raid1", "raid456"} & set(known.split())
    loaded = tmp_path / "loaded"
    assert set(loaded.read_text().split() if loaded.exists() else ()) == (set() if mode else is_there)
