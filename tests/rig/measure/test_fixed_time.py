"""What an attempt to measure is worth when the machine's clock is set meanwhile: nothing, and the next one decides.

And how long an attempt takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import pytest
from support.builders import strategies
from support.builders.drives import drive
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.qual.measured.environment import KernelLine, KernelLog
from pytest_ssdqual.qual.measured.histogram import LatencyHistogram
from pytest_ssdqual.qual.measured.run import Run
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.qual.spec import protocol as protocols
from pytest_ssdqual.qual.validity.check import Check
from pytest_ssdqual.qual.workload.workload import Workload
from pytest_ssdqual.rig.drives.failed import DriveFailed, DrivesUndecided
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.fio.intervals import IoDirection
from pytest_ssdqual.rig.fio.output import FioResult
from pytest_ssdqual.rig.guard.held_drives import HeldDrives
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.guard.refusals import DrivesGone
from pytest_ssdqual.rig.machine.machine import (
    CheckRan,
    ClockSet,
    CommandFailed,
    DriveRefused,
    InvalidMeasurement,
    MachineLost,
    RigError,
)
from pytest_ssdqual.rig.md import mdadm
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure import fixed_time
from pytest_ssdqual.rig.measure.session import BudgetSpent, Setup
from pytest_ssdqual.rig.observe import drive_failure

READS = Workload("randread", "4k", 8)
QUICK = protocols.load("quick")
ARRAY = Array(Geometry.parse("raid0x2"), "/dev/md100", (), "0" * 32, 1 << 30, "none needed")
SAID = "the machine's clock was set by 3600000 ms or more during the measurement"


@dataclass
class FixedTimeBook:
    """A logbook that keeps what it is told of attempts."""

    attempts: list[dict[str, object]] = field(default_factory=list)

    def note(self, kind: str, **facts: object) -> None:
        if kind == "steady":
            self.attempts.append(facts)

    def keep(self, name: str, data: bytes) -> str:
        return name


def setup(noted: FixedTimeBook, attempts: int) -> Setup:
    return Setup(
        machine=ScriptedMachine(),
        held=None,  # type: ignore[arg-type]
        protocol=replace(QUICK, measure=replace(QUICK.measure, attempts=attempts)),
        logbook=noted,
        machine_id="",
        progress=lambda what, seconds: None,
    )


def test_a_window_or_a_step_of_conditioning_that_would_end_after_the_budget_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fixed_time, "require", lambda setup, array, *, writes: None)
    monkeypatch.setattr(mdadm, "require_healthy", lambda machine, array: None)
    window = fixed_time.ProcessWindow(ramp_s=5.0, window_s=60.0, rounds=5)
    short = replace(setup(FixedTimeBook(), 1), left_s=lambda: 64.0)
    with pytest.raises(BudgetSpent, match="64 s of the run's time budget remain"):
        fixed_time.run(short, ARRAY, READS, "run", window)
    assert isinstance(short.machine, ScriptedMachine)
    assert not short.machine.asked


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each attempt, whether the clock is set."""
    times: list[bool] = []

    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        if times.pop(0):
            raise ClockSet(SAID)
        return strategies.run([1000] * 5, geometry="raid0x2", workload=workload)

    monkeypatch.setattr(fixed_time, "run", run)
    return times


def test_it_is_measured_again(times: list[bool]) -> None:
    times += [True, False]
    noted = FixedTimeBook()
    assert fixed_time.measure(setup(noted, 2), ARRAY, READS).iops == 1000
    void, good = noted.attempts
    assert void == {"geometry": "raid0x2", "workload": "randread_4k_qd8", "reached": False, "objections": (SAID,)}
    assert (good["reached"], good["objections"]) == (True, ())


def test_a_clock_that_is_set_all_the_time_is_told(times: list[bool]) -> None:
    times += [True, True]
    with pytest.raises(InvalidMeasurement) as told:
        fixed_time.measure(setup(FixedTimeBook(), 2), ARRAY, READS)
    assert str(told.value) == f"randread_4k_qd8 on raid0x2 is not valid: {SAID} (after 2 attempts)"


def test_what_is_asked_of_tails_is_measured_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[fixed_time.ProcessWindow] = []
    told: list[float] = []

    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        windows.append(window)
        return strategies.run([1000] * round(window.window_s), geometry="raid0x2", workload=workload)

    monkeypatch.setattr(fixed_time, "run", run)
    watched = replace(setup(FixedTimeBook(), 1), progress=lambda what, seconds: told.append(seconds))
    protocol = watched.protocol
    assert protocol.measure.tail_window_s
    assert protocol.measure.tail_window_s > protocol.measure.window_s
    for tail in (False, True):
        fixed_time.measure(watched, ARRAY, READS, tail=tail)
    lengths = [protocol.measure.window_s, protocol.measure.tail_window_s]
    assert [each.window_s for each in windows] == lengths
    assert [each.rounds for each in windows] == [protocol.steady.window] * 2
    assert told == [protocol.measure.ramp_s + each for each in lengths]


def test_a_window_with_too_few_ios_is_repeated_with_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[fixed_time.ProcessWindow] = []
    iops = 5  # half of what rounds of ten seconds need

    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        windows.append(window)
        seconds = round(window.window_s / window.rounds)
        rates = [iops] * seconds * window.rounds
        return strategies.run(rates, geometry="raid0x2", workload=workload, rounds=window.rounds)

    monkeypatch.setattr(fixed_time, "run", run)
    protocol = replace(QUICK, measure=replace(QUICK.measure, window_s=50.0, attempts=3))
    measured = fixed_time.measure(replace(setup(FixedTimeBook(), 3), protocol=protocol), ARRAY, READS)
    assert windows[0].window_s == 50
    assert 100 < windows[1].window_s <= 500
    assert len(windows) == 2
    assert measured.runs[0].ios >= 100 * windows[1].rounds
    # Ten times is the most.
    iops, windows[:] = 0, []
    with pytest.raises(InvalidMeasurement, match=r"\(after 3 attempts\)$"):
        fixed_time.measure(replace(setup(FixedTimeBook(), 3), protocol=protocol), ARRAY, READS)
    assert [each.window_s for each in windows] == [50, 500, 500]


DRIVES = Array(
    Geometry.parse("drivex3"), "/dev/nvme0n1", tuple(map(drive, range(3))), "", 3 * (256 << 20), "none needed"
)
STEADY, RISING, IDLE = [1000] * 5, [1000, 1300, 1600, 1900, 2200], [10] * 5


@pytest.mark.parametrize(
    ("rates", "faulty"),
    [
        ([STEADY, RISING, STEADY], ["S1"]),
        ([IDLE, STEADY, STEADY], ["S0"]),
        ([IDLE, STEADY, RISING], ["S0", "S2"]),
        ([RISING, RISING, IDLE], []),
    ],
)
def test_only_drives_without_a_valid_figure_are_undecided(
    monkeypatch: pytest.MonkeyPatch, rates: list[list[int]], faulty: list[str]
) -> None:
    monkeypatch.setattr(fixed_time, "run", lambda *_: strategies.side_by_side(rates, workload=READS))
    with pytest.raises(InvalidMeasurement) as caught:
        fixed_time.measure(setup(FixedTimeBook(), 2), DRIVES, READS)
    assert isinstance(caught.value, DrivesUndecided) is bool(faulty)
    assert sorted(getattr(caught.value, "drives", {})) == faulty
    assert all(serial in str(caught.value) for serial in faulty)


def test_drives_without_some_keep_the_name_of_their_geometry() -> None:
    found = DRIVES.without({"S0"})
    assert (str(found.geometry), found.path, found.size_bytes) == ("drivex3", "/dev/nvme1n1", 2 * (256 << 20))
    assert [target.path for target in found.targets] == ["/dev/nvme1n1", "/dev/nvme2n1"]
    assert found.drives_per_target == 1
    assert DRIVES.without({"S9"}) is DRIVES


def test_a_step_is_repeated_when_the_clock_was_set(times: list[bool]) -> None:
    times += [True, True, False]
    window = fixed_time.ProcessWindow(0.0, 5.0, 1)
    again = fixed_time.repeated(lambda: fixed_time.run(setup(FixedTimeBook(), 1), ARRAY, READS, "precondition", window))
    assert again.iops == 1000
    times += [True] * 9
    with pytest.raises(ClockSet):
        fixed_time.repeated(lambda: fixed_time.run(setup(FixedTimeBook(), 1), ARRAY, READS, "precondition", window))
    assert len(times) == 3


def bare_setup(require: Callable[[Sequence[Drive]], None]) -> Setup:
    held = cast(HeldDrives, SimpleNamespace(require=require))
    machine = ScriptedMachine().on("sh", "-c", drive_failure.SCRIPT, answer="end\n")
    return replace(setup(FixedTimeBook(), 1), held=held, machine=machine)


def gone(count: int) -> Callable[[Sequence[Drive]], None]:
    def require(drives: Sequence[Drive]) -> None:
        raise DrivesGone("is gone", drives[:count])

    return require


BARE = replace(ARRAY, geometry=Geometry.parse("drivex3"), members=tuple(map(drive, range(3))))


@pytest.fixture
def reappears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_time, "REAPPEARS_S", 0.0)


@pytest.mark.usefixtures("reappears")
def test_a_drive_that_drops_out_between_two_loads_has_failed() -> None:
    watched = bare_setup(gone(1))
    with pytest.raises(DriveFailed, match="it dropped out"):
        fixed_time.require(watched, BARE, writes=True)
    assert list(watched.failures.failed) == ["S0"]


@pytest.mark.usefixtures("reappears")
@pytest.mark.parametrize("count", [1, 2])
def test_drives_that_drop_out_with_their_path_have_not_failed(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several at once, or one beside a reset of its HBA in the kernel's log since the latest load."""
    lines = (KernelLine(9.0, 3, "mpt3sas_cm0: sending diag reset !!"),) if count == 1 else ()
    monkeypatch.setattr(drive_failure, "_kernel", lambda *_: KernelLog(lines, 0, False))
    watched = bare_setup(gone(count))
    with pytest.raises(InvalidMeasurement, match="diag reset" if count == 1 else "2 drives failed at once"):
        fixed_time.require(watched, BARE, writes=True)
    assert not watched.failures.failed


@pytest.mark.usefixtures("reappears")
def test_a_drive_that_is_alone_and_gone_is_refused() -> None:
    alone = replace(BARE, geometry=Geometry.parse("drivex1"), members=BARE.members[:1])
    with pytest.raises(DrivesGone):
        fixed_time.require(bare_setup(gone(1)), alone, writes=True)


@pytest.mark.usefixtures("reappears")
def test_a_drive_that_comes_back_is_used_after_another_check() -> None:
    found: list[bool] = [False, True]

    def require(drives: Sequence[Drive]) -> None:
        if not found.pop(0):
            raise DrivesGone("is gone", drives[:1])

    watched = bare_setup(require)
    fixed_time.require(watched, BARE, writes=True)
    assert not found
    assert not watched.failures.failed


@pytest.mark.parametrize("fault", [InvalidMeasurement("a worker was killed"), CommandFailed("no", completed(["fio"]))])
def test_what_prepares_is_repeated_once(fault: RigError) -> None:
    """Everything that follows depends on it; a second fault is final."""
    noted: list[tuple[str, object]] = []
    logbook = SimpleNamespace(note=lambda kind, **facts: noted.append((kind, facts["fault"])))
    faults = [fault]

    def work() -> str:
        if faults:
            raise faults.pop(0)
        return "filled"

    book = replace(setup(FixedTimeBook(), 1), logbook=logbook)
    assert fixed_time.prepared(book, ARRAY, work) == "filled"
    assert noted == [("preparation_repeated", str(fault))]
    faults += [fault, fault]
    with pytest.raises(type(fault)):
        fixed_time.prepared(book, ARRAY, work)


@pytest.mark.parametrize("fault", [DriveFailed("x", ()), LeaseLost("x"), MachineLost("x"), DriveRefused("x")])
def test_a_failed_drive_or_a_refusal_is_final(fault: RigError) -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        raise fault

    with pytest.raises(type(fault)):
        fixed_time.prepared(setup(FixedTimeBook(), 1), ARRAY, work)
    assert len(calls) == 1


def test_a_check_that_cron_began_is_ended_before_fio(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    logbook = SimpleNamespace(note=lambda kind, **facts: noted.append(kind))
    monkeypatch.setattr(mdadm, "end_check", lambda machine, array: True)
    held = SimpleNamespace(require_lease=lambda: noted.append("lease"))
    fixed_time.require(
        replace(setup(FixedTimeBook(), 1), held=held, logbook=logbook),  # type: ignore[arg-type]
        ARRAY,
        writes=True,
    )
    assert noted == ["lease", "check_ended"]


def test_a_check_that_begins_meanwhile_voids_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[RigError] = [CheckRan("check is running")]

    def run(*given: object) -> Run:
        if faults:
            raise faults.pop()
        return strategies.run([1000] * 5, geometry="raid0x2", workload=READS)

    monkeypatch.setattr(fixed_time, "run", run)
    assert fixed_time.measure(setup(FixedTimeBook(), 2), ARRAY, READS).iops == 1000


@pytest.mark.parametrize(("geometry", "kind"), [("drivex2", DrivesUndecided), ("raid0x2", InvalidMeasurement)])
def test_only_of_drives_side_by_side_some_can_be_left_out(geometry: str, kind: type[InvalidMeasurement]) -> None:
    array = replace(ARRAY, geometry=Geometry.parse(geometry), members=tuple(map(drive, range(2))))
    hot = Check("too_warm_s", 9, "none", ("S0: it throttled",), drive="S0")
    with pytest.raises(InvalidMeasurement, match=r"^this is not valid: S0: it throttled$") as error:
        fixed_time.require_valid([hot, Check("ios", 9, "any")], "this", array)
    assert type(error.value) is kind
    fixed_time.require_valid([Check("ios", 9, "any")], "this", array)


def test_an_objection_to_the_machine_is_about_all_drives() -> None:
    checks = [Check("heat", 9, "none", ("S0: it throttled",), drive="S0"), Check("cpu", 99, "x", ("the CPU was busy",))]
    with pytest.raises(InvalidMeasurement, match="the CPU was busy") as error:
        fixed_time.require_valid(checks, "this", BARE)
    assert not isinstance(error.value, DrivesUndecided)


def test_a_process_that_lacks_its_last_bursts_does_not_count() -> None:
    """fio reports the run time of one burst, which all of them have."""
    paused = Workload("randwrite", "4k", 8, burst_s=1, idle_s=2)
    window = fixed_time.ProcessWindow(0.0, 20.0, 1, 4000)
    done = strategies.run([900], workload=paused)
    nothing = IoDirection(0, 0, LatencyHistogram({}), 0.0, 0)
    result = FioResult("fio-3.33", 0, 1.0, done.intervals, nothing, nothing, 0, 0.0, 0.0, (), ())
    counted, window_s = fixed_time._counted(paused, window, result, 16.5)
    assert (window_s, counted.seconds, counted.intervals[0].seconds, counted.intervals[0].ios) == (6, 6, 6, 900)
    with pytest.raises(InvalidMeasurement, match=r"fio ended after 15\.9 s; 6 bursts take 16 s"):
        fixed_time._counted(paused, window, result, 15.9)
