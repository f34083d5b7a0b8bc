"""What a run reports to people who are elsewhere: its first broken promise, its first error, a stall, its end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum

from pytest_ssdqual.qual.frozen import frozen
from pytest_ssdqual.qual.records import plain

SCHEMA = 1


class Occasion(StrEnum):
    """Reason of a notification."""

    #: The first promise that is broken, on each bay.
    FAILURE = "failure"
    #: The first test that came to no verdict, on each bay.
    ERROR = "error"
    #: Nothing was measured for longer than expected.
    STALL = "stall"
    END = "end"


@frozen
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

    @property
    def body(self) -> str:
        """A line for each field that has a value, the sentence first."""
        fields = {"sentence": self.sentence, **plain(self)}
        return "\n".join(f"{name}: {value}" for name, value in fields.items() if value not in ("", None))

    def to_json(self) -> dict[str, object]:
        """Return the body of a request; ``text`` is the key that the webhooks of chat programs show."""
        return {"schema": SCHEMA, "text": self.title, **plain(self)}


def redacted(text: str) -> str:
    """Return the text without what follows the scheme of a URL on each line: tokens of services stand anywhere."""
    return re.sub("://.*", "://…", text)


def without_secrets(words: Iterable[str]) -> tuple[str, ...]:
    """Return a command line without the URLs of ``--ssd-notify``, of ini values, and of other plugins' options."""
    return tuple(redacted(word) for word in words)
