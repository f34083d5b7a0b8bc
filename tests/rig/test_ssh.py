from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ssdqual.rig import ssh
from pytest_ssdqual.rig.ssh import Target, Unreachable, connect

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
    refused) echo "root@dut7: Permission denied (publickey)." >&2; exit 255 ;;
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
    assert Target(destination).destination == destination


@pytest.mark.parametrize("destination", ["", "-oProxyCommand=x", "a b", "a;b", "$(id)", "a\nb", "root@dut7/x", "ü"])
def test_nothing_else_is(destination: str) -> None:
    with pytest.raises(ValueError, match="is not a host name: write"):
        Target(destination)


@given(st.text())
def test_a_destination_can_never_be_an_option_or_a_word_of_a_shell(text: str) -> None:
    try:
        Target(text)
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


def test_a_command_rides_on_the_master_and_never_connects_by_itself(log: Path) -> None:
    channel = connect(Target("root@dut7", ("-F", "/dev/null"), name="the rack"))
    try:
        assert channel.name == "the rack"
        assert channel.run(["printf", "%s|", "a b", "$HOME"]).text == "a b|$HOME|"
        master, ride = log.read_text().splitlines()[0], log.read_text().splitlines()[-1]
        for option in (*ssh.OPTIONS, "ControlMaster=yes", "ControlPersist=no"):
            assert f"-o {option}" in master
        assert master.startswith("-F /dev/null ")
        assert "-o ControlMaster=no -o ProxyCommand=false root@dut7 env LC_ALL=C timeout" in ride
    finally:
        channel.close()


def test_the_control_socket_is_nobody_elses_and_short_enough(log: Path) -> None:
    channel = connect(Target("dut7"))
    line = log.read_text().splitlines()[0]
    control = Path(line.partition("ControlPath=")[2].split(" ")[0])
    assert control.parent.stat().st_mode & 0o777 == 0o700
    assert len(str(control)) < 90  # ssh adds a suffix of 17 while it makes it; sun_path has 108
    channel.close()
    assert not control.parent.exists()


def test_who_cannot_be_reached_is_told_with_sshs_own_words(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "refused")
    with pytest.raises(Unreachable) as refused:
        connect(Target("root@dut7"))
    assert str(refused.value) == "cannot reach root@dut7 by ssh: root@dut7: Permission denied (publickey)."


def test_who_does_not_answer_is_not_waited_for_without_end(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER", "slow")
    with pytest.raises(Unreachable, match=r"^cannot reach dut7 by ssh: "):
        connect(Target("dut7"), deadline_s=0.5)


def test_without_an_ssh_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="there is no ssh here; install the package openssh-client"):
        connect(Target("dut7"))
