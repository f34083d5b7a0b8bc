"""``--ssd-notify``: the receivers of notifications, and the way of mail; secrets are in no representation of them."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from pytest_ssdqual.qual.notification import redacted

#: Environment variable with the mail server, before the ini value ``ssd_smtp``.
SMTP = "SSDQUAL_SMTP"
#: A whole value that names an environment variable, so that neither a file nor a command line holds the secret.
VARIABLE = re.compile(r"\$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\})", re.ASCII)
#: An address, or a local user. A leading dash would be an option of sendmail, a line end another header.
ADDRESS = re.compile(r"[A-Za-z0-9_][\w.+=~-]*(@[A-Za-z0-9][A-Za-z0-9.:-]*)?", re.ASCII)
#: Folders of sendmail that a user's PATH lacks.
SBIN = "/usr/sbin:/usr/lib"


@dataclass(frozen=True, slots=True)
class WebTarget:
    """A URL that gets each notification as JSON."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        return redacted(self.url)


@dataclass(frozen=True, slots=True)
class MailServer:
    """An SMTP server: TLS from the start with ``smtps``, STARTTLS before a password with ``smtp``."""

    host: str
    port: int
    is_tls: bool
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class MailTarget:
    """Addresses that get each notification as mail."""

    addresses: tuple[str, ...]
    #: None: the local ``sendmail``.
    server: MailServer | None
    sendmail: str = ""

    def __str__(self) -> str:
        return f"mailto:{','.join(self.addresses)}"


Target = WebTarget | MailTarget


def parse(texts: Iterable[str], smtp: str, environment: Mapping[str, str]) -> tuple[Target, ...]:
    """Return the receivers, each once; ``ValueError`` in one sentence, without secrets."""
    found = dict.fromkeys(expanded(text.strip(), environment) for text in texts if text.strip())
    return tuple(_target(text, smtp, environment) for text in found)


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return the value of the variable that ``$NAME`` names, or the text itself."""
    match = VARIABLE.fullmatch(text)
    if not match:
        return text
    name = match["name"] or match["braced"]
    if not environment.get(name, "").strip():
        raise ValueError(f"the environment variable {name} is not set: export it, or write the receiver itself")
    return environment[name].strip()


def _target(text: str, smtp: str, environment: Mapping[str, str]) -> Target:
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() == "mailto":
        return _mail(rest, smtp, environment)
    if _split(text, "http", "https") and text.isascii() and text.isprintable() and " " not in text:
        return WebTarget(text)
    raise ValueError(
        f"{redacted(''.join(text.split()))} is no receiver: write https://HOST/PATH, mailto:ADDRESS or $VARIABLE"
    )


def _mail(rest: str, smtp: str, environment: Mapping[str, str]) -> MailTarget:
    addresses = tuple(unquote(each.strip()) for each in rest.split(","))
    if wrong := [each for each in addresses if not ADDRESS.fullmatch(each)]:
        raise ValueError(f"mailto:{rest!r} has no address in {wrong[0]!r}: write mailto:NAME@HOST[,NAME@HOST...]")
    given = environment.get(SMTP, "").strip() or smtp.strip()
    if given:
        return MailTarget(addresses, mail_server(expanded(given, environment)))
    sendmail = shutil.which("sendmail", path=f"{environment.get('PATH', os.defpath)}:{SBIN}")
    if not sendmail:
        raise ValueError(
            f"mailto: needs sendmail or a mail server: install one that has sendmail, or set {SMTP} or ssd_smtp to "
            "smtp://HOST[:PORT]"
        )
    return MailTarget(addresses, None, sendmail)


def mail_server(text: str) -> MailServer:
    """Return the server of ``smtp[s]://[USER:PASSWORD@]HOST[:PORT]``; ``ValueError`` without the password."""
    found = _split(text, "smtp", "smtps")
    if not found or found.path.strip("/") or found.query:
        raise ValueError(f"{redacted(text)} is no mail server: write smtp[s]://[USER:PASSWORD@]HOST[:PORT]")
    is_tls = found.scheme == "smtps"
    user, password = unquote(found.username or ""), unquote(found.password or "")
    return MailServer(
        found.hostname or "", found.port or (465 if is_tls else 587 if user else 25), is_tls, user, password
    )


def _split(text: str, *schemes: str) -> SplitResult | None:
    """Return the parts of a URL with one of these schemes and a host; None for anything else."""
    try:
        found = urlsplit(text)
        is_url = found.scheme in schemes and bool(found.hostname) and (found.port is None or found.port > 0)
    except ValueError:
        return None
    return found if is_url else None
