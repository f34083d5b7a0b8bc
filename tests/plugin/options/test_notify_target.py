"""Receivers of notifications: what is one, and that no secret is printed."""

from __future__ import annotations

import pytest

from pytest_ssdqual.plugin.options import notify_target
from pytest_ssdqual.plugin.options.notify_target import MailServer, MailTarget, WebTarget, mail_server, parse
from pytest_ssdqual.qual.notification import redacted, without_secrets

HOOK = "https://user:hunter2@hooks.example:8443/services/T0K3N?key=s3cret"
NOWHERE = {"PATH": "/nonexistent", "SSDQUAL_SMTP": "smtp://mail.example"}


def test_a_receiver_is_a_url_addresses_or_a_variable() -> None:
    found = parse(
        [HOOK, " mailto:a@b.example,root ", "$HOOK", "${HOOK}", ""], "", {**NOWHERE, "HOOK": "http://h.example/x"}
    )
    assert found == (
        WebTarget(HOOK),
        MailTarget(("a@b.example", "root"), MailServer("mail.example", 25, False)),
        WebTarget("http://h.example/x"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "ftp://h.example/x", "hooks.example/x", "https://", "https:///x", "file:///etc/passwd", "https://h.example/…",
        "https://h.example/a b",
        "http://h:99999/", "mailto:", "mailto:-Cfile@x", "mailto:a@b\nBcc: c@d", "mailto:a@b,,c@d",
        "$UNSET", "mailto:a b@c",
    ],
)  # fmt: skip
def test_anything_else_is_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|export") as raised:
        parse([text], "", NOWHERE)
    assert "\n" not in str(raised.value)


def test_without_a_way_of_mail_the_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify_target, "SBIN", "/nonexistent")  # this computer may have a mail server
    with pytest.raises(ValueError, match="set SSDQUAL_SMTP or ssd_smtp"):
        parse(["mailto:a@b"], "", {"PATH": "/nonexistent"})


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("smtp://h", MailServer("h", 25, False)),
        ("smtp://me%40h:p%3Aw@h", MailServer("h", 587, False, "me@h", "p:w")),
        ("smtps://u:p@h:1465", MailServer("h", 1465, True, "u", "p")),
    ],
)
def test_a_mail_server_has_the_usual_ports(text: str, server: MailServer) -> None:
    assert mail_server(text) == server


@pytest.mark.parametrize("text", ["h:25", "http://u:hunter2@h", "smtp://u:hunter2@h/path", "smtp://"])
def test_what_is_no_mail_server_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ValueError, match="is no mail server") as raised:
        mail_server(text)
    assert "hunter2" not in str(raised.value)


def test_no_representation_has_a_secret() -> None:
    (web,) = parse([HOOK], "", {})
    mail = MailTarget(("a@b",), mail_server("smtp://u:hunter2@h"))
    shown = f"{web} {web!r} {mail} {mail!r} {redacted(f'URLError: cannot open {HOOK}')}"
    assert "https://hooks.example:8443/…" in shown
    assert not [each for each in ("T0K3N", "s3cret", "hunter2") if each in shown]


@pytest.mark.parametrize(
    "words",
    [
        [f"--ssd-notify={HOOK}"],
        ["--ssd-notify", HOOK],
        ["-o", f"ssd_notify={HOOK}\n{HOOK}"],
        [f"--override-ini=ssd_notify = {HOOK}"],
        ["-ossd_smtp=smtp://u:hunter2@h"],
    ],
)
def test_a_recorded_command_line_has_no_secret(words: list[str]) -> None:
    found = " ".join(without_secrets(["pytest", *words, "suites/raid5", "--ssd-notify=mailto:a@b"]))
    assert not [each for each in ("T0K3N", "s3cret", "hunter2") if each in found]
    assert found.startswith("pytest -")
    assert found.endswith("… suites/raid5 --ssd-notify=mailto:a@b")
