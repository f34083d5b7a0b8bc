"""pytest inside of a server, on its own drives, as the README's first command says: root is on one of its disks.

The guest has 1 GiB of memory, a root file system on /dev/sda, eight SSDs, and a udev that assembles whatever has a
superblock of md.
"""

from __future__ import annotations

import hashlib
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab.real_machine import ROOT, RealMachine, booted
from support.lab.rehearsed import BRIEF, LEFT

pytestmark = [pytest.mark.lab, pytest.mark.unhurried, pytest.mark.nightly]

#: The command of the card, and where it is typed.
COMMAND, HOME = "pytest --ssd-devices='/dev/sd[b-i]' suites/raid5 --junitxml=raid5.xml", "/root/qualify"
#: Of 83 tests one, whose array needs all drives: minutes.
INI = """
[pytest]
ssd_protocol = brief.toml
ssd_spec = drives.toml
addopts = -k "steady_state and raid5x8-randread_4k_qd8"
"""
CHOSEN = "test_steady_state_iops_match_the_data_sheet[raid5x8-randread_4k_qd8]"
#: $1 a directory, rest: a command. Its output and status, as a user's shell has them.
TYPED = 'cd "$1" && shift; sh -c "$*" >output 2>&1 </dev/null; echo $? >status'
#: $1 the directory of a run: kill it when fio writes to its array, and wait until it has ended on the machine. Waiting
#: over there costs the run least.
KILLED = """
until grep -q '"kind": *"array_created"' "$1"/ssdqual-runs/*/records.jsonl 2>/dev/null && pidof fio; do sleep 1; done
kill -KILL "$(cat "$1/pid")"
while pidof fio; do sleep 0.2; done
for lock in /run/pytest-ssdqual/*.lock; do flock --wait 60 "$lock" true; done
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealMachine]:
    with booted(tmp_path_factory.mktemp("real-machine")) as machine:
        files: dict[str, Path | str] = {"suites": ROOT / "suites", "brief.toml": BRIEF, "pytest.ini": INI}
        machine.put(HOME, {**files, "drives.toml": Path(__file__).with_name("real_machine.toml")})
        yield machine


def typed(machine: RealMachine, place: str, command: str) -> tuple[int, str]:
    """Status and output of a command."""
    machine.ask("sh", "-c", TYPED, "typed", place, command, deadline_s=400)
    return int(machine.ask("cat", f"{place}/status")), machine.ask("cat", f"{place}/output")


def records(machine: RealMachine, kind: str) -> list[dict[str, object]]:
    """Of the newest run folder."""
    text = machine.ask("sh", "-c", f'cat "$(ls -d {HOME}/ssdqual-runs/*/ | tail -n 1)records.jsonl"', check=False)
    found = [json.loads(line) for line in text.splitlines()]
    return [each for each in found if each["kind"] == kind]


def left(machine: RealMachine) -> str:
    """What is left of runs."""
    return machine.ask("sh", "-c", LEFT, "left", "/dev/sd[b-i]")


def root_bytes(machine: RealMachine) -> str:
    """A digest of the system disk, seen from outside."""
    with machine.vm.root_file.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def test_layout_is_that_of_a_server(machine: RealMachine) -> None:
    assert machine.ask("findmnt", "--noheadings", "--output", "SOURCE,FSTYPE", "/").split() == ["/dev/sda", "ext4"]
    disks = machine.ask("lsblk", "--nodeps", "--noheadings", "--output", "NAME,ROTA,MODEL", "--include", "8").split()
    assert sorted(disks[0::3]) == [f"sd{letter}" for letter in "abcdefghi"]
    assert disks.count("SM300") == 8
    assert int(machine.ask("sed", "-n", "s/^MemTotal: *\\([0-9]*\\) kB/\\1/p", "/proc/meminfo")) < 1 << 20


def test_udev_assembles_arrays_here(machine: RealMachine) -> None:
    """Else the other tests would show nothing of it."""
    members = ("/dev/sdb", "/dev/sdc", "/dev/sdd")
    machine.ask("sh", "-ec", """
        mdadm --create /dev/md7 --run --level=5 --raid-devices=3 --assume-clean "$@"
        mdadm --stop /dev/md7
        for member; do udevadm trigger --action=add "$member"; done
        udevadm settle
    """, "assembled", *members)  # fmt: skip
    assembled = [line.split()[0] for line in machine.ask("cat", "/proc/mdstat").splitlines() if " raid5 " in line]
    assert len(assembled) == 1
    machine.ask("mdadm", "--stop", f"/dev/{assembled[0]}")
    machine.ask("mdadm", "--zero-superblock", *members)
    assert left(machine) == ""


def test_system_disk_is_refused_and_unchanged(machine: RealMachine) -> None:
    machine.ask("sh", "-ec", f"mkdir /dev/shm/asked; cp -r {HOME}/* /dev/shm/asked; sync; mount -o remount,ro /")
    before = root_bytes(machine)
    try:
        command = COMMAND.replace("sd[b-i]", "sd[a-i]")
        status, output = typed(machine, "/dev/shm/asked", f"env TMPDIR=/dev/shm {command}")
        after = root_bytes(machine)
    finally:
        machine.ask("mount", "-o", "remount,rw", "/")
    assert status == 4
    (reason,) = [line for line in output.splitlines() if line.startswith("ERROR: ")]
    assert reason.startswith("ERROR: /dev/sda (")
    assert "mounted at / " in reason
    assert "Traceback" not in output
    assert after == before
    assert left(machine) == ""


def test_killed_run_ends_on_the_machine(machine: RealMachine) -> None:
    """What it leaves is for the next test: an array, which udev puts together again under another name."""
    machine.ask("sh", "-c", f'cd "$1"; {COMMAND} >/dev/null 2>&1 </dev/null & echo $! >"$1/pid"', "run", HOME)
    machine.ask("sh", "-ec", KILLED, "killed", HOME, deadline_s=400)
    (planned,) = records(machine, "array_planned")
    machine.ask("sh", "-ec", """
        mdadm --stop "$1"
        for drive in /dev/sd[b-i]; do udevadm trigger --action=add "$drive"; done
        udevadm settle
        for file in /run/pytest-ssdqual/*; do touch -d '1 hour ago' "$file"; done
    """, "again", str(planned["device"]))  # fmt: skip
    found = left(machine)
    assert " raid5 " in found
    assert "file: /run/pytest-ssdqual/fio-" in found


def test_command_of_the_card_passes_and_leaves_nothing(machine: RealMachine) -> None:
    status, output = typed(machine, HOME, COMMAND)
    assert status == 0, output
    assert "left over from" in output
    assert "1 pass" in output
    root = ET.fromstring(machine.ask("cat", f"{HOME}/raid5.xml"))  # noqa: S314 (our own)
    (case,) = root.iter("testcase")
    assert case.get("name") == CHOSEN
    assert [child.tag for child in case if child.tag != "properties"] == []
    (suite,) = root.iter("testsuite")
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["1", "0", "0", "0"]
    (created,) = records(machine, "array_created")
    stopped = [each for each in records(machine, "array_stopped") if not each.get("leftover")]
    assert [each["uuid"] for each in stopped] == [created["uuid"]]
    assert any(str(name).startswith("fio-") for name in records(machine, "leftovers_removed")[0]["files"])  # type: ignore[attr-defined]
    machine.ask("udevadm", "settle")
    assert left(machine) == ""
    assert machine.ask("sh", "-c", f"ls {HOME}/ssdqual-runs/*/report.html")
