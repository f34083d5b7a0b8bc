"""Work that must not be cut short (``machine.MustFinish``): the real erase script, kept for real."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.fakes.fake_hdparm import FakeDrive
from support.fakes.loopback_sshd import CARRIER, Sshd, root_here
from support.lab.rehearsed import await_that

from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.guard.lease import Lease, Terms, await_finished, await_free
from pytest_ssdqual.rig.machine import channel as channels
from pytest_ssdqual.rig.machine import local, run_files, ssh, supervisor
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import (
    Completed,
    DeadlineExceeded,
    LeaseTaken,
    MachineLost,
    MustFinish,
    StillRunning,
)
from pytest_ssdqual.rig.machine.supervisor import Keeper
from pytest_ssdqual.rig.purge.ata import CAUTION, PASSWORD, SECURITY_ERASE

pytestmark = pytest.mark.slow

DRIVE = Drive("/dev/sdb", "sdb", "ACME", "S0", "0x5000", None, 480 * 10**9, 512, 4096, False, "sata")

#: A run of its own that erases a drive: argv are the ssh configuration, its PATH there, the directory, and the drive.
CONTROLLER = """
import sys
from pytest_ssdqual.rig.machine import supervisor as keeper, local, run_files, ssh
from pytest_ssdqual.rig.guard import lease
from pytest_ssdqual.rig.drives.topology import Drive
from pytest_ssdqual.rig.purge.ata import CAUTION, PASSWORD, SECURITY_ERASE
config, path, lease.DIRECTORY, identity = sys.argv[1:]
run_files.DIRECTORY = lease.DIRECTORY
keeper.KEEPER = keeper.KEEPER.replace("limit=15", "limit=1")
machine = ssh.connect(ssh.SshTarget("here", ("-F", config), patience_s=30)) if config else local.connect()
machine.become, machine.directory = ("env", f"PATH={path}"), lease.DIRECTORY
drive = Drive("/dev/sdb", "sdb", "ACME", identity, "0x5000", None, 480 * 10**9, 512, 4096, False, "sata")
work = lease.must_finish(drive, "ATA Security Erase", expected_s=120, caution=CAUTION)
argv = ["sh", "-c", SECURITY_ERASE, "security-erase", "/dev/sdb", PASSWORD, "--security-erase"]
with lease.Lease(machine, lease.names_of([drive])):
    try:
        print(machine.run(argv, deadline_s=46_800, must_finish=work).text.splitlines()[0])
    except KeyboardInterrupt:
        print(*machine.unfinished())
    finally:
        machine.close()
"""


@dataclass
class Erasing:
    """A drive whose erase lasts until ``erasing`` is removed, and how runs reach its machine."""

    drive: FakeDrive
    directory: Path
    config: str
    connect: Callable[[], Channel]

    @property
    def path(self) -> str:
        return self.drive.environment["PATH"]

    def work(self) -> MustFinish:
        return lease.must_finish(DRIVE, "ATA Security Erase", expected_s=120, caution=CAUTION)

    def machine(self) -> Channel:
        machine = self.connect()
        machine.become, machine.directory = ("env", f"PATH={self.path}"), str(self.directory)
        return machine

    def run(self, machine: Channel, deadline_s: float = 46_800) -> Completed:
        argv = ["sh", "-c", SECURITY_ERASE, "security-erase", "/dev/sdb", PASSWORD, "--security-erase"]
        return machine.run(argv, deadline_s=deadline_s, must_finish=self.work())

    def has_begun(self) -> bool:
        return (self.drive.place / "asked").exists() and bool(self.drive.asked("--security-erase"))

    def is_alive(self) -> bool:
        return self.drive.is_locked_in and bool(self.processes())

    def processes(self) -> list[str]:
        """The keepers of what must finish, in this directory."""
        found = []
        for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = cmdline.read_bytes().split(b"\0")
                if words[3:4] == [b"keeper"] and words[4].startswith(bytes(self.directory)) and not words[7]:
                    found.append(cmdline.parts[2])
        return found

    def finish(self) -> None:
        """Let the drive finish; then the password is off, and the keeper has cleared away."""
        (self.drive.place / "erasing").unlink()
        await_that(lambda: not self.drive.is_locked_in, "the password to go")
        await_that(lambda: not self.processes() and not self.left(), "the keepers to clear away")

    def left(self) -> list[str]:
        return [path.name for path in self.directory.iterdir() if not path.name.endswith(".lock")]


@pytest.fixture(params=["local", "sshd"])
def erasing(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Erasing]:
    root_here()
    (tmp_path / "drive").mkdir()
    directory = tmp_path / "run"
    monkeypatch.setattr(lease, "DIRECTORY", str(directory))
    monkeypatch.setattr(run_files, "DIRECTORY", str(directory))
    # Words of an ended run are waited for so long.
    monkeypatch.setattr(supervisor, "KEEPER", supervisor.KEEPER.replace("limit=15", "limit=1"))
    config = ""
    connect: Callable[[], Channel] = local.connect
    if request.param == "sshd":
        server: Sshd = request.getfixturevalue("sshd")
        config = str(server.config)

        def connect() -> Channel:
            return ssh.connect(replace(server.target, patience_s=30))

    drive = FakeDrive(tmp_path / "drive").has("erasing")
    # The keeper passes nothing on but PATH.
    program = drive.place / "bin" / "hdparm"
    program.write_text(program.read_text().replace("${FAKE_DRIVE:-/run/fake-drive}", str(drive.place)))
    found = Erasing(drive, directory, config, connect)
    yield found
    (drive.place / "erasing").unlink(missing_ok=True)


@contextlib.contextmanager
def controller(erasing: Erasing) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-c", CONTROLLER, erasing.config, erasing.path, str(erasing.directory), "S0"]
    heeding = ["env", "--default-signal=INT"]
    marked = {**os.environ, "RUNNER_TRACKING_ID": "a job of a CI"}
    with subprocess.Popen([*heeding, *argv], stdout=subprocess.PIPE, text=True, env=marked) as process:
        try:
            await_that(erasing.has_begun, "the erase to begin")
            yield process
        finally:
            process.kill()


#: The connection makes no difference to these.
LOCAL = pytest.mark.parametrize("erasing", ["local"], indirect=True)
BY_SSH = pytest.mark.parametrize("erasing", ["sshd"], indirect=True)


@pytest.mark.parametrize(("erasing", "fails"), [("sshd", False), ("local", True)], indirect=["erasing"])
def test_erase_outlives_a_killed_run(erasing: Erasing, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if fails:
        erasing.drive.refuses("erase")
    with controller(erasing) as process:
        process.kill()
        process.wait()
    asker = erasing.machine()
    # The lease ends with the run; what goes on keeps other runs from the drive.
    asker.run(["flock", "--wait", "60", str(erasing.directory / "s0.lock"), "true"], deadline_s=90)
    assert erasing.is_alive()
    # Under each of its names.
    for known in (replace(DRIVE, wwn=None), replace(DRIVE, serial=None), replace(DRIVE, serial="S1")):
        with pytest.raises(LeaseTaken, match=r"/dev/sdb.*: ATA Security.*power"):
            Lease(asker, lease.names_of([known]))
    # Before anything is read from the drive, which would not answer.
    with pytest.raises(LeaseTaken, match="/dev/sdb: ATA Security"):
        await_finished(asker, ["sda", "sdb"], Terms())
    assert not await_finished(asker, ["sda", "sdc"], Terms())
    monkeypatch.setattr(lease, "LOOK_EVERY_S", 0.01)
    waited: list[str] = []

    def waiting(sentence: str, wait_s: float) -> None:
        waited.append(sentence)
        (erasing.drive.place / "erasing").unlink()

    assert await_free(asker, lease.names_of([DRIVE]), Terms(wait_s=120, waiting=waiting))
    assert "by its plan" in waited[0]
    assert erasing.drive.is_erased is not fails
    assert not erasing.drive.is_locked_in
    with Lease(asker, lease.names_of([DRIVE])) as held:
        held.require()
    asker.close()
    await_that(lambda: not erasing.processes() and not erasing.left(), "the keeper to clear away")


def test_erase_outlives_ctrl_c_and_the_run_says_what_goes_on(erasing: Erasing) -> None:
    with controller(erasing) as process:
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    where = "here" if erasing.config else "localhost"
    assert f"{DRIVE.describe()} continues on {where}" in told
    assert "takes 2 min;" in told
    assert told.strip().endswith(CAUTION)
    assert erasing.is_alive()
    erasing.finish()
    assert erasing.drive.is_erased


@LOCAL
def test_erase_is_not_marked_as_part_of_a_ci_job(erasing: Erasing) -> None:
    """CI runners kill what carries their variables, in whatever session it is."""
    with controller(erasing):
        (keeper,) = erasing.processes()
        assert b"RUNNER_TRACKING_ID" not in Path(f"/proc/{keeper}/environ").read_bytes()
        children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        assert children
        for child in children:
            assert b"RUNNER_TRACKING_ID" not in Path(f"/proc/{child}/environ").read_bytes()
    erasing.finish()


@LOCAL
def test_outcome_is_reported_to_a_run_that_waits(erasing: Erasing) -> None:
    machine = erasing.machine()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(erasing.run, machine)
        await_that(erasing.has_begun, "the erase to begin")
        assert len(machine.unfinished()) == 1
        (erasing.drive.place / "erasing").unlink()
        assert running.result(60).text.startswith("erased\n")
    assert machine.unfinished() == ()
    machine.close()
    await_that(lambda: not erasing.processes() and not erasing.left(), "the keeper to clear away")


@LOCAL
def test_deadline_ends_the_waiting_only(erasing: Erasing) -> None:
    machine = erasing.machine()
    with pytest.raises(DeadlineExceeded, match=r"^ATA Security Erase"):
        erasing.run(machine, deadline_s=0.5)
    await_that(erasing.has_begun, "the erase to begin")
    machine.close()
    assert erasing.is_alive()
    erasing.finish()


@LOCAL
def test_closed_channel_lets_waiting_threads_go(erasing: Erasing) -> None:
    machine = erasing.machine()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(erasing.run, machine)
        await_that(erasing.has_begun, "the erase to begin")
        machine.close()
        with pytest.raises(StillRunning):
            running.result(60)
    assert erasing.is_alive()
    erasing.finish()


@LOCAL
def test_drive_is_erased_by_one_at_a_time(erasing: Erasing) -> None:
    """Also for a run that has the lease: its own earlier erase may go on still."""
    machine = erasing.machine()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(erasing.run, machine)
        await_that(erasing.has_begun, "the erase to begin")
        other = erasing.machine()
        patient = supervisor.START
        try:
            supervisor.START = patient.replace("--timeout 10", "--timeout 0.2")
            done = other.run(["true"], must_finish=erasing.work(), check=False)
        finally:
            supervisor.START = patient
        assert done.status == 1
        assert "~unfinished.lock is locked" in done.errors
        (erasing.drive.place / "erasing").unlink()
    machine.close()
    other.close()


@LOCAL
def test_silence_and_words_end_nothing(erasing: Erasing) -> None:
    """The keeper itself: nobody speaks to it, then it is told to end, then it gets signals."""
    argv = ["env", f"PATH={erasing.path}", "sh", "-c", SECURITY_ERASE, "security-erase", "/dev/sdb", PASSWORD, "--x"]
    argv[-1] = "--security-erase"
    (erasing.directory).mkdir()
    keeper = Keeper(argv, silence_s=0.3, survives=True, directory=str(erasing.directory), work=erasing.work())
    with subprocess.Popen(keeper.start, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        await_that(erasing.has_begun, "the erase to begin")
        threading.Event().wait(1.0)
        assert process.stdin is not None
        process.stdin.write(b"q\n")
        process.stdin.flush()
        (pid,) = erasing.processes()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(int(pid), number)
        threading.Event().wait(0.5)
        assert erasing.is_alive()
        process.kill()
    assert erasing.is_alive()
    erasing.finish()
    assert erasing.drive.is_erased


@BY_SSH
def test_lost_connection_ends_nothing_and_is_come_back_to(erasing: Erasing) -> None:
    machine = erasing.machine()
    machine.learn_boot()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(erasing.run, machine)
        await_that(erasing.has_begun, "the erase to begin")
        machine.run(["sh", "-c", f'[ ! -e "$1" ] || exit 0; touch "$1"; {CARRIER} kill -KILL $p; sleep 30', "sh",
                     str(erasing.drive.place / "cut")], repeatable=True)  # fmt: skip
        assert machine.generation == 1
        assert erasing.is_alive()
        (erasing.drive.place / "erasing").unlink()
        assert running.result(60).text.startswith("erased\n")
    machine.close()


@BY_SSH
def test_connection_that_stays_away_ends_nothing(sshd: Sshd, erasing: Erasing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "NOTICED_S", 0)
    machine = ssh.connect(replace(sshd.target, patience_s=1))
    machine.become, machine.directory = ("env", f"PATH={erasing.path}"), str(erasing.directory)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(erasing.run, machine)
        await_that(erasing.has_begun, "the erase to begin")
        monkeypatch.setattr(machine, "renew", _never)
        carrier = machine.run(["sh", "-c", f"{CARRIER} echo $p"]).text.strip()
        os.kill(int(carrier), signal.SIGKILL)
        with pytest.raises(MachineLost):
            running.result(60)
    machine.close()
    threading.Event().wait(2.5)  # longer than the silence that ends any other process
    assert erasing.is_alive()
    erasing.finish()
    assert erasing.drive.is_erased


def _never(deadline_s: float) -> None:
    raise ssh.Unreachable("no route to host")


def test_lock_of_unfinished_work_is_no_other_drive_s() -> None:
    for identity in ("S0", "S0~unfinished", "S0.lock", "S0/~unfinished"):
        work = lease.must_finish(replace(DRIVE, serial=identity), "NVMe Format")
        names = ["S0", "S0~unfinished", "S0.lock", "S0/~unfinished"]
        assert not set(work.locks) & set(lease.lock_files([*names, *map(str.lower, names)]))
        assert len(work.locks) == 2
        assert all(lease.UNFINISHED in lock for lock in work.locks)
