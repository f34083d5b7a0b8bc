"""A process on the machine under test that answers line by line, which was never there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence


class Answers:
    """A process that gives these answers, then none."""

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers: Iterator[str] = iter(answers)
        self.exhausted, self.closed = threading.Event(), False

    def ask(self, text: str, answers: int, deadline_s: float) -> list[str] | None:
        found = next(self.answers, None)
        if found is None:
            self.exhausted.set()
        return None if found is None else [found]

    def close(self) -> None:
        self.closed = True
