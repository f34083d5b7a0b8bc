"""The script that makes memory devices, on a fake sysfs and configfs: which devices it takes for its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.shells import SHELLS, run_script

from pytest_ssdqual.rig.md.ceiling import DEVICES, PREFIX

pytestmark = pytest.mark.slow

OWN, DEAD = "beef00", "dead00"
#: What the kernel does when a device gets its directory: it has no power, and the number 0.
MKDIR = """#!/bin/sh
PATH=${PATH#*:} mkdir "$1"; echo 0 >"$1/index"; echo 0 >"$1/power"
"""


@dataclass
class Computer:
    """A directory instead of ``/``; its tools record what they were asked for."""

    shell: str
    root: Path

    def __post_init__(self) -> None:
        for name in ("sys/kernel/config/nullb", "sys/block", "sys/module/null_blk", "dev", "run", "files", "bin"):
            (self.root / name).mkdir(parents=True)
        for name in ("mdadm", "modprobe", "rmmod"):
            self._tool(name, f'#!/bin/sh\necho {name} "$*" >>"{self.root}/asked"\n')
        # Files of configfs go with their directory.
        self._tool("rmdir", '#!/bin/sh\nrm -r "$1"\n')
        self._tool("mkdir", MKDIR)

    def _tool(self, name: str, text: str) -> None:
        (self.root / "bin" / name).write_text(text)
        (self.root / "bin" / name).chmod(0o755)

    def device(self, name: str, *, power: int, index: int) -> None:
        """A device in configfs."""
        directory = self.root / "sys/kernel/config/nullb" / name
        directory.mkdir()
        (directory / "power").write_text(f"{power}\n")
        (directory / "index").write_text(f"{index}\n")

    def array(self, on: str, name: str) -> None:
        """An array on a block device."""
        (self.root / "sys/block" / on / "holders" / name).mkdir(parents=True)

    def up(self, number: int = 0) -> list[str]:
        """Run the script and return the paths of the devices that it made."""
        script = DEVICES
        for name in ("/sys/", "/run/", "/dev/nullb"):
            script = script.replace(name, f"{self.root}{name}")
        words = "memory_devices", "up", PREFIX, OWN, f"{self.root}/files", f"{number}", "1"
        env = {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        return run_script(self.shell, script, *words, env=env).split()

    @property
    def asked(self) -> list[str]:
        """Calls of the tools, without the test of a module."""
        lines = (self.root / "asked").read_text().splitlines()
        return [line for line in lines if not line.startswith("modprobe null_blk")]


@pytest.fixture(params=SHELLS)
def computer(request: pytest.FixtureRequest, tmp_path: Path) -> Computer:
    return Computer(request.param, tmp_path)


@pytest.mark.parametrize(("name", "on"), [("a name", f"{PREFIX}{DEAD}n0"), ("a number", "nullb3")])
def test_memory_devices_stop_the_array_of_a_dead_run(computer: Computer, name: str, on: str) -> None:
    """Newer kernels name a device by its directory, older ones by its number."""
    computer.device(f"{PREFIX}{DEAD}n0", power=1, index=3)
    computer.array(on, "md200")
    computer.up()
    assert computer.asked == ["mdadm --stop /dev/md200"]
    assert list((computer.root / "sys/kernel/config/nullb").iterdir()) == []


@pytest.mark.parametrize("power", [0, 1])
def test_memory_devices_leave_arrays_on_other_devices_alone(computer: Computer, power: int) -> None:
    """The number of a device without power is 0; a name in configfs may be the number of another device."""
    computer.device(f"{PREFIX}{DEAD}n0", power=power, index=0)
    if power:
        computer.array(f"{PREFIX}{DEAD}n0", "md200")
    computer.array("nullb0", "md7")
    computer.up()
    assert computer.asked == (["mdadm --stop /dev/md200"] if power else [])
    assert list((computer.root / "sys/kernel/config/nullb").iterdir()) == []


def test_memory_devices_are_those_that_were_made(computer: Computer) -> None:
    """Another program gave its device the name that this one's number would have."""
    block_device = next(filter(Path.is_block_device, Path("/dev").iterdir()), None)
    if block_device is None:
        pytest.skip("no block device here")
    (computer.root / "dev/nullb0").symlink_to(block_device)
    computer.array(f"{PREFIX}{OWN}n0", "none")
    assert computer.up(1) == [f"/dev/{PREFIX}{OWN}n0"]


@pytest.mark.parametrize("is_ours", [True, False])
def test_memory_devices_unload_only_the_brd_of_a_dead_run(computer: Computer, *, is_ours: bool) -> None:
    """A run that is killed before it can note which module it loaded leaves a mark without the module's inode."""
    module = computer.root / "sys/module/brd"
    module.mkdir()
    (computer.root / f"run/{PREFIX}.brd").write_text(f"{DEAD} {module.stat().st_ino if is_ours else '-'}\n")
    computer.array("ram0", "md9")
    computer.up()
    assert computer.asked == (["mdadm --stop /dev/md9", "rmmod brd"] if is_ours else [])
