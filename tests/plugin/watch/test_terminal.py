from __future__ import annotations

import os
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.watch.terminal import on_terminal
from pytest_ssdqual.qual.progress_events import Begun

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner


@pytest.mark.parametrize("capture", ["fd", "sys", "no"])
def test_the_line_gets_past_capturing(inner: Inner, promises: str, capture: str) -> None:
    # A process of its own: in this one, standard output is captured once more.
    args = (
        "-p",
        "support.simulator.simulated_rig",
        "--ssd-devices=lab:3",
        promises,
        f"--capture={capture}",
        "-k",
        "iops",
    )
    result = inner.pytester.runpytest_subprocess(*args)
    result.stdout.fnmatch_lines(["ssdqual: raid5x3: purge*"])


@pytest.mark.parametrize(("term", "erases"), [("xterm", True), ("dumb", False)])
def test_a_terminal_that_cannot_erase_is_written_to_as_a_log(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, term: str, erases: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    outer, inner = os.openpty()
    termios.tcsetwinsize(inner, (24, 91))
    with open(inner, "w") as terminal:  # noqa: PTH123 (a descriptor)
        monkeypatch.setattr("pytest_ssdqual.plugin.watch.terminal._uncaptured", lambda config: terminal)
        shown = on_terminal(pytester.parseconfigure())
        assert (shown.terminal, shown.width()) == (erases, 91)
        termios.tcsetwinsize(inner, (24, 40))
        assert shown.width() == 40
    os.close(outer)


def test_quiet_is_quiet(inner: Inner, promises: str) -> None:
    args = "-p", "support.simulator.simulated_rig", "--ssd-devices=lab:3", promises, "-q", "-k", "iops"
    assert "purge" not in inner.pytester.runpytest_subprocess(*args).stdout.str()


@pytest.mark.parametrize("args", [(), ("-q",), ("-p", "no:terminal")])
def test_nothing_stays_open(pytester: pytest.Pytester, args: tuple[str, ...]) -> None:
    config = pytester.parseconfigure(*args)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    progress = on_terminal(config)
    progress.take(Begun("fill", 0))
    config._ensure_unconfigure()
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


@pytest.mark.parametrize("is_pipe", [False, True])
def test_output_that_is_lost_ends_no_run(pytester: pytest.Pytester, is_pipe: bool) -> None:
    """A log on a full disk, and a pipe whose reader has gone."""
    pytester.makeconftest("""
        from pathlib import Path
        from pytest_ssdqual.plugin.watch import terminal

        def pytest_sessionstart(session):
            terminal.outlive(session.config, lambda error: Path("lost").open("a").write(f"{error.strerror};"))
    """)
    pytester.makepyfile("""
        import pytest
        from pathlib import Path

        @pytest.mark.parametrize("number", range(3))
        def test_each(number):
            Path(f"ran{number}").touch()
    """)
    if is_pipe:
        reads, writes = os.pipe()
        os.close(reads)
    else:
        writes = os.open("/dev/full", os.O_WRONLY)
    try:
        argv = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
        done = subprocess.run(argv, cwd=pytester.path, stdout=writes, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list(pytester.path.glob("ran*"))) == 3
    reason = "Broken pipe" if is_pipe else "No space left on device"
    assert (pytester.path / "lost").read_text() == f"{reason};"


def test_lost_output_is_recorded_once(inner: Inner, promises: str) -> None:
    inner.pytester.makeconftest("""
        import errno
        import io
        import pytest

        class Full(io.StringIO):
            def write(self, text):
                raise OSError(errno.ENOSPC, "No space left on device")

        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionstart(session):
            session.config.get_terminal_writer()._file = Full()
    """)
    result = inner.run("--ssd-devices=lab:3", promises, "-k", "iops")
    assert result.ret == pytest.ExitCode.TESTS_FAILED  # one of the limits is not kept
    assert {"failure", "error"} <= set(inner.outcomes().values())
    assert [record["exit_status"] for record in inner.records("run_ended")] == [1]
    assert [record["reason"] for record in inner.records("output_lost")] == ["No space left on device"]
