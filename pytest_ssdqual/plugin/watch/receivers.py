"""Receivers of ``--ssd-notify``: what apprise can reach, JSON by HTTP POST, and mail; no message has their secrets."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from email.message import EmailMessage
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from pytest_ssdqual.qual import safe_text
from pytest_ssdqual.qual.frozen import frozen
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
#: A web hook: an s or nothing, what follows the scheme without the query, and the query.
WEB_HOOK = re.compile(r"http(s?)(://[^/?#]+[^?#]*)(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE)
_ADDRESS = r"[\w.+=~-]+(?:@[a-z0-9][a-z0-9.-]*)?"
#: ``mailto:``, and addresses, or by sendmail local users. A line end would begin another header.
MAIL = re.compile(rf"mailto:({_ADDRESS}(?:,[ ]?{_ADDRESS})*)", re.ASCII | re.IGNORECASE)
#: Host of a mail server by which apprise completes a user to an address.
DOMAIN = re.compile(r".+\.[a-z]+", re.IGNORECASE)
#: Longest sendmail message that is reported, in characters.
MOST_CHARACTERS = 200
#: Folders of sendmail that a user's PATH lacks.
SBIN = "/usr/sbin:/usr/lib"
#: apprise removes these fields of its JSON if an extra field has the name and no value.
APPRISE_FIELDS = ("version", "title", "message", "attachments", "type")
#: Types by which apprise chooses colours and priorities; that of an end is ``info``.
TYPES = {Occasion.FAILURE: "failure", Occasion.ERROR: "failure", Occasion.STALL: "warning"}


@frozen
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
        fields = [each for each in (hook[3] or "").split("&") if each]
        names = {each.partition("=")[0] for each in fields}
        if "+" in (hook[3] or "") or len(names) < len(fields):
            raise ValueError(f"{redacted(text)}: a query with + or a repeated name would be changed; write %20 or %2B")
        # A dash tells apprise's own options from the query of the request.
        query = "".join(f"&-{each}" for each in fields)
        url = f"json{hook[1].lower()}{hook[2]}?redirect=no{query}"
    elif mail := MAIL.fullmatch(url):
        addresses = mail[1].replace(" ", "")
        if not server:
            return Receiver(redacted(text), partial(_sendmail, _sendmail_program(), addresses))
        url = _mail_url(os.path.expandvars(server).strip(), addresses)
        of_server = f"mail server {redacted(server)} ({SMTP}, ssd_smtp) with {redacted(text)}"
        return Receiver(redacted(text), partial(_notify, _service(of_server, url)))
    elif url.lower().startswith("mailto:") and "//" not in url:
        raise ValueError(f"what follows mailto: is no list of addresses; {FORMS}")
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
    # With a timeout of its own apprise sends in a pool of threads that all services share, and for which Python waits.
    service = apprise.Apprise(asset=apprise.AppriseAsset(app_id="pytest-ssdqual", service_timeout=0))
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
    """Drop details, which have paths and queries without their scheme; leave only the scheme of other URLs."""
    if record.levelno < logging.WARNING:
        return False
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
    """Return the URL of a mail server with recipients.

    Unless it names one, the sender is the user if that is an address, that user of the host's domain, or the first
    recipient.
    """
    given = urlsplit(server)
    user, sender = unquote(given.username or ""), ""
    if "@" in user:
        sender = user
    elif not (user and DOMAIN.fullmatch(given.hostname or "")):
        sender = addresses.partition(",")[0]
    if sender and "from=" not in given.query:
        addresses = f"{addresses}&from={sender}"
    return f"{server}{'&' if given.query else '?'}to={addresses}"


def _sendmail_program() -> str:
    """Return the path of sendmail; ``ValueError`` if it is not installed."""
    if program := shutil.which("sendmail", path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}"):
        return program
    raise ValueError(NO_MAIL)


def _sendmail(program: str, addresses: str, event: Notification) -> None:
    """Send mail by the local sendmail; ``OSError`` with its message if it refuses."""
    message = EmailMessage()
    message["To"] = addresses
    message["Subject"] = event.title
    message.set_content(event.body)
    argv = [program, "-i", "-t"]
    done = subprocess.run(argv, input=bytes(message), capture_output=True, timeout=60, check=False)
    if done.returncode:
        complaint = safe_text.line(done.stderr.decode(errors="replace"), MOST_CHARACTERS)
        raise OSError(f"sendmail ended with status {done.returncode}: {complaint}")
