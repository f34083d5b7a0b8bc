from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_ssdqual.rig import tether as tethers
from pytest_ssdqual.rig.channel import Channel
from pytest_ssdqual.rig.machine import Completed, DeadlineExceeded
from pytest_ssdqual.rig.tether import TetheredProcess, tether_argv

#: What it is told to tether, and then it is gone without a word.
CONTROLLER = """
import os, signal, sys
from pytest_ssdqual.rig.channel import Channel
tether = Channel("here", wrap=list, lost=lambda done: None).tether(sys.argv[1:], first_signal="TERM")
print(tether.read_line(60), end="", flush=True)
signal.pause()
"""


def tethered(argv: Sequence[str], first_signal: str = "TERM", silence_s: int = 60) -> TetheredProcess:
    return TetheredProcess(argv, tether_argv(argv, first_signal, silence_s), lambda done: None)


def pids(line: str) -> list[int]:
    return [int(word) for word in line.split()]


def test_when_the_controller_is_killed_everything_ends(background: str, gone: Callable[[int], bool]) -> None:
    argv = [sys.executable, "-c", CONTROLLER, "sh", "-c", background]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        started = pids(controller.stdout.readline().decode())
        assert len(started) == 2
        assert all(Path(f"/proc/{pid}").exists() for pid in started)
        controller.kill()
    assert all(gone(pid) for pid in started)


def test_silence_ends_everything_though_the_line_is_open(background: str, gone: Callable[[int], bool]) -> None:
    argv = tether_argv(["sh", "-c", background], "TERM", silence_s=1)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        started = pids(process.stdout.readline().decode())
        assert all(gone(pid) for pid in started)
        assert not process.stdin.closed


def test_heartbeats_keep_it_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tethers, "HEARTBEAT_S", 1)
    process = tethered(["sh", "-c", "sleep 5; echo done"], silence_s=3)
    assert process.wait(60).text == "done\n"


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_the_far_side_needs_no_more_than_a_shell(shell: str, background: str, gone: Callable[[int], bool]) -> None:
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell} here")
    here = [*(["busybox"] if shell == "busybox" else []), *tether_argv(["sh", "-c", background], "TERM")]
    if shell != "busybox":
        here[0] = shell
    process = TetheredProcess(["sh"], here, lambda done: None)
    started = pids(process.read_line(30))
    process.cut()
    assert all(gone(pid) for pid in started)


def test_it_is_asked_gently_first() -> None:
    asked = "import signal, sys, time\n" + "signal.signal(signal.SIGINT, lambda *_: (print('gently'), sys.exit(3)))\n"
    process = tethered([sys.executable, "-c", f"{asked}print('up', flush=True)\ntime.sleep(600)"], "INT")
    assert process.read_line(60) == "up\n"
    done = process.cut()
    assert (done.text, done.status) == ("up\ngently\n", 3)


def test_what_will_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]) -> None:
    script = tethers.SCRIPT.replace("await over 50", "await over 3").replace("await gone 25", "await gone 3")
    assert script.count(" 3") >= 3
    monkeypatch.setattr(tethers, "SCRIPT", script)
    stubborn = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
    process = tethered([sys.executable, "-c", f"{stubborn}import os\nprint(os.getpid(), flush=True)\ntime.sleep(600)"])
    (pid,) = pids(process.read_line(60))
    process.cut()
    assert gone(pid)


def test_what_a_command_leaves_behind_ends_with_it(gone: Callable[[int], bool]) -> None:
    process = tethered(["sh", "-c", "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!"])
    (pid,) = pids(process.read_line(30))
    assert process.wait(60).status == 0
    assert gone(pid)


def test_two_tethers_do_not_end_each_other() -> None:
    one, other = (tethered(["sh", "-c", "echo up; exec sleep 600"]) for _ in range(2))
    assert [one.read_line(30), other.read_line(30)] == ["up\n", "up\n"]
    one.cut()
    assert (one.alive(), other.alive()) == (False, True)
    other.cut()


def test_its_input_is_empty_and_its_streams_are_apart() -> None:
    done = tethered(["sh", "-c", "cat; echo out; echo err >&2"]).wait(60)
    assert (done.stdout, done.stderr, done.status) == (b"out\n", b"err\n", 0)


def test_it_is_told_once_and_then_remembered() -> None:
    told: list[Completed] = []
    argv = ["sh", "-c", "exit 4"]
    process = TetheredProcess(argv, tether_argv(argv), told.append)
    assert process.wait(60) is process.cut() is process.wait(1)
    assert [(done.argv, done.status) for done in told] == [(("sh", "-c", "exit 4"), 4)]


def test_a_line_that_does_not_come_is_a_deadline_and_the_end_is_the_end() -> None:
    process = tethered(["sleep", "600"])
    with pytest.raises(DeadlineExceeded, match=r"^sleep said nothing within 0\.2 s$"):
        process.read_line(0.2)
    process.cut()
    assert [process.read_line(5), process.read_line(5)] == ["", ""]


def test_a_far_side_that_hangs_is_given_up() -> None:
    process = TetheredProcess(["fio"], ["sh", "-c", "exec sleep 600"], lambda done: None)
    assert process.cut(0.3).status == -signal.SIGKILL


def test_arguments_are_not_read_by_the_shell() -> None:
    odd = ["", "a b", "$HOME", "'", "*", "-n", "two\nlines"]
    assert tethered(["printf", "%s\\0", *odd]).wait(60).text.split("\0")[:-1] == odd


@pytest.mark.skipif(not shutil.which("fio"), reason="there is no fio here")
def test_fio_writes_its_results_when_it_is_cut(tmp_path: Path, unprivileged: Channel) -> None:
    (tmp_path / "target").write_bytes(bytes(1 << 20))
    options = ["--name=cut", f"--filename={tmp_path / 'target'}", "--size=1m", "--rw=randread", "--time_based=1"]
    options += ["--runtime=600", "--rate_iops=50", "--output-format=json", f"--output={tmp_path / 'out'}"]
    options.append("--exec_prerun=touch " + str(tmp_path / "begun"))
    # fio leaves what the command says in cut.prerun.txt, wherever it is.
    fio = unprivileged.tether(["sh", "-c", 'cd "$1" && shift && exec fio "$@"', "there", str(tmp_path), *options])
    while not (tmp_path / "begun").exists():
        with pytest.raises(DeadlineExceeded):
            fio.read_line(0.2)
    with pytest.raises(DeadlineExceeded):
        fio.read_line(1.0)
    fio.cut()
    text = (tmp_path / "out").read_text()
    (job,) = json.loads(text[text.index("{") :])["jobs"]
    assert job["read"]["total_ios"] > 0
    assert (tmp_path / "cut.prerun.txt").exists()


def test_a_survivor_that_holds_the_line_does_not_hold_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "join", lambda thread, limit=None: None)
    process = TetheredProcess(["fio"], ["sh", "-c", "setsid sleep 5 & echo $!; exec sleep 600"], lambda done: None)
    survivor = int(process.read_line(30))
    assert process.cut(0.3).status == -signal.SIGKILL
    os.kill(survivor, signal.SIGKILL)
