"""A campaign that resumes: what an earlier session has measured and left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from support.builders import strategies
from support.builders.measuring import READ, SETTLED, STREAM, WRITE, setup_of

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.measured.saturation import Saturation
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.stats.visits import Cell
from pytest_ssdqual.qual.workload.rounds import Rounds, RoundsResult, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.campaign.campaign import Campaign
from pytest_ssdqual.rig.campaign.campaign_plan import CampaignPlan
from pytest_ssdqual.rig.campaign.result_cache import ResultCache
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import array_lifecycle, fixed_time, precondition, rounds, saturation
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume import readopt_array
from pytest_ssdqual.rig.resume.checkpoint import Checkpoint, Conditioned, EarlierResults, ResultKey

RAID5X3, RAID5X4 = Geometry.parse("raid5x3"), Geometry.parse("raid5x4")
LOOP = Rounds("pair", (READ, WRITE), (Tracked(WRITE, "steady_iops"),), fill_bs="128k", fill_passes=1)
LEFT = Checkpoint(
    geometry=RAID5X3, members=("S0", "S1", "S2"), uuid="old", passes=1, fill_bs="128k", size_bytes=1 << 29,
    data_offset_bytes=1 << 20, consistency="zeroed", conditioned=Conditioned(WRITE, SETTLED), counters={},
)  # fmt: skip


def measured(workload: Workload = READ, geometry: Geometry = RAID5X3) -> Measured:
    return Measured((strategies.run([1000] * 5, geometry=str(geometry), workload=workload),))


@dataclass
class Recalled(EarlierResults):
    """The ``EarlierResults``, and what they were asked."""

    known: dict[ResultKey, object] = field(default_factory=dict)
    left: Checkpoint | None = None

    def has(self, key: ResultKey) -> bool:
        return key in self.known

    def cells(self, key: ResultKey) -> Sequence[Cell]:
        return ()

    def recall(self, key: ResultKey) -> object | None:
        return self.known.get(key)

    def left_array(self) -> Checkpoint | None:
        return self.left


@dataclass
class CheckpointRig:
    """Everything below the campaign, and what it was asked to do."""

    did: list[str] = field(default_factory=list)
    #: What becomes of taking over, and of confirming.
    is_as_it_was: bool = True
    confirms: bool = True

    def setup(self) -> Setup:
        return setup_of(None, machine=SimpleNamespace(generation=0))

    def array(self, geometry: Geometry, what: str) -> Array:
        self.did.append(f"{what} {geometry}")
        return Array(geometry, "/dev/md100", (), what, 1 << 29, "zeroed")

    def confirm(self, setup: Setup, array: Array, kept: Conditioned) -> Conditioned | None:
        self.did.append(f"confirm {kept.writes}")
        return kept if self.confirms else None

    def precondition(self, setup: Setup, array: Array, workload: Workload) -> Conditioned:
        self.did.append(f"condition for {workload}")
        return Conditioned(workload, SETTLED)

    def measure(self, setup: Setup, array: Array, workload: Workload, *, tail: bool) -> Measured:
        self.did.append(f"measure {workload}")
        return measured(workload, array.geometry)

    def loop(self, setup: Setup, array: Array, loop: Rounds) -> RoundsResult:
        self.did.append(f"loop {loop}")
        cells = tuple(measured(each, array.geometry).runs[0] for each in loop.workloads)
        return RoundsResult(array.geometry, loop, (cells,) * 5)

    def saturate(self, setup: Setup, array: Array, workload: Workload) -> Saturation:
        self.did.append(f"saturate with {workload}")
        return Saturation(measured(workload, array.geometry).runs[0], 1 << 29)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> CheckpointRig:
    rig = CheckpointRig()

    def take_over(setup: Setup, left: Checkpoint) -> Array | None:
        return rig.array(left.geometry, "take over") if rig.is_as_it_was else None

    monkeypatch.setattr(array_lifecycle, "build", lambda setup, geometry, fill, pattern: rig.array(geometry, "build"))
    monkeypatch.setattr(array_lifecycle, "stop", lambda setup, array: rig.did.append(f"stop {array.geometry}"))
    monkeypatch.setattr(readopt_array, "take_over", take_over)
    monkeypatch.setattr(readopt_array, "confirm", rig.confirm)
    monkeypatch.setattr(readopt_array, "count", lambda setup, array, moment: rig.did.append(f"count {moment}"))
    monkeypatch.setattr(precondition, "until_steady", rig.precondition)
    monkeypatch.setattr(fixed_time, "measure", rig.measure)
    monkeypatch.setattr(rounds, "run", rig.loop)
    monkeypatch.setattr(saturation, "saturate", rig.saturate)
    return rig


def campaign(rig: CheckpointRig, checkpoint: Recalled | None = None) -> Campaign:
    setup = rig.setup()
    cache = ResultCache(earlier=checkpoint or EarlierResults())
    return Campaign(setup, plan=CampaignPlan.of((), setup.protocol), cache=cache)


def done(rig: CheckpointRig) -> list[str]:
    return [each for each in rig.did if not each.startswith("count")]


# -- what was measured


def rebuilding(workload: Workload) -> tuple[ResultKey, Rebuild]:
    geometry = Geometry.parse("raid5x3-1rebuilding")
    return ResultKey("rebuild", geometry, str(READ)), Rebuild(geometry, 60.0, 1 << 28, measured(workload, geometry), 0)


def looped(loop: Rounds) -> RoundsResult:
    cells = tuple(measured(each).runs[0] for each in loop.workloads)
    return RoundsResult(RAID5X3, loop, (cells,) * 5)


KNOWN: dict[str, tuple[ResultKey, object, Callable[[Campaign], object]]] = {
    "measured": (ResultKey("measured", RAID5X3, str(READ)), measured(), lambda here: here.measure(RAID5X3, READ)),
    "saturation": (
        ResultKey("saturation", RAID5X3, str(WRITE)),
        Saturation(measured(WRITE).runs[0], 1 << 29),
        lambda here: here.saturate(RAID5X3, WRITE),
    ),
    "loop": (ResultKey("loop", RAID5X3, "pair"), looped(LOOP), lambda here: here.loop(RAID5X3, LOOP)),
    "rebuild": (*rebuilding(READ), lambda here: here.rebuild(Geometry.parse("raid5x3-1rebuilding"), READ)),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_what_is_recalled_is_not_made_again(rig: CheckpointRig, kind: str) -> None:
    key, value, ask = KNOWN[kind]
    here = campaign(rig, Recalled({key: value}, LEFT))
    assert ask(here) is value
    here.close()
    assert rig.did == []


PROFILE = Workload("randrw", "4k/60:64k/40", 8, read_percent=80, name="fileserver")
CHANGED: dict[str, tuple[ResultKey, object, Callable[[Campaign], object]]] = {
    "measured": (
        ResultKey("measured", RAID5X3, str(PROFILE)),
        measured(replace(PROFILE, read_percent=70)),
        lambda here: here.measure(RAID5X3, PROFILE),
    ),
    "loop": (
        ResultKey("loop", RAID5X3, "pair"),
        looped(replace(LOOP, workloads=(WRITE, READ))),
        lambda here: here.loop(RAID5X3, LOOP),
    ),
    "saturation": (
        ResultKey("saturation", RAID5X3, str(PROFILE)),
        Saturation(measured(replace(PROFILE, read_percent=70)).runs[0], 1 << 29),
        lambda here: here.saturate(RAID5X3, PROFILE),
    ),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_what_has_only_its_name_in_common_is_made_again(rig: CheckpointRig, kind: str) -> None:
    """A suite may be changed between two sessions of a run."""
    key, value, ask = CHANGED[kind]
    assert ask(campaign(rig, Recalled({key: value}))) is not value
    assert done(rig)


# -- what was left


TAKEN, BUILT = "take over raid5x3", "build raid5x3"


@pytest.mark.parametrize(
    ("is_as_it_was", "confirms", "asked", "did"),
    [
        (
            True, True, (READ, WRITE, STREAM),
            [TAKEN, f"confirm {WRITE}", f"measure {READ}", f"measure {WRITE}", f"condition for {STREAM}",
             f"measure {STREAM}"],
        ),
        (
            True, True, (STREAM, READ),
            [TAKEN, f"condition for {STREAM}", f"measure {STREAM}", f"condition for {READ}", f"measure {READ}"],
        ),
        (True, False, (READ,), [TAKEN, f"confirm {WRITE}", f"condition for {READ}", f"measure {READ}"]),
        (False, True, (READ,), [BUILT, f"condition for {READ}", f"measure {READ}"]),
    ],
    ids=["confirmed", "the other class", "not confirmed", "not as it was"],
)  # fmt: skip
def test_what_was_left_is_taken_over_and_confirmed(
    rig: CheckpointRig, is_as_it_was: bool, confirms: bool, asked: Sequence[Workload], did: list[str]
) -> None:
    rig.is_as_it_was, rig.confirms = is_as_it_was, confirms
    here = campaign(rig, Recalled(left=LEFT))
    for workload in asked:
        here.measure(RAID5X3, workload)
    assert done(rig) == did


@pytest.mark.parametrize(
    ("left", "asked", "did"),
    [
        (replace(LEFT, passes=2), [RAID5X3], [BUILT]),
        (replace(LEFT, fill_bs="1m"), [RAID5X3], [BUILT]),
        (replace(LEFT, geometry=RAID5X4), [RAID5X3], [BUILT]),
        (LEFT, [RAID5X4, RAID5X3], ["build raid5x4", "stop raid5x4", BUILT]),
        (
            LEFT,
            [RAID5X3, RAID5X4, RAID5X3],
            [TAKEN, "stop raid5x3", "build raid5x4", "stop raid5x4", BUILT],
        ),
    ],
)
def test_only_the_same_array_is_taken_over_once_and_first(
    rig: CheckpointRig, left: Checkpoint, asked: list[Geometry], did: list[str]
) -> None:
    here = campaign(rig, Recalled(left=left))
    for geometry in asked:
        here.array(geometry)
    assert done(rig) == did


@pytest.mark.parametrize(
    "ask",
    [lambda here: here.loop(RAID5X3, LOOP), lambda here: here.saturate(RAID5X3, WRITE)],
    ids=["loop", "saturation"],
)
def test_what_begins_with_a_purge_takes_nothing_over(rig: CheckpointRig, ask: Callable[[Campaign], object]) -> None:
    """Not even what stands and was filled in the same way."""
    here = campaign(rig, Recalled(left=LEFT))
    ask(here)
    assert done(rig)[0] == "build raid5x3"
    rig.did.clear()
    here = campaign(rig)
    here.array(RAID5X3)
    ask(here)
    assert done(rig)[:3] == ["build raid5x3", "stop raid5x3", "build raid5x3"]


# -- what the next session will want to know


def test_what_drives_were_sent_is_counted_after_each_step(rig: CheckpointRig) -> None:
    here = campaign(rig)
    here.measure(RAID5X3, READ)
    here.close()
    assert rig.did == [
        "build raid5x3", "count built", f"condition for {READ}", "count conditioned", f"measure {READ}",
        "count measured", "stop raid5x3", "count closed",
    ]  # fmt: skip


def test_what_nobody_can_build_on_is_not_counted_when_it_ends(rig: CheckpointRig) -> None:
    here = campaign(rig)
    here.saturate(RAID5X3, WRITE)
    here.close()
    assert rig.did[-1] == "stop raid5x3"


def test_a_measurement_that_fails_is_not_counted(rig: CheckpointRig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, tail: bool) -> None:
        raise InvalidMeasurement("not steady")

    monkeypatch.setattr(fixed_time, "measure", fail)
    with pytest.raises(InvalidMeasurement):
        campaign(rig).measure(RAID5X3, READ)
    assert rig.did[-1] == "count conditioned"
