"""What a history does to md, told to a machine that was never there; on real md it is rehearsed."""

from __future__ import annotations

import gzip
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from support.builders import drives
from support.builders.measuring import UNPREPARED, setup_of
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.integrity.array_state import Abilities
from pytest_ssdqual.qual.integrity.steps import StepSequence
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.qual.spec.protocol_rules import IntegrityRule
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio.stamped_io import Stretch
from pytest_ssdqual.rig.guard import label
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.integrity import md_target, runner
from pytest_ssdqual.rig.integrity.md_target import SWORN, MdTarget
from pytest_ssdqual.rig.machine.machine import DriveRefused, RigError
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md import members as membership
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle
from pytest_ssdqual.rig.purge import zero

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"
PROTOCOL = replace(UNPREPARED, integrity=IntegrityRule(member_bytes=64 << 20))


DRIVES = tuple(
    replace(drives.named(f"sd{number}", f"S{number}", size_bytes=1 << 30), physical_block_bytes=4096, transport="sata")
    for number in (1, 2, 3, 4)
)


ARRAY = Array(Geometry.parse("raid5x3"), "/dev/md100", DRIVES[:3], UUID, 1 << 30, "zeroed")


@dataclass
class HeldForTarget:
    """Drives that are leased until they are not, and free until they are not."""

    drives: Sequence[Drive] = DRIVES
    lost: bool = False
    used: bool = False
    leased: object = None

    def require_lease(self) -> None:
        if self.lost:
            raise LeaseLost("the lease was lost")

    def require(self, drives: Sequence[Drive]) -> None:
        self.require_lease()
        if self.used:
            raise DriveRefused("somebody mounted it")

    require_purged = require


class TargetRack:
    """An array of three drives, and a fourth."""

    def __init__(self) -> None:
        self.machine, self.held, self.book = ScriptedMachine(), HeldForTarget(), Logbook()
        for name in ("mdadm", "udevadm", "tee", "sh", "blkdiscard"):
            self.machine.on(name)
        setup = setup_of(self.book, PROTOCOL, machine=self.machine, held=self.held)
        self.body = MdTarget(setup, lambda: None, ARRAY, {1, 2, 3})

    def did(self, *prefix: str) -> bool:
        return any(argv[: len(prefix)] == prefix for argv in self.machine.asked)

    def states(self, *states: str) -> list[str]:
        """What sysfs says at each look; the last for ever. What is returned shrinks to that one."""
        left = list(states)

        def said(argv: tuple[str, ...]) -> str:
            now = left.pop(0) if len(left) > 1 else left[0]
            action, degraded = now.split()
            return f"/md/array_state:clean\n/md/sync_action:{action}\n/md/degraded:{degraded}\n/md/mismatch_cnt:0\n"

        self.machine.on("grep", answer=said).on("cat", answer="none\n")
        return left

    @property
    def looks(self) -> int:
        """How often sysfs was asked for the state."""
        return sum(argv[0] == "grep" for argv in self.machine.asked)


@pytest.fixture
def rack(monkeypatch: pytest.MonkeyPatch) -> TargetRack:
    monkeypatch.setattr(md_target, "PAUSE_S", 0.0)
    monkeypatch.setattr(membership, "require", lambda held, machine, array, drives: held.require(drives))
    return TargetRack()


def steps(body: MdTarget) -> dict[str, Any]:
    stretch = Stretch(0, 65536, 2, 4096)
    return {
        "write": lambda: body.write(1, [stretch], flush=True),
        "trim": lambda: body.trim(0, 65536),
        "fail": lambda: body.fail(2),
        "remove": lambda: body.remove(2),
        "re-add": lambda: body.re_add(2),
        "add": lambda: body.add(4),
        "compare": lambda: body.compare(repair=True),
        "restart": lambda: body.restart([1, 2, 3]),
        "grow": lambda: body.grow(4),
        "cut": lambda: body.cut([1, 2, 3], 0, 1, stretch),
    }


@pytest.mark.parametrize(
    "step", ["write", "trim", "fail", "remove", "re-add", "add", "compare", "restart", "grow", "cut"]
)
def test_without_the_lease_nothing_is_done(rack: TargetRack, step: str) -> None:
    rack.held.lost = True
    with pytest.raises(LeaseLost):
        steps(rack.body)[step]()
    assert rack.machine.asked == []


@pytest.mark.parametrize("step", ["fail", "re-add", "add", "grow"])
def test_a_drive_that_somebody_uses_is_left_alone(rack: TargetRack, step: str) -> None:
    rack.held.used = True
    with pytest.raises(DriveRefused):
        steps(rack.body)[step]()
    assert rack.machine.asked == []


def test_a_member_is_failed_and_removed_in_two_steps(rack: TargetRack) -> None:
    rack.body.fail(2)
    assert rack.did("mdadm", "--fail", "/dev/md100", "/dev/sd2")
    assert not rack.did("mdadm", "--remove")
    rack.body.remove(2)
    assert rack.did("mdadm", "--remove", "/dev/md100", "/dev/sd2")


def test_a_new_drive_is_not_erased_a_former_member_is(rack: TargetRack) -> None:
    rack.body.add(4)
    assert not rack.did("sh")
    rack.body.add(4)
    assert rack.did("sh", "-c", mdadm.ERASE)


def test_member_that_md_refuses_is_added_as_a_new_one(rack: TargetRack) -> None:
    rack.machine.on("mdadm", "--re-add", answer=completed(["mdadm"], status=1, stderr="not possible"))
    rack.body.re_add(2)
    assert rack.did("mdadm", "--add", "/dev/md100", "/dev/sd2")
    assert rack.book.kinds == ["re_add_refused"]


@pytest.mark.parametrize(
    ("states", "missing"),
    [(("idle 1", "recover 1", "recover 1", "idle 0"), 0), (("recover 2", "idle 1"), 1)],
    ids=["rebuild", "members that should be missing"],
)
def test_settling_waits_for_the_state_that_is_due(rack: TargetRack, states: tuple[str, ...], missing: int) -> None:
    left = rack.states(*states)
    rack.body.settle(missing)
    assert (left, rack.looks) == ([states[-1]], len(states))


def test_a_resync_that_is_due_is_waited_for(rack: TargetRack) -> None:
    rack.states("idle 0", "idle 0", "resync 0", "idle 0")
    due = ["0\n", "0\n", "none\n"]
    rack.machine.on("cat", "/sys/block/md100/md/resync_start", answer=lambda argv: due.pop(0))
    rack.body.settle(0)
    assert due == []


def test_an_array_that_does_not_settle_is_an_error(rack: TargetRack, monkeypatch: pytest.MonkeyPatch) -> None:
    rack.states("idle 1")
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(RigError, match="does not settle"):
        rack.body.settle(0)


def test_what_cannot_be_read_is_missing_from_what_is_read(rack: TargetRack) -> None:
    rack.machine.on("sh", "-c", label.RAW, answer=replace(completed(["sh"]), stdout=gzip.compress(b"abc")))
    assert rack.body.read(0, 4096) == b"abc"


@pytest.mark.parametrize(
    ("limits", "sworn", "level", "trim"),
    [
        ("1\n1\n1\n1\n", "N", RaidLevel.RAID1, True),
        ("1\n0\n1\n1\n", "Y", RaidLevel.RAID1, False),
        ("1\n1\n1\n1\n", "N", RaidLevel.RAID5, False),
        ("1\n1\n1\n1\n", "Y", RaidLevel.RAID5, True),
    ],
)
def test_a_raid5_takes_discards_only_where_somebody_has_sworn(
    rack: TargetRack, limits: str, sworn: str, level: RaidLevel, trim: bool
) -> None:
    rack.machine.on("cat", answer=limits).on("cat", SWORN, answer=sworn)
    assert rack.body.abilities(level) == Abilities(trim=trim, power_cut=True)


def test_without_a_switch_there_is_no_power_cut(rack: TargetRack) -> None:
    rack.machine.on("cat", answer="1\n")
    rack.body.switch = None
    assert not rack.body.abilities(RaidLevel.RAID0).power_cut
    with pytest.raises(RigError, match="cut the power"):
        rack.body.cut([1, 2, 3], 0, 1, None)


def test_only_a_part_of_large_members_is_used(rack: TargetRack) -> None:
    assert rack.body._used_bytes(DRIVES) == 64 << 20
    assert rack.body._used_bytes([replace(DRIVES[0], size_bytes=80 << 20)]) is None


def test_closing_erases_whoever_bears_our_superblock(rack: TargetRack, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[Drive, ...]] = []
    monkeypatch.setattr(array_lifecycle, "take_down", lambda setup, path, members, uuid, missing: taken.append(members))
    rack.body.add(4)
    rack.body.close()
    rack.body.close()
    assert taken == [DRIVES]


@pytest.mark.parametrize(("settled", "missing"), [(None, 1), (1, 1), (0, 0)])
def test_closing_expects_the_members_that_were_failed(
    rack: TargetRack, monkeypatch: pytest.MonkeyPatch, settled: int | None, missing: int
) -> None:
    """A history may end with members missing on purpose; that is no loss for the gate of the run."""
    expected: list[int] = []
    monkeypatch.setattr(
        array_lifecycle, "take_down", lambda setup, path, members, uuid, missing: expected.append(missing)
    )
    rack.states("idle 0")
    rack.body.fail(2)
    if settled is not None:
        rack.states(f"idle {settled}")
        rack.body.settle(settled)
    rack.body.close()
    assert expected == [missing]


def test_arrays_spare_their_beginning_and_drives_are_labelled(
    rack: TargetRack, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled: list[Sequence[Drive]] = []
    array = replace(ARRAY, begin_bytes=3 << 20)
    monkeypatch.setattr(MdTarget, "close", lambda body: None)
    monkeypatch.setattr(MdTarget, "_purge", lambda body: None)
    monkeypatch.setattr(zero, "zero", lambda machine, members: not labelled)
    monkeypatch.setattr(label, "write_drives", lambda machine, drives: labelled.append(drives))
    monkeypatch.setattr(
        MdTarget, "_created", lambda body, geometry, bitmap, zeroed: array if zeroed and labelled else None
    )
    ground = rack.body.build(StepSequence(ARRAY.geometry, "none", ()))
    assert labelled == [DRIVES]
    assert ground.begin_bytes == 3 << 20
    found = runner._spread(StepSequence(ARRAY.geometry, "none", ()), ground)
    assert found[0].offset_bytes == 3 << 20
