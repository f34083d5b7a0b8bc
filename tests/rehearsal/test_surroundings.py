"""What really goes on around fio in the lab: what somebody else does is found and named. Whole runs: test_raid5."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from support.builders.measuring import UNPREPARED as PROTOCOL
from support.lab.bare_drives import Bench, Book
from support.lab.rehearsed import Server

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import FRESH
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import environment
from pytest_ssdqual.rig.observe.environment import SCRIPT, parse
from pytest_ssdqual.rig.observe.kernel_log import FIRST, PICK

pytestmark = pytest.mark.lab

READS = Workload("randread", "4k", 8)
WINDOW = ProcessWindow(ramp_s=1.0, window_s=5.0, rounds=5)


@pytest.mark.parametrize("shell", [["sh"], ["busybox", "sh"]], ids=" ".join)
def test_all_that_is_asked_is_answered_by_either_shell(here: Bench, shell: list[str]) -> None:
    members = here.drives[:2]
    names = [part for drive in members for part in (drive.kname, drive.path, drive.smart_type)]
    argv = [*shell, "-c", SCRIPT, "environment", PICK, "before", "-", FIRST, "", *names]
    seen = parse(here.machine.run(argv).text, "", names[::3])
    assert len(seen.host.cpus) == 3
    assert seen.clock_s is not None
    for drive in seen.drives:
        assert drive.counted.traffic is not None
        assert drive.counted.appearance > 0
        assert drive.link is not None
        assert drive.link.share == 1
        assert (drive.warmth.temperature_c, drive.warmth.too_warm) == (50, False)


@pytest.mark.parametrize("shell", [["sh"], ["busybox", "sh"]], ids=" ".join)
@pytest.mark.parametrize("source", ["/dev/kmsg", "dmesg"])
def test_kernel_messages_of_a_member_are_read_by_either_shell(here: Bench, shell: list[str], source: str) -> None:
    """And of nobody else; the messages are ours, the names are those of the guest's own sysfs."""
    member, other = here.drives[:2]
    script = SCRIPT if source == "/dev/kmsg" else SCRIPT.replace("/dev/kmsg", "/dev/no-such-log")
    argv = [*shell, "-c", script, "environment", PICK]
    before = parse(here.machine.run([*argv, "before", "-", FIRST, "", member.kname, member.path, "auto"]).text, "", [])
    controller, pci = before.names[1:3]
    assert (member.kname, pci.count(":")) == (f"{controller}n1", 2)
    own = [f"nvme {controller}: I/O 12 QID 1 timeout", f"nvme {pci}: device not ready", f"pcieport x: from {pci}"]
    strange = [f"nvme {controller}1: timeout", f"{controller}n11: error", f"nvme {other.kname}: timeout"]
    for each in own + strange:
        here.machine.run(["sh", "-c", 'echo "<3>$1" >/dev/kmsg', "say", each])
    assert before.kernel_log
    more = ["after", "-", before.kernel_log.mark, " ".join(before.names), member.kname, member.path, "auto"]
    heard = parse(here.machine.run([*argv, *more]).text, "", []).kernel_log
    assert heard
    assert [each.text for each in heard.log.lines] == own
    # busybox' dd does not know how not to wait for the next message; its dmesg tells no levels.
    assert {each.level for each in heard.log.lines} == {3 if (source, shell) == ("/dev/kmsg", ["sh"]) else None}
    assert not heard.log.lost


def test_a_drive_beyond_its_own_threshold_is_too_warm(here: Bench) -> None:
    """The emulated drive always has 50 °C; its threshold can be moved."""
    drive = here.drives[1]
    array = Array(Geometry.parse("drivex1"), drive.path, (drive,), "", drive.size_bytes, "none needed")
    set_feature = ["nvme", "set-feature", drive.path.removesuffix("n1"), "--feature-id=4"]
    here.machine.run([*set_feature, f"--value={273 + 47}"])
    try:
        (seen,) = environment.take_reading(here.machine, array).drives
    finally:
        here.machine.run([*set_feature, f"--value={273 + 70}"])
    assert seen.warmth.too_warm is True


@dataclass(frozen=True)
class Measure:
    """Reads on an array of three drives: what speaks against them, while ``script`` runs on the machine."""

    setup: Setup
    array: Array
    server: Server

    def __call__(self, script: str) -> Sequence[str]:
        with subprocess.Popen(
            self.server.lab.ssh("timeout", "120", "sh", "-c", f"echo $$ >/run/other; {script}"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as other:  # fmt: skip
            try:
                return checks.objections(fixed_time.run(self.setup, self.array, READS, "run", WINDOW))
            except InvalidMeasurement as error:
                return [str(error)]
            finally:
                self.server.ask("sh", "-c", "kill $(cat /run/other) $(pidof dd); rm /run/other", check=False)
                other.kill()


@pytest.fixture(scope="module")
def measure(here: Bench) -> Iterator[Measure]:
    for drive in here.drives:
        here.lab.vm.set_iops(drive.serial or "", 300)
    held = HeldDrives(here.machine, here.drives)
    setup = Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
    array = array_lifecycle.build(setup, Geometry.parse("raid5x3"), FRESH)
    try:
        yield Measure(setup, array, Server(here.lab))
    finally:
        array_lifecycle.stop(setup, array)
        held.release()


def test_another_program_that_reads_a_member_is_found(measure: Measure) -> None:
    member = measure.array.members[1]
    found = measure(f"while :; do dd if={member.path} of=/dev/null bs=1M iflag=direct; done")
    (said,) = (each for each in found if each.startswith("the members of raid5x3 read "))
    assert all(str(member.serial) in each for each in found)
    assert f"most at drive {member.serial}" in said


def test_a_clock_that_is_set_meanwhile_is_found(measure: Measure) -> None:
    until_fio = "until pidof fio; do sleep 0.1; done; sleep 2"
    try:
        said = measure(f"{until_fio}; date --set=@$(($(date +%s) + 3600))")
    finally:
        measure.server.ask("sh", "-c", "date --set=@$(($(date +%s) - 3600))")
    assert "clock was set" in said[0]


def test_nothing_speaks_against_it_otherwise(measure: Measure) -> None:
    assert measure(":") == ()
