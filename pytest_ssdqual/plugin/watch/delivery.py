"""Delivers one notification to one receiver: JSON by HTTP POST, or mail; every error is an exception."""

from __future__ import annotations

import base64
import json
import smtplib
import socket
import ssl
import subprocess
import urllib.request
from email.message import EmailMessage
from urllib.parse import unquote, urlsplit, urlunsplit

from pytest_ssdqual.plugin.options.notify_target import MailServer, MailTarget, Target, WebTarget
from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.notification import Notification
from pytest_ssdqual.rig.machine.machine import own_user

#: Seconds for a connection and for each answer.
TIMEOUT_S = 10.0
SUBJECT_CHARACTERS = 150


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would repeat a redirected POST as a GET without its body, and report success."""

    def redirect_request(self, *args: object, **names: object) -> None:
        return None


def deliver(target: Target, event: Notification) -> None:
    """Deliver it; ``OSError``, ``HTTPException`` or ``SMTPException`` if the receiver did not take it."""
    if isinstance(target, WebTarget):
        post(target, event)
    else:
        mail(target, event)


def post(target: WebTarget, event: Notification) -> None:
    """POST the notification as JSON."""
    url, headers = _without_user(target.url)
    headers |= {"Content-Type": "application/json", "User-Agent": "pytest-ssdqual"}
    body = json.dumps(event.to_json()).encode()
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")  # noqa: S310 (http or https)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as answer:
        answer.read(1)


def _without_user(url: str) -> tuple[str, dict[str, str]]:
    """Return the URL without user and password, which urllib takes for a part of the host, and their header."""
    found = urlsplit(url)
    if found.username is None:
        return url, {}
    secret = f"{unquote(found.username)}:{unquote(found.password or '')}".encode()
    plain = urlunsplit(found._replace(netloc=found.netloc.rpartition("@")[2]))
    return plain, {"Authorization": f"Basic {base64.b64encode(secret).decode()}"}


def mail(target: MailTarget, event: Notification) -> None:
    """Send the notification as mail."""
    message = as_mail(target, event)
    if target.server:
        _by_smtp(target.server, message)
        return
    done = subprocess.run(
        [target.sendmail, "-i", *target.addresses], input=message.as_bytes(), capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    if done.returncode:
        complaint = safe_text.line(done.stderr.decode("utf-8", "replace").strip())
        raise OSError(f"sendmail ended with status {done.returncode}: {complaint}")


def as_mail(target: MailTarget, event: Notification) -> EmailMessage:
    """Return the mail: the sentence, the facts, and the JSON of a request."""
    message = EmailMessage()
    message["From"] = _sender(target)
    message["To"] = ", ".join(target.addresses)
    message["Subject"] = safe_text.line(event.title, SUBJECT_CHARACTERS)
    counts = ", ".join(f"{count} {name}" for name, count in event.verdicts.items() if count)
    facts = {"machine": event.machine, "bay": event.bay, "cause": event.cause, "verdicts": counts}
    facts |= {"run folder": event.run_folder, "time": event.time}
    lines = [f"{name}: {value}" for name, value in facts.items() if value]
    message.set_content("\n".join([event.sentence, "", *lines, ""]))
    return message


def _sender(target: MailTarget) -> str:
    """Return the user of the mail server if that is an address, else this user on this computer."""
    if target.server and "@" in target.server.user:
        return target.server.user
    return f"{own_user('ssdqual')}@{socket.getfqdn()}"


def _by_smtp(server: MailServer, message: EmailMessage) -> None:
    secure = ssl.create_default_context()
    if server.is_tls:
        connected: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_S, context=secure)
    else:
        connected = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)
    with connected:
        if server.user:
            if not server.is_tls:  # a password is never sent in clear text
                connected.starttls(context=secure)
            connected.login(server.user, server.password)
        connected.send_message(message)
