"""What a measurement of a search costs the drives: every attempt, whatever comes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.builders import strategies
from support.builders.measuring import READ, setup_of
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine

from pytest_ssdqual.qual.explore import dimensions
from pytest_ssdqual.qual.measured.run import Measured, Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, visits
from pytest_ssdqual.rig.measure.probe import CONFIRMED, EXPLORED, Probe
from pytest_ssdqual.rig.measure.session import Setup

ARRAY = Array(Geometry.parse("raid0x2"), "/dev/md100", (), "0" * 32, 1 << 30, "none needed")


def setup(noted: Logbook, told: list[float]) -> Setup:
    return setup_of(
        noted, protocols.load("intel"), machine=ScriptedMachine(), progress=lambda what, seconds: told.append(seconds)
    )


def test_every_attempt_of_a_search_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = [[1000, 1000, 1000, 100, 1000], [1000] * 5]  # the first is not steady

    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        assert (window.ramp_s, window.window_s) == (1, 5)
        return strategies.run(rates.pop(0), geometry="raid0x2", workload=workload)

    monkeypatch.setattr(fixed_time, "run", run)
    noted, told, spent = Logbook(), list[float](), list[float]()
    quick = protocols.load("quick")
    protocol = replace(quick, visits=None, measure=replace(quick.measure, attempts=3))
    measured = Probe(EXPLORED, protocol, spent.append).measure(setup(noted, told), ARRAY, READ)
    assert measured.iops == 1000
    assert spent == told == [6.0, 6.0]
    assert noted.kinds.count(EXPLORED) == 1
    assert "measured" not in noted.kinds


def test_what_fails_was_charged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        raise InvalidMeasurement("fio said no")

    monkeypatch.setattr(fixed_time, "run", run)
    spent = list[float]()
    probe = Probe(EXPLORED, dimensions.probing(protocols.load("quick")), spent.append)
    with pytest.raises(InvalidMeasurement, match="fio said no"):
        probe.measure(setup(Logbook(), []), ARRAY, READ)
    assert spent == [6.0]


def test_suspect_is_measured_in_the_visits_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its drive time is that of all cells, as their progress reports it."""
    result = Measured((strategies.run([1000] * 5, geometry="raid0x2", workload=READ),))
    protocol = protocols.load("acceptance")

    def until_decided(
        setup: Setup, array: Array, workload: Workload, enough: visits.Enough, kind: str = "measured"
    ) -> Measured:
        assert (setup.protocol, workload, enough, kind) == (protocol, READ, visits.at_once, CONFIRMED)
        setup.progress("visit 1", 130.0)
        setup.progress("visit 2", 130.0)
        return result

    monkeypatch.setattr(visits, "until_decided", until_decided)
    told, spent = list[float](), list[float]()
    probe = Probe(CONFIRMED, protocol, spent.append, visits.at_once)
    assert probe.measure(setup(Logbook(), told), ARRAY, READ) is result
    assert spent == told == [130.0, 130.0]
