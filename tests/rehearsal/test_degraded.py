"""An array that loses a drive and gets it back under load: well, with damaged data, and stopped in the middle.

What real md does to its members is counted there and held against the law; what is told of the data is true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from support.builders.measuring import UNPREPARED
from support.lab.bare_drives import MIB, Bench, Book, bench
from support.lab.rehearsed import SERIALS, Lab, Server

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry, costs, expected_iops
from pytest_ssdqual.qual.spec.protocol_rules import RebuildRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign_plan import FRESH
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.md import mdadm, members
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, rebuild
from pytest_ssdqual.rig.measure.session import Setup

pytestmark = pytest.mark.lab

WHOLE, DEGRADED = Geometry.parse("raid5x3"), Geometry.parse("raid5x3-1failed")
READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
LOAD = Workload("randrw", "4k", 1, read_percent=70)
#: Of each drive.
IOPS = 600
#: A rebuild of 256 MiB lasts long enough to see what becomes of a load; the check after it is as slow.
SLOW_ENOUGH = RebuildRule(limit_s=120.0, max_bytes_per_s=20_000_000)
PROTOCOL = replace(UNPREPARED, rebuild=SLOW_ENOUGH)


@dataclass
class Story:
    """What was seen, in its order."""

    #: Of reads and writes on the degraded array, with the I/Os of all members together meanwhile: reads, writes.
    runs: dict[Workload, tuple[Run, tuple[int, int]]] = field(default_factory=dict)
    well: Rebuild | None = None
    damaged: Rebuild | None = None
    #: What md did when the array was stopped, and what was left on the machine then.
    stopped_in: str = ""
    left: list[str] = field(default_factory=list)


def member_ios(here: Bench) -> tuple[int, int]:
    """Reads and writes that all drives have completed."""
    lines = here.machine.run(["cat", *(f"/sys/block/{drive.kname}/stat" for drive in here.drives)]).text.splitlines()
    return sum(int(line.split()[0]) for line in lines), sum(int(line.split()[4]) for line in lines)


def measured(here: Bench, setup: Setup, array: Array, workload: Workload) -> tuple[Run, tuple[int, int]]:
    before = member_ios(here)
    run = fixed_time.run(setup, array, workload, "run", fixed_time.ProcessWindow(PROTOCOL.measure.ramp_s, 3.0, 3))
    after = member_ios(here)
    return run, (after[0] - before[0], after[1] - before[1])


def damage(here: Bench, array: Array) -> None:
    """Overwrite the last MiB of what the array uses of its first member, behind its back: the pattern is there."""
    files = [f"/sys/block/{array.kname}/md/{name}" for name in ("rd0/offset", "component_size")]
    sectors, kibibytes = map(int, here.machine.run(["cat", *files]).text.split())
    end_bytes = sectors * 512 + kibibytes * 1024
    here.write(array.members[0].path, "64k", 16, at=end_bytes // 65536 - 16)


def again(setup: Setup, array: Array) -> Array:
    """The array that was rebuilt, degraded anew."""
    return members.fail_members(setup, replace(array, geometry=WHOLE), 1)


@pytest.fixture(scope="module")
def story(lab: Lab) -> Iterator[Story]:
    with bench(lab) as here:
        held, found = HeldDrives(here.machine, here.drives[: WHOLE.width]), Story()
        setup = Setup(here.machine, held, PROTOCOL, Book(), "lab", lambda what, seconds: None)
        array = array_lifecycle.build(setup, WHOLE, FRESH)
        try:
            for serial in SERIALS:
                lab.vm.set_iops(serial, IOPS)
            array = members.fail_members(setup, array, 1)
            found.runs = {each: measured(here, setup, array, each) for each in (READ, WRITE)}
            found.well = rebuild.rebuild(setup, array, LOAD)
            array = again(setup, array)
            damage(here, array)
            found.damaged = rebuild.rebuild(setup, array, LOAD)
            array = again(setup, array)
            members.forget(here.machine, array, members.missing(array))
            members.give_back(here.machine, array, members.missing(array))
            found.stopped_in = mdadm.state(here.machine, array.kname).sync_action
        finally:
            array_lifecycle.stop(setup, array)
            held.release()
        found.left = Server(lab).left()
        yield found


@pytest.mark.parametrize("workload", [READ, WRITE], ids=str)
def test_md_does_to_its_members_what_the_law_says(story: Story, workload: Workload) -> None:
    run, (reads, writes) = story.runs[workload]
    ios = sum(interval.ios for interval in run.intervals)
    # Stripes that md still has in memory cost nothing: some of a drive of 256 MiB are.
    cost = costs(DEGRADED)
    assert reads / ios == pytest.approx(
        float(cost.reads_for_read if workload.reads else cost.reads_for_write), rel=0.12
    )
    assert writes / ios == pytest.approx(0 if workload.reads else float(cost.writes_for_write), rel=0.05, abs=0.01)


@pytest.mark.parametrize("workload", [READ, WRITE], ids=str)
def test_a_degraded_array_is_as_fast_as_the_law_says(story: Story, workload: Workload) -> None:
    run, _ = story.runs[workload]
    assert run.iops == pytest.approx(expected_iops(DEGRADED, workload.read_fraction, IOPS, IOPS), rel=0.15)


def test_a_rebuild_under_load_loses_nothing(story: Story) -> None:
    assert story.well is not None
    assert story.well.intact
    assert 240 * MIB < story.well.bytes_per_member < 256 * MIB
    assert story.well.foreground.latency.total >= 500
    assert story.well.foreground.runs[0].seconds < story.well.seconds


def test_damage_behind_mds_back_is_told(story: Story) -> None:
    assert story.damaged is not None
    assert not story.damaged.intact
    assert all(each in story.damaged.damage for each in ("while degraded", "after the rebuild", "/dev/md100"))


def test_an_array_that_is_rebuilt_can_be_stopped(story: Story) -> None:
    assert story.stopped_in == "recover"
    assert story.left == []
