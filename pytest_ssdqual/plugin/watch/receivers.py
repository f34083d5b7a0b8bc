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
from urllib.parse import unquote, urlencode, urlsplit

import pytest

from pytest_ssdqual.qual.notification import Notification, Occasion, redacted

if TYPE_CHECKING:
    from apprise import Apprise

#: Environment variable with the mail server, before the ini value ``ssd_smtp``.
SMTP = "SSDQUAL_SMTP"
MISSING = "this receiver needs apprise: pip install 'pytest-ssdqual[notify]'"
FORMS = "write https://HOST/PATH, mailto:NAME@HOST[,NAME@HOST...], a URL of apprise, or $NAME of a variable with one"
NO_MAIL = f"mailto: needs sendmail or a mail server: install the former, or set {SMTP} or ssd_smtp"
#: Seconds before the only other attempt.
RETRY_S = 5.0
#: Addresses, or local users, separated by commas. A line end would begin another header.
ADDRESSES = re.compile(r"[\w.+=~-]+(@[\w.:-]+)?(,[\w.+=~-]+(@[\w.:-]+)?)*", re.ASCII)
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
    try:
        server = os.environ.get(SMTP) or config.getini("ssd_smtp")
        return [receiver(text, server) for text in dict.fromkeys(map(expanded, texts)) if text]
    except ValueError as error:
        raise pytest.UsageError(f"--ssd-notify: {error}") from None


def expanded(text: str) -> str:
    """Return the value of the environment variable if the text is ``$NAME``; ``ValueError`` if it is not set."""
    text = text.strip()
    if not text.startswith("$"):
        return text
    name = text.strip("${}")
    if not (value := os.environ.get(name, "").strip()):
        raise ValueError(f"the environment variable {name} is not set: export it, or write the receiver itself")
    return value


def receiver(text: str, server: str) -> Receiver:
    """Return a receiver; mail goes to ``server``, or to sendmail if that is empty.

    Raises ``ValueError`` in one sentence, without secrets.
    """
    scheme, _, rest = text.partition(":")
    if scheme == "mailto" and not rest.startswith("//"):
        return Receiver(text, _mail(rest, server))
    url = _json_url(text) if scheme in ("http", "https") else text
    return Receiver(redacted(text), partial(_notify, _service(text, url)))


def _service(text: str, url: str) -> Apprise:
    """Return the service of a URL; ``ValueError`` about ``text`` if apprise is missing, or warns about the URL."""
    try:
        import apprise
    except ImportError as error:
        raise ValueError(MISSING) from error
    # Their messages have whole URLs, and pytest may record them.
    logging.getLogger("apprise").addFilter(_redact)
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    asset = apprise.AppriseAsset(app_id="pytest-ssdqual", default_service_retry=1, default_service_wait=RETRY_S)
    service = apprise.Apprise(asset=asset)
    # apprise loads deprecated modules, and sessions may make errors of warnings.
    with warnings.catch_warnings(action="ignore"), apprise.LogCapture(level=logging.WARNING) as complaints:
        is_known = service.add(url)
    # A recorded command that is pasted has the mark of the redaction in the URL.
    if not is_known or complaints.getvalue() or re.search(r"[…\s]", url):
        raise ValueError(f"{redacted(text)} is no receiver: {FORMS}")
    if any(each.password and getattr(each, "secure_mode", "") == "insecure" for each in service):
        raise ValueError(f"{redacted(text)} would send a password in clear text: write mailtos://")
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


def _json_url(url: str) -> str:
    """Return apprise's URL of a web hook; there a dash marks what belongs to the query of the request."""
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError(f"{redacted(url)} has no host or no port: {FORMS}")
    query = "".join(f"&-{each}" for each in parts.query.split("&") if each)
    return f"json{url.partition('?')[0].removeprefix('http')}?redirect=no{query}"


def _mail(addresses: str, server: str) -> Callable[[Notification], object]:
    """Return what sends mail to these addresses; ``ValueError`` for a wrong one, and if there is no way of mail."""
    if not ADDRESSES.fullmatch(addresses):
        raise ValueError(f"mailto:{addresses!r} has a wrong address: {FORMS}")
    if server:
        url = _server_url(expanded(server), addresses)
        return partial(_notify, _service(f"mailto:{addresses} by {redacted(server)}", url))
    program = shutil.which("sendmail", path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}")
    if not program:
        raise ValueError(NO_MAIL)
    return partial(_sendmail, program, addresses)


def _server_url(server: str, addresses: str) -> str:
    """Return apprise's URL of a mail server and addresses; TLS before a password."""
    parts = urlsplit(server)
    user = unquote(parts.username or "")
    modes = {"smtps": "ssl", "smtp": "starttls" if user else "insecure"}
    if parts.scheme not in modes or not parts.hostname:
        raise ValueError(f"{redacted(server)} is no mail server: write smtp[s]://[USER:PASSWORD@]HOST[:PORT]")
    sender = user if "@" in user else addresses.partition(",")[0]
    query = urlencode({"mode": modes[parts.scheme], "from": sender, "to": addresses})
    return f"mailto://{parts.netloc}{parts.path}?{query}"


def _sendmail(program: str, addresses: str, event: Notification) -> None:
    """Send mail by the local sendmail; ``CalledProcessError`` if it refuses."""
    message = EmailMessage()
    message["To"] = addresses
    message["Subject"] = event.title
    message.set_content(event.body)
    subprocess.run([program, "-i", "-t"], input=bytes(message), capture_output=True, timeout=60, check=True)
