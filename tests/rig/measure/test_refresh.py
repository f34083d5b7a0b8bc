"""Refreshing: drives write until each is as fast as it settled, or has settled anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from support.builders.drives import drive
from support.builders.measuring import PROTOCOL, SETTLED, WRITE, setup_of
from support.builders.strategies import run as run_of
from support.builders.strategies import side_by_side
from support.fakes.logbook import Logbook

from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import VisitRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DrivesUndecided
from pytest_ssdqual.rig.machine.machine import Disturbed, InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.refresh import MOST_WINDOWS, refresh
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

IN_VISITS = replace(PROTOCOL, visits=VisitRule(refresh_s=20, refresh_percent=3))


@dataclass
class Rig(Logbook):
    """Drives with the rates of their windows, in IOPS: the last one stays."""

    rates: dict[str, Sequence[int]]
    protocol: Protocol = IN_VISITS
    disturbed: int = 0
    #: The drives of each window.
    windows: list[tuple[str, ...]] = field(default_factory=list)
    asked: set[tuple[str, str, ProcessWindow]] = field(default_factory=set)

    @property
    def array(self) -> Array:
        members = tuple(drive(number) for number in range(len(self.rates)))
        return Array(Geometry.parse(f"drivex{len(members)}"), "/dev/nvme0n1", members, "", 1 << 29, "none needed")

    def run(self, setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
        if self.disturbed:
            self.disturbed -= 1
            raise Disturbed("the clock was set")
        names = tuple(each.serial or "" for each in array.members)
        rates = [self._rate(name) for name in names]
        self.windows.append(names)
        self.asked.add((str(workload), kind, window))
        # The first half is slow, and does not count.
        half = int(window.ramp_s)
        seconds = [[rate // 2] * half + [rate] * half for rate in rates]
        if len(self.rates) == 1:
            found = run_of(seconds[0], workload=workload)
        else:
            found = side_by_side(seconds, workload=workload, rounds=1)
        window_s = window.window_s
        return replace(found, members=names, ramp_s=window.ramp_s, window_s=window_s, rounds=1, raw="fio/x.json.gz")

    def _rate(self, name: str) -> int:
        before = sum(name in window for window in self.windows)
        return self.rates[name][min(before, len(self.rates[name]) - 1)]

    def refresh(self, settled: dict[str, float] | None = None, *, may_resettle: bool = True) -> Conditioned:
        setup = setup_of(self, self.protocol)
        rates = dict.fromkeys(self.rates, 1000.0) if settled is None else settled
        return refresh(setup, self.array, Conditioned(WRITE, SETTLED, rates), may_resettle=may_resettle)


@pytest.fixture(autouse=True)
def _run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
        return cast("Rig", setup.logbook).run(setup, array, workload, kind, window)

    monkeypatch.setattr(fixed_time, "run", run)


def test_drives_at_their_settled_rate_write_one_window() -> None:
    rig = Rig({"S0": [1000], "S1": [1029], "S2": [971]})
    found = rig.refresh()
    assert rig.windows == [("S0", "S1", "S2")]
    assert rig.asked == {(str(WRITE), "refresh", ProcessWindow(10, 10, 1))}
    # What is compared next time is the settled rate, not the latest one.
    assert found == Conditioned(WRITE, SETTLED, dict.fromkeys(rig.rates, 1000.0))
    assert rig.noted("refreshed") == {
        "geometry": "drivex3", "workload": str(WRITE), "rates": {"S0": 1000, "S1": 1029, "S2": 971},
        "settled": found.rates, "differing": {}, "seconds": 20, "raw": ["fio/x.json.gz"],
    }  # fmt: skip


def test_drive_that_idled_writes_alone_until_it_is_as_fast() -> None:
    rig = Rig({"S0": [1000], "S1": [1300, 1150, 1060, 1010], "S2": [1000]})
    found = rig.refresh()
    assert rig.windows == [("S0", "S1", "S2"), ("S1",), ("S1",), ("S1",)]
    assert found.rates["S1"] == 1000
    assert rig.noted("refreshed")["seconds"] == 80


@pytest.mark.parametrize(
    ("rates", "settled", "windows"),
    [
        # Windows that agree: it has settled anew.
        ([1200, 940, 945], 945, 3),
        ([1200, 1060, 1065], 1065, 3),
        # Windows that differ by 2 to 3 %, on the way from 110 to 100 %.
        ([1100, 1075, 1050, 1028], 1000, 4),
    ],
)
def test_drive_settles_anew_if_its_windows_agree(rates: list[int], settled: int, windows: int) -> None:
    rig = Rig({"S0": [1000], "S1": rates})
    assert rig.refresh().rates == {"S0": 1000, "S1": settled}
    assert rig.noted("refreshed")["settled"] == {"S0": 1000, "S1": settled}
    assert len(rig.windows) == windows


def test_drive_without_a_rate_settles_by_two_windows() -> None:
    rig = Rig({"S0": [1000], "S1": [1000]}, disturbed=1)
    assert rig.refresh({"S0": 1000.0}).rates == {"S0": 1000, "S1": 1000}
    assert rig.windows == [("S0", "S1"), ("S1",)], "a disturbed window is repeated"


@pytest.mark.parametrize(
    ("rates", "settled", "may_resettle"),
    [
        ({"S0": [1060]}, None, False),
        ({"S0": [1500, 1300] * 3, "S1": [1500, 1300] * 3}, None, True),
        ({"S0": [0]}, {"S0": 0.0}, True),
    ],
    ids=["forbidden", "none settles", "no writes"],
)
def test_if_no_drive_settles_it_is_none_of_them(
    rates: dict[str, Sequence[int]], settled: dict[str, float] | None, may_resettle: bool
) -> None:
    rig = Rig(rates)
    with pytest.raises(InvalidMeasurement) as raised:
        rig.refresh(settled, may_resettle=may_resettle)
    assert not isinstance(raised.value, DrivesUndecided)
    assert len(rig.windows) == MOST_WINDOWS


def test_a_drive_that_does_not_settle_is_named() -> None:
    rig = Rig({"S0": [1000], "S1": [1500, 1300] * 3, "S2": [1000]})
    with pytest.raises(DrivesUndecided) as raised:
        rig.refresh()
    assert list(raised.value.drives) == ["S1"]
    assert "settled at 1000" in raised.value.drives["S1"]
    assert len(rig.windows) == MOST_WINDOWS
    assert list(rig.noted("refreshed")["differing"]) == ["S1"]


def test_a_protocol_may_do_without() -> None:
    rig = Rig({"S0": [1300]}, replace(PROTOCOL, visits=VisitRule(refresh_s=0)))
    assert rig.refresh().rates == {"S0": 1000}
    assert rig.notes == []


def test_without_visits_nothing_is_refreshed() -> None:
    with pytest.raises(ValueError, match="no visits"):
        Rig({"S0": [1000]}, PROTOCOL).refresh()
