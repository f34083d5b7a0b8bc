"""Who has drives open: the script on this machine's own /proc, and what is made of its answers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.fakes.line_answers import Answers
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.measured.environment import OpenFile
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.observe import open_files

SG, READER = "sda 737 generic sg_dd", "sda 41 read dd"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with sda, which has a partition and a generic device, and nvme0n1; two processes have files open."""
    for name in ("sys/block/sda/sda1/partition", "sys/block/sda/device/scsi_generic/sg3/dev"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "sys/block/sda/device/bsg/0:0:0:0").mkdir(parents=True)
    (tmp_path / "sys/block/nvme0n1").mkdir()
    opened = {
        "737": ("sg_dd", ["/dev/sg3", "/dev/null"]),
        "738": ("my program", ["/dev/sda1", "/dev/ng0n1", "/dev/bsg/0:0:0:0"]),
        "739": ("bash", ["/dev/sdab", "/home/x -> /dev/sda", "socket:[123]"]),
    }
    for pid, (program, targets) in opened.items():
        (tmp_path / "proc" / pid / "fd").mkdir(parents=True)
        (tmp_path / "proc" / pid / "comm").write_text(f"{program}\n")
        for number, target in enumerate(targets):
            (tmp_path / "proc" / pid / "fd" / str(number)).symlink_to(target)
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_finds_every_node_of_a_drive(root: Path, shell: str) -> None:
    script = open_files.FUNCTIONS
    for name in ("/proc/", "/sys/"):
        script = script.replace(name, f"{root}{name}")
    words = [word for name in ("sda", "nvme0n1") for word in (name, f"/dev/{name}", "auto")]
    found = open_files.parse(run_script(shell, f'{script}\nopened "$@"', "opened", *words).splitlines())
    # A link of this file system is open for all; those of /proc are as their files are.
    assert {(name, each.program, each.pid, each.access) for name, files in found.items() for each in files} == {
        ("sda", "sg_dd", 737, "generic"),
        ("sda", "my program", 738, "write"),
        ("sda", "my program", 738, "generic"),
        ("nvme0n1", "my program", 738, "generic"),
    }


@pytest.mark.parametrize("line", ["", "sda", "sda x generic a", "sda 1 other a", "0 0 0 0 0 0 24"])
def test_what_is_malformed_is_left_out(line: str) -> None:
    assert open_files.parse([line]) == {}


def watched(answers: Sequence[str], geometry: str = "drivex2") -> tuple[OpenFile, ...]:
    server = Answers(answers)
    started: list[Sequence[str]] = []

    def start(argv: Sequence[str]) -> Answers:
        started.append(argv)
        return server

    machine = SimpleNamespace(line_process=start)
    drive = SimpleNamespace(sysfs_name="sda", path="/dev/sda")
    array = SimpleNamespace(geometry=Geometry.parse(geometry), members=(drive,))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FIRST_S", "PERIOD_S", "STAYS_S"):
            patch.setattr(open_files, name, 0.001)
        with open_files.watched(machine, array) as users:  # type: ignore[arg-type]
            if geometry.startswith("drive"):
                assert server.exhausted.wait(30)
    assert (len(started), server.closed) == ((1, True) if geometry.startswith("drive") else (0, False))
    return users.of("sda")


def test_a_process_that_stays_is_found_while_fio_runs() -> None:
    answers = ["open", f"open\t{SG}\tsda 12 write fio", f"open\t{READER}\t{SG}\tsda 12 write fio"]
    assert watched(answers) == (OpenFile("sg_dd", 737, "generic"),)


def test_a_process_of_a_moment_does_not_count() -> None:
    assert watched([f"open\t{SG}", "open", f"open\t{READER}", f"open\t{SG}"]) == ()


def test_members_of_an_array_are_not_watched() -> None:
    assert watched([f"open\t{SG}", f"open\t{SG}"], "raid5x3") == ()


def test_script_answers_each_question_with_one_line() -> None:
    argv = ["sh", "-c", open_files.SCRIPT, "open_files", "null", "/dev/null", "auto"]
    with Path(os.devnull).open("rb"):
        done = subprocess.run(argv, input="\n\n", capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["open", "open"]
    assert all(os.getpid() in {each.pid for each in open_files.parse(line.split("\t"))["null"]} for line in lines)
