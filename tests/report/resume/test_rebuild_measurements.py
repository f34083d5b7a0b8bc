from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.builders import fio_documents, strategies
from support.builders.drives import drive
from support.builders.whole_records import whole
from support.fakes.scripted import ScriptedMachine, completed
from support.simulator.simulated_surroundings import Surroundings

from pytest_ssdqual.qual.measured.rebuild import Rebuild
from pytest_ssdqual.qual.measured.run import Measured
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.records import plain
from pytest_ssdqual.qual.spec.protocol import Protocol
from pytest_ssdqual.qual.spec.protocol_rules import (
    Fill,
    LoopRule,
    MeasureRule,
    PreconditionRule,
    SaturationRule,
    SteadyRule,
    VisitRule,
)
from pytest_ssdqual.qual.stats import visits
from pytest_ssdqual.qual.stats.visits import Cell
from pytest_ssdqual.qual.validity import checks
from pytest_ssdqual.qual.workload.rounds import Rounds, Stimulus, Tracked
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.report.resume.rebuild_measurements import Recollection
from pytest_ssdqual.report.run_folder.journal import Journal
from pytest_ssdqual.report.run_folder.reader import read_records
from pytest_ssdqual.rig.fio import process
from pytest_ssdqual.rig.fio.jobs import Job
from pytest_ssdqual.rig.fio.process import FinishedProcess
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time, saturation
from pytest_ssdqual.rig.measure import rounds as looping
from pytest_ssdqual.rig.measure import visits as visiting
from pytest_ssdqual.rig.measure.session import Setup
from pytest_ssdqual.rig.observe import environment as surroundings
from pytest_ssdqual.rig.resume.checkpoint import ResultKey

READ, WRITE = Workload("randread", "4k", 8), Workload("randwrite", "4k", 8)
RAID5X3 = Geometry.parse("raid5x3")
#: What is measured is not to be judged here.
ANYHOW = SteadyRule(window=5, range_percent=100.0, slope_percent=100.0)
PROTOCOL = Protocol(
    "test",
    acceptance=False,
    fill=Fill(1, "128k"),
    precondition=PreconditionRule(0, 0),
    measure=MeasureRule(2, 10, 2, 1),
    steady=ANYHOW,
    loop=LoopRule(5.0, 5),
    saturation=SaturationRule(1.0, 30.0, 2.0),
)


def array_of(geometry: Geometry) -> Array:
    members = tuple(map(drive, range(geometry.width)))
    path = members[0].path if geometry.is_side_by_side else "/dev/md100"
    return Array(geometry, path, members, "u", 512 << 20, "zeroed")


@dataclass
class RecordedRuns:
    """Measures into a run folder, with a fio that does so many I/Os in each second; the last goes on."""

    root: Path
    iops: Sequence[int] = (1000, 1010, 990)
    protocol: Protocol = PROTOCOL
    #: Of which fio was asked.
    asked: list[tuple[Workload, Geometry]] = field(default_factory=list)
    journal: Journal = field(init=False)
    surroundings: Surroundings = field(default_factory=Surroundings)

    def __post_init__(self) -> None:
        self.journal = Journal.create(self.root, "aaaaaaaa")

    @property
    def setup(self) -> Setup:
        held = cast("Any", self)
        machine = ScriptedMachine().on("sh", "-c", surroundings.SCRIPT, answer=self.surroundings.text)
        return Setup(machine, held, self.protocol, self.journal, "m1", lambda what, seconds: None)

    def require(self, drives: object) -> None:
        """They are free."""

    def require_lease(self) -> None:
        """It is held."""

    def run(self, workload: Workload, geometry: Geometry) -> Callable[[object, Job, float], FinishedProcess]:
        def fio(machine: object, job: Job, seconds: float) -> FinishedProcess:
            iops = [self.iops[min(at, len(self.iops) - 1)] for at in range(round(seconds))]
            count = len(job.expectation.paths) or 1
            alone = str(geometry) if count == 1 else "drivex1"
            # Drives side by side are not all alike.
            runs = [
                strategies.run([each - number for each in iops], geometry=alone, workload=workload)
                for number in range(count)
            ]
            self.surroundings.ran(array_of(geometry), [each.intervals for each in runs])
            return FinishedProcess(completed(["fio"]), fio_documents.packed(*(each.intervals for each in runs)))

        return fio

    def memory(self) -> Recollection:
        return Recollection.of(
            self.journal.path,
            tuple(read_records(self.journal.path)),
            sums={},
            forgotten=lambda key, why: self.journal.note("forgotten", key=str(key), why=why),
        )

    def change_records(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Do this to each record of the run folder."""
        path = self.journal.path / "records.jsonl"
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            change(record)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))

    def forgotten(self) -> list[str]:
        return [str(each.facts["why"]) for each in read_records(self.journal.path) if each.kind == "forgotten"]


@pytest.fixture(autouse=True)
def _healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdadm, "require_healthy", lambda machine, array: None)
    monkeypatch.setattr(mdadm, "end_check", lambda machine, array: False)


@pytest.fixture
def bench(tmp_path: Path) -> RecordedRuns:
    return RecordedRuns(tmp_path)


def measured_by(bench: RecordedRuns, workload: Workload = READ, geometry: Geometry = RAID5X3) -> Measured:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "run", bench.run(workload, geometry))
        return fixed_time.measure(bench.setup, array_of(geometry), workload)


#: Every kind of workload, on arrays, on what is left of them, and on drives.
@given(
    workload=strategies.workloads | strategies.unusual_workloads,
    geometry=st.sampled_from(["drivex1", "drivex3", "raid0x2", "raid5x3", "raid6x4-1failed", "raid10x4"]),
    iops=st.lists(st.integers(2000, 9000), min_size=1, max_size=12),
    windows=st.tuples(st.integers(0, 3), st.integers(5, 12), st.integers(3, 5), st.integers(1, 3)),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_what_was_measured_is_recalled_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory,
    workload: Workload,
    geometry: str,
    iops: list[int],
    windows: tuple[int, int, int, int],
) -> None:
    ramp_s, window_s, rounds, repeats = windows
    rule = SteadyRule(window=rounds, range_percent=1e6, slope_percent=1e6)  # wider than a protocol can be
    protocol = replace(PROTOCOL, measure=MeasureRule(ramp_s, window_s, repeats, 1), steady=rule)
    bench = RecordedRuns(tmp_path_factory.mktemp("runs"), iops, protocol)
    with pytest.MonkeyPatch.context() as patch:
        # Made-up rates need not be those of a queue of this depth.
        patch.setattr("pytest_ssdqual.qual.validity.checks.objections", lambda found: ())
        original = measured_by(bench, workload, Geometry.parse(geometry))
    key = ResultKey("measured", Geometry.parse(geometry), str(workload))
    memory = bench.memory()
    assert memory.has(key)
    assert memory.recall(key) == original
    assert bench.forgotten() == []


def test_drives_side_by_side_are_recalled_each(bench: RecordedRuns) -> None:
    geometry = Geometry.parse("drivex3")
    original = measured_by(bench, geometry=geometry)
    recalled = bench.memory().recall(ResultKey("measured", geometry, str(READ)))
    assert isinstance(recalled, Measured)
    assert recalled.members() == original.members()
    assert len({each.iops for each in recalled.members()}) == 3


def test_what_was_seen_around_it_is_recalled_and_says_the_same(bench: RecordedRuns) -> None:
    original = measured_by(bench)
    recalled = bench.memory().recall(KEY)
    assert isinstance(recalled, Measured)
    for ours, theirs in zip(recalled.runs, original.runs, strict=True):
        assert ours.seen == theirs.seen
        assert ours.seen
        assert ours.seen.array
        assert ours.seen.array.device.counted
        assert checks.of_environment(ours) == checks.of_environment(theirs)
    # As bad as nothing that is measured would be: what is said of it is made of the record alone.

    def clock_was_set(record: dict[str, Any]) -> None:
        for run in record.get("runs", ()):
            run["seen"]["clock_jump_s"] = 3600.0

    bench.change_records(clock_was_set)
    again = bench.memory().recall(KEY)
    assert isinstance(again, Measured)
    assert checks.objections(again.runs[0])[0].startswith("the machine's clock was set forward by")


def test_a_record_without_an_environment_is_recalled_too(bench: RecordedRuns) -> None:
    def nothing_was_seen(record: dict[str, Any]) -> None:
        for run in record.get("runs", ()):
            run["seen"] = run["cpu_busy"] = None

    measured_by(bench)
    bench.change_records(nothing_was_seen)
    recalled = bench.memory().recall(KEY)
    assert isinstance(recalled, Measured)
    assert {run.seen for run in recalled.runs} == {None}


def test_a_saturation_is_recalled(bench: RecordedRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "run", bench.run(WRITE, RAID5X3))
    original = saturation.saturate(bench.setup, array_of(RAID5X3), WRITE)
    assert bench.memory().recall(ResultKey("saturation", RAID5X3, str(WRITE))) == original
    assert len(original.points) == 15


@pytest.mark.parametrize("geometry", ["raid5x3", "drivex2"])
def test_a_loop_is_recalled(bench: RecordedRuns, monkeypatch: pytest.MonkeyPatch, geometry: str) -> None:
    array = array_of(Geometry.parse(geometry))
    loop = Rounds("two", (WRITE, WRITE.at(1)), (Tracked(WRITE, "steady_iops"),), fill_bs="128k")

    def run(machine: object, job: Job, seconds: float) -> FinishedProcess:
        depth = next(word for word in job.options if word.startswith("--iodepth="))
        return bench.run(WRITE.at(int(depth.removeprefix("--iodepth="))), array.geometry)(machine, job, seconds)

    monkeypatch.setattr(process, "run", run)
    original = looping.run(bench.setup, array, loop)
    assert bench.memory().recall(ResultKey("loop", array.geometry, "two")) == original
    assert len(original.rounds) == 5


@pytest.mark.parametrize("geometry", ["raid5x3", "drivex2"])
def test_stimuli_are_recalled(bench: RecordedRuns, monkeypatch: pytest.MonkeyPatch, geometry: str) -> None:
    array, again = array_of(Geometry.parse(geometry)), replace(WRITE, name="again")
    monkeypatch.setattr(process, "run", bench.run(WRITE, array.geometry))
    loop = Rounds("s", (), (), fill_bs="128k", after=(Stimulus(WRITE, 2, 10), Stimulus(again, 1, 5)))
    original = looping.run(bench.setup, array, loop)
    assert bench.memory().recall(ResultKey("loop", array.geometry, "s")) == original
    assert [runs[0].rounds for runs in original.after] == [10, 5]


def test_a_stimulus_with_pauses_is_recalled(bench: RecordedRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    array, paused = array_of(RAID5X3), replace(WRITE, burst_s=1, idle_s=1)
    fio = bench.run(paused, RAID5X3)

    def run(machine: object, job: Job, seconds: float) -> FinishedProcess:
        done = fio(machine, job, paused.burst_s)  # what fio reports of several bursts
        return replace(done, completed=replace(done.completed, elapsed_s=seconds))

    monkeypatch.setattr(process, "run", run)
    original = looping.run(bench.setup, array, Rounds("s", (), (), "128k", after=(Stimulus(paused, 2, 2),)))
    assert [(run.window_s, run.seconds, run.ios) for run in original.after[0]] == [(2, 2, 1000)] * 2
    assert bench.memory().recall(ResultKey("loop", RAID5X3, "s")) == original


VISITS = VisitRule(cells=(2, 1), cell_s=20.0, ramp_s=2.0)


def visited_by(bench: RecordedRuns, workload: Workload = READ, geometry: Geometry = RAID5X3) -> list[Cell]:
    """The cells of two visits, the first one of which ends with a cell that depends on the one before it."""
    bench.protocol = replace(PROTOCOL, visits=VISITS)
    cells: list[Cell] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "run", bench.run(workload, geometry))
        for visit, count in enumerate(VISITS.cells):
            before = None
            for _ in range(count):
                cell, before = visiting.measure_cell(bench.setup, array_of(geometry), workload, visit, before)
                cells.append(cell)
    return cells


@pytest.mark.parametrize("workload", [READ, WRITE], ids=str)
@pytest.mark.parametrize("geometry", ["raid5x3", "drivex1", "drivex3"])
def test_cells_are_recalled_to_the_last_bit(bench: RecordedRuns, geometry: str, workload: Workload) -> None:
    bench.iops = (2000, 2010, 1990)
    cells = visited_by(bench, workload, Geometry.parse(geometry))
    assert bench.memory().cells(ResultKey("measured", Geometry.parse(geometry), str(workload))) == cells
    assert [cell.visit for cell in cells] == [0, 0, 1]
    assert [cell.written_before is None for cell in cells] == [True, False, True]
    assert bench.forgotten() == []


def test_what_was_visited_is_recalled_with_its_intervals(bench: RecordedRuns) -> None:
    point = RAID5X3, READ
    cells = visited_by(bench)
    original = visits.at_look({point: cells}, bench.protocol, is_last=True)[point]
    fixed_time.record_measured(bench.setup, original)
    assert original.visited
    assert bench.memory().recall(KEY) == original


def test_cells_of_something_else_are_not_those_of_this(bench: RecordedRuns) -> None:
    cells = visited_by(bench)
    visited_by(bench, WRITE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "run", bench.run(READ, RAID5X3))
        visiting.measure_cell(bench.setup, array_of(RAID5X3), READ, 0, None, "explored")
    memory = bench.memory()
    assert memory.cells(KEY) == cells
    assert memory.cells(ResultKey("measured", Geometry.parse("raid5x4"), str(READ))) == []
    assert len(memory.cells(ResultKey("explored", RAID5X3, str(READ)))) == 1
    # A cell is no result.
    assert not memory.has(KEY)
    assert len(memory) == 0


def test_a_cell_that_is_damaged_is_told_and_measured_again(bench: RecordedRuns) -> None:
    first, second, third = visited_by(bench)
    flip(bench.journal.path / second.run.raw)
    assert bench.memory().cells(KEY) == [first, third]
    (why,) = bench.forgotten()
    assert "one of its cells" in why
    assert second.run.raw in why


@pytest.mark.parametrize("name", ["run", "visit", "head", "asked"])
def test_a_record_of_a_cell_that_is_not_whole_is_told(bench: RecordedRuns, name: str) -> None:
    visited_by(bench)
    bench.change_records(lambda record: record.pop(name, None))
    assert bench.memory().cells(KEY) == []
    assert len(bench.forgotten()) == 3


def test_after_a_drive_was_left_out_cells_with_it_do_not_count(bench: RecordedRuns) -> None:
    geometry = Geometry.parse("drivex3")
    visited_by(bench, READ, geometry)
    left = array_of(geometry).without({"S1"})

    def fio(machine: object, job: Job, seconds: float) -> FinishedProcess:
        runs = [strategies.run([1000] * round(seconds), geometry="drivex1", workload=READ) for _ in left.members]
        bench.surroundings.ran(left, [each.intervals for each in runs])
        return FinishedProcess(completed(["fio"]), fio_documents.packed(*(each.intervals for each in runs)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "run", fio)
        cell, _ = visiting.measure_cell(bench.setup, left, READ, 1, None)
    assert bench.memory().cells(ResultKey("measured", geometry, str(READ))) == [cell]


def test_a_search_has_ended_if_no_workload_is_probed_again(bench: RecordedRuns) -> None:
    for looks, geometry in (("kept", "undecided"), "drivex2"), (("kept", "unmeasurable"), "drivex3"):
        unsaid = {"seconds": 1.0, "verdict": "", "trouble": [], "unseen": []}
        probed = [{**unsaid, "workload": "randread_4k_qd1", "look": each} for each in looks]
        bench.journal.note(
            "searched", **whole("searched", {"geometry": geometry, "plain": str(READ), "probed": probed})
        )
    bench.journal.note("searched", geometry="drivex4", plain=str(READ))
    memory = bench.memory()
    ended = [memory.has(ResultKey("search", Geometry.parse(f"drivex{width}"), str(READ))) for width in (2, 3, 4)]
    assert ended == [True, False, False]
    assert len(memory) == 0
    assert memory.recall(ResultKey("search", Geometry.parse("drivex2"), str(READ))) is None


def test_a_rebuild_is_recalled(bench: RecordedRuns) -> None:
    """As its record is defined; who rebuilds writes it so."""
    rebuilding = Geometry.parse("raid5x3-1rebuilding")
    original = Rebuild(rebuilding, 61.5, 1 << 28, measured_by(bench, geometry=rebuilding), 0, "a pattern was lost", 0.5)
    bench.journal.note(
        "rebuild",
        **original.summary(),
        asked=plain(READ),
        protocol="test",
        acceptance=False,
        members=[],
        limits={},
        raw=original.foreground.runs[0].raw,
    )
    assert bench.memory().recall(ResultKey("rebuild", rebuilding, str(READ))) == original


def test_what_was_not_measured_is_not_recalled(bench: RecordedRuns) -> None:
    measured_by(bench)
    memory = bench.memory()
    for key in (
        ResultKey("measured", RAID5X3, str(WRITE)),
        ResultKey("measured", Geometry.parse("raid5x4"), str(READ)),
        ResultKey("saturation", RAID5X3, str(READ)),
    ):
        assert not memory.has(key)
        assert memory.recall(key) is None


KEY = ResultKey("measured", RAID5X3, str(READ))


def raw_files(bench: RecordedRuns) -> list[Path]:
    return sorted((bench.journal.path / "fio").iterdir())


def another(path: Path) -> None:
    """A whole file, of another measurement."""
    run = strategies.run([500] * 12, geometry="raid5x3", workload=READ)
    path.write_bytes(fio_documents.packed(run.intervals))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("which", "damage", "said"),
    [
        (0, Path.unlink, "cannot be read: No such file or directory"),
        (1, flip, "is not the file that was written"),
    ],
)
def test_what_is_damaged_is_told_and_measured_again(
    bench: RecordedRuns, which: int, damage: Callable[[Path], object], said: str
) -> None:
    """One file of the two repeats is enough."""
    measured_by(bench)
    damaged = raw_files(bench)[which]
    damage(damaged)
    memory = bench.memory()
    assert not memory.has(KEY)
    assert memory.recall(KEY) is None
    (why,) = bench.forgotten()
    assert why.startswith(f"fio/{damaged.name}")
    assert said in why


UNNOTICED: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-10]), "is damaged: Compressed file ended before"),
    "one bit": (flip, "is damaged: "),
    "another": (another, "gives 500.0 IOPS where 990.0 were noted"),
    "no document": (lambda path: path.write_bytes(gzip.compress(b"fio: nothing")), "is damaged: fio wrote no result"),
}


@pytest.mark.parametrize("kind", UNNOTICED)
def test_without_digests_what_is_read_must_agree_with_the_record(bench: RecordedRuns, kind: str) -> None:
    """A file of which no digest is known is only found out when it is read."""
    measured_by(bench)
    records = bench.journal.path / "records.jsonl"
    lines = [line for line in records.read_text().splitlines(keepends=True) if '"kind":"ran"' not in line]
    records.write_text("".join(lines))
    damage, said = UNNOTICED[kind]
    damage(raw_files(bench)[0])
    memory = bench.memory()
    assert memory.has(KEY)
    assert memory.recall(KEY) is None
    assert not memory.has(KEY)
    (why,) = bench.forgotten()
    assert said in why


def test_a_digest_of_a_sealed_folder_counts_too(bench: RecordedRuns) -> None:
    measured_by(bench)
    records = tuple(each for each in read_records(bench.journal.path) if each.kind != "ran")
    another(raw_files(bench)[0])
    (first, _) = raw_files(bench)
    memory = Recollection.of(bench.journal.path, records, sums={f"fio/{first.name}": "0" * 64})
    assert not memory.has(KEY)


@pytest.mark.parametrize("name", ["asked", "runs"])
def test_a_record_that_is_not_whole_is_told(bench: RecordedRuns, name: str) -> None:
    measured_by(bench)
    bench.change_records(lambda record: record.pop(name, None))
    assert bench.memory().recall(KEY) is None
    assert bench.forgotten() == [f"this is no MeasuredRecord: {name}: is missing"]


def test_of_two_measurements_the_later_one_counts(bench: RecordedRuns) -> None:
    """The first was damaged when the second was made."""
    measured_by(bench)
    bench.iops = (2000,)
    later = measured_by(bench)
    assert bench.memory().recall(KEY) == later
