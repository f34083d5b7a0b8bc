"""Two machines in one run, with arrays on both: one is held by somebody else first, and loses its power later."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.lab.rehearsed import (
    BRIEF,
    DEADLINE_S,
    ROOT,
    Lab,
    LabHost,
    Server,
    await_that,
    foreign_environment,
    host_entry,
)
from support.lab.run_left import Finished, Folder

from pytest_ssdqual.lab import start as boot
from pytest_ssdqual.lab.drives import shelf
from pytest_ssdqual.report.fleet import folder as fleet
from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.machine.supervisor import DIRECTORY

# Whether a promise is kept is not asked: three emulated machines may share two processors.
pytestmark = [pytest.mark.lab, pytest.mark.unhurried, pytest.mark.nightly]

#: The first drive of the second machine: no two of a run have the same serial number.
FIRST = 101
#: As the kernel makes it up of serial number and model.
WWN = "nvme.1b36-{}-{}-00000001"
TEST = "test_steady_state_iops_match_the_data_sheet[{}-raid5x3-randread_4k_qd8]"


@dataclass(frozen=True)
class TwoMachines:
    """Two bays, ``dut1`` and ``dut2``."""

    lab: Lab
    second: LabHost
    ssh_config: Path
    place: Path

    @property
    def root(self) -> Path:
        return self.place / "runs"

    @property
    def fleet(self) -> Path:
        """The newest, of those that began."""
        return max(each for each in self.root.iterdir() if fleet.is_fleet(each))

    def bay(self, name: str) -> Folder:
        return Folder(self.fleet / "bays" / name)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        by_id = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_SSDQ"
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "auto", "suites/raid5", *arguments]
        argv += [f"--ssd-devices=dut1:{by_id}000[1-3]", f"--ssd-devices=dut2:{by_id}010[1-3]", "--ssd-reconnect=5 s"]
        argv += [f"--ssd-ssh-config={self.ssh_config}", f"--ssd-protocol={BRIEF}", "--ssd-spec=ssdqual-sm300"]
        argv.append("--ssd-force-spec")  # QEMU's drives have the model string of no sheet
        argv += [f"--ssd-run-dir={self.root}", f"--junitxml={self.place}/junit.xml", "-k", TEST_NAMES]
        return subprocess.Popen(
            argv, cwd=ROOT, env=foreign_environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def await_measuring(self, run: subprocess.Popen[str], name: str) -> None:
        """``RuntimeError`` with what it says if it ends before."""

        def measures() -> bool:
            if run.poll() is not None:
                raise RuntimeError(self.end(run).output)
            bay = self.bay(name)
            return bay.path.is_dir() and bool(bay.records("measuring"))

        await_that(measures, f"{name} to measure", DEADLINE_S)

    def end(self, run: subprocess.Popen[str]) -> Finished:
        try:
            output, _ = run.communicate(timeout=DEADLINE_S)
        finally:
            run.kill()
        return Finished(run.returncode, output, self.place / "junit.xml", self.root)


TEST_NAMES = "steady_state and raid5x3 and randread_4k_qd8"


@pytest.fixture
def rack(lab: Lab, tmp_path: Path) -> Iterator[TwoMachines]:
    with boot(shelf(3, first=FIRST)) as vm:
        config = tmp_path / "ssh_config"
        config.write_text(host_entry(lab.vm, "dut1", "root") + host_entry(vm, "dut2", "root"))
        (tmp_path / "second").mkdir()
        yield TwoMachines(lab, LabHost.of(vm, tmp_path / "second" / "config"), config, tmp_path)
        Server(lab).reset()


def test_two_machines_one_of_which_is_lost_and_comes_back(rack: TwoMachines) -> None:
    # Held by somebody else: nothing is begun, on neither of them.
    (lock,) = lease.lock_files(["ssdq0102"])
    files = rack.second.ssh("sh", "-c", f"mkdir -p -m 0700 {DIRECTORY} && exec flock {lock} sleep 1000")
    with subprocess.Popen(files):
        refused = rack.end(rack.begin())
        Server(rack.second).ask("pkill", "-f", "^sleep 1000")
    assert refused.status == 4, refused.output
    assert "ERROR: dut2: another" in refused.output
    assert len(rack.bay("dut1").records("run_refused")) == 1

    run = rack.begin()
    rack.await_measuring(run, "dut2")
    rack.second.vm.power_cut()
    done = rack.end(run)
    assert done.status == 1, done.output
    results = done.results()
    assert sorted(results) == sorted([TEST.format("dut1"), TEST.format("dut2")])
    (error,) = results[TEST.format("dut2")]
    assert error.startswith("error: ")
    assert "dut2 is lost" in error
    assert len(rack.bay("dut1").records("verdict")) == 1
    assert rack.bay("dut1").is_sealed()
    assert rack.bay("dut2").is_sealed()
    assert "qualification of dut1" in done.output
    page = (rack.fleet / "report.html").read_text()
    assert "dut1" in page
    assert "dut2" in page
    assert Server(rack.lab).left() == []

    rack.second.vm.power_on()
    before = len(rack.bay("dut1").records("measured"))
    again = rack.end(rack.begin("--ssd-resume=last"))
    assert again.status in (0, 1), again.output
    assert "resuming dut1: 1" in again.output
    assert len(rack.bay("dut1").records("measured")) == before
    assert [len(rack.bay(name).records("verdict")) for name in ("dut1", "dut2")] == [1, 1], again.output
    assert Server(rack.second).left() == []
