from __future__ import annotations

import gzip
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders.captured import VERSIONS, captured
from support.builders.measuring import setup_of
from support.fakes import real_fio
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.fio import acceptance, process
from pytest_ssdqual.rig.fio.jobs import ExpectedResult, Job, JobTarget
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.machine.machine import InvalidMeasurement
from pytest_ssdqual.rig.md import survival_pattern
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.md.survival_pattern import (
    BLOCK_BYTES,
    EMPTY_CACHE,
    MIB,
    SEEDS,
    PatternRegion,
    damage,
    read_back,
    reserved_bytes,
    write_pattern,
)
from pytest_ssdqual.rig.measure.session import Setup

LOOP = JobTarget("/dev/loop0", 16 * MIB + 12_800)
on_every_version = pytest.mark.parametrize("version", VERSIONS)


def finished(version: str, case: str) -> tuple[FinishedProcess, ExpectedResult]:
    run = captured(version, case)
    done = completed(["fio"], status=run.status, stderr=run.stderr)
    return FinishedProcess(done, gzip.compress(run.output)), run.expectation


@on_every_version
def test_captured_data_was_made_with_these_options(version: str) -> None:
    for case, job in (("pattern-written", write_pattern), ("pattern-intact", read_back)):
        made, run = job(PatternRegion(LOOP, MIB, 8 * MIB, 7)), captured(version, case)
        options = tuple(option.replace("--status-interval=10", "--status-interval=1") for option in made.options)
        assert (run.options, run.expectation) == (options, made.expectation)
    assert damage(*finished(version, "pattern-intact")) == ""


@on_every_version
@pytest.mark.parametrize(
    ("case", "at", "reason"),
    [
        ("pattern-changed", 3145728, "its checksum is wrong"),
        ("pattern-swapped", 2097152, "its own address says byte 5242880"),
        ("pattern-unwritten", 4194304, "it holds something else (bad "),
        ("pattern-stale", 4194304, "it holds something else (bad "),
        ("pattern-header-changed", 3145728, ""),
    ],
)
def test_first_bad_block_is_reported_in_one_sentence(version: str, case: str, at: int, reason: str) -> None:
    told = damage(*finished(version, case))
    assert f"byte {at} of /dev/loop0 " in told
    assert reason in told
    assert "\n" not in told


@on_every_version
def test_damage_is_noticed_by_the_numbers_if_fio_lost_its_words(version: str) -> None:
    done, expectation = finished(version, "pattern-changed")
    text = b"".join(done.pieces()).decode()
    silent = FinishedProcess(completed(["fio"], status=1), gzip.compress(text[text.index("{") :].encode()))
    assert "not report which" in damage(silent, expectation)


@on_every_version
@pytest.mark.parametrize("case", ["media-error", "interrupted", "fio-killed", "output-full"])
def test_what_could_not_be_read_is_no_damage_but_an_error(version: str, case: str) -> None:
    done, _ = finished(version, case)
    with pytest.raises(InvalidMeasurement):
        damage(done, read_back(PatternRegion(LOOP, 0, MIB, 7)).expectation)


@on_every_version
def test_what_was_not_all_read_is_not_intact(version: str) -> None:
    done, expectation = finished(version, "pattern-intact")
    with pytest.raises(InvalidMeasurement, match="instead of 8454144"):
        damage(done, replace(expectation, read_bytes=8 * MIB + BLOCK_BYTES))


@pytest.mark.parametrize("line", ["crc32c: verify failed", "verify: bad header crc 1, calculated 2"])
def test_damage_is_told_before_what_came_of_it(line: str) -> None:
    """fio may be stopped by its own finding in ways that look like other troubles."""
    said = f"{line} at file /dev/md/x offset 65536, length 65536 (requested block: …)\nfio: terminating on signal 2\n"
    done = FinishedProcess(completed(["fio"], status=-6, stderr=said), gzip.compress(b""))
    expectation = read_back(PatternRegion(LOOP, 0, MIB, 7)).expectation
    assert damage(done, expectation).partition(" of ")[0].endswith("byte 65536")


@pytest.mark.parametrize(
    ("offset", "size", "seed", "cause"),
    [
        (0, MIB, SEEDS, f"not {SEEDS}"),
        (0, MIB, -1, "seeds of patterns"),
        (512, MIB, 0, "1048576 at 512"),
        (0, MIB + 512, 0, "whole blocks"),
        (0, 0, 0, "whole blocks"),
        (16 * MIB, MIB, 0, "16790016 bytes, not 17825792"),
    ],
)
def test_ranges_and_seeds_that_cannot_be(offset: int, size: int, seed: int, cause: str) -> None:
    for job in (write_pattern, read_back):
        with pytest.raises(ValueError, match=cause):
            job(PatternRegion(LOOP, offset, size, seed))


# -- what fio makes of it


def changed(data: bytearray) -> None:
    data[2 * MIB + 12_345] ^= 1


def swapped(data: bytearray) -> None:
    one, two = slice(MIB, MIB + BLOCK_BYTES), slice(2 * MIB, 2 * MIB + BLOCK_BYTES)
    data[one], data[two] = data[two], data[one]


def a_page_elsewhere_in_its_block(data: bytearray) -> None:
    data[2 * MIB : 2 * MIB + 4096] = data[2 * MIB + 8192 : 2 * MIB + 12_288]


def lost(data: bytearray) -> None:
    data[3 * MIB : 3 * MIB + 512] = bytes(512)


@pytest.mark.parametrize("harm", [changed, swapped, a_page_elsewhere_in_its_block, lost])
def test_real_fio_finds_every_harm(tmp_path: Path, harm: Callable[[bytearray], None]) -> None:
    target = real_fio.image(tmp_path, 5 * MIB)
    write, read = (job(PatternRegion(target, MIB, 3 * MIB, 3)) for job in (write_pattern, read_back))
    done = real_fio.run(write, tmp_path)
    acceptance.accept(done.pieces(), done.completed.status, done.completed.errors, write.expectation)
    assert damage(real_fio.run(read, tmp_path), read.expectation) == ""
    data = bytearray(Path(target.path).read_bytes())
    harm(data)
    Path(target.path).write_bytes(data)
    assert target.path in damage(real_fio.run(read, tmp_path), read.expectation)
    assert {path.name for path in tmp_path.iterdir()} == {"image", "output.json"}


def test_real_fio_finds_what_an_earlier_pattern_left(tmp_path: Path) -> None:
    """One block is overwritten by what another seed had put at the very same place."""
    target = real_fio.image(tmp_path, 4 * MIB)
    real_fio.run(write_pattern(PatternRegion(target, 0, 4 * MIB, 4)), tmp_path)
    old = Path(target.path).read_bytes()[MIB : MIB + BLOCK_BYTES]
    real_fio.run(write_pattern(PatternRegion(target, 0, 4 * MIB, 5)), tmp_path)
    read = read_back(PatternRegion(target, 0, 4 * MIB, 5))
    assert damage(real_fio.run(read, tmp_path), read.expectation) == ""
    with Path(target.path).open("r+b") as file:
        file.seek(MIB)
        file.write(old)
    told = damage(real_fio.run(read, tmp_path), read.expectation)
    assert f"byte {MIB} of {target.path}" in told
    assert "something else" in told


def test_real_fio_writes_the_range_and_nothing_else(tmp_path: Path) -> None:
    target = real_fio.image(tmp_path, 3 * MIB)
    real_fio.run(write_pattern(PatternRegion(target, MIB, MIB, SEEDS - 1)), tmp_path)
    data = Path(target.path).read_bytes()
    assert data[:MIB] == data[2 * MIB :] == bytes(MIB)
    assert bytes(512) not in [data[at : at + 512] for at in range(MIB, 2 * MIB, 512)]


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
