"""Write caches of the lab's drives, switched for real: NVMe's by nvme-cli, SCSI's by the kernel; and after a kill."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab.bare_drives import Bench, bench
from support.lab.rehearsed import BRIEF, SERIALS, Lab, Server, Start, drives

from pytest_ssdqual.rig.drives import write_cache
from pytest_ssdqual.rig.drives.cache_state import CacheState
from pytest_ssdqual.rig.drives.survey import survey
from pytest_ssdqual.rig.drives.write_cache import Switched

pytestmark = [pytest.mark.lab, pytest.mark.unhurried]

ON, OFF = CacheState.ON, CacheState.OFF
SCSI = """
modprobe -a sd_mod sg; modprobe scsi_debug dev_size_mb=64; udevadm settle
for d in /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*:*/block/*; do echo "${d##*/}"; done
"""
#: Get Features 06h of each drive, by another way than the program's.
FEATURES = 'for drive in $1; do nvme get-feature "$drive" -f 6 -H; done'

SWITCH_ON = 'for drive in /dev/nvme[0-9]n1; do nvme admin-passthru "$drive" --opcode=9 --cdw10=6 --cdw11=1; done'


@pytest.fixture
def here(lab: Lab) -> Iterator[Bench]:
    with bench(lab) as found:
        yield found


@pytest.fixture
def scsi_drive(here: Bench) -> Iterator[str]:
    """The kernel name of a drive of the kernel's own."""
    try:
        yield here.machine.run(["sh", "-ec", SCSI, "scsi"]).text.strip()
    finally:
        here.machine.run(["sh", "-c", "sleep 0.5; rmmod scsi_debug"], check=False)


def features(server: Server) -> list[str]:
    """What the drives themselves report, in the order of their names."""
    text = server.ask("sh", "-c", FEATURES, "features", "/dev/nvme[0-9]n1")
    return re.findall(r"Current value:(\S+)", text)


def test_nvme_is_switched_and_the_kernel_flushes_in_any_case(here: Bench, server: Server) -> None:
    drive = here.drives[0]
    queue = f"/sys/block/{drive.kname}/queue/write_cache"
    assert write_cache.read(here.machine, drive) is ON
    try:
        done = write_cache.switch(here.machine, drive, OFF)
        assert (done.before, done.after) == (ON, OFF), done.printed
        assert sum(int(value, 16) for value in features(server)) == len(SERIALS) - 1
        assert here.machine.run(["cat", queue]).text == "write back\n"
    finally:
        assert write_cache.switch(here.machine, drive, ON).after is ON
    assert sum(int(value, 16) for value in features(server)) == len(SERIALS)


def test_scsi_is_switched_by_the_kernel_which_then_knows(here: Bench, scsi_drive: str) -> None:
    drive = survey(here.machine, [scsi_drive]).drive(scsi_drive)
    believed = ["cat", f"/sys/block/{scsi_drive}/queue/write_cache"]
    assert write_cache.read(here.machine, drive) is ON
    assert write_cache.switch(here.machine, drive, OFF) == Switched(ON, OFF)
    assert here.machine.run(believed).text == "write through\n"
    assert write_cache.switch(here.machine, drive, ON) == Switched(OFF, ON)
    assert here.machine.run(believed).text == "write back\n"


def test_run_after_a_killed_one_restores_the_caches(server: Server, start: Start, tmp_path: Path) -> None:
    start.protocol = tmp_path / "off.toml"
    start.protocol.write_text(f'write_cache = "off"\n{BRIEF.read_text()}')
    start.suite = "suites/drive"
    running = start(drives(1))
    running.await_record("write_cache")
    running.signal(signal.SIGKILL)
    running.finish()
    assert sum(int(value, 16) for value in features(server)) == len(SERIALS) - 1
    try:
        # Nothing is measured: they are restored when the run begins.
        again = start(drives(1), "-k", "nothing_of_this_name", "--ssd-wait=2min").finish()
        assert [each.facts["leftover"] for each in again.folder.records("write_cache_restored")] == [True]
        assert "is on again" in again.output
    finally:
        values = features(server)
        server.ask("sh", "-c", SWITCH_ON)
    assert sum(int(value, 16) for value in values) == len(SERIALS)
