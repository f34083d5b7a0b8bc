from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.shells import SHELLS

from pytest_ssdqual.rig.machine import supervisor as tethers
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import Completed, DeadlineExceeded, MachineLost, RigError
from pytest_ssdqual.rig.machine.supervisor import Keeper, TetheredProcess

pytestmark = pytest.mark.slow

#: What it is told to tether, and then it is gone without a word. The connection may be made anew, or not.
CONTROLLER = """
import signal, sys
from pytest_ssdqual.rig.machine.channel import Channel
renew = (lambda seconds: None) if sys.argv[2] == "patient" else None
channel = Channel("here", wrap=list, lost=lambda done: None, directory=sys.argv[1], renew=renew, patience_s=600)
tether = channel.tether(sys.argv[3:], first_signal="TERM", announces=True)
print(tether.read_line(60), end="", flush=True)
signal.pause()
"""


#: Between us and the far side, as ssh is.
CARRIER = """
import os, subprocess, sys, threading
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
open(sys.argv[1], "w").write(str(os.getpid()))
def there():
    while words := os.read(0, 4096):
        process.stdin.write(words)
        process.stdin.flush()
    process.stdin.close()
threading.Thread(target=there, daemon=True).start()
while words := os.read(process.stdout.fileno(), 65536):
    os.write(1, words)
sys.exit(process.wait())
"""


@dataclass
class Road:
    """A ``Line`` on this computer that can be cut, and comes back when it is told to."""

    place: Path
    #: Cut off until this is set.
    open: threading.Event = field(default_factory=threading.Event)
    generation: int = 0
    told: list[Completed] = field(default_factory=list)
    #: What is raised instead of coming back.
    closed_for: RigError | None = None

    def __post_init__(self) -> None:
        self.open.set()

    def wrap(self, argv: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", CARRIER, str(self.place / "carrier"), *argv]

    def revive(self, generation: int, done: Completed) -> None:
        if not self.open.wait(30):
            raise TimeoutError
        if self.closed_for:
            raise self.closed_for
        self.generation += 1

    def ended(self, done: Completed) -> None:
        self.told.append(done)

    def cut(self) -> None:
        """As a connection ends: whoever is attached over there sees the end of its input, and we that of its output."""
        self.open.clear()
        carrier = int((self.place / "carrier").read_text())
        (self.place / "carrier").unlink()
        os.kill(carrier, signal.SIGKILL)

    def is_used(self) -> bool:
        return (self.place / "carrier").exists()


@pytest.fixture
def road(tmp_path: Path) -> Road:
    return Road(tmp_path)


@pytest.fixture
def tethered(road: Road) -> Iterator[Callable[..., TetheredProcess]]:
    made: list[TetheredProcess] = []

    def tether(
        argv: Sequence[str], first_signal: str = "TERM", silence_s: float = 60, survives: bool = False
    ) -> TetheredProcess:
        keeper = Keeper(
            argv,
            first_signal,
            silence_s=silence_s,
            survives=survives,
            announces=True,
            directory=str(road.place / "run"),
        )
        made.append(TetheredProcess(keeper, road))
        return made[-1]

    yield tether
    for each in made:
        with contextlib.suppress(RigError):
            each.cut()


def pids(line: str) -> list[int]:
    return [int(word) for word in line.split()]


def await_that(condition: Callable[[], bool]) -> None:
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError


Tether = Callable[..., TetheredProcess]


@pytest.mark.parametrize("patience", ["patient", "impatient"])
def test_when_the_controller_is_killed_everything_ends(
    patience: str, background: str, gone: Callable[[int], bool], tmp_path: Path
) -> None:
    argv = [sys.executable, "-c", CONTROLLER, str(tmp_path / "run"), patience, "sh", "-c", background]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        started = pids(controller.stdout.readline().decode())
        assert len(started) == 2
        assert all(Path(f"/proc/{pid}").exists() for pid in started)
        controller.kill()
    assert all(gone(pid) for pid in started)


def test_silence_ends_everything_though_the_line_is_open(
    background: str, gone: Callable[[int], bool], tmp_path: Path
) -> None:
    keeper = Keeper(
        ["sh", "-c", background], "TERM", silence_s=1, survives=True, announces=True, directory=str(tmp_path / "run")
    )
    with subprocess.Popen(keeper.start, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        started = pids(process.stdout.readline().decode().removeprefix("said "))
        assert all(gone(pid) for pid in started)
        assert not process.stdin.closed
    await_that(lambda: not list((tmp_path / "run").iterdir()))


def test_heartbeats_keep_it_alive(tethered: Tether, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tethers, "HEARTBEAT_S", 1)
    process = tethered(["sh", "-c", "sleep 5; echo done"], silence_s=3)
    assert process.wait(60).text == "done\n"


def test_fio_that_lost_a_worker_is_ended_at_a_heartbeat(tethered: Tether, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tethers, "HEARTBEAT_S", 1)
    said = "echo fio: pid=7, got signal=9 >&2; exec sleep 600"
    done = tethered(["sh", "-c", said]).wait(60)
    assert (done.status, done.stderr) == (128 + 15, b"fio: pid=7, got signal=9\n")
    goes_on = tethered(["sh", "-c", "echo fio: got a warning >&2; sleep 4; echo done"]).wait(60)
    assert goes_on.text == "done\n"


def test_deadline_reports_the_last_words(tethered: Tether) -> None:
    process = tethered(["sh", "-c", "echo first >&2; echo stuck >&2; exec sleep 600"])
    with pytest.raises(DeadlineExceeded, match=r"within 2.*: stuck$"):
        process.wait(2)


def test_a_lost_connection_costs_nothing(tethered: Tether, road: Road) -> None:
    process = tethered(
        ["sh", "-c", 'echo up; until [ -e "$1" ]; do sleep 0.1; done; echo done', "sh", str(road.place / "go")],
        survives=True,
    )
    assert process.read_line(30) == "up\n"
    for _ in range(2):
        road.cut()
        road.open.set()
        await_that(road.is_used)
    assert process.alive()
    (road.place / "go").touch()
    done = process.wait(60)
    assert (done.text, done.status, road.generation) == ("up\ndone\n", 0, 2)
    assert [each.text for each in road.told] == ["up\ndone\n"]
    await_that(lambda: not list((road.place / "run").iterdir()))


def test_what_ends_while_nobody_is_attached_is_told_later(tethered: Tether, road: Road) -> None:
    os.mkfifo(road.place / "fifo")
    process = tethered(["sh", "-c", 'echo $$; read -r x <"$1"; exit 5', "sh", str(road.place / "fifo")], survives=True)
    (pid,) = pids(process.read_line(30))
    road.cut()
    (road.place / "fifo").write_text("go\n")
    await_that(lambda: not Path(f"/proc/{pid}").exists())
    assert process.alive()  # as far as is known
    road.open.set()
    assert process.wait(60).status == 5


def test_the_time_without_a_connection_is_not_counted(tethered: Tether, road: Road) -> None:
    process = tethered(["sh", "-c", "echo up; sleep 4"], survives=True)
    process.read_line(30)
    road.cut()
    threading.Timer(3, road.open.set).start()
    assert process.wait(2).status == 0


def test_what_nobody_comes_back_to_is_ended_and_told_so(
    tethered: Tether, road: Road, background: str, gone: Callable[[int], bool]
) -> None:
    process = tethered(["sh", "-c", background], survives=True, silence_s=1)
    started = pids(process.read_line(30))
    road.cut()
    assert all(gone(pid) for pid in started)
    await_that(lambda: not list((road.place / "run").iterdir()))
    road.open.set()
    with pytest.raises(MachineLost, match="received no heartbeat"):
        process.wait(60)


def test_machine_that_does_not_come_back_is_lost_to_its_waiters(tethered: Tether, road: Road) -> None:
    process = tethered(["sh", "-c", "echo up; exec sleep 600"], survives=True, silence_s=1)
    process.read_line(30)
    road.closed_for = MachineLost("dut7 is lost: no route")
    road.cut()
    road.open.set()
    asked: tuple[Callable[[], Completed], ...] = (lambda: process.wait(60), process.cut)
    for ask in asked:
        with pytest.raises(MachineLost, match=r"lost: no route$"):
            ask()
    assert not process.alive()


def test_cut_while_the_connection_is_lost_is_done_later(
    tethered: Tether, road: Road, gone: Callable[[int], bool]
) -> None:
    process = tethered(["sh", "-c", "echo $$; exec sleep 600"], survives=True)
    (pid,) = pids(process.read_line(30))
    road.cut()
    threading.Timer(1, road.open.set).start()
    process.cut()
    assert gone(pid)


def test_what_is_no_keeper_or_cannot_start_says_why(road: Road) -> None:
    (road.place / "run").write_text("in the way")
    keeper = Keeper(["true"], silence_s=60, survives=True, directory=str(road.place / "run"))
    done = TetheredProcess(keeper, road).wait(60)
    assert done.status == 1
    assert "run" in done.errors
    for here in (["echo", "ended well"], ["no-such-program"]):
        road.wrap = lambda argv, here=here: here  # type: ignore[method-assign,misc]
        keeper = Keeper(["fio"], silence_s=60, directory=str(road.place / "run"))
        with pytest.raises(RigError, match="by a keeper"):
            TetheredProcess(keeper, road).wait(30)


@pytest.fixture(params=SHELLS)
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH on which ``sh`` is one of the shells."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to(str(shutil.which(request.param)))
    return f"PATH={tmp_path / 'bin'}:{os.environ['PATH']}"


def test_full_file_system_of_keepers_is_reported_at_once(tools: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    full = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=16k none "$0" && exec "$@"', str(run)]
    if subprocess.run([*full, "true"], capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    keeper = Keeper(["sleep", "600"], "TERM", silence_s=60, announces=True, directory=str(run))
    process = TetheredProcess(keeper, Road(tmp_path), [*full, "env", tools])
    assert process.read_line(30) == ""
    done = process.cut()
    assert done.status == 1
    assert str(run) in done.errors
    assert "sleep" in done.errors


def test_the_far_side_needs_no_more_than_a_shell(
    tools: str, background: str, gone: Callable[[int], bool], tmp_path: Path
) -> None:
    keeper = Keeper(["sh", "-c", background], "TERM", silence_s=60, announces=True, directory=str(tmp_path / "run"))
    process = TetheredProcess(keeper, Road(tmp_path), ["env", tools])
    started = pids(process.read_line(30))
    process.cut()
    assert all(gone(pid) for pid in started)


def test_it_is_asked_gently_first(tethered: Tether) -> None:
    asked = "import signal, sys, time\n" + "signal.signal(signal.SIGINT, lambda *_: (print('gently'), sys.exit(3)))\n"
    process = tethered([sys.executable, "-c", f"{asked}print('up', flush=True)\ntime.sleep(600)"], "INT")
    assert process.read_line(60) == "up\n"
    done = process.cut()
    assert (done.text, done.status) == ("up\ngently\n", 3)


#: ``rm``, which lets others go on between what it does to the files of a directory and to the directory.
SLOW_RM = """#!/bin/sh
for directory; do :; done
rm=$(PATH=${PATH#*:} command -v rm)
[ -d "$directory" ] || exec "$rm" "$@"
"$rm" -f "$directory"/* && touch "$0.began"
n=0; until [ -e "$0.go_on" ] || [ "$n" -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
exec "$rm" -d "$directory"
"""


def test_words_during_the_clearing_leave_nothing_behind(tmp_path: Path) -> None:
    """The end of a connection comes right after the word that everything was heard."""
    (tmp_path / "bin").mkdir()
    rm = tmp_path / "bin" / "rm"
    rm.write_text(SLOW_RM)
    rm.chmod(0o755)
    keeper = Keeper(["true"], silence_s=60, survives=True, directory=str(tmp_path / "run"))
    there = {**os.environ, "PATH": f"{rm.parent}:{os.environ['PATH']}"}
    with subprocess.Popen(keeper.start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=there) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"here\n", b"ended 0 0 0\n"]
        process.stdin.write(b"a\n")
        process.stdin.flush()
        await_that((tmp_path / "bin" / "rm.began").exists)
        process.stdin.write(b"q\n")
        process.stdin.close()
        time.sleep(1)  # for what is done with these words
        (tmp_path / "bin" / "rm.go_on").touch()
    await_that(lambda: not list((tmp_path / "run").iterdir()))


def test_what_will_not_listen_is_killed(
    tethered: Tether, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]
) -> None:
    script = tethers.KEEPER.replace("await over 50", "await over 3").replace("await gone 25", "await gone 3")
    assert script.count(" 3") >= 3
    monkeypatch.setattr(tethers, "KEEPER", script)
    stubborn = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
    process = tethered([sys.executable, "-c", f"{stubborn}import os\nprint(os.getpid(), flush=True)\ntime.sleep(600)"])
    (pid,) = pids(process.read_line(60))
    process.cut()
    assert gone(pid)


def test_what_a_command_leaves_behind_ends_with_it(tethered: Tether, gone: Callable[[int], bool]) -> None:
    process = tethered(["sh", "-c", "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!"])
    (pid,) = pids(process.read_line(30))
    assert process.wait(60).status == 0
    assert gone(pid)


def test_two_tethers_do_not_end_each_other(tethered: Tether) -> None:
    one, other = (tethered(["sh", "-c", "echo up; exec sleep 600"]) for _ in range(2))
    assert [one.read_line(30), other.read_line(30)] == ["up\n", "up\n"]
    one.cut()
    assert (one.alive(), other.alive()) == (False, True)
    other.cut()


def test_streams_are_apart_and_arguments_not_read_by_the_shell(tethered: Tether) -> None:
    done = tethered(["sh", "-c", "cat; echo out; echo err >&2"]).wait(60)
    assert (done.stdout, done.stderr, done.status) == (b"out\n", b"err\n", 0)
    odd = ["", "a b", "$HOME", "'", "*", "-n", "two\nlines"]
    assert tethered(["printf", "%s\\0", *odd]).wait(60).text.split("\0")[:-1] == odd
    done = tethered(["sh", "-c", "head -c 5000000 /dev/zero; printf end; echo oops >&2"]).wait(60)
    assert (len(done.stdout), done.errors) == (tethers.TOLD_BYTES, "oops\n")
    assert done.stdout.endswith(b"\0end")


def test_end_is_reported_once_and_then_remembered(tethered: Tether, road: Road) -> None:
    process = tethered(["sh", "-c", "exit 4"])
    assert process.wait(60) is process.cut() is process.wait(1)
    assert [(done.argv, done.status) for done in road.told] == [(("sh", "-c", "exit 4"), 4)]


def test_line_that_does_not_come_is_a_deadline(tethered: Tether) -> None:
    process = tethered(["sleep", "600"])
    with pytest.raises(DeadlineExceeded, match="sleep printed nothing"):
        process.read_line(0.2)
    process.cut()
    assert [process.read_line(5), process.read_line(5)] == ["", ""]


def test_a_far_side_that_hangs_is_given_up(tmp_path: Path) -> None:
    class Hanging(Road):
        def wrap(self, argv: Sequence[str]) -> list[str]:
            return ["sh", "-c", "exec sleep 600"]

    keeper = Keeper(["fio"], silence_s=60, directory=str(tmp_path / "run"))
    assert TetheredProcess(keeper, Hanging(tmp_path)).cut(0.3).status == -signal.SIGKILL


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
