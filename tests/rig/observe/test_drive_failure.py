from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.builders.drives import named
from support.fakes.logbook import Logbook
from support.fakes.scripted import ScriptedMachine, completed
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.measured.environment import KernelLine, KernelLog
from pytest_ssdqual.qual.raid.geometry import Geometry, RaidLevel
from pytest_ssdqual.report.run_folder.journal import JournalError
from pytest_ssdqual.rig.drives.failed import DriveFailed, DriveFailures
from pytest_ssdqual.rig.guard.lease import LeaseLost
from pytest_ssdqual.rig.health import health
from pytest_ssdqual.rig.machine.machine import (
    ClockSet,
    Completed,
    DeadlineExceeded,
    InvalidMeasurement,
    MachineLost,
    RigError,
)
from pytest_ssdqual.rig.md.mdadm import Array
from pytest_ssdqual.rig.measure.session import LatestReadings, Setup
from pytest_ssdqual.rig.observe import drive_failure, environment
from pytest_ssdqual.rig.observe.device_counters import Counted
from pytest_ssdqual.rig.observe.drive_failure import attributed, own_names, parse
from pytest_ssdqual.rig.observe.environment import EnvironmentReading
from pytest_ssdqual.rig.observe.host_load import HostCounters
from pytest_ssdqual.rig.observe.kernel_log import KernelLogExcerpt

MEMBERS = (named("nvme0n1", "S0"), named("nvme1n1", "S1"), named("nvme2n1", "S2"))
HEALTHY = ("present", "rw", "in_sync")


def setup(*states: tuple[str, str, str]) -> tuple[Setup, Logbook]:
    lines = [f"{each.kname} {' '.join(state)}" for each, state in zip(MEMBERS, states, strict=True)]
    answer = completed((), "\n".join([*lines, "end", ""]))
    machine = ScriptedMachine().on("sh", "-c", drive_failure.SCRIPT, answer=answer)
    notes = Logbook()
    found = SimpleNamespace(machine=machine, logbook=notes, failures=DriveFailures(), readings=LatestReadings())
    found.note = partial(Setup.note, cast(Setup, found))
    return cast(Setup, found), notes


def array(missing: int = 0) -> Array:
    return Array(Geometry(RaidLevel.RAID5, 3, missing), "/dev/md100", MEMBERS, "u", 1 << 31, "zeroed")


def test_lost_member_is_recorded_as_a_failed_drive() -> None:
    bench, notes = setup(HEALTHY, ("gone", "rw", "-"), HEALTHY)
    error = InvalidMeasurement("degraded by 1 member")
    with pytest.raises(DriveFailed, match="S1") as caught, attributed(bench, array()):
        raise error
    assert [each.serial for each in caught.value.drives] == ["S1"]
    assert {serial: failed.under for serial, failed in bench.failures.failed.items()} == {"S1": "raid5x3"}
    note = notes.noted("measurement_failed")
    assert (note["origin"], note["error"]) == ("drive", str(error))


GONE, FAULTY = ("gone", "rw", "-"), ("present", "rw", "faulty")


@pytest.mark.parametrize(
    ("states", "missing", "error", "failed"),
    [
        ((HEALTHY, HEALTHY, FAULTY), 0, DriveFailed, ["S2"]),
        ((HEALTHY, HEALTHY, FAULTY), 1, RigError, []),  # a member that was failed on purpose
        ((GONE, GONE, GONE), 0, InvalidMeasurement, []),
    ],
    ids=["faulty", "failed on purpose", "all are gone"],
)
def test_only_a_member_that_is_lost_alone_has_failed(
    states: Sequence[tuple[str, str, str]], missing: int, error: type[RigError], failed: list[str]
) -> None:
    bench, _ = setup(*states)
    with pytest.raises(RigError) as raised, attributed(bench, array(missing)):
        raise RigError("no")
    assert type(raised.value) is error
    assert list(bench.failures.failed) == failed


@pytest.mark.parametrize("error", [ClockSet("x"), JournalError("x"), LeaseLost("x"), MachineLost("x"), ValueError("x")])
def test_errors_that_are_no_drives_are_not_examined(error: Exception) -> None:
    bench = cast(Setup, SimpleNamespace(readings=LatestReadings()))
    with pytest.raises(type(error)), attributed(bench, array()):
        raise error


def test_answer_that_was_cut_short_is_unknown() -> None:
    said = "nvme0n1 gone rw -\n"
    assert parse(said) == {}
    assert parse(f"{said}end\n") == {"nvme0n1": ("gone", "rw", "-")}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("states", "presence"),
    [
        ({"nvme0n1": "live"}, "present"),
        ({"nvme0n1": "dead"}, "gone"),
        ({"nvme0n1": "deleting (no IO)"}, "gone"),
        ({"nvme0n1": None, "nvme0c0n1": "live", "nvme0c1n1": "dead"}, "present"),
        ({"nvme0n1": None, "nvme0c0n1": "dead", "nvme0c1n1": "dead"}, "gone"),
        ({"nvme0n1": None, "nvme0c0n1": "resetting", "nvme0c0n11": "dead", "nvme00c0n1": "dead"}, "present"),
        ({"nvme0n1": None}, "present"),  # nothing is known
        ({"nvme0c0n1": "live"}, "gone"),
    ],
)
def test_a_drive_with_several_controllers_is_gone_when_all_are(
    tmp_path: Path, shell: str, states: dict[str, str | None], presence: str
) -> None:
    for kname, state in states.items():
        device = tmp_path / "block" / kname / "device"
        device.mkdir(parents=True)
        if state is not None:
            (device / "state").write_text(f"{state}\n")
    env = {**os.environ, "sys": str(tmp_path)}
    answer = run_script(shell, drive_failure.SCRIPT, "drive_states", "-", "nvme0n1", env=env)
    assert parse(answer) == {"nvme0n1": (presence, "rw", "-")}


def test_names_that_drives_share_are_no_drives_own() -> None:
    members = [named(kname, kname) for kname in ("nvme0n1", "sda", "sdb", "sdc", "sdd")]
    names = (
        "md100", "nvme0n1", "nvme0", "0000:01:00.0", "+0000:00:1c.0", "+0000:00:01.0",
        "sda", "0:0:0:0", "target0:0:0", "host0", "ata1", "ata1.00", "0000:00:17.0",
        "sdb", "1:0:0:0", "ata2", "ata2.00", "sdc", "1:1:0:0", "ata2.01",
        "sdd", "9:0:0:0", "host9", "2-1", "usb2", "0000:00:14.0",
    )  # fmt: skip
    assert own_names(members, names) == {
        "nvme0n1": ("nvme0n1", "nvme0", "0000:01:00.0", "0000:00:1c.0"),
        "sda": ("sda", "0:0:0:0", "target0:0:0", "ata1", "ata1.00"),
        "sdb": ("sdb", "1:0:0:0", "ata2.00"),
        "sdc": ("sdc", "1:1:0:0", "ata2.01"),
        "sdd": ("sdd", "9:0:0:0", "2-1"),
    }


SMART = (Path(__file__).parents[2] / "data" / "smartctl" / "qemu-nvme-7.3.json").read_text()
ANSWER = json.dumps(json.loads(SMART)) + "\n\n"
OPEN_FAILED = json.dumps({"smartctl": {"exit_status": 2, "messages": [{"string": "open failed: Input/output error"}]}})


def with_smart(*answers: Completed | Exception) -> tuple[Setup, Logbook, Callable[[], int]]:
    """A setup in which smartctl of S1 answers so, one after the other, and always as the last."""
    bench, notes = setup(HEALTHY, HEALTHY, HEALTHY)
    bench.failures.before = {each.path: health.parse(SMART) for each in MEMBERS}
    asked: list[Completed | Exception] = []

    def answer(argv: Sequence[str]) -> Completed:
        if argv[-1] != MEMBERS[1].path:
            return completed((), ANSWER)
        asked.append(answers[min(len(asked), len(answers) - 1)])
        if isinstance(asked[-1], Exception):
            raise asked[-1]
        return asked[-1]

    cast(ScriptedMachine, bench.machine).on("sh", "-c", health.SCRIPT, answer=answer)
    return bench, notes, lambda: len(asked)


@pytest.mark.parametrize(
    ("answers", "is_silent", "calls"),
    [
        ([completed((), "\n")], False, 2),  # smartctl was killed
        ([completed((), "", status=255)], False, 2),  # ssh refused another session
        ([completed((), "", status=127)], False, 2),
        ([completed((), "\n"), completed((), ANSWER)], False, 2),
        ([completed((), OPEN_FAILED + "\n")], True, 1),
        ([DeadlineExceeded("smartctl did not end within 45 s")], True, 1),
    ],
)
def test_smartctl_that_could_not_run_is_no_silent_drive(
    answers: list[Completed | Exception], is_silent: bool, calls: int
) -> None:
    bench, notes, asked = with_smart(*answers)
    with pytest.raises(InvalidMeasurement, match="by signal 9"), attributed(bench, array()):
        raise InvalidMeasurement("a worker of fio was killed by signal 9")
    assert not bench.failures.failed
    assert [each["is_silent"] for each in notes.notes[0][1]["drives"]] == [False, is_silent, False]
    assert asked() == calls


def test_smart_data_are_compared_with_those_that_were_read_last() -> None:
    """A change that was found after an error of the rig does not explain a later failure."""
    worse = json.loads(SMART)
    worse["nvme_smart_health_information_log"]["media_errors"] = 7
    bench, _, _ = with_smart(completed((), json.dumps(worse) + "\n\n"))
    with pytest.raises(InvalidMeasurement), attributed(bench, array()):
        raise InvalidMeasurement("a worker of fio was killed by signal 9")
    with pytest.raises(InvalidMeasurement), attributed(bench, array()):
        raise InvalidMeasurement("degraded by 1 member")
    assert not bench.failures.failed
    bench, _, _ = with_smart(completed((), json.dumps(worse) + "\n\n"))
    with pytest.raises(DriveFailed, match="S1"), attributed(bench, array()):
        raise InvalidMeasurement("degraded by 1 member")


def reading(mark: str, *lines: str) -> EnvironmentReading:
    log = KernelLogExcerpt(mark, KernelLog(tuple(KernelLine(9.0, 3, each) for each in lines), 0, False))
    names = ("nvme0n1", "nvme0", "nvme1n1", "nvme1", "nvme2n1", "nvme2")
    return EnvironmentReading(
        9.0, 9.0, 0.01, HostCounters({}, {}), (), Counted(), None, None, None, kernel_log=log, names=names
    )


@pytest.mark.parametrize("is_loaded", [True, False])
def test_kernel_log_names_a_drive_that_prevents_a_reading(monkeypatch: pytest.MonkeyPatch, *, is_loaded: bool) -> None:
    """What the kernel reports since the latest load on these drives is evidence, whatever began to use them next."""
    since: list[EnvironmentReading | None] = []

    def take_reading(machine: object, array: object, earlier: EnvironmentReading | None = None) -> EnvironmentReading:
        if earlier is None:
            raise DeadlineExceeded("sh on lab did not end within 150 s")
        since.append(earlier)
        return reading("k3", "nvme nvme1: I/O 12 QID 0 timeout, reset controller")

    monkeypatch.setattr(environment, "take_reading", take_reading)
    bench, _ = setup(HEALTHY, HEALTHY, HEALTHY)
    if is_loaded:
        bench.readings.array, bench.readings.before, bench.readings.after = array(), reading("k1"), reading("k2")
    with pytest.raises(DriveFailed if is_loaded else DeadlineExceeded):
        drive_failure.reading_before(bench, array())
    assert [each and each.kernel_log and each.kernel_log.mark for each in since] == ["k2"] * is_loaded


def test_fault_of_the_host_counts_until_a_load_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = setup(HEALTHY, HEALTHY, HEALTHY)
    marks: list[str] = []

    def take_reading(machine: object, array: object, earlier: EnvironmentReading | None = None) -> EnvironmentReading:
        if earlier and earlier.kernel_log:
            marks.append(earlier.kernel_log.mark)
        return reading(f"{'after' if earlier else 'before'}{len(marks)}")

    monkeypatch.setattr(environment, "take_reading", take_reading)
    monkeypatch.setattr(environment, "self_tests", lambda *_: {})
    monkeypatch.setattr(environment, "with_users", lambda after, *_: after)
    before = drive_failure.reading_before(bench, array())
    for _ in range(2):
        with pytest.raises(InvalidMeasurement), attributed(bench, array()):
            raise InvalidMeasurement("x")
    assert marks == ["before0"] * 2
    drive_failure.reading_after(bench, array(), before)
    with pytest.raises(InvalidMeasurement), attributed(bench, array()):
        raise InvalidMeasurement("x")
    assert marks == ["before0"] * 3 + ["after3"]


def test_messages_count_for_the_drives_that_were_loaded() -> None:
    bench, _ = setup(HEALTHY, HEALTHY, HEALTHY)
    bench.readings.array, bench.readings.before = replace(array(), members=MEMBERS[:2]), reading("k1")
    assert bench.readings.of(replace(array(), members=MEMBERS[1:2]))
    assert bench.readings.of(array()) is None
