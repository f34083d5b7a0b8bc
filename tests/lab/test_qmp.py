from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pytest_ssdqual.lab.qmp import Qmp, QmpError

GREETING: dict[str, object] = {"QMP": {"version": {}, "capabilities": []}}


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Callable[..., Qmp]]:
    """A QEMU that answers each command with the next of the given lists of messages, then hangs up."""
    with ExitStack() as stack:

        def serve(*replies: list[object], greeting: object = GREETING) -> Qmp:
            path = tmp_path / "qmp"
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen()
            thread = threading.Thread(target=converse, args=(listener, greeting, replies))
            thread.start()
            stack.callback(thread.join)
            return stack.enter_context(Qmp(path, deadline_s=5.0))

        yield serve


def converse(listener: socket.socket, greeting: object, replies: tuple[list[object], ...]) -> None:
    accepted: list[object] = [{"return": {}}]
    connection, _ = listener.accept()
    with connection, connection.makefile("rwb") as stream:
        stream.write(json.dumps(greeting).encode() + b"\r\n")
        stream.flush()
        for messages in (accepted, *replies):
            if not stream.readline():
                return
            for message in messages:
                stream.write(json.dumps(message).encode() + b"\r\n")
            stream.flush()


def test_a_command_returns_what_qemu_returns(monitor: Callable[..., Qmp]) -> None:
    assert monitor([{"return": {"status": "running"}}]).execute("query-status") == {"status": "running"}


def test_a_refused_command_carries_qemus_reason(monitor: Callable[..., Qmp]) -> None:
    qmp = monitor([{"error": {"class": "GenericError", "desc": "Device 'x' not found"}}])
    with pytest.raises(QmpError, match="'x' not found"):
        qmp.execute("device_del", {"id": "x"})


def test_event_before_the_answer_is_kept_and_taken_once(monitor: Callable[..., Qmp]) -> None:
    gone = {"event": "DEVICE_DELETED", "data": {"device": "nvme1", "path": "/p"}}
    qmp = monitor([{"event": "STOP"}, gone, {"return": {}}], [])
    qmp.execute("device_del", {"id": "nvme1"})
    with pytest.raises(QmpError):
        qmp.wait_event("DEVICE_DELETED", 0.05, device="nvme2")
    qmp.wait_event("DEVICE_DELETED", 5.0, device="nvme1")
    with pytest.raises(QmpError):
        qmp.wait_event("DEVICE_DELETED", 0.05, device="nvme1")


def test_qemu_that_ends(monitor: Callable[..., Qmp]) -> None:
    with pytest.raises(QmpError, match="gone"):
        monitor().execute("quit")


def test_something_that_is_not_qemu(monitor: Callable[..., Qmp], tmp_path: Path) -> None:
    with pytest.raises(QmpError, match="answer from QEMU"):
        Qmp(tmp_path / "none")
    with pytest.raises(QmpError, match="answer from QEMU"):
        monitor(greeting=[1])
