"""Receivers of ``--ssd-notify``: what apprise can reach, JSON by HTTP POST, and mail; no message has their secrets."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_ssdqual.qual.notification import Notification, Occasion, redacted

if TYPE_CHECKING:
    from apprise import Apprise

#: Environment variable with the mail server, before the ini value ``ssd_smtp``.
SMTP = "SSDQUAL_SMTP"
MISSING = "this receiver needs apprise: pip install 'pytest-ssdqual[notify]'"
FORMS = (
    "write https://HOST/PATH, mailto:NAME@HOST[,NAME@HOST...], a URL of apprise, or $NAME of a variable that is set to "
    "one; a mail server is mailto[s]://[USER:PASSWORD@]HOST[:PORT]"
)
NO_MAIL = f"mailto: needs sendmail or a mail server: install the former, or set {SMTP} or ssd_smtp"
#: A web hook: what follows ``http`` without the query, and the query.
WEB_HOOK = re.compile(r"http(s?://[^/?#]+[^?#]*)(?:\?([^#]*))?")
#: ``mailto:``, and addresses or local users. A line end would begin another header.
MAIL = re.compile(r"mailto:([\w.+=~@:-]+(?:,[\w.+=~@:-]+)*)", re.ASCII)
#: Folders of sendmail that a user's PATH lacks.
SBIN = "/usr/sbin:/usr/lib"
#: apprise removes these fields of its JSON if an extra field has the name and no value.
APPRISE_FIELDS = ("version", "title", "message", "attachments", "type")
#: Types by which apprise chooses colours and priorities; that of an end is ``info``.
TYPES = {Occasion.FAILURE: "failure", Occasion.ERROR: "failure", Occasion.STALL: "warning"}


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver; its name contains no secret."""

    name: str
    #: Raises any exception if the receiver did not take the notification.
    send: Callable[[Notification], object]


def receivers(config: pytest.Config) -> list[Receiver]:
    """Return the receivers of ``--ssd-notify`` and the ini value, each once; ``pytest.UsageError`` for a wrong one."""
    texts = [*config.getoption("ssd_notify"), *config.getini("ssd_notify")]
    server = os.environ.get(SMTP) or config.getini("ssd_smtp")
    try:
        return [receiver(text, server) for text in dict.fromkeys(map(str.strip, texts)) if text]
    except ValueError as error:
        raise pytest.UsageError(f"--ssd-notify: {error}") from None


def receiver(text: str, server: str) -> Receiver:
    """Return a receiver; mail goes to ``server``, or to sendmail if that is empty.

    Raises ``ValueError`` in one sentence, without secrets.
    """
    url = os.path.expandvars(text).strip()
    if hook := WEB_HOOK.fullmatch(url):
        # A dash tells apprise's own options from the query of the request.
        query = "".join(f"&-{each}" for each in (hook[2] or "").split("&") if each)
        url = f"json{hook[1]}?redirect=no{query}"
    elif mail := MAIL.fullmatch(url):
        if not server:
            return Receiver(redacted(text), partial(_sendmail, _sendmail_program(), mail[1]))
        url = _mail_url(os.path.expandvars(server).strip(), mail[1])
    return Receiver(redacted(text), partial(_notify, _service(redacted(text), url)))


def _service(name: str, url: str) -> Apprise:
    """Return the service of a URL; ``ValueError`` if apprise is missing, or warns about the URL."""
    try:
        import apprise
    except ImportError as error:
        raise ValueError(MISSING) from error
    # Their messages have whole URLs, and pytest may record them.
    logging.getLogger("apprise").addFilter(_redact)
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    service = apprise.Apprise(asset=apprise.AppriseAsset(app_id="pytest-ssdqual"))
    # apprise loads deprecated modules, and sessions may make errors of warnings.
    with warnings.catch_warnings(action="ignore"), apprise.LogCapture(level=logging.WARNING) as complaints:
        is_known = service.add(url)
    # A recorded command that is pasted has the mark of the redaction in the URL.
    if not is_known or complaints.getvalue() or re.search(r"[…\s]", url):
        raise ValueError(f"{name!r} is no receiver: {FORMS}")
    if any(each.password and getattr(each, "secure_mode", "") == "insecure" for each in service):
        raise ValueError(f"{name} would send a password in clear text: write mailtos://")
    return service


def _redact(record: logging.LogRecord) -> bool:
    record.msg = redacted(record.getMessage())
    record.args = ()
    return True


def _notify(service: Apprise, event: Notification) -> None:
    """Notify by apprise; ``OSError`` with its warnings if the service did not take the notification."""
    for plugin in service:
        if plugin.service_name == "JSON":
            plugin.payload_extras = dict.fromkeys(APPRISE_FIELDS, "") | event.to_json()
    with service.notify(event.body, event.title, TYPES.get(event.what, "info"), "text") as result:
        if not result:
            raise OSError(" ".join(entry.message for entry in result.logs()))


def _mail_url(server: str, addresses: str) -> str:
    """Return the URL of a mail server with recipients; the first of them is the sender if the server names no user."""
    sender = "" if "@" in server else f"&from={addresses.partition(',')[0]}"
    return f"{server}{'&' if '?' in server else '?'}to={addresses}{sender}"


def _sendmail_program() -> str:
    """Return the path of sendmail; ``ValueError`` if it is not installed."""
    if program := shutil.which("sendmail", path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}"):
        return program
    raise ValueError(NO_MAIL)


def _sendmail(program: str, addresses: str, event: Notification) -> None:
    """Send mail by the local sendmail; ``CalledProcessError`` if it refuses."""
    message = EmailMessage()
    message["To"] = addresses
    message["Subject"] = event.title
    message.set_content(event.body)
    subprocess.run([program, "-i", "-t"], input=bytes(message), capture_output=True, timeout=60, check=True)
