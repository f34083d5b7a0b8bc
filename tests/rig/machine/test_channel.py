from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import FrameType

import pytest
from support.fakes.scripted import completed

from pytest_ssdqual.rig.machine import channel as channels
from pytest_ssdqual.rig.machine.channel import Channel, last_words
from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, DeadlineExceeded, MachineLost, RigError


def made(
    wrap: Callable[[Sequence[str]], list[str]] = list,
    lost: Callable[[Completed], str | None] = lambda done: None,
    become: tuple[str, ...] = (),
    on_close: Callable[[], None] | None = None,
) -> Channel:
    return Channel("dut7", wrap=wrap, lost=lost, become=become, on_close=on_close)


def pretend(status: int, seconds: float = 0.0) -> Callable[[Sequence[str]], list[str]]:
    """Whatever is asked, this much later this status."""
    return lambda argv: ["sh", "-c", f"sleep {seconds}; exit {status}"]


def test_every_command_has_root_language_and_deadline_in_front() -> None:
    asked: list[list[str]] = []
    channel = made(lambda argv: asked.append(list(argv)) or ["true"], become=("sudo", "-n", "--"))  # type: ignore[func-returns-value]
    channel.run(["mdadm", "--stop", "/dev/md100"], deadline_s=120)
    assert asked == [
        ["sudo", "-n", "--", "env", "LC_ALL=C", "timeout", "-k", "5", "120", "mdadm", "--stop", "/dev/md100"]
    ]


@pytest.mark.parametrize("status", [124, 137, 255])
def test_timeouts_status_is_the_deadline_only_when_time_is_over(status: int) -> None:
    assert made(pretend(status)).run(["x"], deadline_s=60, check=False).status == status
    with pytest.raises(DeadlineExceeded, match=r"within 0\.2 s"):
        made(pretend(status, 0.3)).run(["x"], deadline_s=0.2, check=False)
    with pytest.raises(CommandFailed, match="status 3"):
        made(pretend(3, 0.3)).run(["x"], deadline_s=0.2)


@pytest.mark.parametrize("first", ["command", "tether"])
def test_lost_machine_is_asked_nothing_more(first: str) -> None:
    asked: list[Sequence[str]] = []

    def wrap(argv: Sequence[str]) -> list[str]:
        asked.append(argv)
        return ["sh", "-c", "exit 255"]

    channel = made(wrap, lost=lambda done: "Broken pipe" if done.status == 255 else None)
    with pytest.raises(MachineLost, match=r"lost: Broken pipe$"):
        channel.run(["true"], check=False) if first == "command" else channel.tether(["sleep", "1"]).wait(30)
    count = len(asked)
    for again in (lambda: channel.run(["true"]), lambda: channel.tether(["true"])):
        with pytest.raises(MachineLost, match=r"lost: Broken pipe$"):
            again()
    assert len(asked) == count
    channel.close()


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "KILL_AFTER_S", 0)
    monkeypatch.setattr(channels, "CHANNEL_GRACE_S", 0)


@pytest.mark.usefixtures("no_grace")
def test_channel_that_hangs_is_a_lost_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "ANSWER_S", 0.5)
    channel = made(lambda argv: ["sleep", "600"])
    with pytest.raises(MachineLost, match="lsblk --json within"):
        channel.run(["lsblk", "--json"], deadline_s=0.5)
    with pytest.raises(MachineLost, match="answer to lsblk"):
        channel.run(["true"])


@pytest.mark.usefixtures("no_grace")
@pytest.mark.parametrize(("repeatable", "cause"), [(True, "cannot be ended"), (False, "effect .* is unknown")])
def test_command_that_hangs_is_no_lost_machine_if_that_answers(repeatable: bool, cause: str) -> None:
    """A drive that hangs keeps smartctl in the kernel, where no signal ends it."""
    channel = made(lambda argv: ["true"] if argv[-1] == "true" else ["sleep", "600"])
    with pytest.raises(DeadlineExceeded, match=rf"^smartctl on .*{cause}"):
        channel.run(["smartctl"], deadline_s=0.5, repeatable=repeatable)
    assert channel.run(["true"]).status == 0


def test_what_interrupts_us_ends_the_command(tmp_path: Path, gone: Callable[[int], bool]) -> None:
    """Its output must not be waited for: it would end when it likes, and its deadline with it."""
    note = tmp_path / "pid"

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.5)
        with pytest.raises(KeyboardInterrupt):
            made().run(["sh", "-c", 'echo $$ >"$1"; exec sleep 300', "sh", str(note)], deadline_s=300)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert gone(int(note.read_text()))


def test_closing_cuts_every_tether_and_then_the_connection(gone: Callable[[int], bool]) -> None:
    pids: list[int] = []
    alive_at_close: list[bool] = []
    channel = made(on_close=lambda: alive_at_close.extend(Path(f"/proc/{pid}/exe").exists() for pid in pids))
    for _ in range(2):
        tether = channel.tether(["sh", "-c", "echo $$; exec sleep 300"], first_signal="TERM", announces=True)
        pids.append(int(tether.read_line(30)))
    channel.close()
    channel.close()
    assert alive_at_close == [False, False]


def test_no_command_begins_on_a_closed_channel() -> None:
    """A thread may outlast the run, whose lease is released by then."""
    asked: list[Sequence[str]] = []
    channel = made(lambda argv: asked.append(argv) or ["true"])  # type: ignore[func-returns-value]
    channel.close()
    for command in (lambda: channel.run(["blkdiscard", "/dev/sdb"]), lambda: channel.tether(["fio"])):
        with pytest.raises(RigError, match="closed its connection"):
            command()
    assert not asked


def patient(place: Path, *, renew: Callable[[float], None] | None = None, boots: Iterator[str]) -> Channel:
    """Its connection is cut by whatever exits with 255; each time it is made anew it is this boot's."""

    def wrap(argv: Sequence[str]) -> list[str]:
        return ["echo", (place / "boot").read_text()] if argv[-1] == channels.BOOT_ID else list(argv)

    def connect(seconds: float) -> None:
        (place / "boot").write_text(next(boots))
        (place / "cut").unlink(missing_ok=True)

    connect(0)
    channel = Channel(
        "dut7", wrap, lambda done: "Broken pipe" if done.status == 255 else None, renew=renew or connect, patience_s=9
    )
    channel.learn_boot()
    return channel


CUT_ONCE = ["sh", "-c", '[ -e "$1" ] && exit 0; touch "$1"; exit 255', "sh"]


def test_repeatable_command_is_repeated_over_a_new_connection(tmp_path: Path) -> None:
    told: list[Completed] = []
    channel = patient(tmp_path, boots=iter(["one", "one"]), renew=None)
    channel.observer = told.append
    assert channel.run([*CUT_ONCE, str(tmp_path / "once")], repeatable=True).status == 0
    assert [(done.argv[0], done.status) for done in told] == [("sh", 255), ("reconnected", 0), ("sh", 0)]
    assert channel.generation == 1


def test_connection_lost_while_it_is_renewed_is_renewed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(argv: Sequence[str]) -> list[str]:
        if argv[-1] != channels.BOOT_ID:
            return list(argv)
        return ["sh", "-c", "exit 255"] if len(renewals) == 1 else ["echo", "one"]

    renewals: list[float] = []
    channel = Channel(
        "dut7", wrap, lambda done: "Broken pipe" if done.status == 255 else None, renew=renewals.append, patience_s=9
    )
    monkeypatch.setattr(channels, "RENEW_AGAIN_S", 0.0)
    channel.learn_boot()
    assert channel.run([*CUT_ONCE, str(tmp_path / "once")], repeatable=True).status == 0
    assert len(renewals) == 2
    assert renewals[1] <= renewals[0] == pytest.approx(9, abs=0.5)


@pytest.mark.parametrize("is_on_purpose", [True, False])
def test_another_boot_is_another_machine_unless_on_purpose(tmp_path: Path, is_on_purpose: bool) -> None:
    channel = patient(tmp_path, boots=iter(["one", "two", "two"]))
    if is_on_purpose:
        channel.restarted(5)
    with nullcontext() if is_on_purpose else pytest.raises(MachineLost, match="it has rebooted"):
        assert channel.run([*CUT_ONCE, str(tmp_path / "once")], repeatable=True).status == 0
        assert channel.generation == 2


def test_machine_that_does_not_come_back_is_lost(tmp_path: Path) -> None:
    def fail(seconds: float) -> None:
        raise RigError(f"no route within {seconds:g} s")

    channel = patient(tmp_path, boots=iter(["one"]), renew=fail)
    for _ in range(2):
        with pytest.raises(MachineLost, match="no route within"):
            channel.run([*CUT_ONCE, str(tmp_path / "once")], repeatable=True)


@pytest.mark.parametrize(
    ("stdout", "stderr", "words"),
    [
        ("out\n", "first\nlast \n", "last"),
        ("on standard output\n", "", "on standard output"),
        ("", "\n\n", "exit status 9"),
    ],
)
def test_last_words(stdout: str, stderr: str, words: str) -> None:
    assert last_words(completed(["x"], stdout, 9, stderr)) == words


def test_long_commands_are_named_in_short() -> None:
    with pytest.raises(RigError, match=r"^echo x+….*too long$"):
        made().run(["echo", "x" * 10_000_000])
    with pytest.raises(RigError) as failed:
        made().run([sys.executable, "-c", "import sys\nsys.exit('gone wrong')", *["x" * 100] * 3])
    first, _, rest = str(failed.value).partition(" on dut7 ")
    assert len(first) <= 80
    assert "\n" not in first
    assert rest == "failed: gone wrong"
