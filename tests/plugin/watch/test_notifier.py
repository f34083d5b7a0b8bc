"""Notifications of runs, received by a real HTTP server and a real SMTP server on this computer."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from aiosmtpd.smtp import Envelope as SMTPEnvelope

from pytest_ssdqual.plugin.options.notify_target import MailTarget, WebTarget, mail_server
from pytest_ssdqual.plugin.watch import notifier, stalls
from pytest_ssdqual.plugin.watch.delivery import deliver
from pytest_ssdqual.plugin.watch.notifier import Outbox
from pytest_ssdqual.qual.notification import Notification, Occasion

if TYPE_CHECKING:
    from support.fakes.inner_session import Inner

TOKEN = "T0K3N"  # noqa: S105
EVENT = Notification(
    Occasion.FAILURE, "steady IOPS of raid5x4: 80 IOPS, limit 100 IOPS: FAIL", "2026-11-24T12:00:00+00:00", "/runs/1",
    "dut", verdicts={"pass": 3, "fail": 1}, cause="cause: drive S1, slow",
)  # fmt: skip


class Receiver(ThreadingHTTPServer):
    """A webhook that records what it gets, after it has answered with each of ``answers`` once."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []
        super().__init__(("127.0.0.1", 0), ReceiverHandler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{TOKEN}"


class ReceiverHandler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status < 300:
            self.server.bodies.append(json.loads(body))
            self.server.headers.append(dict(self.headers))
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", self.server.url)
        self.end_headers()

    def do_GET(self) -> None:
        raise AssertionError("a redirected POST became a GET")

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Sink:
    """A mail server that stores what it gets."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []

    async def handle_DATA(self, server: object, session: object, envelope: SMTPEnvelope) -> str:
        self.mails.append((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=policy.default)))  # type: ignore[arg-type]
        return "250 OK"


@pytest.fixture
def sink() -> Iterator[tuple[Sink, str]]:
    sink = Sink()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(sink, hostname="127.0.0.1", port=port)
    controller.start()
    yield sink, f"smtp://127.0.0.1:{port}"
    controller.stop()


def test_a_url_gets_json(receiver: Receiver) -> None:
    deliver(WebTarget(receiver.url.replace("//", "//me:p%40ss@")), EVENT)
    (body,) = receiver.bodies
    assert body == {"schema": 1, "text": f"ssdqual, failure: {EVENT.sentence}", "what": "failure"} | {
        name: getattr(EVENT, name)
        for name in ("sentence", "time", "run_folder", "machine", "bay", "verdicts", "cause", "exit_status")
    }
    assert receiver.headers[0]["Authorization"] == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_answer_that_is_no_success_is_an_error(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    with pytest.raises(OSError, match=str(status)):
        deliver(WebTarget(receiver.url), EVENT)
    assert not receiver.bodies


def test_addresses_get_mail(sink: tuple[Sink, str]) -> None:
    received, server = sink
    hostile = Notification(Occasion.STALL, "raid5x4\r\nBcc: x@y\x1b", EVENT.time, "", "dut")
    for event in (EVENT, hostile):
        deliver(MailTarget(("a@b.example", "c@d.example"), mail_server(server)), event)
    (recipients, mail), (_, second) = received.mails
    assert recipients == ["a@b.example", "c@d.example"]
    assert mail["Subject"].strip() == f"ssdqual, failure: {EVENT.sentence}"
    text = mail.get_content()
    assert {EVENT.sentence, "cause: cause: drive S1, slow", "verdicts: 3 pass, 1 fail"} <= set(text.splitlines())
    assert second["Bcc"] is None


def test_a_password_is_not_sent_without_tls(sink: tuple[Sink, str]) -> None:
    received, server = sink
    with pytest.raises(Exception, match="STARTTLS"):
        deliver(MailTarget(("a@b",), mail_server(server.replace("//", "//me:secret@"))), EVENT)
    assert not received.mails


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """TLS of a server on this computer; this process trusts its certificate."""
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return context


@contextmanager
def mail_server_with_password(context: ssl.SSLContext, passwords: list[bytes]) -> Iterator[tuple[Sink, str]]:
    """A mail server that takes mail only after STARTTLS and a login, and stores the passwords that it gets."""

    def login(server: object, session: object, envelope: object, mechanism: str, data: LoginPassword) -> AuthResult:
        passwords.append(data.password)
        return AuthResult(success=True)

    sink = Sink()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(
        sink, hostname="127.0.0.1", port=port, tls_context=context, require_starttls=True, authenticator=login,
        auth_required=True, auth_require_tls=True,
    )  # fmt: skip
    controller.start()
    try:
        yield sink, f"smtp://me:secret@127.0.0.1:{port}"
    finally:
        controller.stop()


def test_a_password_is_sent_after_starttls(trusted: ssl.SSLContext) -> None:
    passwords: list[bytes] = []
    with mail_server_with_password(trusted, passwords) as (sink, server):
        deliver(MailTarget(("a@b.example",), mail_server(server)), EVENT)
    assert passwords == [b"secret"]
    ((recipients, mail),) = sink.mails
    assert recipients == ["a@b.example"]
    assert mail["Subject"].strip() == EVENT.title


def test_a_server_with_a_strange_certificate_gets_no_password(
    trusted: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    passwords: list[bytes] = []
    with mail_server_with_password(trusted, passwords) as (sink, server), pytest.raises(ssl.SSLCertVerificationError):
        deliver(MailTarget(("a@b.example",), mail_server(server)), EVENT)
    assert not passwords
    assert not sink.mails


def test_sendmail_gets_the_mail(tmp_path: Path) -> None:
    program, copy = tmp_path / "sendmail", tmp_path / "mail"
    program.write_text(f'#!/bin/sh\necho "$@" >{copy}; cat >>{copy}\n')
    program.chmod(0o755)
    deliver(MailTarget(("a@b",), None, str(program)), EVENT)
    assert copy.read_text().startswith("-i a@b\nFrom: ")
    program.write_text("#!/bin/sh\ncat >/dev/null; echo no route >&2; exit 75\n")
    with pytest.raises(OSError, match="status 75: no route"):
        deliver(MailTarget(("a@b",), None, str(program)), EVENT)


def test_a_second_attempt_is_made_and_no_third(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "RETRY_S", 0.0)
    calls: list[int] = []

    def send(event: Notification) -> None:
        calls.append(len(calls))
        if len(calls) != 2:
            raise OSError(f"cannot reach http://h/{TOKEN}")

    box = Outbox("hook", send)
    box.put(EVENT)
    box.put(EVENT)
    box.close(time.monotonic() + 10)
    assert len(calls) == 4
    assert box.failed == [("hook was not notified of the failure: OSError: cannot reach http://h/…", "/runs/1")]


def test_a_receiver_that_never_answers_is_given_up() -> None:
    never = threading.Event()
    box = Outbox("hook", lambda event: never.wait(60))
    box.put(EVENT)
    box.close(time.monotonic())
    assert box.failed == [("hook was not notified of the failure: no answer in time", "/runs/1")]
    never.set()


CONFTEST = """
    import pathlib
    def pytest_ssdqual_notify(notification):
        with pathlib.Path("heard").open("a") as file:
            file.write(f"{notification.what}\\n")
        if notification.what == "error" and not pathlib.Path("calm").exists():
            raise RuntimeError("a broken hook")
"""
SOME = ("-k", "iops or p99")


def heard(inner: Inner) -> list[str]:
    return (inner.pytester.path / "heard").read_text().split()


@pytest.mark.parametrize("workers", [(), ("-n1",)])
def test_a_run_notifies_its_first_failure_and_its_end_once(
    inner: Inner, promises: str, receiver: Receiver, workers: tuple[str, ...]
) -> None:
    inner.pytester.makeconftest(CONFTEST)
    (inner.pytester.path / "calm").touch()
    notify = f"--ssd-notify={receiver.url}"
    result = inner.run("--ssd-devices=lab:3", promises, *SOME, notify, *workers)
    (folder,) = (inner.pytester.path / "ssdqual-runs").iterdir()
    ends = [each for each in receiver.bodies if each["what"] == "end"]
    (end,) = ends
    assert end["exit_status"] == result.ret
    assert end["run_folder"] == str(folder)
    outcomes = [str(each["outcome"]) for each in inner.records("verdict", "observation")]
    assert {name: count for name, count in end["verdicts"].items() if count and name != "error"} == {
        name: outcomes.count(name) for name in set(outcomes)
    }
    assert [each["what"] for each in receiver.bodies] == heard(inner)
    assert [each["what"] for each in receiver.bodies].count("failure") == ("fail" in outcomes)
    for file in folder.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes(), file
    assert "was not notified" not in result.stdout.str()


def test_each_bay_notifies_once_and_says_which_it_is(inner: Inner, promises: str, receiver: Receiver) -> None:
    bays = [f"--ssd-devices=root@{name}:/dev/nvme*" for name in ("dut1", "dut2")]
    inner.run(*bays, promises, "--ssd-protocol=quick", *SOME, f"--ssd-notify={receiver.url}", "-n2")
    failures = [each for each in receiver.bodies if each["what"] == "failure"]
    assert sorted(each["bay"] for each in failures) == ["dut1", "dut2"]
    assert all(each["text"].startswith(f"ssdqual, failure: {each['bay']}: ") for each in failures)
    assert all(each["machine"] == f"root@{each['bay']}" for each in failures)
    assert [each["run_folder"].rpartition("/")[2] for each in failures] == [each["bay"] for each in failures]
    (end,) = [each for each in receiver.bodies if each["what"] == "end"]
    assert end["sentence"].endswith("; failures or errors on dut1, dut2")
    assert receiver.bodies[-1] == end


def test_many_bays_are_no_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Notification] = []
    hook = SimpleNamespace(get_hookimpls=lambda: [1])
    config = SimpleNamespace(hook=SimpleNamespace(pytest_ssdqual_notify=hook))
    runs = [SimpleNamespace(name=f"dut{n}", journal=None, bay=SimpleNamespace(machine=f"dut{n}")) for n in range(40)]
    found = notifier.Notifier(cast(pytest.Config, config), (), cast(Any, runs), None, 0.0)
    monkeypatch.setattr(Outbox, "put", lambda box, event: heard.append(event))
    for run in runs:
        for message in ("the machine is lost", "another error"):
            found.reported(run.name, (), message)
    found.ended(1)
    *errors, end = heard
    assert [each.bay for each in errors] == [f"dut{n}" for n in range(10)]
    assert errors[0].verdicts["error"] == 1
    assert errors[0].sentence == "the machine is lost"
    assert errors[-1].sentence == f"the machine is lost {notifier.THE_LAST}"
    assert end.sentence.startswith("The run has ended, exit status 1: 80 error; failures or errors on dut0, dut1, ")
    assert end.sentence.endswith(", dut9 and 30 more")


def test_errors_are_notified_once_and_a_dead_receiver_changes_no_outcome(
    inner: Inner, promises: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "RETRY_S", 0.0)
    monkeypatch.setenv("SIMULATED_BROKEN", "raid5x3")
    inner.pytester.makeconftest(CONFTEST)
    result = inner.run("--ssd-devices=lab:3", promises, *SOME, f"--ssd-notify=http://127.0.0.1:1/{TOKEN}")
    assert heard(inner) == ["error", "error", "end"]
    assert result.ret == 1
    lines = result.stdout.str()
    assert "ssdqual: http://127.0.0.1:1/… was not notified of the end: " in lines
    assert "ssdqual: pytest_ssdqual_notify was not notified of the error: RuntimeError: a broken hook" in lines
    assert {"http://127.0.0.1:1/…", "pytest_ssdqual_notify"} == {
        str(each["sentence"]).partition(" was")[0] for each in inner.records("not_notified")
    }
    assert TOKEN not in lines


def test_a_stall_is_notified_once_while_it_lasts(
    inner: Inner, promises: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "LATE", 0.0)
    monkeypatch.setenv("SIMULATED_TAKES", "0.6")
    stall = ("-o", "ssd_notify_stall=100 ms", "-o", f"ssd_notify={receiver.url}")
    inner.run("--ssd-devices=lab:3", promises, "-k", "iops and randread", *stall)
    sentences = [each["sentence"] for each in receiver.bodies if each["what"] == "stall"]
    assert sentences
    assert all(each.startswith("raid5x3: ") for each in sentences)
    assert len(set(sentences)) == len(sentences)


def test_a_collection_and_a_refused_run_send_no_notification(inner: Inner, promises: str, receiver: Receiver) -> None:
    refused = inner.refused("--ssd-devices=lab:3", promises, f"--ssd-notify={receiver.url} y{TOKEN}")
    assert "mailto:" in refused
    assert TOKEN not in refused
    refused = inner.refused("--ssd-devices=lab:3", promises, "-o", "ssd_notify_stall=soon")
    assert "ssd_notify_stall=soon" in refused
    inner.run("--ssd-devices=lab:3", promises, "--collect-only", f"--ssd-notify={receiver.url}")
    assert not receiver.bodies
