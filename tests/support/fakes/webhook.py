"""A web hook on this computer."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "T0K3N"  # noqa: S105


class Webhook(ThreadingHTTPServer):
    """Records what it gets, after it has answered with each of ``answers`` once."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answers: list[int] = []
        super().__init__(("127.0.0.1", 0), WebhookHandler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{TOKEN}"


class WebhookHandler(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status < 300:
            self.server.bodies.append(json.loads(body))
            self.server.headers.append(dict(self.headers))
            self.server.paths.append(self.path)
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", self.server.url)
        self.end_headers()

    def do_GET(self) -> None:
        raise AssertionError("a redirected POST became a GET")

    def log_message(self, *words: object) -> None:
        pass
