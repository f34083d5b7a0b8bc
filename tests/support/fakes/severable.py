"""A TCP relay in front of a port of this computer, so that the way to a machine can be cut."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
from types import TracebackType
from typing import Self

#: How soon what is asked for is done; nothing is measured through a relay but what a test waits for.
TICK_S = 0.05
#: Close with a reset instead of an orderly end, and at once (socket(7), SO_LINGER).
RESET = struct.pack("ii", 1, 0)


class Relay:
    """Passes connections on to ``port`` as long as it is whole; a context manager."""

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._peers: dict[socket.socket, socket.socket] = {}
        self._is_open = True
        self._is_cut = False
        self._thread = threading.Thread(target=self._work, daemon=True)

    @property
    def port(self) -> int:
        """To be connected to instead of the other one."""
        return int(self._listener.getsockname()[1])

    def cut(self) -> None:
        """Reset every connection, and each that is made from now on."""
        self._is_cut = True

    def heal(self) -> None:
        """Accept connections again; those that were reset stay so."""
        self._is_cut = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        self._thread.join()
        self._listener.close()

    def _work(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            while self._is_open:
                if self._is_cut:
                    self._reset(ready, *self._peers)
                for key, _ in ready.select(TICK_S):
                    self._pass_on(ready, key.fileobj)
            self._reset(ready, *self._peers)

    def _pass_on(self, ready: selectors.BaseSelector, source: object) -> None:
        if source is self._listener:
            self._accept(ready)
        elif isinstance(source, socket.socket) and source in self._peers:
            peer = self._peers[source]
            try:
                data = source.recv(65536)
                if data:
                    peer.sendall(data)
            except OSError:
                data = b""
            if not data:
                self._reset(ready, source, peer)

    def _accept(self, ready: selectors.BaseSelector) -> None:
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self._upstream)) if not self._is_cut else None
        except OSError:
            far = None
        if far is None:
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            self._peers[one] = other
            ready.register(one, selectors.EVENT_READ)

    def _reset(self, ready: selectors.BaseSelector, *ends: socket.socket) -> None:
        for end in tuple(ends):
            if self._peers.pop(end, None):
                ready.unregister(end)
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.close()
