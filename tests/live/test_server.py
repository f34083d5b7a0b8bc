from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from pytest_ssdqual.live import feed as feeds
from pytest_ssdqual.live import server as servers
from pytest_ssdqual.live.feed import Feed, Topic
from pytest_ssdqual.live.server import LiveServer, PortTaken

SCRIPTS = ("live", "draw", "words")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveServer]:
    monkeypatch.setattr("pytest_ssdqual.live.server.GOODBYE_S", 0.3)  # some of those who listen stay to the end
    made = LiveServer(Feed(), word="s3cret")
    yield made
    made.close()


class Answer:
    def __init__(self, server: LiveServer, path: str, method: str = "GET", **headers: str) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=named)
            found = connection.getresponse()
            self.status, self.body, self.headers = found.status, found.read(), found.headers


@contextmanager
def stream(server: LiveServer) -> Iterator[http.client.HTTPResponse]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request("GET", "/s3cret/events")
        with connection.getresponse() as answer:
            yield answer


def read_until(answer: http.client.HTTPResponse, word: bytes) -> bytes:
    found = b""
    while word not in found:
        line = answer.readline()
        assert line, found
        found += line
    return found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", "text/html"),
        ("live.css", "text/css"),
        *((f"{name}.js", "text/javascript") for name in SCRIPTS),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_the_page_and_its_parts_are_there(server: LiveServer, path: str, kind: str) -> None:
    answer = Answer(server, f"/s3cret/{path}")
    assert (answer.status, answer.headers.get_content_type()) == (200, kind)
    assert len(answer.body) == int(answer.headers["Content-Length"]) > 100
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_but_our_own_files_may_be_loaded(server: LiveServer) -> None:
    answer = Answer(server, "/s3cret/")
    policy = dict(each.strip().split(" ", 1) for each in answer.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}
    assert not re.search(rb"https?://|<style|\son\w+=|<script>|style=", answer.body)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_of_text(server: LiveServer, name: str) -> None:
    script = Answer(server, f"/s3cret/{name}.js").body
    assert not re.search(rb"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", ""]
)
def test_a_name_of_somebody_else_is_refused(server: LiveServer, host: str) -> None:
    answer = Answer(server, "/s3cret/", Host=host.format(port=server.port))
    assert answer.status == 421
    assert b"Storage" not in answer.body


def test_our_other_name_is_not(server: LiveServer) -> None:
    assert Answer(server, "/s3cret/", Host=f"LocalHost:{server.port}").status == 200


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_pages_of_other_sites_may_not_ask(server: LiveServer, site: str, status: int) -> None:
    assert Answer(server, "/s3cret/live.js", Sec_Fetch_Site=site).status == status


@pytest.mark.parametrize(
    "path",
    ["/", "/wrong/", "/s3cre/", "/s3cret2/", "/s3cret/../../etc/passwd", "/s3cret/server.py", "/s3cret/%2e%2e/feed.py",
     "/s3cret//etc/passwd", "/s3cret/events/x", "/s3cret/live.js?x", "/%ff/"],
)  # fmt: skip
def test_nothing_else_is_there(server: LiveServer, path: str) -> None:
    assert Answer(server, path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"])
def test_only_get_is_answered(server: LiveServer, method: str) -> None:
    answer = Answer(server, "/s3cret/", method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "request_line",
    [b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x00", b"GET /s3cret/\r\n\r\n"],
)
def test_what_is_no_request_harms_nobody(
    server: LiveServer, request_line: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request_line)
        connection.shutdown(socket.SHUT_WR)
        assert b"Storage" not in connection.recv(1 << 16)
    assert Answer(server, "/s3cret/").status == 200
    assert capfd.readouterr() == ("", "")


def test_the_address_without_its_last_slash_leads_there(server: LiveServer) -> None:
    answer = Answer(server, "/s3cret")
    assert (answer.status, answer.headers["Location"]) == (301, "/s3cret/")


def test_only_loopback_is_listened_to(server: LiveServer) -> None:
    assert server._http.socket.getsockname()[0] == "127.0.0.1"


def test_two_servers_have_two_words() -> None:
    one, two = LiveServer(Feed()), LiveServer(Feed())
    assert one.word != two.word
    assert len(one.word) >= 20
    assert one.url == f"http://127.0.0.1:{one.port}/{one.word}/"
    one.close()
    two.close()


@pytest.mark.parametrize("port", [None, 65536])
def test_a_port_that_cannot_be_had_is_a_sentence(server: LiveServer, port: int | None) -> None:
    with pytest.raises(PortTaken, match=f"port {port or server.port} of"):
        LiveServer(Feed(), port or server.port)


def test_a_reload_replays_and_then_follows(server: LiveServer) -> None:
    server.feed.publish(Topic.LOG, {"text": "first"})
    for _ in range(2):
        with stream(server) as answer:
            assert (answer.status, answer.headers.get_content_type()) == (200, "text/event-stream")
            read_until(answer, b"first")
    with stream(server) as answer:
        read_until(answer, b"first")
        server.feed.publish(Topic.LOG, {"text": "second"})
        read_until(answer, b"second")


def test_the_end_is_said_and_the_stream_ends(server: LiveServer) -> None:
    with stream(server) as answer:
        server.feed.end({"text": "The run has ended: 3 passed."})
        assert answer.read().endswith(b'"The run has ended: 3 passed."}\n\n')
    with stream(server) as answer:
        assert b"3 passed" in answer.read()


def test_a_client_that_stalls_costs_the_others_nothing(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.sendall(f"GET /s3cret/events HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        stalled.recv(100)
        with stream(server) as answer:
            for number in range(3 * feeds.MOST_BEHIND):
                server.feed.publish(Topic.LOG, {"text": f"{number:06} {'x' * 2000}"})
                read_until(answer, b"%06d" % number)
            assert server.feed.count == 1


def test_a_client_that_went_away_is_noticed(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "SILENCE_S", 0.01)
    with stream(server) as answer:
        read_until(answer, b"retry")
    for _ in range(500):
        if not server.feed.count:
            break
        threading.Event().wait(0.01)
    assert server.feed.count == 0


def test_windows_are_counted(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MOST_CLIENTS", 1)
    with stream(server) as answer:
        read_until(answer, b"retry")
        assert Answer(server, "/s3cret/events").status == 503


def test_who_watches_is_told_the_time_at_once_and_in_silence(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "SILENCE_S", 0.01)
    with stream(server) as answer:
        for _ in range(3):
            read_until(answer, b"event: alive")
            assert json.loads(answer.readline().removeprefix(b"data: "))["at_ms"] > 1.7e12


def test_many_connections_cost_no_more_threads(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other users of this computer have no word, but the threads and files that they cost are the measurement's."""

    def held() -> int:
        return sum("process_request_thread" in each.name for each in threading.enumerate())

    of_others = held()
    with contextlib.ExitStack() as idle:
        for _ in range(3 * servers.MOST_CONNECTIONS):
            idle.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        # Once the last one is refused, all were taken.
        last = idle.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
        assert last.recv(1) == b""
        assert held() <= servers.MOST_CONNECTIONS + of_others
    for _ in range(500):
        if server._http._room._value == servers.MOST_CONNECTIONS:
            break
        threading.Event().wait(0.01)
    assert Answer(server, "/s3cret/").status == 200


def test_nothing_stays_behind() -> None:
    made = LiveServer(Feed())
    made.close()
    assert not [each for each in threading.enumerate() if each.name == "ssdqual-live"]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", made.port), timeout=20)
