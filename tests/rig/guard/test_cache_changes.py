from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from support.builders.drives import drive
from support.fakes.leases import Leases
from support.fakes.scripted import ScriptedMachine
from support.simulator.simulated_caches import Caches

from pytest_ssdqual.qual.spec.protocol_rules import WriteCacheRule
from pytest_ssdqual.rig.drives.cache_state import CacheState
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.drives.write_cache import SCRIPT, by_hand
from pytest_ssdqual.rig.guard import cache_changes, refusals
from pytest_ssdqual.rig.guard.cache_changes import CacheChange, WriteCaches, restore_left, undo
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import (
    DeadlineExceeded,
    DriveRefused,
    InvalidMeasurement,
    LeaseTaken,
    MachineLost,
    RigError,
)

ON, OFF, ABSENT, UNKNOWN = CacheState
SERIALS = ("S0", "S1", "S2")
DRIVES = tuple(drive(number) for number in range(len(SERIALS)))


@dataclass
class Held:
    """A lease on all drives, as long as it lasts."""

    did: list[str]
    drives: Sequence[Drive] = DRIVES
    lost: bool = False
    #: Why drives are not as they were before the connection was lost.
    changed: str = ""

    def require_lease(self) -> None:
        self.require_lease_alone()
        if self.changed:
            raise DriveRefused(self.changed)

    def require_lease_alone(self) -> None:
        if self.lost:
            raise LeaseLost("the lease was lost")


@dataclass
class Bench:
    """Drives with write caches, and what was done in which order."""

    caches: Caches
    did: list[str] = field(default_factory=list)
    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: Raised by the machine when a drive of this serial is asked, and when it is switched.
    broken: dict[tuple[str, str], Exception] = field(default_factory=dict)
    held: Held = field(init=False)

    def __post_init__(self) -> None:
        self.held = Held(self.did)
        self.machine = ScriptedMachine().on("sh", "-c", SCRIPT, answer=self._answer)

    def _answer(self, argv: tuple[str, ...]) -> str:
        serial, to = SERIALS[int(argv[4][4])], argv[7]
        if error := self.broken.get((serial, to)):
            raise error
        if to != "read":
            self.did.append(f"switch {serial} {to}")
        return self.caches.answer(serial, to)

    def note(self, kind: str, **facts: object) -> None:
        self.did.append(f"{kind} {facts['drive']}")
        self.notes.append((kind, facts))

    def run(self, rule: WriteCacheRule, **earlier: CacheState) -> WriteCaches:
        return WriteCaches(self.machine, self.held, rule, self.note, "m1", earlier)  # type: ignore[arg-type]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [facts for found, facts in self.notes if found == kind]


def bench(**states: str) -> Bench:
    return Bench(Caches(states))


def off(rig: Bench) -> WriteCaches:
    """The caches of drives that were switched off for a run."""
    caches = rig.run("off")
    caches.set()
    return caches


def full(kind: str, **facts: object) -> None:
    raise RigError("No space left on device")


def test_former_state_is_recorded_before_the_switch_and_restored() -> None:
    rig = bench(S1="off", S2="absent")
    caches = off(rig)
    assert rig.did == [
        "write_cache_planned S0", "switch S0 off", "write_cache S0", "write_cache S1", "write_cache S2",
    ]  # fmt: skip
    (planned,) = rig.of("write_cache_planned")
    assert (planned["was"], planned["wanted"], planned["machine_id"]) == (ON, OFF, "m1")
    assert [(each["found"], each["now"]) for each in rig.of("write_cache")] == [(ON, OFF), (OFF, OFF), (ABSENT, ABSENT)]
    caches.restore()
    assert rig.did[5:] == ["switch S0 on", "write_cache_restored S0"]
    (restored,) = rig.of("write_cache_restored")
    assert restored["change"] == planned["change"]
    assert (restored["stood"], restored["now"], restored["lost"], restored["leftover"]) == (OFF, ON, False, False)
    caches.restore()
    assert len(rig.did) == 7, "nothing is restored twice"


def test_caches_are_set_once_before_the_first_step() -> None:
    rig = bench()
    caches = rig.run("off")
    caches.require_set()
    caches.require_set()
    assert len(rig.of("write_cache")) == 3


@pytest.mark.parametrize(
    ("rule", "found", "switched"), [("on", "off", True), ("on", "on", False), ("off", "off", False)]
)
def test_only_what_is_demanded_otherwise_is_switched(rule: WriteCacheRule, found: str, switched: bool) -> None:
    rig = bench(**dict.fromkeys(SERIALS, found))
    rig.run(rule).set()
    assert [each[1] for each in rig.caches.switched] == [rule] * 3 * switched
    assert {each["now"] for each in rig.of("write_cache")} == {rule}


def test_caches_that_stay_as_found_are_read_once() -> None:
    rig = bench(S1="off", S2="mute")
    caches = rig.run("as found")
    caches.set()
    asked = len(rig.machine.asked)
    caches.require(DRIVES)
    assert len(rig.machine.asked) == asked
    caches.restore()
    assert rig.did == ["write_cache S0", "write_cache S1", "write_cache S2"]
    assert [each["now"] for each in rig.of("write_cache")] == [ON, OFF, UNKNOWN]


def test_drive_that_refuses_is_recorded_and_the_run_goes_on() -> None:
    rig = bench(S0="stuck")
    caches = off(rig)
    refused, *switched = rig.of("write_cache")
    assert (refused["found"], refused["now"]) == (ON, ON)
    assert "Feature Not Changeable" in refused["outcome"]
    assert [each["now"] for each in switched] == [OFF, OFF]
    caches.restore()
    assert [each["lost"] for each in rig.of("write_cache_restored")] == [False] * 3


def test_drive_of_unknown_state_is_not_switched() -> None:
    """Nothing could be restored."""
    rig = bench(S0="mute")
    rig.broken["S1", "read"] = RigError("the answer was cut short")
    off(rig)
    assert rig.caches.switched == [("S2", "off")]
    mute, cut, _ = (each["outcome"] for each in rig.of("write_cache"))
    assert mute == "unknown"
    assert "was cut short" in cut


def test_nothing_is_switched_without_the_lease() -> None:
    rig = bench()
    rig.held.lost = True
    with pytest.raises(LeaseLost):
        rig.run("off").set()
    assert rig.did == []


def test_change_whose_record_cannot_be_written_is_not_made() -> None:
    rig = bench()
    caches = WriteCaches(rig.machine, rig.held, "off", full)  # type: ignore[arg-type]
    with pytest.raises(RigError, match="No space left"):
        caches.set()
    assert rig.caches.switched == []


@pytest.mark.parametrize(
    "error", [RigError("it is gone"), DeadlineExceeded("it did not end"), MachineLost("m is lost")]
)
def test_switch_of_unknown_effect_is_restored(error: RigError) -> None:
    rig = bench()
    rig.broken["S0", "off"] = error
    caches = rig.run("off")
    if error.ends_run:
        with pytest.raises(MachineLost):
            caches.set()
    else:
        caches.set()
        assert rig.of("write_cache")[0]["now"] is UNKNOWN
    caches.restore()
    assert ("S0", "on") in rig.caches.switched
    assert set(rig.caches.states.values()) == {"on"}


def test_all_drives_are_restored_where_nothing_can_be_recorded() -> None:
    rig = bench()
    caches = off(rig)
    caches.note = full
    with pytest.raises(RigError, match="No space left"):
        caches.restore()
    assert set(rig.caches.states.values()) == {"on"}


def test_drive_that_was_found_as_demanded_is_restored_to_that() -> None:
    rig = bench(S0="off")
    caches = off(rig)
    rig.caches.states["S0"] = "on"  # by a reset
    with pytest.raises(InvalidMeasurement):
        caches.require(DRIVES)
    caches.restore()
    assert rig.caches.states == {"S0": "off", "S1": "on", "S2": "on"}
    assert not any(each["lost"] for each in rig.of("write_cache_restored"))


@pytest.mark.parametrize("changed", ["", "/dev/nvme1n1 turned read-only since it was checked"])
def test_drive_that_cannot_be_restored_stops_no_other(changed: str) -> None:
    rig = bench()
    caches = off(rig)
    rig.held.changed = changed
    rig.broken["S1", "on"] = DriveRefused("it is gone") if changed else RigError("it is gone")
    caches.restore()
    assert rig.caches.states == {"S0": "on", "S1": "off", "S2": "on"}
    (left,) = rig.of("write_cache_left")
    assert left["drive"] == "S1"
    assert "(it is gone)" in left["sentence"]
    assert by_hand(DRIVES[1], ON) in left["sentence"]


@pytest.mark.parametrize("why", ["lease", "machine", "erasure"])
def test_drives_that_cannot_be_restored_are_left_to_the_next_run(why: str) -> None:
    rig = bench()
    caches = off(rig)
    asked = len(rig.machine.asked)
    rig.held.lost = why == "lease"
    if why == "machine":
        rig.broken |= {(serial, "on"): MachineLost("scripted is lost") for serial in SERIALS}
        with pytest.raises(MachineLost):
            caches.restore()
    else:
        caches.restore("NVMe Format of /dev/nvme0n1 continues on dut7" if why == "erasure" else "")
        assert len(rig.machine.asked) == asked
    assert set(rig.caches.states.values()) == {"off"}
    assert [each["drive"] for each in rig.of("write_cache_left")] == list(SERIALS)
    assert rig.of("write_cache_restored") == []


def test_setting_that_a_drive_lost_meanwhile_is_reported() -> None:
    rig = bench()
    caches = off(rig)
    rig.caches.states["S0"] = "on"  # reset by its power, say
    caches.restore()
    assert [each["lost"] for each in rig.of("write_cache_restored")] == [True, False, False]


def test_measurement_does_not_count_if_a_drive_lost_the_setting() -> None:
    rig = bench(S2="stuck")
    caches = off(rig)
    caches.require(DRIVES)
    rig.caches.states["S1"] = "on"
    caches.require(DRIVES[:1])
    with pytest.raises(InvalidMeasurement, match=r"serial S1\)$"):
        caches.require(DRIVES)
    assert rig.caches.states["S1"] == "off", "the next one has it again"
    caches.require(DRIVES)
    switched = len(rig.caches.switched)
    rig.caches.states["S0"] = "mute"
    rig.broken["S1", "read"] = RigError("the answer was cut short")
    with pytest.raises(InvalidMeasurement, match=r"S0\), .*S1\) .*cut"):
        caches.require(DRIVES)
    assert len(rig.caches.switched) == switched, "nothing is switched by a guess"


def test_setting_that_was_lost_with_the_power_is_the_same_change() -> None:
    rig = bench()
    caches = off(rig)
    rig.caches.states.update(S0="on", S2="on")
    caches.set()
    assert set(rig.caches.states.values()) == {"off"}
    assert len(rig.of("write_cache_planned")) == 3
    caches.restore()
    assert set(rig.caches.states.values()) == {"on"}
    assert len({each["change"] for each in rig.of("write_cache_restored")}) == 3


def test_resumed_run_needs_the_caches_as_they_were() -> None:
    rig = bench(S1="off")
    rig.run("as found", S0=ON, S1=OFF, S2=UNKNOWN).set()
    rig.run("off", S0=OFF).set()
    late = bench(S1="off").run("as found", S1=ON)
    for _ in range(2):  # each step that needs the drives fails
        with pytest.raises(RigError, match=r"S1\) is off"):
            late.require_set()


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> Leases:
    leases = Leases()
    monkeypatch.setattr(cache_changes, "Lease", leases)
    monkeypatch.setattr(refusals, "recheck", lambda machine, *drives, unchecked: None)
    return leases


@pytest.fixture
def left(leases: Leases) -> Bench:
    """Drives whose caches an earlier run switched off."""
    rig = bench(S0="off", S1="off")
    rig.did = leases.events
    return rig


#: The second change of S0 was made of what the first had left.
CHANGES = [CacheChange("a", "S0", ON), CacheChange("b", "S0", OFF), CacheChange("c", "elsewhere", ON)]


def test_next_run_restores_the_oldest_state_under_a_lease(left: Bench) -> None:
    (sentence,) = restore_left(left.machine, DRIVES, CHANGES, lambda: CHANGES, left.note)
    assert sentence.endswith("is on again")
    assert left.did == ["take s0", "switch S0 on", "write_cache_restored S0", "write_cache_restored S0", "release"]
    restored = [(each["change"], each["leftover"]) for each in left.of("write_cache_restored")]
    assert restored == [("a", True), ("b", True)]


GENERIC = "0000000000000001"


@pytest.mark.parametrize(
    ("drives", "change", "is_undone"),
    [
        # The run that switched it knew the drive by another namespace.
        (DRIVES, CacheChange("a", "eui.1", ON, frozenset({"eui.1", "s0"})), True),
        # A bridge may report one serial for several drives, each with a write cache of its own.
        ([replace(each, transport="usb") for each in DRIVES], CacheChange("a", "eui.1", ON, frozenset({"s0"})), False),
        (
            [replace(DRIVES[0], serial=GENERIC, wwn="eui.bbbb")],
            CacheChange("a", "eui.aaaa", ON, frozenset({"eui.aaaa", GENERIC})),
            False,
        ),
        (DRIVES[1:], CHANGES[0], False),
    ],
    ids=["another namespace", "bridge", "placeholder", "other drives"],
)
def test_change_is_undone_on_the_drive_that_it_is_of(
    left: Bench, drives: Sequence[Drive], change: CacheChange, is_undone: bool
) -> None:
    assert bool(restore_left(left.machine, drives, [change], lambda: [change], left.note)) is is_undone
    assert bool(left.did) is is_undone, "other drives need no lease"


def test_change_that_its_own_run_undid_is_not_undone_again(left: Bench) -> None:
    assert restore_left(left.machine, DRIVES, CHANGES, list, left.note) == ()
    assert left.did == ["take s0", "release"]


def test_drive_that_is_in_use_now_is_not_switched(left: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(machine: object, *drives: Drive, unchecked: object) -> None:
        raise DriveRefused("is mounted at /srv")

    monkeypatch.setattr(refusals, "recheck", refuse)
    with pytest.raises(DriveRefused):
        restore_left(left.machine, DRIVES, CHANGES, lambda: CHANGES, left.note)
    assert left.did == ["take s0", "release"]


def test_next_run_restores_nothing_without_its_lease(left: Bench, leases: Leases) -> None:
    leases.lost = True
    (sentence,) = restore_left(left.machine, DRIVES, CHANGES, lambda: CHANGES, left.note)
    assert "lease was lost" in sentence
    assert left.caches.switched == []
    left.did.clear()
    leases.taken = frozenset({"s0"})
    with pytest.raises(LeaseTaken):
        restore_left(left.machine, DRIVES, CHANGES, lambda: CHANGES, left.note)
    assert left.did == []


def test_change_that_cannot_be_undone_stays_on_record() -> None:
    rig = bench(S0="off")
    rig.broken["S0", "on"] = RigError("it does not answer")
    assert "not answer" in undo(rig.machine, DRIVES[0], CHANGES[:1], rig.note, rig.held.require_lease)
    rig.broken.clear()
    rig.caches.states["S0"] = "mute"
    undo(rig.machine, DRIVES[0], CHANGES[:1], rig.note, rig.held.require_lease)
    assert [kind for kind, _ in rig.notes] == ["write_cache_left"] * 2
