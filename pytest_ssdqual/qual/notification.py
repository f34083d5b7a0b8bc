"""What a run reports to people who are elsewhere: its first broken promise, its first error, a stall, its end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pytest_ssdqual.qual.records import plain

SCHEMA = 1
#: Options and ini values that may contain a password or a token, in any spelling of a command line.
_SECRET = re.compile(r"((?:--ssd-notify|ssd_notify|ssd_smtp)\s*=\s*)(.+)", re.DOTALL)
_NOTIFY = "--ssd-notify"
#: Userinfo, path and query of a URL: webhooks have their tokens in the path.
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:[^/?#\s]*@)?(?P<place>[^/?#\s@]*)\S*", re.IGNORECASE)


class Occasion(StrEnum):
    """Reason of a notification."""

    #: The first promise that is broken, on each bay.
    FAILURE = "failure"
    #: The first test that came to no verdict, on each bay.
    ERROR = "error"
    #: Nothing was measured for longer than expected.
    STALL = "stall"
    END = "end"


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification; all of it is plain text and numbers."""

    what: Occasion
    #: One printable sentence.
    sentence: str
    #: UTC, ISO 8601.
    time: str
    #: Path of the run folder on the controller; of a run of several bays, of the bay, or of all at the end.
    run_folder: str
    #: Name of the machine under test; of several, separated by commas.
    machine: str
    #: Name of the bay, in a run of several; empty if all are meant.
    bay: str = ""
    #: Numbers so far, of the bay or of all bays: claims by outcome (``pass``, ``fail``, ``inconclusive``,
    #: ``observed``), and ``error``: tests that came to no verdict.
    verdicts: Mapping[str, int] = field(default_factory=dict)
    #: The attributed cause of a broken promise; empty if there is none.
    cause: str = ""
    #: Exit status of pytest, at the end.
    exit_status: int | None = None

    @property
    def title(self) -> str:
        """Occasion, bay and sentence in one line: ``ssdqual, failure: dut7: p99 latency of raid5x4 …``."""
        return f"ssdqual, {self.what}: {f'{self.bay}: ' if self.bay else ''}{self.sentence}"

    def to_json(self) -> dict[str, object]:
        """Return the body of a request; ``text`` is the key that the webhooks of chat programs show."""
        return {"schema": SCHEMA, "text": self.title, **plain(self)}


def redacted(text: str) -> str:
    """Return a URL as scheme and host only, a list of addresses or ``$NAME`` as it is."""
    return _URL.sub(lambda found: f"{found['scheme']}://{found['place']}/…", text)


def without_secrets(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command line whose values of ``--ssd-notify`` and ini values alike are redacted."""
    found: list[str] = []
    for word in words:
        is_value = bool(found) and found[-1] == _NOTIFY
        found.append(_lines(word) if is_value else _SECRET.sub(lambda part: part[1] + _lines(part[2]), word))
    return tuple(found)


def _lines(text: str) -> str:
    """Redact the value on each line, also one that is no valid URL because of a blank in it."""
    return "\n".join(redacted("".join(each.split())) for each in text.split("\n"))
