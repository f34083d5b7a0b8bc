"""CPUs of the drives' NUMA nodes, from the script in a tree of files to the answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.drives import drive, named
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import SHELLS, run_script

from pytest_ssdqual.rig.machine.machine import Completed
from pytest_ssdqual.rig.observe.placement import NUMA_NODES, cpus_of_nodes

TREE = {
    "sys/devices/system/node/node0/cpulist": "0-3,8\n",
    "sys/devices/system/node/node1/cpulist": "4-7\n",
    "sys/devices/system/node/node2/cpulist": "\n",  # memory only
    "sys/block/nvme0n1/device/device/irq": "11\n",
    "sys/block/nvme0n1/device/device/numa_node": "1\n",
    "sys/block/nvme1n1/device/nvme1/device/irq": "12\n",
    "sys/block/nvme1n1/device/nvme1/device/numa_node": "0\n",
    "sys/block/sda/device/irq": "17\n",
    "sys/block/sda/device/numa_node": "-1\n",
}


DRIVES = drive(0), drive(1), named("sda", "S2"), named("vda", "S3")


def machine_of(root: Path, shell: str) -> ScriptedMachine:
    def answer(argv: tuple[str, ...]) -> Completed:
        script = argv[2].replace("/proc/", f"{root}/proc/").replace("/sys/", f"{root}/sys/")
        return completed(argv, run_script(shell, script, *argv[3:]))

    return ScriptedMachine().on("sh", "-c", NUMA_NODES, answer=answer)


@pytest.mark.parametrize("shell", SHELLS)
def test_drives_have_the_cpus_of_their_node(tmp_path: Path, shell: str) -> None:
    for name, content in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = cpus_of_nodes(machine_of(tmp_path, shell), DRIVES)
    assert found == {DRIVES[0].identity: "4-7", DRIVES[1].identity: "0-3,8"}
    (tmp_path / "sys/devices/system/node/node0/cpulist").unlink()
    assert cpus_of_nodes(machine_of(tmp_path, shell), DRIVES) == {}


@pytest.mark.parametrize(
    "answer",
    ["", "node 0 0-3\nnode 1", "node x y\n==placement nvme0n1\nnuma_node x\n", "==placement \n==\n", "==placement "],
)
def test_a_malformed_answer_places_nothing(answer: str) -> None:
    assert cpus_of_nodes(ScriptedMachine().on("sh", "-c", NUMA_NODES, answer=answer), DRIVES) == {}
