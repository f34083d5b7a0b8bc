"""Conditioning: its writes, and simulated drives that settle after the volume that they need, or do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from support.builders import measuring
from support.builders.drives import drive
from support.builders.measuring import STREAM, WRITE
from support.builders.strategies import EMPTY
from support.fakes.logbook import Logbook

from pytest_ssdqual.qual.measured.interval import Interval, merged
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.methods import snia, toms_s3500, toms_s3700
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import MeasureRule, PreconditionRule
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.fixed_time import ProcessWindow
from pytest_ssdqual.rig.measure.precondition import conditioning, until_steady
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.resume.checkpoint import Conditioned

ZIPF = replace(WRITE, zipf=120)


@pytest.mark.parametrize(
    ("workload", "writes"),
    [
        (toms_s3500.SUB_PAGE, "randwrite_4k_qd8"),
        (Workload("read", "512", 1), "write_4k_qd8"),
        (Workload("randread", "16k", 1), "randwrite_16k_qd8"),
        (toms_s3700.WEB_SERVER, "randwrite_4k_qd8"),
        (Workload("randwrite", "512/90:4k/10", 1, name="small"), "randwrite_4k_qd8"),
        (Workload.parse("randrw70_4k_zipf120_reg50_sync_qd1"), "randwrite_4k_zipf120_reg50_qd8"),
        (Workload.parse("randread_4k_zipf120_qd1"), "randwrite_4k_qd8"),
        (snia.COMPOSITE, "randwrite_4k_zoned50x5_30x15_20x80_qd8"),
        (Workload.parse("write_128k_reg10_qd1"), "write_128k_reg10_qd8"),
    ],
    ids=str,
)
def test_conditioning_writes_whole_pages_in_the_pattern(workload: Workload, writes: str) -> None:
    assert str(conditioning(workload)) == writes
    assert conditioning(workload).pattern == workload.pattern


@pytest.mark.parametrize(
    ("workload", "unit_bytes", "writes"),
    [
        ("randwrite_4k_qd8", 16384, "randwrite_16k_qd8"),
        ("randread_64k_qd1", 16384, "randwrite_64k_qd8"),
        ("randread_4k_zipf120_qd1", 8192, "randwrite_8k_qd8"),
        ("write_8k_qd1", 16384, "write_8k_qd8"),
        ("randwrite_4k_qd8", 4096, "randwrite_4k_qd8"),
    ],
)
def test_random_conditioning_writes_are_as_large_as_the_unit(workload: str, unit_bytes: int, writes: str) -> None:
    assert str(conditioning(Workload.parse(workload), unit_bytes)) == writes


#: Rate after so many capacities, as a share of ``Drives.settled_bytes_per_s``.
Course = Callable[[float], float]
PROTOCOL = replace(
    measuring.PROTOCOL,
    precondition=PreconditionRule(600, 1e6, capacities=1, limit_capacities=4, drift_percent=1),
    measure=MeasureRule(1, 60, 1, 2),
)
SIZE_BYTES = 256 << 20


def steady(capacities: float) -> float:
    return 1.0


def cliff(capacities: float) -> float:
    return 3.0 if capacities < 0.4 else 1.0


def falling(capacities: float) -> float:
    return math.exp(-0.3 * capacities)


@dataclass
class Drives(Logbook):
    """Bare drives side by side, or one array; a drive writes its capacity in 40 minutes at rate 1."""

    courses: Sequence[Course]
    protocol: Protocol = PROTOCOL
    noise: float = 0.005
    geometry: str = ""
    capacity_s: float = 2400.0
    written: list[float] = field(default_factory=list)
    windows: list[ProcessWindow] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311

    @property
    def array(self) -> Array:
        geometry = Geometry.parse(self.geometry or f"drivex{len(self.courses)}")
        members = tuple(drive(number) for number in range(geometry.width))
        size_bytes = SIZE_BYTES * len(self.courses)
        return Array(geometry, "/dev/md100", members, "", size_bytes, "none needed", begin_bytes=0)

    def run(self, setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
        assert kind == "precondition"
        self.windows.append(window)
        self.written = self.written or [0.0] * len(self.courses)
        share = math.inf if window.volume_bytes is None else window.volume_bytes / len(self.courses)
        done, start_s, parts = [0.0] * len(self.courses), 0.0, [list[Interval]() for _ in self.courses]
        while start_s < window.window_s and max(done) < share:
            seconds = min(window.every_s, window.window_s - start_s)
            rates = [self._rate(number) for number in range(len(self.courses))]
            seconds = min([seconds, *((share - was) / rate for was, rate in zip(done, rates, strict=True))])
            for number, rate in enumerate(rates):
                size = max(1, round(rate * seconds))
                parts[number].append(Interval(start_s, seconds, 0, max(1, size // 4096), 0, size, EMPTY, EMPTY))
                done[number] += size
                self.written[number] += size
            start_s += seconds
        together = tuple(merged(each) for each in zip(*parts, strict=True))
        alone = array.geometry.is_side_by_side
        return Run(
            workload, array.geometry, tuple(each.serial or "" for each in array.members),
            intervals=together if alone else tuple(parts[0]), ramp_s=0, window_s=start_s, rounds=window.rounds,
            raw="fio/x.json.gz", parts=tuple(map(tuple, parts)) if alone and len(parts) > 1 else (),
        )  # fmt: skip

    def _rate(self, number: int) -> float:
        rate = self.courses[number](self.written[number] / SIZE_BYTES) * (1 + self.chance.gauss(0, self.noise))
        return rate * SIZE_BYTES / self.capacity_s

    def condition(self, workload: Workload = WRITE) -> Conditioned | None:
        self.setup = measuring.setup_of(self, self.protocol)
        return until_steady(self.setup, self.array, workload)

    @property
    def capacities(self) -> list[float]:
        return [each / SIZE_BYTES for each in self.written]


@pytest.fixture(autouse=True)
def _run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: ProcessWindow) -> Run:
        drives = cast("Drives", setup.logbook)
        return drives.run(setup, array, workload, kind, window)

    monkeypatch.setattr(fixed_time, "run", run)


def by(protocol: Protocol = PROTOCOL, **changes: float) -> Protocol:
    """The protocol with another table precondition."""
    return replace(protocol, precondition=replace(protocol.precondition, **changes))  # type: ignore[arg-type]


# -- by volume


def test_settled_drives_are_written_one_capacity() -> None:
    drives = Drives([steady, lambda capacities: 1.02])
    found = drives.condition()
    assert found
    assert found.state.reached
    assert all(1 <= each < 1.06 for each in drives.capacities)
    assert 5 <= len(drives.windows) <= 10
    iops = SIZE_BYTES / drives.capacity_s / 4096
    assert found.rates == {"S0": pytest.approx(iops, rel=0.01), "S1": pytest.approx(1.02 * iops, rel=0.01)}


def test_the_slowest_drive_has_the_volume_too() -> None:
    drives = Drives([lambda capacities: 2.0, steady])
    assert drives.condition()
    assert 1 <= drives.capacities[1] < 1.06


@pytest.mark.parametrize("capacity_s", [120.0, 600.0, 4800.0])
def test_drive_is_written_half_a_capacity_past_its_cliff(capacity_s: float) -> None:
    drives = Drives([cliff], capacity_s=capacity_s)
    found = drives.condition()
    assert found
    # 0.4 + 1, and two steps.
    assert 1.3 < drives.capacities[0] < 1.7
    assert found.rates["S0"] == pytest.approx(SIZE_BYTES / capacity_s / 4096, rel=0.02)


def test_process_writes_a_tenth_of_a_capacity_or_the_step() -> None:
    drives = Drives([steady])
    drives.condition()
    first, *later = drives.windows
    assert first.volume_bytes == SIZE_BYTES // 8
    assert all(each.volume_bytes is None for each in later)
    assert all(0.1 < each.window_s / drives.capacity_s < 0.2 for each in later)
    short = Drives([steady], by(step_s=100))
    short.condition()
    assert {each.window_s for each in short.windows[:-1]} == {100}


def test_what_does_not_settle_is_given_up_at_the_limit() -> None:
    drives = Drives([steady, falling, steady])
    found = drives.condition()
    assert found
    assert found.state.reached
    left_out = drives.setup.failures.left_out_of((drives.array.geometry, "random"))
    assert list(left_out) == ["S1"]
    assert "after 4.0 capacities" in left_out["S1"]
    assert 4 <= drives.capacities[1] < 4.2
    assert not drives.noted("conditioned")["steady"]["reached"]
    assert [each["settled"] for each in drives.noted("conditioned")["drift"].values()] == [True, False, True]


def test_settled_drives_stay_so_while_another_settles() -> None:
    drives = Drives([steady] * 6 + [lambda capacities: 2.0 if capacities < 2 else 1.0], noise=0.05)
    assert drives.condition()
    assert not drives.setup.failures.undecided


def test_drive_that_falls_off_its_plateau_has_not_settled() -> None:
    drives = Drives([lambda capacities: 2.0 if capacities < 2.2 else 1.0, falling])
    found = drives.condition()
    assert found
    assert found.rates["S0"] == pytest.approx(SIZE_BYTES / drives.capacity_s / 4096, rel=0.02)


def test_without_time_the_volume_is_told() -> None:
    drives = Drives([steady, steady], by(limit_s=1200))
    with pytest.raises(InvalidMeasurement, match=r"S0: 0\.[56] .*S1"):
        drives.condition()
    assert drives.noted("conditioned")["drift"] == {}


@pytest.mark.parametrize("settling", [steady, cliff])
def test_skewed_writes_are_written_three_capacities(settling: Course) -> None:
    drives = Drives([settling])
    found = drives.condition(ZIPF)
    assert found
    assert str(found.writes) == "randwrite_4k_zipf120_qd8"
    assert 3 <= drives.capacities[0] < 3.1
    assert drives.noted("conditioned")["pattern"] == "random_zipf120"


def test_sequential_writes_are_one_process_over_all_addresses() -> None:
    drives = Drives([steady], capacity_s=4000)
    assert drives.condition(STREAM)
    (window,) = drives.windows
    assert window.volume_bytes == SIZE_BYTES
    assert window.window_s > 4000


def test_an_array_is_one_target() -> None:
    drives = Drives([cliff], geometry="raid5x3")
    found = drives.condition()
    assert found
    assert found.rates == {}
    assert 1.3 < drives.noted("conditioned")["capacities"] < 1.7


def test_the_record_is_of_volume() -> None:
    drives = Drives([steady, cliff])
    drives.condition()
    noted = drives.noted("conditioned")
    assert noted["capacities"] == pytest.approx(min(drives.capacities), rel=1e-6)
    assert noted["bytes_written"] == pytest.approx(sum(drives.written), rel=1e-6)
    assert noted["least_bytes"] == 2 * SIZE_BYTES
    assert noted["seconds"] == pytest.approx(sum(each.window_s for each in drives.windows[1:]), rel=0.2)
    assert len(noted["round_iops"]) == 2
    window = PROTOCOL.steady.window
    least = min(noted["round_iops"], key=lambda rates: rates[-1])
    assert len(least) == int(10 * noted["capacities"])
    assert len(noted["steady"]["values"]) == window


def test_a_later_pattern_is_decided_anew() -> None:
    """A drive that was left out before is tried again."""
    drives = Drives([steady, steady])
    drives.condition()
    subject = drives.array.geometry, "random"
    drives.setup.failures.undecided[subject] = {"S1": "did not settle"}
    assert until_steady(drives.setup, drives.array, WRITE)
    assert not drives.setup.failures.left_out_of(subject)


# -- in rounds

ROUNDS = by(drift_percent=0.0, capacities=0.0, step_s=60.0, limit_s=600.0)


def test_rounds_end_with_the_first_steady_window() -> None:
    drives = Drives([steady, steady], ROUNDS)
    found = drives.condition()
    assert found
    assert [each.window_s for each in drives.windows] == [60]
    assert found.state.reached
    assert set(found.rates) == {"S0", "S1"}
    assert len(drives.noted("conditioned")["round_iops"]) == 2


def test_rounds_go_on_until_the_protocols_volume() -> None:
    drives = Drives([steady], by(ROUNDS, capacities=0.1))
    assert drives.condition()
    assert len(drives.windows) == 4


def test_too_little_volume_within_the_limit_is_told() -> None:
    drives = Drives([steady], by(ROUNDS, capacities=2))
    with pytest.raises(InvalidMeasurement, match=r"0\.25 capacities"):
        drives.condition()


def test_of_rounds_those_that_did_not_settle_are_left_out() -> None:
    drives = Drives([steady, lambda capacities: 1 + 20 * capacities], ROUNDS)
    found = drives.condition()
    assert found
    assert found.state.reached
    assert "not steady" in drives.setup.failures.left_out_of((drives.array.geometry, "random"))["S1"]


def test_a_protocol_may_do_without() -> None:
    assert Drives([steady], by(step_s=0)).condition() is None
