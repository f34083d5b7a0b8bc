from __future__ import annotations

import os
import termios
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.plugin.watch.terminal import on_terminal

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
    result.stdout.fnmatch_lines(["ssdqual: raid5x3: purge 0:00 of 0:05*"])


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
    progress("fill", 0)
    config._ensure_unconfigure()
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208
