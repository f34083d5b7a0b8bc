"""Receivers of ``--ssd-notify``: what they get, what is none, and that no secret is printed or recorded."""

from __future__ import annotations

import email
import logging
import smtplib
import sys
import threading
from email.policy import default
from pathlib import Path
from unittest.mock import Mock, call

import pytest
from support.fakes.webhook import TOKEN, Webhook

from pytest_ssdqual.plugin.watch import receivers
from pytest_ssdqual.plugin.watch.receivers import receiver
from pytest_ssdqual.qual.notification import Notification, Occasion, redacted, without_secrets

HOOK = "https://user:hunter2@hooks.example:8443/services/T0K3N?key=s3cret"
SECRETS = ("T0K3N", "s3cret", "hunter2")
EVENT = Notification(
    Occasion.FAILURE, "steady IOPS of raid5x4: 80 IOPS, limit 100 IOPS: FAIL", "2026-11-24T12:00:00+00:00", "/runs/1",
    "dut", verdicts={"pass": 3, "fail": 1}, cause="cause: drive S1, slow",
)  # fmt: skip


def test_web_hook_gets_the_event_as_json(webhook: Webhook) -> None:
    receiver(webhook.url.replace("//", "//me:p%40ss@") + "?key=a%20b&sig=1", "").send(EVENT)
    (body,) = webhook.bodies
    assert body == {"schema": 1, "text": f"ssdqual, failure: {EVENT.sentence}", "what": "failure"} | {
        name: getattr(EVENT, name)
        for name in ("sentence", "time", "run_folder", "machine", "bay", "verdicts", "cause", "exit_status")
    }
    assert webhook.headers[0]["Authorization"] == "Basic bWU6cEBzcw=="
    assert webhook.paths == [f"/{TOKEN}?key=a+b&sig=1"]


@pytest.mark.parametrize("status", [302, 404, 500])
def test_answer_that_is_no_success_is_an_error(webhook: Webhook, status: int) -> None:
    webhook.answers = [status]
    with pytest.raises(OSError, match=str(status)):
        receiver(webhook.url, "").send(EVENT)
    assert not webhook.bodies


def test_debug_messages_of_requests_are_not_recorded(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    receiver(webhook.url, "").send(EVENT)
    assert webhook.bodies
    with pytest.raises(OSError, match=r".+"):
        receiver(f"http://127.0.0.1:1/{TOKEN}", "").send(EVENT)
    assert TOKEN not in caplog.text


def test_a_delivery_leaves_no_thread_that_python_would_wait_for(webhook: Webhook) -> None:
    before = set(threading.enumerate())
    receiver(webhook.url, "").send(EVENT)
    assert not [thread.name for thread in set(threading.enumerate()) - before if not thread.daemon]


@pytest.mark.parametrize(
    ("server", "sender"),
    [
        ("mailto://h.example", "a@b.example"),
        ("mailtos://u%40x.example:p@h.example", "u@x.example"),
        ("mailtos://u:p@h.example", "u@h.example"),
        ("mailtos://u:p@10.0.0.1", "a@b.example"),
        ("mailtos://u:p@mail", "a@b.example"),
        ("mailtos://u:p@h.example?from=lab@y.example", "lab@y.example"),
    ],
)
def test_mail_has_an_address_as_its_sender(monkeypatch: pytest.MonkeyPatch, server: str, sender: str) -> None:
    program = Mock()
    program.return_value.sendmail.return_value = {}
    monkeypatch.setattr(smtplib, "SMTP", program)
    receiver("mailto:a@b.example", server).send(EVENT)
    assert program.return_value.sendmail.call_args.args[0] == sender


@pytest.mark.parametrize(
    ("server", "address", "asked"),
    [
        ("mailto://mail.example", ("mail.example", 25), ["sendmail"]),
        ("mailtos://me:p%3Aw@h.example", ("h.example", 587), ["starttls", "login", "sendmail"]),
        ("mailtos://me:p%3Aw@h.example:1465?mode=ssl", ("h.example", 1465), ["login", "sendmail"]),
    ],
)
def test_mail_server_gets_a_password_after_tls(
    monkeypatch: pytest.MonkeyPatch, server: str, address: tuple[str, int], asked: list[str]
) -> None:
    program = Mock()
    program.return_value.sendmail.return_value = {}
    monkeypatch.setattr(smtplib, "SMTP_SSL" if "ssl" in server else "SMTP", program)
    receiver("mailto:a@b.example,c@d.example", server).send(EVENT)
    assert program.call_args.args[:2] == address
    session = program.return_value
    assert [name for name, _, _ in session.method_calls if name != "quit"] == [*asked, "sendmail"]
    assert session.login.call_args_list == [call("me", "p:w")] * ("login" in asked)
    assert [sent.args[1] for sent in session.sendmail.call_args_list] == [["a@b.example"], ["c@d.example"]]
    mail = email.message_from_string(session.sendmail.call_args.args[2], policy=default)
    assert mail["Subject"] == EVENT.title
    assert "drive S1, slow" in mail.as_string()


def test_sendmail_gets_the_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, copy = tmp_path / "sendmail", tmp_path / "mail"
    program.write_text(f'#!/bin/sh\necho "$@" >{copy}; cat >>{copy}\n')
    program.chmod(0o755)
    monkeypatch.setattr(receivers, "SBIN", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    receiver("mailto:root", "").send(EVENT)
    arguments, _, mail = copy.read_text().partition("\n")
    assert arguments == "-i -t"
    assert email.message_from_string(mail, policy=default)["Subject"].strip() == EVENT.title
    program.write_text("#!/bin/sh\ncat >/dev/null; echo no such user >&2; exit 75\n")
    with pytest.raises(OSError, match="no such user"):
        receiver("mailto:root", "").send(EVENT)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://h.example/x", "https://h.example/a b", "hooks.example/x",
        "https://", "https:///x", "file:///etc/passwd", "https://h.example/…",
        "$UNSET", "slack://T0K3N", "mailto:", "mailto:a@b.example\nBcc: c@d", "mailto:a@b.example c@d",
        "mailto://u:hunter2@h.example", "mailto:u:hunter2@h.example",
        "https://h.example/x?T0K3N=1&T0K3N=2", "https://h.example/x?key=T0K3N+x",
    ],
)  # fmt: skip
def test_wrong_receiver_is_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="write") as raised:
        receiver(text, "mailto://h.example")
    assert "\n" not in str(raised.value)
    assert not [secret for secret in SECRETS if secret in str(raised.value)]


@pytest.mark.parametrize("server", ["h:25", "smtp://u:hunter2@h.example", "mailto://u:hunter2@h.example", "$UNSET"])
def test_wrong_mail_server_is_refused_without_its_password(server: str) -> None:
    with pytest.raises(ValueError, match="write") as raised:
        receiver("mailto:a@b.example", server)
    assert "hunter2" not in str(raised.value)


def test_mail_without_a_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receivers, "SBIN", "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ValueError, match="SSDQUAL_SMTP or ssd_smtp"):
        receiver("mailto:a@b.example", "")


def test_receiver_without_apprise_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(ValueError, match=r"pytest-ssdqual\[notify\]"):
        receiver(HOOK, "")


def test_variable_is_replaced_by_its_value(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", f" {webhook.url} ")
    for text in ("$HOOK", "${HOOK}"):
        hook = receiver(text, "")
        hook.send(EVENT)
        assert hook.name == text
    assert len(webhook.bodies) == 2


def test_no_name_has_a_secret() -> None:
    names = [receiver(HOOK, "").name, receiver("mailto:a@b.example", "mailtos://u:hunter2@h.example").name]
    assert names == ["https://…", "mailto:a@b.example"]
    assert redacted(f"URLError: open {HOOK}") == "URLError: open https://…"


@pytest.mark.parametrize(
    "words",
    [
        [f"--ssd-notify={HOOK}"],
        ["--ssd-notify", HOOK],
        ["-o", f"ssd_notify={HOOK}\n{HOOK}"],
        [f"--override-ini=ssd_notify = {HOOK} x"],
        ["-ossd_smtp=mailtos://u:hunter2@h"],
    ],
)
def test_recorded_command_line_has_no_secret(words: list[str]) -> None:
    recorded = " ".join(without_secrets(["pytest", *words, "suites/raid5", "--ssd-notify=mailto:a@b"]))
    assert not [secret for secret in SECRETS if secret in recorded]
    assert recorded.startswith("pytest -")
    assert recorded.endswith("… suites/raid5 --ssd-notify=mailto:a@b")
