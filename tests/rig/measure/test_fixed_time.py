"""What an attempt to measure is worth when the machine's clock is set meanwhile: nothing, and the next one decides.

And how long an attempt takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from support.builders import strategies
from support.builders.drives import drive
from support.builders.measuring import READ, setup_of
from support.fakes.logbook import Logbook
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

QUICK = protocols.load("quick")
ARRAY = Array(Geometry.parse("raid0x2"), "/dev/md100", (), "0" * 32, 1 << 30, "none needed")
SAID = "the machine's clock was set by 3600000 ms or more during the measurement"


def setup(noted: Logbook, attempts: int) -> Setup:
    protocol = replace(QUICK, measure=replace(QUICK.measure, attempts=attempts))
    return setup_of(noted, protocol, machine=ScriptedMachine())


def test_window_that_would_end_after_the_budget_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fixed_time, "require", lambda setup, array, *, writes: None)
    monkeypatch.setattr(mdadm, "require_healthy", lambda machine, array: None)
    window = fixed_time.ProcessWindow(ramp_s=5.0, window_s=60.0, rounds=5)
    short = replace(setup(Logbook(), 1), left_s=lambda: 64.0)
    with pytest.raises(BudgetSpent, match="time budget remain"):
        fixed_time.run(short, ARRAY, READ, "run", window)
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


def test_attempt_in_which_the_clock_was_set_is_repeated(times: list[bool]) -> None:
    times += [True, False, True, True]
    noted = Logbook()
    assert fixed_time.measure(setup(noted, 2), ARRAY, READ).iops == 1000
    void, good = noted.all_of("steady")
    assert void == {"geometry": "raid0x2", "workload": "randread_4k_qd8", "reached": False, "objections": [SAID]}
    assert (good["reached"], good["objections"]) == (True, [])
    with pytest.raises(InvalidMeasurement, match=rf"{SAID} \(after 2 attempts\)$"):
        fixed_time.measure(setup(noted, 2), ARRAY, READ)


def test_what_is_asked_of_tails_is_measured_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[fixed_time.ProcessWindow] = []
    told: list[float] = []

    def run(setup: Setup, array: Array, workload: Workload, kind: str, window: fixed_time.ProcessWindow) -> Run:
        windows.append(window)
        return strategies.run([1000] * round(window.window_s), geometry="raid0x2", workload=workload)

    monkeypatch.setattr(fixed_time, "run", run)
    watched = replace(setup(Logbook(), 1), progress=lambda what, seconds: told.append(seconds))
    protocol = watched.protocol
    assert protocol.measure.tail_window_s
    assert protocol.measure.tail_window_s > protocol.measure.window_s
    for tail in (False, True):
        fixed_time.measure(watched, ARRAY, READ, tail=tail)
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
    measured = fixed_time.measure(replace(setup(Logbook(), 3), protocol=protocol), ARRAY, READ)
    assert windows[0].window_s == 50
    assert 100 < windows[1].window_s <= 500
    assert len(windows) == 2
    assert measured.runs[0].ios >= 100 * windows[1].rounds
    # Ten times is the most.
    iops, windows[:] = 0, []
    with pytest.raises(InvalidMeasurement, match=r"\(after 3 attempts\)$"):
        fixed_time.measure(replace(setup(Logbook(), 3), protocol=protocol), ARRAY, READ)
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
    monkeypatch.setattr(fixed_time, "run", lambda *_: strategies.side_by_side(rates, workload=READ))
    with pytest.raises(InvalidMeasurement) as caught:
        fixed_time.measure(setup(Logbook(), 2), DRIVES, READ)
    assert isinstance(caught.value, DrivesUndecided) is bool(faulty)
    assert sorted(getattr(caught.value, "drives", {})) == faulty
    assert all(serial in str(caught.value) for serial in faulty)


def test_drives_without_some_keep_the_name_of_their_geometry() -> None:
    found = DRIVES.without({"S0"})
    assert (str(found.geometry), found.path, found.size_bytes) == ("drivex3", "/dev/nvme1n1", 2 * (256 << 20))
    assert [target.path for target in found.targets] == ["/dev/nvme1n1", "/dev/nvme2n1"]
    assert found.drives_per_target == 1
    assert DRIVES.without({"S9"}) is DRIVES


def test_step_is_repeated_when_the_clock_was_set(times: list[bool]) -> None:
    window = fixed_time.ProcessWindow(0.0, 5.0, 1)

    def step() -> Run:
        return fixed_time.run(setup(Logbook(), 1), ARRAY, READ, "precondition", window)

    times += [True, True, False]
    assert fixed_time.repeated(step).iops == 1000
    times += [True] * 9
    with pytest.raises(ClockSet):
        fixed_time.repeated(step)
    assert len(times) == 3


def bare_setup(require: Callable[[Sequence[Drive]], None]) -> Setup:
    held = cast(HeldDrives, SimpleNamespace(require=require))
    machine = ScriptedMachine().on("sh", "-c", drive_failure.SCRIPT, answer="end\n")
    return replace(setup(Logbook(), 1), held=held, machine=machine)


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
    with pytest.raises(InvalidMeasurement, match="diag reset" if count == 1 else "2 drives failed"):
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


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (InvalidMeasurement("a worker was killed"), 2),
        (CommandFailed("no", completed(["fio"])), 2),
        *((fault, 1) for fault in (DriveFailed("x", ()), LeaseLost("x"), MachineLost("x"), DriveRefused("x"))),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_what_prepares_is_repeated_once(fault: RigError, calls: int) -> None:
    """Everything that follows depends on it; a failed drive, a refusal and a second fault are final."""
    noted: list[tuple[str, object]] = []
    logbook = SimpleNamespace(note=lambda kind, **facts: noted.append((kind, facts["fault"])))
    outcomes: list[RigError | str] = [fault, "filled"]

    def work() -> str:
        outcome = outcomes.pop(0)
        if isinstance(outcome, RigError):
            raise outcome
        return outcome

    book = replace(setup(Logbook(), 1), logbook=logbook)
    if calls == 2:
        assert fixed_time.prepared(book, ARRAY, work) == "filled"
        assert noted == [("preparation_repeated", str(fault))]
    outcomes[:] = [fault] * 3
    with pytest.raises(type(fault)):
        fixed_time.prepared(book, ARRAY, work)
    assert len(outcomes) == 3 - calls


def test_a_check_that_cron_began_is_ended_before_fio(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    logbook = SimpleNamespace(note=lambda kind, **facts: noted.append(kind))
    monkeypatch.setattr(mdadm, "end_check", lambda machine, array: True)
    held = SimpleNamespace(require_lease=lambda: noted.append("lease"))
    fixed_time.require(
        replace(setup(Logbook(), 1), held=held, logbook=logbook),  # type: ignore[arg-type]
        ARRAY,
        writes=True,
    )
    assert noted == ["lease", "check_ended"]


def test_check_that_begins_meanwhile_voids_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[RigError] = [CheckRan("check is running")]

    def run(*given: object) -> Run:
        if faults:
            raise faults.pop()
        return strategies.run([1000] * 5, geometry="raid0x2", workload=READ)

    monkeypatch.setattr(fixed_time, "run", run)
    assert fixed_time.measure(setup(Logbook(), 2), ARRAY, READ).iops == 1000


HOT = Check("too_warm_s", 9, ("S0: it throttled",), drive="S0")
FINE, BUSY = Check("ios", 9), Check("cpu", 99, ("the CPU was busy",))


@pytest.mark.parametrize(
    ("geometry", "checks", "kind"),
    [
        ("drivex3", [HOT, FINE], DrivesUndecided),
        ("raid0x3", [HOT, FINE], InvalidMeasurement),
        ("drivex3", [HOT, BUSY], InvalidMeasurement),  # an objection to the machine is about all drives
    ],
)
def test_only_of_drives_side_by_side_some_can_be_left_out(
    geometry: str, checks: list[Check], kind: type[InvalidMeasurement]
) -> None:
    array = replace(BARE, geometry=Geometry.parse(geometry))
    with pytest.raises(InvalidMeasurement, match="is not valid") as error:
        fixed_time.require_valid(checks, "this", array)
    assert type(error.value) is kind
    assert all(sentence in str(error.value) for check in checks for sentence in check.objections)
    fixed_time.require_valid([FINE], "this", array)


def test_a_process_that_lacks_its_last_bursts_does_not_count() -> None:
    """fio reports the run time of one burst, which all of them have."""
    paused = Workload("randwrite", "4k", 8, burst_s=1, idle_s=2)
    window = fixed_time.ProcessWindow(0.0, 20.0, 1, 4000)
    done = strategies.run([900], workload=paused)
    nothing = IoDirection(0, 0, LatencyHistogram({}))
    result = FioResult(1.0, done.intervals, nothing, nothing, 0, 0.0, (), ())
    counted, window_s = fixed_time._counted(paused, window, result, 16.5)
    assert (window_s, counted.seconds, counted.intervals[0].seconds, counted.intervals[0].ios) == (6, 6, 6, 900)
    with pytest.raises(InvalidMeasurement, match="6 bursts take"):
        fixed_time._counted(paused, window, result, 15.9)
