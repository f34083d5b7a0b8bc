"""What every ``Machine`` promises, asked of all three: this computer, one behind OpenSSH, and the lab."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.fakes.loopback_sshd import CARRIER, root_here

from pytest_ssdqual.rig.machine import local, ssh
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, DeadlineExceeded, MachineLost, Tethered
from pytest_ssdqual.rig.machine.ssh import SshTarget

if TYPE_CHECKING:
    from support.fakes.loopback_sshd import Sshd
    from support.lab.rehearsed import LabHost

pytestmark = pytest.mark.slow

ODD = (
    "", " ", "a b", "two\nlines", "tab\t", "'", '"', "\\", "\\n", "$HOME", "$(id)", "`id`", "*", "?[a-z]", "~", "-n",
    "--", "!", "!!", ";", "&&", "|", ">x", "#", "%s", "a=b", "{1,2}", "ü–日本", "'\"'\"'", "x" * 5000,
)  # fmt: skip

#: $1 is where to note the process id. The shell becomes the command, so it is that one's id.
NOTE_PID = 'echo $$ >"$1"; exec sleep 300'


def connected(name: str, request: pytest.FixtureRequest, observer: Callable[[Completed], None]) -> Channel:
    if name == "local":
        root_here()
        return local.connect(observer)
    if name == "sshd":
        root_here()
        return ssh.connect(request.getfixturevalue("sshd").target, observer)
    host: LabHost = request.getfixturevalue("lab")
    return ssh.connect(ssh.SshTarget("lab", ("-F", str(host.ssh_config))), observer)


IN_LAB = [pytest.mark.lab, pytest.mark.unhurried]


@pytest.fixture(params=["local", "sshd", pytest.param("lab", marks=IN_LAB)], scope="class")
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="class")
def told() -> list[Completed]:
    return []


@pytest.fixture(scope="class")
def machine(name: str, request: pytest.FixtureRequest, told: list[Completed]) -> Iterator[Channel]:
    channel = connected(name, request, told.append)
    yield channel
    channel.close()


@pytest.fixture
def note(machine: Channel) -> Iterator[str]:
    """A file on the machine."""
    path = machine.run(["mktemp"]).text.strip()
    yield path
    machine.run(["rm", "-f", path])


def noted(machine: Channel, path: str) -> list[str]:
    return machine.run(["cat", path]).text.split()


def has_ended(machine: Channel, pid: str) -> bool:
    """Of a process of the machine, within ten seconds; a zombie has ended."""
    script = 'n=0; while [ -e "/proc/$1/exe" ]; do [ $n -lt 50 ] || exit 1; n=$((n + 1)); sleep 0.2; done'
    return machine.run(["sh", "-c", script, "ended", pid], check=False).status == 0


class TestMachine:
    def test_is_root(self, machine: Channel) -> None:
        assert machine.run(["id", "-u"]).text == "0\n"

    def test_arguments_arrive_unchanged(self, machine: Channel) -> None:
        assert machine.run(["printf", "%s\\0", *ODD]).text.split("\0")[:-1] == list(ODD)

    def test_words_of_tools_are_english(self, machine: Channel) -> None:
        assert machine.run(["sh", "-c", 'echo "$LC_ALL"']).text == "C\n"

    def test_standard_input_arrives_unchanged_and_ends(self, machine: Channel) -> None:
        every_byte = bytes(range(256)) * 512
        assert machine.run(["cat"], stdin=every_byte).stdout == every_byte
        assert machine.run(["cat"]).stdout == b"", "without any there is none to wait for"

    @pytest.mark.parametrize("status", [0, 1, 2, 124, 127, 137, 255])
    def test_the_status_is_the_commands_own(self, machine: Channel, status: int) -> None:
        """255 does not mean that the machine is lost."""
        assert machine.run(["sh", "-c", f"exit {status}"], check=False).status == status

    def test_a_failed_command_says_its_last_words(self, machine: Channel) -> None:
        with pytest.raises(CommandFailed, match=r"no such luck$") as failed:
            machine.run(["sh", "-c", "echo trying; echo no such luck >&2; exit 3"])
        assert (failed.value.completed.status, failed.value.completed.text) == (3, "trying\n")
        assert machine.name in str(failed.value)
        with pytest.raises(CommandFailed, match="no-such-command"):
            machine.run(["no-such-command"])

    def test_much_output_arrives_whole_and_errors_apart(self, machine: Channel) -> None:
        script = "head -c 1048576 /dev/zero | tr '\\0' o; head -c 100000 /dev/zero | tr '\\0' e >&2"
        done = machine.run(["sh", "-c", script])
        assert (done.stdout, done.stderr) == (b"o" * 1048576, b"e" * 100000)

    @pytest.mark.parametrize("prelude", ["", "trap '' TERM INT; "], ids=["listens", "will not listen"])
    def test_the_deadline_ends_the_command_over_there(self, machine: Channel, note: str, prelude: str) -> None:
        with pytest.raises(DeadlineExceeded, match="within 1 s"):
            machine.run(["sh", "-c", prelude + NOTE_PID, "sh", note], deadline_s=1)
        (pid,) = noted(machine, note)
        assert has_ended(machine, pid)

    def test_commands_run_side_by_side(self, machine: Channel) -> None:
        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda n: machine.run(["sh", "-c", f"sleep 0.3; echo {n}"]).text, range(12)))
        assert answers == [f"{n}\n" for n in range(12)]

    def test_every_command_is_told_as_it_was_meant(self, machine: Channel, told: list[Completed]) -> None:
        told.clear()
        machine.run(["echo", "a  b"])
        machine.run(["false"], check=False)
        machine.tether(["true"]).wait(60)
        assert [(done.argv, done.status) for done in told] == [(("echo", "a  b"), 0), (("false",), 1), (("true",), 0)]
        assert told[0].started.endswith("+00:00")

    def test_a_tethered_process_ends_by_itself(self, machine: Channel) -> None:
        tether = machine.tether(["sh", "-c", "echo one; echo two; echo three >&2; exit 7"])
        assert [tether.read_line(30) for _ in range(4)] == ["one\n", "two\n", "", ""]
        done = tether.wait(30)
        assert (done.status, done.text, done.errors) == (7, "one\ntwo\n", "three\n")
        assert not tether.alive()

    @pytest.mark.parametrize("end", ["cut", "deadline"])
    def test_a_tether_that_ends_takes_everything_along(self, machine: Channel, background: str, end: str) -> None:
        tether = machine.tether(["sh", "-c", background], first_signal="TERM", announces=True)
        pids = started(tether)
        assert tether.alive()
        if end == "cut":
            tether.cut()
        else:
            with pytest.raises(DeadlineExceeded, match=r"within 0\.5 s"):
                tether.wait(0.5)
        assert all(has_ended(machine, pid) for pid in pids)


def started(tether: Tethered) -> list[str]:
    """The ids of what ``background`` started, once it has."""
    return tether.read_line(30).split()


@pytest.fixture(params=["sshd", pytest.param("lab", marks=IN_LAB)])
def remote(request: pytest.FixtureRequest) -> Iterator[Callable[[], Channel]]:
    """Makes connections to one remote machine."""
    opened: list[Channel] = []

    def connect() -> Channel:
        opened.append(connected(request.param, request, lambda done: None))
        return opened[-1]

    yield connect
    for channel in opened:
        channel.close()


class TestRemoteMachine:
    def test_cut_connection_ends_tethers_and_loses_the_machine(
        self, remote: Callable[[], Channel], background: str
    ) -> None:
        witness, machine = remote(), remote()
        tether = machine.tether(["sh", "-c", background], first_signal="TERM", announces=True)
        pids = started(tether)
        with pytest.raises(MachineLost, match=f"^{machine.name} is lost: ") as lost:
            machine.run(["sh", "-c", f"{CARRIER} kill -KILL $p"])
        assert all(has_ended(witness, pid) for pid in pids)
        with pytest.raises(MachineLost, match=f"^{machine.name} is lost: "):
            tether.wait(60)
        with pytest.raises(MachineLost) as again:
            machine.run(["true"])
        assert str(again.value) == str(lost.value)
        with pytest.raises(MachineLost):
            machine.tether(["true"])

    def test_a_connection_that_was_cut_unnoticed_is_not_made_anew(self, remote: Callable[[], Channel]) -> None:
        witness, machine = remote(), remote()
        carrier = machine.run(["sh", "-c", f"{CARRIER} echo $p"]).text.strip()
        witness.run(["kill", "-KILL", carrier])
        assert has_ended(witness, carrier)
        with pytest.raises(MachineLost, match=f"^{machine.name} is lost: "):
            machine.run(["true"])

    def test_a_closed_channel_lets_go_of_what_is_tethered(self, remote: Callable[[], Channel], background: str) -> None:
        witness, machine = remote(), remote()
        pids = started(machine.tether(["sh", "-c", background], first_signal="TERM", announces=True))
        machine.close()
        assert all(has_ended(witness, pid) for pid in pids)


class TestPatientMachine:
    """The connection is cut from over there, as a firewall that forgets or a dock that is unplugged does it."""

    @pytest.fixture
    def machine(self, sshd: Sshd, told: list[Completed]) -> Iterator[Channel]:
        root_here()
        channel = ssh.connect(replace(sshd.target, patience_s=30), told.append)
        yield channel
        channel.close()

    @pytest.fixture
    def told(self) -> list[Completed]:
        return []

    def test_what_is_tethered_goes_on_and_is_come_back_to(
        self, machine: Channel, told: list[Completed], tmp_path: Path
    ) -> None:
        script = 'echo $$; until [ -e "$1" ]; do sleep 0.1; done; echo done; exit 3'
        tether = machine.tether(["sh", "-c", script, "sh", str(tmp_path / "go")], announces=True)
        idle = machine.tether(["sh", "-c", "echo up; exec sleep 600"], first_signal="TERM", announces=True)
        (pid,) = started(tether)
        assert machine.run(["sh", "-c", CUT_ONCE, "sh", str(tmp_path / "cut")], repeatable=True).text == "again\n"
        assert machine.generation == 1
        assert (tether.alive(), idle.alive()) == (True, True)
        assert Path(f"/proc/{pid}").exists()
        (tmp_path / "go").touch()
        done = tether.wait(60)
        assert (done.status, done.text) == (3, f"{pid}\ndone\n")
        assert [each.argv for each in told if each.argv[0] == "reconnected"] == [("reconnected",)]
        idle.cut()

    def test_idle_channel_comes_back_by_itself(self, machine: Channel, sshd: Sshd) -> None:
        tether = machine.tether(["sh", "-c", "echo up; exec sleep 600"], first_signal="TERM", announces=True)
        assert tether.read_line(30) == "up\n"
        before = sshd.connections()
        carrier = machine.run(["sh", "-c", f"{CARRIER} echo $p"]).text.strip()
        os.kill(int(carrier), signal.SIGKILL)
        for _ in range(300):
            if sshd.connections() > before:
                break
            time.sleep(0.1)
        assert machine.run(["echo", "here"]).text == "here\n"
        assert tether.cut().text == "up\n"

    def test_a_command_that_must_not_be_run_twice_ends_the_run(self, machine: Channel, tmp_path: Path) -> None:
        with pytest.raises(MachineLost, match=r"^here is lost: "):
            machine.run(["sh", "-c", CUT_ONCE, "sh", str(tmp_path / "cut")])
        with pytest.raises(MachineLost, match=r"^here is lost: "):
            machine.run(["true"], repeatable=True)

    def test_a_long_command_is_kept_over_there(
        self, machine: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        once = 'echo x >>"$1"; until [ -e "$1.go" ]; do sleep 0.1; done; exit 4'
        with ThreadPoolExecutor(1) as pool:
            long = pool.submit(
                machine.run, ["sh", "-c", once, "sh", str(tmp_path / "ran")], deadline_s=600, check=False
            )
            while not (tmp_path / "ran").exists():
                time.sleep(0.05)
            machine.run(["sh", "-c", CUT_ONCE, "sh", str(tmp_path / "cut")], repeatable=True)
            (tmp_path / "ran.go").touch()
            done = long.result(60)
        assert (done.status, done.argv[:2]) == (4, ("sh", "-c"))
        assert (tmp_path / "ran").read_text() == "x\n"

    def test_new_keys_in_the_middle_disturb_nobody(self, sshd: Sshd) -> None:
        root_here()
        often = SshTarget(sshd.target.destination, (*sshd.target.options, "-o", "RekeyLimit=64K"), patience_s=30)
        before = sshd.connections()
        machine = ssh.connect(often)
        try:
            tether = machine.tether(["sh", "-c", "sleep 1; head -c 1000000 /dev/zero"])
            assert len(machine.run(["head", "-c", "1000000", "/dev/zero"]).stdout) == 1_000_000
            assert len(tether.wait(60).stdout) == 1_000_000
        finally:
            machine.close()
        assert sshd.connections() - before == 1
        assert machine.generation == 0


#: The first time it cuts the connection that it came by, the second time it answers.
CUT_ONCE = f'[ ! -e "$1" ] || {{ echo again; exit; }}; touch "$1"; {CARRIER} kill -KILL $p; sleep 30'


def test_there_is_one_connection_however_many_commands(sshd: Sshd) -> None:
    root_here()
    before = sshd.connections()
    machine = ssh.connect(sshd.target)
    try:
        tether = machine.tether(["sleep", "600"], first_signal="TERM")
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda _: machine.run(["true"]), range(12)))
        tether.cut()
    finally:
        machine.close()
    assert sshd.connections() - before == 1


@pytest.mark.lab
@pytest.mark.unhurried
class TestUsersOfTheLab:
    def test_who_may_use_sudo_is_root_by_it(self, lab: LabHost) -> None:
        machine = ssh.connect(ssh.SshTarget("lab-tester", ("-F", str(lab.ssh_config))))
        try:
            assert machine.become == ("sudo", "-n", "--")
            assert machine.run(["id", "-u"]).text == "0\n"
            assert machine.run(["printf", "%s\\0", *ODD]).text.split("\0")[:-1] == list(ODD)
            with pytest.raises(DeadlineExceeded):
                machine.run(["sh", "-c", "trap '' TERM; sleep 30; sleep 30"], deadline_s=1)
            tether = machine.tether(["sh", "-c", "echo $$; exec sleep 600"], first_signal="TERM", announces=True)
            pid = tether.read_line(30).strip()
            tether.cut()
            assert has_ended(machine, pid)
        finally:
            machine.close()

    def test_who_may_not_is_told_in_one_sentence(self, lab: LabHost) -> None:
        with pytest.raises(ssh.Unreachable) as refused:
            ssh.connect(ssh.SshTarget("lab-nosudo", ("-F", str(lab.ssh_config))))
        assert "allow `sudo -n`" in str(refused.value)
