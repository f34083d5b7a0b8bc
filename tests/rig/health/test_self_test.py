"""Self-tests begin with the lease alone; the script that begins and ends them, with made-up tools."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.builders import inspected
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine
from support.shells import SHELLS, run_script

from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.health import inspection, self_test
from pytest_ssdqual.rig.machine.machine import RigError
from pytest_ssdqual.rig.machine.side_by_side import PermittedMachine

DRIVES = "nvme0n1", "/dev/nvme0n1", "auto", "sdb", "/dev/sdb", "megaraid,4"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with nvme-cli, which refuses with a status whose lowest bits are 0, and smartctl.

    Both write down what they were given.
    """
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, ending in (("nvme", "echo NVMe status: busy; exit 8"), ("smartctl", "exit 64")):
        tool = folder / name
        tool.write_text(f'#!/bin/sh\necho {name} "$@" >>{tmp_path}/given\n{ending}\n')
        tool.chmod(0o755)
    return folder


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("what", "nvme_code", "smartctl_words"),
    [("short", "1", "-t short"), ("extended", "2", "-t long"), ("end", "0xf", "-X")],
)
def test_each_kind_of_drive_gets_its_own_command(
    tools: Path, shell: str, what: str, nvme_code: str, smartctl_words: str
) -> None:
    environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
    answers = run_script(shell, self_test.SCRIPT, "self-test", what, *DRIVES, env=environment)
    of_nvme, of_sata = ((tools.parent / "given").read_text()).splitlines()
    assert of_nvme.endswith(f"/dev/nvme0n1 --self-test-code={nvme_code}")
    assert of_sata.endswith(f"-d megaraid,4 {smartctl_words} /dev/sdb")
    refused, accepted = answers.splitlines()
    assert "exit status 1" in refused
    assert "busy" in refused
    assert not accepted.strip(), "bit 6 of smartctl's exit status is an old entry of the drive's log"


def test_none_begins_when_the_lease_is_lost_while_the_drives_are_inspected() -> None:
    machine = ScriptedMachine().on(
        "sh", "-c", inspection.SCRIPT, answer=f"==drive {drive(0).sysfs_name}\n==smart\n{{}}\n==end\n"
    )

    def permit() -> None:
        if machine.asked:
            raise LeaseLost("the lease ended")

    with pytest.raises(LeaseLost):
        self_test.run(PermittedMachine(machine, permit), [drive(0)], lambda what, seconds: None)
    assert len(machine.asked) == 1


def test_a_drive_that_refused_is_left_alone_when_the_others_cannot_begin() -> None:
    long, short = drive(0), drive(1)
    answers = inspected.text(long.sysfs_name, {**inspected.nvme(), "id-ctrl": '{"oacs": 16, "edstt": 30}'})
    answers += inspected.text(short.sysfs_name, {**inspected.nvme(), "id-ctrl": '{"oacs": 16}'})
    machine = ScriptedMachine().on("sh", "-c", inspection.SCRIPT, answer=f"{answers}==end\n")
    script = "sh", "-c", self_test.SCRIPT, "self-test"
    machine.on(*script, "extended", answer="refused with exit status 1: busy\n")
    machine.on(*script, "short", answer=RigError("the connection was lost"))
    machine.on(*script, "end", answer="\n")
    with pytest.raises(RigError, match="connection"):
        self_test.run(PermittedMachine(machine, lambda: None), [long, short], lambda what, s: None, extended=True)
    assert [asked[4:6] for asked in machine.asked[1:]] == [
        ("extended", long.kname), ("short", short.kname), ("end", short.kname),
    ]  # fmt: skip
    assert len(machine.asked[-1]) == 8


def test_a_drive_that_refused_ran_none() -> None:
    answer = inspected.text(drive(0).sysfs_name, {**inspected.nvme(), "id-ctrl": '{"oacs": 16, "edstt": 30}'})
    machine = ScriptedMachine().on("sh", "-c", inspection.SCRIPT, answer=f"{answer}==end\n")
    machine.on("sh", "-c", self_test.SCRIPT, answer="refused with exit status 1: busy\n")
    tested = self_test.run(PermittedMachine(machine, lambda: None), [drive(0)], lambda what, s: None, extended=True)
    assert "busy" in tested.results[drive(0).name]
    assert tested.extended_s == {}
