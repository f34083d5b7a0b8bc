from __future__ import annotations

import contextlib
import subprocess
import tracemalloc
from collections.abc import Iterator

import pytest

from pytest_ssdqual.rig.machine import capture
from pytest_ssdqual.rig.machine.capture import TooMuch, communicate
from pytest_ssdqual.rig.machine.channel import Channel
from pytest_ssdqual.rig.machine.machine import RigError


@contextlib.contextmanager
def started(script: str, *, stdin: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        ["sh", "-c", script], stdin=pipe if stdin else subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_both_streams_are_collected_apart() -> None:
    with started("head -c 300000 /dev/zero; echo words >&2; exit 3") as process:
        assert communicate(process, None, 60) == (bytes(300_000), b"words\n")
        assert process.returncode == 3


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
def test_input_arrives_whole(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    with started("cat", stdin=True) as process:
        assert communicate(process, data, 60) == (data, b"")


def test_input_that_is_not_read_is_no_error() -> None:
    with started("exec <&-; echo ended", stdin=True) as process:
        assert communicate(process, bytes(1_000_000), 60) == (b"ended\n", b"")


@pytest.mark.parametrize("script", ["sleep 600", "exec >&- 2>&-; sleep 600"])
def test_time_is_limited(script: str) -> None:
    with started(script) as process, pytest.raises(subprocess.TimeoutExpired):
        communicate(process, None, 0.2)


@pytest.mark.parametrize("redirect", ["", ">&2"])
def test_memory_is_limited(redirect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a stream without end."""
    monkeypatch.setattr(capture, "MOST_BYTES", 1 << 20)
    tracemalloc.start()
    try:
        with started(f"cat /dev/zero {redirect}") as process, pytest.raises(TooMuch):
            communicate(process, None, 60)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_exactly_as_much_as_may_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MOST_BYTES", 1 << 20)
    with started("head -c 1048576 /dev/zero") as process:
        assert len(communicate(process, None, 60)[0]) == 1 << 20


def test_machine_that_answers_without_end_is_an_error(unprivileged: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MOST_BYTES", 1 << 20)
    with pytest.raises(RigError, match="more than 1"):
        unprivileged.run(["cat", "/dev/zero"], deadline_s=600)
    assert unprivileged.run(["echo", "goes on"]).text == "goes on\n"
