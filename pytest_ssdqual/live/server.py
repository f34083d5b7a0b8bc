"""HTTP server of the live page on the controller's loopback: its files and one event stream, all in memory.

Other users of the controller reach the loopback, too, so the address contains a random word, and only a browser that
has the whole address gets an answer. The server refuses requests of other sites: a foreign name that resolves to
127.0.0.1 (DNS rebinding) is not accepted in ``Host``, nor is a request that the browser marks as cross-site.
No part of a request is used as the name of a file.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from pytest_ssdqual.live.feed import Feed, Message, Topic, encoded

LOOPBACK = "127.0.0.1"
#: Names accepted in ``Host``.
NAMES = ("127.0.0.1", "localhost")
#: Simultaneous streams; a browser opens at most six to one server.
MOST_CLIENTS = 16
#: Simultaneous connections of any kind. Each has a thread and a descriptor of the process that also measures, and any
#: user of the controller can open some.
MOST_CONNECTIONS = 64
#: A client that reads nothing for so long is disconnected; only its own thread waits.
STALLED_S = 20.0
#: Period of keep-alive messages, by which both ends detect a lost connection.
SILENCE_S = 15.0
#: Delay before a browser reconnects.
RETRY_MS = 2000
#: Time for clients to read the last message at the end of a run.
GOODBYE_S = 3.0
#: Send buffer of a client's socket.
SEND_BUFFER_BYTES = 1 << 16
HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
#: Path, file of the package and media type.
PAGES = (
    ("", "live.html", "text/html"),
    ("live.css", "live.css", "text/css"),
    ("live.js", "live.js", "text/javascript"),
    ("draw.js", "draw.js", "text/javascript"),
    ("words.js", "words.js", "text/javascript"),
    ("icon.svg", "icon.svg", "image/svg+xml"),
)


class PortTaken(Exception):
    """The port is not available; the message says why."""


class LiveServer:
    """HTTP server of ``feed``; runs in a thread until it is closed."""

    def __init__(self, feed: Feed, port: int = 0, word: str | None = None) -> None:
        """``port`` 0 takes a free one. Raises ``PortTaken``."""
        self.feed = feed
        self.word = secrets.token_urlsafe(16) if word is None else word
        here = files("pytest_ssdqual.live") / "page"
        #: Content and media type by path; read once.
        self.pages = {path: ((here / name).read_bytes(), kind) for path, name, kind in PAGES}
        try:
            self._http = _Http((LOOPBACK, port), _handler(self))
        except (OSError, OverflowError) as error:
            taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
            why = "another program uses it" if taken else f"{error}"
            raise PortTaken(f"port {port} of {LOOPBACK} is not available: {why}") from error
        self.port = int(self._http.server_address[1])
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="ssdqual-live", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/{self.word}/"

    @property
    def hosts(self) -> frozenset[str]:
        """Accepted values of ``Host``."""
        return frozenset(f"{name}:{self.port}" for name in NAMES)

    def close(self) -> None:
        """Wait up to ``GOODBYE_S`` until the clients have read the last message, then end."""
        end = time.monotonic() + GOODBYE_S
        while self.feed.count and time.monotonic() < end:
            time.sleep(0.05)
        self._closing = True
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, self.port), timeout=1):
            pass  # a connection wakes the thread from handle_request
        self._thread.join(GOODBYE_S)
        self._http.server_close()

    def _serve(self) -> None:
        """Handle requests until closed; unlike ``serve_forever`` without polling twice a second."""
        while not self._closing:
            self._http.handle_request()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = MOST_CLIENTS

    def __init__(self, address: tuple[str, int], handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self._room = threading.Semaphore(MOST_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (socketserver's own)
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing into a test run: a client that disconnects is no error."""


def _now() -> Message:
    """Return a keep-alive with the controller's time; the browser may run on a computer with another clock."""
    return encoded(Topic.ALIVE, {"at_ms": round(1000 * time.time())})


def _handler(server: LiveServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(_Handler):
        ours = server

    return Handler


class _Handler(BaseHTTPRequestHandler):
    ours: LiveServer
    #: Seconds for reading a request and for writing an answer.
    timeout = STALLED_S
    server_version, sys_version = "ssdqual", ""
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        host = (self.headers.get("Host") or "").lower()
        if len(self.headers.get_all("Host") or ()) != 1 or host not in self.ours.hosts:
            return self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "Host is not the loopback of this computer")
        if self.headers.get("Sec-Fetch-Site", "none").lower() not in ("none", "same-origin"):
            return self._refuse(HTTPStatus.FORBIDDEN, "requests of other sites are refused")
        first, slash, rest = self.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(first.encode("utf-8", "replace"), self.ours.word.encode()):
            return self._refuse(HTTPStatus.NOT_FOUND, "not found: use the whole address that pytest printed")
        if not slash:
            return self._send(HTTPStatus.MOVED_PERMANENTLY, b"", "text/plain", ("Location", f"/{self.ours.word}/"))
        if rest == "events":
            return self._stream()
        page = self.ours.pages.get(rest)
        if page is None:
            return self._refuse(HTTPStatus.NOT_FOUND, "not found")
        return self._send(HTTPStatus.OK, *page)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (do_POST and all other methods)
        if name.startswith("do_"):
            return lambda: self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is supported", ("Allow", "GET"))
        raise AttributeError(name)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing into a test run."""

    def _stream(self) -> None:
        feed = self.ours.feed
        if feed.count >= MOST_CLIENTS:
            return self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many windows are open: close one")
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        client = feed.join()
        try:
            self._head(HTTPStatus.OK, "text/event-stream", ())
            self.wfile.write(f"retry: {RETRY_MS}\n\n".encode() + _now())
            while (message := client.next(SILENCE_S)) is not None:
                self.wfile.write(message or _now())
        except OSError:
            pass  # the window was closed, or the client did not read in time
        finally:
            feed.leave(client)
        return None

    def _refuse(self, status: HTTPStatus, why: str, *more: tuple[str, str]) -> None:
        self._send(status, f"{why}\n".encode(), "text/plain", *more)

    def _send(self, status: HTTPStatus, content: bytes, kind: str, *more: tuple[str, str]) -> None:
        with contextlib.suppress(OSError):
            self._head(status, kind, (("Content-Length", str(len(content))), *more))
            self.wfile.write(content)

    def _head(self, status: HTTPStatus, kind: str, more: tuple[tuple[str, str], ...]) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"), *HEADERS, *more):
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
