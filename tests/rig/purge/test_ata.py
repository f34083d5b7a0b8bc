from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fakes.fake_hdparm import DATA, FakeDrive
from support.fakes.scripted import ScriptedMachine, completed

from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.machine.machine import Completed, DeadlineExceeded, MachineLost, RigError, StillRunning
from pytest_ssdqual.rig.purge import ata, zero
from pytest_ssdqual.rig.purge.ata import PASSWORD, SECURITY_ERASE, Security
from pytest_ssdqual.rig.purge.zero import PassedOver

DRIVE = Drive("/dev/sdb", "sdb", "ACME", "S0", "naa.5", None, 480 * 10**9, 512, 4096, False, "sata")
#: Of a command that a drive or an adapter refused while hdparm did not notice (its source, sgio.c).
BAD_SENSE = "SG_IO: bad/missing sense data, sb[]:  70 00 05 00 00 00 00 0a 04 51 40 01 21 04 00 00"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zero, "PAUSE_S", 0.0)


@pytest.fixture
def drive(tmp_path: Path) -> FakeDrive:
    return FakeDrive(tmp_path)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("idle", Security(True, False, False, False, False, True, 120)),
        ("plain-erase", Security(True, False, False, False, False, False, 120)),
        ("frozen", Security(True, False, False, True, False, True, 120)),
        ("enabled", Security(True, True, False, False, False, True, 120)),
        ("locked", Security(True, True, True, False, False, True, 120)),
        ("expired", Security(True, False, False, False, True, True, 120)),
        ("without", Security(False, False, False, False, False, False)),
    ],
)
def test_security_feature_set_is_parsed(name: str, state: Security) -> None:
    whole = (DATA / f"{name}.txt").read_text()
    assert Security.parse(whole) == state
    assert not Security.parse(whole.partition("Security: ")[0]).supported, "cut short"


def test_a_drive_is_erased_and_its_password_is_gone(drive: FakeDrive) -> None:
    here = drive.machine()
    assert ata.security_erase(here, DRIVE).endswith("enhanced")
    assert here.bound == [("alone", DRIVE.path, ("sh", "-c"))]
    (work,) = here.must_finish
    assert DRIVE.describe() in work.what
    assert work.expected_s == 120
    assert drive.is_erased
    assert not drive.is_locked_in
    assert [line.split()[:4] for line in drive.asked("--security")] == [
        ["--user-master", "u", "--security-set-pass", PASSWORD],
        ["--user-master", "u", "--security-erase-enhanced", PASSWORD],
    ]


def test_the_plain_erase_is_next_best(drive: FakeDrive) -> None:
    assert ata.security_erase(drive.identifies_as("plain-erase").machine(), DRIVE) == "ATA Security Erase"
    assert drive.asked("--security-erase ")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("frozen", "^the machine's firmware has frozen it; suspending and waking"),
        (
            "locked",
            "^the drive is locked by a password; .*`hdparm .*--security-disable ssdqual /dev/sdb`",
        ),
        ("enabled", "^the drive has a password already; .*--security-disable ssdqual"),
        ("expired", "^the drive has counted too many wrong passwords"),
        ("without", "^the drive does not support it$"),
    ],
)
def test_a_drive_in_no_state_for_it_is_left_alone(drive: FakeDrive, name: str, reason: str) -> None:
    with pytest.raises(PassedOver, match=reason):
        ata.security_erase(drive.identifies_as(name).machine(), DRIVE)
    assert drive.asked("--security") == []


@pytest.mark.parametrize("purge", [ata.security_erase, ata.sanitize])
def test_without_hdparm_nothing_is_done(purge: Callable[[ScriptedMachine, Drive], str]) -> None:
    here = ScriptedMachine().on("hdparm", answer=completed(["hdparm"], status=127))
    with pytest.raises(PassedOver, match="not installed"):
        purge(here, DRIVE)


def test_drive_not_identified_or_sanitized_is_passed_over(drive: FakeDrive) -> None:
    with pytest.raises(PassedOver, match="neither block erase"):
        ata.sanitize(drive.machine(), DRIVE)
    assert not drive.asked("--sanitize")
    with pytest.raises(PassedOver, match="it is frozen"):
        ata.sanitize(drive.identifies_as("sanitize").has("frozen").machine(), DRIVE)
    assert not drive.asked("--yes")
    drive.refuses("identify", " HDIO_DRIVE_CMD(identify) failed: Invalid argument", 22)
    with pytest.raises(PassedOver, match="drive: HDIO_DRIVE_CMD"):
        ata.security_erase(drive.machine(), DRIVE)


@pytest.mark.parametrize("status", [5, 0])
@pytest.mark.parametrize(
    ("step", "words", "reason"),
    [
        ("set-pass", BAD_SENSE, "took no password: SG_IO"),
        ("erase", "SECURITY_ERASE: Input/output error", "taken off again: SECURITY_ERASE"),
        ("half", "", "taken off again"),
    ],
)
def test_erase_that_fails_leaves_no_password(drive: FakeDrive, step: str, words: str, reason: str, status: int) -> None:
    """With status 0, too: the commands seem to have worked, and the drive says that it has no password."""
    drive.has("half") if step == "half" else drive.refuses(step, words, status)
    with pytest.raises(PassedOver, match=reason):
        ata.security_erase(drive.machine(), DRIVE)
    assert not drive.is_locked_in
    if step == "set-pass":
        assert not drive.is_erased
        assert not drive.asked("--security-erase")


@pytest.mark.parametrize("falls_silent", [False, True])
def test_password_that_may_be_left_is_an_error(drive: FakeDrive, falls_silent: bool) -> None:
    here = drive.machine()

    def silenced(argv: tuple[str, ...]) -> Completed:
        drive.refuses("identify").refuses("disable").refuses("erase")
        return drive.run(argv)

    if falls_silent:
        here.on("sh", answer=silenced)
    else:
        drive.refuses("erase").refuses("disable")
    with pytest.raises(RigError, match="user password 'ssdqual'"):
        ata.security_erase(here, DRIVE)
    assert drive.is_locked_in


@pytest.mark.parametrize(
    "error",
    [
        MachineLost("scripted is lost: no answer"),
        DeadlineExceeded("ATA Security Erase of it did not end within 9 s and goes on"),
        StillRunning("it goes on by itself"),
    ],
)
def test_lost_machine_leaves_a_warning_of_the_password(drive: FakeDrive, error: RigError) -> None:
    with pytest.raises(type(error), match=r"(no answer|goes on.*);.*'ssdqual'"):
        ata.security_erase(drive.machine().on("sh", answer=error), DRIVE)


def started(drive: FakeDrive) -> subprocess.Popen[bytes]:
    """The script, in the middle of an erase that lasts until ``erasing`` is removed."""
    drive.has("erasing")
    process = subprocess.Popen(
        ["sh", "-c", SECURITY_ERASE, "security-erase", "/dev/sdb", PASSWORD, "--security-erase"],
        env=drive.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (drive.place / "asked").exists() or not drive.asked("--security-erase"):
        if time.monotonic() > end:
            raise TimeoutError("the erase did not begin")
        time.sleep(0.01)
    assert drive.is_locked_in
    return process


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("disturbance", ["signals", "lost reader"])
def test_nothing_comes_between_a_password_and_its_end(drive: FakeDrive, fails: bool, disturbance: str) -> None:
    """What ``timeout``, sudo, sshd and an impatient user send to the script and to hdparm; and a lost connection."""
    if fails:
        drive.refuses("erase")
    process = started(drive)
    assert process.stdout
    if disturbance == "signals":
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            os.killpg(process.pid, each)
        (drive.place / "erasing").unlink()
        out, _ = process.communicate(timeout=60)
        assert out.startswith(b"failed\n" if fails else b"erased\n")
        assert process.returncode == 0
        assert drive.is_erased is not fails
    else:
        process.stdout.close()
        (drive.place / "erasing").unlink()
        process.wait(timeout=60)
    assert not drive.is_locked_in


@pytest.mark.parametrize(
    ("name", "option", "done"),
    [
        ("sanitize", "--sanitize-block-erase", "ATA Sanitize, block erase"),
        ("scramble", "--sanitize-crypto-scramble", "ATA Sanitize, crypto scramble"),
    ],
)
def test_a_drive_is_sanitized_until_it_says_that_it_is_done(
    drive: FakeDrive, name: str, option: str, done: str
) -> None:
    here = drive.identifies_as(name).machine()
    assert ata.sanitize(here, DRIVE) == done
    assert here.bound == [("alone", DRIVE.path, ("hdparm", "--yes-i-know-what-i-am-doing"))]
    assert drive.asked("--yes") == [f"--yes-i-know-what-i-am-doing {option} /dev/sdb"]
    asked = drive.asked("")
    assert len(asked[asked.index(drive.asked("--yes")[0]) + 1 :]) == 5  # three times still under way; then how it went


@pytest.mark.parametrize("status", [5, 0])
def test_refused_sanitize_is_passed_over(drive: FakeDrive, status: int) -> None:
    """With status 0, too: the drive then tells of the success of an earlier one."""
    drive.identifies_as("sanitize").refuses("sanitize", BAD_SENSE, status)
    with pytest.raises(PassedOver, match="refused it: SG_IO"):
        ata.sanitize(drive.machine(), DRIVE)


def test_a_sanitize_that_goes_on_already_is_waited_for_first(drive: FakeDrive) -> None:
    assert ata.sanitize(drive.identifies_as("sanitize").has("sanitizing", 2).machine(), DRIVE)
    asked = drive.asked("")
    assert len([line for line in asked[: asked.index(drive.asked("--yes")[0])] if "--sanitize-status" in line]) == 5


@pytest.mark.parametrize("how", ["no success", "no status"])
def test_sanitize_that_fails_is_an_error(drive: FakeDrive, how: str) -> None:
    drive.identifies_as("sanitize").has("no-success")
    here = drive.machine()

    def then_silent(argv: tuple[str, ...]) -> Completed:
        done = drive.run(argv)
        drive.refuses("status", "SANITIZE failed: Input/output error\nDrive in SD3 Sanitize Operation Failed state")
        return done

    if how == "no status":
        here.on("hdparm", "--yes-i-know-what-i-am-doing", answer=then_silent)
    with pytest.raises(RigError, match=r"not complete .*refuse"):
        ata.sanitize(here, DRIVE)


def test_sanitize_without_end_is_an_error(drive: FakeDrive) -> None:
    here = drive.has("sanitizing", 10**6).machine().on("sh", answer=DeadlineExceeded("it did not end and goes on"))
    with pytest.raises(RigError, match="still being sanitized"):
        ata.await_sanitize(here, DRIVE)


def test_whether_a_sanitize_was_under_way(drive: FakeDrive) -> None:
    assert not ata.await_sanitize(drive.machine(), DRIVE)
    assert ata.await_sanitize(drive.has("sanitizing", 2).machine(), DRIVE)
    assert not ata.await_sanitize(drive.refuses("status").machine(), DRIVE)
