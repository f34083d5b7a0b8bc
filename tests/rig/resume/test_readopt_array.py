from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from support.builders import strategies
from support.builders.drives import drive
from support.builders.measuring import PROTOCOL, SETTLED, WRITE, setup_of
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain
from pytest_ssdqual.qual.spec.protocol_rules import (
    VisitRule,
)
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.health import write_counters
from pytest_ssdqual.rig.health.write_counters import Written
from pytest_ssdqual.rig.machine.machine import (
    CommandFailed,
    DriveRefused,
    InvalidMeasurement,
    Machine,
    MachineLost,
    RigError,
)
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, refresh
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.purge import zero
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import Checkpoint, Conditioned

RAID5X3, DRIVES_X3 = Geometry.parse("raid5x3"), Geometry.parse("drivex3")


def counted(sectors: int = 5000, boot: str = "boot", appearance: int = 7) -> dict[str, Written]:
    return {f"S{number}": Written(boot, appearance, sectors, 0, None) for number in range(3)}


LEFT = Checkpoint(
    geometry=RAID5X3, members=("S0", "S1", "S2"), uuid="old", passes=1, fill_bs="128k", size_bytes=512 << 20,
    data_offset_bytes=1 << 20, consistency="zeroed", conditioned=Conditioned(WRITE, SETTLED),
    counters=counted(), abandoned=True,
)  # fmt: skip
ARRAY = Array(RAID5X3, "/dev/md100", tuple(map(drive, range(3))), "u", 1 << 29, "zeroed")


@dataclass
class ReadoptRig(Logbook):
    """Everything below, and what was done."""

    drives: tuple[Drive, ...] = tuple(map(drive, range(4)))
    now: dict[str, Written] | RigError = field(default_factory=counted)
    #: At each of a drive's spots.
    zeroes: Sequence[int] = (250, 260, 240, 255, 256)
    size_bytes: int = 512 << 20
    refuses: RigError | None = None
    lease: RigError | None = None
    fails: RigError | None = None
    did: list[str] = field(default_factory=list)

    @property
    def setup(self) -> Setup:
        answer = "".join(f"{count}\n" for count in self.zeroes)
        machine = ScriptedMachine().on("sh", "-c", zero.ZEROES, answer=answer)
        machine.on("sh", "-c", mdadm.OFFSETS, answer="2048\n2048\n2048\n")
        machine.on("grep", answer="/sys/block/md100/md/array_state:clean\n")
        return setup_of(self, machine=machine, held=self)

    def require(self, drives: Sequence[Drive]) -> None:
        if self.refuses:
            raise self.refuses
        self.did.append(f"require {len(drives)}")

    def expect(self, uuid: str) -> None:
        """Of no interest here."""

    def require_lease(self) -> None:
        if self.lease:
            raise self.lease

    def note(self, kind: str, **facts: object) -> None:
        self.did.append(kind)
        super().note(kind, **facts)

    def create(
        self, machine: Machine, geometry: Geometry, members: Sequence[Drive], settings: object, *, path: str, uuid: str,
        zeroed: bool, data_offset_bytes: int | None = None, **room: object,
    ) -> Array:  # fmt: skip
        self.did.append(f"create {','.join(each.identity for each in members)} at:{data_offset_bytes}")
        if self.fails:
            raise self.fails
        return Array(geometry, path, tuple(members), uuid, self.size_bytes, "zeroed" if zeroed else "resync")

    def stop(self, machine: object, path: str, members: Sequence[str], uuid: str) -> tuple[str, ...]:
        self.did.append(f"stop {path}")
        return ()

    def read(self, machine: object, drives: Sequence[Drive], *, smart: bool = True) -> dict[str, Written]:
        if isinstance(self.now, RigError):
            raise self.now
        self.did.append(f"count {len(drives)}{'+SMART' if smart else ''}")
        return self.now


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> ReadoptRig:
    rig = ReadoptRig()
    monkeypatch.setattr(mdadm, "create", rig.create)
    monkeypatch.setattr(mdadm, "stop", rig.stop)
    monkeypatch.setattr(mdadm, "free_path", lambda machine: "/dev/md100")
    monkeypatch.setattr(write_counters, "read", rig.read)
    return rig


# -- taking over


def test_what_is_as_it_was_stands_again(rig: ReadoptRig) -> None:
    array = readopt_array.take_over(rig.setup, LEFT)
    assert array is not None
    assert rig.did == [
        "require 3", "count 3+SMART", "array_planned", "create S0,S1,S2 at:1048576", "array_created",
        "conditioning_kept",
    ]  # fmt: skip
    assert (array.geometry, array.consistency) == (RAID5X3, "zeroed")
    assert array.uuid not in ("", "old")
    created, kept = rig.noted("array_created"), rig.noted("conditioning_kept")
    assert (created["kept_of"], created["fill"], created["data_offset_bytes"]) == (
        "old",
        {"passes": 1, "bs": "128k"},
        1 << 20,
    )
    assert (kept["kept_of"], kept["uuid"]) == ("old", array.uuid)
    assert kept["sent_bytes"] == {"S0": 0, "S1": 0, "S2": 0}
    assert kept["conditioned"]["workload"] == str(WRITE)


def test_drives_side_by_side_need_no_mdadm(rig: ReadoptRig) -> None:
    left = replace(LEFT, geometry=DRIVES_X3, uuid="", size_bytes=3 * (256 << 20), data_offset_bytes=0, abandoned=False)
    array = readopt_array.take_over(rig.setup, left)
    assert array is not None
    assert rig.did == ["require 3", "count 3+SMART", "array_created", "conditioning_kept"]


def moved(**changes: object) -> dict[str, Written]:
    """The second member alone is not as it was."""
    now = counted()
    return {**now, "S1": replace(now["S1"], **changes)}  # type: ignore[arg-type]


SECTORS = write_counters.STOPPING_BYTES // 512
CLOSED = replace(LEFT, abandoned=False)


@pytest.mark.parametrize(
    ("left", "changes", "reason"),
    [
        (LEFT, {"now": moved(sectors=5000 + SECTORS + 1)}, "S1 was written to meanwhile: 33,280 bytes"),
        (LEFT, {"now": moved(discarded_sectors=SECTORS + 1)}, "S1 was written to meanwhile: 33,280 bytes"),
        (LEFT, {"now": moved(boot_id="another")}, "the machine was rebooted, or a drive replugged, while"),
        (LEFT, {"now": moved(appearance=8)}, "the machine was rebooted, or a drive replugged, while"),
        (CLOSED, {"now": moved(boot_id="another")}, "cannot determine whether S1 was written"),
        (CLOSED, {"now": moved(sectors=5001)}, "S1 was written to meanwhile: 512 bytes"),
        (LEFT, {"drives": tuple(map(drive, (1, 0, 2)))}, "its members are not the first drives of this session"),
        (replace(LEFT, counters=moved() | {"S9": counted()["S0"]}), {}, "no write counters of its members were record"),
        (LEFT, {"zeroes": (250, 260, 65536, 255, 256)}, "S0 does not hold the data of the fill"),
        (LEFT, {"zeroes": (250, 260, 0, 255, 256)}, "S0 does not hold the data of the fill"),
        (LEFT, {"zeroes": (250, 260)}, "S0 does not hold the data of the fill"),
        (LEFT, {"size_bytes": 1}, "raid5x3 now has 1 bytes instead of 536870912"),
        (LEFT, {"fails": RigError("mdadm: no room")}, "mdadm: no room"),
        (LEFT, {"now": RigError("there are no counters")}, "there are no counters"),
    ],
)
def test_what_is_not_as_it_was_is_not_taken_over(
    rig: ReadoptRig, left: Checkpoint, changes: dict[str, object], reason: str
) -> None:
    for name, value in changes.items():
        setattr(rig, name, value)
    assert readopt_array.take_over(rig.setup, left) is None
    noted = rig.noted("conditioning_not_kept")
    assert noted["reasons"][0].startswith(reason)
    assert (noted["geometry"], noted["uuid"]) == ("raid5x3", "old")
    assert not [each for each, _ in rig.notes if each == "conditioning_kept"]
    # Whatever was put together is taken apart again, and what was found out before touched nothing.
    created = [each for each in rig.did if each.startswith("create")]
    assert len([each for each in rig.did if each.startswith("stop")]) == len(created)
    assert bool(created) == ("size_bytes" in changes or "fails" in changes)


def test_what_md_writes_itself_is_allowed(rig: ReadoptRig) -> None:
    rig.now = moved(sectors=5000 + SECTORS)
    assert readopt_array.take_over(rig.setup, LEFT)
    assert rig.noted("conditioning_kept")["sent_bytes"] == {"S0": 0, "S1": write_counters.STOPPING_BYTES, "S2": 0}


def test_array_closed_in_order_survives_a_boot(rig: ReadoptRig) -> None:
    def by_smart(written: dict[str, Written], boot: str) -> dict[str, Written]:
        return {name: replace(each, host_bytes=512_000, boot_id=boot) for name, each in written.items()}

    rig.now = by_smart(counted(sectors=3), "another")
    closed = replace(CLOSED, counters=by_smart(counted(), "boot"))
    assert readopt_array.take_over(rig.setup, closed)
    assert readopt_array.take_over(rig.setup, replace(closed, abandoned=True)) is None


def test_refusal_or_loss_of_the_machine_is_not_passed_over(rig: ReadoptRig) -> None:
    rig.now = MachineLost("gone")
    with pytest.raises(MachineLost):
        readopt_array.take_over(rig.setup, LEFT)
    with pytest.raises(MachineLost):
        readopt_array.count(rig.setup, ARRAY, "built")
    rig.did.clear()
    rig.refuses = DriveRefused("/dev/nvme0n1 is mounted")
    with pytest.raises(DriveRefused):
        readopt_array.take_over(rig.setup, LEFT)
    assert rig.did == []


# -- counting


@pytest.mark.parametrize(
    ("geometry", "moment", "smart"),
    [("raid5x3", "measured", ""), ("raid5x3", "closed", "+SMART"), ("drivex3", "measured", "+SMART")],
)
def test_what_was_sent_is_noted(rig: ReadoptRig, geometry: str, moment: str, smart: str) -> None:
    readopt_array.count(rig.setup, replace(ARRAY, geometry=Geometry.parse(geometry)), moment)
    noted = rig.noted("counters")
    assert (noted["moment"], noted["geometry"], noted["uuid"]) == (moment, geometry, "u")
    assert {name: from_plain(Written, each) for name, each in noted["written"].items()} == counted()
    assert rig.did[0] == f"count 3{smart}"


@pytest.mark.parametrize("trouble", [{"lease": LeaseLost("lost")}, {"now": CommandFailed("sh", cast("Any", None))}])
def test_what_cannot_be_counted_is_passed_over(rig: ReadoptRig, trouble: dict[str, RigError]) -> None:
    for name, error in trouble.items():
        setattr(rig, name, error)
    readopt_array.count(rig.setup, ARRAY, "closed")
    assert rig.notes == []


# -- confirming


@pytest.mark.parametrize(
    ("iops", "confirmed"),
    [
        ([1000] * 6, True),
        ([1190] * 6, True),
        ([810] * 6, True),
        ([1210] * 6, False),  # collected its garbage while it was idle
        ([790] * 6, False),
        ([1000, 1300, 1100, 1000, 900, 800], False),
    ],
)
def test_class_is_confirmed_by_one_window_at_its_settled_rate(
    rig: ReadoptRig, iops: list[int], confirmed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
        asked.append((workload, kind, window))
        return strategies.run(iops, geometry="raid5x3", workload=workload, ramp_s=1, window_s=5, rounds=5)

    monkeypatch.setattr(fixed_time, "run", run)
    found = readopt_array.confirm(rig.setup, ARRAY, Conditioned(WRITE, SETTLED))
    assert asked == [(WRITE, "refresh", ProcessWindow(1, 5, 5))]
    assert bool(found) == confirmed
    noted = rig.noted("conditioning_confirmed")
    assert (noted["confirmed"], noted["workload"], not noted["reason"]) == (confirmed, str(WRITE), confirmed)


@pytest.mark.parametrize(
    ("rates", "now", "is_kept"),
    [
        ((1000.0, 500.0), (1000, 500), True),
        ((1000.0, 500.0), (1190, 410), True),
        ((1000.0, 500.0), (1210, 500), False),
        ((1000.0, 500.0), (1000, 390), False),
        ((1000.0,), (1000, 500), False),
    ],
)
def test_drives_are_each_as_they_settled(
    rig: ReadoptRig, rates: Sequence[float], now: Sequence[int], is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = strategies.side_by_side([[iops] * 5 for iops in now], workload=WRITE)
    monkeypatch.setattr(fixed_time, "run", lambda *_: found)
    array = replace(ARRAY, geometry=Geometry.parse("drivex2"), members=rig.drives[:2])
    settled = {f"S{number}": rate for number, rate in enumerate(rates)}
    assert bool(readopt_array.confirm(rig.setup, array, Conditioned(WRITE, SETTLED, settled))) == is_kept


@pytest.mark.parametrize("raises", [None, InvalidMeasurement("S1 is not as it settled"), MachineLost("gone")])
def test_by_a_protocol_with_visits_bare_drives_are_refreshed(
    rig: ReadoptRig, raises: RigError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In doubt they are conditioned anew: no drive may have settled at another rate meanwhile."""
    asked: list[bool] = []

    def refreshed(setup: Setup, array: Array, conditioned: Conditioned, *, may_resettle: bool) -> Conditioned:
        asked.append(may_resettle)
        if raises:
            raise raises
        return conditioned

    monkeypatch.setattr(refresh, "refresh", refreshed)
    array = Array(DRIVES_X3, "/dev/nvme0n1", rig.drives[:3], "", 1 << 29, "none needed")
    setup, conditioned = (
        replace(rig.setup, protocol=replace(PROTOCOL, visits=VisitRule())),
        Conditioned(WRITE, SETTLED),
    )
    if isinstance(raises, MachineLost):
        with pytest.raises(MachineLost):
            readopt_array.confirm(setup, array, conditioned)
    else:
        assert readopt_array.confirm(setup, array, conditioned) == (None if raises else conditioned)
    assert asked == [False]
