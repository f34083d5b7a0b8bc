from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fakes.loopback_sshd import Sshd, root_here

from pytest_ssdqual.rig.machine import ssh
from pytest_ssdqual.rig.machine.ssh import SshTarget, Unreachable, connect

words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=6)

#: Instead of ``ssh``: the master makes its control socket and waits; a command goes through a shell, as sshd does it.
STAND_IN = r"""#!/bin/sh
for word; do
    case $word in
    ControlPath=*) control=${word#*=} ;;
    -O) check=1 ;;
    -N) master=1 ;;
    esac
    last=$word
done
echo "$*" >>"$LOG"
if [ -n "$check" ]; then [ -e "$control" ]; exit; fi
if [ -n "$master" ]; then
    echo "Warning: Permanently added 'dut7' to the list of known hosts." >&2
    case $MASTER in
    refused) echo "${REFUSAL:-root@dut7: Permission denied (publickey).}" >&2; exit 255 ;;
    slow) exec sleep 600 ;;
    esac
    : >"$control"
    exec sleep 600
fi
exec sh -c "$last"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ssh").write_text(STAND_IN)
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    return tmp_path / "log"


@pytest.mark.parametrize("destination", ["dut7", "root@dut7", "root@[fe80::1%eth0]", "10.0.0.7", "a_b-c.example.org"])
def test_destinations_of_ssh_are_destinations(destination: str) -> None:
    assert SshTarget(destination).destination == destination


@pytest.mark.parametrize("destination", ["", "-oProxyCommand=x", "a b", "a;b", "$(id)", "a\nb", "root@dut7/x", "ü"])
def test_nothing_else_is(destination: str) -> None:
    with pytest.raises(ValueError, match="not a host"):
        SshTarget(destination)


@given(st.text())
def test_destination_is_never_an_option_or_several_words(text: str) -> None:
    try:
        SshTarget(text)
    except ValueError:
        return
    assert not text.startswith("-")
    assert shlex.split(text) == [text]


@settings(max_examples=60)
@given(words)
def test_a_remote_shell_reads_the_words_that_were_written(argv: list[str]) -> None:
    # sshd gives the command line to the user's shell with -c.
    line = shlex.join(["printf", "%s\\0", *argv])
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == (argv or [""])


def test_command_uses_the_master_and_never_connects_itself(log: Path) -> None:
    channel = connect(SshTarget("root@dut7", ("-F", "/dev/null"), name="the rack"))
    try:
        assert channel.name == "the rack"
        assert channel.run(["printf", "%s|", "a b", "$HOME"]).text == "a b|$HOME|"
        master, ride = log.read_text().splitlines()[0], log.read_text().splitlines()[-1]
        for option in (*ssh.OPTIONS, *ssh.MASTER_OPTIONS):
            assert f"-o {option}" in master
        for option in ssh.OPTIONS:
            assert f"-o {option}" in ride
        assert master.startswith("-F /dev/null ")
        assert "ProxyCommand=false root@dut7 env" in ride
    finally:
        channel.close()


def test_the_control_socket_is_nobody_elses_and_short_enough(log: Path) -> None:
    channel = connect(SshTarget("dut7"))
    line = log.read_text().splitlines()[0]
    control = Path(line.partition("ControlPath=")[2].split(" ")[0])
    assert control.parent.stat().st_mode & 0o777 == 0o700
    assert len(str(control)) < 90  # ssh adds a suffix of 17 while it makes it; sun_path has 108
    channel.close()
    assert not control.parent.exists()


def test_who_cannot_be_reached_is_told_with_sshs_own_words(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "refused")
    with pytest.raises(Unreachable) as refused:
        connect(SshTarget("root@dut7"))
    own_words, advice = str(refused.value).split("; ", 1)
    assert own_words.endswith("Permission denied (publickey).")
    assert "`ssh-copy-id root@dut7`" in advice


@pytest.mark.parametrize(
    ("messages", "command"),
    [
        ("Host key verification failed.", "`ssh root@dut7`"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nOffending key in 7\nHost key verification failed.",
            "`ssh-keygen -R dut7`",
        ),
        ("ssh: Could not resolve hostname dut7: Name or service not known", "HostName"),
        ("ssh: connect to host dut7 port 22: Connection refused", "Port"),
        ("ssh: connect to host dut7 port 22: No route to host", ""),
    ],
)
def test_each_refusal_of_ssh_has_advice_of_its_own(
    log: Path, monkeypatch: pytest.MonkeyPatch, messages: str, command: str
) -> None:
    monkeypatch.setenv("MASTER", "refused")
    monkeypatch.setenv("REFUSAL", messages)
    with pytest.raises(Unreachable) as refused:
        connect(SshTarget("root@dut7"))
    own_words, _, advice = str(refused.value).partition("; ")
    assert own_words.endswith(messages.splitlines()[-1])
    assert command in advice
    assert bool(advice) is bool(command)


def test_who_does_not_answer_is_not_waited_for_without_end(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "slow")
    with pytest.raises(Unreachable, match=r"^cannot reach dut7"):
        connect(SshTarget("dut7"), deadline_s=0.5)


def test_without_an_ssh_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="package openssh-client"):
        connect(SshTarget("dut7"))


#: A run that connects, and is killed.
KILLED = """
import signal, sys
from pytest_ssdqual.rig.machine.ssh import SshTarget, connect
channel = connect(SshTarget("dut7"))
print(channel.wrap([])[channel.wrap([]).index("-o")], flush=True)
signal.pause()
"""


def test_killed_run_leaves_its_directory_to_the_next_start(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "PREFIX", prefix := f"ssdqual-ssh-test-{log.parent.name}-")
    script = KILLED.replace(
        "channel = ", f"from pytest_ssdqual.rig.machine import ssh; ssh.PREFIX = {prefix!r}\nchannel = "
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"-o\n"
        (left,) = Path("/tmp").glob(f"{prefix}*")
        connect(SshTarget("dut7")).close()
        assert left.is_dir()  # it is in use
        run.kill()
    # The connection ends some seconds later.
    for _ in range(300):
        connect(SshTarget("dut7")).close()
        if not left.exists():
            return
        time.sleep(0.1)
    raise TimeoutError


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent that the user's ssh can reach."""
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL) as process:
        while not (tmp_path / "agent").exists():
            time.sleep(0.02)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        yield
        process.terminate()


def test_no_agent_is_forwarded_whatever_the_configuration_says(sshd: Sshd, agent: None, tmp_path: Path) -> None:
    root_here()
    config = tmp_path / "config"
    more = " ForwardAgent yes\n GSSAPIDelegateCredentials yes\n ForwardX11 yes\n ForwardX11Trusted yes\n"
    config.write_text(sshd.config.read_text().replace(" IdentityAgent none\n", more))
    asked = "printenv SSH_AUTH_SOCK DISPLAY"
    plain = subprocess.run(["ssh", "-F", str(config), "here", asked], capture_output=True, text=True, check=False)
    assert plain.stdout.strip()  # the user's own ssh forwards it
    machine = connect(SshTarget("here", ("-F", str(config))))
    try:
        assert machine.run(["sh", "-c", asked], check=False).text == ""
        assert machine.tether(["sh", "-c", asked]).wait(60).text == ""
    finally:
        machine.close()
