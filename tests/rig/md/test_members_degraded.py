from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from support.builders.drives import drive
from support.builders.measuring import setup_of

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine.machine import DriveRefused, InvalidMeasurement
from pytest_ssdqual.rig.md import mdadm, members, survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import Setup

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
