from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from support.builders.drives import drive
from support.builders.measuring import setup_of
from support.builders.survey_records import probed
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator.simulated_disks import Device, World

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.drives import survey
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import DriveRefused, InvalidMeasurement, RigError
from pytest_ssdqual.rig.md import mdadm, members, survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"
#: As a member's superblock tells it to udev.
PLAIN = "3aaa0122-2982-7cfa-5331-ad66ca767371"


class HeldMembers:
    """Drives that are leased, until they are not."""

    def __init__(self, *drives: Drive) -> None:
        self.drives, self.lost = drives, False

    def require_lease(self) -> None:
        if self.lost:
            raise LeaseLost("the lease was lost")


class MemberRack:
    """Four disks, on all of which md100 is built."""

    def __init__(self, uuid: str = PLAIN) -> None:
        self.md = Device("md100", "raid6", "9:100", model=None, transport=None)
        self.disks = [
            Device(
                f"sd{letter}", "disk", f"8:{16 * number}", serial=f"S{number}", uppers=[self.md],
                fstype="linux_raid_member", uuid=uuid, told_by="mdstat",
            )
            for number, letter in enumerate("bcde", 1)
        ]  # fmt: skip
        self.world = World(self.disks)
        self.machine = ScriptedMachine().on("lsblk", answer=lambda argv: self.world.lsblk())
        # O_EXCL finds every member busy, and the disk beside them free.
        self.machine.on("sh", "-c", survey.FACTS, answer=self._facts)
        topology = survey.survey(self.machine, [disk.kname for disk in self.disks])
        self.drives = tuple(topology.drive(disk.kname) for disk in self.disks)
        self.array = Array(Geometry.parse("raid6x4"), "/dev/md100", self.drives, UUID, 1 << 30, "zeroed")
        self.held = HeldMembers(*self.drives)

    def _facts(self, argv: tuple[str, ...]) -> str:
        facts = self.world.facts(*argv[6:])
        for disk in self.disks:
            if disk.uppers and disk.path in argv:
                facts = probed(facts, disk.path, 16)
        return facts

    def require(self, *drives: Drive) -> None:
        members.require(cast("HeldDrives", self.held), self.machine, self.array, drives)


def test_busy_members_of_our_array_may_be_failed() -> None:
    rack = MemberRack()
    topology = survey.survey(rack.machine, ["sdb"])
    assert survey.Use(survey.UseKind.EXCLUSIVE) in topology.nodes["sdb"].uses
    assert topology.nodes["sdb"].holders == ("md100",)
    pruned = members.without(topology, "md100")
    assert (pruned.nodes["sdb"].holders, pruned.nodes["sdb"].uses) == ((), ())
    assert pruned.nodes["md100"] == topology.nodes["md100"]
    rack.require(*rack.drives[2:])


def use_the_array(rack: MemberRack) -> None:
    rack.md.mountpoint = "/srv"


def use_the_member(rack: MemberRack) -> None:
    rack.disks[3].uppers.append(Device("sde1", "part", "8:65", partition=True, model=None, mountpoint="/srv"))


def lose_the_lease(rack: MemberRack) -> None:
    rack.held.lost = True


def swap_the_drive(rack: MemberRack) -> None:
    rack.disks[3].serial = "S9"


def leave_the_array(rack: MemberRack) -> None:
    rack.disks[3].uppers.clear()


def take_the_drive_away(rack: MemberRack) -> None:
    rack.world.disks.pop()


def replace_the_array(rack: MemberRack) -> None:
    for disk in rack.disks:
        disk.uuid = "00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(
    ("change", "error", "cause"),
    [
        (lose_the_lease, LeaseLost, "lease was lost"),
        (replace_the_array, RigError, "/dev/md100 is no longer this"),
        (use_the_array, DriveRefused, r"^/dev/md100: is mounted"),
        (use_the_member, DriveRefused, r"^/dev/sde .*carries /dev/sde1, which"),
        (swap_the_drive, DriveRefused, "serial S9"),
        (leave_the_array, DriveRefused, r"^/dev/sde .*not a member"),
        (take_the_drive_away, RigError, r"^/dev/sde .*is gone"),
    ],
)
def test_member_is_not_failed_if_anything_changed(
    change: Callable[[MemberRack], None], error: type[RigError], cause: str
) -> None:
    rack = MemberRack()
    change(rack)
    with pytest.raises(error, match=cause):
        rack.require(*rack.drives[2:])


@pytest.mark.parametrize("stranger", ["array", "run"])
def test_drive_of_another_array_or_run_is_not_failed(stranger: str) -> None:
    rack = MemberRack()
    other = replace(rack.drives[0], path="/dev/sdz", kname="sdz", serial="S26")
    if stranger == "array":
        rack.held.drives = (*rack.drives, other)
    asked = len(rack.machine.asked)
    with pytest.raises(DriveRefused, match=r"^not among.*: /dev/sdz"):
        rack.require(rack.drives[3], other)
    assert len(rack.machine.asked) == asked


def test_missing_are_the_last_members() -> None:
    array = MemberRack().array
    degraded = replace(array, geometry=Geometry.parse("raid6x4-1failed"))
    assert [drive.kname for drive in members.present(degraded)] == ["sdb", "sdc", "sdd"]
    assert [drive.kname for drive in members.missing(degraded)] == ["sde"]
    assert members.missing(array) == ()
    assert members.present(array) == array.members


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def tools() -> ScriptedMachine:
    return ScriptedMachine().on("mdadm").on("udevadm").on("sh", "-c", mdadm.ERASE)


def test_each_member_is_failed_and_removed_before_the_next() -> None:
    rack, machine = MemberRack(), tools()
    members.lose(machine, rack.array, rack.drives[2:])
    assert [argv[1:] for argv in machine.asked if argv[0] == "mdadm"] == [
        ("--fail", "/dev/md100", "/dev/sdd"),
        ("--remove", "/dev/md100", "/dev/sdd"),
        ("--fail", "/dev/md100", "/dev/sde"),
        ("--remove", "/dev/md100", "/dev/sde"),
    ]


def test_member_with_io_under_way_is_waited_for_but_not_for_ever() -> None:
    rack, machine, tries = MemberRack(), tools(), iter(range(100))
    busy = completed(["mdadm"], status=1, stderr="mdadm: hot remove failed: Device or resource busy\n")
    machine.on("mdadm", "--remove", answer=lambda argv: busy if next(tries) < 3 else "")
    members.lose(machine, rack.array, rack.drives[3:])
    machine.on("mdadm", "--remove", answer=busy)
    with pytest.raises(RigError, match="cannot remove /dev/sde"):
        members.lose(machine, rack.array, rack.drives[3:])


def test_what_is_given_back_is_new_to_md() -> None:
    rack, machine = MemberRack(), tools()
    members.forget(machine, rack.array, rack.drives[2:])
    members.give_back(machine, rack.array, rack.drives[2:])
    assert machine.asked == [
        ("sh", "-c", mdadm.ERASE, "erase", UUID, "/dev/sdd", "/dev/sde"),
        ("mdadm", "--add", "/dev/md100", "/dev/sdd", "/dev/sde"),
    ]
    assert machine.bound == [("beside", path, ("mdadm", "--add")) for path in ("/dev/sdd", "/dev/sde")]
    machine.on("sh", "-c", mdadm.ERASE, answer="/dev/sde\n")
    with pytest.raises(RigError, match="superblock is missing"):
        members.forget(machine, rack.array, rack.drives[2:])


MIB = 1 << 20


WHOLE = Array(Geometry.parse("raid6x5"), "/dev/md100", tuple(map(drive, range(5))), "1:2:3:4", 700 * MIB, "zeroed")


@dataclass
class DegradedBench:
    """What is done to the members, in its order, and what is written down."""

    refused: bool = False
    sick: str = ""
    events: list[str] = field(default_factory=list)

    def require_healthy(self, machine: object, array: Array) -> None:
        self.events.append(f"healthy {array.geometry}")
        if str(array.geometry) == self.sick:
            raise InvalidMeasurement(f"{array.geometry} cannot be measured: recover is running")

    def write(self, setup: Setup, array: Array) -> Array:
        self.events.append(f"pattern {array.geometry}")
        return replace(array, reserved_bytes=7 * MIB)

    def require(self, held: object, machine: object, array: Array, drives: Sequence[Drive]) -> None:
        self.events.append(f"require {' '.join(each.kname for each in drives)}")
        if self.refused:
            raise DriveRefused("/dev/md100 is mounted at /srv")

    def lose(self, machine: object, array: Array, drives: Sequence[Drive]) -> None:
        self.events.append(f"lose {' '.join(each.kname for each in drives)}")

    def note(self, kind: str, **facts: object) -> None:
        about = (facts["member"], facts["serial"], facts["path"], facts["geometry"])
        self.events.append(f"note {kind} {','.join(map(str, about))}")

    def fail(self, array: Array, missing: int) -> Array:
        return members.fail_members(setup_of(self), array, missing)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> DegradedBench:
    bench = DegradedBench()
    monkeypatch.setattr(mdadm, "require_healthy", bench.require_healthy)
    monkeypatch.setattr(survival_pattern, "write", bench.write)
    monkeypatch.setattr(members, "require", bench.require)
    monkeypatch.setattr(members, "lose", bench.lose)
    return bench


def test_pattern_comes_before_recorded_failures(bench: DegradedBench) -> None:
    once = bench.fail(WHOLE, 1)
    assert bench.events == [
        "healthy raid6x5",
        "pattern raid6x5",
        "require nvme4n1",
        "note member_failed S4,S4,/dev/nvme4n1,raid6x5-1failed",
        "lose nvme4n1",
        "healthy raid6x5-1failed",
    ]
    assert once == replace(WHOLE, geometry=Geometry.parse("raid6x5-1failed"), reserved_bytes=7 * MIB)
    bench.events.clear()
    twice = bench.fail(once, 2)
    assert [event for event in bench.events if not event.startswith("healthy")] == [
        "require nvme3n1", "note member_failed S3,S3,/dev/nvme3n1,raid6x5-2failed", "lose nvme3n1",
    ]  # fmt: skip
    assert (twice.geometry.missing, twice.reserved_bytes) == (2, once.reserved_bytes)
    assert bench.fail(WHOLE, 2).geometry == twice.geometry
    assert "lose nvme3n1 nvme4n1" in bench.events


def test_no_member_is_failed_that_may_not_be(bench: DegradedBench) -> None:
    bench.refused = True
    with pytest.raises(DriveRefused):
        bench.fail(WHOLE, 1)
    assert not [event for event in bench.events if event.startswith(("lose", "note"))]


@pytest.mark.parametrize(("sick", "last"), [("raid6x5", "healthy raid6x5"), ("raid6x5-1failed", "lose nvme4n1")])
def test_an_array_that_is_not_as_it_should_be_is_an_error(bench: DegradedBench, sick: str, last: str) -> None:
    bench.sick = sick
    with pytest.raises(InvalidMeasurement, match="recover is running"):
        bench.fail(WHOLE, 1)
    assert last in bench.events
    assert ("pattern raid6x5" in bench.events) == (sick != "raid6x5")


def test_level_loses_no_more_than_it_can_and_nothing_comes_back(bench: DegradedBench) -> None:
    again = "by losing members"
    for array, missing, why in ((WHOLE, 3, "may lose 2"), (bench.fail(WHOLE, 1), 1, again), (WHOLE, 0, again)):
        with pytest.raises(ValueError, match=why):
            bench.fail(array, missing)
