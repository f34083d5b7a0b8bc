"""Client of QEMU's machine protocol: one JSON object a line, over a unix socket."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self


class QmpError(Exception):
    """QEMU refused a command, or is gone."""


class Qmp:
    """A connection to one QEMU; not thread-safe."""

    def __init__(self, path: Path, deadline_s: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._buffer = b""
        self._events: list[dict[str, object]] = []
        try:
            self._socket.settimeout(deadline_s)
            self._socket.connect(str(path))
            self._next(time.monotonic() + deadline_s)
            self.execute("qmp_capabilities")
        except (OSError, QmpError) as error:
            self._socket.close()
            raise QmpError(f"no answer from QEMU: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def execute(
        self, command: str, arguments: Mapping[str, object] | None = None, *, deadline_s: float = 10.0
    ) -> object:
        """Run a command and return its result; raise ``QmpError`` with QEMU's reason if it is refused."""
        self._send({"execute": command, "arguments": dict(arguments or {})})
        deadline = time.monotonic() + deadline_s
        while True:
            message = self._next(deadline)
            if "event" in message:
                self._events.append(message)
            elif "error" in message:
                reason = message["error"]
                raise QmpError(f"{command}: {reason['desc'] if isinstance(reason, dict) else reason}")
            elif "return" in message:
                return message["return"]

    def wait_event(self, name: str, deadline_s: float, **data: object) -> None:
        """Wait for an event with this name and these data; raise ``QmpError`` at the deadline."""
        deadline = time.monotonic() + deadline_s
        while True:
            for event in self._events:
                detail = event.get("data", {})
                if event["event"] == name and isinstance(detail, dict) and data.items() <= detail.items():
                    self._events.remove(event)
                    return
            message = self._next(deadline)
            if "event" in message:
                self._events.append(message)

    def _send(self, message: object) -> None:
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise QmpError(f"QEMU is gone: {error}") from error

    def _next(self, deadline: float) -> dict[str, object]:
        while b"\n" not in self._buffer:
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                more = self._socket.recv(65536)
            except TimeoutError as error:
                raise QmpError("QEMU did not answer in time") from error
            except OSError as error:
                raise QmpError(f"QEMU is gone: {error}") from error
            if not more:
                raise QmpError("QEMU is gone")
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise QmpError(f"QEMU sent {line!r}")
        return message
