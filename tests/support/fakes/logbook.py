"""A logbook in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_ssdqual.qual.records import plain


@dataclass
class Logbook:
    """Keeps the records that are noted, as the journal would store them."""

    notes: list[tuple[str, dict[str, Any]]] = field(default_factory=list, kw_only=True)

    def note(self, kind: str, **facts: object) -> None:
        self.notes.append((kind, plain(facts)))

    def keep(self, name: str, data: bytes) -> str:
        return f"fio/{name}"

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.notes]

    def all_of(self, kind: str) -> list[dict[str, Any]]:
        return [facts for each, facts in self.notes if each == kind]

    def noted(self, kind: str) -> dict[str, Any]:
        """Return the only record of this kind."""
        (facts,) = self.all_of(kind)
        return facts
