from __future__ import annotations

import gzip
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.captured import captured
from support.builders.measuring import setup_of
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.fio import process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md import survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.md.survival_pattern import EMPTY_CACHE, MIB, PatternRegion, reserved_bytes
from pytest_ssdqual.rig.measure.session import Setup

UUID = "3aaa0122:29827cfa:5331ad66:ca767371"
VERSION = "3.33"


def array_of(geometry: str = "raid5x4", size_bytes: int = 800 * MIB, uuid: str = UUID) -> Array:
    return Array(Geometry.parse(geometry), "/dev/md100", (), uuid, size_bytes, "zeroed")


@dataclass
class ReserveBench(Logbook):
    """A machine whose fio does what was captured, and what is written down."""

    case: str = "pattern-written"
    leased: bool = True
    jobs: list[Job] = field(default_factory=list)
    machine: ScriptedMachine = field(default_factory=lambda: ScriptedMachine().on("sh", "-c", EMPTY_CACHE))

    def fio(self, machine: object, job: Job, seconds: float) -> FinishedProcess:
        self.jobs.append(job)
        known = captured(VERSION, self.case)
        output = known.output.replace(b"/dev/loop0", b"/dev/md100")
        done = completed(["fio"], status=known.status, stderr=known.stderr.replace("/dev/loop0", "/dev/md100"))
        return FinishedProcess(done, gzip.compress(output))

    def require_lease(self) -> None:
        if not self.leased:
            raise LeaseLost("the lease was lost")

    def setup(self) -> Setup:
        return setup_of(self, None, machine=self.machine, held=self)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ReserveBench:
    bench = ReserveBench()
    monkeypatch.setattr(process, "run", bench.fio)
    return bench


@given(st.integers(64 * MIB, 1 << 50).map(lambda size: size // 4096 * 4096))
def test_one_per_cent_is_reserved_within_bounds(size_bytes: int) -> None:
    reserved = reserved_bytes(size_bytes)
    assert (size_bytes - reserved) % MIB == 0
    assert MIB <= reserved <= (1 << 30) + MIB
    assert reserved >= min(size_bytes * 0.01, 1 << 30) - 1
    assert reserved <= size_bytes * 0.01 + 2 * MIB


def test_pattern_fills_the_reserved_end_and_workloads_spare_it(bench: ReserveBench) -> None:
    written = captured(VERSION, "pattern-written").expectation.written_bytes or 0
    array = array_of(size_bytes=100 * written)
    reserved = survival_pattern.write(bench.setup(), array)
    region = PatternRegion.of(reserved)
    assert region.offset_bytes + region.size_bytes == array.size_bytes
    assert region.size_bytes == reserved.reserved_bytes == written
    (job,) = bench.jobs
    assert job == survival_pattern.write_pattern(region)
    facts = bench.noted("pattern_written")
    assert (facts["offset_bytes"], facts["size_bytes"], facts["seed"]) == (99 * written, written, region.seed)
    (target,) = reserved.targets
    assert target.size_bytes == array.size_bytes - array.begin_bytes - written
    assert (target.is_part, array.targets[0].is_part) == (True, False)


def test_a_pattern_that_was_not_all_written_is_no_pattern(bench: ReserveBench) -> None:
    with pytest.raises(InvalidMeasurement, match="fio wrote"):
        survival_pattern.write(bench.setup(), array_of(size_bytes=100 << 30))
    assert bench.kinds == ["writing_pattern"]


def test_nothing_is_written_without_the_lease(bench: ReserveBench) -> None:
    bench.leased = False
    with pytest.raises(LeaseLost):
        survival_pattern.write(bench.setup(), array_of())
    assert not bench.jobs


def reserved_array(geometry: str = "raid5x4-1failed") -> Array:
    size = captured(VERSION, "pattern-intact").expectation.read_bytes or 0
    return Array(Geometry.parse(geometry), "/dev/md100", (), UUID, 100 * size, "zeroed", reserved_bytes=size)


@pytest.mark.parametrize("case", ["pattern-intact", "pattern-changed"])
def test_damage_is_read_after_the_stripe_cache_was_emptied(bench: ReserveBench, case: str) -> None:
    bench.case = case
    damage = survival_pattern.read_damage(bench.setup(), reserved_array())
    assert bool(damage) is (case == "pattern-changed")
    assert bench.noted("pattern_read")["damage"] == damage
    (job,) = bench.jobs
    region = PatternRegion.of(reserved_array())
    assert job == survival_pattern.read_back(region)
    assert [each[3:] for each in bench.machine.asked] == [("empty-stripe-cache", "md100", "17")]
    survival_pattern.read_damage(bench.setup(), reserved_array("raid10x4-1failed"))
    assert len(bench.machine.asked) == 1, "RAID 10 has none"


def test_the_stripe_cache_has_its_size_again(tmp_path: Path) -> None:
    size = tmp_path / "md" / "stripe_cache_size"
    size.parent.mkdir()
    size.write_text("4096\n")
    argv = ["sh", "-c", EMPTY_CACHE, "empty-stripe-cache", f"../..{tmp_path}", "17"]
    assert subprocess.run(argv, check=False).returncode == 0
    assert size.read_text() == "4096\n"
    size.unlink()
    size.symlink_to("/dev/null")  # takes whatever is written, and has no size
    assert subprocess.run(argv, check=False, capture_output=True).returncode == 1


def test_another_array_has_another_pattern() -> None:
    seeds = {PatternRegion.of(array_of(uuid=f"00000000:00000000:00000000:{number:08x}")).seed for number in range(100)}
    assert len(seeds) == 100
    assert PatternRegion.of(array_of()).seed == PatternRegion.of(array_of("raid6x4")).seed
