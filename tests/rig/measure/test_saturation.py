from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace

import pytest
from support.builders import measuring, strategies
from support.builders.measuring import WRITE
from support.fakes.logbook import Logbook

from pytest_ssdqual.qual.measured.environment import ProcessEnvironment
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import from_plain, plain
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import SaturationRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, saturation
from pytest_ssdqual.rig.measure.session import Setup

ARRAY = Array(Geometry.parse("raid0x2"), "/dev/md127", (), "u-u-i-d", 1 << 20, "none needed")
PROTOCOL = replace(
    measuring.PROTOCOL,
    acceptance=True,
    saturation=SaturationRule(capacities=2.5, limit_s=40.0, sample_s=2.0),
)


@dataclass
class SaturationBench(Logbook):
    """Everything below: the IOPS of every second that fio ran, and what was asked for and written down."""

    iops: list[int] = field(default_factory=lambda: [600] * 10 + [300] * 30)
    asked: list[tuple[Workload, str, fixed_time.ProcessWindow]] = field(default_factory=list)
    told: list[tuple[str, float]] = field(default_factory=list)
    #: What goes on around it.
    seen: ProcessEnvironment | None = None

    def run(self, setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        self.asked.append((workload, kind, window))
        found = strategies.run(self.iops, geometry=str(array.geometry), workload=workload, rounds=window.rounds)
        return replace(found, window_s=min(window.window_s, float(len(self.iops))), seen=self.seen)

    def setup(self, protocol: Protocol = PROTOCOL) -> Setup:
        return measuring.setup_of(self, protocol, progress=lambda *told: self.told.append(told))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> SaturationBench:
    bench = SaturationBench()
    monkeypatch.setattr(fixed_time, "run", bench.run)
    return bench


def test_one_process_runs_until_the_volume_or_the_time(bench: SaturationBench) -> None:
    found = saturation.saturate(bench.setup(), ARRAY, WRITE)
    window = fixed_time.ProcessWindow(0.0, 40.0, 20, every_s=2, volume_bytes=int(2.5 * (1 << 20)))
    assert bench.asked == [(WRITE, "saturation", window)]
    assert [seconds for _, seconds in bench.told] == [40.0]
    assert [each.seconds for each in found.points] == pytest.approx(range(2, 42, 2))


@pytest.mark.parametrize(
    ("iops", "window_s", "points"),
    [
        ([600] * 10 + [300] * 30, 40.0, [600] * 5 + [300] * 15),
        ([600] * 9, 8.0, [600] * 4),  # it ended at its volume: no part of a sample is one
        ([600], 1.0, [600]),
    ],
)
def test_every_sample_is_a_point(bench: SaturationBench, iops: list[int], window_s: float, points: list[int]) -> None:
    bench.iops = iops
    found = saturation.saturate(bench.setup(), ARRAY, WRITE)
    assert (found.run.window_s, found.run.rounds) == (window_s, len(points))
    assert [round(each.iops) for each in found.points] == points


def test_environment_of_a_saturation_objects(bench: SaturationBench) -> None:
    bench.seen = strategies.seen()
    saturation.saturate(bench.setup(), ARRAY, WRITE)
    bench.seen = replace(bench.seen, clock_jump_s=-3600.0)
    with pytest.raises(InvalidMeasurement, match="by 60 min"):
        saturation.saturate(bench.setup(), ARRAY, WRITE)


def test_the_protocol_says_what_is_steady_and_when_it_counts(bench: SaturationBench) -> None:
    found = saturation.saturate(bench.setup(), ARRAY, WRITE)
    assert (found.rule, found.gate_capacities) == (PROTOCOL.steady, 1.0)
    rehearsed = saturation.saturate(bench.setup(replace(PROTOCOL, acceptance=False)), ARRAY, WRITE)
    assert rehearsed.gate_capacities == 0.0


def test_the_record_has_all_that_the_value_is_made_of(bench: SaturationBench) -> None:
    found = saturation.saturate(bench.setup(), ARRAY, WRITE)
    ((kind, facts),) = bench.notes
    assert kind == "saturation"
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["geometry"], facts["capacity_bytes"], facts["gate_capacities"]) == ("raid0x2", 1 << 20, 1.0)
    assert from_plain(Workload, facts["asked"]) == WRITE
    assert facts["rule"] == asdict(PROTOCOL.steady)
    assert facts["run"] == plain(found.run.record())
    assert len(facts["run"]["round_iops"]) == found.run.rounds == 20


@pytest.mark.parametrize(
    ("workload", "cause"),
    [
        (Workload("randread", "4k", 8), "writes nothing"),
        (Workload("read", "128k", 1), "writes nothing"),
        (WRITE, "wrote nothing"),
    ],
    ids=str,
)
def test_without_writes_nothing_is_saturated(bench: SaturationBench, workload: Workload, cause: str) -> None:
    bench.iops = [0] * 40
    with pytest.raises(InvalidMeasurement, match=cause):
        saturation.saturate(bench.setup(), ARRAY, workload)
    assert bool(bench.asked) is workload.writes
    assert not bench.notes


@pytest.mark.parametrize(
    ("limit_s", "sample_s", "targets", "every_s"),
    [(86400, 10, 1, 10), (86400, 10, 8, 40), (86400, 60, 8, 60), (86400, 10, 24, 110), (40, 2, 24, 2)],
)
def test_many_drives_are_sampled_less_often(limit_s: float, sample_s: float, targets: int, every_s: float) -> None:
    """All documents are in memory until fio ends."""
    rule = SaturationRule(capacities=2.5, limit_s=limit_s, sample_s=sample_s)
    assert saturation.sample_of(rule, targets) == every_s
    assert targets * limit_s / every_s <= saturation.MOST_DOCUMENTS
