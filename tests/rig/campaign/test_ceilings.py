"""Ceilings of earlier sessions: recalled in the same boot, and measured again in another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.builders.measuring import setup_of
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.qual.measured.sweep import Ceiling
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.result_cache import ResultCache
from pytest_ssdqual.rig.md import ceiling
from pytest_ssdqual.rig.measure.session import Setup

ARRAY = Geometry.parse("raid5x4")
READ, OTHER = Workload("randrw", "4k", 8, 70, name="oltp"), Workload("randrw", "4k", 8, 30, name="oltp")


class Lab:
    """Sessions of one run, of which each measures ceilings by counting them."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.journal = Journal.create(root, "aaaaaaaa")
        self.measured: list[Workload] = []
        self.iops: float | None = 300_000.0

        def devices(setup: Setup, geometry: Geometry, workload: Workload, members: object) -> float:
            self.measured.append(workload)
            if self.iops is None:
                raise ValueError("modprobe: not found")
            return self.iops

        monkeypatch.setattr(ceiling, "_on", devices)

    def ask(self, boot: str, workload: Workload = READ) -> Ceiling:
        machine = ScriptedMachine().on("cat", ceiling.BOOT_ID, answer=f"{boot}\n")
        machine.on("sh", "-c", ceiling.DEVICES, answer="/dev/nullb0\n/dev/nullb1\n/dev/nullb2\n/dev/nullb3\n")
        setup = setup_of(self.journal, machine=machine)
        earlier = Recollection.of(self.journal.path, tuple(read_records(self.journal.path)), sums={})
        assert len(earlier) == 0  # it is no measurement of drives
        return Campaign(setup, cache=ResultCache(earlier=earlier)).ceiling(ARRAY, workload)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("boot", "workload", "measured"),
    [("boot-1", READ, [READ]), ("boot-2", READ, [READ] * 2), ("boot-1", OTHER, [READ, OTHER])],
)
def test_ceiling_is_measured_once_a_boot_and_load(
    lab: Lab, boot: str, workload: Workload, measured: list[Workload]
) -> None:
    first = lab.ask("boot-1")
    assert (first.iops, first.unknown) == (300_000.0, "")
    again = lab.ask(boot, workload)
    assert again.asked == workload
    assert (again == first) is (measured == [READ])
    assert lab.measured == measured


def test_ceiling_that_was_unknown_may_be_known_now(lab: Lab) -> None:
    lab.iops = None
    assert lab.ask("boot-1").unknown
    lab.iops = 1_000.0
    assert lab.ask("boot-1").iops == 1_000
    assert lab.ask("boot-1").unknown == ""
    assert len(lab.measured) == 2
